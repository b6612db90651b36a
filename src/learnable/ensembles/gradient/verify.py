"""Independent check of boosted models: every round is played again in plain NumPy.

Scores start at the baseline, which is compared with the best constant. In round m the rows are drawn again,
derivatives are computed from formulas of the checker's own, every tree is walked from its root, and compared are: the
rows of every node; the leaf values, multiplied by the step, with their definition; the gain of every split with the
best among all cuts of all columns (sets of categories: in the order of −G/(H + smoothing)), under the same limits; the
training loss after the round with the record; and the step with the law of `driver`: the round does not raise the loss,
and if its step was halved, twice the step would have. The certificate's value is the largest shortfall of a gain, as a
share of what the tree could gain if every row were a leaf, or infinite if a number is wrong.

Cost: O(T · depth · d · n). Where columns are drawn, or constraints hold, splits are not compared with the best. Leaves
are not asked whether they could have been split. Of losses with a kink the leaf values must be minimisers: a step of a
thousandth to either side may not lower the loss.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.model_selection import train_test_split

from ...core import Array, NDArray, Recheck
from ...data.arrays import bound_infinity
from ...data.blocks import map_reduce
from ...data.checking import read_table
from ...data.door import Table
from ...trees.verify import goes_left
from .verify_law import (
    Formulas,
    formulas,
    keeps_law,
    planned_step,
    same_categories,
    sizes_agree,
    step_agrees,
    trusted,
)

Ids = NDArray[np.int64]

AGREE = 1e-9  # what sums in another order may differ by, relative to their size
_NODES_AGREE = 1e-7  # relative; impurities are differences of sums


def boosting(model: Any, X: Any, y: Any, sample_weight: Any) -> Recheck:
    """Recompute the certificate of a boosted model."""
    again = model._draft()
    table = read_table(model, X, y, sample_weight, again=again)
    recorded = model.certificate_
    if table.fingerprint != recorded.fingerprint:
        return Recheck(np.inf, 0.0, table.fingerprint)
    if table.classes is not None and list(table.classes) != list(model.classes_):
        return Recheck(np.inf, 0.0, f"{table.fingerprint}, but the labels are others")
    if not same_categories(model, again):
        return Recheck(np.inf, 0.0, table.fingerprint)
    if not table.in_memory:
        table = _read_all(table)
    part = Part(table.X, table.y, model._row_weight(table))
    if model.n_held_out_:
        stopping = model._stopping(table.n_rows, False)
        shares = None if table.classes is None else table.y.astype(np.float64)
        fit, _ = train_test_split(
            np.arange(table.n_rows), test_size=stopping.fraction, stratify=shares, random_state=model.seed_ % 2**32
        )
        fit = np.sort(fit)
        part = Part(part.X[fit], part.y[fit], None if part.w is None else part.w[fit])
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        worst = _Replay(model, part).shortfall()
    return Recheck(worst, max(recorded.tolerance, AGREE), table.fingerprint)


def _read_all(table: Table) -> Table:
    """Return a table of files or Dask with its rows in memory, which the check needs."""
    pieces = map_reduce(table.blocks, _copies, lambda a, b: a + b)
    X, y, weight = zip(*pieces, strict=True)
    targets = np.concatenate(y).astype(np.float64 if table.classes is None else np.int64)
    return replace(table, X=np.concatenate(X), y=targets, weight=None if weight[0] is None else np.concatenate(weight))


def _copies(block: Any) -> list[Any]:
    weight = None if block.weight is None else block.weight.copy()
    return [(bound_infinity(block.X.copy()), np.array(block.y), weight)]


def _drawn(model: Any, g: Array, w: Array, m: int) -> tuple[Ids, Array]:
    """Draw the rows of round m again, and what their weights are multiplied by.

    With `sampling="gradient"` two thirds of them are those with the largest Σ|g|w; the others are drawn from the rest
    and weigh more.
    """
    n = len(w)
    if model.subsample >= 1.0:
        return np.arange(n), np.ones(n)
    size = max(1, int(model.subsample * n))
    rng = np.random.default_rng([model.seed_, m, 2**33])
    if getattr(model, "sampling", "uniform") == "uniform":
        return np.sort(rng.choice(n, size, replace=False, shuffle=False)), np.ones(n)
    n_top = 2 * size // 3
    order = np.argsort(-np.abs(g).sum(axis=0) * w, kind="stable")
    rest = np.sort(order[n_top:])
    others = rest[rng.choice(len(rest), size - n_top, replace=False, shuffle=False)]
    factor = np.ones(n)
    factor[others] = len(rest) / (size - n_top)
    return np.sort(np.r_[order[:n_top], others]), factor


class Part(NamedTuple):
    """Rows that were fitted."""

    X: Any
    y: NDArray[Any]  #: numbers or class codes
    w: Array | None


class _Replay:
    """The rounds of one model, played again."""

    def __init__(self, model: Any, part: Part) -> None:
        self.model, self.w = model, np.ones(part.X.shape[0]) if part.w is None else part.w
        margins = model._classes and len(model.classes_) == 2
        self.y = np.where(part.y == 1, 1.0, -1.0) if margins else part.y
        self.columns = _Columns(model, part)
        self.K = model.n_trees_per_iteration_
        self.F = np.tile(model.baseline_[:, None], (1, len(self.y)))
        if model._start_model is not None:
            self.F += model._raw_start(part.X) - self.F
        self.plan = model._plan(model._fitted_loss())
        sampled = getattr(model, "max_features_", model.n_features_in_) < model.n_features_in_ or any(
            getattr(model, name, 1.0) < 1.0 for name in ("max_features_tree", "max_features_level")
        )
        sampled |= isinstance(model.max_features, float) and model.max_features < 1.0
        constrained = self.plan.monotonic is not None or getattr(model, "interaction_cst", None) is not None
        self.compares = not (sampled or constrained or getattr(model, "ccp_alpha", 0.0) > 0)
        second = model.direction == "newton"
        self.reg = float(model.reg_lambda or getattr(model, "l2_regularization", 0.0) or 0.0) if second else 0.0
        self.exact_newton = second and not hasattr(model, "min_hessian")
        self.least = self._least_hessian() if second else 0.0
        # Slopes are differences of numbers of this size: where the fit is nearly perfect, rounding is what is left.
        self.noise = 8.0 * np.finfo(np.float64).eps * (1.0 if model._classes else float(np.abs(self.y).max()))

    def _least_hessian(self) -> float:
        """Return Σh of a leaf: as given, an 80th of the mean weight per row for the log loss, 1e-3 for others."""
        given = getattr(self.model, "min_hessian", 0.0)
        if given is not None:
            return float(given)
        log_loss = isinstance(self.model.loss, str) and self.model.loss == "log_loss"
        return self.model.min_samples_leaf * float(self.w.mean()) / 80.0 if log_loss else 1e-3

    def shortfall(self) -> float:
        """Return the largest shortfall of all rounds; infinite if a recorded number is wrong."""
        worst, model = 0.0, self.model
        if not sizes_agree(model):
            return np.inf
        law = self._law()
        if not self._start_agrees(law) or not self._loss_agrees(law, 0):
            return np.inf
        for m in range(len(model.steps_)):
            found = self._round(law, m)
            if not self._loss_agrees(law, m + 1) or not np.isfinite(found):
                return np.inf
            worst, law = max(worst, found), self._law()
        return worst

    def _law(self) -> Formulas:
        """Return the loss of the next round; Huber's δ follows the residuals."""
        if self.model.loss != "huber":
            return formulas(self.model)
        level = self.model._level()
        return formulas(self.model, _quantile(np.abs(self.y - self.F[0]), self.w, 0.9 if level is None else level))

    def _start_agrees(self, law: Formulas) -> bool:
        """Tell whether no other constant would have a smaller loss to begin with, up to a thousandth."""
        model = self.model
        if getattr(model, "init", None) is not None or not isinstance(model.loss, str) or model.loss == "huber":
            return True
        scale = 1e-3 * max(1e-3, float(np.abs(model.baseline_).max()))
        here = float(self.w @ law.value(self.y, self.F))
        for k in range(self.K):
            for side in (-scale, scale):
                moved = self.F.copy()
                moved[k] += side
                if float(self.w @ law.value(self.y, moved)) < here - AGREE * abs(here) - 1e-12 * self.w.sum():
                    return False
        return True

    def _loss_agrees(self, law: Formulas, m: int) -> bool:
        value = float(self.w @ law.value(self.y, self.F) / self.w.sum())
        recorded = float(self.model.training_loss_[m])
        return bool(abs(value - recorded) <= 1e-9 * max(1.0, abs(recorded))) or not np.isfinite(recorded)

    def _round(self, law: Formulas, m: int) -> float:
        model, K = self.model, self.K
        g = law.slope(self.y, self.F)
        h = np.ones_like(g) if law.mass is None else law.mass(self.F)
        h = h if law.curvature is None else law.curvature(self.y, self.F)
        if self.exact_newton:  # no row has less than 1e-14 of the mass of all
            h = np.maximum(h, np.maximum(1e-14 * h.sum(axis=1, keepdims=True), 1e-150))
        used, factor = _drawn(model, g, self.w, m)
        w = self.w * factor
        worst, moves = 0.0, np.empty_like(self.F)
        for k in range(K):
            tree = model.trees_.tree(m * K + k)
            unit = model.direction != "newton"
            walk = _Walk(self, tree, used, g[k] * w, (np.ones_like(w) if unit else h[k]) * w)
            worst = max(worst, walk.shortfall())
            leaf = walk.leaf
            step, curved = float(model.steps_[m]), law.curvature is not None
            if not self._values_agree(law, tree, leaf, used, g[k] * w, h[k] * w, w, k, step):
                return np.inf
            free = self.plan.monotonic is None  # constraints clip the values that impurities are made of
            if free and not nodes_agree(model, tree, leaf, used, g[k] * w, h[k] * w, w, self.reg, step, curved):
                return np.inf
            moves[k] = tree.value[leaf, 0]
        step, planned = float(model.steps_[m]), planned_step(model, m)
        keeps = keeps_law(law.value, self.y, self.F, moves, self.w, w, used, float(model.training_loss_[0]))
        if not keeps(1.0, AGREE) or not step_agrees(step, planned, keeps):
            return np.inf
        self.F += moves
        return worst

    def _values_agree(
        self, law: Formulas, tree: Any, leaf: Ids, used: Ids, g: Array, h: Array, w: Array, k: int, step: float
    ) -> bool:
        """Tell whether the leaf values are the step times what the definition says."""
        model, n, ids = self.model, tree.n_nodes, leaf[used]
        G, H, W = (np.bincount(ids, part[used], n) for part in (g, h, w))
        leaves = np.flatnonzero(tree.feature < 0)
        value = tree.value[leaves, 0]
        if self.plan.monotonic is not None:
            return True  # clipped by the constraints; what they do to the scores is in the loss
        if model.direction == "inner-product":
            return bool(
                np.allclose(np.abs(value), abs(step)) and (step * value * G[leaves] <= AGREE * abs(G).max()).all()
            )
        if model.leaf == "fitted" and model.direction == "gradient":
            H, wanted = W, -G / W
        elif model.leaf == "fitted" or (law.curvature is not None and model.leaf == "best"):
            H = H if law.curvature is not None else W
            wanted = np.where(H + self.reg > 1e-150, -G / (H + self.reg), 0.0)
            wanted = wanted if model.leaf == "fitted" else trusted(model, wanted)
        elif model.loss == "huber":
            return True  # one step of a formula, whose outcome is in the loss
        else:
            return self._minimises(law, tree, leaf, used, w, k, step)
        slack = 1e-7 * np.abs(wanted) + self.noise * W / np.maximum(H + self.reg, 1e-150)
        return bool((np.abs(value - step * wanted[leaves]) <= step * slack[leaves] + AGREE * np.abs(value).max()).all())

    def _minimises(self, law: Formulas, tree: Any, leaf: Ids, used: Ids, w: Array, k: int, step: float) -> bool:
        """Tell whether no leaf's loss falls when its value is changed by a thousandth."""
        if step == 0.0:
            return True
        move, ids = tree.value[leaf, 0] / step, leaf[used]
        joint = self.K > 1 and not self.model._classes and law.mass is not None
        at_one = law.mass is not None and bool((law.mass(self.F)[k] == 1.0).all())
        # Where a minimum is infinite, and for gaps, values have ends.
        end = 2.99 if joint and not at_one else np.inf
        end = 3.99 if self.model._classes else end
        inside = np.abs(tree.value[:, 0]) < end * abs(step)
        best = None
        for side in (0.0, -1e-3, 1e-3):
            F = self.F[:, used].copy()
            F[k] += move[used] * (1.0 + side)
            total = np.bincount(ids, w[used] * law.value(self.y[used], F), tree.n_nodes)
            if best is None:
                best = total
            elif (total < best - AGREE * (1.0 + np.abs(best)))[inside].any():
                return False
        return True


