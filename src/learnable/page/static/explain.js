// Why a row is predicted as it is: shares of the columns, as bars.

import { el, named, number, share } from "./dom.js";
import { shareBars } from "./charts.js";

export function shares(found) {
  const show = found.of === null ? (value) => number(value) : (value) => share(value);
  const what = found.of === null ? "The prediction" : ["The probability of ", named(found.of, 40)];
  return [
    el("p", {}, what, ` is ${show(found.prediction)}; the mean of other rows is ${show(found.base)}. The columns make the difference:`),
    el("table", { class: "effects" },
      el("thead", {}, el("tr", {}, [["Column", 0], ["Value", 0], ["", 0], ["Share", 1]].map(([text, right]) => el("th", { scope: "col", class: right ? "num" : null }, text)))),
      el("tbody", {}, shareBars(found.shares).map((line) => el("tr", {},
        el("th", { scope: "row" }, named(line.name, 40)), el("td", { class: "cell" }, line.cell === null || line.cell === undefined ? el("span", { class: "none" }, "–") : named(line.cell, 24)),
        el("td", { class: "scale" }, line.strip), el("td", { class: "num" }, `${line.value > 0 ? "+" : ""}${show(line.value)}`))))),
    el("p", { class: "muted small" }, "Shapley values: what each column adds when it takes this row's value instead of another row's, averaged over orders of the columns. They add up to the difference."),
  ];
}
