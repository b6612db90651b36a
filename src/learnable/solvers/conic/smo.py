r"""Rows of a large symmetric matrix, computed tile by tile when they are asked for and kept while there is room.

The matrix is never whole. Rows are computed in tiles on threads; each tile is the work of one thread
with one-thread BLAS, so that the bits do not depend on the number of threads. The rows used longest ago make room.

Quadratic programs of kernel machines by decomposition.

    min_β  ½ βᵀKβ + qᵀβ     subject to  low ≤ β ≤ high,   Σβ fixed over each group of variables

K is large, positive semidefinite and never whole. β are signed multipliers (yα in classification), so that signs of
labels appear in the bounds alone. Regression has two variables for a row, of which K knows one: variable i belongs to
row i mod n. Without an offset in the model there is no equality constraint.

With v = −(Kβ + q), β is optimal when no variable that may rise is pulled more than one that may fall:

    violation = max_{β<high} v − min_{β>low} v ≤ tol,     the largest over the groups.

Each round takes a working set, half of it from the last one and half the worst violators from both ends; solves for
it alone, by pairs of greatest second-order gain, to a tenth of its violation; and adds the rows that moved to Kβ.

A variable at a bound that no other one pulls away from it rests: at `low` with a pull below all that may fall, at
`high` with one above all that may rise. Once most rows rest, the others are solved for alone (shrinking), in a matrix
of their own that fits into the same memory; afterwards Kβ of the rows at rest is brought up to date and all variables
are looked at again, so that shrinking changes the time and never the answer.

Rows may be float32: Kβ is summed in float64, and at the end computed exactly where it decides the violation.

References: C.-C. Chang and C.-J. Lin, LIBSVM, 2011; R.-E. Fan, P.-H. Chen and C.-J. Lin, Working set selection using
second order information, JMLR 6, 2005; Z. Wen et al., ThunderSVM, JMLR 19, 2018.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from ...core import Array, NDArray, Progress, TaskTeam, no_progress, resolve_n_jobs
from ._smo_kernels import (
    LANES,
    Block,
    add_rows,
    gather_block,
    narrow_rows,
    score_variables,
    solve_block,
    solve_block_alone,
)

Rows = NDArray[np.int64]

_SUM_TILE = 2048  # columns that one call sums
_FRESH = 2  # blocks of rows that are kept where rows are cheap
_SHORT = 4096  # columns of rows that are read by one thread before others have woken up


class RowSource(Protocol):
    """What can compute rows of a symmetric matrix K (n, n)."""

    dtype: Any  #: of the rows: float32 or float64
    costly: bool  #: whether a row takes longer to compute than memory for it takes to get

    def diagonal(self) -> Array:
        """Return K_ii (n,) in the precision of the rows."""

    def tasks(self, rows: Rows, store: NDArray[Any], slots: Rows) -> tuple[Callable[[int], None], int]:
        """Return a function of a number, and how many there are, that together set store[slots] = K[rows]."""

    def square(self, rows: Rows, out: NDArray[Any]) -> tuple[Callable[[int], None], int] | None:
        """Return such tasks for out = K[rows, rows]; None if it is faster to take them from whole rows."""

    def sums(self, rows: Rows, support: Rows, beta: Array, team: Team) -> Array:
        """Return K[rows, support] β in the precision of rows."""

    def exact(self, rows: Rows, support: Rows, beta: Array) -> Array:
        """Return K[rows, support] β in float64, from float64 entries."""

    def part(self, rows: Rows) -> RowSource:
        """Return the source of K[rows, rows]."""


class Team(TaskTeam):
    """The threads of a decomposition, with one thread of BLAS for each.

    Examples
    --------
    >>> with Team(2) as team:
    ...     team.run(abs, 3)
    [0, 1, 2]
    """

    def __init__(self, n_jobs: int | None) -> None:
        super().__init__(resolve_n_jobs(n_jobs))


class RowCache:
    """The matrix as the decomposition sees it: blocks of it, and sums of its rows.

    Parameters
    ----------
    source : RowSource
        Who computes rows.
    n : int
        Size of the matrix.
    megabytes : float
        Most room for rows; at least those of one block are kept, and not many more where they are cheap.
    team : Team
        Threads.
    """

    def __init__(self, source: RowSource, n: int, megabytes: float, team: Team, block: int) -> None:
        itemsize = np.dtype(source.dtype).itemsize
        capacity = int(min(n, max(block, megabytes * 2**20 / max(1, n * itemsize))))
        if not source.costly:
            capacity = min(capacity, _FRESH * block)
        self._settle_in(source, n, team, np.empty(capacity * n, dtype=source.dtype))

    def _settle_in(self, source: RowSource, n: int, team: Team, room: NDArray[Any]) -> None:
        """Start without rows, in the memory given."""
        self.source = source
        self.n = n
        self.team = team
        self._room = room
        capacity = min(n, room.size // max(n, 1))
        self._store = room[: capacity * n].reshape(capacity, n)
        self._slot_of = np.full(n, -1, dtype=np.int64)
        self._row_in = np.full(capacity, -1, dtype=np.int64)
        self._used = np.full(capacity, -1, dtype=np.int64)
        self._clock = 0
        self.n_computed = 0

    def rounding(self) -> bool:
        """Tell whether rows are float32."""
        return bool(np.dtype(self.source.dtype) == np.float32)

    def diagonal(self) -> Array:
        """Return K_ii."""
        return self.source.diagonal()

    def block(self, rows: Rows) -> NDArray[Any]:
        """Return K[rows, rows]; a negative row is padding, of zeros."""
        out = np.empty((len(rows), len(rows)), dtype=self._store.dtype)
        real = rows >= 0
        short = self.n <= _SHORT and bool((self._slot_of[rows[real]] >= 0).all())
        tasks = None if short else self.source.square(rows, out)
        if tasks is not None:
            self.team.run(*tasks)
            out[~real] = 0
            out[:, ~real] = 0
            return out
        self._fetch(np.unique(rows[real]))
        gather_block(self._store, np.where(real, self._slot_of[rows], -1), rows, out)
        return out

    def add(self, f: Array, rows: Rows, delta: Array) -> None:
        """Add K[:, rows] delta to f; there are at most as many rows as in a block."""
        self._fetch(np.unique(rows))
        slots = self._slot_of[rows]

        def task(number: int) -> None:
            start = number * _SUM_TILE
            add_rows(self._store, slots, delta, start, f[start : start + _SUM_TILE])

        if self.n <= _SHORT:  # sooner done than shared
            add_rows(self._store, slots, delta, 0, f)
        else:
            self.team.run(task, -(-self.n // _SUM_TILE))

    def sums(self, rows: Rows, support: Rows, beta: Array) -> Array:
        """Return K[rows, support] β in the precision of rows."""
        return self.source.sums(rows, support, beta, self.team)

    def exact(self, rows: Rows, support: Rows, beta: Array) -> Array:
        """Return K[rows, support] β in float64."""
        return self.source.exact(rows, support, beta)

    def part(self, rows: Rows) -> RowCache:
        """Return K[rows, rows] in this cache's memory, with those of its rows that were here; here are none then."""
        part = RowCache.__new__(RowCache)
        part._settle_in(self.source.part(rows), len(rows), self.team, self._room)
        slots = np.sort(self._slot_of[rows])
        slots = slots[slots >= 0][: len(part._store)]
        narrow_rows(self._room, self.n, slots, rows, len(rows))
        places = np.searchsorted(rows, self._row_in[slots])
        part._row_in[: len(slots)] = places
        part._used[: len(slots)] = 0
        part._slot_of[places] = np.arange(len(slots))
        self._settle_in(self.source, self.n, self.team, self._room)
        return part

    def _fetch(self, rows: Rows) -> None:
        """Compute the rows that are not there."""
        self._clock += 1
        slots = self._slot_of[rows]
        self._used[slots[slots >= 0]] = self._clock
        missing = rows[slots < 0]
        if not len(missing):
            return
        self.n_computed += len(missing)
        places = np.argpartition(self._used, len(missing) - 1)[: len(missing)]
        places.sort()
        gone = self._row_in[places]
        self._slot_of[gone[gone >= 0]] = -1
        self._row_in[places] = missing
        self._slot_of[missing] = places
        self._used[places] = self._clock
        self.team.run(*self.source.tasks(missing, self._store, places))


