"""Baum–Welch: the two steps of expectation–maximisation for any hidden Markov model.

The E-step is forward–backward (`inference.py`); the M-step divides expected counts: π_k ∝ γ_1(k) + a_k − 1,
A_ij ∝ Σ_t P(z_t = i, z_{t+1} = j | x) + a_ij − 1, with Dirichlet parameters a ≥ 1; transitions that are zero stay zero.
The emissions' own statistics and formulas are the model's. Sums over rows are taken on a fixed grid, in order: their
bits do not depend on the number of threads.
"""

from __future__ import annotations

from functools import reduce
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.errors import DataError
from .inference import in_order, smooth
from .rows import Block
from .transitions import estimate_rows, log_dirichlet

Array = NDArray[Any]


class Parameters(NamedTuple):
    """One point of the climb."""

    startprob: Array  #: π (K,)
    transmat: Array  #: A (K, K)
    emission: tuple[Array, ...]  #: what the emissions need


class BaumWelch:
    """The problem that `solvers.em` climbs; `model` states its emissions (`hmm.py` lists what it must define)."""

    def __init__(self, model: Any, threads: int) -> None:
        self.model, self.threads = model, threads
        K = model.n_components
        self.start_prior = np.broadcast_to(np.asarray(model.startprob_prior, dtype=float), (K,))
        self.move_prior = np.broadcast_to(np.asarray(model.transmat_prior, dtype=float), (K, K))

    def expectation(self, block: Block, parameters: Parameters) -> tuple[tuple[Any, ...], float]:
        """Return the sum of first posteriors, of pairs, the emissions' statistics, and the log-likelihood."""
        model = self.model
        frames = model._frames(block.lines, block.codes, block.offsets, parameters)
        found = smooth(frames, parameters.startprob, parameters.transmat, self.threads)
        total = float(found.log_likelihoods.sum())
        if not np.isfinite(total):
            raise DataError(
                f"{type(model).__name__}: the observations are impossible under the start; "
                "a zero in startprob_, transmat_ or the emissions stays zero."
            )
        first = found.gamma[block.offsets[:-1]].sum(axis=0)
        return (first, found.pairs, *self._emission_statistics(block, found.padded, parameters)), total

    def _emission_statistics(self, block: Block, gamma: Array, parameters: Parameters) -> tuple[Array, ...]:
        def count(rows: slice) -> tuple[Array, ...]:
            return tuple(self.model._statistics(block.lines[rows], weight[rows], parameters.emission))

        weight = block.by_line(gamma)
        if block.codes.size:  # the lines are few, and may stand for each other
            return count(slice(None))
        return reduce(_add, in_order(count, len(weight), self.threads))

    def maximisation(self, statistics: tuple[Any, ...], parameters: Parameters) -> Parameters:
        """Return the parameters that maximise the expected log-likelihood plus the log-priors."""
        first, pairs, *rest = statistics
        start, A, emission = parameters
        letters = self.model.params
        if "s" in letters:
            start = estimate_rows(first[None], self.start_prior[None], start[None])[0]
        if "t" in letters:
            A = estimate_rows(pairs, self.move_prior, A)
        if set(letters) & set(self.model._letters):
            emission = self.model._update(tuple(rest), emission)
        return Parameters(start, A, emission)

    def log_prior(self, parameters: Parameters) -> float:
        """Return the log-priors, up to a constant."""
        total = log_dirichlet(parameters.startprob, self.start_prior)
        total += log_dirichlet(parameters.transmat, self.move_prior)
        return float(total + self.model._log_prior(parameters.emission))


def _add(a: tuple[Array, ...], b: tuple[Array, ...]) -> tuple[Array, ...]:
    return tuple(x + y for x, y in zip(a, b, strict=True))
