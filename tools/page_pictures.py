"""Take a picture of every view of the page, wide and narrow, light and dark, and put them together as sheets.

    python -m tools.page_pictures FOLDER [--seconds 60] [--chromium PATH]

It starts `learnable page`, compares models on the built-in tumours, asks for clusters, sequences, a picture of the
rows, topics and populations, and visits every view. FOLDER/all has each picture by itself, to be looked at;
wide-light.png, wide-dark.png, narrow-light.png and narrow-dark.png in FOLDER show them together. What does not fit into
the width of a view is printed, and the exit code is 1.
"""

from __future__ import annotations

import argparse
import base64
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
from playwright.sync_api import sync_playwright

FLAGS = ["--headless", "--no-sandbox", "--disable-gpu"]
LOOKS = [(1280, 860, "light"), (1280, 860, "dark"), (390, 800, "light"), (390, 800, "dark")]
#: Quick ones, so that every one of them is finished.
MODELS = [
    "LogisticRegression",
    "GaussianNB",
    "LinearDiscriminantAnalysis",
    "KNeighborsClassifier",
    "AdaBoostClassifier",
]
START = """async (asked) => (await (await fetch("/api/runs", { method: "POST",
  headers: { "X-Learnable": "page", "Content-Type": "application/json" }, body: JSON.stringify(asked) })).json()).id"""
#: Elements that reach beyond the right edge, unless something around them scrolls.
BEYOND = """() => {
  const width = document.documentElement.clientWidth;
  const scrolls = (e) => { for (let q = e.parentElement; q; q = q.parentElement)
    if (["auto", "scroll", "hidden"].includes(getComputedStyle(q).overflowX)) return true; return false; };
  const found = [...document.querySelectorAll("body *")].filter((e) => e.getBoundingClientRect().width > 0
    && e.getBoundingClientRect().right > width + 1 && !scrolls(e));
  return found.slice(0, 5).map((e) => `${e.tagName}.${e.className} ${(e.textContent || "").slice(0, 40)}`);
}"""


def prepare(page: Any, seconds: float) -> dict[str, str]:
    """Race and cluster the built-in tumours; return the addresses of the views, by name."""
    patience = 1000 * (seconds + 240)
    page.get_by_role("button", name="tumours").click()
    page.wait_for_selector("text=one of two classes")
    table = page.url.partition("#")[2]
    number = re.split("[/?]", table)[2]
    settings = {"target": "diagnosis", "models": MODELS, "seconds": seconds}
    run = page.evaluate(START, {"kind": "compare", "table": number, "settings": settings})
    page.goto(f"{page.url.partition('#')[0]}#/race/{run}")
    page.wait_for_selector("text=The race is over.", timeout=patience)
    page.wait_for_selector(".board th.who a", timeout=patience)
    other = page.locator(".board th.who a").nth(1).get_attribute("href")
    results = {"clusters": answer(page, number, "cluster", {"model": "kmeans"}, patience)}
    settings = {"model": "isomap", "colour": "diagnosis"}
    results["picture"] = answer(page, number, "embed", settings, patience)
    for name, (kind, file, settings) in OTHERS.items():
        results[name] = answer(page, give(page, file, drawn_table(file)), kind, settings, patience)
    return {
        "tables": "/tables",
        "table": table,
        "race": f"/race/{run}",
        "look": f"/look/{run}?row=3",
        "other": str(other).partition("#")[2],
        "predict": f"/predict/{run}",
        "keep": f"/keep/{run}",
        "ask": f"/ask/{number}?kind=cluster",
        **results,
        "lab": "/lab",
        "scene": "/lab/em",
    }


def answer(page: Any, table: str, kind: str, settings: dict[str, Any], patience: float) -> str:
    """Run another command on a table; return the address of what it found."""
    run = page.evaluate(START, {"kind": kind, "table": table, "settings": settings})
    page.goto(f"{page.url.partition('#')[0]}#/result/{run}")
    page.wait_for_selector(f'iframe[src*="{run}"]', timeout=patience)  # that of the last result may still be there
    return f"/result/{run}"


def give(page: Any, name: str, content: bytes) -> str:
    """Give the page a file; return the id of the table."""
    page.goto(f"{page.url.partition('#')[0]}#/tables")
    page.wait_for_selector("#file", state="attached")
    page.set_input_files("#file", {"name": name, "mimeType": "text/csv", "buffer": content})
    page.wait_for_selector("text=More to ask")
    return re.split("[/?]", page.url.partition("#")[2])[2]


