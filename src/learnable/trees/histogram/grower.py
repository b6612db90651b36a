"""Boosting's tree: gradients of a binned table in, a tree out, by threads that meet inside one kernel.

With G = Σg and H = Σh over the rows of a node, the second-order expansion of the loss is least at the value −G/(H + λ),
and a split gains (Chen and Guestrin, XGBoost, KDD 2016, eq. 5–7; λ is in ½λ‖w‖², γ the price of a leaf)

    ½ [ G_L²/(H_L + λ) + G_R²/(H_R + λ) − G²/(H + λ) ] − γ.

Histograms of G and H by code are summed for the smaller child only; the larger child has parent − smaller child. They
are sums of derivatives that were rounded at random to about a hundred steps of the mean one (Shi et al., Quantized
Training of GBDT, NeurIPS 2022), where that is safe, and of float64 where it is not: heavy tails (the largest derivative
over 512 times the mean one) or nearly all of one sign; or when asked for. Values, gains and sums of the finished tree
are always exact. The tree is the same for any number of threads.

How to use it:

    with BarrierTeam(n_threads) as crew:
        grower = HistogramGrower(table, rule, crew)             # memory for all trees
        grown = grower.grow(gradient, hessian, rows=None, seed=0, stop=None)     # Grown(tree, leaf_of_row)
    grown = grow_on_histograms(table, gradient, hessian, rule, rows=None, seed=0, crew=None, stop=None)

`leaf_of_row` has the leaf of every row of the table, also of those not in `rows` (ascending, distinct row numbers);
it is the grower's own array and is overwritten by the next tree. `tree.value[:, 0]` is −G/(H + λ) of every node,
without a learning rate; `tree.impurity` is −G²/(H + λ)/n, so that the fall of weight × impurity is twice the gain (plus
γ).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...core import BarrierTeam, NDArray, ParameterError
from ...data.any_order import LEDGER, LIMBS
from ..growth import Grown, GrowthStopped
from ..layout import Trees
from ._kernels import CODES, FOUND_SIZE, Limits, Space, Table, Task, Work
from ._leafwise import LINKS, NUMBERS, STATS, WORDS
from ._worker import Out, grow_tree
from .bins import BinnedTable, Bins

_BLOCKS = 64  # fixed pieces of the rows, whatever the number of threads
_MOST_POOL_BYTES = 1 << 29  # of histograms that are kept at a time
_FEW_CELLS = 1 << 22  # a tree of so few takes too short to be interrupted
_MODES = {"auto": 0, "quantised": 1, "float64": 2}


@dataclass(frozen=True)
class HistogramRule:
    """When and where a tree may split.

    Parameters
    ----------
    max_leaf_nodes, max_depth : int or None
        None: no limit.
    min_samples_leaf : int
        Rows of a leaf.
    min_hessian : float
        Least Σh of a leaf.
    reg_lambda, gamma : float
        λ and γ above.
    growth : {"leaf", "depth"}
        Whether the leaf of the largest gain is split next, or the first of the least depth.
    monotonic : (d,) int8 or None
        1: predictions may only rise with the column, −1: fall, 0: free.
    interactions : sequence of sets of columns, or None
        All columns on a path must be in one of the sets; columns that are in none form one set.
    columns_per_tree, columns_per_level, columns_per_node : float
        Share of the columns that are drawn; each draw is from what the one before it has left.
    category_smoothing : float
        Categories are tried in the order of −G/(H + smoothing): 0 gives the best set, more keeps rare levels together.
    histogram : {"auto", "quantised", "float64"}
        How sums are kept; see above. Ask for "float64" when weights span more than about 10³.

    Examples
    --------
    >>> HistogramRule(max_leaf_nodes=7).growth
    'leaf'
    """

    max_leaf_nodes: int | None = 31
    max_depth: int | None = None
    min_samples_leaf: int = 20
    min_hessian: float = 1e-3
    reg_lambda: float = 0.0
    gamma: float = 0.0
    growth: str = "leaf"
    monotonic: NDArray[np.int8] | None = None
    interactions: Sequence[Any] | None = None
    columns_per_tree: float = 1.0
    columns_per_level: float = 1.0
    columns_per_node: float = 1.0
    category_smoothing: float = 0.0
    histogram: str = "auto"


class HistogramGrower:
    """Trees on one table, one after the other, in memory that is allocated once.

    Parameters
    ----------
    binned : BinnedTable
        The table.
    rule : HistogramRule
        When to stop.
    crew : BarrierTeam or None
        Threads; None: the caller alone.
    empty : function
        Gives the memory of what there is per row, as `np.empty` does.

    Examples
    --------
    >>> import numpy as np
    >>> table = BinnedTable.build(np.arange(8.0)[:, None])
    >>> rule = HistogramRule(min_samples_leaf=1, max_leaf_nodes=2)
    >>> g = np.array([1.0, 1, 1, 1, -1, -1, -1, -1])
    >>> tree = HistogramGrower(table, rule).grow(g, np.ones(8)).tree
    >>> float(tree.threshold[0]), tree.value[:, 0].tolist()
    (3.5, [0.0, -1.0, 1.0])
    """

    def __init__(
        self, binned: BinnedTable, rule: HistogramRule, crew: BarrierTeam | None = None, empty: Any = np.empty
    ) -> None:
        if rule.growth not in ("leaf", "depth"):
            raise ParameterError(f"growth must be 'leaf' or 'depth', got {rule.growth!r}.")
        if rule.histogram not in _MODES:
            raise ParameterError(f"histogram must be one of {', '.join(_MODES)}; got {rule.histogram!r}.")
        self.binned, self.rule = binned, rule
        self._crew = crew
        self.n_threads = 1 if crew is None else crew.n_threads
        self._table = make_table(binned, rule, self._has_missing())
        self._shares = np.array([rule.columns_per_tree, rule.columns_per_level, rule.columns_per_node])
        self._sets = _sets(rule.interactions, binned.n_columns)
        n_sets = len(self._sets)
        self._space, self._works, self._out = _allocate(binned, rule, self.n_threads, n_sets, self._n_rows(), empty)

    def grow(
        self,
        gradient: NDArray[Any],
        hessian: NDArray[Any],
        *,
        rows: NDArray[Any] | None = None,
        seed: int = 0,
        stop: NDArray[np.int64] | None = None,
    ) -> Grown:
        """Grow one tree.

        Parameters
        ----------
        gradient, hessian : (n,) float64
            First and second derivatives of the loss, weights included.
        rows : (k,) ints or None
            Ascending numbers of the rows that take part.
        seed : int
            Of the rounding and of drawn columns: another one for each tree.
        stop : (1,) int64 or None
            A flag; once it is not zero, GrowthStopped is raised.
        """
        if rows is not None and not len(rows):
            raise ParameterError("rows must not be empty.")
        sample = np.zeros(0, np.uint32) if rows is None else np.ascontiguousarray(rows, np.uint32)
        task, out = self._task(gradient, hessian, sample, 0, seed), self._out
        flag = np.zeros(1, np.int64) if stop is None else stop
        out.count[0] = 0
        crew = self._crew if self._crew is not None else _ALONE
        small = self.binned.rows.size <= _FEW_CELLS
        crew.run(grow_tree, self.n_threads, self._table, task, self._space, self._works, out, stop=flag, inline=small)
        if not out.count[0]:
            raise GrowthStopped
        return Grown(self._tree(), self._space.leaf_of_row)

    def _n_rows(self) -> int:
        """Return the number of rows, those of other parts of the table included."""
        return self.binned.n_rows

    def _has_missing(self) -> NDArray[np.bool_]:
        """Return which columns have a missing value in any part of the table."""
        return self.binned.has_missing

    def _task(
        self, gradient: NDArray[Any], hessian: NDArray[Any], sample: NDArray[np.uint32], first: int, seed: int
    ) -> Task:
        """Return what the kernels have to know of one tree; `first` is the number of the first row."""
        rule, out = self.rule, self._out
        limits = Limits(
            np.int64(max(1, rule.min_samples_leaf)), float(rule.min_hessian), float(rule.reg_lambda),
            float(rule.category_smoothing), bool(np.any(self._table.sign)),
        )  # fmt: skip
        unlimited = rule.max_leaf_nodes is None or rule.max_leaf_nodes > len(out.feature) // 2 + 1
        return Task(
            np.ascontiguousarray(gradient, np.float64), np.ascontiguousarray(hessian, np.float64), sample,
            np.int64(first), np.uint64(seed),
            np.int64(len(out.feature) // 2 + 1), np.int64(2**31 if rule.max_depth is None else rule.max_depth),
            rule.growth == "depth" or unlimited, float(rule.gamma), np.int64(_MODES[rule.histogram]), limits,
            self._shares, self._sets,
        )  # fmt: skip

    def _tree(self) -> Trees:
        out = self._out
        n = int(out.count[0])
        g, h, value = out.sums[:n, 0], out.sums[:n, 1], out.sums[:n, 2]
        weight = out.n_rows[:n].astype(np.float64)
        category, bits = self._category_sets(n)
        return Trees(
            start=np.array([0, n], np.int64),
            feature=out.feature[:n].copy(),
            threshold=out.threshold[:n].copy(),
            left=out.left[:n].copy(),
            right=out.right[:n].copy(),
            missing_left=out.missing_left[:n].copy(),
            category=category,
            bits=bits,
            impurity=(g * value + 0.5 * (h + self.rule.reg_lambda) * value * value) * 2.0 / weight,
            n_rows=out.n_rows[:n].copy(),
            weight=weight,
            value=value[:, None].copy(),
        )

    def _category_sets(self, n: int) -> tuple[NDArray[np.int64], NDArray[np.uint32]]:
        """Return the sets of levels that go left, from those of bins."""
        out, bins = self._out, self.binned.bins
        category = np.full(n, -1, np.int64)
        if not bins.categorical.any():
            return category, np.zeros(0, np.uint32)
        parts: list[NDArray[np.uint32]] = []
        size = 0
        for i in np.flatnonzero(out.feature[:n] >= 0):
            j = out.feature[i]
            if bins.categorical[j]:
                words = self._space.words[0, out.source[i], :WORDS]
                left = np.unpackbits(words.view(np.uint8), bitorder="little")
                levels = bins.level_bin[bins.level_start[j] : bins.level_start[j + 1]]
                goes = np.where(levels < 0, out.missing_left[i], left[levels])
                packed = np.zeros(-(-len(goes) // 32) * 4, np.uint8)
                bytes_of = np.packbits(goes.astype(np.uint8), bitorder="little")
                packed[: len(bytes_of)] = bytes_of
                if out.missing_left[i] and len(goes) % 32:  # levels beyond the last one were not seen either
                    packed.view(np.uint32)[-1] |= np.uint32((0xFFFFFFFF << (len(goes) % 32)) & 0xFFFFFFFF)
                category[i] = size
                parts += [np.array([len(packed) // 4], np.uint32), packed.view(np.uint32)]
                size += 1 + len(packed) // 4
        return category, np.concatenate(parts) if parts else np.zeros(0, np.uint32)


def grow_on_histograms(
    binned: BinnedTable,
    gradient: NDArray[Any],
    hessian: NDArray[Any],
    rule: HistogramRule,
    *,
    rows: NDArray[Any] | None = None,
    seed: int = 0,
    crew: BarrierTeam | None = None,
    stop: NDArray[np.int64] | None = None,
) -> Grown:
    """Grow one tree; for several on one table keep a HistogramGrower, whose parameters these are."""
    return HistogramGrower(binned, rule, crew).grow(gradient, hessian, rows=rows, seed=seed, stop=stop)


class _Alone(BarrierTeam):
    """The caller as the only member of a crew."""

    def __init__(self) -> None:
        self._queues = []


_ALONE = _Alone()


def make_table(binned: BinnedTable, rule: HistogramRule, has_missing: NDArray[np.bool_]) -> Table:
    """Return the codes and the places of the bins as the kernels want them."""
    bins: Bins = binned.bins
    d = bins.n_columns
    by_stored = np.argsort(bins.stored, kind="stable").astype(np.int64)
    by_stored = by_stored[_can_split(binned, rule.min_samples_leaf)[by_stored]]
    stored_start = np.searchsorted(bins.stored[by_stored], np.arange(bins.n_stored + 1)).astype(np.int64)
    sign = np.zeros(d, np.int64) if rule.monotonic is None else np.asarray(rule.monotonic, np.int64)
    return Table(
        binned.rows.reshape(-1), np.int64(binned.rows.shape[1]), binned.columns, bins.group_start, bins.stored,
        bins.first, bins.n_bins, bins.default, bins.missing_code, bins.categorical, has_missing, by_stored,
        stored_start, sign, bins.edge_start, bins.edges,
    )  # fmt: skip


def _can_split(binned: BinnedTable, min_samples_leaf: int) -> NDArray[np.bool_]:
    """Tell which columns have enough rows outside their largest bin; only of shared bytes, where many have not."""
    bins, n = binned.bins, binned.n_rows
    able = np.ones(bins.n_columns, bool)
    shared = bins.default >= 0
    for s in np.unique(bins.stored[shared]):
        counts = np.bincount(binned.columns[s], minlength=CODES)
        for j in np.flatnonzero(shared & (bins.stored == s)):
            own = counts[bins.first[j] : bins.first[j] + bins.n_bins[j] - 1 + int(binned.has_missing[j])]
            largest = max(int(own.max(initial=0)), n - int(own.sum()))
            able[j] = n - largest >= max(1, min_samples_leaf)
    return able


def _sets(interactions: Sequence[Any] | None, d: int) -> NDArray[np.uint8]:
    if interactions is None:
        return np.zeros((0, d), np.uint8)
    sets = np.zeros((len(interactions) + 1, d), np.uint8)
    for k, members in enumerate(interactions):
        sets[k, list(members)] = 1
    sets[-1] = ~sets[:-1].any(axis=0)
    return sets[: len(sets) if sets[-1].any() else -1]


def _allocate(
    binned: BinnedTable, rule: HistogramRule, n_threads: int, n_sets: int, n_rows: int, empty: Any
) -> tuple[Space, Work, Out]:
    n, d, s = binned.n_rows, binned.n_columns, binned.bins.n_stored
    most = max(1, n_rows // max(1, rule.min_samples_leaf))
    if rule.max_leaf_nodes is not None:
        most = min(most, rule.max_leaf_nodes)
    if rule.max_depth is not None and rule.max_depth < 31:
        most = min(most, 2**rule.max_depth)
    nodes = 2 * most - 1
    slot_size = 3 * CODES * s  # what is never touched takes no memory
    n_slots = min(most + 1, max(4, _MOST_POOL_BYTES // (8 * slot_size // 3)))
    shift = max(10, (n - 1).bit_length() - _BLOCKS.bit_length() + 1)
    n_blocks = ((n - 1) >> shift) + 1
    t = n_threads
    shared_rows = t > 1 and (len(binned.bins.group_start) - 1) % t
    space = Space(
        order=empty(n, np.uint64),
        spare=empty(n, np.uint64),
        pool=np.empty(n_slots * slot_size, np.int64),
        slot_size=np.int64(slot_size),
        n_slots=np.int64(n_slots),
        private=np.empty((t, CODES * s if shared_rows else 0), np.int64),
        stats=np.zeros((n_blocks, STATS)),
        ledgers=np.empty((n_blocks, 3, LEDGER), np.int64),
        leaf_limbs=np.empty((t, nodes, 2, LIMBS), np.int64),
        block_shift=np.int64(shift),
        middle=np.zeros((2, t), np.int64),
        found=np.zeros((t, 2, FOUND_SIZE)),
        found_words=np.zeros((t, 2, 2 * WORDS), np.uint32),
        link=np.empty((t, nodes, LINKS), np.int64),
        number=np.empty((t, nodes, NUMBERS)),
        words=np.zeros((t, nodes, 2 * WORDS), np.uint32),
        part=np.empty((t, nodes, t, 2), np.int64),
        active=np.zeros((t, nodes if n_sets else 1, n_sets), np.uint8),
        free=np.empty((t, n_slots), np.int64),
        leaf_of_row=empty(n, np.int32),
        exact=np.empty((nodes, 5)),
        stack=np.empty((nodes + 1, 2), np.int64),
    )
    lines = 3 * (CODES + 1)
    works = Work(
        bins=np.empty((t, lines), np.int64), sorted=np.empty((t, lines), np.int64),
        prefix=np.empty((t, CODES + 8), np.uint64), g=np.empty((t, CODES + 8)), h=np.empty((t, CODES + 8)),
        n_left=np.empty((t, CODES + 8)), n_right=np.empty((t, CODES + 8)), score=np.empty((t, CODES + 8)),
        score_bits=np.empty((t, CODES + 8), np.int64), order=np.empty((t, CODES + 8), np.int64),
        lut=np.empty((t, CODES), np.uint8), masks=np.empty((t, 2, d), np.uint8), sums=np.empty((t, 8)),
    )  # fmt: skip
    out = Out(
        count=np.zeros(2, np.int64), feature=np.empty(nodes, np.int32), threshold=np.empty(nodes),
        left=np.empty(nodes, np.int32), right=np.empty(nodes, np.int32), missing_left=np.empty(nodes, np.uint8),
        n_rows=np.empty(nodes, np.int64), sums=np.empty((nodes, 4)), source=np.empty(nodes, np.int64),
        number=np.empty(nodes, np.int64),
    )  # fmt: skip
    return space, works, out
