"""The registry's entries of linear models that choose: a penalty by cross-validation or a criterion, or columns."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from .entries import Entry, Traits

_GAP = "relative duality gap to the optimum"
_REGRESSION = Traits("linear", ("regression",), False, True, _GAP)
_CLASSES = Traits("linear", ("binary", "multiclass"), False, True, _GAP)
_SEVERAL = replace(_REGRESSION, targets="several")
_EQUATIONS = "relative residual of the normal equations"
_STEPS = replace(_REGRESSION, certifies="that every step is the best of its candidates")
_CHOICE = "learnable.linear.verify_choice"

LINEAR_CHOICES: Final[dict[str, Entry]] = {
    "LogisticRegressionCV": Entry(
        "learnable.linear.logistic.regression_cv:LogisticRegressionCV", f"{_CHOICE}:logistic_cv", traits=_CLASSES
    ),
    "RidgeClassifier": Entry(
        "learnable.linear.least_squares.ridge_classifier:RidgeClassifier",
        f"{_CHOICE}:ridge_classifier",
        traits=replace(_CLASSES, certifies=_EQUATIONS),
        only_scores=True,
    ),
    "RidgeClassifierCV": Entry(
        "learnable.linear.least_squares.ridge_classifier:RidgeClassifierCV",
        f"{_CHOICE}:ridge_classifier",
        traits=replace(_CLASSES, certifies=_EQUATIONS),
        only_scores=True,
    ),
    "MultiTaskLassoCV": Entry(
        "learnable.linear.sparse.lasso_cv:MultiTaskLassoCV",
        "learnable.linear.verify_sparse:multi_task",
        traits=_SEVERAL,
    ),
    "MultiTaskElasticNetCV": Entry(
        "learnable.linear.sparse.lasso_cv:MultiTaskElasticNetCV",
        "learnable.linear.verify_sparse:multi_task",
        traits=_SEVERAL,
    ),
    "NonconvexRegression": Entry(
        "learnable.linear.sparse.nonconvex:NonconvexRegression",
        "learnable.linear.verify_nonconvex:nonconvex",
        traits=replace(_REGRESSION, certifies="violation of the optimality conditions"),
    ),
    "BestSubsetClassifier": Entry(
        "learnable.linear.subset.best_subset_classifier:BestSubsetClassifier",
        "learnable.linear.verify_relaxation:classifier",
        traits=replace(_CLASSES, tasks=("binary",), certifies="relative gap to the best subset, by relaxations"),
    ),
    "StepwiseGLM": Entry(
        "learnable.linear.subset.stepwise_glm:StepwiseGLM",
        "learnable.linear.verify_stepwise:stepwise_glm",
        traits=replace(_STEPS, targets="counts"),
    ),
    "Lars": Entry("learnable.linear.subset.lars_cv:Lars", f"{_CHOICE}:lars", traits=_STEPS),
    "LarsCV": Entry("learnable.linear.subset.lars_cv:LarsCV", f"{_CHOICE}:lars_cv", traits=_STEPS),
    "LassoLarsCV": Entry("learnable.linear.subset.lars_cv:LassoLarsCV", f"{_CHOICE}:lars_cv", traits=_REGRESSION),
    "LassoLarsIC": Entry("learnable.linear.subset.lars_cv:LassoLarsIC", f"{_CHOICE}:lars_ic", traits=_REGRESSION),
    "OrthogonalMatchingPursuit": Entry(
        "learnable.linear.subset.pursuit:OrthogonalMatchingPursuit", f"{_CHOICE}:pursuit", traits=_STEPS
    ),
    "OrthogonalMatchingPursuitCV": Entry(
        "learnable.linear.subset.pursuit:OrthogonalMatchingPursuitCV", f"{_CHOICE}:pursuit", traits=_STEPS
    ),
}

#: Selectors of columns for any estimator.
SELECTORS: Final[dict[str, Entry]] = {
    "RFE": Entry("learnable.meta.elimination:RFE", "learnable.meta.verify_selection:elimination"),
    "RFECV": Entry("learnable.meta.elimination:RFECV", "learnable.meta.verify_selection:elimination"),
    "SequentialFeatureSelector": Entry(
        "learnable.meta.sequential:SequentialFeatureSelector", "learnable.meta.verify_selection:sequential"
    ),
}

_PATH = "active_, alphas_, certificate_, coef_, coef_path_, intercept_, n_features_in_, n_iter_"
_SPARSE = "alpha_, alphas_, certificate_, coef_, dual_gap_, intercept_, l1_ratio_, mse_path_, n_features_in_"
_LABELS = "certificate_, classes_, coef_, intercept_, n_features_in_, n_iter_"

#: What every fit of them sets; see `fitted_members`.
LINEAR_MEMBERS: Final[dict[str, str]] = {
    "RFE": "certificate_, estimator_, n_features_, n_features_in_, ranking_, support_",
    "RFECV": "certificate_, cv_results_, estimator_, n_features_, n_features_in_, ranking_, support_",
    "SequentialFeatureSelector": ("certificate_, n_features_in_, n_features_to_select_, order_, scores_, support_"),
    "LogisticRegressionCV": f"C_, Cs_, coefs_paths_, l1_ratio_, l1_ratios_, row_order_, scores_, {_LABELS}",
    "RidgeClassifier": f"solver_, {_LABELS}",
    "RidgeClassifierCV": f"alpha_, best_score_, criterion_path_, row_order_, {_LABELS}",
    "MultiTaskLassoCV": _SPARSE,
    "MultiTaskElasticNetCV": _SPARSE,
    "NonconvexRegression": (
        "alphas_, certificate_, coef_, coef_path_, intercept_, n_features_in_, n_iter_, objective_"
    ),
    "BestSubsetClassifier": (
        "certificate_, classes_, coef_, intercept_, leaves_, n_features_in_, objective_path_, proof_, sizes_, "
        "subsets_, support_"
    ),
    "StepwiseGLM": (
        "certificate_, coef_, deviance_path_, intercept_, n_features_in_, order_, row_order_, statistics_, support_"
    ),
    "Lars": _PATH,
    "LarsCV": f"alpha_, cv_alphas_, mse_path_, row_order_, {_PATH}",
    "LassoLarsCV": f"alpha_, cv_alphas_, mse_path_, row_order_, {_PATH}",
    "LassoLarsIC": f"alpha_, criterion_, noise_variance_, {_PATH}",
    "OrthogonalMatchingPursuit": "certificate_, coef_, intercept_, n_features_in_, n_iter_, n_nonzero_coefs_, order_",
    "OrthogonalMatchingPursuitCV": (
        "certificate_, coef_, intercept_, mse_path_, n_features_in_, n_iter_, n_nonzero_coefs_, order_, row_order_"
    ),
}
