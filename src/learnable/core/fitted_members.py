"""What every fit of a model sets, so that a file without it is refused: a forged model must not fail at `predict`.

A member may be written `"a_ or b_"` (one of the two is there) and `"a_ unless positive=True"` (not where that parameter
has that value). What only some fits set is left to the class's own check. A test deletes every member of every
registered model in turn, and asks that the file is refused or that nothing public needs the member.
"""

from __future__ import annotations

from typing import Any, Final

from .entries import MANIFOLD_MEMBERS
from .entries_linear import LINEAR_MEMBERS
from .entries_topics import TOPIC_MEMBERS
from .errors import ModelFileError

FITTED: Final[dict[str, str]] = {
    "LinearRegression": (
        "certificate_, coef_, df_resid_, intercept_, n_features_in_, n_rows_, residual_norm_, weight_sum_, x_mean_"
    ),
    "Ridge": "certificate_, coef_, intercept_, n_features_in_",
    "RidgeCV": "alpha_, best_score_, certificate_, coef_, criterion_path_, intercept_, n_features_in_",
    "BayesianLinearRegression": (
        "alpha_, basis_, certificate_, coef_, cross_, effective_parameters_, eigenvalues_, intercept_, lambda_, "
        "log_marginal_likelihood_, n_features_in_, n_rows_, ratio_, weight_sum_, x_mean_, y_mean_, y_square_"
    ),
    "LogisticRegression": "certificate_, classes_, coef_, intercept_, n_features_in_, n_iter_",
    "PoissonRegressor": "certificate_, coef_, intercept_, n_features_in_",
    "GammaRegressor": "certificate_, coef_, intercept_, n_features_in_",
    "TweedieRegressor": "certificate_, coef_, intercept_, n_features_in_",
    "GLM": (
        "certificate_, coef_, deviance_, dispersion_, free_columns_, information_factor_, intercept_, log_likelihood_, "
        "n_features_in_, n_iter_, n_rows_, null_deviance_, null_log_likelihood_, offset_column_, overdispersion_"
    ),
    "LinearSVC": "certificate_, classes_, coef_, intercept_, n_features_in_, n_iter_",
    "LinearSVR": "certificate_, coef_, dual_coef_ unless loss=squared_epsilon_insensitive, intercept_, n_features_in_",
    "SVC": (
        "certificate_, class_weight_, classes_, dual_coef_, gamma_, intercept_, n_features_in_, n_support_, "
        "shape_fit_, support_, support_vectors_"
    ),
    "NuSVC": (
        "certificate_, class_weight_, classes_, dual_coef_, gamma_, intercept_, n_features_in_, n_support_, "
        "shape_fit_, support_, support_vectors_"
    ),
    "SVR": "certificate_, dual_coef_, gamma_, intercept_, n_features_in_, shape_fit_, support_, support_vectors_",
    "NuSVR": (
        "certificate_, dual_coef_, epsilon_, gamma_, intercept_, n_features_in_, shape_fit_, support_, support_vectors_"
    ),
    "OneClassSVM": (
        "certificate_, dual_coef_, gamma_, intercept_, n_features_in_, offset_, shape_fit_, support_, support_vectors_"
    ),
    "Perceptron": (
        "certificate_, classes_, coef_, intercept_, margin_, mistake_bound_, n_features_in_, n_iter_, n_mistakes_, t_"
    ),
    "DecisionTreeClassifier": (
        "ccp_alpha_, certificate_, classes_, max_features_, n_classes_, n_features_in_, n_outputs_, seed_, trees_"
    ),
    "DecisionTreeRegressor": "ccp_alpha_, certificate_, max_features_, n_features_in_, n_outputs_, seed_, trees_",
    "ID3Classifier": "categories_, certificate_, classes_, n_features_in_, tree_, types_",
    "PolynomialFeatures": "n_features_in_, n_output_features_",
    "BasisExpansion": "knots_, n_features_in_, widths_",
    "BestSubset": (
        "certificate_, coef_, intercept_, n_features_in_, objective_path_, proof_, sizes_, subsets_, support_"
    ),
    "ForwardStepwise": "certificate_, coef_, intercept_, n_features_in_, objective_path_, order_, support_",
    "BackwardStepwise": "certificate_, coef_, intercept_, n_features_in_, objective_path_, order_, support_",
    "ForwardStagewise": "certificate_, coef_, intercept_, moves_, n_features_in_, unit_",
    "LassoLars": "active_, alphas_, certificate_, coef_, coef_path_, intercept_, n_features_in_, n_iter_",
    "ElasticNet": "certificate_, coef_, dual_gap_, intercept_, n_features_in_",
    "Lasso": "certificate_, coef_, dual_gap_, intercept_, n_features_in_",
    "LassoCV": "alpha_, alphas_, certificate_, coef_, dual_gap_, intercept_, l1_ratio_, mse_path_, n_features_in_",
    "ElasticNetCV": (
        "alpha_, alphas_, certificate_, coef_, dual_gap_, intercept_, l1_ratio_, mse_path_, n_features_in_"
    ),
    "MultiTaskLasso": "certificate_, coef_, dual_gap_, intercept_, n_features_in_",
    "MultiTaskElasticNet": "certificate_, coef_, dual_gap_, intercept_, n_features_in_",
    "KNeighborsClassifier": (
        "certificate_, classes_, effective_metric_, effective_metric_params_, n_features_in_, n_samples_fit_, "
        "rows_, targets_"
    ),
    "KNeighborsRegressor": (
        "certificate_, effective_metric_, effective_metric_params_, n_features_in_, n_samples_fit_, rows_, targets_"
    ),
    "NearestNeighbors": (
        "certificate_, effective_metric_, effective_metric_params_, n_features_in_, n_samples_fit_, rows_"
    ),
    "GaussianNB": (
        "certificate_, class_count_, class_prior_, classes_, epsilon_, mean_, n_features_in_, observed_, "
        "square_, theta_, var_"
    ),
    "MultinomialNB": (
        "certificate_, class_count_, class_log_prior_, classes_, feature_count_, feature_log_prob_, n_features_in_"
    ),
    "BernoulliNB": (
        "certificate_, class_count_, class_log_prior_, classes_, feature_count_, feature_log_prob_, "
        "n_features_in_, observed_"
    ),
    "CategoricalNB": (
        "category_count_, certificate_, class_count_, class_log_prior_, classes_, feature_log_prob_, "
        "n_categories_, n_features_in_"
    ),
    "LinearDiscriminantAnalysis": (
        "certificate_, classes_, coef_, explained_variance_ratio_ unless solver=lsqr, intercept_, means_, "
        "n_components_, n_features_in_, priors_, scalings_ unless solver=lsqr, xbar_ unless solver=lsqr"
    ),
    "QuadraticDiscriminantAnalysis": (
        "certificate_, classes_, means_, n_features_in_, priors_, rotations_, scalings_, whiten_"
    ),
    "GenerativeClassifier": "certificate_, class_count_, class_prior_, classes_, fitted_, n_features_in_",
    "CategoricalHMM": "bound_history_, certificate_, emissionprob_, n_features_in_, startprob_, transmat_",
    "GaussianHMM": "bound_history_, certificate_, covars_, means_, n_features_in_, startprob_, transmat_",
    "GMMHMM": "bound_history_, certificate_, covars_, means_, n_features_in_, startprob_, transmat_, weights_",
    "PoissonHMM": "bound_history_, certificate_, lambdas_, n_features_in_, startprob_, transmat_",
    "KernelRidge": "X_fit_, certificate_, dual_coef_, n_features_in_",
    "KernelRidgeClassifier": "X_fit_, certificate_, classes_, dual_coef_, n_features_in_",
    "KernelRidgeCV": "X_fit_, alpha_, certificate_, dual_coef_, n_features_in_",
    "KernelLogisticRegression": "X_fit_, certificate_, classes_, dual_coef_, intercept_, n_features_in_",
    "GaussianProcessRegressor": (
        "L_, W_, X_train_ or inducing_points_, alpha_, beta_, certificate_, jitter_, kernel_, "
        "log_marginal_likelihood_value_, mean_, trend_, y_mean_, y_std_, y_train_ or "
        "inducing_points_"
    ),
    "GaussianProcessClassifier": (
        "L_ or estimators_, X_train_, certificate_, classes_, f_ or estimators_, g_ or estimators_, kernels_, "
        "log_marginal_likelihood_value_, n_classes_"
    ),
    "KernelPCA": "X_fit_, certificate_, eigenvalues_, eigenvectors_, gamma_, kernel_means_, n_features_in_",
    **MANIFOLD_MEMBERS,
    **TOPIC_MEMBERS,
    **LINEAR_MEMBERS,
    "Nystroem": "components_, n_features_in_, normalization_",
    "RBFSampler": "n_features_in_, random_offset_, random_weights_",
    "TableEncoder": "columns_, n_features_in_, sparse_",
    "TableModel": "encoder_, model_",
    "RegularizedRisk": (
        "certificate_, coef_ or expansion_, dual_point_, intercept_, least_risk_, multiplier_, n_features_in_, "
        "penalty_, risk_"
    ),
    "OneVsRestClassifier": "classes_, estimators_",
    "OneVsOneClassifier": "classes_, estimators_",
    "BaggingClassifier": (
        "attempts_, classes_, estimators_, estimators_features_, max_samples_, n_features_in_, n_samples_, "
        "sample_weight_, seed_"
    ),
    "BaggingRegressor": (
        "attempts_, estimators_, estimators_features_, max_samples_, n_features_in_, n_samples_, sample_weight_, seed_"
    ),
    "AdaBoostClassifier": (
        "certificate_, classes_, estimator_errors_, estimator_weights_, exponential_loss_, models_, "
        "n_features_in_, n_rows_, rounds_, stumps_, training_bound_, validation_errors_, validation_rows_"
    ),
    "AdaBoostRegressor": "certificate_, estimator_errors_, estimator_weights_, models_, n_features_in_, trees_",
    "BoostByMajority": "certificate_, classes_, error_, n_features_in_, root_, stumps_, vote_errors_, votes_",
    "ForwardStagewiseAdditive": "certificate_, models_, n_features_in_, start_, steps_, stumps_, train_loss_",
    "RandomForestClassifier": (
        "certificate_, classes_, max_samples_, n_classes_, n_features_in_, n_outputs_, n_samples_, "
        "sample_weight_, seed_, trees_"
    ),
    "RandomForestRegressor": (
        "certificate_, leaves_, max_samples_, n_features_in_, n_outputs_, n_samples_, sample_weight_, seed_, trees_"
    ),
    "ExtraTreesClassifier": (
        "certificate_, classes_, max_samples_, n_classes_, n_features_in_, n_outputs_, n_samples_, sample_weight_, "
        "seed_, trees_"
    ),
    "ExtraTreesRegressor": (
        "certificate_, leaves_, max_samples_, n_features_in_, n_outputs_, n_samples_, sample_weight_, seed_, trees_"
    ),
    "GaussianMixture": (
        "bound_history_, certificate_, covariances_, lower_bound_, means_, n_features_in_, precisions_, "
        "precisions_cholesky_, weights_"
    ),
    "MixtureModel": (
        "bound_history_, certificate_, family_, lower_bound_, means_, n_features_in_, parameters_, weights_"
    ),
    "VariationalGaussianMixture": (
        "bound_history_, certificate_, counts_, covariance_prior_, covariances_, degrees_of_freedom_, "
        "degrees_of_freedom_prior_, lower_bound_, mean_precision_, mean_precision_prior_, mean_prior_, means_, "
        "n_features_in_, weight_concentration_prior_, weights_"
    ),
    "MixtureOfExperts": (
        "certificate_, coef_, gate_coef_, gate_intercept_, intercept_, largest_, lower_bound_, "
        "n_features_in_, scale_, shift_, variances_, y_variance_"
    ),
    "KMeans": "certificate_, cluster_centers_, inertia_, labels_, n_features_in_",
    "KMedoids": (
        "certificate_, cluster_centers_ unless metric=precomputed, inertia_, labels_, medoid_indices_, n_features_in_"
    ),
    "MiniBatchKMeans": (
        "certificate_, cluster_centers_, counts_, inertia_, labels_ unless compute_labels=False, n_features_in_"
    ),
    "GradientBoostingClassifier": (
        "baseline_, certificate_, classes_, depth_limits_, init_, is_categorical_, levels_, max_features_, "
        "n_features_in_, n_held_out_, n_trees_per_iteration_, seed_, steps_, train_score_, training_loss_, trees_"
    ),
    "GradientBoostingRegressor": (
        "baseline_, certificate_, depth_limits_, init_, is_categorical_, levels_, max_features_, n_features_in_, "
        "n_held_out_, n_trees_per_iteration_, seed_, steps_, train_score_, training_loss_, trees_"
    ),
    "HistGradientBoostingClassifier": (
        "baseline_, certificate_, classes_, init_, is_categorical_, levels_, n_features_in_, n_held_out_, "
        "n_trees_per_iteration_, seed_, steps_, training_loss_, trees_"
    ),
    "HistGradientBoostingRegressor": (
        "baseline_, certificate_, init_, is_categorical_, levels_, n_features_in_, n_held_out_, "
        "n_trees_per_iteration_, seed_, steps_, training_loss_, trees_"
    ),
    "MLPClassifier": (
        "buffers_, center_, certificate_, classes_, edges_, gradient_, loss_curve_, multilabel_, n_epochs_, "
        "n_features_in_, n_iter_, n_layers_, n_outputs_, n_updates_, optimiser_r_, optimiser_v_, out_activation_, "
        "scale_, seed_, t_, theta_"
    ),
    "MLPRegressor": (
        "buffers_, calibration_rows_, calibration_scores_, center_, certificate_, edges_, gradient_, loss_curve_, "
        "n_epochs_, n_features_in_, n_iter_, n_layers_, n_outputs_, n_updates_, noise_, optimiser_r_, "
        "optimiser_v_, out_activation_, scale_, seed_, single_, t_, theta_, y_mean_, y_scale_"
    ),
    "ResNetClassifier": (
        "buffers_, center_, certificate_, classes_, edges_, gradient_, loss_curve_, multilabel_, n_epochs_, "
        "n_features_in_, n_iter_, n_layers_, n_outputs_, n_updates_, optimiser_r_, optimiser_v_, out_activation_, "
        "scale_, seed_, t_, theta_"
    ),
    "ResNetRegressor": (
        "buffers_, calibration_rows_, calibration_scores_, center_, certificate_, edges_, gradient_, loss_curve_, "
        "n_epochs_, n_features_in_, n_iter_, n_layers_, n_outputs_, n_updates_, noise_, optimiser_r_, "
        "optimiser_v_, out_activation_, scale_, seed_, single_, t_, theta_, y_mean_, y_scale_"
    ),
    "LSTMClassifier": (
        "buffers_, center_, certificate_, classes_, edges_, gradient_, loss_curve_, multilabel_, n_epochs_, "
        "n_features_in_, n_inputs_, n_iter_, n_layers_, n_outputs_, n_updates_, optimiser_r_, optimiser_v_, "
        "out_activation_, scale_, seed_, t_, theta_"
    ),
    "LSTMRegressor": (
        "buffers_, calibration_rows_, calibration_scores_, center_, certificate_, edges_, gradient_, loss_curve_, "
        "n_epochs_, n_features_in_, n_inputs_, n_iter_, n_layers_, n_outputs_, n_updates_, optimiser_r_, "
        "optimiser_v_, out_activation_, scale_, seed_, single_, t_, theta_, y_mean_, y_scale_"
    ),
    "RNNClassifier": (
        "buffers_, center_, certificate_, classes_, edges_, gradient_, loss_curve_, multilabel_, n_epochs_, "
        "n_features_in_, n_inputs_, n_iter_, n_layers_, n_outputs_, n_updates_, optimiser_r_, optimiser_v_, "
        "out_activation_, scale_, seed_, t_, theta_"
    ),
    "RNNRegressor": (
        "buffers_, calibration_rows_, calibration_scores_, center_, certificate_, edges_, gradient_, loss_curve_, "
        "n_epochs_, n_features_in_, n_inputs_, n_iter_, n_layers_, n_outputs_, n_updates_, optimiser_r_, "
        "optimiser_v_, out_activation_, scale_, seed_, single_, t_, theta_, y_mean_, y_scale_"
    ),
    "BlendRegressor": "certificate_, members_, weights_",
    "BlendClassifier": "certificate_, members_, weights_",
    "ScaledTargetRegressor": "center_, model_, scale_",
    "CalibratedClassifier": "calibration_rows_, calibrators_, certificate_, classes_, estimators_, n_features_in_",
    "ConformalRegressor": "certificate_, estimator_, estimators_, folds_, n_features_in_, scores_",
    "ConformalClassifier": "certificate_, classes_, estimator_, estimators_, folds_, n_features_in_, scores_, uniform_",
}

#: Models whose parameters may be set by hand, one by one, instead of by a fit.
_SET_BY_HAND: Final = frozenset({"CategoricalHMM", "GaussianHMM", "GMMHMM", "PoissonHMM"})


def check_fitted_members(name: str | None, model: Any, path: str) -> None:
    """Raise ModelFileError if a fitted model lacks a member that every fit sets.

    Parameters
    ----------
    name : str or None
        The registered name of its class; None for a model of another library, of which nothing is known.
    model : estimator
        With at least one fitted member.
    path : str
        What it is called in the error.
    """
    present = vars(model)
    if name in _SET_BY_HAND and "certificate_" not in present:
        return
    for rule in FITTED[name].split(", ") if name in FITTED else []:
        names, _, conditions = rule.partition(" unless ")
        if not any(choice in present for choice in names.split(" or ")) and not _holds(model, conditions):
            raise ModelFileError(f"{path} has no {names}, which every fitted {name} has.")


def _holds(model: Any, conditions: str) -> bool:
    pairs = [condition.split("=") for condition in conditions.split(" or ") if condition]
    return any(str(getattr(model, parameter)) == value for parameter, value in pairs)
