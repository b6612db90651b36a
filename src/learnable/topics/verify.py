"""Independent checks of population structure and topic models, in plain NumPy, from the data and the fitted arrays.

Of sampled models every number must follow from the draws that are kept, the draws must have the log-likelihood that the
trace says of them, computed from the data, and the certificate must follow from the trace. Of maximum likelihood one
more EM step must not raise the log-likelihood by more than was recorded.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
    table = read_table(model, X, None, sample_weight)
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
    mean = model.trace_[:, :, 1 + K].mean() if learned else 1.0 if model.alpha is None else float(model.alpha)
    return relative(model.alpha_, mean) < 1e-9


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
    after = _level(model, counts, new_Q, new_P)
    return max(0.0, after - before) / max(abs(before), 1e-300)
