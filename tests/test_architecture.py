"""The tables of docs/architecture.md say what the imports say: who uses `Risk`, which engine, the EM driver."""

import re
from functools import cache
from pathlib import Path

import pytest
from benchmarks import walks
from tests.changed import import_statements

import learnable
from learnable.core.registry import REGISTRY
from learnable.risk import losses
from learnable.risk.objective import FUSED

HOME = Path(learnable.__file__).parent
PAGE = (Path(__file__).parents[1] / "docs" / "architecture.md").read_text(encoding="utf-8")


def table(header):
    """Return the rows of the table with this header, as lists of cells."""
    lines = PAGE.splitlines()
    start = next(n for n, line in enumerate(lines) if line.replace(" ", "").startswith(header.replace(" ", "")))
    rows = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return rows


def quoted(cell):
    return re.findall(r"`([^`]+)`", cell)


@cache
def imports_of(file):
    """Return the modules of the package that a file imports, at any place."""
    package = ["learnable", *file.relative_to(HOME).parts[:-1]]
    found = set()
    for level, name, names in import_statements(file):
        if level:
            base = package[: len(package) - level + 1]
            module = ".".join([*base, *([name] if name else [])])
            found |= {module, *(f"{module}.{one}" for one in names)}
    return {module.removeprefix("learnable.") for module in found}


def place(file):
    """Return a file's folder within its package, or the package where it stands at the top of it."""
    return "/".join(file.relative_to(HOME).parts[:-1][:2])


def users_of(part):
    own = part.replace(".", "/") if part.startswith("solvers") else part.split(".")[0]
    found = set()
    for file in HOME.rglob("*.py"):
        if any(name == part or name.startswith(part + ".") for name in imports_of(file)):
            found.add(place(file))
    return {user for user in found if user != own}


MODELS = table("| loss | penalty | models |")
PARTS = table("| part | used by |")


@pytest.mark.parametrize("row", MODELS, ids=lambda row: row[3])
def test_a_model_uses_the_risk_and_the_engine_of_its_row(row):
    models, (path,), parts = quoted(row[2]), quoted(row[3]), quoted(row[4]) + quoted(row[5])
    assert all(model in REGISTRY for model in models)
    imported = imports_of(HOME / path)
    for part in parts:
        assert part in imported, f"{path} does not import {part}"


@pytest.mark.parametrize("row", PARTS, ids=lambda row: row[0])
def test_the_users_of_a_part_are_those_that_import_it(row):
    (part,), users = quoted(row[0]), quoted(row[1])
    assert users == sorted(users_of(part)), "set the row of docs/architecture.md to the right-hand side"


def test_each_compiled_sweep_has_its_row():
    rows = {
        loss: (quoted(row[1])[0], quoted(row[2])[0]) for row in table("| losses | compiled") for loss in quoted(row[0])
    }
    assert all(hasattr(losses, loss) for loss in rows)
    for loss, path in FUSED.items():
        module, name = path.split(":")
        assert rows[loss] == (name, module.removeprefix("learnable.").replace(".", "/") + ".py")


@pytest.mark.parametrize("name", walks.LIMITS)
def test_a_fit_walks_through_few_files(name):
    files = walks.walked(walks.fits()[name])
    assert len(files) <= walks.LIMITS[name], files