def nodes_agree(
    model: Any, tree: Any, leaf: Ids, used: Ids, g: Array, h: Array, w: Array, reg: float, step: float, smooth: bool
) -> bool:
    """Tell whether the weights, impurities and inner values of a tree are those of its rows.

    g and h (n,) are the derivatives times the weights w of the round; leaf (n,) is the leaf of each row.

    | direction         | weight      | impurity               | value of an inner node |
    |-------------------|-------------|------------------------|------------------------|
    | `"newton"`        | rows        | −G²/(H + λ) / weight   | ρ·(−G/(H + λ))         |
    | `"gradient"`      | Σw (bins: rows) | variance of g (bins: −G²/W / weight) | ρ·(−G/W)  |
    | `"inner-product"` | Σw|g|       | (1 − |G|/weight) / 2   | ±ρ                     |
    """
    parts = [g, h, w, np.abs(g), np.where(w > 0, g * g / np.where(w > 0, w, 1.0), 0.0)]
    sums = np.stack([np.bincount(leaf[used], part[used], tree.n_nodes) for part in parts])
    for i in range(tree.n_nodes - 1, -1, -1):  # children come after their parents
        if tree.feature[i] >= 0:
            sums[:, i] = sums[:, tree.left[i]] + sums[:, tree.right[i]]
    G, H, W, A, Q = sums
    bins = hasattr(model, "min_hessian")
    mass = H if model.direction == "newton" else W
    optimum = -G / np.where(mass + reg > 0, mass + reg, 1.0)
    weight, impurity, size = tree.n_rows.astype(np.float64), G * optimum, Q.sum() / max(W[0], 1e-300) * len(used)
    if model.direction == "inner-product":
        weight, impurity, size = A, (A - np.abs(G)) / 2.0, A[0]
    elif model.direction == "gradient" and not bins:
        weight, impurity, size = W, Q - G * G / np.where(W > 0, W, 1.0), Q[0]
    if not np.allclose(tree.weight, weight, rtol=1e-9, atol=0.0):
        return False
    if not np.allclose(tree.impurity * tree.weight, impurity, rtol=_NODES_AGREE, atol=1e-12 * size):
        return False
    if model.direction == "inner-product":
        inner = np.sign(tree.value[:, 0])
    elif model.direction == "newton" and smooth and model.leaf == "best":
        inner = trusted(model, optimum)
    else:
        inner = optimum
    split = tree.feature >= 0
    noise = 1e-9 * np.abs(inner).max(initial=0.0)
    return bool(
        (np.abs(tree.value[:, 0] - step * inner) <= abs(step) * (_NODES_AGREE * np.abs(inner) + noise))[split].all()
    )


