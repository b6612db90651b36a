// The other commands: a form, the lines as they come, and the report they write.

import { follow, get, post } from "./api.js";
import { go, link } from "./address.js";
import { announce, copyable, el, fill, head, named, section } from "./dom.js";
import { formOf } from "./forms.js";
import { fileList } from "./keep.js";
import { reportFrame } from "./frame.js";

export const show = (stage, place, app) => (place.view === "ask" ? ask(stage, place, app) : result(stage, place, app));

async function ask(stage, place, app) {
  const table = await get(`/api/tables/${place.id}`);
  const kind = place.values.kind;
  const form = app.state.forms[kind];
  if (!form) {
    go("tables", table.id);
    return null;
  }
  app.table = table.id;
  fill(stage, head(`table · ${table.name}`, form.title, form.about),
    section("Settings", "What is left empty is chosen by the data.", formOf(form.fields, {
      names: table.names, values: {}, button: "Start", plain: "all",
      send: async (settings) => {
        const run = await post("/api/runs", { kind, table: table.id, settings });
        await app.refresh();
        go("result", run.id);
      },
    })),
    el("p", {}, el("a", { href: link("tables", table.id) }, "Back to the table")));
  return null;
}

async function result(stage, place, app) {
  const run = await get(`/api/runs/${place.id}`);
  const log = el("pre", { class: "log", tabindex: "0", role: "log", "aria-label": "What the command says" });
  const code = el("code", {});
  log.append(code);
  const stop = el("button", { type: "button", class: "button stop", onclick: async () => { stop.disabled = true; await post(`/api/runs/${run.id}/stop`); } }, "Stop");
  const control = el("div", { class: "race-control" }, el("p", { class: "stage", role: "status" }, "Working …"), stop);
  const end = el("div", {});
  const lines = el("details", { open: true }, el("summary", {}, "What the command says"), log);
  fill(stage, head(`${run.kind} · ${run.name}`, run.title, run.created.replace("T", " ").replace("Z", " UTC")), control, lines, end);
  const unfollow = follow(run.id, (event) => {
    if (event.kind === "line") code.append(`${event.text}\n`);
  }, (over) => {
    control.hidden = true;
    lines.open = over.status !== "done";
    const words = { done: "Done.", stopped: "Stopped.", failed: over.reason ?? "It failed." };
    announce(words[over.status]);
    fill(end,
      over.status === "done" ? null : el("p", { class: "alert" }, words[over.status]),
      over.files["report.html"] !== undefined ? reportFrame(`/runs/${over.id}/report`, over.title) : null,
      section("Keep", null, Object.keys(over.files).length ? fileList(over) : null, copyable("On the command line", over.command), copyable("In Python", over.python)),
      el("p", {}, el("a", { href: link("tables", over.table) }, "Back to the table")));
    app.refresh().then(() => app.steps());
  });
  return unfollow;
}
