// The laboratory: scenes that step through the real solvers, each in a frame with an origin of its own.

import { get, post } from "./api.js";
import { link, note } from "./address.js";
import { el, fill, head, labelled, select } from "./dom.js";

export async function show(stage, place, app) {
  const scenes = await get("/api/lab");
  const scene = scenes.find((one) => one.name === place.id);
  if (!scene) {
    fill(stage, head("laboratory", "Watch the methods work", "The real solvers, one step at a time, with what is proven at each."),
      scenes.length ? el("ul", { class: "cards" }, scenes.map((one) => el("li", {}, el("a", { class: "card", href: link("lab", one.name) },
        el("span", { class: "card-title" }, one.title), el("span", { class: "muted" }, one.text.replaceAll("`", ""))))))
        : el("p", { class: "muted" }, "The laboratory is not installed."));
    return null;
  }
  const box = el("div", { "aria-live": "polite" });
  let chosen = "";
  let moves = []; // points that were dragged: row, x, y
  const draw = async (table) => {
    if (!moves.length) fill(box, el("p", { class: "muted" }, "Running it …"));
    try {
      const made = await post("/api/lab", { name: scene.name, table: table || null, moves });
      fill(box, el("iframe", { src: `/lab/${made.id}`, title: scene.title, class: "scene", sandbox: "allow-scripts" }));
    } catch (error) {
      fill(box, el("p", { class: "alert" }, error.message));
    }
  };
  // A scene says where a point was dropped; the model is fitted again to the table with the point there.
  const dragged = (event) => {
    const frame = box.querySelector("iframe");
    const { type, row, x, y } = event.data || {};
    if (!frame || event.source !== frame.contentWindow || type !== "lab:drag") return;
    if (![row, x, y].every(Number.isFinite)) return;
    moves = [...moves.filter((move) => move[0] !== row), [row, x, y]];
    draw(chosen);
  };
  window.addEventListener("message", dragged);
  const first = app.state.tables.some((table) => table.id === place.values.table) ? place.values.table : "";
  const choose = select([["", "the built-in table"], ...app.state.tables.map((table) => [table.id, table.name])], first, (table) => {
    note({ table: table || null }, true);
    chosen = table;
    moves = [];
    draw(table);
  });
  const takes = scene.takes ? `It takes ${scene.takes}` : null;
  fill(stage, el("h1", { class: "unseen", tabindex: "-1" }, scene.title),
    el("div", { class: "lab-bar" }, el("p", {}, el("a", { href: link("lab") }, "‹ All scenes")), labelled("On", choose, takes)), box);
  chosen = first;
  draw(first);
  return () => window.removeEventListener("message", dragged);
}
