// Look: the report's parts, and what one wants to ask of them: a threshold, a column, a row.

import { get, post } from "./api.js";
import { go, link, note } from "./address.js";
import { announce, contents, count, el, figure, fill, grid, head, labelled, named, number, pager, section, select, share } from "./dom.js";
import { shares } from "./explain.js";
import { reportFrame } from "./frame.js";

const PAGE = 10;

export async function show(stage, place, app) {
  if (!place.id) {
    go("race");
    return null;
  }
  const run = await get(`/api/runs/${place.id}`);
  if (run.files["record.json"] === undefined) {
    fill(stage, head("look", "Nothing to look at yet", run.status === "running" ? "The race is still on." : run.reason ?? "The run ended before a model was finished."),
      el("p", {}, el("a", { class: "button", href: link("race", run.id) }, "To the race")));
    return null;
  }
  // Any model of the leaderboard can be asked; one that was not kept is fitted again first.
  const asked = place.values.model ?? null;
  const ask = (question, values = {}) => post(`/api/runs/${run.id}/ask/${question}`, asked ? { ...values, model: asked } : values);
  if (asked) await ask("model");
  const found = await ask("summary");
  const table = await get(`/api/tables/${run.table}`);
  const about = { run, found, ask, values: place.values, names: table.names };
  const parts = [
    found.aside && found.classes?.length === 2 ? threshold(about) : null,
    found.aside && found.classes && found.classes.length > 2 ? confusion(about) : null,
    found.aside ? errors(about) : null,
    found.model ? effect(about) : null,
    found.aside ? slices(about) : null,
    found.figures.length ? drawings(found) : null,
    proof(about),
    found.advice.length ? section("What to do next", null, el("ol", { class: "steps" }, found.advice.map((text) => el("li", {}, text)))) : null,
    whole(run),
  ].filter(Boolean);
  fill(stage,
    head(`look · ${run.name}`, ["Predicting ", named(found.target, 60)], isKept(found) ? ["The best model is ", named(found.winner ?? "none", 90)] : ["Asking ", named(found.asked, 90)],
      el("div", { class: "verdict" }, found.verdict.map((text) => el("p", {}, text))),
      found.models.length > 1 ? chooser(about) : null,
      found.status === "interrupted" ? el("p", { class: "alert" }, "The race was stopped: this is the best of what was finished.") : null,
      contents(parts)),
    parts);
  return null;
}

const isKept = (found) => found.asked === found.winner;

// Which model the questions below are asked of.
function chooser({ run, found, values }) {
  const said = el("span", { class: "muted", role: "status" });
  const lines = found.models.map((one) => [one.name, `${one.rank ?? "–"} · ${one.short} · ${number(one.mean, 4)}${one.name === found.winner ? " · kept" : ""}`]);
  const choose = select(lines, found.asked, (name) => {
    const same = name === found.winner;
    if (!same) fill(said, "Fitting ", named(name, 60), " again …");
    go("look", run.id, { ...values, model: same ? null : name, t: null, start: null });
  });
  return el("div", { class: "fields chooser" }, labelled("Ask the model", choose), said);
}

