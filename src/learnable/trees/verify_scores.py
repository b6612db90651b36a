"""Scores of nodes and gains of splits in plain NumPy, for the check of trees: all nodes of a level at once.

With weights w, W = Σw, c_k = Σ w 1[y = k], S = Σ w y, the score of a node is Σ c_k²/W (gini), Σ c_k log₂(c_k/W)
(entropy), max c_k (misclassification), S²/W (squared error), S log(S/W) (poisson), −Σ w|y − median| (absolute error);
the gain of a split is the rise of the score, summed over the targets.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core import Array, NDArray

Ids = NDArray[np.int64]


@dataclass(frozen=True)
class Scores:
    """Targets, weights and criterion.

    Attributes
    ----------
    kind : str
        The criterion.
    y : (n, m) float64
        Numbers, or class codes.
    n_classes : list of int
        Classes of each target; empty for numbers.
    w : (n,) float64
        Weights; zero for rows that are not in the tree.
    size : float
        Size of the values, for tolerances.
    power : int
        By which power of it an impurity scales.
    """

    kind: str
    y: Array
    n_classes: list[int]
    w: Array
    size: float
    power: int

    @property
    def n_outputs(self) -> int:
        """Number of targets."""
        return self.y.shape[1]

    @property
    def ordered(self) -> bool:
        """Whether the best set of categories is a run of them in the order of their means."""
        return self.n_outputs == 1 and (not self.n_classes or self.n_classes[0] == 2) and self.kind != "absolute_error"

    def describe(self, rows: Ids, own: Ids, weight: Array) -> tuple[Array, Array]:
        """Return the value and the impurity of each node from its rows."""
        m = self.n_outputs
        count = len(weight)
        impurity = np.zeros(count)
        if self.n_classes:
            most = max(self.n_classes)
            value = np.zeros((count, m * most))
            for k in range(m):
                sums = self._sums(rows, own, count, k)
                share = sums / weight[:, None]
                value[:, k * most : k * most + sums.shape[1]] = share
                if self.kind == "gini":
                    impurity += 1.0 - (share**2).sum(axis=1)
                elif self.kind == "misclassification":
                    impurity += 1.0 - share.max(axis=1)
                else:
                    impurity -= (share * np.log2(np.where(share > 0, share, 1.0))).sum(axis=1)
            return value, impurity / m
        value = np.zeros((count, m))
        for k in range(m):
            y = self.y[rows, k]
            w = self.w[rows]
            if self.kind == "absolute_error":
                for i in range(count):
                    value[i, k] = _median(y[own == i], w[own == i])
                impurity += np.bincount(own, w * np.abs(y - value[own, k]), count) / weight
                continue
            value[:, k] = np.bincount(own, w * y, count) / weight
            value[:, k] += np.bincount(own, w * (y - value[own, k]), count) / weight
            if self.kind == "poisson":
                ratio = np.where(y > 0, y, 1.0) / np.where(value[own, k] > 0, value[own, k], 1.0)
                impurity += np.bincount(own, w * y * np.log(ratio), count) / weight
            else:
                impurity += np.bincount(own, w * (y - value[own, k]) ** 2, count) / weight
        return value, impurity / m

    def gain_of(self, rows: Ids, own: Ids, left: NDArray[np.bool_], count: int) -> Array:
        """Return the gain of one split of each node; −∞ where a side is empty."""
        gain = np.zeros(count)
        for k in range(self.n_outputs):
            stat = self.statistics(rows, own, count, k)
            if stat is None:
                gain += _absolute_gain(self, rows, own, left, count, k)
                continue
            sides = [_group(stat[side], own[side], count) for side in (left, ~left)]
            gain += self.score(sides[0], k) + self.score(sides[1], k) - self.score(sides[0] + sides[1], k)
        return gain

    def statistics(self, rows: Ids, own: Ids, count: int, k: int) -> Array | None:
        """Return each row's (w, then c_k or S), y centred in its node: then gains are no differences of squares.

        Of counts, also w times the node's mean: S log(S/W) is compared with what that mean would give.
        """
        w = self.w[rows]
        if self.n_classes:
            return np.column_stack([w, w[:, None] * (self.y[rows, k][:, None] == np.arange(self.n_classes[k]))])
        if self.kind == "absolute_error":
            return None
        y = self.y[rows, k]
        mean = (np.bincount(own, w * y, count) / np.maximum(np.bincount(own, w, count), 1e-300))[own]
        if self.kind == "poisson":
            return np.column_stack([w, w * y, w * mean])
        return np.column_stack([w, w * (y - mean)])

    def score(self, sums: Array, k: int) -> Array:
        """Return the score of groups from their sums."""
        weight = np.where(sums[:, 0] > 0, sums[:, 0], 1.0)
        if self.n_classes:
            c = np.maximum(sums[:, 1:], 0.0)
            if self.kind == "gini":
                return np.asarray((c**2).sum(axis=1) / weight)
            if self.kind == "misclassification":
                return np.asarray(c.max(axis=1))
            return np.asarray((c * np.log2(np.where(c > 0, c, 1.0) / weight[:, None])).sum(axis=1))
        if self.kind == "poisson":
            s = sums[:, 1]
            expected = np.maximum(sums[:, 2], 1e-300)
            u = s / expected - 1.0
            with np.errstate(divide="ignore", invalid="ignore"):
                return np.where(s > 0, expected * ((1.0 + u) * np.log1p(u) - u), -np.inf)
        return np.asarray(sums[:, 1] ** 2 / weight)

    def _sums(self, rows: Ids, own: Ids, count: int, k: int) -> Array:
        classes = self.n_classes[k]
        cell = own * classes + self.y[rows, k].astype(np.int64)
        return np.bincount(cell, self.w[rows], count * classes).reshape(count, classes).astype(np.float64)


def scores_for(criterion: str, y: NDArray[Any], n_classes: list[int], w: Array) -> Scores:
    """Return the scores of one tree."""
    kind = {"log_loss": "entropy", "friedman_mse": "squared_error"}.get(criterion, criterion)
    numbers = y.reshape(len(y), -1).astype(np.float64)
    size = 1.0 if n_classes else float(np.abs(numbers - (0.0 if kind == "poisson" else numbers.mean(axis=0))).max())
    power = 0 if n_classes else 1
    return Scores(kind, numbers, n_classes, w, size or 1.0, 2 if kind == "squared_error" else power)


def prefix_gains(
    scores: Scores,
    rows: Ids,
    own: Ids,
    x: Array,
    count: int,
    rule: Any,
    u: Array | None = None,
    categorical: bool = False,
    bounds: tuple[Array, int] | None = None,
) -> Array:
    """Return the largest gain of each node among the cuts of one column; −∞ where it has none.

    Missing values go right or left, whichever is better; with `u`, the one cut is drawn between the ends; with
    `bounds`, the lowest and highest value of each node, (count, 2), and the sign of the column's slope, only what they
    allow counts.
    """
    present = ~np.isnan(x)
    if categorical:
        x = _ranks_by_mean(scores, rows, own, x, count)
    if u is not None:
        low = np.full(count, np.inf)
        high = np.full(count, -np.inf)
        np.minimum.at(low, own[present], x[present])
        np.maximum.at(high, own[present], x[present])
        with np.errstate(invalid="ignore"):
            cut = low * (1.0 - u) + high * u
            cut = np.where((cut >= high) | (cut < low), low, cut)
        x = np.where(present, x > cut[own], np.nan)
    order = np.lexsort((x, own))
    rows = rows[order]
    own = own[order]
    x = x[order]
    present = present[order]
    n_rows = np.bincount(own, minlength=count)
    n_gaps = np.bincount(own, ~present, count)
    first = np.r_[0, np.cumsum(n_rows)[:-1]]
    following = np.r_[own[1:] == own[:-1], False]
    ends = present & following & (np.r_[x[1:], np.nan] != x)  # the last row of each value but the largest
    at = np.flatnonzero(ends)
    best = np.full(count, -np.inf)
    if not len(at):
        return best
    for gaps_left in (False, True):
        valid = at if not gaps_left else at[(n_gaps[own[at]] > 0) & np.r_[present[1:], False][at]]
        if not len(valid):
            continue
        node = own[valid]
        n_left = valid - first[node] + 1 + (n_gaps[node] if gaps_left else 0)
        gain = np.zeros(len(valid))
        w_left = w_right = np.zeros(len(valid))
        values: tuple[Array, Array] | None = None  # medians of both sides
        starved = np.zeros(len(valid), dtype=bool)
        for k in range(scores.n_outputs):
            stat = scores.statistics(rows, own, count, k)
            if stat is None:
                gained, values = _absolute_prefix_gains(scores, rows, own, present, valid, first, n_rows, gaps_left, k)
                gain += gained
                w = np.cumsum(scores.w[rows])
                w_left = w[valid] - np.r_[0.0, w][first[node]]
                w_right = _group(scores.w[rows][:, None], own, count)[node, 0] - w_left
                continue
            running = np.cumsum(stat, axis=0)
            before = np.vstack([np.zeros(stat.shape[1]), running])[first[node]]
            left = running[valid] - before
            if gaps_left:
                left = left + _group(stat * ~present[:, None], own, count)[node]
            right = _group(stat, own, count)[node] - left
            w_left = left[:, 0]
            w_right = right[:, 0]
            starved |= _is_starved(scores, left, right, n_rows[node], running)
            gain += scores.score(left, k) + scores.score(right, k) - scores.score(left + right, k)
        small = (n_left < rule.min_samples_leaf) | (n_rows[node] - n_left < rule.min_samples_leaf)
        small |= (w_left < rule.min_weight_leaf) | (w_right < rule.min_weight_leaf) | starved
        if bounds is not None and bounds[1] != 0:
            if values is None:
                values = _side_values(scores, rows, own, left, right, node, count)
            small |= ~_keeps_order(scores, values, node, *bounds)
        np.maximum.at(best, node, np.where(small, -np.inf, gain))
    return best


def _is_starved(scores: Scores, left: Array, right: Array, n_rows: Ids, running: Array) -> NDArray[np.bool_]:
    """Tell where a side's sum of counts is zero up to rounding: such a side would predict zero, so it is no candidate.

    Wider than the rule of the fit by what differences of running sums may be off.
    """
    if scores.kind != "poisson":
        return np.zeros(len(left), dtype=bool)
    noise = 2.0**-50 * (n_rows * (left + right)[:, 1] + len(running) * running[-1, 1])
    return np.asarray(np.minimum(left, right)[:, 1] <= noise)


def _side_values(
    scores: Scores, rows: Ids, own: Ids, left: Array, right: Array, node: Ids, count: int
) -> tuple[Array, Array]:
    """Return the share of the second class, or the mean of the targets, on both sides of each cut."""
    at = 2 if scores.n_classes else 1  # the weight of the second class, or the sum of the targets
    values = left[:, at] / left[:, 0], right[:, at] / right[:, 0]
    if scores.n_classes or scores.kind == "poisson":
        return values
    w = np.bincount(own, scores.w[rows], count)  # the sums are of centred targets
    centre = np.bincount(own, scores.w[rows] * scores.y[rows, 0], count) / np.maximum(w, 1e-300)
    return values[0] + centre[node], values[1] + centre[node]


def _keeps_order(scores: Scores, values: tuple[Array, Array], node: Ids, bounds: Array, sign: int) -> NDArray[np.bool_]:
    """Tell which cuts give both sides values inside the node's bounds, in the order that the sign asks for."""
    low = np.minimum(*values)
    high = np.maximum(*values)
    slack = 1e-12 * scores.size  # a cut at the very bound may be in or out, by rounding
    inside = (low >= bounds[node, 0] + slack) & (high <= bounds[node, 1] - slack)
    most = -slack if scores.kind == "absolute_error" else 0.0  # equal medians may be in or out, by rounding
    return inside & ((values[0] - values[1]) * sign <= most)


