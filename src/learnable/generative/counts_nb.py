r"""What naive Bayes models of counts share: class probabilities, and smoothing as a Dirichlet or Beta prior.

With the prior Dir(α, …, α) of the probabilities of some categories, the posterior after the counts n is Dir(n + α), and
the next one is category j with probability (n_j + α)/Σ(n + α): additive smoothing is the mean of this posterior.
"""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..core.errors import ModelFileError, ParameterError
from ..core.parameters import N_JOBS, ArrayLike, Boolean, Number, Rule
from .base import EPS, PRIORS, SummedModel, log_or_minus_inf

Array = NDArray[np.float64]

_LEAST_ALPHA = 1e-10

COUNT_PARAMETERS: dict[str, Rule] = {
    "alpha": Number(low=0.0) | ArrayLike(Number(low=0.0)),
    "force_alpha": Boolean(),
    "fit_prior": Boolean(),
    "class_prior": PRIORS,
    "n_jobs": N_JOBS,
}


class CountsNB(SummedModel):
    """Naive Bayes whose densities are probabilities of counts or categories."""

    _parameters: ClassVar[dict[str, Rule]] = COUNT_PARAMETERS

    alpha: Any
    force_alpha: bool
    fit_prior: bool
    class_prior: Any
    class_count_: Array
    class_log_prior_: Array

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # on scikit-learn's test data, which are no counts
        return tags

    def _alphas(self) -> Array:
        """Return α for each column."""
        owner, d = type(self).__name__, self.n_features_in_
        alpha = np.asarray(self.alpha, dtype=np.float64)
        if alpha.shape not in ((), (d,)):
            raise ParameterError(
                f"{owner}: When alpha is an array, it should contains `n_features`. Got {alpha.size} elements instead "
                f"of {d}."
            )
        if alpha.min() < _LEAST_ALPHA and not self.force_alpha:
            warnings.warn(
                f"alpha too small will result in numeric errors, setting alpha = {_LEAST_ALPHA:.1e}. Use "
                "`force_alpha=True` to keep alpha unchanged.",
                stacklevel=4,
            )
            alpha = np.maximum(alpha, _LEAST_ALPHA)
        return np.broadcast_to(alpha, (d,))

    def _learn_class_prior(self) -> None:
        K = len(self.classes_)
        if self.class_prior is not None:
            given = np.asarray(self.class_prior, dtype=np.float64)
            if given.shape != (K,):
                raise ParameterError(
                    f"{type(self).__name__}: Number of priors must match number of classes: class_prior has shape "
                    f"{given.shape}, there are {K} classes."
                )
            if (given < 0.0).any():
                raise ParameterError(f"{type(self).__name__}: class_prior must be non-negative; got {given.min():g}.")
            self.class_log_prior_ = log_or_minus_inf(given)
        elif self.fit_prior:
            self.class_log_prior_ = log_or_minus_inf(self.class_count_) - np.log(self.class_count_.sum())
        else:
            self.class_log_prior_ = np.full(K, -np.log(K))

    def _check_loaded(self) -> None:
        super()._check_loaded()
        if not hasattr(self, "classes_"):
            return
        K = len(self.classes_)
        self._require_numbers(class_count_=(K,))
        self._require_numbers(infinite=True, class_log_prior_=(K,))
        if (self.class_count_ < 0).any():
            raise ModelFileError("load: class_count_ must not be negative.")


def rounding_of(log_prob: Array) -> float:
    """Return the relative error that rounding may leave in p = exp(log_prob), the quotient of two sums."""
    least = np.min(log_prob, initial=0.0)
    if np.isneginf(least):
        least = np.min(log_prob, initial=0.0, where=~np.isneginf(log_prob))
    return float(EPS * (4.0 - least))
