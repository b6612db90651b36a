"""Decision stumps x_j ≤ r with a vote on each side, found over all columns and thresholds at once.

Given a distribution D over the rows, a stump sends a row left or right and gives each side a class. With left and
right weights L_k, R_k of the classes, the stump of least weighted error maximises

    1 − ε = max_k L_k + max_k R_k,        for two classes  1 − 2ε = |Σ_left yD| + |Σ_right yD| :

both polarities of every threshold, and the constant classifiers. A confidence-rated stump for two classes (R. Schapire
and Y. Singer, Improved boosting algorithms using confidence-rated predictions, Machine Learning 37, 1999) gives each
side the number ½ log(W₊/W₋), and minimises Z = Σ_sides 2√(W₊W₋). Weights are smoothed by 1/(2n), so that no number is
infinite.

The columns are coded as ranks once (`trees.table`); a round is one pass of additions over the codes and one scan:
O(nd) time without sorting, on sparse tables O(number of entries).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ...core import Array, Loadable, NDArray, TaskTeam, is_array, law, laws, resolve_n_jobs, run_tasks
from ...core.jit import kernel
from ...trees import Columns, Trees
from ...trees.histogram.bins import midpoints

# --------------------------------------------------------------------------------------------------------------------
# Loops of boosted stumps: sums of weights by code, the best cut of every column, and votes summed over stumps.
#
# A column is a row of small integers (see `trees.table`), so one round is a pass of additions and a scan: nothing
# is ever sorted again. Columns are independent, and each is summed in the order of the rows: threads change no bit.


#: A cut replaces the best one so far if it is better by more than this share of the weight: ties go to the first.
TIE = 1e-12


class Codes(NamedTuple):
    """The codes of all columns, dense or sparse, as kernels read them."""

    codes: NDArray[Any]  #: (d, n), or (0, 0) if sparse
    entries: NDArray[np.uint32]  #: codes of the stored entries
    rows: NDArray[np.int32]  #: their rows
    start: NDArray[np.int64]  #: (d+1,) where a column begins
    zero: NDArray[np.int64]  #: (d,) code of what is not stored
    n_codes: NDArray[np.int64]  #: (d,)


@kernel
def cut_two_classes(
    table: Codes, signed: Array, first: int, last: int, sums: Array, gain: Array, cut: NDArray[np.int64]
) -> None:
    """Find each column's cut with the largest |Σ_left yD| + |Σ_right yD| = 1 − 2ε. OUT gain, cut (−1: none is better).

    `signed` is yD, `sums` scratch for the codes of one column.
    """
    n = len(signed)
    total = 0.0
    for i in range(n):
        total += signed[i]
    for j in range(first, last):
        m = table.n_codes[j]
        h = sums[:m]
        h[:] = 0.0
        if table.codes.shape[0] > 0:
            codes = table.codes[j]
            for i in range(n):
                h[codes[i]] += signed[i]
        else:
            rest = total
            for e in range(table.start[j], table.start[j + 1]):
                h[table.entries[e]] += signed[table.rows[e]]
                rest -= signed[table.rows[e]]
            if table.start[j + 1] - table.start[j] < n:
                h[table.zero[j]] += rest
        best = abs(total)
        at = -1
        left = 0.0
        for c in range(m - 1):
            left += h[c]
            found = abs(left) + abs(total - left)
            if found > best + TIE:
                best = found
                at = c
        gain[j] = best
        cut[j] = at


@kernel
def sum_classes(table: Codes, j: int, D: Array, y: NDArray[np.int64], total: Array, sums: Array, rest: Array) -> None:
    """Sum the weights of one column by code and class. IN total (K,); OUT sums (codes, K); `rest` is scratch (K,)."""
    n = len(D)
    sums[:] = 0.0
    if table.codes.shape[0] > 0:
        codes = table.codes[j]
        for i in range(n):
            sums[codes[i], y[i]] += D[i]
        return
    rest[:] = total
    for e in range(table.start[j], table.start[j + 1]):
        i = table.rows[e]
        sums[table.entries[e], y[i]] += D[i]
        rest[y[i]] -= D[i]
    if table.start[j + 1] - table.start[j] < n:
        for k in range(len(total)):
            sums[table.zero[j], k] += max(rest[k], 0.0)


@kernel
def cut_by_error(sums: Array, total: Array, right: Array, scratch: Array) -> tuple[float, int]:
    """Return the largest max_k L_k + max_k R_k = 1 − ε over the cuts of one column, and the cut (−1: no cut is better).

    `right` (codes,) and `scratch` (K,) are overwritten.
    """
    m, K = sums.shape
    scratch[:] = 0.0
    most = 0.0
    for c in range(m - 1, 0, -1):  # the classes' weights only grow, so that each maximum is a comparison
        for k in range(K):
            scratch[k] += sums[c, k]
            most = max(most, scratch[k])
        right[c - 1] = most
    best = total.max()
    at = -1
    most = 0.0
    scratch[:] = 0.0
    for c in range(m - 1):
        for k in range(K):
            scratch[k] += sums[c, k]
            most = max(most, scratch[k])
        if most + right[c] > best + TIE:
            best = most + right[c]
            at = c
    return best, at


@kernel
def cut_by_confidence(sums: Array, total: Array, smoothing: float) -> tuple[float, int]:
    """Return the smallest Z = Σ_sides 2√((W₀ + δ)(W₁ + δ)) over the cuts of one column, as −Z, and the cut."""
    m = len(sums)
    a = 0.0
    b = 0.0
    best = -2.0 * math.sqrt((total[0] + smoothing) * (total[1] + smoothing))
    at = -1
    for c in range(m - 1):
        a += sums[c, 0]
        b += sums[c, 1]
        left = math.sqrt((a + smoothing) * (b + smoothing))
        right = math.sqrt((max(total[0] - a, 0.0) + smoothing) * (max(total[1] - b, 0.0) + smoothing))
        if -2.0 * (left + right) > best + TIE:
            best = -2.0 * (left + right)
            at = c
    return best, at


@kernel
def cut_many_classes(
    table: Codes,
    D: Array,
    y: NDArray[np.int64],
    total: Array,
    smoothing: float,
    first: int,
    last: int,
    gain: Array,
    cut: NDArray[np.int64],
) -> None:
    """Find each column's best cut: of K classes by error, or, with `smoothing`, of two by confidence. OUT gain, cut."""
    K = len(total)
    most = table.n_codes[first:last].max()
    all_sums = np.empty((most, K))
    right = np.empty(most)
    scratch = np.empty(K)
    for j in range(first, last):
        sums = all_sums[: table.n_codes[j]]
        sum_classes(table, j, D, y, total, sums, scratch)
        if smoothing == 0.0:
            gain[j], cut[j] = cut_by_error(sums, total, right, scratch)
        else:
            gain[j], cut[j] = cut_by_confidence(sums, total, smoothing)


