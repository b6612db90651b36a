"""The player in a browser: keys, buttons, the slider, dragging, both widths, both colours, names for screen readers.

Run where Playwright and Chromium are installed; skipped elsewhere.
"""

import shutil

import pytest

from learnable.lab import SCENES

playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
ARGUMENTS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    place = tmp_path_factory.mktemp("lab")
    (place / "kmeans.html").write_text(SCENES["kmeans"].page(), encoding="utf-8")
    (place / "svm.html").write_text(SCENES["svm"].page(), encoding="utf-8")
    (place / "live.html").write_text(SCENES["svm"].page(live=True, walk=False), encoding="utf-8")
    return place


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as started:
        found = started.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield found
        found.close()


@pytest.fixture
def open_page(browser, files):
    pages = []

    def open_one(name, width=1280, **options):
        page = browser.new_page(viewport={"width": width, "height": 900}, **options)
        said = []
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda request: said.append(request.url) if "://" in request.url[8:] else None)
        page.goto((files / f"{name}.html").as_uri())
        pages.append((page, said))
        return page

    yield open_one
    for page, said in pages:
        page.close()
        assert not said


def shown(page):
    """Return the number of the only step that is to be seen."""
    seen = page.locator(".lab-step:visible")
    assert seen.count() == 1
    return int(seen.get_attribute("aria-label").split()[1])


def test_keys_buttons_and_slider_step(open_page):
    page = open_page("kmeans")
    assert shown(page) == 1
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert shown(page) == 3 and page.url.endswith("#3")
    page.keyboard.press("End")
    last = shown(page)
    assert last == len(SCENES["kmeans"].steps()) and page.get_by_role("button", name="Step on").is_disabled()
    page.get_by_role("button", name="Step back").click()
    assert shown(page) == last - 1
    page.get_by_role("slider", name="Step").fill("2")
    assert shown(page) == 2
    assert page.get_by_role("status").inner_text().startswith("Step 2 of")
    page.reload()
    assert shown(page) == 2


def test_play_reaches_the_end_and_can_be_paused(open_page):
    page = open_page("kmeans")
    page.clock.install()
    page.reload()
    page.keyboard.press(" ")
    assert page.get_by_role("button", name="Pause").count() == 1
    page.clock.run_for(1900)
    assert shown(page) == 3
    page.get_by_role("button", name="Pause").click()
    page.clock.run_for(5000)
    assert shown(page) == 3
    page.get_by_role("button", name="Play").click()
    page.clock.run_for(20_000)
    assert shown(page) == len(SCENES["kmeans"].steps()) and page.get_by_role("button", name="Play").count() == 1


@pytest.mark.parametrize(("row", "across"), [(27, -200), (13, 150)])
def test_dragging_chooses_among_the_steps(open_page, row, across):
    page = open_page("svm")
    x, y = middle_of(page, row)
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + across, y + 60, steps=4)
    page.mouse.up()
    assert shown(page) > 1
    now = middle_of(page, row)
    assert abs(now[0] - x - across) < 60 and abs(now[1] - y - 60) < 60


def middle_of(page, row):
    box = page.locator(f'.lab-step:visible [data-row="{row}"]').bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def test_a_live_page_tells_where_a_point_was_dropped(open_page):
    page = open_page("live")
    page.evaluate("document.addEventListener('lab:drag', (event) => { window.told = event.detail; })")
    box = page.locator('[data-row="3"]').bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + 60, box["y"] + 40, steps=3)
    page.mouse.up()
    told = page.evaluate("window.told")
    X, _, _, _ = SCENES["svm"].read()
    assert told["row"] == 3 and told["scene"] == "svm"
    assert told["x"] > X[3, 0] and told["y"] < X[3, 1]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_shows_all_of_it_without_scrolling_sideways(open_page, scheme):
    page = open_page("kmeans", width=390, color_scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    light = page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert light == (scheme == "light")


def test_without_a_script_every_step_is_there(open_page):
    page = open_page("kmeans", java_script_enabled=False)
    assert page.locator(".lab-step:visible").count() == len(SCENES["kmeans"].steps())
    assert page.locator(".lab-controls:visible").count() == 0
