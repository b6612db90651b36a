"""Every scene builds, says what its models say, runs by the lines it shows, and lets nothing of a table become markup."""

import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from tests.plots.svg import parse

from learnable.core.errors import DataError, ParameterError
from learnable.lab import SCENES, Step

NAMES = list(SCENES)
HOSTILE = "<script>alert(1)</script>\" onload='x' & <b>"
#: Lines that a test runs again; the others differ by a number only.
RUN_AGAIN = 2


@pytest.fixture(scope="module", params=NAMES)
def scene(request):
    return SCENES[request.param]


@pytest.fixture(scope="module")
def steps(scene):
    return scene.steps()


def table(n=40, names=("first", "second", "kind")):
    """Return two columns of numbers and one of two classes."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(n, 2)).round(3)
    y = np.where(X @ [1.0, 0.5] + 0.3 * rng.normal(size=n) > 0, "yes", "no")
    return dict(zip(names, (X[:, 0], X[:, 1], y), strict=True))


class Reader(HTMLParser):
    """Collects the tags and attributes of a page, and the text outside scripts."""

    def __init__(self):
        super().__init__()
        self.tags, self.attributes, self.open = [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs


def test_there_are_scenes_with_names_that_fit_into_an_address():
    assert all(re.fullmatch(r"[a-z]+", name) and SCENES[name].name == name for name in NAMES)


def test_a_step_has_all_its_parts(scene, steps):
    assert 4 <= len(steps) <= 80
    for step in steps:
        assert isinstance(step, Step)
        assert step.title and step.text and step.code and step.formula
        assert step.certificates or step.note, "say what is proven, or what is known"
        assert all(np.isfinite(value) for value in step.numbers.values())
    for step in (steps[0], steps[len(steps) // 2], steps[-1]):
        for picture in step.pictures:
            parse(picture)


def test_the_lines_of_a_step_give_its_certificates(scene, steps):
    for step in np.array(steps, dtype=object)[np.linspace(0, len(steps) - 1, RUN_AGAIN).astype(int)]:
        names = {}
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("warnings.warn", lambda *_, **__: None)
            exec(scene.setup, names)
            exec(step.code, names)
        for name, shown in step.certificates.items():
            found = getattr(names[name], "certificate_", None) or names[name].certificate
            assert (found.kind, found.value, found.tolerance) == (shown.kind, shown.value, shown.tolerance)


def test_the_page_is_one_file_that_asks_for_nothing(scene):
    page = scene.page()
    read = Reader()
    read.feed(page)
    assert read.tags.count("script") == 1 and read.tags.count("section") == len(scene.steps())
    assert not {name for name, _ in read.attributes} & {"src", "href", "style", "onload", "onclick"}
    addresses = set(re.findall(r"https?://[^\s\"'<)]+", page))
    assert addresses <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1998/Math/MathML"}  # names, not addresses
    assert "default-src 'none'" in page and page.startswith("<!DOCTYPE html>")
    assert len(page) < 1_500_000


def test_the_page_can_leave_script_and_style_to_a_server():
    page = SCENES["kmeans"].page(assets="/lab/")
    assert 'src="/lab/player.js"' in page and 'href="/lab/player.css"' in page
    assert "<style" not in page and "querySelector" not in page


def test_the_data_are_json(scene, steps):
    data = json.loads(json.dumps(scene.data(), allow_nan=False))
    assert len(data["steps"]) == len(steps)
    first = data["steps"][0]
    assert first["svg"][0].startswith("<svg") and first["formula"].startswith("<math") and first["code"]
    assert data["name"] == scene.name and data["title"] and data["text"]


def test_a_table_of_ones_own(scene):
    if not scene.takes:
        with pytest.raises(ParameterError, match="has no table"):
            scene.steps(table())
        return
    page = scene.page(table(names=(HOSTILE + "1", HOSTILE + "2", HOSTILE)))
    read = Reader()
    read.feed(page)
    assert read.tags.count("script") == 1 and "b" not in read.tags
    assert not any(name.startswith("on") for name, _ in read.attributes)
    assert "alert(1)</script>" not in page


def test_a_table_that_does_not_suit_is_refused(scene):
    if not scene.takes:
        return
    for wrong in ({"words": ["a", "b", "c", "d", "e"]}, {}, object()):
        with pytest.raises(DataError, match=rf"^{scene.name}: "):
            scene.steps(wrong)


def test_a_setting_that_is_not_there_is_named():
    with pytest.raises(ParameterError, match="there is no setting 'depth'; there are: "):
        SCENES["kmeans"].steps(depth=3)