@kernel
def add_votes(X: NDArray[Any], column: NDArray[np.int64], threshold: Array, value: Array, scores: Array) -> None:
    """Add value[t, side] for every stump t to the scores of dense rows. IN/OUT scores (n, C)."""
    for i in range(len(X)):
        row = X[i]
        score = scores[i]
        for t in range(len(column)):
            side = 0 if row[column[t]] <= threshold[t] else 1
            for c in range(score.shape[0]):
                score[c] += value[t, side, c]


_TASK_ENTRIES = 2**18  # a task of about a millisecond, ten times what handing it to a thread costs
#: Rows of one task. 50 stumps on 60,000 × 12: 9.7, 9.5, 9.5 and 9.5 ms of processor time with 512, 2,048, 8,192 and
#: 32,768.
_CHUNK_ROWS = 2**13


class Stump(NamedTuple):
    """One stump."""

    feature: int
    threshold: float  #: x ≤ threshold goes left
    value: Array  #: (2, C) what the sides say: the score of the second of two classes (C = 1), or of each class


@dataclass(frozen=True)
class Stumps(Loadable):
    """T stumps as flat arrays, as they are stored.

    Attributes
    ----------
    feature : (T,) int64
        The column that is tested.
    threshold : (T,) float64
        x ≤ threshold goes left.
    value : (T, 2, C) float64
        Scores of the left and the right side: of the second of two classes (C = 1), or of each of C classes.
    """

    feature: NDArray[np.int64]
    threshold: Array
    value: Array

    @staticmethod
    def pack(stumps: list[Stump]) -> Stumps:
        """Return a list of stumps as arrays."""
        return Stumps(
            np.array([stump.feature for stump in stumps], dtype=np.int64),
            np.array([stump.threshold for stump in stumps], dtype=np.float64),
            np.stack([stump.value for stump in stumps]),
        )

    def __len__(self) -> int:
        return len(self.feature)

    def __iter__(self) -> Iterator[Stump]:
        for t in range(len(self)):
            yield Stump(int(self.feature[t]), float(self.threshold[t]), self.value[t])

    _laws = laws(
        law(
            "Stumps: feature must be one column number for each stump",
            lambda stumps: is_array(stumps.feature, (None,), np.int64) and (stumps.feature >= 0).all(),
        ),
        law(
            "Stumps: threshold must be one finite number for each stump",
            lambda stumps: is_array(stumps.threshold, (len(stumps.feature),), finite=True),
        ),
        law(
            "Stumps: value must be finite, of the shape (stumps, 2, scores)",
            lambda stumps: is_array(stumps.value, (len(stumps.feature), 2, None), finite=True),
        ),
    )


