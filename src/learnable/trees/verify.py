"""Independent check of grown trees: a tree is walked again from its root, in plain NumPy, all nodes of a level at once.

The rows of every node are found from the tree's own questions; counts, weights, impurities and values are recomputed;
the gain of every split is compared with the best among its candidates. What was drawn (columns, thresholds) is drawn
again from the seed. The certificate's value is the largest shortfall, as a share of the node's weighted impurity. A
leaf that the rules would have split has its whole best gain as shortfall; in best-first trees, only if it exceeds a
gain that was taken later.

Cost: O(depth · m · n log n) for m candidate columns per node, some ten times that of the fit. Not compared with the
best, only recomputed: columns of categories with more than two classes or several targets. Of a pruned tree the leaves
are not asked. Criterion "absolute_error" takes O(n²) per node and column.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ..core import Array, NDArray, Recheck, flaw_of
from ..data.checking import read_table
from .verify_scores import Scores, prefix_gains, scores_for

Ids = NDArray[np.int64]

AGREE = 1e-9  # what sums in another order may differ by, relative to their size


class Limits(NamedTuple):
    """Where growth stops, and what a split may be; see `GrowthRule`, which a fit has instead."""

    max_depth: int | None = None
    max_leaf_nodes: int | None = None
    min_samples_split: int = 2
    min_samples_leaf: int = 1
    min_weight_leaf: float = 0.0
    max_features: int | None = None
    min_impurity_decrease: float = 0.0
    splitter: str = "best"
    monotonic: NDArray[Any] | None = None

    @property
    def is_monotone(self) -> bool:
        """Whether some column is constrained."""
        return self.monotonic is not None and bool(np.any(self.monotonic))


class Rules(NamedTuple):
    """What a tree was allowed to do."""

    rule: Limits
    categorical: NDArray[np.bool_]  #: (d,)
    leaves: bool  #: whether leaves have to be such that no rule would split them; not of pruned trees


def decision_tree(model: Any, X: Any, y: Any, sample_weight: Any) -> Recheck:
    """Recompute the certificate of a decision tree."""
    table = read_table(model, X, y, sample_weight, again=model._draft())
    d = table.n_columns
    if table.fingerprint != model.certificate_.fingerprint:
        return Recheck(np.inf, 0.0, table.fingerprint)
    labels = labels_of(table.classes)
    shown = labels_of(getattr(model, "classes_", None))
    if [own.tolist() for own in labels] != [own.tolist() for own in shown]:
        return Recheck(np.inf, 0.0, f"{table.fingerprint}, but the labels are others")
    if flaw := flaw_of_tree(model, table):
        return Recheck(np.inf, 0.0, f"{table.fingerprint}, but {flaw}")
    weight = model._row_weight(table)
    categorical = stated_categories(model, d)
    rules = Rules(stated_limits(model, table, weight, model.splitter), categorical, model.ccp_alpha == 0.0)
    w = np.ones(table.n_rows) if weight is None else weight
    scores = scores_for(model.criterion, table.y, [len(own) for own in labels], w)
    values = table.X if model.max_bins is None else bin_numbers(table.X, model.max_bins, categorical)
    walk = TreeWalk(model.trees_, table.X, values, w, scores, rules, model.seed_)
    shortfall = walk.shortfall()
    asked = (rules.rule.max_features or d, _asked_alpha(model))
    if shortfall <= AGREE and (model.max_features_, model.ccp_alpha_) != asked:
        return Recheck(np.inf, 0.0, f"{table.fingerprint}, but max_features_ or ccp_alpha_ is not what was asked for")
    return Recheck(shortfall, AGREE, table.fingerprint)


def flaw_of_tree(model: Any, table: Any) -> str:
    """Say what is wrong with the shapes and ranges of a model's arrays; nothing if nothing is."""
    n_outputs = int(np.prod(table.y_shape, initial=1))
    wrong = "" if model.n_outputs_ == n_outputs else f"n_outputs_ is {model.n_outputs_}, not {n_outputs}"
    return flaw_of([model]) or wrong


