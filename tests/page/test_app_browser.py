"""The page in a real browser: from a file to a kept model, with the mouse and without, wide and narrow, light and dark.

Runs where Playwright and a Chromium of the system are installed. The browser's own policy is part of what is tested:
every complaint on its console fails the test.
"""

import os
import re
import shutil
import subprocess
import sys
from contextlib import contextmanager

import pytest
from tests.evaluation.comparison.tables import classes, numbers
from tests.page.pages import csv_of

import learnable as ln

sync_api = pytest.importorskip("playwright.sync_api", reason="browser tests need playwright: pip install playwright")
CHROMIUM = next((path for path in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if path), None)
pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(CHROMIUM is None, reason="browser tests need Chromium, which is not installed"),
]
FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip
SCRIPT = "<img src=x onerror=window.hacked=1><script>window.hacked=1</script>"
PATIENCE = 90_000  # milliseconds


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """Start the page as a user does; return its address and the link that opens it once."""
    command = [
        sys.executable,
        "-m",
        "learnable",
        "page",
        "--no-browser",
        "--folder",
        str(tmp_path_factory.mktemp("page")),
    ]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ | {"PYTHONUNBUFFERED": "1"})
    link = re.search(r"http://\S+", server.stdout.readline())[0]
    yield link.partition("/start")[0], link
    server.terminate()
    server.wait(20)


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield found
        found.close()


@pytest.fixture(scope="module")
def key(address, browser):
    """The cookie of the one browser that came by the link."""
    context = browser.new_context()
    page = context.new_page()
    page.goto(address[1])
    page.wait_for_selector("h1")
    assert page.url.endswith("/") or page.url.endswith("#/tables")
    return context.storage_state()


def is_complaint(message):
    """Tell whether the console says that something is wrong; a refusal with its reason (422) is none."""
    return message.type == "error" and "status of 422" not in message.text