def stump_tree(stump: Stump, sides: Array, n_rows: NDArray[np.int64]) -> Trees:
    """Return a stump as a tree of two leaves, or of one if all rows go left.

    Parameters
    ----------
    stump : Stump
        Column and threshold.
    sides : (2, K) float64
        Weight of each class on the left and on the right.
    n_rows : (2,) int64
        Rows there.

    Examples
    --------
    >>> tree = stump_tree(Stump(0, 0.5, coded(np.array([0, 1]), 2)), np.eye(2) / 2, np.array([3, 3]))
    >>> tree.n_leaves, tree.value.tolist()
    (2, [[0.5, 0.5], [1.0, 0.0], [0.0, 1.0]])
    """
    splits = bool(n_rows[1] > 0)
    totals = np.vstack([sides.sum(axis=0), sides]) if splits else sides[:1]
    weight = np.maximum(totals.sum(axis=1), np.finfo(np.float64).tiny)
    share = totals / weight[:, None]
    n = len(totals)
    first = np.arange(n) == 0
    inner = first if splits else np.zeros(n, dtype=bool)
    return Trees(
        start=np.array([0, n], np.int64),
        feature=np.where(inner, stump.feature, -1).astype(np.int32),
        threshold=np.where(inner, stump.threshold, 0.0),
        left=np.where(inner, 1, -1).astype(np.int32),
        right=np.where(inner, 2, -1).astype(np.int32),
        missing_left=(inner & (n_rows[0] > n_rows[1])).astype(np.uint8),
        category=np.full(n, -1, np.int64),
        bits=np.zeros(0, np.uint32),
        impurity=1.0 - share.max(axis=1),
        n_rows=(np.r_[n_rows.sum(), n_rows] if splits else n_rows[:1]).astype(np.int64),
        weight=weight,
        value=share,
    )


def halfway(stumps: Stumps, X: Any) -> Array:
    """Return thresholds that part the rows of X likewise, each halfway between the two values around it.

    A threshold above all values becomes the largest, one below all the next number below the smallest.

    Examples
    --------
    >>> stumps = Stumps.pack([Stump(0, r, np.zeros((2, 1))) for r in (0.1, 3.0, -1.0)])
    >>> halfway(stumps, np.array([[0.0], [1.0]])).tolist()
    [0.5, 1.0, -5e-324]
    """
    found = np.empty(len(stumps))
    for t, (feature, threshold, _) in enumerate(stumps):
        column = _column(X, feature)
        below = column[column <= threshold]
        above = column[column > threshold]
        if len(below) and len(above):
            found[t] = midpoints(below.max(), above.min())
        else:
            found[t] = below.max() if len(below) else np.nextafter(above.min(), -np.inf)
    return found


def stump_outputs(stump: Stump, X: Any) -> Array:
    """Return what one stump says of each row, (n, C)."""
    return stump.value[(_column(X, stump.feature) > stump.threshold).astype(np.int64)]


def _column(X: Any, j: int) -> Array:
    return np.asarray(X[:, [j]].toarray().ravel() if sp.issparse(X) else X[:, j])


def weighted_scores(stumps: Stumps, votes: Array, X: Any, n_jobs: int | None = None) -> Array:
    """Return Σ_t votes[t]·h_t(x) for each row, (n, C); rows are taken in chunks, on threads."""
    n = X.shape[0]
    value = stumps.value * votes[:, None, None]
    scores = np.zeros((n, value.shape[2]))
    used, column = np.unique(stumps.feature, return_inverse=True)
    column = column.astype(np.int64) if sp.issparse(X) else stumps.feature

    def add(start: int) -> None:
        rows = X[start : start + _CHUNK_ROWS]
        dense = rows[:, used].toarray() if sp.issparse(rows) else np.ascontiguousarray(rows)
        add_votes(dense, column, stumps.threshold, value, scores[start : start + _CHUNK_ROWS])

    starts = range(0, n, _CHUNK_ROWS)
    threads = resolve_n_jobs(n_jobs) if n * len(stumps) >= _TASK_ENTRIES else 1
    run_tasks(lambda number: add(starts[number]), len(starts), threads)
    return scores


