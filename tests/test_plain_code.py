"""Plain code: one assignment per statement, no conditional expression inside another."""

import ast
from functools import cache
from pathlib import Path

import pytest
from tools.tuning import constants_of

import learnable

pytestmark = pytest.mark.sampled(1)  # every case is a promise of its own


SOURCE = Path(learnable.__file__).parent
PLAIN = (
    "cli", "core", "data", "ensembles/adaboost", "ensembles/explain", "ensembles/majority", "evaluation", "generative",
    "kernel", "lab", "linear", "manifold", "meta", "mixtures", "neighbors", "neural",
    "probability", "report", "risk", "sampling",
    "sequences", "solvers", "theory", "topics", "trees/draw", "trees/exact", "trees/pruning", "trees/random",
)  # fmt: skip


#: Families whose tuning constants all say what they trade; `python -m tools.tuning linear` prints the table of one.
TUNED = (
    "ensembles", "generative", "kernel", "linear", "meta", "mixtures", "neighbors", "risk", "sequences", "solvers",
    "trees",
)  # fmt: skip


@cache
def trees(package):
    # Compiled kernels keep pairs of vectors side by side.
    return [
        (path.relative_to(SOURCE).as_posix(), list(ast.walk(ast.parse(path.read_text(encoding="utf-8")))))
        for path in sorted((SOURCE / package).rglob("*.py"))
        if not path.name.endswith("_kernels.py")
    ]


def joins_unrelated_values(node):
    if not (isinstance(node, ast.Assign) and isinstance(node.value, ast.Tuple)):
        return False
    targets = [target for target in node.targets if isinstance(target, ast.Tuple)]
    values = sorted(map(ast.unparse, node.value.elts))
    return any(sorted(map(ast.unparse, target.elts)) != values for target in targets)  # a swap is fine


@pytest.mark.parametrize("package", PLAIN)
def test_no_statement_assigns_unrelated_values(package):
    found = []
    for name, nodes in trees(package):
        found += [f"{name}:{node.lineno}" for node in nodes if joins_unrelated_values(node)]
    assert not found


@pytest.mark.parametrize("package", PLAIN)
def test_no_conditional_expression_holds_another(package):
    found = []
    for name, nodes in trees(package):
        choices = [node for node in nodes if isinstance(node, ast.IfExp)]
        found += [
            f"{name}:{node.lineno}"
            for node in choices
            if any(isinstance(part, ast.IfExp) for part in (node.body, node.orelse, node.test))
        ]
    assert not found


@pytest.mark.parametrize("family", TUNED)
def test_tuning_constants_say_what_they_trade(family):
    found = constants_of(family, SOURCE)
    assert found
    assert not [f"{constant.place} {constant.name}" for constant in found if not constant.words]


def test_words_of_a_constant_are_its_own_or_those_above_its_run(tmp_path):
    (tmp_path / "family").mkdir()
    (tmp_path / "family" / "file.py").write_text(
        "_A = 2**3  # own words\n_B = 4\n\n# above\n# both\n_C = -1e-3\n_D: int = 7\n\n_E = 1\n_F = len('x')\nlow = 3\n"
    )
    found = [(constant.name, constant.words) for constant in constants_of("family", tmp_path)]
    assert found == [("_A", "own words"), ("_B", ""), ("_C", "above both"), ("_D", "above both"), ("_E", "")]