@pytest.fixture
def open_page(address, browser, key):
    """Return what opens a page; whatever its console complains about fails the test."""
    complaints = []

    @contextmanager
    def opened(width=1280, scheme="light"):
        size = {"width": width, "height": 900}
        context = browser.new_context(viewport=size, color_scheme=scheme, storage_state=key, accept_downloads=True)
        context.set_default_timeout(PATIENCE)
        page = context.new_page()
        page.on("console", lambda message: is_complaint(message) and complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(f"{address[0]}/#/tables")
        page.wait_for_selector("h1")
        yield page
        context.close()

    yield opened
    assert complaints == []


def give(page, content, name="table.csv"):
    page.set_input_files("#file", {"name": name, "mimeType": "text/csv", "buffer": content})
    page.wait_for_selector("text=Predict a column")


def fits(page):
    """Tell whether nothing has to be scrolled sideways."""
    return page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


def nameless(page):
    """Return what a screen reader would meet without a name."""
    session = page.context.new_cdp_session(page)
    nodes = session.send("Accessibility.getFullAXTree")["nodes"]
    wanted = ("button", "link", "textbox", "combobox", "checkbox", "slider", "spinbutton", "searchbox", "img", "image")
    return [
        node["role"]["value"]
        for node in nodes
        if not node.get("ignored")
        and node.get("role", {}).get("value") in wanted
        and not node.get("name", {}).get("value", "").strip()
    ]


def test_script_in_names_and_cells_stays_text(open_page):
    content = f'"{SCRIPT}",b😀,"\u202egnp"\n'.encode()
    content += b"".join(f'"{SCRIPT}{k % 3}",{k},{k * k}\n'.encode() for k in range(40))
    with open_page() as page:
        give(page, content, f"{SCRIPT.replace('/', '')}.csv")
        page.wait_for_selector("text=Its rows")
        page.wait_for_selector(".grid-table td >> text=onerror")
        page.get_by_label("Column to predict").select_option(SCRIPT)
        page.wait_for_selector(".said details, .said .alert")
        assert page.evaluate("window.hacked") is None
        assert page.locator("main img, main script").count() == 0
        assert page.locator("th", has_text=SCRIPT[:30]).count() > 0
        assert "😀" in page.inner_text("main") and fits(page) and nameless(page) == []


def start_and_stop(page):
    """Start a race of everything and stop it once a model is finished."""
    page.get_by_label("Time limit, seconds").fill("300")
    page.get_by_role("button", name="Start the race").click()
    page.wait_for_selector(".board tbody tr:not(.at-work):nth-child(2)")
    page.get_by_role("button", name="Stop and keep what is done").click()
    page.wait_for_selector("text=Stopped: what was finished is kept.")


@pytest.mark.parametrize("width, scheme", [(1280, "light"), (390, "dark")])
def test_from_a_file_to_a_kept_model(open_page, address, tmp_path, width, scheme):
    with open_page(width, scheme) as page:
        give(page, csv_of(numbers()), "numbers.csv")
        page.get_by_label("Column to predict").select_option("y")
        page.wait_for_selector("text=a number to estimate")
        assert fits(page) and nameless(page) == []
        start_and_stop(page)
        race = page.url
        other = page.context.new_page()  # a second tab shows the same
        other.goto(race)
        other.wait_for_selector("text=Stopped: what was finished is kept.")
        assert other.inner_text(".board") == page.inner_text(".board")
        other.close()
        page.reload()
        page.wait_for_selector("text=Stopped: what was finished is kept.")
        assert fits(page) and nameless(page) == []

        page.get_by_role("link", name="Look into the best model").click()
        page.wait_for_selector("text=The mean of the prediction if every row had this value")
        page.get_by_label("Column", exact=True).select_option("kind")
        page.wait_for_selector("meter")
        page.go_back()
        page.wait_for_selector("text=As the column grows, it rises.")
        assert page.get_by_label("Column", exact=True).input_value() == "x"
        page.get_by_role("button", name=re.compile("Explain row")).first.click()
        page.wait_for_selector("text=Shapley values")
        page.reload()
        page.wait_for_selector("text=Shapley values")  # the row stands in the address
        page.get_by_role("button", name="Check it now").click()
        page.wait_for_selector("text=It holds.")
        page.get_by_role("button", name="Show the whole report here").click()
        frame = page.frame_locator("iframe.report")
        frame.locator("h1").wait_for()
        assert fits(page) and nameless(page) == []

        page.get_by_role("navigation").get_by_role("link", name="Predict").click()
        page.get_by_label("x", exact=True).fill("1.5")
        page.get_by_role("button", name="Predict").click()
        page.wait_for_selector("text=of such rows.")
        shown = page.inner_text(".big")
        page.reload()
        page.wait_for_selector("text=of such rows.")
        assert page.inner_text(".big") == shown
        rows = {"name": "new.csv", "mimeType": "text/csv", "buffer": csv_of(numbers(n=25, seed=1))}
        page.set_input_files("#rows-file", rows)
        page.wait_for_selector("text=25 rows are predicted.")
        assert fits(page) and nameless(page) == []

        page.get_by_role("navigation").get_by_role("link", name="Keep").click()
        with page.expect_download() as waiting:
            page.get_by_role("link", name=re.compile("^The model")).click()
        waiting.value.save_as(tmp_path / "model.safetensors")
        assert ln.load(tmp_path / "model.safetensors").predict(numbers(n=3)).shape == (3,)
        assert "learnable compare numbers.csv --target y --seconds 300" in page.inner_text("main")
        assert fits(page) and nameless(page) == []


NAMED = """() => { const here = document.activeElement;
  return here.labels?.[0]?.innerText || here.innerText || here.ariaLabel || ""; }"""


def press_to(page, name):
    """Go forward with the tab key until something with this name has the focus."""
    for _ in range(120):
        if page.evaluate(NAMED).strip().startswith(name):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"the tab key does not reach {name!r}")


