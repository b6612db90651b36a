// Elements, figures and numbers. Text from tables becomes text nodes, here and everywhere: nothing is ever markup
// but the library's own figures, and those lose whatever could act.

const SVG = "http://www.w3.org/2000/svg";
const policy = window.trustedTypes?.createPolicy("learnable-figure", { createHTML: (text) => text });
const ALLOWED = new Set([
  "svg", "g", "path", "line", "circle", "rect", "text", "tspan", "title", "desc", "polyline", "polygon", "ellipse",
  "defs", "clippath", "lineargradient", "stop", "animate",
]);

/** Make an element: attributes as an object (on… are listeners, data as an object), children as nodes or text. */
export function el(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (key === "class") node.className = value;
    else if (key === "value" || key === "checked" || key === "selected") node[key] = value;
    else node.setAttribute(key, value === true ? "" : value);
  }
  add(node, children);
  return node;
}

export function add(node, children) {
  for (const child of [children].flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    node.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return node;
}

export function fill(node, ...children) {
  node.replaceChildren();
  return add(node, children);
}

/** Return a figure of the library as a node; elements and attributes that could act are left out. */
export function figure(text) {
  if (!text) return null;
  const markup = policy ? policy.createHTML(text) : text;
  const parsed = new DOMParser().parseFromString(markup, "image/svg+xml").documentElement;
  return parsed.localName === "svg" ? copied(parsed) : null;
}

function copied(source) {
  const node = document.createElementNS(SVG, source.localName);
  for (const { name, value } of source.attributes) {
    const lower = name.toLowerCase();
    if (lower.startsWith("on") || lower.includes("href") || lower === "style" || lower.startsWith("xmlns")) continue;
    node.setAttribute(name, value);
  }
  for (const child of source.childNodes) {
    if (child.nodeType === Node.TEXT_NODE) node.append(child.data);
    else if (child.nodeType === Node.ELEMENT_NODE && ALLOWED.has(child.localName.toLowerCase())) node.append(copied(child));
  }
  return node;
}

export function shape(name, attributes, ...children) {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) if (value !== null) node.setAttribute(key, value);
  add(node, children);
  return node;
}

/** A name from the table, kept apart from the writing direction around it. */
export const named = (text, most = 80) => el("bdi", { title: String(text).length > most ? text : null }, shortened(text, most));

export function shortened(text, most) {
  const shown = [...String(text)];
  return shown.length <= most ? shown.join("") : shown.slice(0, most - 1).join("") + "…";
}

const whole = new Intl.NumberFormat("en-GB");

export function count(value) {
  return value === null || value === undefined ? "–" : whole.format(value);
}

/** A number with about four digits. */
export function number(value, digits = 4) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (value < 0) return `−${number(size, digits)}`;
  if (size >= 1e15 || size < 1e-4) return value.toExponential(digits - 1).replace("e+", "e");
  if (size >= 10 ** (digits - 1)) return size < 10000 ? String(Math.round(value)) : whole.format(Math.round(value));
  return String(Number(value.toPrecision(digits)));
}

/** How many decimals scores deserve whose interval is so wide. */
export function decimalsFor(half) {
  return half ? Math.min(6, Math.max(0, 1 - Math.floor(Math.log10(half)))) : 4;
}

export function score(value, decimals = 4) {
  if (value === null || value === undefined) return "–";
  return Math.abs(value) >= 10000 ? number(value, 5) : value.toFixed(decimals).replace("-", "−");
}

export function share(value, decimals = 1) {
  return value === null || value === undefined ? "–" : `${(100 * value).toFixed(decimals).replace("-", "−")} %`;
}

export function seconds(value) {
  if (value === null || value === undefined) return "–";
  if (value < 0.1) return `${Number((1000 * value).toPrecision(2))} ms`;
  return value < 100 ? `${Number(value.toPrecision(3))} s` : `${Number((value / 60).toPrecision(3))} min`;
}

export function bytes(value) {
  if (value === null || value === undefined) return "";
  if (value < 1024) return `${value} bytes`;
  const units = ["KB", "MB", "GB"];
  let size = value / 1024;
  let unit = 0;
  while (size >= 1024 && unit < 2) {
    size /= 1024;
    unit += 1;
  }
  return `${Number(size.toPrecision(3))} ${units[unit]}`;
}

/** Say something to who cannot see the change. */
export function announce(text) {
  document.getElementById("status").textContent = text;
}

