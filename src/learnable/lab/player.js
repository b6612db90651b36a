// The player of a scene: shows one of its steps at a time. Every step is in the page already, so that this script only
// hides and shows. `play(article)` brings one scene to life; scenes that are in the page when it loads need no call.
//
// Points that can be dragged carry `data-drag` and `data-row` in the picture, and each step says which row was moved in it
// (`data-moved`) and where to (`data-x`, `data-y`, in coordinates of the picture): dragging a point shows the step in which
// it stands nearest. In an article with `data-live` every point
// with `data-row` can be dragged, and letting go sends the event `lab:drag` with {scene, row, x, y} in units of the data,
// and the same as a message to the page around a frame: whoever listens can fit the model again.

const PAUSE = 900; // milliseconds from one step to the next

export function play(article) {
  const steps = [...article.querySelectorAll(".lab-step")];
  const controls = article.querySelector(".lab-controls");
  if (!steps.length || !controls || article.dataset.playing !== undefined) return;
  article.dataset.playing = "";
  const slider = controls.querySelector("input");
  const count = controls.querySelector(".lab-count");
  const said = controls.querySelector(".lab-said");
  const button = (name) => controls.querySelector(`[data-go="${name}"]`);
  let now = 0;
  let timer = 0;

  function show(wanted, { announce = true } = {}) {
    now = Math.min(Math.max(wanted, 0), steps.length - 1);
    steps.forEach((step, number) => { step.hidden = number !== now; });
    slider.value = now + 1;
    slider.setAttribute("aria-valuetext", steps[now].getAttribute("aria-label"));
    count.textContent = `${now + 1} of ${steps.length}`;
    for (const name of ["first", "back"]) button(name).disabled = now === 0;
    button("on").disabled = now === steps.length - 1;
    if (announce) said.textContent = steps[now].getAttribute("aria-label");
    remember();
    article.dispatchEvent(new CustomEvent("lab:step", { bubbles: true, detail: { step: now } }));
  }

  function remember() {
    if (document.querySelectorAll(".lab").length > 1) return;
    try {
      history.replaceState(history.state, "", `#${now + 1}`);
    } catch {
      // a frame without an address of its own
    }
  }

  function face(word) {
    button("play").setAttribute("aria-label", word);
    const [still, moving] = button("play").children;
    still.toggleAttribute("hidden", word === "Pause");
    moving.toggleAttribute("hidden", word === "Play");
  }

  function stop() {
    clearInterval(timer);
    timer = 0;
    face("Play");
  }

  function start() {
    if (now === steps.length - 1) show(0);
    face("Pause");
    timer = setInterval(() => {
      show(now + 1, { announce: false }); // too fast to be read aloud
      if (now === steps.length - 1) stop();
    }, PAUSE);
  }

  const go = {
    first: () => show(0),
    back: () => show(now - 1),
    on: () => show(now + 1),
    last: () => show(steps.length - 1),
    play: () => (timer ? stop() : start()),
  };
  controls.addEventListener("click", (event) => {
    const name = event.target.closest("[data-go]")?.dataset.go;
    if (!name) return;
    if (name !== "play") stop();
    go[name]();
  });
  slider.addEventListener("input", () => { stop(); show(Number(slider.value) - 1); });
  const keys = { ArrowLeft: "back", ArrowRight: "on", Home: "first", End: "last", " ": "play" };
  article.ownerDocument.addEventListener("keydown", (event) => {
    const name = keys[event.key];
    const busy = event.target.closest?.("input, button, summary, a, select, textarea, pre, .lab-formula");
    if (!name || busy || !article.isConnected || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    if (name !== "play") stop();
    go[name]();
  });
  drag(article, steps, (wanted) => { stop(); show(wanted); });
  controls.hidden = false;
  const asked = /^#(\d+)$/.exec(location.hash);
  show(asked ? Number(asked[1]) - 1 : 0, { announce: false });
}

function drag(article, steps, show) {
  const live = article.dataset.live !== undefined;
  const wanted = live ? "[data-row]" : "[data-drag]";
  let held = null;
  article.addEventListener("pointerdown", (event) => {
    const point = event.target.closest(wanted);
    if (!point) return;
    const figure = point.ownerSVGElement;
    held = { row: Number(point.dataset.row), point, figure, from: inFigure(figure, event), place: null };
    article.classList.add("dragging");
    article.setPointerCapture(event.pointerId);
    event.preventDefault();
  });
  article.addEventListener("pointermove", (event) => {
    if (!held) return;
    held.place = inFigure(held.figure, event);
    if (live) {
      held.point.setAttribute("transform", `translate(${held.place[0] - held.from[0]} ${held.place[1] - held.from[1]})`);
      return;
    }
    const nearest = nearestStep(steps, held.row, held.place);
    if (steps[nearest].hidden) show(nearest);
    held.figure = steps[nearest].querySelector("svg");
  });
  const drop = () => {
    if (live && held?.place) {
      const [x, y] = inData(held.figure, held.place);
      const detail = { scene: article.dataset.scene, row: held.row, x, y };
      article.dispatchEvent(new CustomEvent("lab:drag", { bubbles: true, detail }));
      if (window.parent !== window) window.parent.postMessage({ type: "lab:drag", ...detail }, "*");
    }
    held = null;
    article.classList.remove("dragging");
  };
  article.addEventListener("pointerup", drop);
  article.addEventListener("pointercancel", () => { held = null; article.classList.remove("dragging"); });
}

function inFigure(figure, event) {
  const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(figure.getScreenCTM().inverse());
  return [at.x, at.y];
}

function inData(figure, [x, y]) {
  const [xLow, xHigh, left, right, yLow, yHigh, bottom, top] = figure.querySelector("[data-axes]").dataset.axes.split(" ").map(Number);
  return [xLow + (x - left) / (right - left) * (xHigh - xLow), yLow + (y - bottom) / (top - bottom) * (yHigh - yLow)];
}

function nearestStep(steps, row, [x, y]) {
  const far = steps.map((step) => (
    Number(step.dataset.moved) === row ? Math.hypot(Number(step.dataset.x) - x, Number(step.dataset.y) - y) : Infinity));
  return far.indexOf(Math.min(...far));
}

for (const article of document.querySelectorAll(".lab")) play(article);