def test_by_the_keyboard_alone(open_page):
    with open_page() as page:
        press_to(page, "tumours")
        page.keyboard.press("Enter")
        page.wait_for_selector("text=one of two classes")
        page.wait_for_selector("h1:focus")  # who reads by ear starts at the title
        press_to(page, "Time limit")
        page.keyboard.type(
            "300"
        )  # with the value selected; on a busy machine a short race is over before it is stopped
        assert page.get_by_label("Time limit, seconds").input_value() == "300"
        press_to(page, "Start the race")
        page.keyboard.press("Enter")
        page.wait_for_selector(".board tbody tr:not(.at-work):nth-child(2)")
        press_to(page, "Stop and keep")
        page.keyboard.press("Space")
        page.wait_for_selector("text=Stopped: what was finished is kept.")
        press_to(page, "Look into the best")
        page.keyboard.press("Enter")
        slider = page.get_by_role("slider")
        slider.wait_for()
        page.wait_for_selector("text=Take the cheapest, ")
        slider.focus()
        before = page.inner_text("output")
        page.keyboard.press("ArrowRight")
        assert float(page.inner_text("output")) == pytest.approx(float(before) + 0.01)
        assert "false alarms" in slider.get_attribute("aria-valuetext")
        page.wait_for_url("**t=**")
        page.get_by_label("Cost of a missed one").fill("20")
        with page.expect_response("**/ask/threshold"):
            page.keyboard.press("Tab")
        page.wait_for_url("**fn=20**")
        press_to(page, "Take the cheapest")
        page.keyboard.press("Enter")
        best = page.get_by_role("button", name="Take the cheapest").inner_text().rpartition(" ")[2]
        page.wait_for_selector(f"output >> text={best}")


def test_tables_of_odd_shapes(open_page):
    wide = ",".join(f"c{k}" for k in range(5000)) + "\n" + "\n".join(",".join([str(k)] * 5000) for k in range(30))
    with open_page(390) as page:
        give(page, wide.encode(), "wide.csv")
        page.wait_for_selector("text=30 rows, 5,000 columns")
        page.get_by_role("button", name="Show more of the 5,000 columns").click()
        page.wait_for_selector("th >> text=c45")
        assert fits(page)
        page.goto(page.url.split("#")[0] + "#/tables")
        page.wait_for_selector("#file", state="attached")
        give(page, b"a,b\n1,2\n", "one.csv")
        page.get_by_label("Column to predict").select_option("b")
        page.wait_for_selector(".said .alert")
        assert "row" in page.inner_text(".said .alert")
        page.goto(page.url.split("#")[0] + "#/tables")
        page.wait_for_selector("#file", state="attached")
        give(page, csv_of(classes(k=3)), "three.csv")
        page.get_by_label("Column to predict").select_option("label")
        page.wait_for_selector("text=one of 3 classes")


START = """async (asked) => (await (await fetch("/api/runs", { method: "POST",
  headers: { "X-Learnable": "page", "Content-Type": "application/json" }, body: JSON.stringify(asked) })).json()).id"""


def test_another_model_of_the_leaderboard_is_asked(open_page):
    with open_page() as page:
        page.get_by_role("button", name="tumours").click()
        page.wait_for_selector("text=one of two classes")
        table = re.split("[/?]", page.url.partition("#")[2])[2]
        settings = {"target": "diagnosis", "models": ["LogisticRegression", "GaussianNB"], "seconds": 60.0}
        run = page.evaluate(START, {"kind": "compare", "table": table, "settings": settings})
        page.goto(f"{page.url.partition('#')[0]}#/race/{run}")
        page.wait_for_selector("text=The race is over.")
        page.get_by_role("link", name="GaussianNB").click()
        page.wait_for_selector("text=GaussianNB was fitted again to the 455 training rows")
        page.wait_for_selector("text=Take the cheapest, ")
        choose = page.get_by_label("Ask the model")
        assert choose.input_value() == "GaussianNB" and "model=GaussianNB" in page.url
        assert page.get_by_role("button", name="Check it now").count() == 0  # the check is of the file that is kept
        page.reload()
        page.wait_for_selector("text=Asking GaussianNB")
        kept = page.get_by_label("Ask the model").locator("option", has_text="kept").get_attribute("value")
        page.get_by_label("Ask the model").select_option(kept)
        page.wait_for_selector("text=The best model is")
        assert "model=" not in page.url
