r"""Hidden Markov models whose observations are symbols: P(x = o | z = k) = η_ko, rows of η sum to one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from ..core.errors import DataError, ParameterError
from ..core.parameters import Number, Rule, optional
from .hmm import COMMON_PARAMETERS, PRIOR, HiddenMarkovModel
from .transitions import check_probabilities, estimate_rows, log_dirichlet

Array = NDArray[Any]


class CategoricalHMM(HiddenMarkovModel):
    """A hidden Markov model of symbols 0, 1, ….

    Objective: Σ log p(x) plus the log-densities of Dirichlet priors, climbed by expectation–maximisation to a local
    maximum. Parameters, defaults and attributes are hmmlearn's; priors must be ≥ 1, since below one the objective has
    no maximum; the start is drawn differently. Memory O(nK).

    Parameters
    ----------
    n_components : int, default=1
        Number of states, K.
    startprob_prior, transmat_prior : float or array, default=1.0
        Dirichlet parameters of π and of the rows of A.
    emissionprob_prior : float or array, default=1.0
        Dirichlet parameters of the rows of η.
    n_features : int or None, default=None
        Number of symbols; None: the largest that was seen, plus one.
    structure : {"left-right", "banded"}, array of shape (K, K) or None, default=None
        Which transitions a drawn start may have; what is zero stays zero. "left-right" begins in state 0.
    algorithm : {"viterbi", "map"}, default="viterbi"
        How `predict` finds states: the most likely path, or the most likely state of each row.
    random_state : int, RandomState or None, default=None
        Draws the starts.
    n_iter : int, default=10
        Most steps of a climb.
    tol : float, default=1e-2
        A climb ends when a step adds no more to the objective.
    n_init : int, default=1
        Starts; the best climb is kept.
    verbose : bool, default=False
        Accepted for compatibility; callbacks show progress.
    params, init_params : str, default="ste"
        Which parameters are estimated, and which start anew: s (π), t (A), e (η). Others are taken from the attributes.
    implementation : {"log", "scaling"}, default="log"
        Accepted for compatibility; sums are scaled, and logarithms taken where that is not exact.
    max_seconds : float or None, default=None
        Time limit.
    n_jobs : int or None, default=None
        Threads; the result does not depend on it.

    Attributes
    ----------
    startprob_ : array of shape (K,)
        π.
    transmat_ : array of shape (K, K)
        A.
    emissionprob_ : array of shape (K, n_symbols)
        η.
    bound_history_ : array of shape (n_iter_ + 1,)
        The objective after each step.
    n_iter_ : int
        Steps.
    converged_ : bool
        Whether the last step added no more than `tol`.
    certificate_ : Certificate
        What one more step would add, relative to the objective.

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

    _parameters: ClassVar[Mapping[str, Rule]] = COMMON_PARAMETERS | {
        "emissionprob_prior": PRIOR,
        "n_features": optional(Number(low=1, integer=True)),
    }
    _letters: ClassVar[dict[str, str]] = {"e": "emissionprob_"}

    emissionprob_: Array

    @property
    def n_features(self) -> Any:
        """How many symbols there are: what was given, or else what a fit saw."""
        if self.__dict__.get("_given_features") is not None or not hasattr(self, "emissionprob_"):
            return self.__dict__.get("_given_features")
        return np.shape(self.emissionprob_)[-1]

    @n_features.setter
    def n_features(self, value: Any) -> None:
        self._given_features = value

    def __init__(
        self,
        n_components=1,
        startprob_prior=1.0,
        transmat_prior=1.0,
        *,
        emissionprob_prior=1.0,
        n_features=None,
        structure=None,
        algorithm="viterbi",
        random_state=None,
        n_iter=10,
        tol=1e-2,
        n_init=1,
        verbose=False,
        params="ste",
        init_params="ste",
        implementation="log",
        max_seconds=None,
        n_jobs=None,
    ):
        self.n_components = n_components
        self.startprob_prior = startprob_prior
        self.transmat_prior = transmat_prior
        self.emissionprob_prior = emissionprob_prior
        self.n_features = n_features
        self.structure = structure
        self.algorithm = algorithm
        self.random_state = random_state
        self.n_iter = n_iter
        self.tol = tol
        self.n_init = n_init
        self.verbose = verbose
        self.params = params
        self.init_params = init_params
        self.implementation = implementation
        self.max_seconds = max_seconds
        self.n_jobs = n_jobs

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