def labels_of(classes: Any) -> list[Any]:
    """Return the classes of each target: none for numbers, one array for one target."""
    if classes is None:
        return []
    return classes if isinstance(classes, list) else [classes]


def stated_limits(model: Any, table: Any, weight: Array | None, splitter: str) -> Limits:
    """Return the limits that the parameters of a model state for a table whose rows have these weights."""
    n = table.n_rows
    d = table.n_columns
    signs = None if model.monotonic_cst is None else np.asarray(model.monotonic_cst)
    return Limits(
        max_depth=model.max_depth,
        max_leaf_nodes=model.max_leaf_nodes,
        min_samples_split=max(2, _number_of(model.min_samples_split, n)),
        min_samples_leaf=_number_of(model.min_samples_leaf, n),
        min_weight_leaf=model.min_weight_fraction_leaf * (n if weight is None else float(weight.sum())),
        max_features=_number_of_columns(model.max_features, d),
        min_impurity_decrease=model.min_impurity_decrease,
        splitter=splitter,
        monotonic=signs,
    )


def _number_of(value: float, n_rows: int) -> int:
    """Return a number of rows that was given as such, or as a share."""
    return int(value) if isinstance(value, (int, np.integer)) else int(np.ceil(value * n_rows))


def _number_of_columns(value: Any, d: int) -> int:
    """Return how many of d columns a node draws."""
    if value is None or isinstance(value, (int, np.integer)):
        return d if value is None else int(value)
    shares = {"sqrt": np.sqrt(d), "log2": np.log2(d), "third": d / 3}
    return max(1, int(shares[value] if isinstance(value, str) else value * d))


def stated_categories(model: Any, d: int) -> NDArray[np.bool_]:
    """Return which columns hold codes of categories."""
    given = np.asarray([] if model.categorical_features is None else model.categorical_features)
    marked = np.zeros(d, dtype=bool)
    if given.dtype == bool and given.size:
        return given
    if given.dtype.kind in "OU":
        given = np.flatnonzero(np.isin(model.feature_names_in_, given))
    marked[given.astype(np.int64)] = True
    return marked


def _asked_alpha(model: Any) -> float:
    """Return λ of the pruning: a parameter, or what cross-validation has chosen."""
    return float(model.alpha_choice_.alpha if isinstance(model.ccp_alpha, str) else model.ccp_alpha)