class _Walk:
    """One tree and its rows, on the way down."""

    def __init__(self, replay: _Replay, tree: Any, used: Ids, g: Array, h: Array) -> None:
        self.replay, self.tree, self.used, self.g, self.h = replay, tree, used, g, h
        self.leaf = np.zeros(len(g), dtype=np.int64)
        if replay.model.direction == "inner-product":
            self.potential = float(np.abs(g[used]).sum())
        else:
            self.potential = float((g[used] ** 2).sum() * len(used) / (h[used].sum() + replay.reg))

    def shortfall(self) -> float:
        """Walk all rows down; return the largest shortfall of the splits."""
        tree, worst, inside = self.tree, 0.0, np.zeros(len(self.g), dtype=bool)
        inside[self.used] = True
        moving = np.arange(len(self.g))
        while len(moving):
            node = self.leaf[moving]
            own = moving[inside[moving]]
            counts = np.bincount(self.leaf[own], minlength=tree.n_nodes)
            here = np.unique(node)
            if not np.array_equal(counts[here], tree.n_rows[here]):
                return np.inf
            inner = tree.feature[node] >= 0
            moving, node = moving[inner], node[inner]
            if not len(moving):
                break
            left = goes_left(tree, node, moving, self.replay.columns.values)
            own = inside[moving]
            if not self.replay.columns.thresholds_agree(tree, node[own], moving[own], left[own]):
                return np.inf
            below = np.where(left, tree.left[node], tree.right[node]).astype(np.int64)
            if self.replay.compares:
                asked = inside[moving]
                worst = max(worst, self._compare(moving[asked], node[asked], left[asked]))
            self.leaf[moving] = below
        return worst

    def _compare(self, rows: Ids, node: Ids, left: NDArray[np.bool_]) -> float:
        """Return the largest shortfall of the splits of one level."""
        nodes, own = np.unique(node, return_inverse=True)
        g, h, count = self.g[rows], self.h[rows], len(nodes)
        G, H, N = (_sums(own, part, count) for part in (g, h, np.ones(len(g))))
        whole = self._score(G, H)
        GL, HL = (_sums(own, part * left, count) for part in (g, h))
        taken = self._score(GL, HL) + self._score(G - GL, H - HL) - whole
        best = np.full(count, -np.inf)
        for j in range(self.replay.columns.d):
            best = np.maximum(best, self._best(j, rows, own, g, h, G, H, N))
        mass = np.maximum(np.minimum(HL, H - HL) + self.replay.reg, 1e-150)
        short = best - whole - taken - 4.0 * self.replay.noise * _sums(own, np.abs(g), count) * N / mass
        return float(np.max(short[np.isfinite(short)], initial=0.0)) / self.potential if self.potential > 0 else 0.0

    def _score(self, G: Array, H: Array) -> Array:
        if self.replay.model.direction == "inner-product":
            return np.abs(G)
        return np.where(H + self.replay.reg > 0, G**2 / (H + self.replay.reg), 0.0)

    def _best(self, j: int, rows: Ids, own: Ids, g: Array, h: Array, G: Array, H: Array, N: Array) -> Array:
        """Return the largest score of all cuts of column j in each node, missing values on either side."""
        columns, count, model = self.replay.columns, len(G), self.replay.model
        code, size, category = columns.codes(j, rows)
        cells = own * (size + 1) + code
        shape = (count, size + 1)
        sums = [np.bincount(cells, part, shape[0] * shape[1]).reshape(shape) for part in (g, h, np.ones(len(g)))]
        missing = [part[:, -1:].copy() for part in sums]
        if category:
            mass = sums[1][:, :-1] + float(getattr(model, "category_smoothing", 0.0))
            order = np.argsort(-sums[0][:, :-1] / np.where(mass > 0, mass, 1.0), axis=1)
            sums = [np.take_along_axis(part[:, :-1], order, axis=1) for part in sums]
        else:
            sums = [part[:, :-1] for part in sums]
        prefix = [np.cumsum(part, axis=1) for part in sums]
        least = max(1, int(getattr(model, "min_samples_leaf", 1)))
        best = np.full(count, -np.inf)
        for side in (0.0, 1.0):
            GL, HL, NL = (part + side * gap for part, gap in zip(prefix, missing, strict=True))
            GR, HR, NR = G[:, None] - GL, H[:, None] - HL, N[:, None] - NL
            fine = (np.minimum(NL, NR) >= least) & (np.minimum(HL, HR) >= self.replay.least)
            score = np.where(fine, self._score(GL, HL) + self._score(GR, HR), -np.inf)
            best = np.maximum(best, score.max(axis=1, initial=-np.inf))
        return best


