"""Best subsets by relaxations: groups of columns, β ≥ 0, more columns than rows, logistic loss; and splicing alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core import AnyArray, Certificate, NDArray, ParameterError, Run
from ...data.door import Table
from .best_subset import cost_of, fold_errors
from .compressed import FLOOR, Compressed, column_numbers
from .relaxation import SquaredLoss, Tree, Units, grow, search, splice

#: Share by which an exchange may lower the objective after splicing has ended.
SPLICED = 1e-8
_PROOF = 2**23  # float64 of leaves: 64 MB
_MOST_SIZES = 100  # sizes that splicing tries by itself


def units_of(owner: str, model: Any, p: int) -> Units:
    """Return the groups of columns: those given, and every other column by itself."""
    if model.groups is None:
        return list(np.arange(p, dtype=np.intp)[:, None])
    given = [column_numbers(owner, "groups", one, model) for one in model.groups]
    named = [j for one in given for j in one]
    if len(set(named)) < len(named):
        twice = next(j for j in named if named.count(j) > 1)
        raise ParameterError(f"{owner}: groups must not share columns; column {twice} is in two of them.")
    alone = [[j] for j in range(p) if j not in set(named)]
    units = sorted([*given, *alone], key=lambda one: one[0])
    return [np.array(one, dtype=np.intp) for one in units]


def required_units(units: Units, required: list[int]) -> NDArray[np.intp]:
    """Return the groups that hold a required column."""
    wanted = set(required)
    holds = (g for g, unit in enumerate(units) if not wanted.isdisjoint(unit.tolist()))
    return np.fromiter(holds if wanted else (), dtype=np.intp)


def sizes_of(model: Any, n_units: int, n_required: int, n_rows: int) -> NDArray[np.intp]:
    """Return the sizes to solve; splicing by itself stops where no subset is estimable."""
    low, high = model._range(n_units, n_required)
    if model.size is None and model.method == "splicing":
        spread = np.log(max(np.log(max(n_rows, 3)), 1.1)) * np.log(max(n_units, 3))
        high = min(high, max(low, int(n_rows / spread), 1), _MOST_SIZES)
    return np.arange(low, high + 1)


def fit_grouped(model: Any, table: Table, problem: Compressed, required: list[int], run: Run) -> Certificate:
    """Solve every size by the tree of relaxations, or by splicing, and keep what the criterion prefers."""
    owner = type(model).__name__
    p = table.n_columns
    units = units_of(owner, model, p)
    inside = required_units(units, required)
    if model.alpha == 0 and model.method == "exact" and p > len(problem.rows):
        raise ParameterError(
            f"{owner}: with more columns ({p}) than rows a search needs bounded coefficients to prove anything. Set "
            "alpha > 0, a ridge penalty, or method='splicing', which proves no optimum."
        )
    sizes = sizes_of(model, len(units), len(inside), len(problem.rows))
    if model.size is None and model.criterion == "cv":
        sizes = sizes[[_size_by_folds(model, table, units, inside, sizes, run)]]
    loss = loss_of(problem, units, model)
    trees = []
    start = inside
    for size in sizes.tolist():
        trees.append(_solve(model, loss, int(size), inside, start, run))
        start = trees[-1].chosen
    _keep(model, problem, units, sizes, trees)
    nodes = max(1, sum(tree.nodes for tree in trees))
    loss.halted = run.should_stop
    if model.method == "splicing":
        return Certificate("greedy", 0.0, SPLICED, None, nodes, by_construction=True)
    value = max(gap_of(tree, loss.scale) for tree in trees)
    return Certificate("gap", value, model.tol, value if np.isfinite(value) else None, nodes)


def loss_of(problem: Compressed, units: Units, model: Any) -> SquaredLoss:
    """Return the objective in the units of the data."""
    return SquaredLoss(problem.rows, problem.target, model.alpha, units, model.positive)


def gap_of(tree: Tree, scale: float) -> float:
    """Return how far above the optimum a subset may be, relative to it."""
    return 0.0 if scale == 0 else max(0.0, tree.value - tree.bound) / max(tree.bound, 1e-8 * scale)


def _solve(model: Any, loss: Any, size: int, inside: AnyArray, start: AnyArray, run: Run) -> Tree:
    if model.method == "splicing":
        chosen, beta, value = splice(loss, grow(loss, start, size), inside)
        run.progress(size, value)
        return Tree(chosen, beta, value, -np.inf, [], [], 1)
    return search(loss, size, inside, start, model.tol, lambda nodes, value: run.progress(nodes, value))


def _size_by_folds(model: Any, table: Table, units: Units, inside: AnyArray, sizes: AnyArray, run: Run) -> int:
    def solve(problem: Compressed) -> AnyArray:
        loss = loss_of(problem, units, model)
        start = inside
        found = []
        for size in sizes.tolist():
            tree = _solve(model, loss, int(size), inside, start, run)
            start = tree.chosen
            found.append(tree.beta)
        return np.column_stack(found)

    model.cv_errors_ = fold_errors(type(model).__name__, model, table, solve)
    return int(np.argmin(model.cv_errors_.mean(axis=1)))


def _keep(model: Any, problem: Compressed, units: Units, sizes: AnyArray, trees: list[Tree]) -> None:
    """Store subsets, objectives and proofs, and the coefficients of the subset that the criterion prefers."""
    p = len(problem.scale)
    subsets = np.zeros((len(sizes), p), dtype=bool)
    for row, tree in enumerate(trees):
        for unit in tree.chosen.tolist():
            subsets[row, units[unit]] = True
    values = np.array([tree.value for tree in trees])
    floor = max(FLOOR * problem.total, np.finfo(float).tiny)
    cost = cost_of(type(model).__name__, model.criterion, problem)
    chosen = int(np.argmin(cost.of(np.maximum(values, floor), subsets.sum(axis=1))))
    coef = trees[chosen].beta
    model._set_coefficients(coef[:, None].copy(), np.array([problem.y_mean - problem.x_mean @ coef]), ())
    model.sizes_ = np.asarray(sizes)
    model.subsets_ = subsets
    model.objective_path_ = values
    model.support_ = subsets[chosen].copy()
    store_proof(model, trees, len(units))


def store_proof(model: Any, trees: list[Tree], n_units: int) -> None:
    """Store the trees one after the other; nothing if they are too large."""
    leaves = [leaf for tree in trees for leaf in tree.leaves]
    fits = len(leaves) * n_units <= _PROOF
    model.proof_ = np.array([step for tree in trees for step in tree.proof] if fits else [], dtype=np.int16)
    model.leaves_ = np.array(leaves).reshape(-1, n_units) if fits else np.zeros((0, n_units))
