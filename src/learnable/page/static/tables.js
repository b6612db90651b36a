// Tables: drop or choose a file, see what it holds at once, choose what to predict.

import { get, post, send } from "./api.js";
import { go, link, note } from "./address.js";
import { announce, bytes, count, el, figure, fill, grid, head, labelled, named, number, pager, section, select, share, shortened } from "./dom.js";
import { formOf } from "./forms.js";

const ROWS = 12;

export async function show(stage, place, app) {
  await app.refresh();
  return place.id ? showTable(stage, place, app) : showList(stage, app);
}

function showList(stage, app) {
  const input = el("input", { type: "file", class: "unseen", id: "file", accept: ".csv,.tsv,.txt,.json,.jsonl,.parquet,.arrow,.feather,.xlsx,.gz,.zst,.bz2,.str,.vcf" });
  const told = el("p", { class: "muted", role: "status" }, `CSV, Parquet, Arrow, JSON or Excel, up to ${bytes(app.state.upload)}. Nothing leaves this machine.`);
  const take = async (file) => {
    if (!file) return;
    fill(told, "Sending ", named(file.name), " …");
    try {
      const table = await send("/api/tables", file, (part) => fill(told, "Sending ", named(file.name), ` … ${share(part, 0)}`));
      go("tables", table.id);
    } catch (error) {
      fill(told, el("strong", {}, error.message));
      announce(error.message);
    }
  };
  input.addEventListener("change", () => take(input.files[0]));
  const drop = el("div", { class: "drop" },
    el("p", { class: "drop-title" }, "Drop a table here"),
    el("p", {}, input, el("label", { for: "file", class: "button" }, "Choose a file")), told);
  for (const name of ["dragenter", "dragover"]) drop.addEventListener(name, () => drop.classList.add("over"));
  for (const name of ["dragleave", "drop"]) drop.addEventListener(name, () => drop.classList.remove("over"));
  drop.addEventListener("drop", (event) => take(event.dataTransfer.files[0]));
  const demos = el("p", {}, "Or try one that is built in: ", app.state.demos.map((name, k) => [k ? ", " : "",
    el("button", { type: "button", class: "as-link", onclick: async () => go("tables", (await post("/api/demo", { name })).id) }, name)]), ".");
  const tables = [...app.state.tables].reverse();
  const runs = [...app.state.runs].reverse();
  fill(stage,
    head("learnable · page", "What do you want to know?", "Machine learning you can check: a table in, an honest comparison out."),
    section("A table", null, drop, demos),
    tables.length ? section("In this session", app.state.kept ? null : "Kept until the command ends.",
      el("ul", { class: "cards" }, tables.map((table) => el("li", {}, el("a", { class: "card", href: link("tables", table.id) },
        el("span", { class: "card-title" }, named(table.name, 60)), el("span", { class: "muted" }, table.kind === "demo" ? "built in" : bytes(table.size))))))) : null,
    runs.length ? section("Runs", null,
      el("ul", { class: "cards" }, runs.map((run) => el("li", {}, el("a", { class: "card", href: link(run.kind === "compare" ? "race" : "result", run.id) },
        el("span", { class: "card-title" }, run.title, " · ", named(run.settings.target ?? run.name, 40)),
        el("span", { class: "muted" }, `${run.status} · `, named(run.name, 40))))))) : null,
  );
  return null;
}

async function showTable(stage, place, app) {
  const table = await get(`/api/tables/${place.id}`);
  app.table = table.id;
  if (table.genotypes) {
    fill(stage, head("table", named(table.name, 80), `${bytes(table.size)}, a file of genotypes`), more(table, app, ["structure"]));
    return null;
  }
  const columns = el("div", {});
  let described = table.profile;
  const drawColumns = () => fill(columns, columnTable(described, table.rows),
    described.length < table.columns ? el("p", {}, el("button", { type: "button", class: "quiet", onclick: async (event) => {
      event.target.disabled = true;
      const next = await get(`/api/tables/${table.id}?start=${described.length}`);
      described = [...described, ...next.profile];
      drawColumns();
    } }, `Show more of the ${count(table.columns)} columns`)) : null);
  drawColumns();
  const rows = el("div", {});
  const turnTo = async (start) => {
    const part = await get(`/api/tables/${table.id}/rows?start=${start}&count=${ROWS}`);
    note({ rows: start || null });
    const numeric = part.columns.map((_, j) => part.rows.every((row) => row[j] === null || !Number.isNaN(Number(row[j]))));
    fill(rows, grid([["", true], ...part.columns.map((name, j) => [shortened(name, 40), numeric[j]])],
      part.rows.map((row, k) => [el("span", { class: "muted" }, count(start + k + 1)), ...row.map((cell) => cell ?? el("span", { class: "none" }, "–"))]),
      { caption: "Rows of the table" }), pager(start, ROWS, part.total, turnTo));
  };
  const warnings = table.warnings.length
    ? el("ul", { class: "plain" }, table.warnings.slice(0, 8).map((w) => el("li", {}, w.text))) : el("p", { class: "muted" }, "Nothing looks wrong.");
  fill(stage,
    head("table", named(table.name, 80), `${count(table.rows)} rows, ${count(table.columns)} columns${table.size ? `, ${bytes(table.size)}` : ""}`),
    section("Predict a column", "Models are compared by cross-validation; a fifth of the rows is set aside for the winner.", setup(table, place, app)),
    section("What it holds", `Counts are of all rows. ${table.duplicate_rows ? `${count(table.duplicate_rows)} rows are copies of others.` : ""}`, warnings, columns),
    section("Its rows", null, rows),
    more(table, app, ["cluster", "hmm", "embed", "topics", "structure"]),
  );
  turnTo(Number(place.values.rows) || 0);
  return null;
}

