// Predict: one row by a form made from the columns, or a file of rows.

import { get, post, send } from "./api.js";
import { go, link, note } from "./address.js";
import { announce, count, el, fill, grid, head, labelled, named, number, section, share } from "./dom.js";
import { bar } from "./charts.js";
import { shares } from "./explain.js";

const FIRST = 12;

export async function show(stage, place, app) {
  if (!place.id) {
    go("race");
    return null;
  }
  const run = await get(`/api/runs/${place.id}`);
  if (run.files["model.safetensors"] === undefined) {
    fill(stage, head("predict", "No model is kept yet", run.status === "running" ? "The race is still on." : "The run ended before a model was finished."), el("p", {}, el("a", { class: "button", href: link("race", run.id) }, "To the race")));
    return null;
  }
  const form = await post(`/api/runs/${run.id}/ask/form`);
  const given = place.values.row ? JSON.parse(place.values.row) : {};
  const controls = new Map();
  const fields = form.fields.map((field) => {
    const [node, control] = fieldOf(field, given[field.name]);
    controls.set(field.name, control);
    return node;
  });
  const result = el("div", { class: "result", "aria-live": "polite" });
  const values = () => Object.fromEntries([...controls].map(([name, control]) => [name, control.value]));
  const ask = async () => {
    const row = values();
    note({ row: JSON.stringify(row).length < 4000 ? JSON.stringify(row) : null });
    try {
      drawResult(result, form.target, await post(`/api/runs/${run.id}/ask/predict`, { values: row }), async (box) => {
        fill(box, el("p", { class: "muted" }, "Asking …"));
        fill(box, shares(await post(`/api/runs/${run.id}/ask/explain`, { values: row })));
      });
    } catch (error) {
      fill(result, el("p", { class: "alert" }, error.message));
    }
  };
  const table = el("form", { onsubmit: (event) => { event.preventDefault(); ask(); } },
    el("div", { class: "fields" }, fields.slice(0, FIRST)),
    fields.length > FIRST ? el("details", {}, el("summary", {}, `${count(fields.length - FIRST)} more columns, which matter less`), el("div", { class: "fields" }, fields.slice(FIRST))) : null,
    form.more ? el("p", { class: "muted" }, `${count(form.more)} more columns are left empty; use a file for all of them.`) : null,
    el("p", { class: "go" }, el("button", { type: "submit", class: "button" }, "Predict")));
  fill(stage,
    head(`predict · ${run.name}`, ["What is ", named(form.target, 60), "?"], "Fields hold typical values; leave one empty if you do not know it."),
    section("One row", null, table, result), section("A file", "The same columns; the target may be missing.", fileOf(run)));
  if (place.values.row) ask();
  return null;
}

function fieldOf(field, given) {
  const start = given ?? field.typical ?? "";
  let control;
  if (field.choices.length && field.choices.length < 200) {
    control = el("select", {}, el("option", { value: "" }, "unknown"), field.choices.map((choice) => el("option", { value: choice, selected: choice === start }, choice)));
  } else if (field.kind === "number") {
    control = el("input", { type: "text", inputmode: "decimal", value: start, autocomplete: "off" });
  } else {
    control = el("input", { type: "text", value: start, autocomplete: "off" });
  }
  const range = field.low !== null && field.kind === "number" ? `${number(field.low)} to ${number(field.high)} in the table` : null;
  return [labelled(named(field.name, 40), control, range), control];
}

function drawResult(box, target, found, why) {
  const parts = [];
  if (found.probabilities) {
    parts.push(el("p", { class: "big" }, named(found.prediction, 60)),
      el("table", { class: "effects" }, el("thead", { class: "unseen" }, el("tr", {}, ["Class", "", "Probability"].map((text) => el("th", { scope: "col" }, text)))),
        el("tbody", {}, found.probabilities.map((p) => el("tr", {}, el("th", { scope: "row" }, named(p.label, 40)), el("td", { class: "scale" }, bar(p.value, `${p.label}: ${share(p.value)}`)), el("td", { class: "num" }, share(p.value)))))));
  } else {
    parts.push(el("p", { class: "big" }, typeof found.prediction === "number" ? number(found.prediction, 6) : named(found.prediction, 60)));
    if (found.lower !== undefined) {
      parts.push(el("p", {}, found.lower === null || found.upper === null ? "The interval has no end: there are too few rows." : `Between ${number(found.lower, 5)} and ${number(found.upper, 5)} in ${share(found.level, 0)} of such rows.`),
        found.guarantee ? el("p", { class: "muted small" }, found.guarantee[0].toUpperCase() + found.guarantee.slice(1), ".") : null);
    }
  }
  const reasons = el("div", {});
  const button = el("button", { type: "button", class: "quiet", onclick: async () => { button.disabled = true; try { await why(reasons); } catch (error) { fill(reasons, el("p", { class: "alert" }, error.message)); button.disabled = false; } } }, "Why?");
  fill(box, el("h3", {}, named(target, 40)), parts, el("p", {}, button), reasons);
  announce(`${target}: ${box.querySelector(".big").textContent}`);
}

function fileOf(run) {
  const told = el("p", { class: "muted", role: "status" }, "Predictions come back as a file, beside the columns.");
  const result = el("div", {});
  const input = el("input", { type: "file", class: "unseen", id: "rows-file" });
  input.addEventListener("change", async () => {
    const file = input.files[0];
    if (!file) return;
    fill(told, "Predicting ", named(file.name), " …");
    fill(result);
    try {
      const found = await send(`/api/runs/${run.id}/predict-file`, file);
      fill(told, `${count(found.rows)} rows are predicted.`);
      fill(result,
        grid(found.preview.columns.map((name) => [name, false]), found.preview.rows.map((row) => row.map((cell) => cell ?? "–")), { caption: "The first predictions" }),
        el("p", { class: "go" }, el("a", { class: "button", href: `/runs/${run.id}/files/predictions.csv`, download: "" }, "Save the predictions")));
    } catch (error) {
      fill(told, el("strong", {}, error.message));
    }
    input.value = "";
  });
  return el("div", {}, el("p", {}, input, el("label", { for: "rows-file", class: "button second" }, "Choose a file of rows")), told, result);
}