class TreeWalk:
    """One tree and its rows, on the way down.

    Parameters
    ----------
    tree : Trees
        One tree.
    X : (n, d) array or sparse array
        The table.
    values : (n, d) array or sparse array
        What defines the candidates: X, or the numbers of its bins.
    w : (n,) float64
        Weights; rows of weight zero are not in the tree.
    scores : Scores
        Targets and criterion.
    rules : Rules
        What the tree was allowed to do.
    seed : int
        Of what it drew.

    Examples
    --------
    >>> from learnable.trees import Columns, GrowthRule, grow
    >>> from learnable.trees.criteria import Target
    >>> X, y, w = np.arange(4.0)[:, None], np.array([0.0, 1.0, 5.0, 5.0]), np.ones(4)
    >>> tree = grow(Columns.build(X), Target.numbers(y), GrowthRule()).tree
    >>> rules = Rules(GrowthRule(), np.zeros(1, bool), True)
    >>> TreeWalk(tree, X, X, w, scores_for("squared_error", y, [], w), rules, 0).shortfall() < 1e-12
    True
    """

    def __init__(self, tree: Any, X: Any, values: Any, w: Array, scores: Scores, rules: Rules, seed: int) -> None:
        self.tree = tree
        self.w = w
        self.scores = scores
        self.rules = rules
        self.X = columns_of(X)
        self.values = columns_of(values)
        self.exact = values is X
        self.rows = np.flatnonzero(w > 0)
        self.node = np.zeros(len(w), dtype=np.int64)
        self.leaf = np.full(len(w), -1, dtype=np.int64)  #: where each row ended
        self.seed = np.zeros(tree.n_nodes, dtype=np.uint64)
        self.seed[0] = np.uint64(seed % 2**64)
        self.bounds = np.tile([-np.inf, np.inf], (tree.n_nodes, 1))
        self.gain = np.full(tree.n_nodes, np.nan)  #: taken at a split, possible at a leaf
        self.depth = 0
        self.whole = float(w.sum())

    def shortfall(self) -> float:
        """Walk down and return the largest shortfall; infinite if a recorded number is wrong."""
        worst = 0.0
        while len(self.rows):
            nodes, own = np.unique(self.node[self.rows], return_inverse=True)
            if not self._numbers_agree(nodes, own) or not self._thresholds_agree(nodes, own):
                return np.inf
            if not self._directions_agree(nodes, own):
                return np.inf
            worst = max(worst, self._compare(nodes, own))
            self._descend(nodes, own)
        if self.rules.rule.max_leaf_nodes is not None and self.rules.leaves:
            worst = max(worst, self._out_of_order())
        return worst

    def _numbers_agree(self, nodes: Ids, own: Ids) -> bool:
        tree = self.tree
        rows = self.rows
        size = self.scores.size
        weight = np.bincount(own, self.w[rows], len(nodes)).astype(np.float64)
        value, impurity = self.scores.describe(rows, own, weight)
        if self.rules.rule.is_monotone:
            at = 1 if self.scores.n_classes else 0
            value[:, at] = np.clip(value[:, at], *self.bounds[nodes].T)
            value[:, 0] = 1.0 - value[:, 1] if at else value[:, 0]
        agree = np.allclose(tree.weight[nodes], weight, rtol=AGREE, atol=0.0)
        agree &= np.array_equal(tree.n_rows[nodes], np.bincount(own, minlength=len(nodes)))
        agree &= np.allclose(tree.impurity[nodes], impurity, rtol=1e-7, atol=AGREE * size**self.scores.power)
        return bool(agree and np.allclose(tree.value[nodes], value, rtol=0.0, atol=AGREE * size))

    def _thresholds_agree(self, nodes: Ids, own: Ids) -> bool:
        """Tell whether thresholds are the middle between both sides, or drawn again; of bins only the sides count."""
        tree = self.tree
        random = self.rules.rule.splitter == "random"
        if not self.exact or not (tree.feature[nodes] >= 0).any():
            return True
        low, below, above, high = (np.full(len(nodes), end) for end in (np.inf, -np.inf, np.inf, -np.inf))
        for j in np.unique(tree.feature[nodes][tree.feature[nodes] >= 0]):
            here = tree.feature[nodes][own] == j
            x = self.X(int(j), self.rows[here])
            at = own[here]
            left = x <= tree.threshold[nodes][at]
            right = x > tree.threshold[nodes][at]
            np.minimum.at(low, at[left], x[left])
            np.maximum.at(below, at[left], x[left])
            np.minimum.at(above, at[right], x[right])
            np.maximum.at(high, at[right], x[right])
        asked = (tree.feature[nodes] >= 0) & (tree.category[nodes] < 0) & np.isfinite(below) & np.isfinite(above)
        with np.errstate(invalid="ignore"):
            wanted = below / 2 + above / 2
            if random:
                u = self._candidates(nodes, own)[1][np.arange(len(nodes)), np.maximum(tree.feature[nodes], 0)]
                wanted = np.maximum(low * (1.0 - u) + high * u, below)
            slack = 1e-6 * (above - below) + 4 * np.spacing(np.maximum(np.abs(below), np.abs(above)))
            return bool((np.abs(tree.threshold[nodes] - wanted) <= slack)[asked].all())

    def _directions_agree(self, nodes: Ids, own: Ids) -> bool:
        """Tell whether missing values go to the larger side where none were seen; where some were, rows tell."""
        tree = self.tree
        feature = self.tree.feature[nodes]
        inner = feature >= 0
        seen = np.zeros(len(nodes), dtype=bool)
        for j in np.unique(feature[inner]):
            here = feature[own] == j
            np.logical_or.at(seen, own[here], np.isnan(self.X(int(j), self.rows[here])))
        n_left = tree.n_rows[np.where(inner, tree.left[nodes], 0)]
        expected = inner & (2 * n_left > tree.n_rows[nodes])
        return bool(((tree.missing_left[nodes] == 1) == expected)[~seen].all())

    def leaves_of_all(self) -> Ids:
        """Return the leaf in which each row of the table ends, also of those that the tree was not grown on."""
        return leaves_of(self.tree, self.X, len(self.w))

    def _compare(self, nodes: Ids, own: Ids) -> float:
        """Return the largest shortfall of the nodes of one level."""
        tree = self.tree
        rule = self.rules.rule
        scores = self.scores
        mass = tree.weight[nodes] * tree.impurity[nodes] * scores.n_outputs
        inner = tree.feature[nodes] >= 0
        may = (tree.n_rows[nodes] >= rule.min_samples_split) & (tree.n_rows[nodes] >= 2 * rule.min_samples_leaf)
        if rule.max_depth is not None:
            may &= self.depth < rule.max_depth
        if (inner & ~may).any():
            return np.inf  # a split that the rules forbid
        may &= mass > AGREE * tree.weight[nodes] * scores.size**scores.power  # rounding may call the rest pure
        taken = np.where(inner, self._taken(nodes, own), 0.0) if inner.any() else np.zeros(len(nodes))
        needed = rule.min_impurity_decrease * self.whole * scores.n_outputs
        if (inner & (taken < needed * (1.0 - AGREE) - AGREE * mass)).any():
            return np.inf
        asked = inner | (may & self.rules.leaves)
        best = self._best(nodes, own, asked)
        self.gain[nodes] = np.where(inner, taken, np.where(asked, best, -np.inf))
        ready = inner if rule.max_leaf_nodes is not None else asked & (inner | (best >= needed * (1.0 + AGREE)))
        short = np.where(ready & np.isfinite(best), best - taken, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            return float(np.max(np.where(mass > 0, short / mass, 0.0), initial=0.0))

    def _out_of_order(self) -> float:
        """Return by how much, as a share of the root's impurity, a leaf's gain exceeds one that was taken later."""
        tree = self.tree
        inner = np.flatnonzero(tree.feature >= 0)
        taken = np.full((tree.n_nodes - 1) // 2 + 1, np.inf)  # by step: children are numbered as they are made
        taken[(tree.left[inner] - 1) // 2] = self.gain[inner]
        later = np.minimum.accumulate(taken[::-1])[::-1]
        leaves = np.flatnonzero(tree.feature < 0)
        born = np.where(leaves > 0, (leaves - 1) // 2 + 1, 0)
        excess = self.gain[leaves] - later[np.minimum(born, len(later) - 1)]
        if tree.n_leaves < int(self.rules.rule.max_leaf_nodes or 0):  # there was room for more
            needed = self.rules.rule.min_impurity_decrease * self.whole * self.scores.n_outputs
            excess = np.maximum(excess, np.where(self.gain[leaves] >= needed * (1 + AGREE), self.gain[leaves], -np.inf))
        mass = tree.weight[0] * tree.impurity[0] * self.scores.n_outputs
        return float(np.max(np.where(np.isfinite(excess), excess, 0.0), initial=0.0)) / mass if mass > 0 else 0.0

    def _taken(self, nodes: Ids, own: Ids) -> Array:
        """Return the gain of the splits that were made."""
        went = goes_left(self.tree, self.node[self.rows], self.rows, self.X)
        return self.scores.gain_of(self.rows, own, went, len(nodes))

    def _best(self, nodes: Ids, own: Ids, asked: NDArray[np.bool_]) -> Array:
        """Return the largest gain among the candidates of each node; −∞ where there is none."""
        rule = self.rules.rule
        scores = self.scores
        d = len(self.rules.categorical)
        best = np.full(len(nodes), -np.inf)
        chosen, draws = self._candidates(nodes, own)
        for j in range(d):
            category = bool(self.rules.categorical[j])
            among = chosen[:, j] & asked
            if not among.any() or (category and (not scores.ordered or rule.splitter == "random")):
                continue
            kept = among[own]
            rows = self.rows[kept]
            ids = own[kept]
            u = draws[:, j] if rule.splitter == "random" else None
            sign = int(np.asarray(rule.monotonic)[j]) if rule.is_monotone else 0
            bounds = (self.bounds[nodes], sign) if rule.is_monotone else None
            x = self.values(j, rows)
            best = np.maximum(best, prefix_gains(scores, rows, ids, x, len(nodes), rule, u, category, bounds))
        return best

    def _candidates(self, nodes: Ids, own: Ids) -> tuple[NDArray[np.bool_], Array]:
        """Return which columns each node drew, and its uniform number for each column."""
        d = len(self.rules.categorical)
        most = self.rules.rule.max_features
        seeds = self.seed[nodes]
        if most is None or most >= d:
            u = np.stack([_uniform(seeds + np.uint64(j)) for j in range(d)], axis=1)
            return np.ones((len(nodes), d), dtype=bool), u
        varies = np.stack([self._varies(j, own, len(nodes)) for j in range(d)], axis=1)
        order = np.tile(np.arange(d), (len(nodes), 1))
        chosen = np.zeros((len(nodes), d), dtype=bool)
        draws = np.zeros((len(nodes), d))
        state = seeds.copy()
        every = np.arange(len(nodes))
        useful = np.zeros(len(nodes), dtype=bool)
        for visited in range(d):
            going = np.full(len(nodes), visited < most) | ~useful
            if not going.any():
                break
            state = state + np.uint64(0x9E3779B97F4A7C15)
            pick = visited + (_uniform(state) * (d - visited)).astype(np.int64)
            here = order[every, visited].copy()
            there = order[every, pick].copy()
            order[every, visited] = there
            order[every, pick] = here
            state = state + np.uint64(0x9E3779B97F4A7C15)
            chosen[every[going], there[going]] = True
            draws[every, there] = _uniform(state)
            useful |= varies[every, there] & going
        return chosen, draws

    def _varies(self, j: int, own: Ids, count: int) -> NDArray[np.bool_]:
        x = self.values(j, self.rows)
        low = np.full(count, np.inf)
        high = np.full(count, -np.inf)
        present = ~np.isnan(x)
        np.minimum.at(low, own[present], x[present])
        np.maximum.at(high, own[present], x[present])
        gaps = np.bincount(own, ~present, count)
        return (high > low) | ((gaps > 0) & (gaps < np.bincount(own, minlength=count)))

    def _descend(self, nodes: Ids, own: Ids) -> None:
        tree = self.tree
        rule = self.rules.rule
        node = self.node[self.rows]
        done = tree.feature[node] < 0
        self.leaf[self.rows[done]] = node[done]
        went = goes_left(tree, node, self.rows, self.X)
        inner = nodes[tree.feature[nodes] >= 0]
        for side, children in enumerate((tree.left, tree.right)):
            self.seed[children[inner]] = _below(self.seed[inner], side)
            self.bounds[children[inner]] = self.bounds[inner]
        below = np.where(went, tree.left[node], tree.right[node])
        self.rows = self.rows[~done]
        self.node[self.rows] = below[~done]
        self.depth += 1
        if rule.is_monotone and len(inner):
            self._bound(inner, np.asarray(rule.monotonic)[tree.feature[inner]])

    def _bound(self, inner: Ids, sign: NDArray[Any]) -> None:
        """Let the middle of both children's values bound them."""
        tree = self.tree
        at = 1 if self.scores.n_classes else 0
        nodes, own = np.unique(self.node[self.rows], return_inverse=True)
        value = np.zeros(tree.n_nodes)
        weight = np.bincount(own, self.w[self.rows]).astype(np.float64)
        value[nodes] = self.scores.describe(self.rows, own, weight)[0][:, at]
        left = tree.left[inner]
        right = tree.right[inner]
        low, high = self.bounds[inner].T  # what the nodes above allow still holds
        middle = (np.clip(value[left], low, high) + np.clip(value[right], low, high)) / 2
        up = sign > 0
        down = sign < 0
        self.bounds[left[up], 1] = self.bounds[right[up], 0] = middle[up]
        self.bounds[left[down], 0] = self.bounds[right[down], 1] = middle[down]


def goes_left(tree: Any, node: Ids, rows: Ids, column: Callable[[int, Ids], Array]) -> NDArray[np.bool_]:
    """Return what the nodes answer for the rows beside them; column(j, rows) are values. Leaves answer False."""
    feature = tree.feature[node]
    went = np.zeros(len(rows), dtype=bool)
    for j in np.unique(feature[feature >= 0]):
        here = feature == j
        x = column(int(j), rows[here])
        at = node[here]
        left = x <= tree.threshold[at]
        for i in np.unique(at[tree.category[at] >= 0]):
            begin = int(tree.category[i])
            mine = at == i
            words = tree.bits[begin + 1 : begin + 1 + int(tree.bits[begin])]
            members = np.unpackbits(words.view(np.uint8), bitorder="little").astype(bool)
            code = np.where((x[mine] >= 0) & (x[mine] < len(members)), x[mine], -1).astype(np.int64)
            left[mine] = np.where(code < 0, tree.missing_left[i] == 1, members[code])
        went[here] = np.where(np.isnan(x), tree.missing_left[at] == 1, left)
    return went


def leaves_of(tree: Any, column: Callable[[int, Ids], Array], n_rows: int) -> Ids:
    """Return the leaf in which each row ends."""
    node = np.zeros(n_rows, dtype=np.int64)
    while len(rows := np.flatnonzero(tree.feature[node] >= 0)):
        went = goes_left(tree, node[rows], rows, column)
        node[rows] = np.where(went, tree.left[node[rows]], tree.right[node[rows]])
    return node


def bin_numbers(X: Any, max_bins: int, categorical: NDArray[np.bool_] | None = None) -> Array:
    """Return X with the number of the bin in place of the value; the edges of the bins define the candidates."""
    by_column = X.tocsc() if sp.issparse(X) else X
    n, d = X.shape
    codes = np.empty((n, d))
    for j in range(d):
        x = whole = np.asarray(by_column[:, [j]].toarray()[:, 0] if sp.issparse(X) else X[:, j], dtype=np.float64)
        if sp.issparse(X):  # zeros that are not stored are one value, and weigh as much as the others
            stored = by_column.data[by_column.indptr[j] : by_column.indptr[j + 1]].astype(np.float64)
            x = stored if len(stored) == n else np.append(stored, 0.0)
        if categorical is not None and categorical[j]:
            codes[:, j] = whole
            continue
        edges = _bin_edges(x[~np.isnan(x)], n - len(x), max_bins)
        codes[:, j] = np.where(np.isnan(whole), np.nan, np.searchsorted(edges, whole))
    return codes


def _bin_edges(present: Array, n_zeros: int, max_bins: int) -> Array:
    """Return the ends of bins of about equal size, from some 200,000 of the values and further zeros."""
    step = -(-(len(present) + n_zeros) // 200_000) or 1
    sample = np.sort(present[::step])
    distinct = np.unique(sample)
    below = distinct[:-1]
    above = distinct[1:]
    if len(distinct) > max_bins:
        sample = np.sort(np.r_[sample, np.zeros(n_zeros // step)])
        above = sample[np.linspace(0, len(sample), max_bins + 1)[1:-1].astype(np.int64)]
        below = distinct[np.maximum(np.searchsorted(distinct, above) - 1, 0)]
    middle = below / 2 + above / 2
    edges = np.unique(np.where((middle >= above) | (middle < below), below, middle))
    return edges[(edges >= distinct[0]) & (edges < distinct[-1])] if len(distinct) else edges


def columns_of(X: Any) -> Any:
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
