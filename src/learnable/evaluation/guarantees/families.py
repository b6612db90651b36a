"""Which training-set bounds are tried for which model: fixed before any row is seen, so that δ is split over them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import linear, others, votes
from .draft import Draft
from .evidence import Evidence

Candidate = Callable[[Evidence, float], "Draft | str"]

_LINEAR: tuple[Candidate, ...] = (
    others.description,
    linear.growth_relative,
    linear.growth_uniform,
    linear.growth_on_sample,
    linear.rademacher_margin,
    linear.covering_margin,
    linear.dudley_margin,
    linear.pac_bayes_margin,
)
_KERNEL: tuple[Candidate, ...] = (linear.rademacher_margin, linear.pac_bayes_margin)
_SVM: tuple[Candidate, ...] = (*_KERNEL, linear.compression_svm)
_TREE: tuple[Candidate, ...] = (votes.tree_description, votes.tree_growth, votes.tree_growth_on_rows)
_VOTES: tuple[Candidate, ...] = (votes.vote_first_order, votes.vote_tandem, votes.vote_c_bound)
_BOOSTED: tuple[Candidate, ...] = (votes.boosted_growth, votes.boosted_dimension, votes.boosted_margin)
_QUADRATIC: tuple[Candidate, ...] = (others.description, linear.growth_relative, linear.growth_uniform)
_FUNCTION: tuple[Candidate, ...] = (others.description, linear.norm_regression)
_FILE: tuple[Candidate, ...] = (others.description,)

CANDIDATES: dict[str, tuple[Candidate, ...]] = {
    "LogisticRegression": _LINEAR,
    "LogisticRegressionCV": _LINEAR,
    "BestSubsetClassifier": _LINEAR,
    "RidgeClassifier": _LINEAR,
    "RidgeClassifierCV": _LINEAR,
    "LinearSVC": _LINEAR,
    "LinearDiscriminantAnalysis": _LINEAR,
    "Perceptron": (*_LINEAR, linear.compression_perceptron, others.online_pass),
    "GaussianNB": _QUADRATIC,
    "QuadraticDiscriminantAnalysis": _QUADRATIC,
    "SVC": _SVM,
    "NuSVC": _KERNEL,
    "KernelLogisticRegression": _KERNEL,
    "KernelRidgeClassifier": _KERNEL,
    "DecisionTreeClassifier": _TREE,
    "RandomForestClassifier": _VOTES,
    "ExtraTreesClassifier": _VOTES,
    "BaggingClassifier": _VOTES,
    "AdaBoostClassifier": _BOOSTED,
    "KNeighborsClassifier": (others.neighbours,),
    "MLPClassifier": (linear.network_margin, others.description),
    "LinearRegression": _FUNCTION,
    "Ridge": (*_FUNCTION, linear.stability_ridge),
    "RidgeCV": (*_FUNCTION, linear.stability_ridge),
    "Lasso": _FUNCTION,
    "LassoCV": _FUNCTION,
    "BestSubset": _FUNCTION,
    "ForwardStepwise": _FUNCTION,
    "BackwardStepwise": _FUNCTION,
    "ForwardStagewise": _FUNCTION,
    "LassoLars": _FUNCTION,
    **dict.fromkeys(("NonconvexRegression", "Lars", "LarsCV", "LassoLarsCV", "LassoLarsIC"), _FUNCTION),
    **dict.fromkeys(("OrthogonalMatchingPursuit", "OrthogonalMatchingPursuitCV"), _FUNCTION),
    "ElasticNet": _FUNCTION,
    "ElasticNetCV": _FUNCTION,
    "LinearSVR": _FUNCTION,
    "BayesianLinearRegression": _FUNCTION,
    "KernelRidge": (linear.stability_ridge,),
    "KernelRidgeCV": (linear.stability_ridge,),
}

#: Models whose file holds the rows, or one number per row and tree: no code of it is shorter than the labels.
LONG_FILES = {
    "RandomForestRegressor",
    "ExtraTreesRegressor",
    "BaggingRegressor",
    "KNeighborsRegressor",
    "GaussianProcessRegressor",
    "GaussianProcessClassifier",
    "SVR",
    "NuSVR",
}


def candidates_of(model: Any) -> tuple[Candidate, ...] | str:
    """Return the bounds that are tried for a model; or why there are none."""
    name = type(model).__name__
    if name in CANDIDATES:
        return CANDIDATES[name]
    if name in LONG_FILES:
        return f"{name} holds the training rows, or as much: no training-set bound is known that is not vacuous"
    return _FILE