#: What else a table can be asked: the command, the file that is drawn for it, its settings.
OTHERS = {
    "sequences": ("hmm", "waves.csv", {"states": 2}),
    "topics": ("topics", "notes.csv", {"text": "note", "topics": "3", "sweeps": 100}),
    "structure": ("structure", "herd.str", {"populations": "2"}),
}
WORDS = (
    ["rain", "cloud", "storm", "wind", "sun", "snow"],
    ["flour", "oven", "butter", "bread", "sugar", "cake"],
    ["goal", "match", "team", "ball", "coach", "league"],
)


def drawn_table(name: str) -> bytes:
    """Return a table with something to find in it: two states, three topics, or two populations."""
    rng = np.random.default_rng(0)
    if name == "waves.csv":
        state = (np.arange(300) // 50) % 2
        lines = [f"{value:.3f}" for value in rng.normal(3.0 * state, 1.0)]
        return "\n".join(["level", *lines, ""]).encode()
    if name == "notes.csv":
        lines = [" ".join(rng.choice(WORDS[k % 3], 14)) for k in range(150)]
        return "\n".join(["note", *lines, ""]).encode()
    shares = rng.uniform(0.1, 0.9, (2, 40))
    rows = []
    for k in range(60):
        copies = 1 + (rng.random((2, 40)) < shares[k % 2])
        rows += [" ".join([f"animal{k}", str(k % 2 + 1), *map(str, copy)]) for copy in copies]
    return "\n".join([*rows, ""]).encode()


def settle(page: Any, name: str) -> None:
    """Wait until a view shows what it has."""
    page.wait_for_selector("h1")
    if name == "look":
        page.wait_for_selector("text=Shapley values", timeout=120_000)
        page.wait_for_selector("text=Take the cheapest, ", timeout=120_000)
    if name == "other":
        page.wait_for_selector("text=was fitted again to the", timeout=300_000)
    if name == "predict":
        page.get_by_role("button", name="Predict", exact=True).click()
        page.wait_for_selector(".big", timeout=120_000)
        page.get_by_role("button", name="Why?").click()
        page.wait_for_selector("text=Shapley values", timeout=120_000)
    page.wait_for_timeout(1200)


def sheet(browser: Any, pictures: list[Path], columns: int, width: int, scheme: str) -> bytes:
    """Return several pictures as one."""
    ground = "#2b2f33" if scheme == "dark" else "#d7dbdd"
    images = "".join(
        f'<img src="data:image/png;base64,{base64.b64encode(one.read_bytes()).decode()}">' for one in pictures
    )
    grid = f"display:grid;grid-template-columns:repeat({columns},{width}px);gap:12px;padding:12px"
    style = f"body{{margin:0;background:{ground};{grid}}}img{{width:{width}px}}"
    context = browser.new_context(viewport={"width": columns * (width + 12) + 12, "height": 400})
    page = context.new_page()
    page.set_content(f"<style>{style}</style>{images}")
    found: bytes = page.screenshot(full_page=True)
    context.close()
    return found


def main() -> int:
    """Take all pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--chromium", default="/usr/bin/chromium")
    options = parser.parse_args()
    every = options.folder / "all"
    every.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "learnable", "page", "--no-browser"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ | {"PYTHONUNBUFFERED": "1"})
    wrong = 0
    try:
        link = re.search(r"http://\S+", server.stdout.readline())[0]  # type: ignore[index,union-attr]
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=options.chromium, args=FLAGS)
            context = browser.new_context(viewport={"width": 1280, "height": 900})
            page = context.new_page()
            page.set_default_timeout(120_000)
            page.goto(link)
            page.wait_for_selector("h1")
            views = prepare(page, options.seconds)
            key = context.storage_state()
            for width, height, scheme in LOOKS:
                size = {"width": width, "height": height}
                context = browser.new_context(viewport=size, color_scheme=scheme, storage_state=key)
                page = context.new_page()
                page.set_default_timeout(120_000)
                taken = []
                for name, view in views.items():
                    page.goto("about:blank")
                    page.goto(f"{link.partition('/start')[0]}/#{view}")
                    settle(page, name)
                    beyond = page.evaluate(BEYOND)
                    wrong += len(beyond)
                    print(f"{name} {width} {scheme}: {beyond or 'fits'}", flush=True)
                    page.screenshot(path=every / f"{name}-{width}-{scheme}-whole.png", full_page=True)
                    if name in ("look", "predict"):
                        page.get_by_text("Shapley values").first.scroll_into_view_if_needed()
                    file = every / f"{name}-{width}-{scheme}.png"
                    page.screenshot(path=file)
                    taken.append(file)
                context.close()
                kind = "wide" if width > 1000 else "narrow"
                columns, shown = (2, 620) if kind == "wide" else (5, 250)
                drawn = sheet(browser, taken, columns, shown, scheme)
                (options.folder / f"{kind}-{scheme}.png").write_bytes(drawn)
            browser.close()
    finally:
        server.terminate()
        server.wait(20)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
