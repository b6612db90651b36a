// Small drawings that change while one looks: intervals on a shared scale, shares of a prediction. Everything larger
// comes drawn from the library.

import { number, shape } from "./dom.js";

const INK = "var(--ln-accent)";
const MUTED = "var(--ln-muted)";
const RULE = "var(--ln-rule)";

/** The scale of a leaderboard: all scores, unless that would make the best intervals too small to see. */
export function domainOf(rows) {
  const ends = [];
  let widest = Infinity;
  for (const row of rows) {
    const more = [row.low, row.mean, row.high].filter((value) => Number.isFinite(value));
    if (!more.length) continue;
    const all = [...ends, ...more];
    if (ends.length && Math.max(...all) - Math.min(...all) > widest) continue;
    ends.push(...more);
    const span = Math.max(...ends) - Math.min(...ends);
    if (widest === Infinity && span > 0) widest = 25 * span;
  }
  if (!ends.length) return [0, 1];
  const low = Math.min(...ends);
  const high = Math.max(...ends);
  const room = high > low ? 0.05 * (high - low) : Math.abs(low) / 2 || 0.5;
  return [low - room, high + room];
}

export const place = (value, [low, high]) => (100 * (value - low)) / (high - low);

/** One value with its interval. */
export function whisker(row, domain, title) {
  const strip = shape("svg", { class: "ln-strip", width: "100%", height: 16, role: "img", overflow: "visible" }, shape("title", {}, title));
  const ink = row.baseline ? MUTED : INK;
  const at = (value) => `${Math.min(100, Math.max(0, place(value, domain))).toFixed(2)}%`;
  if (Number.isFinite(row.low) && Number.isFinite(row.high)) {
    strip.append(shape("line", { x1: at(row.low), x2: at(row.high), y1: "50%", y2: "50%", stroke: ink, "stroke-width": 1.5 }));
  }
  if (Number.isFinite(row.mean)) {
    const where = place(row.mean, domain);
    if (where < 0 || where > 100) {
      strip.append(shape("text", { x: where < 0 ? 0 : "100%", y: "50%", dy: "0.35em", fill: ink, "font-size": 12, "text-anchor": where < 0 ? "start" : "end" }, where < 0 ? "◂" : "▸"));
    } else {
      strip.append(shape("circle", { cx: at(row.mean), cy: "50%", r: 3.5, fill: row.baseline ? "var(--ln-page)" : ink, stroke: ink, "stroke-width": row.baseline ? 1.5 : 0 }));
    }
  }
  return strip;
}

/** Shares of a prediction as bars to the left and right of zero. */
export function shareBars(shares, most = 12) {
  const shown = shares.slice(0, most);
  const rest = shares.slice(most).reduce((sum, s) => sum + s.value, 0);
  const lines = shares.length > most ? [...shown, { name: `${shares.length - most} other columns`, value: rest, error: 0, cell: null }] : shown;
  const widest = Math.max(...lines.map((s) => Math.abs(s.value) + (s.error || 0)), 1e-300);
  return lines.map((s) => {
    const half = (50 * Math.abs(s.value)) / widest;
    const strip = shape("svg", { class: "ln-strip", width: "100%", height: 16, role: "img" }, shape("title", {}, `${s.name}: ${number(s.value)}`),
      shape("line", { x1: "50%", x2: "50%", y1: 0, y2: "100%", stroke: RULE }),
      shape("rect", { x: `${s.value < 0 ? 50 - half : 50}%`, y: 3, width: `${half}%`, height: 10, fill: s.value < 0 ? MUTED : INK, rx: 1 }));
    return { ...s, strip };
  });
}

/** A bar of a share from 0 to 1. */
export function bar(value, title) {
  return shape("svg", { class: "ln-strip", width: "100%", height: 12, role: "img" }, shape("title", {}, title),
    shape("rect", { x: 0, y: 1, width: "100%", height: 10, fill: "var(--ln-soft)" }), shape("rect", { x: 0, y: 1, width: `${100 * Math.max(0, Math.min(1, value))}%`, height: 10, fill: INK }));
}