def _ranks_by_mean(scores: Scores, rows: Ids, own: Ids, x: Array, count: int) -> Array:
    """Return the rank of the mean of each row's category in its node, in place of its code."""
    present = ~np.isnan(x)
    code = np.where(present, x, 0).astype(np.int64)
    width = int(code.max()) + 1
    cell = own * width + code
    w = scores.w[rows] * present
    weight = np.bincount(cell, w, count * width)
    mean = np.bincount(cell, w * scores.y[rows, 0], count * width) / np.where(weight > 0, weight, 1.0)
    return np.where(present, mean[cell], np.nan)


def _group(stat: Array, own: Ids, count: int) -> Array:
    """Return the sums of the rows' statistics in each node."""
    return np.stack([np.bincount(own, column, count) for column in stat.T], axis=1)


def _median(y: Array, w: Array) -> float:
    order = np.argsort(y, kind="stable")
    y = y[order]
    below = np.cumsum(w[order])
    half = 0.5 * below[-1]
    at = int(np.searchsorted(below, half * (1.0 - 1e-11)))
    tie = below[at] <= half * (1.0 + 1e-11) and at + 1 < len(y)
    return float(0.5 * (y[at] + y[at + 1]) if tie else y[at])


def _absolute_cost(y: Array, w: Array) -> float:
    return float((w * np.abs(y - _median(y, w))).sum()) if len(y) else 0.0


