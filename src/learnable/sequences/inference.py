r"""What is known about hidden states: likelihood, filtering, smoothing, pairs, the best path, drawn paths.

A hidden chain z with first law π and transitions A emits x_t with likelihood b_t(k) = p(x_t | z_t = k). With

$$ \alpha_t(j) = b_t(j) \sum_i \alpha_{t-1}(i) A_{ij}, \qquad \beta_t(i) = \sum_j A_{ij} b_{t+1}(j) \beta_{t+1}(j) $$

P(z_t = k | x) ∝ α_t(k) β_t(k), P(z_t = i, z_{t+1} = j | x) ∝ α_t(i) A_ij b_{t+1}(j) β_{t+1}(j), and log P(x) is
log Σ_k α_T(k). Both are computed with sums that are rescaled (`_kernels.py`), and again in logarithms where a state
would be lost. Cost O(TK²), memory O(TK): likelihoods and posteriors. The two halves of a sequence run on two threads.

Reference: L. Rabiner, A tutorial on hidden Markov models and selected applications in speech recognition, Proceedings
of the IEEE 77 (1989), 257–286.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from ..core.errors import DataError
from ..core.threads import run_tasks
from . import _kernels as kernels
from ._kernels import likelihood_rows

Array = NDArray[Any]

R = TypeVar("R")

#: Transitions less likely than this count as zero for the question whether a lost state can come back.
_RARE = 1e-40

#: Lines whose likelihoods are computed at once: they stay in the cache.
_LINES = 2**14

#: Numbers, rows times states, from which a second thread is worth its start.
_WORTH = 2**17


class LazyRows:
    """The log-likelihoods of lines, computed when some of them are asked for."""

    def __init__(self, compute: Callable[[Array], Array], lines: Array, K: int) -> None:
        self._compute = compute
        self._lines = lines
        self.shape = (len(lines), K)

    def __getitem__(self, rows: slice) -> Array:
        return self._compute(self._lines[rows])


class Frames(NamedTuple):
    """Log-likelihoods of observations, and the sequences they belong to."""

    log: Array | LazyRows  #: (lines, K) log b
    codes: Array  #: (n,) int64, the line of each row; empty if row t has line t
    offsets: Array  #: (S + 1,) int64, where the sequences begin

    @property
    def n_rows(self) -> int:
        """Number of observations."""
        return int(self.offsets[-1])


class Smoothed(NamedTuple):
    """What forward–backward finds."""

    log_likelihoods: Array  #: (S,) log P(x) of each sequence
    padded: Array  #: (n, M) P(z_t = k | x), and zeros up to a multiple of four
    pairs: Array  #: (K, K) Σ_t P(z_t = i, z_{t+1} = j | x)

    @property
    def gamma(self) -> Array:
        """P(z_t = k | x), (n, K)."""
        return self.padded[:, : len(self.pairs)]


def smooth(frames: Frames, startprob: Array, transmat: Array, threads: int = 1) -> Smoothed:
    """Return the posteriors of states and pairs. Impossible observations give a log-likelihood of −inf."""
    K = len(startprob)
    S = len(frames.offsets) - 1
    n = frames.n_rows
    M = padded_size(K)
    threads = threads if n * M >= _WORTH else 1
    b, offset = _likelihoods(frames, threads)
    start = _pad(startprob)
    A = _pad_table(transmat)
    AT = _pad_table(transmat.T)
    sums = np.empty(n * M)
    end = _pad(np.full(K, 1.0 / K))
    middle = np.zeros((2, S * M))
    logs = np.zeros((2, S))
    pairs = np.zeros((2, M * M))
    ring = np.zeros((2, 2, (kernels.RING + 1) * M))
    pred = np.empty((2, M))
    sides = (frames.offsets, b, frames.codes)
    fine = _both(
        lambda: kernels.climb(*sides, start, A, True, sums, middle[0], logs[0], pred[0]),
        lambda: kernels.climb(*sides, end, AT, False, sums, middle[1], logs[1], pred[1]),
        threads,
    ) and _both(
        lambda: kernels.meet(*sides, start, A, True, sums, middle[0], logs[0], pairs[0], ring[0], pred[0]),
        lambda: kernels.meet(*sides, end, AT, False, sums, middle[1], logs[1], pairs[1], ring[1], pred[1]),
        threads,
    )
    if not fine:
        return _smooth_in_logs(frames, startprob, transmat)
    forward, backward = pairs.reshape(2, M, M)
    moves = (forward + backward.T)[:K, :K] * transmat
    return Smoothed(logs[0] + _sums(frames, offset), sums.reshape(n, M), moves)


def filtered(
    frames: Frames, startprob: Array, transmat: Array, *, keep: bool = True, logs: bool = False
) -> tuple[Array, Array]:
    """Return log P(x) of each sequence, and P(z_t | x_1…x_t) of each row (with `logs`, their logarithms)."""
    K = len(startprob)
    S = len(frames.offsets) - 1
    M = padded_size(K)
    watch = bool((transmat < _RARE).any() or (startprob < _RARE).any())
    b, offset = _likelihoods(frames, floor=watch)
    start = _pad(startprob)
    A = _pad_table(transmat)
    out = np.empty((frames.n_rows if keep else 0) * M)
    total = np.zeros(S)
    work = np.empty((2, M))
    if kernels.filter_rows(frames.offsets, b, frames.codes, start, A, out, total, watch, work[0], work[1]):
        proba = out.reshape(-1, M)[:, :K]
        return total + _sums(frames, offset), _log(proba) if logs else proba
    log_store = np.full((frames.n_rows, K), -np.inf)
    kernels.forward_logs(
        frames.offsets,
        np.ascontiguousarray(frames.log[:]),
        frames.codes,
        _log(startprob),
        _log(transmat),
        log_store,
        total,
    )
    return total, log_store if logs else np.exp(log_store)


def best_path(frames: Frames, startprob: Array, transmat: Array, threads: int = 1) -> tuple[Array, Array]:
    """Return the most likely paths: log p(x, z) of each sequence (S,), and the states (n,)."""
    K = len(startprob)
    S = len(frames.offsets) - 1
    n = frames.n_rows
    offsets = frames.offsets
    M = padded_size(K)
    low = -np.inf
    threads = threads if n * M >= _WORTH else 1
    logb = np.empty((frames.log.shape[0], M))

    def fill(rows: slice) -> None:
        logb[rows] = _widen(frames.log[rows], M)
        logb[rows, K:] = low

    in_order(fill, len(logb), threads)
    flat = logb.ravel()
    start = _pad(_log(startprob), low)
    end = _pad(np.zeros(K), low)
    L = _pad_table(_log(transmat), low)
    LT = _pad_table(_log(transmat).T, low)
    best = np.empty(n * M) if frames.codes.size else flat  # a row is read once, and then replaced
    logs = np.zeros((2, S))
    pred = np.empty((2, M))
    path = np.empty(n, dtype=np.int64)
    sides = (offsets, flat, frames.codes)
    _both(
        lambda: kernels.climb_best(*sides, start, L, True, best, logs[0], pred[0]),
        lambda: kernels.climb_best(*sides, end, LT, False, best, logs[1], pred[1]),
        threads,
    )
    kernels.join_best(offsets, start, L, best, path, logs[0], pred[0])
    _both(
        lambda: kernels.trace(offsets, L, True, best, path),
        lambda: kernels.trace(offsets, LT, False, best, path),
        threads,
    )
    return logs.sum(axis=0), path


def draw_paths(frames: Frames, startprob: Array, transmat: Array, u: Array) -> Array:
    """Return paths drawn from P(z | x), one for each row of uniform numbers u (paths, n)."""
    _, log_filtered = filtered(frames, startprob, transmat, logs=True)
    paths = np.empty(u.shape, dtype=np.int64)
    for path, numbers in zip(paths, u, strict=True):
        kernels.draw_paths(frames.offsets, np.ascontiguousarray(log_filtered), _log(transmat), numbers, path)
    return paths


def pairwise(frames: Frames, startprob: Array, transmat: Array) -> Array:
    """Return P(z_t = i, z_{t+1} = j | x) for all t but each sequence's last: (n − S, K, K)."""
    alpha = filtered(frames, startprob, transmat)[1]
    gamma = smooth(frames, startprob, transmat).gamma
    rows = np.flatnonzero(~_is_first(frames.offsets)) - 1
    moves = alpha[rows, :, None] * transmat
    ahead = moves.sum(axis=1)  # P(z_{t+1} | x_1…x_t)
    factor = np.divide(gamma[rows + 1], ahead, out=np.zeros_like(ahead), where=ahead > 0)
    return moves * factor[:, None, :]


