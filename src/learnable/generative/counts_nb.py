r"""What naive Bayes models of counts share: class probabilities, and smoothing as a Dirichlet or Beta prior.

With the prior Dir(α, …, α) of the probabilities of some categories, the posterior after the counts n is Dir(n + α), and
the next one is category j with probability (n_j + α)/Σ(n + α): additive smoothing is the mean of this posterior.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.certificate import Certificate
from ..core.declare import fitted, param
from ..core.errors import ParameterError
from ..core.parameters import ArrayLike, Boolean, Number
from .base import EPS, PRIORS, SummedModel, log_or_minus_inf

Array = NDArray[np.float64]

_LEAST_ALPHA = 1e-10


class CountsNB(SummedModel):
    """Naive Bayes whose densities are probabilities of counts or categories."""

    alpha: Any = param(
        Number(low=0.0) | ArrayLike(Number(low=0.0)),
        "Concentration of the Dirichlet (Beta) prior of the probabilities: how often each outcome was seen in advance, "
        "in all columns or in each. 0 is no smoothing.",
        default=1.0,
    )
    force_alpha: bool = param(
        Boolean(), "Whether an alpha below 1e-10 is taken as it is, rather than raised to 1e-10.", default=True
    )
    fit_prior: bool = param(
        Boolean(), "Whether class probabilities are the shares of the classes rather than equal.", default=True
    )
    class_prior: Any = param(PRIORS, "Class probabilities, if they are known.", default=None)
    class_count_: Array = fitted("(n_classes,)", "Weight of the rows of each class.", low=0.0)
    class_log_prior_: Array = fitted("(n_classes,)", "Logarithms of the class probabilities.", infinite=True)
    certificate_: Certificate = fitted("Certificate", "Relative error that rounding may leave in p.")

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


def rounding_of(log_prob: Array) -> float:
    """Return the relative error that rounding may leave in p = exp(log_prob), the quotient of two sums."""
    least = np.min(log_prob, initial=0.0)
    if np.isneginf(least):
        least = np.min(log_prob, initial=0.0, where=~np.isneginf(log_prob))
    return float(EPS * (4.0 - least))
