// Race: the leaderboard fills as models are finished; stop keeps what is done; a failure is a line with its reason.

import { follow, get, post } from "./api.js";
import { go, link } from "./address.js";
import { announce, count, decimalsFor, el, fill, head, named, score, seconds, section } from "./dom.js";
import { domainOf, place as placeOn, whisker } from "./charts.js";

const MARKS = { best: "best", equal: "equal", undecided: "undecided" };

export async function show(stage, place, app) {
  if (!place.id) {
    const last = [...app.state.runs].reverse().find((run) => run.kind === "compare");
    if (!last) {
      fill(stage, head("race", "No race yet", "Choose a table and a column to predict first."), el("p", {}, el("a", { class: "button", href: link("tables") }, "To the tables")));
      return null;
    }
    go("race", last.id);
    return null;
  }
  const run = await get(`/api/runs/${place.id}`);
  if (run.kind !== "compare") {
    go("result", run.id);
    return null;
  }
  const race = new Race(run, app);
  fill(stage, race.draw());
  race.listen();
  return () => race.leave();
}

class Race {
  constructor(run, app) {
    this.run = run;
    this.app = app;
    this.rows = new Map();
    this.running = new Map();
    this.waiting = [];
    this.ranked = null;
    this.metric = null;
    this.began = performance.now();
    this.drawing = false;
    this.status = el("p", { class: "stage", role: "status" });
    this.bar = el("progress", { max: 100, value: 0, "aria-label": "Time used" });
    this.stop = el("button", { type: "button", class: "button stop", onclick: () => this.halt() }, "Stop and keep what is done");
    this.control = el("div", { class: "race-control" }, this.status, this.bar, this.stop);
    this.board = el("div", { "aria-live": "off" });
    this.facts = el("div", {});
    this.end = el("div", {});
    this.legend = el("span", {}, "Lines are intervals over the folds. The order is provisional until all are ranked.");
  }

  draw() {
    const { run } = this;
    const limit = run.seconds ? `, ${seconds(run.seconds)} at most` : "";
    return [
      head(`race · ${run.name}`, ["Predicting ", named(run.settings.target, 60)], `${run.created.replace("T", " ").replace("Z", " UTC")}${limit}`),
      this.control, this.end, section("Leaderboard", this.legend, this.board), this.facts,
    ];
  }

  listen() {
    this.paint();
    this.unfollow = follow(this.run.id, (event) => this.hear(event), (run) => this.over(run));
    this.timer = setInterval(() => this.tick(), 500);
  }

  leave() {
    this.unfollow?.();
    clearInterval(this.timer);
  }

  async halt() {
    this.stop.disabled = true;
    this.stop.textContent = "Stopping …";
    setTimeout(() => {
      this.stop.disabled = false;
      this.stop.textContent = "End it now";
    }, 3000);
    announce("Stopping. The best model so far is judged and kept.");
    await post(`/api/runs/${this.run.id}/stop`);
  }

  hear(event) {
    const said = event.text;
    if (event.kind === "stage") fill(this.status, named(said, 160), " …");
    if (event.kind === "data") this.tellData(event);
    if (event.kind === "plan") {
      this.waiting = event.models;
      this.metric = event.protocol.metric;
      this.protocol = event.protocol;
    }
    if (event.kind === "start") {
      this.running.set(event.name, { scores: [], of: this.protocol?.folds });
      fill(this.status, "Fitting ", named(event.name, 100), " …");
    }
    if (event.kind === "fold") {
      const seen = this.running.get(event.name) ?? { scores: [], of: this.protocol?.folds };
      seen.scores.push(event.score);
      this.running.set(event.name, seen);
    }
    if (event.kind === "finish") {
      this.running.delete(event.row.name);
      this.rows.set(event.row.name, event.row);
    }
    if (event.kind === "ranked") {
      this.ranked = event.leaderboard;
      fill(this.legend, "Lines are intervals over the folds. Equal: within a small margin of the first. Undecided: the folds cannot tell. Lines without a mark are worse.");
      fill(this.status, "Ranked; looking at the best on the rows set aside …");
    }
    this.paint();
  }

  // Many events may come at once, after a reload for example: one drawing does for all.
  paint() {
    if (this.drawing) return;
    this.drawing = true;
    requestAnimationFrame(() => {
      this.drawing = false;
      fill(this.board, this.table());
    });
  }

  tick() {
    const spent = (Date.now() - Date.parse(this.run.created)) / 1000;
    if (this.run.seconds) this.bar.value = Math.min(100, (100 * spent) / this.run.seconds);
  }

