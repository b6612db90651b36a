"""Variational topics of documents that lie in partitions: each infers its own, and counts by word and topic are added.

    turn     every partition gets the topics, infers γ of its documents, and returns it with Σ n φ, (V, K)
    bound    a second pass with the new topics returns one number per partition

γ of the documents is part of the model and travels both ways, 16 K bytes per document and pass; so the client holds
(D, K) numbers, as in memory. Sums of the partitions are added in their order: the topics are those of the table in
memory up to the order of additions. Rows of a partition are dense while it is read. What cannot be merged: the
samplers, which go from token to token, and online steps, which `partial_fit` takes from any stream.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.errors import DataError
from ..data.dask_blocks import DaskBlocks, Reader, run_on_partitions
from . import _variational_kernels as kernels
from .variational import Climb, Documents, climb_turns, divergence, documents_of, expected_logs, infer, row_bounds

Array = NDArray[np.float64]


class Settings(NamedTuple):
    """How documents are inferred."""

    alpha: Array
    eta: float
    tol: float
    max_iter: int


class PartitionedDocuments:
    """Documents on Dask.

    Parameters
    ----------
    owner : str
        For messages.
    blocks : DaskBlocks
        Counts.
    settings : Settings
        Priors, and when a document is done.
    """

    def __init__(self, owner: str, blocks: DaskBlocks, settings: Settings) -> None:
        self.owner = owner
        self.blocks = blocks
        self.settings = settings
        self.starts = [*blocks.first_rows, blocks.n_rows]
        self.tokens = 0.0

    @property
    def n_words(self) -> int:
        """Size of the vocabulary."""
        return self.blocks.n_columns

    def climb(self, lam: Array, *, tol: float, max_iter: int, progress: Any) -> Climb:
        """Raise the bound by batches of all documents."""
        n = self.starts[-1]
        gamma = np.ones((n, len(lam)))
        return climb_turns(self.turn, self.step, gamma, lam, tol=tol, max_iter=max_iter, progress=progress)

    def turn(self, lam: Array, start: Array | None) -> tuple[Array, Array, float]:
        """Return γ, the topics after it, and the bound there."""
        work = partial(_infer_part, self.blocks.read, _weights(lam), self.settings)
        gamma = []
        stats = None
        tokens = 0.0
        for found, counts, own in self._run(work, start):
            gamma.append(found)
            stats = counts if stats is None else np.add(stats, counts, out=stats)
            tokens += own
        if stats is None:
            raise DataError(f"{self.owner}: the table has no rows. Pass at least one document.")
        self.tokens = tokens
        topics = self.settings.eta + stats.T
        joined = np.concatenate(gamma)
        return joined, topics, self.bound(joined, topics)

    def step(self, gamma: Array, lam: Array) -> float:
        """Return the bound after one more update of γ and λ from the same topics."""
        work = partial(_step_part, self.blocks.read, _weights(lam), self.settings)
        found = list(self._run(work, gamma))
        stats = found[0][1]
        for _, more in found[1:]:
            stats = stats + more
        return self.bound(np.concatenate([own for own, _ in found]), self.settings.eta + stats.T)

    def bound(self, gamma: Array, lam: Array) -> float:
        """Return the bound."""
        work = partial(_bound_part, self.blocks.read, _weights(lam), self.settings)
        return sum(self._run(work, gamma)) - divergence(lam, np.full(1, self.settings.eta))

    def perplexity(self, lam: Array) -> float:
        """Return exp(−bound per token), with γ inferred from the topics alone."""
        work = partial(_infer_part, self.blocks.read, _weights(lam), self.settings)
        gamma = np.concatenate([found for found, _, _ in self._run(work, None)])
        return float(np.exp(np.clip(-self.bound(gamma, lam) / max(self.tokens, 1e-300), -700.0, 700.0)))

    def _run(self, work: Any, gamma: Array | None) -> Any:
        """Yield what `work` makes of each partition that has rows, in order."""
        import dask

        pack = dask.delayed(_pack, pure=False)
        parts = []
        for number, part in enumerate(self.blocks.parts):
            rows = slice(self.starts[number], self.starts[number + 1])
            if rows.start < rows.stop:
                parts.append(pack(part, number, None if gamma is None else gamma[rows]))
        return run_on_partitions(self.owner, work, parts)


def _pack(part: Any, number: int, gamma: Array | None) -> tuple[Any, int, Array | None]:
    return part, number, gamma


def _weights(lam: Array) -> Array:
    return np.ascontiguousarray(np.exp(expected_logs(lam)).T)


def _documents(read: Reader, raw: Any, number: int) -> Documents:
    X = read(raw, number).X
    if (X < 0).any():
        raise DataError(f"{read.owner}: partition {number} holds negative values; X must hold counts.")
    return documents_of(X)


def _infer_part(
    read: Reader, weights: Array, settings: Settings, part: tuple[Any, int, Array | None], _: int
) -> tuple[Array, Array, float]:
    """Return γ, Σ n φ and the tokens of a partition. Runs on a worker."""
    documents = _documents(read, part[0], part[1])
    gamma = infer(
        documents, weights, settings.alpha, start=part[2], tol=settings.tol, max_iter=settings.max_iter, n_jobs=1
    )
    stats = np.empty_like(weights)
    own = np.exp(expected_logs(gamma))
    kernels.collect(documents.starts, documents.words, documents.counts, weights, own, stats, np.empty(documents.n))
    return gamma, stats, float(documents.counts.sum())


def _step_part(
    read: Reader, weights: Array, settings: Settings, part: tuple[Any, int, Any], _: int
) -> tuple[Array, Array]:
    """Return γ after one update, and Σ n φ of the γ before it. Runs on a worker."""
    documents = _documents(read, part[0], part[1])
    own = np.exp(expected_logs(part[2]))
    stats = np.empty_like(weights)
    new = infer(documents, weights, settings.alpha, start=part[2], tol=0.0, max_iter=1, n_jobs=1)
    kernels.collect(documents.starts, documents.words, documents.counts, weights, own, stats, np.empty(documents.n))
    return new, stats


def _bound_part(read: Reader, weights: Array, settings: Settings, part: tuple[Any, int, Any], _: int) -> float:
    """Return what the documents of a partition add to the bound. Runs on a worker."""
    documents = _documents(read, part[0], part[1])
    return row_bounds(documents, part[2], weights, settings.alpha)
