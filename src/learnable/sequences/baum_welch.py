r"""Baum–Welch: the two steps of expectation–maximisation for any hidden Markov model.

A hidden chain z with first law π and transitions A emits x_t with likelihood b_t(k) = p(x_t | z_t = k). The E-step is
forward–backward: with

$$ \alpha_t(j) = b_t(j) \sum_i \alpha_{t-1}(i) A_{ij}, \qquad \beta_t(i) = \sum_j A_{ij} b_{t+1}(j) \beta_{t+1}(j) $$

P(z_t = k | x) ∝ α_t(k) β_t(k), P(z_t = i, z_{t+1} = j | x) ∝ α_t(i) A_ij b_{t+1}(j) β_{t+1}(j), and log P(x) is
log Σ_k α_T(k). Both are computed with sums that are rescaled (`_kernels.py`), and again in logarithms where a state
would be lost. Cost O(TK²), memory O(TK): likelihoods and posteriors. The two halves of a sequence run on two threads.

The M-step divides expected counts: π_k ∝ γ_1(k) + a_k − 1,
A_ij ∝ Σ_t P(z_t = i, z_{t+1} = j | x) + a_ij − 1, with Dirichlet parameters a ≥ 1; transitions that are zero stay zero.
The emissions' own statistics and formulas are the model's. Sums over rows are taken on a fixed grid, in order: their
bits do not depend on the number of threads.

Reference: L. Rabiner, A tutorial on hidden Markov models and selected applications in speech recognition, Proceedings
of the IEEE 77 (1989), 257–286.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from ..core import AnyArray, DataError, ParameterError, run_tasks
from ..data.arrays import require_finite
from ..data.blocks import Blocks, Part, add_each, scan
from ..data.door import read_features
from . import _kernels as kernels
from ._kernels import likelihood_rows, sum_by_code

Theta = tuple[AnyArray, ...]


class Parameters(NamedTuple):
    """One point of the climb."""

    startprob: AnyArray  #: π (K,)
    transmat: AnyArray  #: A (K, K)
    emission: tuple[AnyArray, ...]  #: what the emissions need


class Emission(Protocol):
    """What a climb asks of emissions with parameters θ, a tuple of arrays.

    `lines` are observations (m, d), NaN where an entry is missing; `weight` (m, M) has K columns and zeros.
    """

    def log_frames(self, lines: AnyArray, theta: Theta) -> AnyArray:
        """Return log p(x | k), (m, K)."""

    def statistics(self, lines: AnyArray, weight: AnyArray, theta: Theta) -> Theta:
        """Return the expected statistics of weighted observations."""

    def update(self, statistics: Theta, theta: Theta) -> Theta:
        """Return the θ that maximises the expected log-likelihood plus the log-prior."""


class Observed(Protocol):
    """What is asked of emissions once they are fitted."""

    def expected(self, theta: Theta, proba: AnyArray) -> AnyArray:
        """Return the mean observation under probabilities of the states (…, K)."""

    def draw(self, theta: Theta, states: AnyArray, rng: Any) -> AnyArray:
        """Return one observation for each state."""

    def n_parameters(self, theta: Theta) -> int:
        """Return how many free parameters there are."""


class BaumWelch:
    """The problem that `solvers.em` climbs.

    Parameters
    ----------
    emission : Emission
        The emissions; `log_prior` is that of their parameters, a function of θ.
    start_prior, move_prior : (K,), (K, K)
        Dirichlet parameters of π and of the rows of A.
    moves : set of str
        Which parameters are estimated: "s" (π), "t" (A), "e" (θ).
    """

    def __init__(
        self,
        owner: str,
        emission: Emission,
        log_prior: Callable[[Theta], float],
        start_prior: AnyArray,
        move_prior: AnyArray,
        moves: set[str],
        threads: int,
    ) -> None:
        self.owner = owner
        self.emission = emission
        self.emission_prior = log_prior
        self.start_prior = start_prior
        self.move_prior = move_prior
        self.moves = moves
        self.threads = threads

    def expectation(self, block: Block, parameters: Parameters) -> tuple[tuple[Any, ...], float]:
        """Return the sum of first posteriors, of pairs, the emissions' statistics, and the log-likelihood."""
        frames = frames_of(self.emission, block.lines, block.codes, block.offsets, parameters)
        found = smooth(frames, parameters.startprob, parameters.transmat, self.threads)
        total = float(found.log_likelihoods.sum())
        if not np.isfinite(total):
            raise DataError(
                f"{self.owner}: the observations are impossible under the start; "
                "a zero in startprob_, transmat_ or the emissions stays zero."
            )
        first = found.gamma[block.offsets[:-1]].sum(axis=0)
        return (first, found.pairs, *self._emission_statistics(block, found.padded, parameters)), total

    def _emission_statistics(self, block: Block, gamma: AnyArray, parameters: Parameters) -> tuple[AnyArray, ...]:
        def count(rows: slice) -> tuple[AnyArray, ...]:
            return self.emission.statistics(block.lines[rows], weight[rows], parameters.emission)

        weight = block.by_line(gamma)
        if block.codes.size:  # the lines are few, and may stand for each other
            return count(slice(None))
        return reduce(add_each, in_order(count, len(weight), self.threads))

    def maximisation(self, statistics: tuple[Any, ...], parameters: Parameters) -> Parameters:
        """Return the parameters that maximise the expected log-likelihood plus the log-priors."""
        first, pairs, *rest = statistics
        start, A, emission = parameters
        if "s" in self.moves:
            start = estimate_rows(first[None], self.start_prior[None], start[None])[0]
        if "t" in self.moves:
            A = estimate_rows(pairs, self.move_prior, A)
        if "e" in self.moves:
            emission = self.emission.update(tuple(rest), emission)
        return Parameters(start, A, emission)

    def log_prior(self, parameters: Parameters) -> float:
        """Return the log-priors, up to a constant."""
        total = log_dirichlet(parameters.startprob, self.start_prior)
        total += log_dirichlet(parameters.transmat, self.move_prior)
        return float(total + self.emission_prior(parameters.emission))


