r"""What is known about hidden states: likelihood, filtering, smoothing, pairs, the best path, drawn paths.

A hidden chain z with first law π and transitions A emits x_t with likelihood b_t(k) = p(x_t | z_t = k). With

$$ \alpha_t(j) = b_t(j) \sum_i \alpha_{t-1}(i) A_{ij}, \qquad \beta_t(i) = \sum_j A_{ij} b_{t+1}(j) \beta_{t+1}(j) $$

P(z_t = k | x) ∝ α_t(k) β_t(k), P(z_t = i, z_{t+1} = j | x) ∝ α_t(i) A_ij b_{t+1}(j) β_{t+1}(j), and log P(x) is
log Σ_k α_T(k). Both are computed with sums that are rescaled (`_kernels.py`), and again in logarithms where a state
would be lost. Cost O(TK²), memory O(TK). The two halves of a sequence run on two threads.

Reference: L. Rabiner, A tutorial on hidden Markov models and selected applications in speech recognition, Proceedings
of the IEEE 77 (1989), 257–286.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import _kernels as kernels
from ._row_kernels import from_largest

Array = NDArray[Any]

#: Transitions less likely than this count as zero for the question whether a lost state can come back.
_RARE = 1e-40


class Frames(NamedTuple):
    """Log-likelihoods of observations, and the sequences they belong to."""

    log: Array  #: (lines, K) log b
    codes: Array  #: (n,) int64, the line of each row; empty if row t has line t
    offsets: Array  #: (S + 1,) int64, where the sequences begin

    @property
    def n_rows(self) -> int:
        """Number of observations."""
        return int(self.offsets[-1])


class Smoothed(NamedTuple):
    """What forward–backward finds."""

    log_likelihoods: Array  #: (S,) log P(x) of each sequence
    gamma: Array  #: (n, K) P(z_t = k | x)
    pairs: Array  #: (K, K) Σ_t P(z_t = i, z_{t+1} = j | x)


def smooth(frames: Frames, startprob: Array, transmat: Array, threads: int = 1) -> Smoothed:
    """Return the posteriors of states and pairs. Impossible observations give a log-likelihood of −inf."""
    K, S, n = len(startprob), len(frames.offsets) - 1, frames.n_rows
    b, offset = _likelihoods(frames)
    start, A, AT = _padded(startprob), _padded_table(transmat), _padded_table(transmat.T)
    store = np.empty((n, *start.shape))
    after, before, logs = np.zeros((S, *start.shape)), np.zeros((S, *start.shape)), np.zeros(S)
    pairs, work = np.zeros((2, *A.shape)), np.empty((2, 4, *start.shape))
    end = _padded(np.full(K, 1.0 / K))
    sides = (frames.offsets, b, frames.codes)
    fine = _both(
        lambda: kernels.forward_halves(*sides, start, A, store, after, logs, work[0]),
        lambda: kernels.backward_halves(*sides, end, AT, store, before, work[1]),
        threads,
    ) and _both(
        lambda: kernels.forward_meets(*sides, start, A, store, after, logs, pairs[0], work[0]),
        lambda: kernels.backward_meets(*sides, AT, store, before, pairs[1], work[1]),
        threads,
    )
    if not fine:
        return _smooth_in_logs(frames, startprob, transmat)
    moves = (pairs[0] + pairs[1]).reshape(4 * len(start), -1)[:K, :K] * transmat
    return Smoothed(logs + _sums(frames, offset), store.reshape(n, -1)[:, :K], moves)


def filtered(
    frames: Frames, startprob: Array, transmat: Array, *, keep: bool = True, logs: bool = False
) -> tuple[Array, Array]:
    """Return log P(x) of each sequence, and P(z_t | x_1…x_t) of each row (with `logs`, their logarithms)."""
    K, S = len(startprob), len(frames.offsets) - 1
    watch = bool((transmat < _RARE).any() or (startprob < _RARE).any())
    b, offset = _likelihoods(frames, floor=watch)
    start, A = _padded(startprob), _padded_table(transmat)
    store = np.empty((frames.n_rows if keep else 0, *start.shape))
    total, work = np.zeros(S), np.empty((2, *start.shape))
    if kernels.filter_rows(frames.offsets, b, frames.codes, start, A, store, total, watch, work):
        proba = store.reshape(len(store), start.size)[:, :K]
        return total + _sums(frames, offset), _log(proba) if logs else proba
    log_store = np.full((frames.n_rows, K), -np.inf)
    kernels.forward_logs(
        frames.offsets,
        np.ascontiguousarray(frames.log),
        frames.codes,
        _log(startprob),
        _log(transmat),
        log_store,
        total,
    )
    return total, log_store if logs else np.exp(log_store)


def best_path(frames: Frames, startprob: Array, transmat: Array, threads: int = 1) -> tuple[Array, Array]:
    """Return the most likely paths: log p(x, z) of each sequence (S,), and the states (n,)."""
    logb = _padded(frames.log, -np.inf)
    start = _padded(_log(startprob), -np.inf)
    L, LT = _padded_table(_log(transmat), -np.inf), _padded_table(_log(transmat).T, -np.inf)
    end = _padded(np.zeros(len(startprob)), -np.inf)
    n, offsets = frames.n_rows, frames.offsets
    store, work, path = np.empty((n, *start.shape)), np.empty((2, *start.shape)), np.empty(n, dtype=np.int64)
    _both(
        lambda: kernels.best_into(offsets, logb, frames.codes, start, L, store, work[:1]),
        lambda: kernels.best_from(offsets, logb, frames.codes, end, LT, store, work[1:]),
        threads,
    )
    kernels.trace_best(offsets, start, L, LT, store, path, work)
    lines = frames.codes if frames.codes.size else np.arange(n)
    moves = np.where(_is_first(offsets), _log(startprob)[path], _log(transmat)[np.roll(path, 1), path])
    gain = frames.log[lines, path] + moves
    return np.add.reduceat(gain, offsets[:-1]), path


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


def _smooth_in_logs(frames: Frames, startprob: Array, transmat: Array) -> Smoothed:
    K = len(startprob)
    store, logs, pairs = np.full((frames.n_rows, K), -np.inf), np.zeros(len(frames.offsets) - 1), np.zeros((K, K))
    logb, L = np.ascontiguousarray(frames.log), _log(transmat)
    kernels.forward_logs(frames.offsets, logb, frames.codes, _log(startprob), L, store, logs)
    if np.isfinite(logs).all():
        kernels.backward_logs(frames.offsets, logb, frames.codes, L, store, pairs)
    return Smoothed(logs, store, pairs)


def _likelihoods(frames: Frames, floor: bool = False) -> tuple[Array, Array]:
    """Return b, padded, with a greatest entry of one in each row, and the logarithm that was taken out."""
    K = frames.log.shape[1]
    b = np.empty((len(frames.log), 4 * _groups(K)))
    b[:, :K] = frames.log
    offset = np.empty(len(b))
    from_largest(b, K, offset)
    np.exp(b, out=b)
    b[:, K:] = 0.0
    if floor:  # zero is left to what is impossible
        b[:, :K][(b[:, :K] == 0) & (frames.log > -np.inf)] = 1e-300
    return b.reshape(len(b), _groups(K), 4), offset


def _sums(frames: Frames, offset: Array) -> Array:
    rows = offset[frames.codes] if frames.codes.size else offset
    return np.add.reduceat(rows, frames.offsets[:-1])


def _is_first(offsets: Array) -> Array:
    first = np.zeros(offsets[-1], dtype=bool)
    first[offsets[:-1]] = True
    return first


def _groups(K: int) -> int:
    return -(-K // 4)


def _padded(v: Array, fill: float = 0.0) -> Array:
    K = v.shape[-1]
    out = np.full((*v.shape[:-1], 4 * _groups(K)), fill)
    out[..., :K] = v
    return out.reshape(*v.shape[:-1], -1, 4)


def _padded_table(A: Array, fill: float = 0.0) -> Array:
    K, M = len(A), 4 * _groups(len(A))
    out = np.full((M, M), fill)
    out[:K, :K] = A
    return out.reshape(M // 4, 4, M // 4, 4)


def _log(p: Array) -> Array:
    with np.errstate(divide="ignore"):
        return np.log(p)


def _both(first: Callable[[], Any], second: Callable[[], Any], threads: int) -> bool:
    """Run two kernels, side by side if there are two threads; tell whether neither said False."""
    if threads < 2:
        return first() is not False and second() is not False
    answers: list[Any] = []
    helper = threading.Thread(target=lambda: answers.append(second()))
    helper.start()
    mine = first()
    helper.join()
    return mine is not False and bool(answers) and answers[0] is not False
