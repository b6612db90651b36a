r"""Variational Bayes and maximum likelihood of latent Dirichlet allocation.

Variational Bayes (D. Blei, A. Ng and M. Jordan 2003; M. Hoffman, D. Blei and F. Bach 2010) keeps θ_d ~ Dirichlet(γ_d),
φ_k ~ Dirichlet(λ_k) independent and raises the bound

$$ \mathcal{L} = \sum_{d,w} n_{dw} \log \sum_k e^{E \log θ_{dk} + E \log φ_{kw}}
   - \sum_d \mathrm{KL}(γ_d, α) - \sum_k \mathrm{KL}(λ_k, η) $$

by turns. A turn that starts every document from equal shares is kept while it raises the bound; then γ starts where the
last turn left it, so that the bound never falls. Maximum likelihood raises
Σ n log Σ_k θ_dk φ_kw by EM: probabilistic latent semantic analysis (T. Hofmann 1999).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import gammaln, psi

from ..core.threads import resolve_n_jobs, run_tasks
from . import _variational_kernels as kernels
from .sampler import cut_documents

Array = NDArray[np.float64]


class Documents(NamedTuple):
    """Counts by document: rows of a CSR table."""

    starts: NDArray[np.int64]
    words: NDArray[np.int32]
    counts: Array
    n_words: int

    @property
    def n(self) -> int:
        """Number of documents."""
        return len(self.starts) - 1

    def select(self, rows: slice) -> Documents:
        """Return consecutive documents."""
        starts = self.starts[rows.start : rows.stop + 1]
        part = slice(int(starts[0]), int(starts[-1]))
        return Documents(starts - starts[0], self.words[part], self.counts[part], self.n_words)


def documents_of(X: Any) -> Documents:
    """Return the documents of a table of counts."""
    table = sp.csr_array(X)
    table.sum_duplicates()
    return Documents(
        table.indptr.astype(np.int64),
        table.indices.astype(np.int32),
        table.data.astype(np.float64),
        int(table.shape[1]),
    )


def expected_logs(parameters: Array) -> Array:
    """Return E log x of Dirichlet vectors in the rows."""
    return np.asarray(psi(parameters) - psi(parameters.sum(axis=1, keepdims=True)))


def infer(
    documents: Documents,
    weights: Array,
    alpha: Array,
    *,
    start: Array | None = None,
    tol: float,
    max_iter: int,
    smooth: bool = True,
    n_jobs: int | None = None,
    stop: Callable[[], bool] | None = None,
) -> Array:
    """Return γ of each document given the topics' weights (V, K); each document for itself."""
    gamma = np.ones((documents.n, len(alpha))) if start is None else start.copy()
    cuts = cut_documents(documents.starts)
    threads = resolve_n_jobs(n_jobs) if len(documents.words) * len(alpha) > 200_000 else 1

    def work(t: int) -> None:
        if stop is not None and stop():
            return
        kernels.infer_documents(
            documents.starts, documents.words, documents.counts, int(cuts[t]), int(cuts[t + 1]), weights, alpha,
            tol, max_iter, smooth, gamma,
        )  # fmt: skip

    run_tasks(work, len(cuts) - 1, threads)
    return gamma


def divergence(q: Array, p: Array) -> float:
    """Return Σ KL(Dirichlet(q_row), Dirichlet(p))."""
    logs = expected_logs(q)
    p = np.broadcast_to(p, q.shape)
    own = gammaln(q.sum(axis=1)).sum() - gammaln(q).sum() + ((q - 1.0) * logs).sum()
    other = gammaln(p.sum(axis=1)).sum() - gammaln(p).sum() + ((p - 1.0) * logs).sum()
    return float(own - other)


def bound(documents: Documents, gamma: Array, lam: Array, alpha: Array, eta: float, share: float = 1.0) -> float:
    """Return the bound; `share` is how many documents there are for each that is given."""
    weights = np.ascontiguousarray(np.exp(expected_logs(lam)).T)
    return share * row_bounds(documents, gamma, weights, alpha) - divergence(lam, np.full(1, eta))


def row_bounds(documents: Documents, gamma: Array, weights: Array, alpha: Array) -> float:
    """Return what the documents add to the bound."""
    own = np.exp(expected_logs(gamma))
    rows = np.empty(documents.n)
    stats = np.empty_like(weights)
    kernels.collect(documents.starts, documents.words, documents.counts, weights, own, stats, rows)
    return float(rows.sum()) - divergence(gamma, alpha)


class Climb(NamedTuple):
    """Where an ascent ended."""

    topics: Array  #: (K, V) λ, or expected counts
    documents: Array  #: (D, K) γ, or θ
    history: Array  #: bound or log-likelihood after each iteration
    rise: float  #: relative rise of one more step
    n_iter: int


def variational_step(documents: Documents, gamma: Array, lam: Array, alpha: Array, eta: float) -> tuple[Array, Array]:
    """Return γ and λ after one update of each from the same φ."""
    own = np.exp(expected_logs(gamma))
    weights = np.ascontiguousarray(np.exp(expected_logs(lam)).T)
    stats = np.empty_like(weights)
    rows = np.empty(documents.n)
    new = infer(documents, weights, alpha, start=gamma, tol=0.0, max_iter=1, n_jobs=1)
    kernels.collect(documents.starts, documents.words, documents.counts, weights, own, stats, rows)
    return new, eta + stats.T