def frames_of(
    emission: Emission, lines: AnyArray, codes: AnyArray, offsets: AnyArray, parameters: Parameters
) -> Frames:
    """Return the log-likelihoods of rows, computed when they are asked for."""

    def compute(some: AnyArray) -> AnyArray:
        return emission.log_frames(some, parameters.emission)

    return Frames(LazyRows(compute, lines, len(parameters.startprob)), codes, offsets)


# --------------------------------------------------------------------------------------------------------------------
# Forward–backward.

R = TypeVar("R")
#: Lines whose likelihoods are computed at once: they stay in the cache.
_LINES = 2**14
#: Numbers, rows times states, from which a second thread is worth its start.
WORTH_A_THREAD = 2**17


class LazyRows:
    """The log-likelihoods of lines, computed when some of them are asked for."""

    def __init__(self, compute: Callable[[AnyArray], AnyArray], lines: AnyArray, K: int) -> None:
        self._compute = compute
        self._lines = lines
        self.shape = (len(lines), K)

    def __getitem__(self, rows: slice) -> AnyArray:
        return self._compute(self._lines[rows])


class Frames(NamedTuple):
    """Log-likelihoods of observations, and the sequences they belong to."""

    log: AnyArray | LazyRows  #: (lines, K) log b
    codes: AnyArray  #: (n,) int64, the line of each row; empty if row t has line t
    offsets: AnyArray  #: (S + 1,) int64, where the sequences begin

    @property
    def n_rows(self) -> int:
        """Number of observations."""
        return int(self.offsets[-1])


class Smoothed(NamedTuple):
    """What forward–backward finds."""

    log_likelihoods: AnyArray  #: (S,) log P(x) of each sequence
    padded: AnyArray  #: (n, M) P(z_t = k | x), and zeros up to a multiple of four
    pairs: AnyArray  #: (K, K) Σ_t P(z_t = i, z_{t+1} = j | x)

    @property
    def gamma(self) -> AnyArray:
        """P(z_t = k | x), (n, K)."""
        return self.padded[:, : len(self.pairs)]


