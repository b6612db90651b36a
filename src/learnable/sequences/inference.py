"""What is asked about hidden states besides smoothing: filtering, pairs, the best path, drawn paths, one row at a time.

The recursions are those of `baum_welch.py`; the best path replaces sums by maxima.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import logsumexp

from ..core import AnyArray, DataError
from . import _kernels as kernels
from .baum_welch import (
    WORTH_A_THREAD,
    Frames,
    both,
    in_order,
    likelihoods,
    log_of,
    pad,
    pad_table,
    padded_size,
    smooth,
    sums_of_sequences,
    widen,
)

#: Transitions less likely than this count as zero for the question whether a lost state can come back.
_RARE = 1e-40


def filtered(
    frames: Frames, startprob: AnyArray, transmat: AnyArray, *, keep: bool = True, logs: bool = False
) -> tuple[AnyArray, AnyArray]:
    """Return log P(x) of each sequence, and P(z_t | x_1…x_t) of each row (with `logs`, their logarithms)."""
    K = len(startprob)
    S = len(frames.offsets) - 1
    M = padded_size(K)
    watch = bool((transmat < _RARE).any() or (startprob < _RARE).any())
    b, offset = likelihoods(frames, floor=watch)
    start = pad(startprob)
    A = pad_table(transmat)
    out = np.empty((frames.n_rows if keep else 0) * M)
    total = np.zeros(S)
    work = np.empty((2, M))
    if kernels.filter_rows(frames.offsets, b, frames.codes, start, A, out, total, watch, work[0], work[1]):
        proba = out.reshape(-1, M)[:, :K]
        return total + sums_of_sequences(frames, offset), log_of(proba) if logs else proba
    log_store = np.full((frames.n_rows, K), -np.inf)
    kernels.forward_logs(
        frames.offsets,
        np.ascontiguousarray(frames.log[:]),
        frames.codes,
        log_of(startprob),
        log_of(transmat),
        log_store,
        total,
    )
    return total, log_store if logs else np.exp(log_store)


def best_path(frames: Frames, startprob: AnyArray, transmat: AnyArray, threads: int = 1) -> tuple[AnyArray, AnyArray]:
    """Return the most likely paths: log p(x, z) of each sequence (S,), and the states (n,)."""
    K = len(startprob)
    S = len(frames.offsets) - 1
    n = frames.n_rows
    offsets = frames.offsets
    M = padded_size(K)
    low = -np.inf
    threads = threads if n * M >= WORTH_A_THREAD else 1
    logb = np.empty((frames.log.shape[0], M))

    def fill(rows: slice) -> None:
        logb[rows] = widen(frames.log[rows], M)
        logb[rows, K:] = low

    in_order(fill, len(logb), threads)
    flat = logb.ravel()
    start = pad(log_of(startprob), low)
    end = pad(np.zeros(K), low)
    L = pad_table(log_of(transmat), low)
    LT = pad_table(log_of(transmat).T, low)
    best = np.empty(n * M) if frames.codes.size else flat  # a row is read once, and then replaced
    logs = np.zeros((2, S))
    pred = np.empty((2, M))
    path = np.empty(n, dtype=np.int64)
    sides = (offsets, flat, frames.codes)
    both(
        lambda: kernels.climb_best(*sides, start, L, True, best, logs[0], pred[0]),
        lambda: kernels.climb_best(*sides, end, LT, False, best, logs[1], pred[1]),
        threads,
    )
    kernels.join_best(offsets, start, L, best, path, logs[0], pred[0])
    both(
        lambda: kernels.trace(offsets, L, True, best, path),
        lambda: kernels.trace(offsets, LT, False, best, path),
        threads,
    )
    return logs.sum(axis=0), path


def draw_paths(frames: Frames, startprob: AnyArray, transmat: AnyArray, u: AnyArray) -> AnyArray:
    """Return paths drawn from P(z | x), one for each row of uniform numbers u (paths, n)."""
    _, log_filtered = filtered(frames, startprob, transmat, logs=True)
    paths = np.empty(u.shape, dtype=np.int64)
    for path, numbers in zip(paths, u, strict=True):
        kernels.draw_paths(frames.offsets, np.ascontiguousarray(log_filtered), log_of(transmat), numbers, path)
    return paths


def pairwise(frames: Frames, startprob: AnyArray, transmat: AnyArray) -> AnyArray:
    """Return P(z_t = i, z_{t+1} = j | x) for all t but each sequence's last: (n − S, K, K)."""
    alpha = filtered(frames, startprob, transmat)[1]
    gamma = smooth(frames, startprob, transmat).gamma
    rows = np.flatnonzero(~_is_first(frames.offsets)) - 1
    moves = alpha[rows, :, None] * transmat
    ahead = moves.sum(axis=1)  # P(z_{t+1} | x_1…x_t)
    factor = np.divide(gamma[rows + 1], ahead, out=np.zeros_like(ahead), where=ahead > 0)
    return moves * factor[:, None, :]


def _is_first(offsets: AnyArray) -> AnyArray:
    first = np.zeros(offsets[-1], dtype=bool)
    first[offsets[:-1]] = True
    return first


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
        self._log_proba: AnyArray | None = None
        self.log_likelihood = 0.0
        self.n_seen = 0

    @property
    def proba(self) -> AnyArray:
        """P(z_t | x_1…x_t); before the first observation, the first law."""
        return self._parameters.startprob if self._log_proba is None else np.exp(self._log_proba)

    def update(self, x: Any) -> AnyArray:
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

    def predict(self, steps: int = 1) -> AnyArray:
        """Return P(z_{t+steps} | x_1…x_t)."""
        return self.proba @ np.linalg.matrix_power(self._parameters.transmat, steps)
