"""What `penalty`, `C` and `l1_ratio` of a logistic regression say together, with scikit-learn's warnings.

scikit-learn 1.8 deprecated `penalty`, `l1_ratio=None` and `n_jobs` (which has an effect here, and stays).
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np

from ..core.errors import ParameterError

PENALTY_DEPRECATED = (
    "'penalty' was deprecated in version 1.8 and will be removed in 1.10. To avoid this warning, leave 'penalty' set "
    "to its default value and use 'l1_ratio' or 'C' instead. Use l1_ratio=0 instead of penalty='l2', l1_ratio=1 "
    "instead of penalty='l1', l1_ratio set to a float between 0 and 1 instead of penalty='elasticnet', and C=np.inf "
    "instead of penalty=None."
)
L1_RATIO_NONE_DEPRECATED = (
    "'l1_ratio=None' was deprecated in version 1.8 and will trigger an error in 1.10. Use 0<=l1_ratio<=1 instead."
)


class StatedPenalty(NamedTuple):
    """The penalty of a fit."""

    C: float  #: inverse strength; infinite without a penalty
    l1_ratio: float  #: share of the L1 part


def stated_penalty(model: Any) -> StatedPenalty:
    """Return the penalty that the parameters state, and warn about those that scikit-learn deprecated."""
    ratio = model.l1_ratio
    match model.penalty:
        case "deprecated":
            if ratio is None:
                warnings.warn(L1_RATIO_NONE_DEPRECATED, FutureWarning, stacklevel=4)
            found = StatedPenalty(float(model.C), float(ratio or 0.0))
        case None:
            found = StatedPenalty(np.inf, 0.0)
        case "elasticnet":
            if ratio is None:
                raise ParameterError(
                    "LogisticRegression: l1_ratio must be specified when penalty is elasticnet. Set it between 0 and 1."
                )
            found = StatedPenalty(float(model.C), float(ratio))
        case kind:
            found = StatedPenalty(float(model.C), 1.0 if kind == "l1" else 0.0)
    if model.penalty != "deprecated":
        _warn_of_penalty(model, ratio)
    if model.solver == "liblinear" and np.isinf(found.C):
        raise ParameterError(
            "LogisticRegression: C=np.inf as well as penalty=None is not supported for the liblinear solver; use "
            "another solver."
        )
    return found


def _warn_of_penalty(model: Any, ratio: float | None) -> None:
    warnings.warn(PENALTY_DEPRECATED, FutureWarning, stacklevel=5)
    if model.penalty != "elasticnet" and ratio is not None and 0 < ratio < 1:
        warnings.warn(
            f"l1_ratio parameter is only used when penalty is 'elasticnet'. Got (penalty={model.penalty})", stacklevel=5
        )
    if (model.penalty == "l2" and ratio not in (0, None)) or (model.penalty == "l1" and ratio not in (1, None)):
        warnings.warn(
            f"Inconsistent values: penalty={model.penalty} with l1_ratio={ratio}. penalty is deprecated. Please use "
            "l1_ratio only.",
            stacklevel=5,
        )
    if model.penalty is None and model.C != 1.0:
        warnings.warn("Setting penalty=None will ignore the C and l1_ratio parameters", stacklevel=5)


FAILED_TO_CONVERGE = {
    "lbfgs": "lbfgs failed to converge",
    "newton-cg": "newton-cg failed to converge. Increase the number of iterations",
    "newton-cholesky": "Newton solver did not converge after {n_iter} iterations",
    "liblinear": "Liblinear failed to converge, increase the number of iterations",
    "sag": "The max_iter was reached which means the coef_ did not converge",
    "saga": "The max_iter was reached which means the coef_ did not converge",
}