// Two classes: where to draw the line, and what its errors cost.
function threshold({ found, ask, values }) {
  const out = el("div", { class: "threshold-out", "aria-live": "polite" });
  const fp = el("input", { type: "number", min: 0.001, step: "any", value: values.fp ?? 1 });
  const fn = el("input", { type: "number", min: 0.001, step: "any", value: values.fn ?? 1 });
  const slider = el("input", { type: "range", min: 0, max: 1, step: 0.01, value: values.t ?? 0.5 });
  const shown = el("output", {});
  const best = el("button", { type: "button", class: "quiet" }, "Take the cheapest");
  const called = el("span", {}, found.decision?.positive ?? "positive");
  let lines = null;
  let exact = values.t ? Number(values.t) : null;  // the slider has only hundredths
  const at = () => {
    if (!lines) return;
    const wanted = exact ?? Number(slider.value);
    const line = lines.lines.reduce((a, b) => (Math.abs(b.threshold - wanted) < Math.abs(a.threshold - wanted) ? b : a));
    shown.textContent = line.threshold.toFixed(2);
    slider.setAttribute("aria-valuetext", `${line.threshold.toFixed(2)}: ${line.false_alarms} false alarms, ${line.missed} missed`);
    fill(out, matrix([lines.positive, lines.negative], [[line.hits, line.missed], [line.false_alarms, line.rejected]]),
      el("dl", { class: "pairs" }, [
        ["Called so", count(line.called)], ["Precision", share(line.precision)], ["Recall", share(line.recall)], ["F1", number(line.f1, 3)], ["Cost", number(line.cost, 5)],
      ].map(([term, text]) => [el("dt", {}, term), el("dd", {}, text)])));
  };
  const load = async () => {
    const cost = { FP: Number(fp.value), FN: Number(fn.value) };
    try {
      lines = await ask("threshold", { cost });
    } catch (error) {
      fill(out, el("p", { class: "alert" }, error.message));
      return;
    }
    best.textContent = `Take the cheapest, ${lines.best.toFixed(2)}`;
    fill(called, named(lines.positive, 30));
    at();
  };
  slider.addEventListener("input", () => {
    exact = null;
    at();
  });
  slider.addEventListener("change", () => note({ t: slider.value }));  // browsers limit how often the address changes
  for (const [input, key] of [[fp, "fp"], [fn, "fn"]]) {
    input.addEventListener("change", () => {
      note({ [key]: input.value });
      load();
    });
  }
  best.addEventListener("click", () => {
    slider.value = lines.best;
    exact = lines.best;
    note({ t: lines.best });
    at();
    announce(`Threshold ${lines.best.toFixed(2)}`);
  });
  if (!values.t && found.decision) slider.value = found.decision.threshold;
  load();
  return section("Where to draw the line", `On the ${count(found.holdout_rows)} rows set aside. A threshold chosen here looks a little better than it is.`,
    el("div", { class: "fields three" },
      el("div", { class: "slider" }, labelled(["Probability from which a row is called ", called], slider), shown),
      labelled("Cost of a false alarm", fp), labelled("Cost of a missed one", fn)),
    el("p", {}, best), out);
}

function matrix(labels, counts) {
  return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Confusion matrix" }, el("table", { class: labels.length > 12 ? "matrix dense" : "matrix" },
    el("caption", { class: "unseen" }, "Rows are actual classes, columns predicted ones"),
    el("thead", {}, el("tr", {}, el("td", { class: "corner" }, "actual ↓ predicted →"), labels.map((label) => el("th", { scope: "col" }, named(label, 24))))),
    el("tbody", {}, counts.map((row, i) => {
      const total = row.reduce((a, b) => a + b, 0) || 1;
      return el("tr", {}, el("th", { scope: "row" }, named(labels[i], 24)), row.map((value, j) => {
        const cell = el("td", { class: `${i === j ? "right" : ""} ${value ? "" : "zero"}` }, count(value));
        cell.style.setProperty("--s", value / total);
        return cell;
      }));
    }))));
}

function confusion({ ask }) {
  const box = el("div", {}, el("p", { class: "muted" }, "Counting …"));
  ask("confusion").then((found) => fill(box, matrix(found.labels, found.counts)), (error) => fill(box, el("p", { class: "alert" }, error.message)));
  return section("What is taken for what", "Rows set aside: actual classes in rows, predicted ones in columns.", box);
}

