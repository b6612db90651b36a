"""Independent checks of population structure and topic models, in plain NumPy, from the data and the fitted arrays.

Of sampled models every number must follow from the draws that are kept, the draws must have the log-likelihood that the
trace says of them, computed from the data, and the certificate must follow from the trace. Of maximum likelihood one
more EM step must not raise the log-likelihood by more than was recorded.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import gammaln, psi

from ..core.checking import Recheck, relative
from ..data.checking import read_table
from ..sampling.verify import _worst_of

Array = NDArray[np.float64]

#: Rounding of sums of logarithms, relative.
_ROUNDING = 1e-8
#: The search keeps proportions and frequencies above this; a step that may leave them brings about as much more.
_LEAST = 1e-9
#: Kept draws whose log-likelihood is computed again; each costs n · alleles · K operations.
_MOST_CHECKED = 400


def population_structure(model: Any, X: Any, y: Any = None, sample_weight: Any = None) -> Recheck:
    """Recompute the certificate of a `PopulationStructure`."""
    table = read_table(model, X, y if model.place_prior else None, sample_weight)
    genotypes = table.genotypes
    counts = _counts_of(genotypes)
    starts = genotypes.starts
    sound = (
        np.array_equal(model.allele_starts_, starts)
        and np.array_equal(model.labels_, np.argmax(model.Q_, axis=1))
        and model.Q_.shape == (len(counts), model.n_populations)
        and model.P_.shape == (int(starts[-1]), model.n_populations)
        and _are_distributions(model.Q_, model.P_, starts)
        and relative(model.log_likelihood_, _level(model, counts, model.Q_, model.P_)) < _ROUNDING
        and _are_names(model, genotypes)
        and list(getattr(model, "places_", [])) == list(table.place_names)
    )
    if model.method == "ml":
        value = _rise(model, counts, starts)
        sound = sound and relative(model.history_[-1], model.log_likelihood_) < _ROUNDING
        sound = sound and bool((np.diff(model.history_) >= -1e-9 * abs(model.history_[-1])).all())
        fixed = 1.0 if model.alpha is None else float(model.alpha)
        sound = sound and model.alpha_ == fixed
        return Recheck(value if sound else math.inf, _LEAST, table.fingerprint)
    sound = sound and _follows_from_draws(model, counts, starts)
    return Recheck(chain_value(model.trace_) if sound else math.inf, 1e-9, table.fingerprint)


def chain_value(trace: Array) -> float:
    """Return the worst of (R̂ − 1)/0.01 and 400/ESS over the numbers of a trace that move."""
    moving = [j for j in range(trace.shape[2]) if (trace[:, :, j] != trace[0, 0, j]).any()]
    value = max((_worst_of(trace[:, :, j]) for j in moving), default=math.inf)
    return value if math.isfinite(value) and trace.shape[1] >= 4 else math.inf


def _counts_of(genotypes: Any) -> Array:
    """Return copies of each allele by individual, one locus at a time."""
    parts = []
    alleles = np.asarray(genotypes.alleles)
    for j, size in enumerate(genotypes.n_alleles.tolist()):
        parts.append(np.stack([(alleles[:, j] == a).sum(axis=1) for a in range(size)], axis=1))
    return np.concatenate(parts, axis=1).astype(np.float64)


def _are_distributions(Q: Array, P: Array, starts: NDArray[np.int64]) -> bool:
    sums = np.add.reduceat(P, starts[:-1], axis=0)
    positive = (Q >= 0).all() and (P >= 0).all()
    return bool(positive and np.abs(Q.sum(axis=1) - 1).max() < 1e-8 and np.abs(sums - 1).max() < 1e-8)


def _are_names(model: Any, genotypes: Any) -> bool:
    names = genotypes.allele_names
    if names is None or not model.allele_names_:
        return not model.allele_names_
    return list(model.allele_names_) == [name for own in names for name in own]


def _level(model: Any, counts: Array, Q: Array, P: Array) -> float:
    """Return log p(genotypes | Q, P); without admixture the populations are summed out."""
    if model.admixture:
        F = np.maximum(Q @ P.T, 1e-300)
        return float((counts * np.log(F))[counts > 0].sum())
    scores = counts @ np.log(np.maximum(P, 1e-9))
    most = scores.max(axis=1, keepdims=True)
    return float((most[:, 0] + np.log(np.exp(scores - most).mean(axis=1))).sum())


def _follows_from_draws(model: Any, counts: Array, starts: NDArray[np.int64]) -> bool:
    """Tell whether means, trace and kept draws belong together and to the data."""
    Q = model.Q_draws_
    P = model.P_draws_
    kept = model.kept_
    sizes = Q.mean(axis=1)
    if relative(model.Q_, Q.mean(axis=0), 1.0) > 1e-12 or relative(model.P_, P.mean(axis=0), 1.0) > 1e-12:
        return False
    if model.place_prior and relative(model.place_alpha_, model.place_alpha_draws_.mean(axis=0), 1.0) > 1e-12:
        return False
    rows = model.trace_[kept[:, 0], kept[:, 1]]
    K = Q.shape[2]
    if relative(np.sort(sizes, axis=1)[:, ::-1], rows[:, 1 : 1 + K], 1.0) > 1e-9:
        return False
    for s in range(min(len(Q), _MOST_CHECKED)):
        if not _are_distributions(Q[s], P[s], starts):
            return False
        exact = _level(model, counts, Q[s], P[s])
        if relative(rows[s, 0], exact) > _ROUNDING:
            return False
    learned = model.admixture and model.alpha is None and K > 1
    mean = 1.0 if model.alpha is None else float(model.alpha)
    if learned:
        mean = model.trace_[:, :, 1 + K].mean()
    return relative(model.alpha_, mean) < 1e-9


def _inside(shares: Array, starts: NDArray[np.int64], axis: int) -> Array:
    """Return shares of at least 1e-9 that add up to one in each group."""
    kept = np.maximum(shares, 1e-9)
    sums = np.add.reduceat(kept, starts, axis=axis)
    return kept / np.repeat(sums, np.diff(np.append(starts, shares.shape[axis])), axis=axis)


def _rise(model: Any, counts: Array, starts: NDArray[np.int64]) -> float:
    """Return the relative rise of the log-likelihood by one EM step."""
    Q = model.Q_
    P = model.P_
    before = _level(model, counts, Q, P)
    if model.admixture:
        ratio = np.where(counts > 0, counts / np.maximum(Q @ P.T, 1e-300), 0.0)
        own = Q * (ratio @ P)
        shares = P * (ratio.T @ Q)
    else:
        scores = counts @ np.log(np.maximum(P, 1e-9))
        own = np.exp(scores - scores.max(axis=1, keepdims=True))
        if relative(Q, own / own.sum(axis=1, keepdims=True), 1.0) > 1e-7:
            return math.inf
        shares = counts.T @ (own / own.sum(axis=1, keepdims=True))
    total = own.sum(axis=1, keepdims=True)
    new_Q = np.where(total > 0, own / np.where(total > 0, total, 1.0), Q)
    sums = np.repeat(np.add.reduceat(shares, starts[:-1], axis=0), np.diff(starts), axis=0)
    new_P = np.where(sums > 0, shares / np.where(sums > 0, sums, 1.0), P)
    # Shares stay within 1e-9 of zero and one, so that no genotype of a new individual is impossible.
    new_Q = _inside(new_Q, np.zeros(1, dtype=np.int64), 1)
    new_P = _inside(new_P, starts[:-1], 0)
    after = _level(model, counts, new_Q, new_P)
    return max(0.0, after - before) / max(abs(before), 1e-300)


# ---- topics ----


@np.errstate(all="ignore")
def latent_dirichlet_allocation(model: Any, X: Any, y: Any = None, sample_weight: Any = None) -> Recheck:
    """Recompute the certificate of a `LatentDirichletAllocation`.

    Of a sampled model the counts by topic must add up to those of the data, in words and in documents, and every other
    number must follow from them; of the others one more step is taken.
    """
    table = read_table(model, X, None, sample_weight)
    counts = table.X.toarray() if sp.issparse(table.X) else np.asarray(table.X)
    counts = counts.astype(np.float64)
    way = "variational" if model.learning_method is not None else model.method
    K = model.n_components
    alpha = np.broadcast_to(np.asarray(model.doc_topic_prior_, dtype=np.float64), (K,))
    eta = float(model.topic_word_prior_)
    lam = model.components_
    logs = psi(lam) - psi(lam.sum(axis=1, keepdims=True))
    sound = lam.shape == (K, counts.shape[1]) and model.doc_topic_.shape == (len(counts), K)
    if way == "ml":
        total = lam.sum(axis=1, keepdims=True)
        phi = np.where(total > 0, lam / total, 1.0 / lam.shape[1])
        sound = sound and relative(model.exp_dirichlet_component_, phi, 1.0) < 1e-12
        sound = sound and _is_given(model.doc_topic_prior, alpha, K) and _is_given(model.topic_word_prior, eta, K)
        value, after = _likelihood_rise(counts, model.doc_topic_, phi)
        sound = sound and relative(model.history_[-1], value) < _ROUNDING
        return Recheck((after - value) / abs(value) if sound else math.inf, 1e-11, table.fingerprint)
    sound = sound and relative(model.exp_dirichlet_component_, np.exp(logs), 1.0) < 1e-10
    if way != "variational":
        sound = sound and _counts_add_up(model, counts, alpha, eta)
        value = 0.0 if K == 1 or not counts.sum() else chain_value(model.trace_)
        return Recheck(value if sound else math.inf, 1e-9, table.fingerprint)
    sound = sound and _is_given(model.doc_topic_prior, alpha, K) and _is_given(model.topic_word_prior, eta, K)
    value = _bound(counts, model.doc_topic_, lam, alpha, eta)
    own = np.exp(psi(model.doc_topic_) - psi(model.doc_topic_.sum(axis=1, keepdims=True)))
    ratio = counts / (own @ np.exp(logs) + 1e-100)
    gamma = alpha + own * (ratio @ np.exp(logs).T)
    after = _bound(counts, gamma, eta + np.exp(logs) * (own.T @ ratio), alpha, eta)
    sound = sound and relative(model.history_[-1], value) < _ROUNDING
    return Recheck(max(0.0, after - value) / abs(value) if sound else math.inf, 1e-9, table.fingerprint)


def _is_given(given: Any, used: Any, K: int) -> bool:
    return relative(used, np.broadcast_to(1.0 / K if given is None else given, np.shape(used))) < 1e-12


def _counts_add_up(model: Any, counts: Array, alpha: Array, eta: float) -> bool:
    """Tell whether the counts by topic are those of the data, and the parameters follow from them."""
    by_word = model.topic_counts_
    by_document = model.document_counts_
    S = model.n_averaged_
    if by_word.shape != model.components_.shape or by_document.shape != model.doc_topic_.shape:
        return False
    fits = (
        np.array_equal(by_word.sum(axis=0), S * counts.sum(axis=0))
        and np.array_equal(by_document.sum(axis=1), S * counts.sum(axis=1))
        and np.array_equal(by_word.sum(axis=1), by_document.sum(axis=0))
        and relative(model.components_, by_word / S + eta) < 1e-12
        and relative(model.doc_topic_, by_document / S + alpha) < 1e-12
    )
    sizes = model.trace_[:, :, 1 : 1 + len(alpha)]
    if counts.sum():  # shares of the tokens, the largest first
        fits = fits and np.abs(sizes.sum(axis=2) - 1.0).max() < 1e-9 and bool((np.diff(sizes, axis=2) <= 1e-12).all())
    learned_alpha = isinstance(model.doc_topic_prior, str)
    learned_eta = isinstance(model.topic_word_prior, str)
    fits = fits and (learned_alpha or _is_given(model.doc_topic_prior, alpha, len(alpha)))
    return bool(fits and (learned_eta or _is_given(model.topic_word_prior, eta, len(alpha))))


def _likelihood_rise(counts: Array, theta: Array, phi: Array) -> tuple[float, float]:
    """Return the log-likelihood before and after one EM step."""

    def level(theta: Array, phi: Array) -> float:
        return float((counts * np.log(theta @ phi + 1e-100))[counts > 0].sum())

    ratio = counts / (theta @ phi + 1e-100)
    own = theta * (ratio @ phi.T)
    total = own.sum(axis=1, keepdims=True)
    new = phi * (theta.T @ ratio)
    sums = new.sum(axis=1, keepdims=True)
    before = level(theta, phi)
    after = level(np.where(total > 0, own / total, 1.0 / len(phi)), np.where(sums > 0, new / sums, 1.0 / phi.shape[1]))
    return before, max(before, after)


def _bound(counts: Array, gamma: Array, lam: Array, alpha: Array, eta: float) -> float:
    """Return the variational bound."""

    def divergence(q: Array, p: Array) -> float:
        logs = psi(q) - psi(q.sum(axis=1, keepdims=True))
        p = np.broadcast_to(p, q.shape)
        first = gammaln(q.sum(axis=1)) - gammaln(q).sum(axis=1) - gammaln(p.sum(axis=1)) + gammaln(p).sum(axis=1)
        return float((first + ((q - p) * logs).sum(axis=1)).sum())

    own = np.exp(psi(gamma) - psi(gamma.sum(axis=1, keepdims=True)))
    words = np.exp(psi(lam) - psi(lam.sum(axis=1, keepdims=True)))
    level = (counts * np.log(own @ words + 1e-100))[counts > 0].sum()
    return float(level - divergence(gamma, alpha) - divergence(lam, np.full(1, eta)))
