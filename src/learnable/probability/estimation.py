r"""Maximum likelihood and maximum a posteriori estimates of any family.

$$ \hat\theta_{\mathrm{MLE}} = \arg\max_\theta \sum_i w_i \log p(x_i \mid \theta), \qquad
   \hat\theta_{\mathrm{MAP}} = \arg\max_\theta \sum_i w_i \log p(x_i \mid \theta) + \log\pi(\theta). $$

The first is the family's own: from the mean statistics of an exponential family, or by its own algorithm. The
second depends on
the parameters in which π is a density: here those of the family's constructor. A conjugate prior gives it in
closed form;
any other is maximised numerically, over parameters mapped to all of ℝ (logarithms, logits, Cholesky factors), by BFGS.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize
from scipy.special import expit, logit, softmax

from ..core.errors import DataError, ParameterError
from .base import Array, Distribution, check_sample

D = TypeVar("D", bound=Distribution)

_FAR = 27.0  # in logarithms, twelve orders of magnitude: a scale that has collapsed or exploded
_UNBOUNDED = "a flat prior may leave the posterior unbounded; give one for every parameter."

#: What values the parameters of the families may have, by family and parameter; "known" ones are not estimated.
_DOMAINS: Mapping[str, Mapping[str, str]] = {
    "Normal": {"mean": "real", "std": "positive"},
    "MultivariateNormal": {"mean": "real", "cov": "definite"},
    "StudentT": {"df": "positive", "loc": "real", "scale": "positive"},
    "Laplace": {"loc": "real", "scale": "positive"},
    "Bernoulli": {"p": "unit"},
    "Binomial": {"n": "known", "p": "unit"},
    "Categorical": {"p": "simplex"},
    "Multinomial": {"n": "known", "p": "simplex"},
    "Poisson": {"rate": "positive"},
    "Exponential": {"rate": "positive"},
    "Gamma": {"shape": "positive", "rate": "positive"},
    "InverseGamma": {"shape": "positive", "rate": "positive"},
    "Beta": {"a": "positive", "b": "positive"},
    "Dirichlet": {"alpha": "positive"},
    "Wishart": {"df": "above", "scale": "definite"},
    "InverseWishart": {"df": "above", "scale": "definite"},
}


def fit_mle(family: type[D], x: ArrayLike, weights: ArrayLike | None = None, **known: Any) -> D:
    """Return the member of a family under which the data are most likely.

    Parameters
    ----------
    family : class
        `Normal`, `Gamma`, …
    x : array of shape (n, ...)
        Samples along the first axis.
    weights : array of shape (n,), optional
        Non-negative; a weight of 2 counts as the same sample twice.
    **known
        Parameters that are known, such as the n of a `Binomial`.

    Examples
    --------
    >>> from learnable.probability import Poisson
    >>> fit_mle(Poisson, [0, 3, 1, 2])
    Poisson(rate=1.5)
    """
    return family.fit_mle(x, weights, **known)  # type: ignore[attr-defined, no-any-return]


def fit_map(family: type[D], x: ArrayLike, prior: Any, weights: ArrayLike | None = None, **known: Any) -> D:
    """Return the member of a family that is most probable after the data, one distribution for all of them.

    Parameters
    ----------
    family : class
        `Normal`, `Gamma`, …
    x : array of shape (n,), or (n,) and the shape of a draw
        Samples along the first axis; there may be none.
    prior : dict, callable or conjugate prior
        A dict from names of the constructor's parameters to distributions of them, independent of each other and
        flat for
        names that are left out; or a function that returns the log-density of a member of the family, constants left
        out; or a conjugate prior, whose posterior's own `map()` is returned.
    weights : array of shape (n,), optional
        Non-negative; a weight of 2 counts as the same sample twice.
    **known
        Parameters that are known, such as the n of a `Binomial`.

    Examples
    --------
    >>> from learnable.probability import Beta, Bernoulli
    >>> fit_map(Bernoulli, [1, 1, 1], {"p": Beta(2.0, 2.0)})
    Bernoulli(p=0.8)
    """
    if hasattr(prior, "update") and hasattr(prior, "map"):
        posterior = prior.update(x) if weights is None else prior.update(x, weights=weights)
        return posterior.map()  # type: ignore[no-any-return]
    domains = _domains_of(family)
    log_prior = _as_log_prior(family, prior, domains)
    x = np.asarray(x, dtype=np.float64)
    w = np.ones(0)
    if x.size:
        x, w = check_sample(family, x, weights, rank=family._event_rank)
    total = max(float(w.sum()), 1.0)
    start = _start(family, x, w, prior, known, domains)
    known = {name: value for name, value in known.items() if domains.get(name) == "known"}

    def objective(z: Array) -> float:
        try:
            candidate = family(**_to_parameters(z, start, domains), **known)
        except ParameterError:  # a step so long that a parameter is no float any more
            return np.inf
        value = log_prior(candidate)
        if w.size:
            value += float(w @ np.asarray(candidate.logpdf(x)))
        return -value / total if np.isfinite(value) else np.inf

    begin = _from_parameters(start, domains)
    best = _maximise(family.__name__, objective, begin)
    if np.any(np.abs(best - begin)[_logarithms(start, domains)] > _FAR):
        raise DataError(f"{family.__name__}: fit_map found no maximum; {_UNBOUNDED}")
    return family(**_to_parameters(best, start, domains), **known)


def _maximise(owner: str, objective: Callable[[Array], float], z: Array) -> Array:
    """Return the minimiser of the objective: by BFGS where it is smooth, from there on by simplices at a kink."""
    if not np.isfinite(objective(z)):
        raise DataError(f"{owner}: the prior and the data exclude each other: their product is zero or not finite.")
    methods: list[tuple[str, dict[str, Any]]] = [
        ("BFGS", {"jac": "3-point", "options": {"gtol": 1e-10, "maxiter": 1000}}),
        ("Nelder-Mead", {"options": {"xatol": 1e-11, "fatol": 1e-15, "maxfev": 2000 * z.size, "adaptive": True}}),
    ]
    with np.errstate(all="ignore"):
        for method, options in methods:
            for _ in range(8):  # a restart forgets the scale of a long first step
                result = minimize(objective, z, method=method, **options)
                moved = float(np.max(np.abs(result.x - z) / (1.0 + np.abs(z)), initial=0.0))
                z = result.x
                if moved < 1e-8:
                    break
            flat = method == "BFGS" and np.max(np.abs(result.jac), initial=0.0) < 1e-6
            if np.all(np.isfinite(z)) and (flat or (method != "BFGS" and moved < 1e-8)):
                return np.asarray(z)
    raise DataError(f"{owner}: fit_map found no maximum; {_UNBOUNDED}")


def _domains_of(family: type[Distribution]) -> Mapping[str, str]:
    for cls in family.__mro__:
        if cls.__name__ in _DOMAINS:
            return _DOMAINS[cls.__name__]
    raise ParameterError(f"fit_map: family must be one of {', '.join(_DOMAINS)}, got {family.__name__}.")


def _as_log_prior(family: type[D], prior: Any, domains: Mapping[str, str]) -> Callable[[D], float]:
    """Return the prior as a function of a member of the family."""
    if callable(prior):
        return lambda member: float(prior(member))
    if not isinstance(prior, Mapping):
        raise ParameterError(
            f"{family.__name__}: prior must be a dict of distributions, a function or a conjugate prior, got {prior!r}."
        )
    free = [name for name, domain in domains.items() if domain != "known"]
    for name in prior:
        if name not in free:
            raise ParameterError(
                f"{family.__name__}: prior must name parameters among {', '.join(free)}, got {name!r}."
            )
    return lambda member: float(sum(np.sum(d.logpdf(member.parameters[name])) for name, d in prior.items()))


def _start(
    family: type[Distribution], x: Array, w: Array, prior: Any, known: dict[str, Any], domains: Mapping[str, str]
) -> dict[str, Array]:
    """Return parameters inside their domains: those of the MLE where there is one, else the prior's means."""
    try:
        fitted: dict[str, Array] = dict(family.fit_mle(x, w, **known).parameters)  # type: ignore[attr-defined]
    except (DataError, ParameterError, TypeError):
        fitted = {}
    start = {}
    for name, domain in domains.items():
        if domain == "known":
            continue
        value = fitted.get(name)
        if value is None and isinstance(prior, Mapping) and name in prior:
            value = prior[name].mean
        if value is None and name in ("mean", "loc") and x.size:
            value = np.median(x, axis=0)
        if value is None and domain in ("real", "positive") and not family._event_ranks.get(name, 0):
            value = np.ones(())
        if value is None or not np.all(np.isfinite(value)):
            raise DataError(
                f"{family.__name__}: fit_map needs data that have an MLE, or a prior with a mean for {name}."
            )
        start[name] = _pull_inside(np.asarray(value, dtype=np.float64), domain, max(float(w.sum()), 1.0))
    return start


