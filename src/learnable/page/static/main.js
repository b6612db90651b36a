// The page: reads the address, draws the view it names, and the steps above it.

import { get } from "./api.js";
import { link, read } from "./address.js";
import { announce, el, fill, trouble } from "./dom.js";
import * as tables from "./tables.js";
import * as race from "./race.js";
import * as look from "./look.js";
import * as predict from "./predict.js";
import * as keep from "./keep.js";
import * as analysis from "./analysis.js";
import * as lab from "./lab.js";

const VIEWS = { tables, race, look, predict, keep, ask: analysis, result: analysis, lab };
const STEPS = [["tables", "Tables"], ["race", "Race"], ["look", "Look"], ["predict", "Predict"], ["keep", "Keep"]];

const app = { state: null, run: null, table: null, refresh, steps };
let leave = null;
let turn = 0;

async function refresh() {
  app.state = await get("/api/state");
  return app.state;
}

function newestRun() {
  const all = (app.state?.runs ?? []).filter((run) => run.kind === "compare");
  return all.length ? all[all.length - 1].id : null;
}

function steps() {
  const here = read();
  const place = here.view === "ask" ? "tables" : here.view === "result" ? "tables" : here.view;
  const run = app.run ?? newestRun();
  const entries = STEPS.map(([view, text]) => {
    const id = view === "tables" ? null : run;
    const current = place === view;
    if (view !== "tables" && !run && !current) return el("li", {}, el("span", { class: "step off", "aria-disabled": "true" }, text));
    const to = view === "tables" ? link("tables") : link(view, id);
    return el("li", {}, el("a", { class: "step", href: to, "aria-current": current ? "page" : null }, text));
  });
  if (app.state?.lab) {
    entries.push(el("li", {}, el("a", { class: "step", href: link("lab"), "aria-current": place === "lab" ? "page" : null }, "Lab")));
  }
  fill(document.getElementById("steps"), entries);
}

async function show() {
  const place = read();
  const view = VIEWS[place.view] ?? tables;
  turn += 1;
  const mine = turn;
  leave?.();
  leave = null;
  const stage = el("div", { class: `view view-${place.view}` });
  try {
    if (!app.state) await refresh();
    if (["race", "look", "predict", "keep"].includes(place.view) && place.id) app.run = place.id;
    const after = await view.show(stage, place, app);
    if (mine !== turn) {
      after?.();
      return;
    }
    leave = after ?? null;
  } catch (error) {
    if (mine !== turn) return;
    fill(stage, el("header", { class: "head" }, el("h1", { tabindex: "-1" }, "This cannot be shown"), el("p", { class: "meta" }, error.message)),
      el("p", {}, el("a", { href: link("tables") }, "To the tables")));
  }
  const main = document.getElementById("main");
  fill(main, stage);
  steps();
  const title = stage.querySelector("h1");
  document.title = title ? `${title.textContent} · learnable` : "learnable";
  announce(document.title);
  if (mine > 1) {
    scrollTo(0, 0);
    (title ?? main).focus({ preventScroll: true });
  }
}

document.getElementById("skip").addEventListener("click", () => document.getElementById("main").focus());
window.addEventListener("hashchange", show);
window.addEventListener("unhandledrejection", (event) => {
  if (event.reason?.name !== "AbortError") trouble(event.reason?.message ?? "Something went wrong.");
});
// A file that misses its place must not replace the page.
for (const name of ["dragover", "drop"]) window.addEventListener(name, (event) => event.preventDefault());
show();
