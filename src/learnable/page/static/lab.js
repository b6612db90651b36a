// The laboratory: scenes that step through the real solvers, each in a frame with an origin of its own.

import { get } from "./api.js";
import { link } from "./address.js";
import { el, fill, head } from "./dom.js";

export async function show(stage, place) {
  const scenes = await get("/api/lab");
  const scene = scenes.find((one) => one.name === place.id);
  if (scene) {
    fill(stage, head("laboratory", scene.title, null), el("iframe", { src: `/lab/${encodeURIComponent(scene.name)}`, title: scene.title, class: "scene", sandbox: "allow-scripts" }),
      el("p", {}, el("a", { href: link("lab") }, "All scenes")));
    return null;
  }
  fill(stage, head("laboratory", "Watch the methods work", "The real solvers, one step at a time, with what is proven at each."),
    scenes.length ? el("ul", { class: "cards" }, scenes.map((one) => el("li", {}, el("a", { class: "card", href: link("lab", one.name) }, el("span", { class: "card-title" }, one.title)))))
      : el("p", { class: "muted" }, "The laboratory is not installed."));
  return null;
}
