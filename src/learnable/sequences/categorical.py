r"""Hidden Markov models whose observations are symbols: P(x = o | z = k) = η_ko, rows of η sum to one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from ..core.declare import fitted, param
from ..core.errors import DataError, ParameterError
from ..core.parameters import Number, optional
from .hmm import LETTERS, PRIOR, HiddenMarkovModel
from .transitions import check_probabilities, estimate_rows, log_dirichlet

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
