"""When there is nothing to infer, and in which words: penalised fits, other rows, likelihoods without a maximum."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.errors import DataError, ParameterError
from ...data.blocks import map_reduce
from .families import BINOMIAL, NORMAL

Array = NDArray[np.float64]

#: How far, in squared standard errors, a fit may be from the maximum of its likelihood, and what each row adds: a fit
#: to a relative gap of 1e-8 may miss it by so much.
_FAR_FROM_MAXIMUM = 0.01
_FAR_PER_ROW = 1e-7
#: Variance of a row's score from which on the score is not determined: its standard error is a hundred.
_UNDETERMINED = 1e4

PENALISED = (
    "infer: standard errors are those of an unpenalised likelihood fit, and this {name} has {what}: its coefficients "
    "are pulled towards zero, and intervals around them would not have their level. {remedy}"
)


class PenalisedError(ParameterError):
    """Standard errors were asked of a fit that is no maximum of a likelihood."""


def refuse_penalised(model: Any) -> None:
    """Raise ParameterError for a model that has no likelihood inference, saying why and what does."""
    name = type(model).__name__
    known = ("LinearRegression", "LogisticRegression", "PoissonRegressor", "GammaRegressor", "TweedieRegressor", "GLM")
    if name in ("Lasso", "ElasticNet", "LassoCV", "ElasticNetCV", "LassoLars"):
        remedy = "Use lasso_inference, which allows for the selection, or split_inference."
        raise PenalisedError(PENALISED.format(name=name, what="an L1 penalty", remedy=remedy))
    if name in ("Ridge", "RidgeCV"):
        remedy = "Use LinearRegression, or BayesianLinearRegression for intervals with a prior."
        raise PenalisedError(PENALISED.format(name=name, what="an L2 penalty", remedy=remedy))
    if name not in known:
        raise ParameterError(
            f"infer: {name} is not a likelihood model with coefficients; infer knows {', '.join(known)}. For intervals "
            "of predictions of any model see with_intervals."
        )
    if name == "LogisticRegression" and model.penalty is not None:
        l1 = model.penalty == "l1"
        if l1 or not np.isinf(model.C):
            remedy = (
                "Fit with C=np.inf; where the classes can be separated, GLM(family='binomial', bias_reduction=True)."
            )
            raise PenalisedError(PENALISED.format(name=name, what=f"C={model.C:g}", remedy=remedy))
    if getattr(model, "alpha", 0.0) > 0:
        raise PenalisedError(PENALISED.format(name=name, what=f"alpha={model.alpha:g}", remedy="Fit with alpha=0."))
    if getattr(model, "positive", False):
        raise PenalisedError(PENALISED.format(name=name, what="positive=True", remedy="Fit with positive=False."))


def complete_clusters(clusters: NDArray[Any]) -> NDArray[Any]:
    """Return the clusters; raise DataError where one is missing."""
    missing = np.array([name is None or name != name for name in clusters] if clusters.dtype.kind in "Of" else [])
    if missing.any():
        raise DataError(
            f"infer: clusters must name the cluster of every row; row {int(missing.argmax())} has none. Drop such rows "
            "from X, y and clusters, or give each a cluster of its own."
        )
    return clusters


def check_is_maximum(terms: Any, inverse: Array, dispersion: float) -> None:
    """Raise DataError where the coefficients are not at the maximum of these rows' likelihood."""
    if getattr(terms.model, "bias_reduction", False):  # that of another likelihood
        return

    def part(block: Any) -> Array:
        return terms.design.back(block, terms.design.cut(terms.scores, block))

    slope: Array = map_reduce(terms.design.blocks, part, np.add, n_jobs=getattr(terms.model, "n_jobs", None))
    distance = float(np.sum((inverse.T @ slope.ravel()) ** 2))
    scale = float(np.sum(terms.weight * terms.y**2)) if terms.family is NORMAL else float(terms.weight.sum())
    # An exact fit has no standard errors to measure in: then a share of the targets does.
    if distance > (_FAR_FROM_MAXIMUM + _FAR_PER_ROW * len(terms.y)) * max(dispersion, 1e-12 * scale):
        raise DataError(
            f"infer: this {type(terms.model).__name__} is {np.sqrt(distance / max(dispersion, 1e-300)):.3g} standard "
            "errors away from the maximum of the likelihood of these rows, so its standard errors would be those of "
            "another fit. Pass the rows and the sample_weight that it was fitted to, or fit again with a smaller tol."
        )


def check_is_finite(terms: Any, leverage: Array) -> None:
    """Raise DataError where some means run to the end of what the family allows: the likelihood has no maximum."""
    family = terms.family
    if family is None or not family.knows_dispersion:
        return
    at_end = (terms.y == 0.0) | ((terms.y == 1.0) if family is BINOMIAL else False)
    lost = at_end & (leverage > _UNDETERMINED * terms.curvature[:, 0, 0])
    if lost.any():
        raise DataError(
            f"infer: the columns tell {int(lost.sum())} rows apart whose targets are all "
            f"{'0 or 1' if family is BINOMIAL else 'zero'} (row {int(lost.argmax())} is one): the likelihood grows for "
            "ever as their means go there, and its coefficients have no standard errors. Drop the columns that single "
            "them out, or get more rows."
        )