// Row by row: what was said, how wrong it was, and why.
function errors({ run, found, ask, values }) {
  const list = el("div", {});
  const why = el("div", { class: "why", "aria-live": "polite" });
  let by = values.order ?? "error";
  let start = Number(values.start) || 0;
  const number_ = (row) => el("button", { type: "button", class: "as-link", "aria-label": `Explain row ${row}`, onclick: () => explain(row, true) }, count(row));
  const load = async () => {
    try {
      const part = await ask("errors", { by, start, count: PAGE });
      const classes = found.classes !== null;
      const heads = [["Row", true], ["Actual", !classes], ["Predicted", !classes], [classes ? "Probability of the actual class" : "Actual − predicted", true], ...part.columns.map((name, j) => [name, part.rows.every((row) => row.values[j] === null || !Number.isNaN(Number(row.values[j])))])];
      fill(list, grid(heads, part.rows.map((row) => [number_(row.row), classes ? named(row.actual, 30) : number(row.actual, 5), classes ? named(row.predicted, 30) : number(row.predicted, 5),
        classes ? number(row.probability, 3) : number(row.error, 4), ...row.values.map((value) => value ?? "–")]), { caption: "Rows set aside" }),
      pager(start, PAGE, part.total, (to) => {
        start = to;
        note({ start: to || null }, true);
        load();
      }));
    } catch (error) {
      fill(list, el("p", { class: "alert" }, error.message));
    }
  };
  const explain = async (row, push = false) => {
    if (!row) return;
    note({ row }, push);
    pick.value = row;
    fill(why, el("p", { class: "muted" }, "Asking …"));
    try {
      const answer = await ask("explain", { row: Number(row) });
      fill(why, el("h3", {}, `Row ${count(answer.row)}`, answer.actual !== null ? el("span", { class: "muted" }, " · actual ", named(answer.actual, 40)) : null), shares(answer));
      announce(`Row ${row} is explained`);
    } catch (error) {
      fill(why, el("p", { class: "alert" }, error.message));
    }
  };
  const order = select([["error", "largest errors first"], ["row", "as in the table"], ["predicted", "smallest prediction first"], ["actual", "smallest target first"]], by, (value) => {
    by = value;
    start = 0;
    note({ order: value, start: null }, true);
    load();
  });
  const pick = el("input", { type: "number", min: 1, step: 1, value: values.row ?? "", inputmode: "numeric" });
  const form = el("form", { class: "fields three", onsubmit: (event) => { event.preventDefault(); explain(pick.value, true); } },
    labelled("Order", order), found.model ? labelled("Explain row", pick) : null, found.model ? el("p", { class: "go" }, el("button", { type: "submit", class: "button second" }, "Explain")) : null);
  load();
  if (values.row && found.model) explain(values.row);
  return section("Row by row", `The ${count(found.holdout_rows)} rows set aside, as the model saw none of them. Choose one to see why${isKept(found) ? "; the kept model, which was fitted to all rows, explains it" : ""}.`, form, why, list);
}

// What a column does to the predictions.
function effect({ found, ask, values }) {
  const box = el("div", { class: "fig", "aria-live": "polite" });
  const load = async (column) => {
    if (!column) return;
    fill(box, el("p", { class: "muted" }, "Asking the model …"));
    try {
      const answer = await ask("effect", { column });
      fill(box, el("p", {}, answer.caption), answer.svg ? figure(answer.svg) : levels(answer));
    } catch (error) {
      fill(box, el("p", { class: "alert" }, error.message));
    }
  };
  const first = found.columns.includes(values.column) ? values.column : found.columns[0];
  const choose = select(found.columns.map((name) => [name, name]), first, (column) => {
    note({ column }, true);
    load(column);
  });
  load(first);
  return section("What a column does", "The mean prediction if every row had one value: partial dependence. Columns that matter most come first.", labelled("Column", choose), box);
}

function levels(answer) {
  const low = Math.min(...answer.values);
  const high = Math.max(...answer.values);
  const span = high - low || 1;
  return el("table", { class: "effects" }, el("tbody", {}, answer.points.map((point, k) => {
    const meter = el("meter", { min: 0, max: 1, value: 0.04 + (0.96 * (answer.values[k] - low)) / span, "aria-label": String(point) });
    return el("tr", {}, el("th", { scope: "row" }, named(point, 40)), el("td", { class: "scale" }, meter), el("td", { class: "num" }, answer.of === null ? number(answer.values[k], 5) : share(answer.values[k])));
  })));
}

