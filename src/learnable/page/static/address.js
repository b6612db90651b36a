// What is on the screen stands in the address: #/view/id?name=value. A reload, the back button and a link bring it back.

export function read() {
  const text = location.hash.replace(/^#\/?/, "");
  const [path, query = ""] = text.split("?", 2);
  const [view = "", id = null] = path.split("/");
  return { view: view || "tables", id: id || null, values: Object.fromEntries(new URLSearchParams(query)) };
}

export function link(view, id = null, values = {}) {
  const known = Object.entries(values).filter(([, value]) => value !== null && value !== undefined && value !== "");
  const query = new URLSearchParams(known).toString();
  return `#/${view}${id ? `/${id}` : ""}${query ? `?${query}` : ""}`;
}

export function go(view, id = null, values = {}) {
  location.hash = link(view, id, values);
}

/** Note a value of the view in the address without drawing the view again; `push` lets the back button undo it. */
export function note(values, push = false) {
  const now = read();
  const next = link(now.view, now.id, { ...now.values, ...values });
  if (next === location.hash) return;
  history[push ? "pushState" : "replaceState"](null, "", next);
}
