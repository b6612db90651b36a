"""Baum–Welch: the two steps of expectation–maximisation for any hidden Markov model.

The E-step is forward–backward (`inference.py`); the M-step divides expected counts: π_k ∝ γ_1(k) + a_k − 1,
A_ij ∝ Σ_t P(z_t = i, z_{t+1} = j | x) + a_ij − 1, with Dirichlet parameters a ≥ 1; transitions that are zero stay zero.
The emissions' own statistics and formulas are the model's. Sums over rows are taken on a fixed grid, in order: their
bits do not depend on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ..core.errors import DataError
from ..data.blocks import Blocks, Part, scan
from ..data.door import read_features
from ._kernels import sum_by_code
from .inference import Frames, LazyRows, in_order, smooth
from .markov import estimate_rows, log_dirichlet

Array = NDArray[Any]


Theta = tuple[Array, ...]


class Parameters(NamedTuple):
    """One point of the climb."""

    startprob: Array  #: π (K,)
    transmat: Array  #: A (K, K)
    emission: tuple[Array, ...]  #: what the emissions need


class Emission(Protocol):
    """What a climb asks of emissions with parameters θ, a tuple of arrays.

    `lines` are observations (m, d), NaN where an entry is missing; `weight` (m, M) has K columns and zeros.
    """

    def log_frames(self, lines: Array, theta: Theta) -> Array:
        """Return log p(x | k), (m, K)."""

    def statistics(self, lines: Array, weight: Array, theta: Theta) -> Theta:
        """Return the expected statistics of weighted observations."""

    def update(self, statistics: Theta, theta: Theta) -> Theta:
        """Return the θ that maximises the expected log-likelihood plus the log-prior."""


class Observed(Protocol):
    """What is asked of emissions once they are fitted."""

    def expected(self, theta: Theta, proba: Array) -> Array:
        """Return the mean observation under probabilities of the states (…, K)."""

    def draw(self, theta: Theta, states: Array, rng: Any) -> Array:
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
        start_prior: Array,
        move_prior: Array,
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

    def _emission_statistics(self, block: Block, gamma: Array, parameters: Parameters) -> tuple[Array, ...]:
        def count(rows: slice) -> tuple[Array, ...]:
            return self.emission.statistics(block.lines[rows], weight[rows], parameters.emission)

        weight = block.by_line(gamma)
        if block.codes.size:  # the lines are few, and may stand for each other
            return count(slice(None))
        return reduce(_add, in_order(count, len(weight), self.threads))

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


def frames_of(emission: Emission, lines: Array, codes: Array, offsets: Array, parameters: Parameters) -> Frames:
    """Return the log-likelihoods of rows, computed when they are asked for."""

    def compute(some: Array) -> Array:
        return emission.log_frames(some, parameters.emission)

    return Frames(LazyRows(compute, lines, len(parameters.startprob)), codes, offsets)


def _add(a: tuple[Array, ...], b: tuple[Array, ...]) -> tuple[Array, ...]:
    return tuple(x + y for x, y in zip(a, b, strict=True))


# Sequences of observations: one table of rows, and the lengths of the sequences that it holds one after the other.

_BLOCK_ROWS = 2**14  # short sequences share a block of about this many rows


class SequenceTable(NamedTuple):
    """Observations and where their sequences begin."""

    X: Array  #: (n, d) float64, NaN where missing
    offsets: Array  #: (S + 1,) int64
    fingerprint: str  #: checksum of the rows, their order and the lengths


class Block(NamedTuple):
    """Some sequences."""

    lines: Array  #: (m, d) observations
    codes: Array  #: (n,) int64, the line of each row; empty if row t is line t
    offsets: Array  #: (S + 1,) int64, from zero

    def by_line(self, gamma: Array) -> Array:
        """Return the sum of gamma (n, M), M a multiple of four, over the rows of each line."""
        if not self.codes.size:
            return gamma
        total = np.zeros((len(self.lines), gamma.shape[1]))
        sum_by_code(self.codes, gamma.ravel(), total.reshape(-1))
        return total


def read_sequences(model: Any, X: Any, lengths: Any, n_jobs: int | None, *, reset: bool = True) -> SequenceTable:
    """Read and check sequences; the fingerprint is computed for a fit (`reset`)."""
    rows = read_features(model, X, sparse=False, reset=reset, missing=True)
    rows = np.ascontiguousarray(rows, dtype=np.float64)
    offsets = read_offsets(type(model).__name__, lengths, len(rows))
    if not reset:
        return SequenceTable(rows, offsets, "")
    stamps = row_stamps(offsets)
    return SequenceTable(rows, offsets, f"{scan(Blocks([Part(rows, stamps)]), n_jobs).checksum:016x}")


def row_stamps(offsets: Array) -> Array:
    """Return what makes the checksum know the order of the rows and where sequences begin: t, and ½ more at a start."""
    stamps = np.arange(offsets[-1], dtype=np.float64)
    stamps[offsets[:-1]] += 0.5
    return stamps


def read_offsets(owner: str, lengths: Any, n: int) -> Array:
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


def cut_sequences(lines: Array, codes: Array, offsets: Array) -> list[Block]:
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