def _absolute_gain(scores: Scores, rows: Ids, own: Ids, left: NDArray[np.bool_], count: int, k: int) -> Array:
    y = scores.y[rows, k]
    w = scores.w[rows]
    gain = np.zeros(count)
    for i in range(count):
        here = own == i
        gain[i] = _absolute_cost(y[here], w[here])
        for side in (here & left, here & ~left):
            gain[i] -= _absolute_cost(y[side], w[side])
    return gain


def _absolute_prefix_gains(
    scores: Scores, rows: Ids, own: Ids, present: Any, cuts: Ids, first: Ids, n_rows: Ids, gaps_left: bool, k: int
) -> tuple[Array, tuple[Array, Array]]:
    """Return the gain of each cut, and the medians on both sides of it."""
    y = scores.y[rows, k]
    w = scores.w[rows]
    gains = np.empty(len(cuts))
    medians = np.empty((2, len(cuts)))
    for i, cut in enumerate(cuts):
        node = own[cut]
        part = slice(int(first[node]), int(first[node] + n_rows[node]))
        left = np.arange(part.start, part.stop) <= cut
        left |= ~present[part] if gaps_left else False
        gains[i] = _absolute_cost(y[part], w[part])
        for at, side in enumerate((left, ~left)):
            gains[i] -= _absolute_cost(y[part][side], w[part][side])
            medians[at, i] = _median(y[part][side], w[part][side])
    return gains, (medians[0], medians[1])