class StumpSearch:
    """Finds the best stump for any distribution over the rows of one table.

    Parameters
    ----------
    X : (n, d) float array or CSR array
        Finite numbers.
    y : (n,) int64
        Class codes 0 … K − 1.
    n_classes : int
        K.
    confident : bool
        Whether sides get real numbers, chosen by Z, instead of classes, chosen by the error; for two classes only.
    n_jobs : int or None
        Threads; the stumps do not depend on it.
    """

    def __init__(
        self, X: Any, y: NDArray[np.int64], n_classes: int, *, confident: bool = False, n_jobs: int | None = None
    ) -> None:
        self.y = y
        self.K = n_classes
        self.confident = confident
        self.threads = resolve_n_jobs(n_jobs)
        self.columns = Columns.build(X, n_threads=self.threads)
        c = self.columns
        self.codes = Codes(c.codes, c.entries, c.rows, c.start, c.zero, c.n_codes)
        self.sign = np.where(y == 1, 1.0, -1.0)
        self.smoothing = 0.5 / len(y) if confident else 0.0
        self.sides = np.zeros((2, n_classes))
        self._tasks = _cut_columns(self.codes, len(y))
        self._team = TaskTeam(self.threads)  # its threads end with this object

    def find(self, D: Array) -> tuple[Stump, NDArray[np.bool_]]:
        """Return the best stump for the distribution D, and which rows go right; of several, the first."""
        gain = np.empty(self.columns.n_columns)
        cut = np.empty(self.columns.n_columns, dtype=np.int64)
        if self.K == 2 and not self.confident:
            signed = self.sign * D
            most = int(self.codes.n_codes.max())
            self._run(lambda a, b: cut_two_classes(self.codes, signed, a, b, np.empty(most), gain, cut))
        else:
            total = np.bincount(self.y, weights=D, minlength=self.K).astype(np.float64)
            self._run(lambda a, b: cut_many_classes(self.codes, D, self.y, total, self.smoothing, a, b, gain, cut))
        j = 0
        for other in range(1, len(gain)):
            if gain[other] > gain[j] + TIE:
                j = other
        right = self._goes_right(j, int(cut[j]))
        return Stump(j, self._threshold(j, int(cut[j])), self._values(D, right)), right

    def _run(self, task: Callable[[int, int], None]) -> None:
        self._team.run(lambda number: task(*self._tasks[number]), len(self._tasks))

    def _threshold(self, j: int, cut: int) -> float:
        """Return the midpoint of the two values around the cut, or the largest value if all rows go left."""
        values = self.columns.low[self.columns.offset[j] : self.columns.offset[j + 1]]
        if cut < 0:
            return float(values[-1])
        below = float(values[cut])
        above = float(values[cut + 1])
        middle = below / 2 + above / 2
        return middle if below <= middle < above else below

    def _goes_right(self, j: int, cut: int) -> NDArray[np.bool_]:
        c = self.columns
        n = len(self.y)
        if cut < 0:
            return np.zeros(n, dtype=bool)
        if not c.sparse:
            return c.codes[j] > cut
        part = slice(c.start[j], c.start[j + 1])
        right = np.full(n, c.zero[j] > cut)
        right[c.rows[part]] = c.entries[part] > cut
        return right

    def _values(self, D: Array, right: NDArray[np.bool_]) -> Array:
        """Return the scores of the two sides; a side without weight says what the other one says."""
        W = np.bincount(self.y + self.K * right, weights=D, minlength=2 * self.K).reshape(2, self.K).astype(np.float64)
        self.sides = W.copy()  # of the stump found last
        if not right.any():
            W[1] = W[0]
        if self.confident:
            return confidences(W + self.smoothing)
        return coded(W.argmax(axis=1), self.K)


def coded(labels: NDArray[np.int64], n_classes: int) -> Array:
    """Return classes as scores: ±1 for two classes, (n, 1); else 1 for the class and −1/(K−1) for others, (n, K)."""
    if n_classes == 2:
        return np.where(labels == 1, 1.0, -1.0)[:, None]
    return np.where(labels[:, None] == np.arange(n_classes), 1.0, -1.0 / (n_classes - 1))


def confidences(W: Array) -> Array:
    """Return the scores of least exponential loss for class weights W > 0, (…, K): ½ log(W₁/W₀), or centred logs."""
    logs = np.log(W)
    if W.shape[-1] == 2:
        return 0.5 * (logs[..., 1:] - logs[..., :1])
    return (W.shape[-1] - 1) * (logs - logs.mean(axis=-1, keepdims=True))


def _cut_columns(codes: Codes, n: int) -> list[tuple[int, int]]:
    """Return runs of columns with about `_TASK_ENTRIES` entries each."""
    d = len(codes.n_codes)
    size = np.full(d, n, dtype=np.int64) if len(codes.codes) else np.diff(codes.start) + codes.n_codes
    ends = np.searchsorted(np.cumsum(size), np.arange(_TASK_ENTRIES, size.sum(), _TASK_ENTRIES), side="left") + 1
    bounds = np.unique(np.r_[0, ends, d])
    bounds = bounds[bounds <= d].tolist()
    return list(pairwise(bounds))