_BLOCK = 512  # variables in a working set
_LARGE = 8_000  # variables from which there are twice as many: fewer rounds, each over all rows
_SHRINK = 0.1  # share of a block's violation at which its solution stops
_MOST_STEPS = 100  # steps per variable before the next working set: infeasible programs would loop forever
_TOUCHING = 1e-10  # squared distance of two hulls, relative to the extent of the data, below which they touch
_RESTLESS = 0.5  # share of the rows not at rest up to which they are solved for alone
_INEXACT = 0.98  # share of tol to reach with float32 rows, whose error the exact check then adds


class BoxProgram(NamedTuple):
    """The program; m is n, or 2n for two variables per row."""

    linear: Array  #: q (m,)
    low: Array  #: (m,)
    high: Array  #: (m,), may be infinite
    second: NDArray[np.bool_] | None = None  #: (m,) variables of a second equality constraint; None: there is one
    constrained: bool = True  #: whether there are equality constraints at all


class Solution(NamedTuple):
    """What the decomposition found."""

    beta: Array  #: β (m,)
    f: Array  #: Kβ (n,), summed over the two variables of a row
    violation: float  #: as defined above, exact
    rises: tuple[float, ...]  #: the largest pull that may rise, of each group
    falls: tuple[float, ...]  #: the least pull that may fall
    n_steps: int  #: pairs that were moved
    n_rounds: int  #: working sets
    runs_away: bool = False  #: without a bound above, β grows for ever: the program has no solution