def smooth(frames: Frames, startprob: AnyArray, transmat: AnyArray, threads: int = 1) -> Smoothed:
    """Return the posteriors of states and pairs. Impossible observations give a log-likelihood of −inf."""
    K = len(startprob)
    S = len(frames.offsets) - 1
    n = frames.n_rows
    M = padded_size(K)
    threads = threads if n * M >= WORTH_A_THREAD else 1
    b, offset = likelihoods(frames, threads)
    start = pad(startprob)
    A = pad_table(transmat)
    AT = pad_table(transmat.T)
    sums = np.empty(n * M)
    end = pad(np.full(K, 1.0 / K))
    middle = np.zeros((2, S * M))
    logs = np.zeros((2, S))
    pairs = np.zeros((2, M * M))
    ring = np.zeros((2, 2, (kernels.RING + 1) * M))
    pred = np.empty((2, M))
    sides = (frames.offsets, b, frames.codes)
    fine = both(
        lambda: kernels.climb(*sides, start, A, True, sums, middle[0], logs[0], pred[0]),
        lambda: kernels.climb(*sides, end, AT, False, sums, middle[1], logs[1], pred[1]),
        threads,
    ) and both(
        lambda: kernels.meet(*sides, start, A, True, sums, middle[0], logs[0], pairs[0], ring[0], pred[0]),
        lambda: kernels.meet(*sides, end, AT, False, sums, middle[1], logs[1], pairs[1], ring[1], pred[1]),
        threads,
    )
    if not fine:
        return _smooth_in_logs(frames, startprob, transmat)
    forward, backward = pairs.reshape(2, M, M)
    moves = (forward + backward.T)[:K, :K] * transmat
    return Smoothed(logs[0] + sums_of_sequences(frames, offset), sums.reshape(n, M), moves)


def _smooth_in_logs(frames: Frames, startprob: AnyArray, transmat: AnyArray) -> Smoothed:
    K = len(startprob)
    store = np.full((frames.n_rows, K), -np.inf)
    logs = np.zeros(len(frames.offsets) - 1)
    pairs = np.zeros((K, K))
    logb = np.ascontiguousarray(frames.log[:])
    L = log_of(transmat)
    kernels.forward_logs(frames.offsets, logb, frames.codes, log_of(startprob), L, store, logs)
    if np.isfinite(logs).all():
        kernels.backward_logs(frames.offsets, logb, frames.codes, L, store, pairs)
    padded = np.zeros((len(store), padded_size(K)))
    padded[:, :K] = store
    return Smoothed(logs, padded, pairs)


def likelihoods(frames: Frames, threads: int = 1, floor: bool = False) -> tuple[AnyArray, AnyArray]:
    """Return b, padded, with a greatest entry of one in each row, and the logarithm that was taken out."""
    n, K = frames.log.shape
    M = padded_size(K)
    b = np.empty(n * M)
    offset = np.empty(n)
    padding = pad(np.zeros(K), -np.inf)

    def fill(rows: slice) -> None:
        log = frames.log[rows]
        part = b[rows.start * M : rows.stop * M]
        likelihood_rows(widen(log, M).reshape(-1), padding, part, offset[rows])
        if floor:  # zero is left to what is impossible
            seen = part.reshape(-1, M)[:, :K]
            seen[(seen == 0) & (log > -np.inf)] = 1e-300

    in_order(fill, n, threads)
    return b, offset


def widen(log: AnyArray, M: int) -> AnyArray:
    """Return a table (n, M) whose first columns are those of `log`; the others are any numbers but NaN."""
    whole: Any = log.base
    fits = isinstance(whole, np.ndarray) and whole.shape == (len(log), M) and whole.flags.c_contiguous
    if fits and whole.dtype == np.float64 and whole.ctypes.data == log.ctypes.data:
        return whole  # `log` is a view of a table that was padded from the beginning
    out = np.zeros((len(log), M))
    out[:, : log.shape[1]] = log
    return out


def sums_of_sequences(frames: Frames, offset: AnyArray) -> AnyArray:
    """Return the sum over each sequence of what was taken out of its rows."""
    rows = offset[frames.codes] if frames.codes.size else offset
    return np.add.reduceat(rows, frames.offsets[:-1])