class _Columns:
    """The columns of a table: values, and the codes between which cuts may lie."""

    def __init__(self, model: Any, part: Part) -> None:
        dense = sp.issparse(part.X)
        self.X = part.X.tocsc() if dense else part.X
        self.sparse, self.d = dense, part.X.shape[1]
        mask = model.is_categorical_
        self.categorical = np.zeros(self.d, bool) if mask is None else mask
        self.bins: Any = None
        if getattr(model, "max_bins", None) is not None:
            self.bins = model._bin(part, 1).bins  # the edges are no claim: any would do
        self._kept: dict[int, tuple[Ids, int]] = {}

    def values(self, j: int, rows: Ids) -> Array:
        """Return some rows of a column."""
        column = self.X[:, [j]].toarray()[:, 0] if self.sparse else self.X[:, j]
        return np.asarray(column, dtype=np.float64)[rows]

    def codes(self, j: int, rows: Ids) -> tuple[Ids, int, bool]:
        """Return codes 0 … size − 1, size for missing values; and whether they have no order."""
        if j not in self._kept:
            x = self.values(j, np.arange(self.X.shape[0]))
            bins = self.bins
            if self.categorical[j]:
                known = np.where(np.isnan(x), -1, x).astype(np.int64)
                level = known if bins is None else bins.level_bin[bins.level_start[j] : bins.level_start[j + 1]][known]
                size = int(level.max(initial=0)) + 1
                self._kept[j] = np.where(known < 0, size, level).astype(np.int64), size
            else:
                edges = (
                    np.unique(x[~np.isnan(x)])
                    if bins is None
                    else bins.edges[bins.edge_start[j] : bins.edge_start[j + 1]]
                )
                size = len(edges) + 1
                self._kept[j] = np.where(np.isnan(x), size, np.searchsorted(edges, x)), size
        code, size = self._kept[j]
        return code[rows], size, bool(self.categorical[j])

    def thresholds_agree(self, tree: Any, node: Ids, rows: Ids, left: NDArray[np.bool_]) -> bool:
        """Tell whether thresholds lie in the middle between both sides; of bins only the sides count."""
        if self.bins is not None:
            return True
        for i in np.unique(node):
            if tree.category[i] >= 0:
                continue
            here, threshold = node == i, float(tree.threshold[i])
            x = self.values(int(tree.feature[i]), rows[here])
            below = np.max(x[left[here]], initial=-np.inf, where=~np.isnan(x[left[here]]))
            above = np.min(x[~left[here]], initial=np.inf, where=~np.isnan(x[~left[here]]))
            if not (np.isfinite(below) and np.isfinite(above)):
                continue  # missing values alone are on one side
            slack = 1e-6 * (above / 2 - below / 2) + 4.0 * np.spacing(max(abs(below), abs(above)))
            if not abs(threshold - (below / 2 + above / 2)) <= slack:
                return False
        return True


def _sums(own: Ids, x: Array, count: int) -> Array:
    return np.bincount(own, x, count).astype(np.float64)


def _quantile(x: Array, w: Array, level: float) -> float:
    """Return the weighted quantile, the middle of two values where the level falls between them."""
    order = np.argsort(x)
    share = np.cumsum(w[order]) / w.sum()
    i = int(np.searchsorted(share, level - 1e-12))
    j = i + 1 if abs(share[i] - level) <= 1e-12 and i + 1 < len(x) else i
    return float((x[order[i]] + x[order[j]]) / 2)