class SymmetricMatrix(Protocol):
    """What the decomposition asks of K."""

    n: int

    def diagonal(self) -> Array:
        """Return K_ii (n,)."""

    def block(self, rows: Rows) -> NDArray[np.floating]:
        """Return K[rows, rows] in C order; a negative row is padding, of zeros."""

    def add(self, f: Array, rows: Rows, delta: Array) -> None:
        """Add K[:, rows] delta to f; there are at most as many rows as in a working set."""

    def sums(self, rows: Rows, support: Rows, beta: Array) -> Array:
        """Return K[rows, support] β in the precision of blocks."""

    def exact(self, rows: Rows, support: Rows, beta: Array) -> Array:
        """Return K[rows, support] β in float64."""

    def rounding(self) -> bool:
        """Tell whether blocks and sums are of less than float64's precision."""

    def part(self, rows: Rows) -> SymmetricMatrix:
        """Return K[rows, rows] for ascending rows; it may use this matrix's memory until this one is asked again."""


def decompose(
    K: SymmetricMatrix,
    program: BoxProgram,
    *,
    tol: float = 1e-3,
    start: Array | None = None,
    max_steps: int | None = None,
    block: int | None = None,
    shrinking: bool = True,
    progress: Progress = no_progress,
    stop: NDArray[np.int64] | None = None,
) -> Solution:
    """Solve the program to a violation of `tol`.

    Parameters
    ----------
    K : SymmetricMatrix
        The matrix, by blocks and sums of rows.
    program : BoxProgram
        The linear term, the bounds, the groups.
    tol : float
        Violation to reach.
    start : (m,) array, optional
        A feasible β, whose sums the equality constraints keep; zero by default.
    max_steps : int, optional
        Most pairs to move.
    block : int, optional
        Most variables in a working set; `working_set_size` by default.
    shrinking : bool
        Whether rows at rest are left out for a while.
    progress : function
        Called once a round with the violation; True stops with the best so far.
    stop : int64 array of one, optional
        Raised by another thread, it stops a block.
    """
    state = _State.of(K, program, start)
    flag = np.zeros(1, np.int64) if stop is None else stop
    limit = np.iinfo(np.int64).max if max_steps is None else max_steps
    goal = tol * (_INEXACT if K.rounding() else 1.0)
    size = working_set_size(state.m) if block is None else block
    search = _Search(goal, 0.5 * tol, limit, size, shrinking and state.bounded, progress, flag)
    violation = search.lower(state)
    violation = state.settle(tol) if K.rounding() and not search.runs_away else violation
    return Solution(state.beta, state.f, violation, *state.edges(), search.steps, search.rounds, search.runs_away)


class _Search:
    """Rounds of working sets over all rows, or over those that are not at rest."""

    def __init__(
        self, goal: float, floor: float, limit: int, block: int, shrinking: bool, progress: Progress, stop: Any
    ) -> None:
        self.goal = goal
        self.floor = floor
        self.limit = limit
        self.block = block
        self.shrinking = shrinking
        self.progress = progress
        self.stop = stop
        self.rounds = self.steps = 0
        self.ended = self.runs_away = False

    def lower(self, state: _State) -> float:
        """Lower the violation to the goal, unless something else ends the search, and return it."""
        kept: Rows = np.empty(0, np.int64)
        stalled = 0
        violation = state.score()
        while violation > self.goal and stalled < 3 and not self._ends(state, violation):
            size = min(self.block, working_set_size(state.m))
            if self.shrinking and state.m > 2 * size and len(rows := state.restless()) <= _RESTLESS * state.n:
                violation = self._lower_part(state, rows)
                kept = kept[:0]
                if violation <= self.goal or self.ended:
                    break
            chosen = _working_set(state, kept, size)
            most = min(self.limit - self.steps, _MOST_STEPS * len(chosen))
            moved = state.solve(chosen, self.floor, most, self.stop)
            stalled = 0 if moved else stalled + 1  # no more progress: rounding limit
            kept = chosen if moved else kept[:0]
            self.steps = self.steps + moved
            self.rounds = self.rounds + 1
            violation = state.score()
        return violation

    def _lower_part(self, state: _State, rows: Rows) -> float:
        """Solve for some rows alone; return the violation of all."""
        part = state.part(rows)
        self.lower(part)
        state.take_back(part, rows)
        return state.score()

    def _ends(self, state: _State, violation: float) -> bool:
        self.runs_away = state.runs_away()
        self.ended = self.runs_away or self.steps >= self.limit or self.progress(self.rounds, violation)
        return self.ended


