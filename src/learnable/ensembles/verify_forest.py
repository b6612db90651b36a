"""Independent check of forests: every tree is walked again from its root, in plain NumPy.

Bags, columns and thresholds are drawn again from the seed. Level by level, the rows of every node are found from the
tree's own questions; counts, weights, impurities and values are recomputed; and the gain of every split is compared
with the best among its candidates. The certificate's value is the largest shortfall, as a share of the node's
weighted impurity. A leaf that the rules would have split has its whole best gain as shortfall.

Cost: O(T · depth · m · n log n) for m candidate columns a node, some ten times that of the fit. Not compared with the
best, only recomputed: splits under monotone constraints, and columns of categories with more than two classes or
several targets. Criterion "absolute_error" takes O(n²) a node and column.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..core.errors import DataError, VerificationError
from ..core.verification import Recheck
from ..trees.columns import Columns
from ..trees.layout import Trees
from ._forest import tree_seed
from .draws import draw_rows
from .split_scores import Scores, prefix_gains, scores_for

Array = NDArray[np.float64]
Ids = NDArray[np.int64]

_AGREE = 1e-9  # what sums in another order may differ by, relative to their size


class Rules(NamedTuple):
    """What a tree was allowed to do."""

    rule: Any  #: GrowthRule
    categorical: NDArray[np.bool_]
    best: bool  #: whether gains are to be compared with the best candidate
    leaves: bool  #: whether leaves have to be such that no rule would split them


def forest(model: Any, X: Any, y: Any, sample_weight: Any) -> Recheck:
    """Recompute the certificate of a random forest or of extremely randomised trees."""
    try:
        table = type(model)._door(model._draft(), X, y, sample_weight)
    except DataError as error:
        raise VerificationError(f"verify: the data are not the table of the fit: {error}") from error
    n, d = table.n_rows, table.n_columns
    if table.fingerprint != model.certificate_.fingerprint or (n, d) != (model.n_samples_, model.n_features_in_):
        return Recheck(np.inf, 0.0, table.fingerprint)
    labels = [] if table.classes is None else table.classes if isinstance(table.classes, list) else [table.classes]
    shown = [] if not labels else model.classes_ if isinstance(model.classes_, list) else [model.classes_]
    if [own.tolist() for own in labels] != [own.tolist() for own in shown]:
        return Recheck(np.inf, 0.0, f"{table.fingerprint}, but the labels are others")
    values = _binned(model, table.X) if model.max_bins is not None else table.X
    weight = model._row_weight(table)
    total = float(model.max_samples_ or (n if weight is None else weight.sum()))
    marked = model._categorical(d)
    rules = Rules(
        model._rule(n, d, total),
        np.zeros(d, dtype=bool) if marked is None else marked,
        model.monotonic_cst is None or not np.any(model.monotonic_cst),
        model.max_leaf_nodes is None and model.ccp_alpha == 0 and model.min_impurity_decrease == 0,
    )
    worst = 0.0
    for number in range(model.trees_.n_trees):
        w, rows = _weights(model, table, weight, number)
        scores = scores_for(model.criterion, table.y, [len(own) for own in labels], w)
        tree = model.trees_.tree(number)
        walked = _Walk(tree, table.X, values, w, scores, rules, tree_seed(model.seed_, number))
        worst = max(worst, walked.shortfall())
        if not labels and not _holds_targets(model, table, number, rows, walked.leaf):
            return Recheck(
                np.inf, 0.0, f"{table.fingerprint}, but the targets in the leaves of tree {number} are others"
            )
    return Recheck(worst, _AGREE, table.fingerprint)


class _Walk:
    """One tree and its rows, on the way down."""

    def __init__(self, tree: Trees, X: Any, values: Any, w: Array, scores: Scores, rules: Rules, seed: int):
        self.tree, self.w, self.scores, self.rules = tree, w, scores, rules
        self.X, self.values = _columns_of(X), _columns_of(values)
        self.rows = np.flatnonzero(w > 0)
        self.node = np.zeros(len(w), dtype=np.int64)
        self.leaf = np.full(len(w), -1, dtype=np.int64)
        self.seed = np.zeros(tree.n_nodes, dtype=np.uint64)
        self.seed[0] = _below(np.array([seed % 2**64], dtype=np.uint64), 0)[0]
        self.depth = 0

    def shortfall(self) -> float:
        """Walk down and return the largest shortfall; infinite if a recorded number is wrong."""
        worst = 0.0
        while len(self.rows):
            nodes, own = np.unique(self.node[self.rows], return_inverse=True)
            if not self._numbers_agree(nodes, own):
                return np.inf
            worst = max(worst, self._compare(nodes, own))
            self._descend(nodes)
        return worst

    def _numbers_agree(self, nodes: Ids, own: Ids) -> bool:
        tree, rows = self.tree, self.rows
        weight = np.bincount(own, self.w[rows], len(nodes))
        value, impurity = self.scores.describe(rows, own, weight)
        size = self.scores.size
        agree = np.allclose(tree.weight[nodes], weight, rtol=_AGREE, atol=0.0)
        agree &= np.array_equal(tree.n_rows[nodes], np.bincount(own, minlength=len(nodes)))
        agree &= np.allclose(tree.impurity[nodes], impurity, rtol=1e-7, atol=_AGREE * size**self.scores.power)
        return bool(
            agree and (not self.rules.best or np.allclose(tree.value[nodes], value, rtol=0.0, atol=_AGREE * size))
        )

    def _compare(self, nodes: Ids, own: Ids) -> float:
        """Return the largest shortfall of the nodes of one level."""
        tree, rule = self.tree, self.rules.rule
        mass = tree.weight[nodes] * tree.impurity[nodes] * self.scores.n_outputs
        inner = tree.feature[nodes] >= 0
        may = mass > _AGREE * tree.weight[nodes] * self.scores.size**self.scores.power
        if rule.max_depth is not None:
            may &= self.depth < rule.max_depth
        may &= (tree.n_rows[nodes] >= rule.min_samples_split) & (tree.n_rows[nodes] >= 2 * rule.min_samples_leaf)
        if (inner & ~may & (mass > 0)).any():
            return np.inf  # a split that the rules forbid
        if not self.rules.best:
            return 0.0
        asked = inner | (may & self.rules.leaves)
        best = self._best(nodes, own, asked)
        taken = np.zeros(len(nodes))
        if inner.any():
            taken = np.where(inner, self._taken(nodes, own), 0.0)
        short = np.where(asked & np.isfinite(best), best - taken, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            return float(np.max(np.where(mass > 0, short / mass, 0.0), initial=0.0))

    def _taken(self, nodes: Ids, own: Ids) -> Array:
        """Return the gain of the splits that were made."""
        went = self._goes_left(self.node[self.rows])
        return self.scores.gain_of(self.rows, own, went, len(nodes))

    def _best(self, nodes: Ids, own: Ids, asked: NDArray[np.bool_]) -> Array:
        """Return the largest gain among the candidates of each node; −∞ where there is none."""
        rule, d = self.rules.rule, self.tree_columns
        best = np.full(len(nodes), -np.inf)
        chosen, draws = self._candidates(nodes, own)
        for j in range(d):
            among = chosen[:, j] & asked
            if not among.any() or (
                self.rules.categorical[j] and (not self.scores.ordered or rule.splitter == "random")
            ):
                continue
            kept = among[own]
            rows, ids = self.rows[kept], own[kept]
            x = self.values(j, rows)
            u = draws[:, j] if rule.splitter == "random" else None
            found = prefix_gains(self.scores, rows, ids, x, len(nodes), rule, u, bool(self.rules.categorical[j]))
            best = np.maximum(best, found)
        return best

    @property
    def tree_columns(self) -> int:
        """Number of columns."""
        return len(self.rules.categorical)

    def _candidates(self, nodes: Ids, own: Ids) -> tuple[NDArray[np.bool_], Array]:
        """Return which columns each node drew, and its uniform number for each column."""
        d, most = self.tree_columns, self.rules.rule.max_features
        seeds = self.seed[nodes]
        if most is None or most >= d:
            u = np.stack([_uniform(seeds + np.uint64(j)) for j in range(d)], axis=1)
            return np.ones((len(nodes), d), dtype=bool), u
        varies = np.stack([self._varies(j, own, len(nodes)) for j in range(d)], axis=1)
        order = np.tile(np.arange(d), (len(nodes), 1))
        chosen, draws = np.zeros((len(nodes), d), dtype=bool), np.zeros((len(nodes), d))
        state, every = seeds.copy(), np.arange(len(nodes))
        useful = np.zeros(len(nodes), dtype=bool)
        for visited in range(d):
            going = np.full(len(nodes), visited < most) | ~useful
            if not going.any():
                break
            state = state + np.uint64(0x9E3779B97F4A7C15)
            pick = visited + (_uniform(state) * (d - visited)).astype(np.int64)
            here, there = order[every, visited].copy(), order[every, pick].copy()
            order[every, visited], order[every, pick] = there, here
            state = state + np.uint64(0x9E3779B97F4A7C15)
            chosen[every[going], there[going]] = True
            draws[every, there] = _uniform(state)
            useful |= varies[every, there] & going
        return chosen, draws

    def _varies(self, j: int, own: Ids, count: int) -> NDArray[np.bool_]:
        x = self.values(j, self.rows)
        low, high = np.full(count, np.inf), np.full(count, -np.inf)
        present = ~np.isnan(x)
        np.minimum.at(low, own[present], x[present])
        np.maximum.at(high, own[present], x[present])
        gaps = np.bincount(own, ~present, count)
        return (high > low) | ((gaps > 0) & (gaps < np.bincount(own, minlength=count)))

    def _goes_left(self, node: Ids) -> NDArray[np.bool_]:
        """Answer the questions of the nodes for their rows."""
        tree, rows = self.tree, self.rows
        feature, went = tree.feature[node], np.zeros(len(rows), dtype=bool)
        for j in np.unique(feature[feature >= 0]):
            here = feature == j
            x, at = self.X(int(j), rows[here]), node[here]
            left = x <= tree.threshold[at]
            for k in np.flatnonzero(tree.category[at] >= 0):
                begin = int(tree.category[at[k]])
                words, code = tree.bits[begin + 1 : begin + 1 + int(tree.bits[begin])], x[k]
                known = code >= 0 and code < 32 * len(words)
                left[k] = bool(words[int(code) // 32] >> np.uint32(int(code) % 32) & 1) if known else False
                if not known:
                    left[k] = bool(tree.missing_left[at[k]])
            went[here] = np.where(np.isnan(x), tree.missing_left[at] == 1, left)
        return went

    def _descend(self, nodes: Ids) -> None:
        tree = self.tree
        node = self.node[self.rows]
        done = tree.feature[node] < 0
        self.leaf[self.rows[done]] = node[done]
        went = self._goes_left(node)
        inner = nodes[tree.feature[nodes] >= 0]
        for side, children in enumerate((tree.left, tree.right)):
            self.seed[children[inner]] = _below(self.seed[inner], side)
        below = np.where(went, tree.left[node], tree.right[node])
        self.rows = self.rows[~done]
        self.node[self.rows] = below[~done]
        self.depth += 1


def _weights(model: Any, table: Any, weight: Array | None, number: int) -> tuple[Array, NDArray[Any]]:
    """Return the weights of the rows in one tree, and its bag."""
    n, draw = table.n_rows, model._draw()
    if draw is None:
        return np.ones(n) if weight is None else weight, np.arange(n)
    rows = draw_rows(draw._replace(weight=weight), number)
    counts = np.bincount(rows, minlength=n).astype(np.float64)
    if getattr(model, "class_weight", None) == "balanced_subsample":
        for codes in table.y.reshape(n, -1).T:  # every class that was drawn gets the same total
            totals = np.bincount(codes[rows])
            share = len(rows) / (np.count_nonzero(totals) * np.maximum(totals, 1))
            counts = counts * share[np.minimum(codes, len(share) - 1)]
    return counts, rows


def _holds_targets(model: Any, table: Any, number: int, rows: NDArray[Any], leaf: Ids) -> bool:
    held = model.leaves_
    first = int(held.sizes[:number].sum())
    mine = held.rows[first : first + int(held.sizes[number])]
    same = np.array_equal(held.y, table.y.reshape(table.n_rows, -1)) and np.array_equal(np.sort(mine), np.sort(rows))
    return bool(same and (np.diff(leaf[mine]) >= 0).all())


def _binned(model: Any, X: Any) -> Any:
    """Return X with the number of the bin in place of the value; the edges of the bins define the candidates."""
    columns = Columns.build(X, max_bins=model.max_bins, categorical=model._categorical(X.shape[1]))
    if columns.sparse:
        dense = Columns.build(X.toarray(), max_bins=model.max_bins, categorical=model._categorical(X.shape[1]))
        columns = dense
    codes = columns.codes.astype(np.float64)
    codes[codes == columns.n_codes[:, None]] = np.nan
    return codes.T


def _columns_of(X: Any) -> Any:
    """Return the function that gives some rows of a column as float64."""
    if sp.issparse(X):
        by_column = X.tocsc()

        def dense(j: int, rows: NDArray[Any]) -> Array:
            column = np.zeros(X.shape[0])
            part = slice(by_column.indptr[j], by_column.indptr[j + 1])
            column[by_column.indices[part]] = by_column.data[part]
            return column[rows]

        return dense
    return lambda j, rows: np.asarray(X[rows, j], dtype=np.float64)


def _mix(z: NDArray[np.uint64]) -> NDArray[np.uint64]:
    with np.errstate(over="ignore"):
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def _below(seed: NDArray[np.uint64], side: int) -> NDArray[np.uint64]:
    """Return the seeds of left (0) or right (1) children."""
    with np.errstate(over="ignore"):
        return _mix(seed * np.uint64(2) + np.uint64(side + 0x632BE59BD9B4E019))


def _uniform(state: NDArray[np.uint64]) -> Array:
    return (_mix(state) >> np.uint64(11)).astype(np.float64) / 2.0**53
