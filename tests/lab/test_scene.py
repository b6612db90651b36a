"""Every scene builds, says what its models say, runs by the lines it shows, and lets nothing of a table become "
"markup."""

import json
import os
import re
import subprocess
import sys
import warnings
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from tests.plots.svg import parse

import learnable
from learnable.core.errors import DataError, ParameterError
from learnable.lab import SCENES, Step
from learnable.lab.page import whole_page

NAMES = list(SCENES)
HOSTILE = "<script>alert(1)</script>\" onload='x' & <b>"
#: Settings that keep a scene short here; the whole ones are built by `make docs` and by the test marked long.
SHORT = {
    "descent": {"n_steps": 10},
    "lasso": {"n_steps": 6},
    "svm": {"walk": False},
    "tree": {"most_leaves": 4},
    "adaboost": {"n_rounds": 4},
    "kmeans": {"max_steps": 6},
    "em": {"max_steps": 6},
    "hmm": {"n_steps": 4},
    "gp": {"n_points": 3},
    "metropolis": {"n_draws": 100},
    "nuts": {"n_draws": 100},
    "backprop": {"n_units": 2},
    "bandit": {"horizon": 20},
    "values": {"max_sweeps": 6},
}


@pytest.fixture(scope="module", params=NAMES)
def scene(request):
    return SCENES[request.param]


@pytest.fixture(scope="module")
def steps(scene):
    return scene.steps(**SHORT[scene.name])


def table(n=24, names=("first", "second", "kind")):
    """Return two columns of numbers and one of two classes."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(n, 2)).round(3)
    y = np.where(X @ [1.0, 0.5] + 0.3 * rng.normal(size=n) > 0, "yes", "no")
    return dict(zip(names, (X[:, 0], X[:, 1], y), strict=True))


def own_table(scene, names=("first", "second", "kind")):
    if scene.name == "values":
        return dict(zip(names, (["S", ".", "#"], [".", ".", HOSTILE], [".", ".", "G"]), strict=True))
    return table(names=names)


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


def test_the_settings_of_the_tests_are_those_of_the_scenes():
    assert list(SHORT) == NAMES
    assert all(set(SHORT[name]) <= set(SCENES[name].settings) for name in NAMES)


def check(steps):
    for step in steps:
        assert isinstance(step, Step)
        assert step.title and step.text and step.code and step.formula
        assert step.certificates or step.note, "say what is proven, or what is known"
        assert all(np.isfinite(value) for value in step.numbers.values())
    for step in (steps[0], steps[len(steps) // 2], steps[-1]):
        for picture in step.pictures:
            parse(picture)


def test_a_step_has_all_its_parts(steps):
    check(steps)


@pytest.mark.long
def test_the_whole_scene(scene):
    steps = scene.steps()
    assert 6 <= len(steps) <= 80
    check(steps)
    assert len(scene.page()) < 1_500_000
    assert -len(steps) <= scene.cover < len(steps)
    if scene.name in {"lasso", "svm", "tree", "adaboost"}:  # every step is a fit to the end
        assert all(found.holds for step in steps for found in step.certificates.values())


def test_the_lines_of_a_step_give_its_certificates(scene, steps):
    step = steps[-1]
    names = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(scene.setup, names)
        exec(step.code, names)
    for name, shown in step.certificates.items():
        found = getattr(names[name], "certificate_", None) or names[name].certificate
        assert (found.kind, found.value, found.tolerance) == (shown.kind, shown.value, shown.tolerance)


def test_the_page_is_one_file_that_asks_for_nothing(scene, steps):
    page = whole_page(scene, steps, scene.about())
    read = Reader()
    read.feed(page)
    assert read.tags.count("script") == 1 and read.tags.count("section") == len(steps)
    assert not {name for name, _ in read.attributes} & {"src", "href", "style", "onload", "onclick"}
    addresses = set(re.findall(r"https?://[^\s\"'<)]+", page))
    assert addresses <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1998/Math/MathML"}  # names, not addresses
    assert "default-src 'none'" in page and page.startswith("<!DOCTYPE html>")


def test_the_page_can_leave_script_and_style_to_a_server():
    page = SCENES["kmeans"].page(assets="/lab/")
    assert 'src="/lab/player.js"' in page and 'href="/lab/player.css"' in page
    assert "<style" not in page and "querySelector" not in page


def test_the_data_are_json(scene, steps):
    data = json.loads(json.dumps([step.to_dict() for step in steps], allow_nan=False))
    first = data[0]
    assert first["svg"][0].startswith("<svg") and first["formula"].startswith("<math") and first["code"]


def test_the_data_of_a_scene():
    data = SCENES["kmeans"].data(max_steps=2)
    assert data["name"] == "kmeans" and data["title"] and len(data["steps"]) == 2
    assert "Old Faithful" in data["text"]
    assert "Old Faithful" not in SCENES["kmeans"].data(table(), max_steps=2)["text"]


def test_a_table_of_ones_own(scene):
    page = scene.page(own_table(scene, (HOSTILE + "1", HOSTILE + "2", HOSTILE)), **SHORT[scene.name])
    read = Reader()
    read.feed(page)
    assert read.tags.count("script") == 1 and "b" not in read.tags
    assert not any(name.startswith("on") for name, _ in read.attributes)
    assert "alert(1)</script>" not in page


def test_a_table_that_does_not_suit_is_refused(scene):
    for wrong in ({"words": ["a", "b", "c", "d", "e"]}, {}, object()):
        with pytest.raises(DataError, match=rf"^{scene.name}: "):
            scene.steps(wrong)


def test_a_setting_that_is_not_there_is_named():
    with pytest.raises(ParameterError, match="there is no setting 'depth'; there are: "):
        SCENES["kmeans"].steps(depth=3)


def test_listing_the_scenes_loads_no_model():
    code = (
        "import sys; from learnable.lab import SCENES; [scene.title for scene in SCENES.values()]; "
        "print([name for name in ('sklearn', 'numba', 'scipy', 'pandas') if name in sys.modules])"
    )
    environment = os.environ | {"PYTHONPATH": str(Path(learnable.__file__).parents[1])}
    command = [sys.executable, "-c", code]
    assert subprocess.run(command, capture_output=True, text=True, env=environment, check=True).stdout.strip() == "[]"
