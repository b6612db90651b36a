r"""Hidden Markov models whose observations are symbols: P(x = o | z = k) = η_ko, rows of η sum to one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln
from sklearn.utils.validation import check_is_fitted

from ..core.declare import fitted, param
from ..core.errors import DataError, ParameterError
from ..core.parameters import ArrayLike, Number, optional
from .hmm import LETTERS, PRIOR, HiddenMarkovModel
from .markov import check_numbers, check_probabilities, estimate_rows, log_dirichlet

Array = NDArray[Any]


class CategoricalHMM(HiddenMarkovModel):
    """A hidden Markov model of symbols 0, 1, ….

    Objective: Σ log p(x) plus the log-densities of Dirichlet priors, climbed by expectation–maximisation to a local
    maximum. Parameters, defaults and attributes are hmmlearn's; priors must be ≥ 1, since below one the objective has
    no maximum; the start is drawn differently. Memory O(nK).

    Examples
    --------
    >>> import numpy as np
    >>> from learnable import CategoricalHMM
    >>> X = np.array([0, 0, 0, 1, 1, 1, 1, 0, 0, 0, 1, 1, 1])[:, None]
    >>> model = CategoricalHMM(n_components=2, random_state=0, n_iter=2000, n_init=10, tol=1e-6).fit(X)
    >>> model.predict(X)
    array([0, 0, 0, 1, 1, 1, 1, 0, 0, 0, 1, 1, 1])
    >>> model.predict_ahead(X, steps=1)
    array([[[0.2, 0.8]]])
    """

    _theory = "hidden-markov"

    emissionprob_prior: Any = param(PRIOR, "Dirichlet parameters of the rows of η.", default=1.0)
    n_features: int | None = param(
        optional(Number(low=1, integer=True)),
        "Number of symbols; None: the largest that was seen, plus one.",
        default=None,
    )
    params: str = param(LETTERS, "Which parameters are estimated: s (π), t (A), e (η).", default="ste")
    init_params: str = param(LETTERS, "Which parameters start anew: s (π), t (A), e (η).", default="ste")

    emissionprob_: Array = fitted("(n_components, n_symbols)", "η.", low=0.0, high=1.0)

    _letters: ClassVar[dict[str, str]] = {"e": "emissionprob_"}

    def _known_features(self) -> Any:
        """Return how many symbols there are: what was given, or else what a fit saw."""
        if self.__dict__.get("_given_features") is not None or not hasattr(self, "emissionprob_"):
            return self.__dict__.get("_given_features")
        return np.shape(self.emissionprob_)[-1]

    def _check_rows(self, X: Array) -> None:
        seen = X[~np.isnan(X)]
        if X.shape[1] != 1 or (seen < 0).any() or (seen != np.floor(seen)).any() or (seen > 2**31).any():
            raise DataError("CategoricalHMM: X must be one column of symbols 0, 1, …; encode others as such numbers.")
        size = self.emissionprob_.shape[1] if hasattr(self, "emissionprob_") else self.n_features
        if size is not None and seen.size and seen.max() >= size:
            raise DataError(
                f"CategoricalHMM: there are {size} symbols, 0 … {size - 1}; got {int(seen.max())}; raise n_features."
            )

    def _encode(self, X: Array) -> tuple[Array, Array]:
        gone = np.isnan(X[:, 0])
        codes = np.where(gone, 0, X[:, 0]).astype(np.int64)
        size = self.emissionprob_.shape[1] if hasattr(self, "emissionprob_") else self._count_symbols(X)
        codes[gone] = size
        return np.append(np.arange(size, dtype=float), np.nan)[:, None], codes

    def _count_symbols(self, X: Array) -> int:
        if self.n_features is not None:
            return int(self.n_features)
        return int(np.nanmax(X)) + 1 if not np.isnan(X).all() else 1

    def _log_frames(self, lines: Array, emission: tuple[Array, ...]) -> Array:
        gone = np.isnan(lines[:, 0])
        with np.errstate(divide="ignore"):
            found = np.log(emission[0].T[np.where(gone, 0, lines[:, 0]).astype(np.int64)])
        found[gone] = 0.0
        return found

    def _statistics(self, lines: Array, weight: Array, emission: tuple[Array, ...]) -> tuple[Array, ...]:
        return (weight[:-1, : self.n_components].T,)

    def _update(self, statistics: tuple[Array, ...], emission: tuple[Array, ...]) -> tuple[Array, ...]:
        return (estimate_rows(statistics[0], self._prior(emission[0].shape), emission[0]),)

    def _log_prior(self, emission: tuple[Array, ...]) -> float:
        return log_dirichlet(emission[0], self._prior(emission[0].shape))

    def _prior(self, shape: tuple[int, ...]) -> Array:
        return np.broadcast_to(np.asarray(self.emissionprob_prior, dtype=float), shape)

    def _draw_start(self, X: Array, rng: Any) -> dict[str, Array]:
        eta = 0.1 + rng.random_sample((self.n_components, self._count_symbols(X)))
        return {"emissionprob_": eta / eta.sum(axis=1, keepdims=True)}

    def _emission_of(self, attributes: Mapping[str, Any]) -> tuple[Array, ...]:
        eta = check_probabilities("CategoricalHMM", "emissionprob_", attributes["emissionprob_"], 2)
        if len(eta) != self.n_components or self.n_features not in (None, eta.shape[1]):
            raise ParameterError(
                f"CategoricalHMM: emissionprob_ must have {self.n_components} rows and {self.n_features or 'any'} "
                f"columns; got shape {eta.shape}."
            )
        return (eta,)

    def _n_emission_parameters(self) -> int:
        return int(self.n_components * (self.emissionprob_.shape[1] - 1))

    def _draw_observations(self, states: Array, rng: Any) -> Array:
        total = np.cumsum(self.emissionprob_, axis=1)
        total[:, -1] = np.inf
        return (rng.random_sample(len(states))[:, None] >= total[states]).sum(axis=1)[:, None]

    def _expected(self, proba: Array) -> Array:
        check_is_fitted(self, "emissionprob_")
        return proba @ self.emissionprob_


# Hidden Markov models of counts: x_tj | z_t = k ~ Poisson(λ_kj), columns independent given the state.

_PRIOR = Number(low=0.0) | ArrayLike(Number(low=0.0))


class PoissonHMM(HiddenMarkovModel):
    """A hidden Markov model of counts.

    Objective: Σ log p(x) plus log-priors, climbed by expectation–maximisation to a local maximum. The prior of a rate
    is λ^a e^{−bλ} with a = `lambdas_prior` and b = `lambdas_weight` (a Gamma density of shape a + 1), so that
    λ = (a + Σ γ x) / (b + Σ γ). hmmlearn has the same names and defaults, but weighs the prior against all rows instead
    of those of the state, which is no maximum of a posterior. Memory O(nK).

    Examples
    --------
    >>> import numpy as np
    >>> from learnable import PoissonHMM
    >>> X = np.array([1, 0, 2, 1, 9, 12, 8, 11, 1, 0, 1, 2, 10, 9])[:, None]
    >>> model = PoissonHMM(n_components=2, n_iter=100, n_init=4, random_state=0).fit(X)
    >>> np.sort(model.lambdas_[:, 0]).round(1)
    array([1. , 9.8])
    """

    _theory = "hidden-markov"

    lambdas_prior: Any = param(_PRIOR, "a above.", default=0.0, kw_only=False)
    lambdas_weight: Any = param(_PRIOR, "b above.", default=0.0, kw_only=False)
    params: str = param(LETTERS, "Which parameters are estimated: s (π), t (A), l (λ).", default="stl")
    init_params: str = param(LETTERS, "Which parameters start anew: s (π), t (A), l (λ).", default="stl")

    lambdas_: Array = fitted("(n_components, n_features)", "The rates.", low=0.0)

    _letters: ClassVar[dict[str, str]] = {"l": "lambdas_"}

    def _check_rows(self, X: Array) -> None:
        seen = X[~np.isnan(X)]
        if (seen < 0).any() or (seen != np.floor(seen)).any() or (seen > 2.0**53).any():
            raise DataError("PoissonHMM: X must be counts 0, 1, 2, …; a rate or a measured number is none.")

    def _encode(self, X: Array) -> tuple[Array, Array]:
        if X.shape[1] > 1:
            return super()._encode(X)
        lines, codes = np.unique(X[:, 0], return_inverse=True)  # equal counts have one likelihood
        return lines[:, None], codes.astype(np.int64)

    def _log_frames(self, lines: Array, emission: tuple[Array, ...]) -> Array:
        rates = emission[0]
        there = ~np.isnan(lines)
        x = np.where(there, lines, 0.0)
        logs = np.log(np.where(rates > 0, rates, 1.0))
        found = x @ logs.T - there @ rates.T - gammaln(x + 1).sum(axis=1)[:, None]
        for k in np.flatnonzero((rates == 0).any(axis=1)):
            found[(x[:, rates[k] == 0] > 0).any(axis=1), k] = -np.inf
        return found

    def _statistics(self, lines: Array, weight: Array, emission: tuple[Array, ...]) -> tuple[Array, ...]:
        there, weight = ~np.isnan(lines), weight[:, : self.n_components]
        return weight.T @ there, weight.T @ np.where(there, lines, 0.0)

    def _update(self, statistics: tuple[Array, ...], emission: tuple[Array, ...]) -> tuple[Array, ...]:
        a, b = self._prior(emission[0].shape)
        rows, total = statistics
        return (np.where(b + rows > 0, (a + total) / np.where(b + rows > 0, b + rows, 1.0), emission[0]),)

    def _log_prior(self, emission: tuple[Array, ...]) -> float:
        a, b = self._prior(emission[0].shape)
        rates = emission[0]
        return float((a * np.log(np.where(a > 0, rates, 1.0)) - b * rates).sum())

    def _prior(self, shape: tuple[int, ...]) -> tuple[Array, Array]:
        a, b = (np.asarray(p, dtype=float) for p in (self.lambdas_prior, self.lambdas_weight))
        return tuple(np.broadcast_to(p[:, None] if p.ndim == 1 else p, shape) for p in (a, b))  # type: ignore[return-value]

    def _draw_start(self, X: Array, rng: Any) -> dict[str, Array]:
        shape = (self.n_components, X.shape[1])
        with np.errstate(invalid="ignore"):
            n = np.maximum((~np.isnan(X)).sum(axis=0), 1)
            mean = np.nansum(X, axis=0) / n
            spread = np.nansum((X - mean) ** 2, axis=0) / n
        scale = np.where(mean > 0, spread / np.where(mean > 0, mean, 1.0), 0.0)
        if self.n_components == 1 or not (scale > 0).any():
            return {"lambdas_": np.broadcast_to(np.maximum(mean, 0.1), shape).copy()}
        shape_of = np.where(scale > 0, mean / np.where(scale > 0, scale, 1.0), 1.0)
        drawn = rng.gamma(shape_of, np.where(scale > 0, scale, mean), shape)
        return {"lambdas_": np.maximum(drawn, 1e-3 * np.maximum(mean, 1.0))}

    def _emission_of(self, attributes: Mapping[str, Any]) -> tuple[Array, ...]:
        rates = np.atleast_2d(np.asarray(attributes["lambdas_"], dtype=float))
        d: Any = getattr(self, "n_features_in_", rates.shape[1])
        return (check_numbers("PoissonHMM", "lambdas_", rates, (self.n_components, int(d)), positive=True),)

    def _n_emission_parameters(self) -> int:
        return int(self.lambdas_.size)

    def _draw_observations(self, states: Array, rng: Any) -> Array:
        return rng.poisson(self.lambdas_[states])

    def _expected(self, proba: Array) -> Array:
        return proba @ self.lambdas_