let hiding = null;

/** Show what went wrong, in one line. */
export function trouble(text) {
  const box = document.getElementById("trouble");
  fill(box, el("p", {}, text), el("button", { type: "button", onclick: () => (box.hidden = true) }, "Close"));
  box.hidden = false;
  clearTimeout(hiding);
  hiding = setTimeout(() => (box.hidden = true), 12000);
}

/** A section of the page: its heading in the rail, its content beside it. */
export function section(title, about, ...body) {
  const id = `s-${title.toLowerCase().replace(/[^a-z]+/g, "-")}`;
  return el(
    "section", { "aria-labelledby": id },
    el("div", { class: "rail" }, el("h2", { id }, title), about ? el("p", {}, about) : null),
    el("div", { class: "body" }, body),
  );
}

export function head(eyebrow, title, meta, ...rest) {
  return el(
    "header", { class: "head" },
    el("p", { class: "eyebrow" }, eyebrow), el("h1", { tabindex: "-1" }, title), meta ? el("p", { class: "meta" }, meta) : null, rest,
  );
}

let fields = 0;

/** A labelled control; `help` is read with it. */
export function labelled(label, control, help) {
  fields += 1;
  const id = `f-${fields}`;
  control.id = id;
  if (help) control.setAttribute("aria-describedby", `${id}-help`);
  return el(
    "div", { class: "field" },
    el("label", { for: id }, label), control, help ? el("p", { class: "help", id: `${id}-help` }, help) : null,
  );
}

export function select(options, value, onchange, attributes = {}) {
  return el(
    "select", { onchange: (event) => onchange?.(event.target.value), ...attributes },
    options.map((option) => {
      const [key, text] = Array.isArray(option) ? option : [option, option];
      return el("option", { value: key, selected: key === value }, shortened(text, 60));
    }),
  );
}

/** A table of plain cells; heads are [text, whether numbers]. */
export function grid(heads, rows, { caption = null, strong = () => false, className = "grid-table" } = {}) {
  return el(
    "div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption ?? "Table" },
    el(
      "table", { class: className },
      caption ? el("caption", { class: "unseen" }, caption) : null,
      el("thead", {}, el("tr", {}, heads.map(([text, right]) => el("th", { scope: "col", class: right ? "num" : null }, text)))),
      el("tbody", {}, rows.map((row, k) =>
        el("tr", { class: strong(k) ? "stands-out" : null }, row.map((cell, j) =>
          el("td", { class: heads[j]?.[1] ? "num" : null }, cell))))),
    ),
  );
}

export function pager(start, size, total, go) {
  const button = (text, label, to, off) =>
    el("button", { type: "button", class: "quiet", "aria-label": label, disabled: off, onclick: () => go(to) }, text);
  return el(
    "p", { class: "pager" },
    button("‹", "Earlier rows", Math.max(0, start - size), start <= 0),
    el("span", {}, total ? `${count(start + 1)} – ${count(Math.min(start + size, total))} of ${count(total)}` : "none"),
    button("›", "Later rows", start + size, start + size >= total),
  );
}

/** Links to the sections of a view: buttons, because the address holds the view. */
export function contents(sections) {
  const shown = sections.flat(Infinity).filter((node) => node?.localName === "section");
  return el("nav", { class: "contents", "aria-label": "On this page" }, el("ul", {}, shown.map((node) => {
    const title = node.querySelector("h2");
    return el("li", {}, el("button", { type: "button", class: "as-link", onclick: () => {
      node.scrollIntoView();
      title.tabIndex = -1;
      title.focus({ preventScroll: true });
    } }, title.textContent));
  })));
}

/** Text to copy, with a button that does. */
export function copyable(label, text) {
  const button = el("button", {
    type: "button", class: "quiet", "aria-label": `Copy: ${label}`,
    onclick: async () => {
      try {
        await navigator.clipboard.writeText(text);
        button.textContent = "Copied";
      } catch {
        getSelection().selectAllChildren(code);
        button.textContent = "Press Ctrl-C";
      }
      announce(`${label}: ${button.textContent}`);
      setTimeout(() => (button.textContent = "Copy"), 2000);
    },
  }, "Copy");
  const code = el("code", {}, text);
  return el("div", { class: "copyable" }, el("div", { class: "copy-head" }, el("h3", {}, label), button), el("pre", {}, code));
}
