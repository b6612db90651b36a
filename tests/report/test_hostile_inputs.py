"""The page in a browser: nothing that a table, a file name or a model brings along runs, and nothing overflows."""

import re
import shutil
import subprocess
from html import escape, unescape
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from tests.report import records

from learnable.linear import LogisticRegression
from learnable.report import card, render, report

ATTACKS = (
    "<script>document.title='pwned'</script>",
    '"><img src=x onerror="document.title=\'pwned\'">',
    "'><svg onload=document.title='pwned'>",
    "</title><svg onload=\"document.title='pwned'\"><title>",
    "</style><script>document.title='pwned'</script>",
    "</text></svg><script>document.title='pwned'</script>",
    "]]><script>document.title='pwned'</script>",
    "--><script>document.title='pwned'</script><!--",
    "javascript:document.title='pwned'",
    "{{ cycler.__init__.__globals__ }}{% raw %}",
    'x" onmouseover="document.title=\'pwned\'" autofocus onfocus="document.title=\'pwned\'" y="',
    "<a href=javascript:document.title='pwned' id=result>x</a><base href=//evil.test/>",
    "<iframe srcdoc=\"<script>parent.document.title='pwned'</script>\"></iframe>",
)
ALL_AT_ONCE = " ".join(ATTACKS)
FORBIDDEN = {
    "script",
    "iframe",
    "img",
    "object",
    "embed",
    "base",
    "link",
    "form",
    "input",
    "foreignobject",
    "image",
    "use",
}
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
QUIET = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--virtual-time-budget=4000"),
)

in_browser = pytest.mark.skipif(
    CHROMIUM is None, reason="no Chromium: install the package chromium to run browser tests"
)


class Elements(HTMLParser):
    """All elements of a page with their attributes."""

    def __init__(self, html):
        super().__init__()
        self.found = []
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))


def hostile_pages(text=ALL_AT_ONCE):
    yield "houses", render(records.as_json(records.with_text(records.houses(), text)))
    yield "churn", render(records.as_json(records.with_text(records.churn(), text)))
    yield "letters", render(records.as_json(records.with_text(records.letters(), text)))
    yield "many classes", render(records.as_json(records.with_text(records.letters(40), text)))


def hostile_model_report(text):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({text: rng.normal(size=80), "b": rng.normal(size=80)})
    y = pd.Series(np.where(X[text] + rng.normal(size=80) > 0, text, "no"), name=text + " target")
    model = LogisticRegression().fit(X, y)
    return model, report(model, X, y)


def assert_harmless(html, *, page=True):
    elements = Elements(html).found
    for tag, attributes in elements:
        assert tag not in FORBIDDEN, tag
        for name, value in attributes.items():
            assert not name.startswith("on"), (tag, name)
            assert name not in ("src", "action", "formaction", "xlink:href"), (tag, name)
            assert name != "href" or value.startswith("#"), value
    if page:
        assert sum(tag == "style" for tag, _ in elements) == 1
        assert [tag for tag, _ in elements].count("main") == 1
        assert not re.search(r"url\(|@import", html[: html.index("</style>")])


def browse(folder, html, *flags):
    """Return the page as the browser holds it after it has run."""
    path = folder / "page.html"
    path.write_text(html, encoding="utf-8")
    command = [CHROMIUM, *QUIET, f"--user-data-dir={folder / 'profile'}", *flags, "--dump-dom", path.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return done.stdout


def without_policy(html):
    """Take the page's own protection away, so that only escaping is left to stop a script."""
    bare, n = re.subn(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", html)
    assert n == 1
    return bare


@pytest.mark.sampled(6)
@pytest.mark.parametrize("attack", ATTACKS)
def test_text_from_anywhere_stays_text(attack):
    for _, html in hostile_pages(attack):
        assert_harmless(html)


def test_a_model_report_and_a_card_stay_text():
    model, page = hostile_model_report(ALL_AT_ONCE)
    assert_harmless(page.html)
    assert_harmless(card(model), page=False)
    frame = Elements(page._repr_html_()).found
    assert [tag for tag, _ in frame] == ["iframe"]
    assert frame[0][1]["sandbox"] == ""
    assert frame[0][1]["srcdoc"] == page.html


def browse_all(folder, pages, widths=(800,)):
    """Return the titles that pages have once they have run, each in a frame of its own; one start of the browser."""
    frames = "".join(
        f'<iframe style="border:0;width:{width}px;height:900px" srcdoc="{escape(page)}"></iframe>'
        for width in widths
        for page in pages
    )
    ask = (
        "<script>onload = () => setTimeout(() => document.body.append("
        "...[...document.querySelectorAll('iframe')].map(frame => { const line = document.createElement('li');"
        "line.textContent = frame.contentDocument.title; return line; })), 1000)</script>"
    )
    seen = browse(folder, f"<title>outer</title>{frames}{ask}", "--window-size=1400,1000")
    assert "<title>outer</title>" in seen
    return [unescape(title) for title in re.findall(r"<li>(.*?)</li>", seen, re.DOTALL)]


@in_browser
def test_no_script_runs_in_a_browser(tmp_path):
    model, page = hostile_model_report(ALL_AT_ONCE)
    pages = [without_policy(html) for html in (*(html for _, html in hostile_pages()), page.html)]
    titles = browse_all(tmp_path, [*pages, f"<title>card</title>{card(model)}"])
    assert len(titles) == len(pages) + 1
    assert "pwned" not in titles
    assert titles[-1] == "card"
    assert all(title.startswith("<script>") for title in titles[:-1])


@in_browser
def test_the_browser_would_run_what_is_not_escaped(tmp_path):
    attacked = render(records.houses()).replace("</main>", ATTACKS[0] + "</main>")
    leaky, guarded = browse_all(tmp_path, [without_policy(attacked), attacked])
    assert leaky == "pwned"
    assert guarded == "price · houses.csv"


@in_browser
def test_the_page_never_scrolls_sideways(tmp_path):
    widths = (360, 390, 768, 1030, 1210, 1280)
    long_name = "a_very_long_name_without_any_place_to_break" * 12
    shown = [
        records.houses(),
        records.letters(),
        records.wide(150),
        records.with_text(records.churn(), long_name),
        records.with_text(records.houses(), "X" * 300),
    ]
    measure = (
        "<script>for (const d of document.querySelectorAll('details')) d.open = true;"
        "document.title = document.documentElement.scrollWidth + ' of ' + innerWidth</script>"
    )
    pages = [without_policy(render(record)).replace("</body>", measure + "</body>") for record in shown]
    seen = browse_all(tmp_path, pages, widths)
    assert seen == [f"{width} of {width}" for width in widths for _ in pages]


def test_control_characters_and_half_characters_are_replaced():
    html = render(records.with_text(records.houses(), "a\x00b\x1b[31m\ud800c\x85"))
    assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]", html)
    html.encode("utf-8")
    assert "a\N{REPLACEMENT CHARACTER}b" in html


@pytest.mark.parametrize("text", ["מחיר הדירה", "السعر 12", "価格", "naïve 🏠 price", "\u202eevil\u202c", "", " "])
def test_names_of_all_scripts_are_isolated(text):
    html = render(records.with_text(records.houses(), text))
    assert_harmless(html)
    if text.strip():
        assert f"<bdi>{text}</bdi>" in html


def test_very_long_text_is_cut():
    html = render(records.with_text(records.letters(), "long " * 20_000))
    assert len(html.encode()) < 2_000_000
    assert "…" in html