// Where the model is worse, by any column.
function slices({ found, ask, values, names }) {
  const box = el("div", { "aria-live": "polite" });
  const load = async (column) => {
    fill(box, el("p", { class: "muted" }, "Cutting …"));
    try {
      const answer = await ask("slices", { column });
      const show_ = answer.what.startsWith("share") ? (value) => share(value) : (value) => number(value, 4);
      fill(box, el("p", {}, `The ${answer.what} over all rows set aside is ${show_(answer.overall)}; less is better.`),
        grid([["Rows where", false], ["", false], [answer.what, true], ["interval", true], ["rows", true]],
          answer.parts.map((part) => [named(`${part.column}: ${part.label}`, 60), part.verdict, show_(part.value), `${show_(part.low)} to ${show_(part.high)}`, count(part.rows)]),
          { caption: "Parts of the rows", strong: (k) => answer.parts[k].verdict === "worse" }));
    } catch (error) {
      fill(box, el("p", { class: "alert" }, error.message));
    }
  };
  const all = [...found.columns, ...names.filter((name) => !found.columns.includes(name))];
  const first = all.includes(values.by) ? values.by : all[0];
  const choose = select(all.map((name) => [name, name]), first, (column) => {
    note({ by: column }, true);
    load(column);
  });
  load(first);
  return section("Where it is worse", "Any column of the table, learned from or not. “Worse” and “better” are beyond noise, all parts taken together.", labelled("Cut by", choose), box);
}

function drawings(found) {
  return section("Pictures", "Of the rows set aside, as the report has them.", el("div", { class: "grid" }, found.figures.map((one) =>
    el("figure", { class: "drawn fig" }, el("figcaption", {}, el("h4", {}, one.title), el("p", {}, one.caption), one.notes.length ? el("ul", { class: "notes" }, one.notes.map((text) => el("li", {}, text))) : null), figure(one.svg)))));
}

// What is proven: how well the fit was solved, and what the rows set aside prove about rows to come.
function proof({ run, found }) {
  const lines = el("div", { "aria-live": "polite" });
  const check = el("button", { type: "button", class: "button second", onclick: async () => {
    check.disabled = true;
    fill(lines, el("p", { class: "muted" }, "Deriving it again from the file and the table, by other code …"));
    try {
      const answer = await post(`/api/runs/${run.id}/verify`);
      fill(lines, el("p", {}, el("strong", {}, answer.ok ? "It holds." : "It does not hold.")), el("ul", { class: "plain small" }, answer.lines.map((text) => el("li", {}, text))));
      announce(answer.ok ? "It holds." : "It does not hold.");
    } catch (error) {
      fill(lines, el("p", { class: "alert" }, error.message));
    }
    check.disabled = false;
  } }, "Check it now");
  const proven = found.proven;
  return section("What is proven", "The certificate says how well the training problem was solved, not how good the model is.",
    el("dl", { class: "pairs" },
      el("dt", {}, "The fit"), el("dd", {}, found.claim ?? "This model keeps no certificate."),
      proven?.sentence ? [el("dt", {}, "New rows"), el("dd", {}, proven.sentence)] : null,
      found.intervals ? [el("dt", {}, "Intervals"), el("dd", {}, `Those of ${share(found.intervals.level, 0)} hold ${share(found.intervals.holdout_coverage)} of the rows set aside.`)] : null,
      found.optimism ? [el("dt", {}, "Optimism"), el("dd", {}, found.optimism)] : null),
    proven?.checks?.length ? el("details", {}, el("summary", {}, "What this assumes"), el("ul", { class: "plain small" }, proven.checks.map((one) => el("li", {}, Object.values(one).filter((part) => typeof part === "string").join(": "))))) : null,
    found.model && isKept(found) ? el("p", {}, check) : null, lines);
}

function whole(run) {
  const box = el("div", {});
  const open = el("button", { type: "button", class: "quiet", onclick: () => {
    open.hidden = true;
    fill(box, reportFrame(`/runs/${run.id}/report`, run.name));
  } }, "Show the whole report here");
  return run.files["report.html"] === undefined ? null : section("The report", "One file that can be sent on.", el("p", {}, el("a", { class: "button second", href: `/runs/${run.id}/files/report.html`, download: "" }, "Save the report"), " ", open), box);
}