class _State:
    """β, Kβ and the pulls of all variables."""

    def __init__(self, K: SymmetricMatrix, program: BoxProgram, beta: Array, f: Array) -> None:
        self.K = K
        self.program = program
        self.n = K.n
        self.m = len(beta)
        self.beta = beta
        self.f = f
        self.up = np.empty(self.m)
        self.down = np.empty(self.m)
        self.diagonal = K.diagonal()
        second = program.second
        self.groups = [np.arange(self.m)] if second is None else [np.flatnonzero(~second), np.flatnonzero(second)]
        self.bounded = bool(np.isfinite(program.high).all() and np.isfinite(program.low).all())
        if not self.bounded:  # the largest squared distance from the first row
            first = np.zeros(K.n)
            K.block(np.arange(min(LANES, K.n)))
            K.add(first, np.zeros(1, np.int64), np.ones(1))
            self.extent = float((self.diagonal + self.diagonal[0] - 2.0 * first).max())

    @classmethod
    def of(cls, K: SymmetricMatrix, program: BoxProgram, start: Array | None) -> _State:
        """Return the state at the start."""
        beta = np.zeros(len(program.linear)) if start is None else np.array(start, dtype=np.float64)
        state = cls(K, program, beta, np.zeros(K.n))
        if beta.any():
            state.f = state.exactly(np.arange(K.n))
        return state

    def restless(self) -> Rows:
        """Return the rows of which a variable is not at rest."""
        moving = np.ones(self.m, dtype=bool)
        for g, top, bottom in zip(self.groups, *self.edges(), strict=True):
            if not self.program.constrained:
                top = max(top, 0.0)
                bottom = min(bottom, 0.0)
            # infinite where a bound forbids it
            rising = self.up[g]
            falling = self.down[g]
            moving[g] = np.where(np.isinf(falling), rising >= bottom, np.isfinite(rising) | (falling <= top))
        return np.flatnonzero(moving.reshape(-1, self.n).any(axis=0))

    def part(self, rows: Rows) -> _State:
        """Return the state of some rows, where all others stay as they are."""
        p = self.program
        own = self._variables(rows)
        second = None if p.second is None else p.second[own]
        part = BoxProgram(p.linear[own], p.low[own], p.high[own], second, p.constrained)
        return _State(self.K.part(rows), part, self.beta[own], self.f[rows])

    def take_back(self, part: _State, rows: Rows) -> None:
        """Take over what was solved for some rows, and bring Kβ of all others up to date."""
        own = self._variables(rows)
        delta = (part.beta - self.beta[own]).reshape(-1, len(rows)).sum(axis=0)
        self.beta[own] = part.beta
        moved = np.flatnonzero(delta)
        resting = np.setdiff1d(np.arange(self.n), rows, assume_unique=True)
        self.f[resting] += self.K.sums(resting, rows[moved], delta[moved])
        self.f[rows] = part.f

    def _variables(self, rows: Rows) -> Rows:
        """Return the variables of some rows."""
        return np.concatenate([rows + k for k in range(0, self.m, self.n)])

    def exactly(self, rows: Rows) -> Array:
        """Return Kβ of some rows in float64."""
        total = self.beta.reshape(-1, self.n).sum(axis=0)
        support = np.flatnonzero(total)
        return self.K.exact(rows, support, total[support])

    def score(self) -> float:
        """Compute the pulls and return the violation."""
        p = self.program
        n = self.n
        for k in range(0, self.m, n):
            part = slice(k, k + n)
            score_variables(
                self.f, p.linear[part], self.beta[part], p.low[part], p.high[part], self.up[part], self.down[part]
            )
        tops, bottoms = self.edges()
        if not p.constrained:
            return max(tops[0], 0.0) - min(bottoms[0], 0.0)
        return max(0.0, *(top - bottom for top, bottom in zip(tops, bottoms, strict=True)))

    def edges(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Return the largest pull that may rise and the least that may fall, of each group."""
        if len(self.groups) == 1:
            return (float(self.up.max()),), (float(self.down.min()),)
        tops = tuple(float(self.up[g].max(initial=-np.inf)) for g in self.groups)
        return tops, tuple(float(self.down[g].min(initial=np.inf)) for g in self.groups)

    def solve(self, chosen: Rows, floor: float, limit: int, stop: NDArray[np.int64]) -> int:
        """Solve for the chosen variables, in two halves padded to whole lanes; return the number of steps."""
        p = self.program
        chosen = np.sort(chosen)  # rows are then read from left to right
        halves = [chosen] if p.second is None else [chosen[~p.second[chosen]], chosen[p.second[chosen]]]
        padded = [np.concatenate([half, np.full(_padding(len(half)), -1)]) for half in halves]
        places = np.concatenate(padded)
        real = places >= 0
        rows = np.where(real, places % self.n, -1)
        beta, low, high = (np.where(real, a[places], 0.0) for a in (self.beta, p.low, p.high))
        variables = Block.of(
            np.where(real, -(self.f[rows] + p.linear[places]), 0.0),
            np.where(beta < high, 0.0, -np.inf),
            np.where(beta > low, 0.0, np.inf),
            np.where(real, self.diagonal[rows], 0.0),
        )
        matrix = self.K.block(rows)
        before = beta.copy()
        if p.constrained:
            split = len(padded[0])
            steps = solve_block(matrix, variables, beta, low, high, split, _SHRINK, floor, limit, stop)
        else:
            steps = solve_block_alone(matrix, variables, beta, low, high, _SHRINK, floor, limit, stop)
        moved = np.flatnonzero(beta != before)
        self.beta[places[moved]] = beta[moved]
        self.K.add(self.f, rows[moved], beta[moved] - before[moved])
        return int(steps)

    def runs_away(self) -> bool:
        """Tell whether multipliers grow without bound while Kβ does not: ‖w‖/Σ|β| is a distance of two hulls."""
        if self.bounded:
            return False
        size = float(np.abs(self.beta).sum())
        square = float(self.beta.reshape(-1, self.n).sum(axis=0) @ self.f)
        return size > 0 and square <= _TOUCHING * size**2 * self.extent

    def settle(self, tol: float) -> float:
        """Compute Kβ exactly wherever it may decide the violation, and return that."""
        known = np.zeros(self.n, dtype=bool)
        margin = 0.02 * tol
        while True:
            near = np.zeros(len(self.beta), dtype=bool)
            for g, top, bottom in zip(self.groups, *self.edges(), strict=True):
                near[g] = (self.up[g] >= top - margin) | (self.down[g] <= bottom + margin)
            rows = np.unique(np.flatnonzero(near) % self.n)
            rows = rows[~known[rows]]
            if not len(rows):
                return self.score()
            exact = self.exactly(rows)
            margin = max(margin, 3.0 * float(np.abs(exact - self.f[rows]).max()))
            self.f[rows] = exact
            known[rows] = True
            self.score()


def working_set_size(m: int) -> int:
    """Return how many of m variables make a working set."""
    return _BLOCK if m < _LARGE else 2 * _BLOCK


def _padding(size: int) -> int:
    """Return how many variables are missing to a power of two."""
    return max(LANES, 1 << max(size - 1, 0).bit_length()) - size


def _working_set(state: _State, kept: Rows, size: int) -> Rows:
    """Return the variables to solve for: the later half of the last set, and the worst violators from both ends."""
    m = len(state.beta)
    if m <= size:
        return np.arange(m)
    kept = kept[len(kept) - size // 2 :] if len(kept) > size // 2 else kept
    up = state.up.copy()
    down = state.down.copy()
    up[kept] = -np.inf
    down[kept] = np.inf
    chosen = [kept]
    quota = (size - len(kept)) // len(state.groups)
    for g, top, bottom in zip(state.groups, *state.edges(), strict=True):
        if not state.program.constrained:
            top = bottom = 0.0
        rising = up[g]
        falling = down[g]
        k = min(quota // 2, len(g) - 1)
        worst = np.argpartition(rising, len(g) - k)[len(g) - k :]
        worst = worst[rising[worst] > bottom]
        least = np.argpartition(falling, k)[:k]
        least = least[falling[least] < top]
        chosen.append(g[np.union1d(worst, least)])
    return np.concatenate(chosen)
