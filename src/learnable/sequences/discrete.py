r"""Hidden Markov models of symbols, P(x = o | z = k) = η_ko with rows of η that sum to one, and of counts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from scipy.special import gammaln

from ..core import AnyArray, ArrayLike, DataError, Number, ParameterError, fitted, optional, param
from .baum_welch import Theta, check_numbers, check_probabilities, estimate_rows, log_dirichlet
from .hmm import LETTERS, PRIOR, HiddenMarkovModel


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

    emissionprob_: AnyArray = fitted("(n_components, n_symbols)", "η.", low=0.0, high=1.0)

    _letters: ClassVar[dict[str, str]] = {"e": "emissionprob_"}

    def _known_features(self) -> Any:
        """Return how many symbols there are: what was given, or else what a fit saw."""
        if self.__dict__.get("_given_features") is not None or not hasattr(self, "emissionprob_"):
            return self.__dict__.get("_given_features")
        return np.atleast_1d(self.emissionprob_).shape[-1]

    def _check_rows(self, X: AnyArray) -> None:
        seen = X[~np.isnan(X)]
        if X.shape[1] != 1 or (seen < 0).any() or (seen != np.floor(seen)).any() or (seen > 2**31).any():
            raise DataError("CategoricalHMM: X must be one column of symbols 0, 1, …; encode others as such numbers.")
        size = self.emissionprob_.shape[1] if hasattr(self, "emissionprob_") else self.n_features
        if size is not None and seen.size and seen.max() >= size:
            raise DataError(
                f"CategoricalHMM: there are {size} symbols, 0 … {size - 1}; got {int(seen.max())}; raise n_features."
            )

    def _encode(self, X: AnyArray) -> tuple[AnyArray, AnyArray]:
        gone = np.isnan(X[:, 0])
        codes = np.where(gone, 0, X[:, 0]).astype(np.int64)
        size = self.emissionprob_.shape[1] if hasattr(self, "emissionprob_") else self._count_symbols(X)
        codes[gone] = size
        return np.append(np.arange(size, dtype=float), np.nan)[:, None], codes

    def _count_symbols(self, X: AnyArray) -> int:
        if self.n_features is not None:
            return int(self.n_features)
        return int(np.nanmax(X)) + 1 if not np.isnan(X).all() else 1

    def _emission(self) -> SymbolEmission:
        return SymbolEmission(self.emissionprob_prior)

    def _draw_start(self, X: AnyArray, rng: Any) -> dict[str, AnyArray]:
        eta = 0.1 + rng.random_sample((self.n_components, self._count_symbols(X)))
        return {"emissionprob_": eta / eta.sum(axis=1, keepdims=True)}

    def _emission_of(self, attributes: Mapping[str, Any]) -> Theta:
        eta = check_probabilities("CategoricalHMM", "emissionprob_", attributes["emissionprob_"], 2)
        if len(eta) != self.n_components or self.n_features not in (None, eta.shape[1]):
            raise ParameterError(
                f"CategoricalHMM: emissionprob_ must have {self.n_components} rows and {self.n_features or 'any'} "
                f"columns; got shape {eta.shape}."
            )
        return (eta,)


class SymbolEmission:
    """P(x = o | z = k) = η_ko, with a Dirichlet prior of the rows; θ = (η,)."""

    def __init__(self, prior: Any) -> None:
        self.prior = np.asarray(prior, dtype=float)

    def log_frames(self, lines: AnyArray, theta: Theta) -> AnyArray:
        """Return log η of the symbols; zero where one is missing."""
        gone = np.isnan(lines[:, 0])
        with np.errstate(divide="ignore"):
            found = np.log(theta[0].T[np.where(gone, 0, lines[:, 0]).astype(np.int64)])
        found[gone] = 0.0
        return found

    def statistics(self, lines: AnyArray, weight: AnyArray, theta: Theta) -> Theta:
        """Return the expected counts of the symbols; the last line is the missing one."""
        return (weight[:-1, : len(theta[0])].T,)

    def update(self, statistics: Theta, theta: Theta) -> Theta:
        """Return counts plus prior, as rows that sum to one."""
        return (estimate_rows(statistics[0], self._prior(theta), theta[0]),)

    def log_prior(self, theta: Theta) -> float:
        """Return the log-density of η, up to a constant."""
        return log_dirichlet(theta[0], self._prior(theta))

    def _prior(self, theta: Theta) -> AnyArray:
        return np.broadcast_to(self.prior, theta[0].shape)

    def expected(self, theta: Theta, proba: AnyArray) -> AnyArray:
        """Return the probabilities of the symbols."""
        return proba @ theta[0]

    def draw(self, theta: Theta, states: AnyArray, rng: Any) -> AnyArray:
        """Return one symbol for each state."""
        total = np.cumsum(theta[0], axis=1)
        total[:, -1] = np.inf
        return (rng.random_sample(len(states))[:, None] >= total[states]).sum(axis=1)[:, None]

    def n_parameters(self, theta: Theta) -> int:
        """Return K times the symbols but one."""
        return len(theta[0]) * (theta[0].shape[1] - 1)


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

    lambdas_: AnyArray = fitted("(n_components, n_features)", "The rates.", low=0.0)

    _letters: ClassVar[dict[str, str]] = {"l": "lambdas_"}

    def _check_rows(self, X: AnyArray) -> None:
        seen = X[~np.isnan(X)]
        if (seen < 0).any() or (seen != np.floor(seen)).any() or (seen > 2.0**53).any():
            raise DataError("PoissonHMM: X must be counts 0, 1, 2, …; a rate or a measured number is none.")

    def _encode(self, X: AnyArray) -> tuple[AnyArray, AnyArray]:
        if X.shape[1] > 1:
            return super()._encode(X)
        lines, codes = np.unique(X[:, 0], return_inverse=True)  # equal counts have one likelihood
        return lines[:, None], codes.astype(np.int64)

    def _emission(self) -> CountEmission:
        return CountEmission(self.lambdas_prior, self.lambdas_weight)

    def _draw_start(self, X: AnyArray, rng: Any) -> dict[str, AnyArray]:
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

    def _emission_of(self, attributes: Mapping[str, Any]) -> Theta:
        rates = np.atleast_2d(np.asarray(attributes["lambdas_"], dtype=float))
        d: Any = getattr(self, "n_features_in_", rates.shape[1])
        return (check_numbers("PoissonHMM", "lambdas_", rates, (self.n_components, int(d)), positive=True),)


class CountEmission:
    """Poisson counts with rates λ_kj and prior λ^a e^{−bλ}; θ = (λ,)."""

    def __init__(self, a: Any, b: Any) -> None:
        self.priors = [np.asarray(p, dtype=float) for p in (a, b)]

    def log_frames(self, lines: AnyArray, theta: Theta) -> AnyArray:
        """Return the sum over the columns of x log λ − λ − log x!."""
        rates = theta[0]
        there = ~np.isnan(lines)
        x = np.where(there, lines, 0.0)
        logs = np.log(np.where(rates > 0, rates, 1.0))
        found = x @ logs.T - there @ rates.T - gammaln(x + 1).sum(axis=1)[:, None]
        for k in np.flatnonzero((rates == 0).any(axis=1)):
            found[(x[:, rates[k] == 0] > 0).any(axis=1), k] = -np.inf
        return found

    def statistics(self, lines: AnyArray, weight: AnyArray, theta: Theta) -> Theta:
        """Return Σγ and Σγx, over the counts that are there."""
        there = ~np.isnan(lines)
        weight = weight[:, : len(theta[0])]
        return weight.T @ there, weight.T @ np.where(there, lines, 0.0)

    def update(self, statistics: Theta, theta: Theta) -> Theta:
        """Return λ = (a + Σγx) / (b + Σγ)."""
        a, b = self._prior(theta)
        rows, total = statistics
        return (np.where(b + rows > 0, (a + total) / np.where(b + rows > 0, b + rows, 1.0), theta[0]),)

    def log_prior(self, theta: Theta) -> float:
        """Return Σ a log λ − bλ."""
        a, b = self._prior(theta)
        return float((a * np.log(np.where(a > 0, theta[0], 1.0)) - b * theta[0]).sum())

    def _prior(self, theta: Theta) -> tuple[AnyArray, ...]:
        return tuple(np.broadcast_to(p[:, None] if p.ndim == 1 else p, theta[0].shape) for p in self.priors)

    def expected(self, theta: Theta, proba: AnyArray) -> AnyArray:
        """Return the mean rates."""
        return proba @ theta[0]

    def draw(self, theta: Theta, states: AnyArray, rng: Any) -> AnyArray:
        """Return counts for each state."""
        return np.asarray(rng.poisson(theta[0][states]))

    def n_parameters(self, theta: Theta) -> int:
        """Return the number of rates."""
        return int(theta[0].size)
