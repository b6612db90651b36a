// Keep: the model file, the report in one file, and the lines that do again what is on the screen.

import { get } from "./api.js";
import { go, link } from "./address.js";
import { bytes, copyable, el, fill, head, named, section } from "./dom.js";

const WORDS = {
  "model.safetensors": ["The model", "Fitted to all rows. One file without code in it, for the command line and for Python."],
  "report.html": ["The report", "One page to send on: it opens anywhere, offline, and runs no script."],
  "record.json": ["The record", "Every number of the comparison, as JSON."],
  "rows.csv": ["The rows", "What was found for every row, as CSV."],
  "predictions.csv": ["Predictions", "Of the last file that was predicted, as CSV."],
};

export function fileList(run) {
  return el("ul", { class: "cards" }, Object.entries(run.files).map(([name, size]) => el("li", {},
    el("a", { class: "card", href: `/runs/${run.id}/files/${name}`, download: "" },
      el("span", { class: "card-title" }, WORDS[name][0], el("span", { class: "muted" }, ` · ${name}, ${bytes(size)}`)), el("span", { class: "muted" }, WORDS[name][1])))));
}

export async function show(stage, place, app) {
  if (!place.id) {
    go("race");
    return null;
  }
  const run = await get(`/api/runs/${place.id}`);
  const file = run.files["model.safetensors"] !== undefined;
  const empty = !Object.keys(run.files).length;
  fill(stage,
    head(`keep · ${run.name}`, ["Keep ", named(run.settings.target ?? run.title, 60)], "Everything here works without the page."),
    section("Files", null, empty ? el("p", { class: "muted" }, "Nothing is finished yet.") : fileList(run)),
    section("Do it again", "The same table, settings and seed give the same result; only a time limit may cut elsewhere.",
      copyable("On the command line", run.command), copyable("In Python", run.python)),
    file ? section("Use the model", null,
      copyable("Predict new rows", "learnable predict model.safetensors new.csv"),
      copyable("Check what it proves", `learnable verify model.safetensors ${quoted(run.source)}`),
      copyable("In Python", 'import learnable as ln\n\nmodel = ln.load("model.safetensors")\nmodel.predict(table)')) : null,
    section("This view", "Links work in this session: they bring back the table, the run and what was chosen.",
      el("p", {}, el("a", { href: link("look", run.id) }, "Look"), " · ", el("a", { href: link("race", run.id) }, "Race"), " · ", el("a", { href: link("tables", run.table) }, "Table"))),
  );
  return null;
}

const quoted = (name) => (/^[\w./:-]+$/.test(name) ? name : `'${name.replaceAll("'", `'\\''`)}'`);
