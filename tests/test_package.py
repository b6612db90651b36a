"""The package as a whole: light to import, honest in its names, its README and its layout."""

import inspect
import os
import re
import subprocess
import sys
import tomllib
from dataclasses import is_dataclass
from importlib import import_module
from itertools import chain
from pathlib import Path

import pytest

import learnable

pytestmark = pytest.mark.sampled(1)  # every case is a promise of its own


ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "learnable"
TESTS = ROOT / "tests"
HEAVY = ("sklearn", "numba", "torch", "pandas", "matplotlib", "polars", "scipy")
PACKAGES = (
    "core",
    "data",
    "decisions",
    "decisions.bandits",
    "decisions.mdp",
    "decisions.rl",
    "decisions.rl.deep",
    "evaluation",
    "export",
    "generative",
    "kernel",
    "lab",
    "linear",
    "meta",
    "neighbors",
    "plots",
    "probability",
    "report",
    "risk",
    "risk.kernels",
    "sampling",
    "solvers",
    "topics",
    "trees",
)
#: What models are written with, explained in docs/architecture.md.
FIT_PROTOCOL = {"Estimator", "Run"}
#: Tests about a package as a whole, which mirror no single file.
WHOLE_PACKAGE = {
    "test_time_limits.py",
    "test_units.py",
    "test_beyond_memory.py",
    "test_certificates.py",
    "test_hostile_inputs.py",
    "test_missing.py",
    "test_refusals.py",
    "test_reproducible.py",
    "test_tampered_models.py",
    "test_uncertain_ends.py",
    "test_families.py",
}
MAX_LINES = 600
#: Pages with Python of which other tests run every line: what it prints, and what the model it builds can do.
TESTED_ELSEWHERE = {"docs/start/notebook_tour.md"}
PYTHON = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
PAGES = sorted(
    name
    for path in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md"))
    if (name := path.relative_to(ROOT).as_posix()) not in TESTED_ELSEWHERE
    and PYTHON.search(path.read_text(encoding="utf-8"))
)


def run_python(code):
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=True).stdout


def public_classes():
    """Return every class that a package of ours shows, once."""
    found = {}
    for package in PACKAGES:
        module = import_module(f"learnable.{package}")
        for name in dir(module):
            value = getattr(module, name)
            if inspect.isclass(value) and value.__module__.startswith("learnable."):
                found[f"{value.__module__}.{value.__qualname__}"] = value
    return found


def is_record(cls):
    """Tell whether functions return it and users only read it: it documents attributes, not parameters."""
    doc = cls.__doc__ or ""
    documents_attributes = "Attributes\n" in doc and "Parameters\n" not in doc
    return issubclass(cls, tuple) or (is_dataclass(cls) and documents_attributes)


def needs_example(cls):
    """Users build it: not a protocol, an error, an abstract base, a record, or a part of the fit protocol."""
    is_protocol = getattr(cls, "_is_protocol", False)
    is_base = is_protocol or inspect.isabstract(cls) or cls.__name__ in FIT_PROTOCOL
    return not (is_base or issubclass(cls, BaseException) or is_record(cls))


def test_import_loads_nothing_heavy():
    code = f"import sys, learnable; print([m for m in {HEAVY!r} if m in sys.modules])"
    assert run_python(code).strip() == "[]"


def test_listing_the_names_loads_nothing_heavy():
    code = f"import sys, learnable; dir(learnable); print([m for m in {HEAVY!r} if m in sys.modules])"
    assert run_python(code).strip() == "[]"


@pytest.mark.parametrize("package", ["", *PACKAGES])
def test_every_listed_name_resolves(package):
    module = import_module(f"learnable.{package}".rstrip("."))
    assert set(module.__all__) <= set(dir(module))
    for name in dir(module):
        assert getattr(module, name) is not None or name.startswith("__")


@pytest.mark.threaded
@pytest.mark.parametrize("name", sorted(public_classes()))
def test_every_public_class_is_documented(name):
    cls = public_classes()[name]
    assert inspect.getdoc(cls), name
    if needs_example(cls):
        assert re.search(r"^\s*Examples\n\s*-{8}$", cls.__doc__ or "", re.MULTILINE), f"{name} has no example"
        assert ">>>" in cls.__doc__


#: Pages whose code takes more than three seconds; only `make test-full` runs it.
SLOW_PAGES = {"docs/guide/sampling.md"}


@pytest.mark.parametrize(
    "page", [pytest.param(page, marks=pytest.mark.long) if page in SLOW_PAGES else page for page in PAGES]
)
def test_the_code_of_a_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (ROOT / page).read_text(encoding="utf-8")
    namespace = {"__name__": "page"}
    for number, block in enumerate(PYTHON.findall(text)):
        exec(compile(block, f"{page}, block {number}", "exec"), namespace)


def test_the_version_stands_in_one_place():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert settings["project"]["dynamic"] == ["version"]
    assert settings["tool"]["hatch"]["version"]["path"] == "src/learnable/__init__.py"
    assert f"## [{learnable.__version__}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"version: {learnable.__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")


def test_every_dependency_is_explained():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    groups = [project["dependencies"], *project["optional-dependencies"].values()]
    explained = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")
    for requirement in chain.from_iterable(groups):
        package = re.match(r"[\w.-]+", requirement)[0]
        assert re.search(rf"(?<![\w-]){re.escape(package)}(?![\w-])", explained), package


def test_every_test_file_mirrors_a_source_file():
    """`test_newton.py` mirrors `newton.py`, and so does `test_newton_roots.py`, which is about a part of it."""
    for path in TESTS.glob("*/**/test_*.py"):
        inside = path.relative_to(TESTS)
        if inside.parts[0] in PACKAGES and inside.name not in WHOLE_PACKAGE:
            words = inside.stem.removeprefix("test_").split("_")
            stems = ["_".join(words[:n]) for n in range(1, len(words) + 1)]
            mirrored = [SOURCE / inside.parent / f"{mark}{stem}.py" for stem in stems for mark in ("", "_")]
            assert any(file.is_file() for file in mirrored), f"{inside} mirrors no file of src/learnable"


def test_no_source_file_is_long():
    for path in SOURCE.rglob("*.py"):
        n_lines = len(path.read_text(encoding="utf-8").splitlines())
        assert n_lines <= MAX_LINES, f"{path.relative_to(ROOT)} has {n_lines} lines; split it"
