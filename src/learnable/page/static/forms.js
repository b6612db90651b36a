// Forms made from what the server says of a command's options.

import { el, fill, labelled, named, select, shortened } from "./dom.js";

const MOST = 80;

/** A form; `plain` fields stand open ("all" of them, or by name), the others behind "More settings". */
export function formOf(fields, { names, models = [], values = {}, button, plain = [], send }) {
  const readers = {};
  const drawn = fields.map((field) => {
    const [node, read] = control(field, names, models, values[field.name]);
    readers[field.name] = read;
    return [field, node];
  });
  const isOpen = ([field]) => plain === "all" || plain.includes(field.name) || field.required;
  const open = drawn.filter(isOpen).map(([, node]) => node);
  const folded = drawn.filter((entry) => !isOpen(entry)).map(([, node]) => node);
  const go = el("button", { type: "submit", class: "button" }, button);
  const said = el("p", { class: "alert", role: "alert", hidden: true });
  return el("form", {
    onsubmit: async (event) => {
      event.preventDefault();
      go.disabled = true;
      said.hidden = true;
      const settings = {};
      for (const [name, read] of Object.entries(readers)) {
        const value = read();
        if (value !== null && value !== "" && !(Array.isArray(value) && !value.length)) settings[name] = value;
      }
      try {
        await send(settings);
      } catch (error) {
        fill(said, error.message);
        said.hidden = false;
        go.disabled = false;
      }
    },
  },
  el("div", { class: "fields" }, open),
  folded.length ? el("details", {}, el("summary", {}, "More settings"), el("div", { class: "fields" }, folded)) : null,
  said, el("p", { class: "go" }, go));
}

function control(field, names, models, value) {
  const start = value ?? field.default;
  if (field.kind === "choice") {
    const node = select([...(field.default === null ? [["", "as it suits"]] : []), ...field.choices.map((c) => [c, field.labels?.[c] ?? c])], start ?? "");
    return [labelled(field.label, node, field.help), () => node.value || null];
  }
  if (field.kind === "whole" || field.kind === "number") {
    const node = el("input", { type: "number", min: field.low, max: field.high, step: field.kind === "whole" ? 1 : "any", value: start ?? "", inputmode: "decimal" });
    return [labelled(field.label, node, field.help), () => (node.value === "" ? null : Number(node.value))];
  }
  if (field.kind === "column") {
    const node = select([["", field.required ? "Choose a column …" : "none"], ...names.map((name) => [name, name])], start ?? "", null, { required: field.required });
    return [labelled(field.label, node, field.help), () => node.value || null];
  }
  if (field.kind === "columns") return several(field, names.map((name) => [name, null]), start ?? []);
  if (field.kind === "models") return several(field, models.map((model) => [model.name, model.family]), start ?? []);
  const node = el("input", { type: "text", value: start ?? "", autocomplete: "off" });
  return [labelled(field.label, node, field.help), () => node.value.trim() || null];
}

// Many names of which some are chosen: boxes to tick, found by typing; long lists show their first matches.
function several(field, entries, start) {
  const chosen = new Set(start);
  const list = el("ul", { class: "boxes" });
  const told = el("p", { class: "help", "aria-live": "polite" });
  const find = el("input", { type: "search", placeholder: "Find …", "aria-label": `Find in ${field.label}` });
  const draw = () => {
    const wanted = find.value.trim().toLowerCase();
    const found = entries.filter(([name, more]) => !wanted || name.toLowerCase().includes(wanted) || more?.includes(wanted));
    const shown = [...found.filter(([name]) => chosen.has(name)), ...found.filter(([name]) => !chosen.has(name))].slice(0, MOST);
    fill(list, shown.map(([name, more]) => el("li", {}, el("label", {},
      el("input", { type: "checkbox", checked: chosen.has(name), onchange: (event) => {
        if (event.target.checked) chosen.add(name);
        else chosen.delete(name);
        say(found.length, shown.length);
      } }), " ", named(shortened(name, 40)), more ? el("span", { class: "muted" }, ` ${more}`) : null))));
    say(found.length, shown.length);
  };
  const say = (found, shown) => fill(told, chosen.size ? `${chosen.size} chosen. ` : `${field.help || "None chosen."} `, found > shown ? `The first ${shown} of ${found} are listed; type to find others.` : "");
  find.addEventListener("input", draw);
  draw();
  const node = el("fieldset", { class: "field wide-field" }, el("legend", {}, field.label), entries.length > 12 ? find : null, list, told);
  return [node, () => [...chosen]];
}