function more(table, app, kinds) {
  return section("More to ask", "Each is one command of the tool; the page shows what it finds.",
    el("ul", { class: "cards" }, kinds.map((kind) => el("li", {}, el("a", { class: "card", href: link("ask", table.id, { kind }) },
      el("span", { class: "card-title" }, app.state.forms[kind].title), el("span", { class: "muted" }, app.state.forms[kind].about))))));
}

function columnTable(columns, rows) {
  const heads = ["Column", "Kind", "Values", "Typical", "Missing", "Distinct"];
  return el("table", { class: "cols" },
    el("thead", {}, el("tr", {}, heads.map((text, k) => el("th", { scope: "col", class: k > 3 ? "num" : null }, text)))),
    el("tbody", {}, columns.map((column) => el("tr", {},
      el("th", { scope: "row" }, named(column.name, 60), column.notes.length ? el("span", { class: "sub" }, column.notes.slice(0, 2).join("; ")) : null),
      el("td", { class: "kind" }, column.kind, column.role === "dropped" ? " (left out)" : null),
      el("td", { class: "dist" }, figure(column.figure)),
      el("td", { class: "typ" }, typical(column, rows)),
      el("td", { class: "num", "data-label": "missing" }, column.missing ? share(column.missing / rows) : "0"),
      el("td", { class: "num", "data-label": "distinct" }, count(column.distinct))))));
}

function typical(column, rows) {
  const s = column.summary;
  if (s && s.median !== null) return `median ${number(s.median)}, from ${number(s.min)} to ${number(s.max)}`;
  const top = (column.top ?? []).slice(0, 3);
  return top.map(([value, n], k) => [k ? ", " : "", named(value, 28), ` ${share(n / rows, 0)}`]);
}

// What to predict, and how: the form of a comparison, with what a comparison would make of the choice.
function setup(table, place, app) {
  const said = el("div", { class: "said", "aria-live": "polite" });
  const form = el("div", {});
  let asking = null;
  const names = table.names;
  const choose = async (target) => {
    note({ target: target || null });
    if (!target) {
      fill(said, el("p", { class: "muted" }, "Choose the column that you want to know for rows to come."));
      fill(form);
      return;
    }
    asking?.abort();
    asking = new AbortController();
    fill(said, el("p", { class: "muted" }, "Looking at it …"));
    try {
      const { signal } = asking;
      const found = await post(`/api/tables/${table.id}/target`, { target }, signal);
      const checked = el("div", {}, el("p", { class: "muted small" }, "Checking the other columns …"));
      draw(found, checked);
      const full = await post(`/api/tables/${table.id}/check`, { target }, signal);
      if (full.task !== found.task) draw(full, checked);  // amounts written as text are numbers after all
      check(full, checked);
    } catch (error) {
      if (error.name === "AbortError") return;
      fill(said, el("p", { class: "alert" }, error.message));
      fill(form);
    }
  };
  const check = (found, checked) => {
    const leaks = found.warnings.filter((w) => w.kind === "leak");
    fill(checked,
      el("p", {}, `${count(found.features)} columns to learn from, ${count(found.rows)} rows with a value.`),
      leaks.slice(0, 3).map((w) => el("p", { class: "alert" }, w.text)),
      found.notes.length ? el("details", {}, el("summary", {}, found.notes.length === 1 ? "A note on how the table is read" : `${found.notes.length} notes on how the table is read`), el("ul", { class: "plain small" }, found.notes.map((text) => el("li", {}, text)))) : null);
  };
  const draw = (found, checked) => {
    const tasks = { regression: "a number to estimate", binary: "one of two classes", multiclass: `one of ${found.n_classes} classes` };
    fill(said, el("p", {}, "It is ", el("strong", {}, tasks[found.task]), ` (${found.reason}).`), checked);
    const fields = app.state.forms.compare.fields.filter((field) => field.name !== "target" && (field.name !== "cost" || found.task === "binary"))
      .map((field) => field.name === "metric" ? { ...field, choices: found.metrics.map((m) => m.name), labels: Object.fromEntries(found.metrics.map((m) => [m.name, m.label])) } : field);
    fill(form, formOf(fields, {
      names, models: found.models, values: {}, button: "Start the race", plain: ["seconds"],
      send: async (settings) => {
        const run = await post("/api/runs", { kind: "compare", table: table.id, settings: { ...settings, target: found.target } });
        await app.refresh();
        go("race", run.id);
      },
    }));
  };
  const first = place.values.target ?? table.target ?? "";
  const control = select([["", "Choose a column …"], ...names.map((name) => [name, name])], names.includes(first) ? first : "", choose);
  choose(control.value);
  return el("div", { class: "setup" }, labelled("Column to predict", control), said, form);
}