def climb_bound(
    documents: Documents,
    lam: Array,
    alpha: Array,
    eta: float,
    *,
    tol: float,
    max_iter: int,
    doc_tol: float,
    doc_iter: int,
    n_jobs: int | None,
    progress: Callable[[int, float], bool],
    stop: Callable[[], bool] | None = None,
) -> Climb:
    """Raise the bound by batches of all documents."""

    def turn(lam: Array, start: Array | None) -> tuple[Array, Array, float]:
        weights = np.ascontiguousarray(np.exp(expected_logs(lam)).T)
        found = infer(documents, weights, alpha, start=start, tol=doc_tol, max_iter=doc_iter, n_jobs=n_jobs, stop=stop)
        stats = np.empty_like(weights)
        own = np.exp(expected_logs(found))
        kernels.collect(documents.starts, documents.words, documents.counts, weights, own, stats, np.empty(documents.n))
        topics = eta + stats.T
        return found, topics, bound(documents, found, topics, alpha, eta)

    def step(gamma: Array, lam: Array) -> float:
        return bound(documents, *variational_step(documents, gamma, lam, alpha, eta), alpha, eta)

    gamma = np.ones((documents.n, len(lam)))
    return climb_turns(turn, step, gamma, lam, tol=tol, max_iter=max_iter, progress=progress)


def climb_turns(
    turn: Callable[[Array, Array | None], tuple[Array, Array, float]],
    step: Callable[[Array, Array], float],
    gamma: Array,
    lam: Array,
    *,
    tol: float,
    max_iter: int,
    progress: Callable[[int, float], bool],
) -> Climb:
    """Raise the bound, wherever the documents are.

    `turn(λ, γ or None)` returns γ, λ and the bound after it; `step(γ, λ)` the bound after one more update of each.
    """
    history: list[float] = []
    fresh = True  # documents start from equal shares, which finds better topics, until that lowers the bound
    n_iter = 0
    while n_iter < max_iter:
        n_iter += 1
        last = history[-1] if history else -np.inf
        new, topics, value = turn(lam, None if fresh else gamma)
        if fresh and value < last + tol * abs(value):
            fresh = False
            new, topics, value = turn(lam, gamma)
        gamma = new
        lam = topics
        history.append(value)
        small = len(history) > 1 and history[-1] - history[-2] <= tol * abs(history[-1])
        if progress(n_iter, history[-1]) or small:
            break
    value = history[-1]
    after = step(gamma, lam)
    return Climb(lam, gamma, np.array(history), max(0.0, after - value) / max(abs(value), 1e-300), n_iter)


def climb_online(
    documents: Documents,
    lam: Array,
    alpha: Array,
    eta: float,
    *,
    max_iter: int,
    batch_size: int,
    offset: float,
    decay: float,
    n_batches: int,
    total: float,
    doc_tol: float,
    doc_iter: int,
    n_jobs: int | None,
    progress: Callable[[int, float], bool] | None = None,
    stop: Callable[[], bool] | None = None,
) -> tuple[Array, int]:
    """Take steps of falling size, one for each batch of documents; return λ and the number of batches so far."""
    for iteration in range(max_iter):
        for first in range(0, documents.n, batch_size):
            part = documents.select(slice(first, min(first + batch_size, documents.n)))
            weights = np.ascontiguousarray(np.exp(expected_logs(lam)).T)
            gamma = infer(part, weights, alpha, tol=doc_tol, max_iter=doc_iter, n_jobs=n_jobs, stop=stop)
            stats = np.empty_like(weights)
            own = np.exp(expected_logs(gamma))
            kernels.collect(part.starts, part.words, part.counts, weights, own, stats, np.empty(part.n))
            rate = (offset + n_batches) ** (-decay)
            lam = (1.0 - rate) * lam + rate * (eta + stats.T * (total / part.n))
            n_batches += 1
        if progress is not None and progress(iteration + 1, 0.0):
            break
    return lam, n_batches


def likelihood_step(documents: Documents, theta: Array, phi: Array) -> tuple[Array, Array, float]:
    """Return θ, expected counts (K, V) after one EM step, and the log-likelihood before it."""
    weights = np.ascontiguousarray(phi.T)
    stats = np.empty_like(weights)
    rows = np.empty(documents.n)
    kernels.collect(documents.starts, documents.words, documents.counts, weights, theta, stats, rows)
    zero = np.zeros(phi.shape[0])
    new = infer(documents, weights, zero, start=theta, tol=0.0, max_iter=1, smooth=False, n_jobs=1)
    total = new.sum(axis=1, keepdims=True)
    new = np.where(total > 0, new / np.where(total > 0, total, 1.0), 1.0 / phi.shape[0])
    return new, np.ascontiguousarray(stats.T), float(rows.sum())


def climb_likelihood(
    documents: Documents,
    phi: Array,
    *,
    tol: float,
    max_iter: int,
    progress: Callable[[int, float], bool],
) -> Climb:
    """Raise the likelihood by EM."""
    theta = np.full((documents.n, len(phi)), 1.0 / len(phi))
    history: list[float] = []
    counts = phi
    rise = np.inf
    n_iter = 0
    while n_iter < max_iter:
        n_iter += 1
        new_theta, new_counts, value = likelihood_step(documents, theta, phi)
        history.append(value)
        rise = (history[-1] - history[-2]) / max(abs(value), 1e-300) if len(history) > 1 else np.inf
        if progress(n_iter, value) or rise <= tol:
            break
        theta = new_theta
        counts = new_counts
        phi = normal_rows(counts)
    new_theta, new_counts, value = likelihood_step(documents, theta, phi)
    after = likelihood_step(documents, new_theta, normal_rows(new_counts))[2]
    history[-1] = value
    return Climb(counts, theta, np.array(history), max(0.0, after - value) / max(abs(value), 1e-300), n_iter)


def normal_rows(counts: Array) -> Array:
    """Return the rows divided by their sums; a row of zeros becomes equal shares."""
    total = counts.sum(axis=1, keepdims=True)
    return np.asarray(np.where(total > 0, counts / np.where(total > 0, total, 1.0), 1.0 / counts.shape[1]))
