r"""The Bayesian posterior of a linear model, by NUTS from its certified optimum.

A penalised fit is the mode of p(w, b, φ | y) ∝ p(y | b + Xw, φ) p(w) p(b) p(φ). `posterior` draws from the whole of it:

| model | likelihood | prior of the coefficients by its penalty |
|---|---|---|
| `LinearRegression`, `Ridge` | N(z, σ²) | flat, N(0, σ²/α) |
| `LogisticRegression` | Bernoulli, softmax | N(0, C) |
| `PoissonRegressor` | Poisson(e^z) | N(0, 1/(αS)) |
| `GammaRegressor` | Gamma, mean e^z, shape k | N(0, 1/(kαS)) |
| `likelihood="student_t"` with a model of the squared loss | z + σt_ν | as there |

The intercept is flat (N(0, 5²) for three classes and more, whose scores have a constant too many); σ has the density
1/σ and k the density 1/k. `prior=` replaces any of them. Chains start around the mode, twice as wide as the normal
approximation there, which is also the metric.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier

from ..core.errors import DataError, ParameterError
from ..data.door import read_features
from ..risk.penalties import LinearLikelihood
from . import _regression_kernels as kernels
from .chains import Chains
from .driver import ESS, sample
from .hamiltonian import Hamiltonian
from .predictive import Posterior, Spread
from .states import branch_of, root_seed
from .supports import Parameters, Positive, Real
from .targets import Target, compiled

Array = NDArray[np.float64]

_CODES = {
    "normal": kernels.NORMAL,
    "student_t": kernels.STUDENT_T,
    "bernoulli": kernels.BERNOULLI,
    "categorical": kernels.CATEGORICAL,
    "poisson": kernels.POISSON,
    "gamma": kernels.GAMMA,
}
_SPREADS = {"normal": "sigma", "student_t": "sigma", "gamma": "shape"}
#: Chains start this many times as far from the mode as the normal approximation says.
_DISPERSION = 2.0


def posterior(
    model: Any,
    X: Any,
    y: Any,
    *,
    prior: Mapping[str, Any] | None = None,
    likelihood: str | None = None,
    df: float = 4.0,
    sample_weight: Any = None,
    n_draws: int = 1000,
    n_warmup: int = 200,
    n_chains: int = 4,
    target_accept: float = 0.8,
    random_state: Any = None,
    n_jobs: int | None = None,
    max_seconds: float | None = None,
    until: ESS | None = None,
    progress: Any = False,
) -> Posterior:
    """Draw from the posterior of a linear model.

    Parameters
    ----------
    model : estimator
        A model that shows its likelihood (see the table above). One that is not fitted is fitted here.
    X, y : arrays
        The rows, as `fit` takes them (in memory).
    prior : mapping, optional
        Distributions of `probability` (Normal, StudentT, Laplace; Gamma, Exponential for the dispersion) for "coef"
        (one, or one per column), "intercept", and "sigma" or "shape"; None for a flat density. By default what the
        penalty says.
    likelihood : {"normal", "student_t"}, optional
        For models of the squared loss: errors with heavy tails instead of normal ones.
    df : float
        Degrees of freedom of "student_t".
    sample_weight : array of shape (n_rows,), optional
        A row of weight k counts as k rows.
    n_draws, n_warmup, n_chains, target_accept
        As in `nuts`.
    random_state, n_jobs, max_seconds, until, progress
        See `sample`.

    Returns
    -------
    Posterior
        `chains` with "coef", "intercept" and the dispersion; `predict`, `predict_dist`, `predict_interval`,
        `predict_proba`, `log_predictive`, `loo`.

    Examples
    --------
    >>> import numpy as np
    >>> import learnable as ln
    >>> from learnable.sampling import posterior
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(80, 2))
    >>> y = X @ [1.0, -2.0] + 0.5 + 0.3 * rng.normal(size=80)
    >>> found = posterior(ln.LinearRegression(), X, y, random_state=0)
    >>> found.chains.certificate_.holds, found.chains["coef"].mean(axis=(0, 1)).round(1)
    (True, array([ 1. , -1.9]))
    >>> low, high = found.predict_interval(X[:3], 0.9)
    >>> bool((low < high).all())
    True
    """
    if not hasattr(model, "_likelihood"):
        raise ParameterError(
            f"posterior: {type(model).__name__} shows no likelihood; use LinearRegression, Ridge, LogisticRegression, "
            "PoissonRegressor or GammaRegressor, or write the log density and call nuts."
        )
    fitted = model if hasattr(model, "coef_") else clone(model).fit(X, y, sample_weight)
    problem = _Regression(fitted, X, y, sample_weight, prior, likelihood, df)
    target = problem.target()
    root = root_seed("posterior", random_state)
    mode, covariance = problem.mode_and_covariance(target)
    sampler = Hamiltonian(target, n_warmup=n_warmup, target_accept=target_accept, metric=covariance)
    sampler.name = "posterior"
    factor = np.linalg.cholesky(covariance)
    rng = branch_of(root, 2)
    if not isinstance(n_chains, (int, np.integer)) or isinstance(n_chains, bool) or n_chains < 1:
        raise ParameterError(f"posterior: n_chains must be an integer of at least 1; got {n_chains!r}.")
    starts = [mode + _DISPERSION * factor @ rng.standard_normal(len(mode)) for _ in range(n_chains)]
    drawn = sample(
        sampler,
        starts,
        n_draws=n_draws,
        random_state=root,
        n_jobs=n_jobs,
        max_seconds=max_seconds,
        until=until,
        progress=progress,
    )
    return Posterior(problem.natural(drawn), fitted, problem.spread())


class _Regression:
    """The data, the likelihood and the priors of one posterior."""

    def __init__(
        self, model: Any, X: Any, y: Any, sample_weight: Any, prior: Any, likelihood: str | None, df: float
    ) -> None:
        self.model = model
        table = read_features(model, X)
        self.X = np.asarray(table.toarray() if sp.issparse(table) else table, dtype=np.float64)
        n, self.d = self.X.shape
        self.weight = np.ones(n) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        if self.weight.shape != (n,) or not np.isfinite(self.weight).all() or (self.weight < 0).any():
            raise DataError(f"posterior: sample_weight must be {n} finite numbers of at least 0.")
        self.y = self._targets(y, n)
        said: LinearLikelihood = model._likelihood(float(self.weight.sum()))
        self.family = self._family(said, likelihood)
        if not df > 0:
            raise ParameterError(f"posterior: df must be positive; got {df!r}.")
        self.df = float(df)
        self.K = len(model.classes_) if self.family == "categorical" else 1
        self.intercept = bool(model.fit_intercept)
        self.spread_name = _SPREADS.get(self.family)
        self.centre = np.average(self.X, axis=0, weights=self.weight) if self.intercept else np.zeros(self.d)
        self.priors = self._priors(said, prior)
        names: dict[str, Any] = {"coef": Real((self.K, self.d) if self.K > 1 else self.d)}
        if self.intercept:
            names["intercept"] = Real(self.K if self.K > 1 else ())
        if self.spread_name:
            names[self.spread_name] = Positive()
        self.parameters = Parameters(names)

    def _targets(self, y: Any, n: int) -> Array:
        values = np.asarray(y)
        if values.shape != (n,):
            raise DataError(f"posterior: y must be {n} numbers or labels, one per row; got shape {values.shape}.")
        if is_classifier(self.model):
            codes = np.searchsorted(self.model.classes_, values)
            codes = np.minimum(codes, len(self.model.classes_) - 1)
            if (self.model.classes_[codes] != values).any():
                raise DataError("posterior: y has a class that the fitted model does not know.")
            return codes.astype(np.float64)
        values = values.astype(np.float64)
        if not np.isfinite(values).all():
            raise DataError("posterior: y must be finite.")
        return values

    def _family(self, said: LinearLikelihood, likelihood: str | None) -> str:
        if likelihood is not None:
            if likelihood not in ("normal", "student_t") or said.family != "normal":
                raise ParameterError(
                    f"posterior: likelihood must be 'normal' or 'student_t', for models of the squared loss; "
                    f"got {likelihood!r} for {type(self.model).__name__}."
                )
            return likelihood
        if said.family == "categorical" and len(self.model.classes_) == 2:
            return "bernoulli"
        return said.family

    def _priors(self, said: LinearLikelihood, prior: Mapping[str, Any] | None) -> Array:
        rows = np.zeros((self.d + 2, 4))
        if said.precision > 0:
            kind = kernels.PRIOR_NOISE if said.in_units_of_noise else kernels.PRIOR_NORMAL
            rows[: self.d] = [kind, 0.0, 1 / math.sqrt(said.precision), 0.0]
        if self.K > 1:
            rows[self.d] = [kernels.PRIOR_NORMAL, 0.0, 5.0, 0.0]
        rows[self.d + 1] = [kernels.PRIOR_RECIPROCAL, 0.0, 0.0, 0.0]
        known = {"coef", *(["intercept"] if self.intercept else []), *([self.spread_name] if self.spread_name else [])}
        for name, distribution in (prior or {}).items():
            if name not in known:
                raise ParameterError(f"posterior: prior is for {sorted(known)}; got {name!r}.")
            place = {"coef": slice(0, self.d), "intercept": self.d}.get(name, self.d + 1)
            rows[place] = prior_rows(distribution, self.d if name == "coef" else 1, name) if distribution else 0.0
        return rows

    def target(self) -> Target:
        """Return the compiled log posterior of centred columns."""
        settings = [_CODES[self.family], int(self.intercept), self.K, int(self.spread_name is not None)]
        density = compiled(
            kernels.log_posterior,
            self.X - self.centre,
            self.y,
            self.weight,
            self.centre,
            self.priors,
            np.array(settings),
            self.df,
        )
        return Target("posterior", density, self.parameters, self.parameters.n_free, needs_gradient=True)

    def _start(self) -> Array:
        """Return the fitted coefficients as free coordinates."""
        coef = np.asarray(self.model.coef_, dtype=np.float64)
        w = coef.reshape(self.K, self.d) if self.K > 1 else coef.reshape(-1, self.d)[0]
        values: dict[str, Any] = {"coef": w}
        if self.intercept:
            b = np.ravel(np.asarray(self.model.intercept_, dtype=np.float64))
            c = b + w @ self.centre if self.K > 1 else float(b[0] + w @ self.centre)
            values["intercept"] = c
        if self.spread_name == "sigma":
            z = self.X @ w + (values.get("intercept", 0.0) - w @ self.centre if self.intercept else 0.0)
            values["sigma"] = max(float(np.sqrt(np.average((self.y - z) ** 2, weights=self.weight))), 1e-8)
        elif self.spread_name == "shape":
            values["shape"] = 1.0
        return self.parameters.free("posterior", {k: np.asarray(v, dtype=np.float64) for k, v in values.items()})

    def mode_and_covariance(self, target: Target) -> tuple[Array, Array]:
        """Return the mode on free coordinates, found from the fitted model, and the inverse of the curvature there."""
        from scipy.optimize import minimize

        def negative(u: Array) -> tuple[float, Array]:
            value, gradient = target.evaluate(u)
            return -value, -gradient

        found = minimize(negative, self._start(), jac=True, method="L-BFGS-B", options={"maxiter": 500})
        mode = np.asarray(found.x, dtype=np.float64)
        d = len(mode)
        curvature = np.empty((d, d))
        for i in range(d):
            h = 1e-5 * max(1.0, abs(mode[i]))
            ends = []
            for side in (1.0, -1.0):
                moved = mode.copy()
                moved[i] += side * h
                ends.append(negative(moved)[1])
            curvature[i] = (ends[0] - ends[1]) / (2 * h)
        curvature = (curvature + curvature.T) / 2
        values, vectors = np.linalg.eigh(curvature)
        if not np.isfinite(values).all() or values.max() <= 0:
            raise DataError("posterior: the log density has no mode near the fit; give every parameter a proper prior.")
        # Directions that the data and the prior leave free would give chains without end.
        if values.min() < 1e-10 * values.max():
            raise DataError(
                "posterior: a direction of the coefficients has a flat density, so the posterior is improper; give "
                "prior={'coef': Normal(0, …)}, or drop columns that depend on others."
            )
        return mode, (vectors / values) @ vectors.T

    def natural(self, chains: Chains) -> Chains:
        """Return the chains with the intercept of columns that are not centred."""
        if not self.intercept:
            return chains
        draws = chains.draws.copy()
        at = self.K * self.d
        w = draws[:, :, :at].reshape(*draws.shape[:2], self.K, self.d)
        draws[:, :, at : at + self.K] -= w @ self.centre
        return chains._with_draws(draws, chains.stats)._remember(chains._sampler)  # type: ignore[attr-defined]

    def spread(self) -> Spread:
        """Return what predictions need besides the chains."""
        return Spread(self.family, self.spread_name, self.df, self.K, self.X, self.y, self.weight)


def prior_rows(distribution: Any, n: int, name: str) -> Array:
    """Return the kernels' rows of a distribution, or of n of them."""
    kind = type(distribution).__name__
    p = getattr(distribution, "parameters", {})
    forms: dict[str, Any] = {
        "Normal": lambda: (kernels.PRIOR_NORMAL, distribution.mean, distribution.std, 0.0),
        "StudentT": lambda: (kernels.PRIOR_T, p["loc"], p["scale"], p["df"]),
        "Laplace": lambda: (kernels.PRIOR_LAPLACE, p["loc"], p["scale"], 0.0),
        "Gamma": lambda: (kernels.PRIOR_GAMMA, p["shape"], p["rate"], 0.0),
        "Exponential": lambda: (kernels.PRIOR_GAMMA, 1.0, p["rate"], 0.0),
    }
    if kind not in forms:
        raise ParameterError(f"posterior: the prior of {name} must be one of {', '.join(forms)}; got {kind}.")
    if name in ("coef", "intercept") and kind in ("Gamma", "Exponential"):
        raise ParameterError(f"posterior: {name} may be negative; a {kind} prior is for the dispersion.")
    columns = [np.broadcast_to(np.asarray(part, dtype=np.float64), (n,)) for part in forms[kind]()]
    rows = np.stack(columns, axis=1)
    return rows if n > 1 or name == "coef" else rows[0]
