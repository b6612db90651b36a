r"""Independent check of a `GenerativeClassifier` of exponential families: their mean statistics are those of the rows.

At the maximum of the likelihood E t(x) under the density equals the mean of t(x) over the rows of the class. Both sides
are written out here for each family, from its textbook formulas, and evaluated in extended precision.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma

from ..core.checking import Recheck, relative
from ..core.errors import VerificationError
from ..data.checking import read_classes
from .verify import ROUNDING

Array = NDArray[Any]


@np.errstate(all="ignore")  # a model may hold anything; NaN and infinity then fail the comparison
def generative_classifier(model: Any, X: Any, y: Any, sample_weight: Any) -> Recheck:
    """Recompute the certificate of a GenerativeClassifier."""
    rows, fingerprint = read_classes(model, X, y, sample_weight)
    K = len(model.classes_)
    records = model.fitted_
    if len(records) != K or not all(isinstance(record, dict) for record in records):
        raise VerificationError("verify: nothing is proven of these densities, so there is nothing to check.")
    if len({record["family"] for record in records}) > 1 or records[0]["family"] not in _FAMILIES:
        raise VerificationError(f"verify: no check is written for the family {records[0]['family']}.")
    statistic, expectation = _FAMILIES[records[0]["family"]]
    count = np.zeros(K, dtype=np.longdouble)
    total: list[Any] = [0] * K
    for Z, c, s in rows.chunks():
        for k in range(K):
            count[k] += s[c == k].sum()
            total[k] = total[k] + np.tensordot(s[c == k], statistic(Z[c == k]), axes=1)
    prior = count / count.sum() if model.priors is None else model.priors
    worst = max(relative(model.class_count_, count), relative(model.class_prior_, prior))
    for k, record in enumerate(records):
        goal = total[k] / count[k]
        try:
            found = expectation(**{key: np.asarray(v, dtype=np.longdouble) for key, v in record["parameters"].items()})
        except ValueError:  # parameters of different lengths
            return Recheck(np.inf, 0.0, fingerprint)
        size = abs(goal).max(axis=-1, keepdims=True) + 1e-300
        worst = max(worst, relative(found, goal, size))
    return Recheck(float(worst), ROUNDING, fingerprint)


def _pairs(*columns: Any) -> Array:
    return np.stack(np.broadcast_arrays(*columns), axis=-1)


def _outer(x: Array) -> Array:
    return np.concatenate([x, (x[..., :, None] * x[..., None, :]).reshape(*x.shape[:-1], -1)], axis=-1)


def _psi(values: Array) -> Array:
    return digamma(np.asarray(values, dtype=np.float64))


def _normal_mean(mean: Array, cov: Array) -> Array:
    return np.concatenate([mean, (cov + np.outer(mean, mean)).ravel()])


#: By family: t(x), and E t(x) from the parameters; the last axis runs over the entries of t.
_FAMILIES: dict[str, tuple[Any, Any]] = {
    "Normal": (lambda x: _pairs(x, x**2), lambda mean, std: _pairs(mean, mean**2 + std**2)),
    "MultivariateNormal": (_outer, _normal_mean),
    "Poisson": (lambda x: x[..., None], lambda rate: rate[..., None]),
    "Exponential": (lambda x: x[..., None], lambda rate: (1 / rate)[..., None]),
    "Bernoulli": (lambda x: x[..., None], lambda p: p[..., None]),
    "Gamma": (
        lambda x: _pairs(np.log(x), x),
        lambda shape, rate: _pairs(_psi(shape) - np.log(rate), shape / rate),
    ),
    "InverseGamma": (
        lambda x: _pairs(np.log(x), 1 / x),
        lambda shape, rate: _pairs(np.log(rate) - _psi(shape), shape / rate),
    ),
    "Beta": (
        lambda x: _pairs(np.log(x), np.log1p(-x)),
        lambda a, b: _pairs(_psi(a) - _psi(a + b), _psi(b) - _psi(a + b)),
    ),
    "Dirichlet": (np.log, lambda alpha: _psi(alpha) - _psi(alpha.sum())),
}