  table() {
    const greater = this.metric?.greater_is_better !== false;
    let done = this.ranked ?? [...this.rows.values()];
    const failures = done.filter((row) => row.status !== "ok");
    done = done.filter((row) => row.status === "ok");
    if (!this.ranked) done.sort((a, b) => (greater ? b.mean - a.mean : a.mean - b.mean));
    const domain = domainOf(done);
    const first = done.find((row) => !row.baseline && row.low !== null) ?? done[0];
    this.decimals = first ? decimalsFor((first.high - first.low) / 2) : 4;
    const best = done[0];
    const lines = done.map((row, k) => this.line(row, k, domain, best));
    const running = [...this.running].map(([name, seen]) => this.progress(name, seen));
    const known = new Set([...this.rows.keys(), ...this.running.keys()]);
    const waiting = this.ranked ? [] : this.waiting.filter((name) => !known.has(name));
    if (!lines.length && !running.length && !failures.length) return el("p", { class: "muted" }, "The first models are on their way.");
    const label = this.metric?.label ?? "score";
    return [
      lines.length || running.length ? el("table", { class: "board" },
        el("thead", {}, el("tr", {}, ["", "Model", "", label, "Train", "Fit"].map((text, k) => el("th", { scope: "col", class: k > 2 ? "num" : null }, text)))),
        el("tbody", {}, lines, running)) : null,
      waiting.length && !this.finished ? el("p", { class: "muted waiting" }, `${count(waiting.length)} waiting: `, waiting.slice(0, 6).map((name, k) => [k ? ", " : "", named(name, 40)]), waiting.length > 6 ? " …" : null) : null,
      failures.length ? el("details", { class: "failures", open: failures.length < 6 }, el("summary", {}, `${count(failures.length)} without a score`),
        el("ul", { class: "plain small" }, failures.map((row) => el("li", {}, named(row.name, 80), ": ", el("span", { class: "muted" }, row.status === "timeout" ? "out of time" : row.status, row.reason ? ` – ${row.reason}` : ""))))) : null,
    ];
  }

  line(row, k, domain, best) {
    const { decimals } = this;
    const scale = el("td", { class: "scale" }, whisker(row, domain, `${row.name}: ${score(row.mean, decimals)}`));
    const low = best?.low ?? 0;
    const high = best?.high ?? 0;
    scale.style.setProperty("--from", `${Math.min(100, Math.max(0, placeOn(low, domain)))}%`);
    scale.style.setProperty("--to", `${Math.min(100, Math.max(0, placeOn(high, domain)))}%`);
    const marks = [];
    if (k === 0) marks.push(this.ranked ? "best" : "first so far");
    else if (MARKS[row.verdict]) marks.push(MARKS[row.verdict]);
    if (row.baseline) marks.push("baseline");
    if (row.cut) marks.push("cut");
    if (row.name === this.winner && k > 0) marks.push("kept");
    return el("tr", { class: k === 0 ? "won" : null },
      el("td", { class: "rank" }, row.rank ?? k + 1),
      el("th", { scope: "row", class: "who" }, this.called(row), " ", marks.map((mark) => el("span", { class: `mark ${mark.split(" ")[0] === "best" ? "best" : ""}` }, mark))),
      scale,
      el("td", { class: "num score" }, score(row.mean, decimals), row.low !== null ? el("span", { class: "sub" }, `${score(row.low, decimals)} to ${score(row.high, decimals)}`) : null),
      el("td", { class: "num extra", "data-label": "train" }, score(row.train_mean, decimals)),
      el("td", { class: "num extra", "data-label": "fit" }, seconds(row.fit_seconds)));
  }

  // A model that was finished can be looked into, the kept one and the others; baselines have nothing to tell.
  called(row) {
    const name = named(row.short ?? row.name, 90);
    if (!this.winner || row.baseline) return name;
    return el("a", { href: link("look", this.run.id, row.name === this.winner ? {} : { model: row.name }) }, name);
  }

  progress(name, seen) {
    const mean = seen.scores.length ? seen.scores.reduce((a, b) => a + b, 0) / seen.scores.length : null;
    return el("tr", { class: "at-work" },
      el("td", { class: "rank" }, ""), el("th", { scope: "row", class: "who" }, named(name, 90), " ", el("span", { class: "mark" }, "running")),
      el("td", { class: "scale" }, el("progress", { max: seen.of ?? 5, value: seen.scores.length, "aria-label": `Folds of ${name}` })),
      el("td", { class: "num score" }, score(mean, this.decimals)), el("td", { class: "num extra" }, ""), el("td", { class: "num extra" }, `${seen.scores.length} of ${seen.of ?? "?"} folds`));
  }

  tellData(event) {
    const warnings = event.data.warnings.filter((w) => !["constant", "identifier"].includes(w.kind));
    const notes = [...event.notes, ...warnings.map((w) => w.text)];
    if (notes.length) fill(this.facts, section("The table", "What the race was told about it.", el("ul", { class: "plain small" }, notes.slice(0, 20).map((text) => el("li", {}, text)))));
  }

  async over(run) {
    this.run = run;
    this.finished = true;
    clearInterval(this.timer);
    this.running.clear();
    this.control.hidden = true;
    const words = { done: "The race is over.", stopped: "Stopped: what was finished is kept.", failed: run.reason ?? "It failed." };
    const next = run.files["record.json"]
      ? el("p", { class: "go" }, el("a", { class: "button", href: link("look", run.id) }, "Look into the best model"), " ",
        run.files["model.safetensors"] ? el("a", { class: "button second", href: link("predict", run.id) }, "Predict") : null, " ",
        el("a", { class: "button second", href: link("keep", run.id) }, "Keep"))
      : el("p", { class: "go" }, el("a", { class: "button", href: link("tables", run.table, { target: run.settings.target }) }, "Back to the table"));
    const found = el("p", { class: "muted" });
    fill(this.end, el("p", { class: run.status === "failed" ? "alert" : "verdict-line" }, words[run.status]), found, next);
    if (run.files["record.json"]) post(`/api/runs/${run.id}/ask/summary`).then((summary) => {
      fill(found, summary.verdict[0] ?? "");
      this.winner = summary.winner;
      this.paint();
    }, () => {});
    announce(words[run.status]);
    this.paint();
    await this.app.refresh();
    this.app.steps();
  }
}