def in_order(work: Callable[[slice], R], n: int, threads: int) -> list[R]:
    """Return work(rows) for slices of n rows, on a grid that does not depend on the number of threads."""
    grid = [slice(lo, min(lo + _LINES, n)) for lo in range(0, n, _LINES)]
    done: list[list[R]] = [[], []]
    half = (len(grid) + 1) // 2
    _both(
        lambda: done[0].extend(work(rows) for rows in grid[:half]),
        lambda: done[1].extend(work(rows) for rows in grid[half:]),
        threads if len(grid) > 1 else 1,
    )
    return done[0] + done[1]


def padded_size(K: int) -> int:
    """Return M, the least multiple of four that is at least K."""
    return -(-K // 4) * 4


def _smooth_in_logs(frames: Frames, startprob: Array, transmat: Array) -> Smoothed:
    K = len(startprob)
    store = np.full((frames.n_rows, K), -np.inf)
    logs = np.zeros(len(frames.offsets) - 1)
    pairs = np.zeros((K, K))
    logb = np.ascontiguousarray(frames.log[:])
    L = _log(transmat)
    kernels.forward_logs(frames.offsets, logb, frames.codes, _log(startprob), L, store, logs)
    if np.isfinite(logs).all():
        kernels.backward_logs(frames.offsets, logb, frames.codes, L, store, pairs)
    padded = np.zeros((len(store), padded_size(K)))
    padded[:, :K] = store
    return Smoothed(logs, padded, pairs)


def _likelihoods(frames: Frames, threads: int = 1, floor: bool = False) -> tuple[Array, Array]:
    """Return b, padded, with a greatest entry of one in each row, and the logarithm that was taken out."""
    n, K = frames.log.shape
    M = padded_size(K)
    b = np.empty(n * M)
    offset = np.empty(n)
    padding = _pad(np.zeros(K), -np.inf)

    def fill(rows: slice) -> None:
        log = frames.log[rows]
        part = b[rows.start * M : rows.stop * M]
        likelihood_rows(_widen(log, M).reshape(-1), padding, part, offset[rows])
        if floor:  # zero is left to what is impossible
            seen = part.reshape(-1, M)[:, :K]
            seen[(seen == 0) & (log > -np.inf)] = 1e-300

    in_order(fill, n, threads)
    return b, offset


def _widen(log: Array, M: int) -> Array:
    """Return a table (n, M) whose first columns are those of `log`; the others are any numbers but NaN."""
    whole: Any = log.base
    fits = isinstance(whole, np.ndarray) and whole.shape == (len(log), M) and whole.flags.c_contiguous
    if fits and whole.dtype == np.float64 and whole.ctypes.data == log.ctypes.data:
        return whole  # `log` is a view of a table that was padded from the beginning
    out = np.zeros((len(log), M))
    out[:, : log.shape[1]] = log
    return out


def _sums(frames: Frames, offset: Array) -> Array:
    rows = offset[frames.codes] if frames.codes.size else offset
    return np.add.reduceat(rows, frames.offsets[:-1])


def _is_first(offsets: Array) -> Array:
    first = np.zeros(offsets[-1], dtype=bool)
    first[offsets[:-1]] = True
    return first


def _pad(v: Array, fill: float = 0.0) -> Array:
    out = np.full(padded_size(len(v)), fill)
    out[: len(v)] = v
    return out


def _pad_table(A: Array, fill: float = 0.0) -> Array:
    K = len(A)
    M = padded_size(len(A))
    out = np.full((M, M), fill)
    out[:K, :K] = A
    return out.ravel()


def _log(p: Array) -> Array:
    with np.errstate(divide="ignore"):
        return np.log(p)


def _both(first: Callable[[], Any], second: Callable[[], Any], threads: int) -> bool:
    """Run two functions, side by side if there are two threads; tell whether neither said False."""
    if threads < 2:
        return first() is not False and second() is not False
    answers = run_tasks(lambda number: (first, second)[number](), 2, threads)
    return answers[0] is not False and answers[1] is not False


# Filtering one observation at a time: P(z_t | x_1…x_t) from P(z_{t−1} | x_1…x_{t−1}) and x_t.


class OnlineFilter:
    """The state of a hidden Markov model as observations arrive.

    Parameters
    ----------
    model : HiddenMarkovModel
        A fitted model.

    Attributes
    ----------
    log_likelihood : float
        log p(x_1…x_t).
    n_seen : int
        t.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable import CategoricalHMM
    >>> model = CategoricalHMM(n_components=2)
    >>> model.startprob_, model.transmat_ = np.array([0.5, 0.5]), np.array([[0.9, 0.1], [0.1, 0.9]])
    >>> model.emissionprob_ = np.array([[0.9, 0.1], [0.2, 0.8]])
    >>> online = model.online()
    >>> online.update([0])
    array([0.8182, 0.1818])
    >>> online.predict(steps=2)
    array([0.7036, 0.2964])
    """

    def __init__(self, model: Any) -> None:
        self.model = model
        self._parameters = model._fitted()
        with np.errstate(divide="ignore"):
            self._start = np.log(self._parameters.startprob)
            self._moves = np.log(self._parameters.transmat)
        self.reset()

    def reset(self) -> None:
        """Begin a new sequence."""
        self._log_proba: Array | None = None
        self.log_likelihood = 0.0
        self.n_seen = 0

    @property
    def proba(self) -> Array:
        """P(z_t | x_1…x_t); before the first observation, the first law."""
        return self._parameters.startprob if self._log_proba is None else np.exp(self._log_proba)

    def update(self, x: Any) -> Array:
        """Take the next observation (NaN: it is missing) and return P(z_t | x_1…x_t)."""
        row = np.asarray(x, dtype=np.float64).reshape(1, -1)
        self.model._check_rows(row)
        lines, codes = self.model._encode(row)
        frame = self.model._emission().log_frames(lines, self._parameters.emission)[codes[0] if codes.size else 0]
        ahead = self._start if self._log_proba is None else logsumexp(self._log_proba[:, None] + self._moves, axis=0)
        joint = ahead + frame
        total = logsumexp(joint)
        if not np.isfinite(total):
            raise DataError(f"{type(self.model).__name__}: the observation {x!r} is impossible after what came before.")
        self._log_proba = joint - total
        self.log_likelihood += float(total)
        self.n_seen += 1
        return np.exp(self._log_proba)

    def predict(self, steps: int = 1) -> Array:
        """Return P(z_{t+steps} | x_1…x_t)."""
        return self.proba @ np.linalg.matrix_power(self._parameters.transmat, steps)