def _pull_inside(value: Array, domain: str, n: float) -> Array:
    """Move an estimate on the edge of its domain, such as a share of 0, inside."""
    if domain == "unit":
        return (n * value + 0.5) / (n + 1.0)
    if domain == "simplex":
        return (n * value + 0.5) / (n + 0.5 * value.shape[-1])
    return np.maximum(value, 1e-8) if domain == "positive" else value


def _from_parameters(parameters: Mapping[str, Array], domains: Mapping[str, str]) -> Array:
    """Return the parameters as one vector of any real numbers."""
    parts = []
    for name, value in parameters.items():
        match domains[name]:
            case "real":
                parts.append(value / _unit(value))
            case "positive":
                parts.append(np.log(value))
            case "above":
                parts.append(np.log(value - (parameters["scale"].shape[-1] - 1.0)))
            case "unit":
                parts.append(logit(value))
            case "simplex":
                parts.append(np.log(value[..., :-1]) - np.log(value[..., -1:]))
            case "definite":
                lower = np.linalg.cholesky(value)
                parts.append(
                    np.r_[np.log(np.diagonal(lower)), (lower / np.diagonal(lower))[np.tril_indices_from(lower, -1)]]
                )
    return np.concatenate([np.ravel(part) for part in parts])


def _logarithms(parameters: Mapping[str, Array], domains: Mapping[str, str]) -> NDArray[np.bool_]:
    """Return which entries of the vector are logarithms of positive parameters."""
    parts = []
    for name, value in parameters.items():
        d = value.shape[-1] if value.ndim else 1
        count = {"simplex": d - 1, "definite": d * (d + 1) // 2}.get(domains[name], value.size)
        logs = {"positive": count, "above": count, "definite": d}.get(domains[name], 0)
        parts.append(np.arange(count) < logs)
    return np.concatenate(parts)


def _to_parameters(z: Array, like: Mapping[str, Array], domains: Mapping[str, str]) -> dict[str, Array]:
    """Return the parameters that a vector stands for, in the shapes of others."""
    parameters = {}
    used = 0
    for name, model in like.items():
        d = model.shape[-1] if model.ndim else 1
        count = {"simplex": d - 1, "definite": d * (d + 1) // 2}.get(domains[name], model.size)
        part = z[used : used + count]
        used += count
        match domains[name]:
            case "real":
                value = part.reshape(model.shape) * _unit(model)
            case "positive":
                value = np.exp(part).reshape(model.shape)
            case "above":
                value = (np.exp(part) + (like["scale"].shape[-1] - 1.0)).reshape(model.shape)
            case "unit":
                value = expit(part).reshape(model.shape)
            case "simplex":
                value = softmax(np.r_[part, 0.0])
            case _:
                lower = np.eye(d)
                lower[np.tril_indices(d, -1)] = part[d:]
                lower = lower * np.exp(part[:d])
                value = lower @ lower.T
        parameters[name] = value
    return parameters


def _unit(value: Array) -> float:
    """Return the scale on which an estimate of location is moved."""
    return max(1.0, float(np.max(np.abs(value), initial=0.0)))
