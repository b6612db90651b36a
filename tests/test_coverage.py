"""`docs/coverage.md` cannot lie: what it calls done or begun is imported, found and counted here."""

import ast
import re
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import pytest
from benchmarks import FAMILIES
from benchmarks import ROWS as BENCHMARKS

from learnable.core.registry import estimator_names

pytestmark = pytest.mark.sampled(1)  # every case is a promise of its own


ROOT = Path(__file__).parents[1]
HEADER = ["id", "what", "status", "public names", "still to come", "tests", "examples", "benchmarks"]
STATUSES = {"done", "part", "planned"}
SYLLABUS = {
    "A": 7, "B": 6, "C": 10, "D": 14, "E": 9, "F": 6, "G": 9, "H": 4,
    "I": 7, "J": 2, "K": 6, "L": 3, "M": 5, "N": 6, "O": 8, "P": 5,
}  # fmt: skip


class Row(NamedTuple):
    id: str
    what: str
    status: str
    names: list[str]
    still_to_come: str
    tests: list[str]
    examples: list[str]
    benchmarks: list[str]


def split_cells(line):
    """Return the cells of one line of a Markdown table; an escaped pipe belongs to its cell."""
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().removeprefix("|").removesuffix("|"))]


def quoted(cell):
    """Return what stands between backticks."""
    return re.findall(r"`([^`]+)`", cell)


def read_table():
    lines = (ROOT / "docs" / "coverage.md").read_text(encoding="utf-8").splitlines()
    table = [line for line in lines if line.lstrip().startswith("|")]
    assert split_cells(table[0]) == HEADER
    rows = []
    for line in table[2:]:
        cells = split_cells(line)
        assert len(cells) == len(HEADER), line
        row_id, what, status, names, still_to_come, tests, examples, benchmarks = cells
        lists = quoted(names), quoted(tests), quoted(examples), quoted(benchmarks)
        rows.append(Row(row_id, what, status, lists[0], still_to_come, *lists[1:]))
    return rows


ROWS = read_table()
BEGUN = [row for row in ROWS if row.status in {"done", "part"}]
each_begun_row = pytest.mark.parametrize("row", BEGUN, ids=lambda row: row.id)


def resolve(dotted):
    """Return `learnable.<dotted>`: a module, or a chain of attributes of one."""
    parts = ["learnable", *dotted.split(".")]
    for n_modules in range(len(parts), 0, -1):
        try:
            found = import_module(".".join(parts[:n_modules]))
        except ModuleNotFoundError as error:
            if not (error.name or "").startswith("learnable"):
                raise
            continue
        for name in parts[n_modules:]:
            found = getattr(found, name)
        return found
    raise AssertionError(f"learnable.{dotted} does not exist")


@cache
def functions_of(path):
    """Return the names of the test functions in a file, those in classes as `Class::test`."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    names |= {
        target.id
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            names |= {f"{node.name}::{child.name}" for child in node.body if isinstance(child, ast.FunctionDef)}
    return names


def test_every_row_of_the_syllabus_appears_exactly_once():
    expected = [f"{letter}{number}" for letter, count in SYLLABUS.items() for number in range(1, count + 1)]
    assert [row.id for row in ROWS] == expected


def test_every_status_is_known_and_every_row_says_what_it_is():
    for row in ROWS:
        assert row.status in STATUSES, row.id
        assert row.what and row.names, row.id


def test_a_row_that_is_part_done_says_what_is_missing():
    for row in ROWS:
        assert (row.status == "part") == (row.still_to_come != "–"), row.id


def test_a_planned_row_claims_nothing():
    for row in ROWS:
        if row.status == "planned":
            assert not (row.tests or row.examples or row.benchmarks), row.id


@each_begun_row
def test_public_names_exist(row):
    for name in row.names:
        resolve(name)


@each_begun_row
def test_tests_exist(row):
    assert row.tests
    for test in row.tests:
        file, _, function = test.partition("::")
        assert (ROOT / file).is_file(), test
        assert function.rpartition("::")[2].startswith("test_"), test
        assert function in functions_of(ROOT / file), test


@each_begun_row
def test_examples_exist(row):
    assert row.examples
    for example in row.examples:
        assert (ROOT / example).is_file(), example
        if not example.startswith("examples/"):
            assert ">>>" in (ROOT / example).read_text(encoding="utf-8"), f"{example} has no doctest"


@each_begun_row
def test_benchmarks_exist(row):
    for benchmark in row.benchmarks:
        assert benchmark in BENCHMARKS, benchmark


def test_every_registered_estimator_is_in_the_table():
    listed = {name.rpartition(".")[2] for row in BEGUN for name in row.names}
    assert set(estimator_names()) <= listed


def test_every_benchmark_is_in_the_table_or_about_the_package():
    listed = {benchmark for row in ROWS for benchmark in row.benchmarks}
    small = {row.name for row in FAMILIES["small"]}  # what a call costs besides its work
    about = {"import", "compare_overhead", "help"}
    about |= {"ridge_parquet", "pca_parquet", "logistic_parquet", "boosting_parquet", "boosting_cluster"}
    assert set(BENCHMARKS) - listed == about | small