def in_order(work: Callable[[slice], R], n: int, threads: int) -> list[R]:
    """Return work(rows) for slices of n rows, on a grid that does not depend on the number of threads."""
    grid = [slice(lo, min(lo + _LINES, n)) for lo in range(0, n, _LINES)]
    done: list[list[R]] = [[], []]
    half = (len(grid) + 1) // 2
    both(
        lambda: done[0].extend(work(rows) for rows in grid[:half]),
        lambda: done[1].extend(work(rows) for rows in grid[half:]),
        threads if len(grid) > 1 else 1,
    )
    return done[0] + done[1]


def both(first: Callable[[], Any], second: Callable[[], Any], threads: int) -> bool:
    """Run two functions, side by side if there are two threads; tell whether neither said False."""
    if threads < 2:
        return first() is not False and second() is not False
    answers = run_tasks(lambda number: (first, second)[number](), 2, threads)
    return answers[0] is not False and answers[1] is not False


def padded_size(K: int) -> int:
    """Return M, the least multiple of four that is at least K."""
    return -(-K // 4) * 4


def pad(v: AnyArray, fill: float = 0.0) -> AnyArray:
    """Return a vector over states with entries `fill` up to a multiple of four."""
    out = np.full(padded_size(len(v)), fill)
    out[: len(v)] = v
    return out


def pad_table(A: AnyArray, fill: float = 0.0) -> AnyArray:
    """Return a table over pairs of states, padded likewise, as a vector."""
    K = len(A)
    M = padded_size(len(A))
    out = np.full((M, M), fill)
    out[:K, :K] = A
    return out.ravel()


def log_of(p: AnyArray) -> AnyArray:
    """Return log p, −inf at zero."""
    with np.errstate(divide="ignore"):
        return np.log(p)


# --------------------------------------------------------------------------------------------------------------------
# Laws of states: what may be one, and the step that estimates rows of them from counts.

#: Rows of probabilities may miss the sum one by this much; they are then divided by their sum.
SLACK = 1e-8


def check_probabilities(owner: str, name: str, values: Any, ndim: int) -> AnyArray:
    """Return probabilities whose last axis sums to one, or raise ParameterError."""
    try:
        p = np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ParameterError(f"{owner}: {name} must be an array of probabilities; got {values!r}.") from error
    if p.ndim != ndim or p.size == 0:
        raise ParameterError(f"{owner}: {name} must have {ndim} dimensions and no empty one; got shape {p.shape}.")
    sums = p.sum(axis=-1)
    if not ((p >= 0).all() and (abs(sums - 1) <= SLACK).all()):
        raise ParameterError(
            f"{owner}: {name} must be probabilities >= 0 whose rows sum to 1; "
            f"got the least {p.min()} and sums between {sums.min()} and {sums.max()}; divide the rows by their sums."
        )
    return p / sums[..., None]


def check_numbers(owner: str, name: str, values: Any, shape: tuple[int, ...], positive: bool = False) -> AnyArray:
    """Return finite numbers of a shape, or raise ParameterError."""
    array = np.asarray(values, dtype=np.float64)
    if array.shape != shape or not np.isfinite(array).all() or (positive and (array < 0).any()):
        rule = "numbers >= 0" if positive else "finite numbers"
        raise ParameterError(f"{owner}: {name} must be {rule} of shape {shape}; got shape {array.shape}.")
    return array


def allowed_moves(owner: str, structure: Any, K: int) -> AnyArray:
    """Return which transitions a structure allows: a (K, K) table of truth values."""
    i, j = np.indices((K, K))
    if structure is None:
        return np.ones((K, K), dtype=bool)
    if isinstance(structure, str):
        return (j >= i) & (j <= i + 1) if structure == "left-right" else abs(i - j) <= 1
    allowed = np.asarray(structure) != 0
    if allowed.shape != (K, K) or not allowed.any(axis=1).all():
        raise ParameterError(
            f"{owner}: structure must have shape ({K}, {K}) and allow a move out of every state; "
            f"got shape {allowed.shape}."
        )
    return allowed


def estimate_rows(counts: AnyArray, prior: AnyArray, current: AnyArray) -> AnyArray:
    """Return rows ∝ counts + prior − 1; entries that are zero stay zero, a row without counts stays as it is."""
    raised = np.where(current > 0, counts + prior - 1.0, 0.0)
    total = raised.sum(axis=1, keepdims=True)
    return np.where(total > 0, raised / np.where(total > 0, total, 1.0), current)


def log_dirichlet(p: AnyArray, prior: AnyArray) -> float:
    """Return Σ (a − 1) log p over the entries that are not zero, the log-density up to a constant."""
    free = (p > 0) & (prior != 1)
    return float(((prior[free] - 1) * np.log(p[free])).sum())


# --------------------------------------------------------------------------------------------------------------------
# Sequences of observations: one table of rows, and the lengths of the sequences that it holds one after the other.

_BLOCK_ROWS = 2**14  # short sequences share a block of about this many rows


class SequenceTable(NamedTuple):
    """Observations and where their sequences begin."""

    X: AnyArray  #: (n, d) float64, NaN where missing
    offsets: AnyArray  #: (S + 1,) int64
    fingerprint: str  #: checksum of the rows, their order and the lengths


class Block(NamedTuple):
    """Some sequences."""

    lines: AnyArray  #: (m, d) observations
    codes: AnyArray  #: (n,) int64, the line of each row; empty if row t is line t
    offsets: AnyArray  #: (S + 1,) int64, from zero

    def by_line(self, gamma: AnyArray) -> AnyArray:
        """Return the sum of gamma (n, M), M a multiple of four, over the rows of each line."""
        if not self.codes.size:
            return gamma
        total = np.zeros((len(self.lines), gamma.shape[1]))
        sum_by_code(self.codes, gamma.ravel(), total.reshape(-1))
        return total


def read_sequences(model: Any, X: Any, lengths: Any, n_jobs: int | None, *, reset: bool = True) -> SequenceTable:
    """Read and check sequences; the fingerprint is computed for a fit (`reset`)."""
    rows = read_features(model, X, sparse=False, reset=reset, check_finite=not reset, missing=True)
    rows = np.ascontiguousarray(rows, dtype=np.float64)
    offsets = read_offsets(type(model).__name__, lengths, len(rows))
    if not reset:
        return SequenceTable(rows, offsets, "")
    checksum, bad_rows = scan(Blocks([Part(rows, row_stamps(offsets))]), n_jobs)
    if bad_rows:
        names = getattr(model, "feature_names_in_", None)
        require_finite(type(model).__name__, rows, "X", names, missing=True)
    return SequenceTable(rows, offsets, f"{checksum:016x}")


def row_stamps(offsets: AnyArray) -> AnyArray:
    """Return what makes the checksum know the order of the rows and where sequences begin: t, and ½ more at a start."""
    stamps = np.arange(offsets[-1], dtype=np.float64)
    stamps[offsets[:-1]] += 0.5
    return stamps


def read_offsets(owner: str, lengths: Any, n: int) -> AnyArray:
    """Return where the sequences begin, and n."""
    if lengths is None:
        return np.array([0, n], dtype=np.int64)
    try:
        sizes = np.asarray(lengths)
        whole = sizes.ndim == 1 and sizes.dtype.kind in "iu"
    except (TypeError, ValueError):
        whole = False
    if not whole or (sizes < 1).any() or sizes.sum() != n:
        raise DataError(
            f"{owner}: lengths must be integers >= 1 with the sum {n}, the number of rows; got {lengths!r:.80}."
        )
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def cut_sequences(lines: AnyArray, codes: AnyArray, offsets: AnyArray) -> list[Block]:
    """Return blocks of whole sequences, on a grid that depends on the lengths alone."""
    blocks = []
    first = 0
    for s in range(1, len(offsets)):
        if offsets[s] - offsets[first] >= _BLOCK_ROWS or s == len(offsets) - 1:
            lo = offsets[first]
            hi = offsets[s]
            part = (lines, codes[lo:hi]) if codes.size else (lines[lo:hi], codes)
            blocks.append(Block(*part, offsets[first : s + 1] - lo))
            first = s
    return blocks
