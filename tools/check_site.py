"""Open every page of the built documentation in a browser, from the disk, and report what a reader would stumble over.

    python -m tools.check_site site                  # all pages, at 390 px; needs playwright and a Chromium
    python -m tools.check_site site --shots FOLDER index start/start_here

Reported: pages wider than a phone, errors in the console, links and anchors that lead nowhere, anything that is fetched
from the network, and a search that finds nothing.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
OPTIONS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
#: Attributes by which a page fetches something when it is shown; links that a reader clicks are another matter.
FETCHED = re.compile(
    r"""<(?:script|link|img|iframe|source|audio|video)\b[^>]*?(?:src|href)=["']((?:https?:)?//[^"']+)"""
)
PHONE = 390


def check_links(site: Path) -> list[str]:
    """Return the links and anchors that lead nowhere, and what is fetched from elsewhere."""
    texts = {path: path.read_text(encoding="utf-8") for path in sorted(site.rglob("*.html")) if path.name != "404.html"}
    anchors = {path: set(re.findall(r'\b(?:id|name)="([^"]+)"', text)) for path, text in texts.items()}
    found = []
    for path, text in texts.items():
        name = path.relative_to(site)
        found += [f"{name}: fetches {address}" for address in FETCHED.findall(text) if "canonical" not in address]
        for target in set(re.findall(r'<a\b[^>]*?href="([^"]+)"', text)):
            if re.match(r"[a-z]+:|//", target):
                continue
            file, _, anchor = target.partition("#")
            goal = path if not file else (path.parent / file).resolve()
            if goal.is_dir():
                goal = goal / "index.html"
            if not goal.exists():
                found.append(f"{name}: {target} leads nowhere")
            elif anchor and goal in anchors and anchor not in anchors[goal] and not anchor.startswith("__"):
                found.append(f"{name}: {target} has no such place")
    return found


def check_pages(browser: Any, site: Path) -> list[str]:
    """Open every page on a phone's width; return what is too wide, fails or asks the network."""
    context = browser.new_context(viewport={"width": PHONE, "height": 844})
    page = context.new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: said.append(request.url) if request.url.startswith("http") else None)
    found = []
    for path in sorted(site.rglob("*.html")):
        if path.name == "404.html":  # its addresses are those of a server
            continue
        said.clear()
        page.goto(path.resolve().as_uri())
        wide = page.evaluate("document.documentElement.scrollWidth")
        name = path.relative_to(site)
        if wide > PHONE:
            found.append(f"{name}: {wide} px wide on a phone of {PHONE}")
        found += [f"{name}: {text}" for text in said]
    context.close()
    return found


def check_search(browser: Any, site: Path, word: str, expected: str) -> list[str]:
    """Type a word into the search box of the first page; it must find a page, from the disk."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.goto((site / "index.html").resolve().as_uri())
    page.click(".md-search__input")
    page.locator(".md-search__input").press_sequentially(word)
    try:
        page.wait_for_selector(f'.md-search-result__link[href*="{expected}"]', timeout=60_000)
        return []
    except Exception:
        return [f"search: {word!r} does not find {expected}"]
    finally:
        context.close()


def take_shots(browser: Any, site: Path, folder: Path, names: list[str]) -> None:
    """Take pictures of pages at two widths, light and dark."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        for width in (1280, PHONE):
            for scheme in ("light", "dark"):
                context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
                page = context.new_page()
                page.goto((site / f"{name}.html").resolve().as_uri())
                page.screenshot(path=str(folder / f"{name.replace('/', '_')}_{width}_{scheme}.png"), full_page=True)
                context.close()


def main(arguments: list[str]) -> int:
    """Check a site, or take pictures of it."""
    from playwright.sync_api import sync_playwright

    site = Path(arguments[0])
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=OPTIONS)
        if "--shots" in arguments:
            folder, *names = arguments[arguments.index("--shots") + 1 :]
            take_shots(browser, site, Path(folder), names)
            return 0
        found = check_links(site) + check_pages(browser, site)
        found += check_search(browser, site, "elastic net", "ElasticNet")
        browser.close()
    print("\n".join(found) or f"{len(list(site.rglob('*.html')))} pages, nothing to report")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
