"""Tests of scikit-learn's `linear_model/tests/test_ridge.py` that our classes are not meant to pass, each with its reason."""

# ruff: noqa: E501

EXPECTED: dict[str, str] = {
    "test_ridge_classifier_cv_store_cv_results": "departure: a column per label holds zeros and ones; scikit-learn takes -1 for a label that is there",
    "test_raises_value_error_if_sample_weights_greater_than_1d": "wording: a ValueError in other words",
    "test_ridgecv_alphas_validation": "wording: a ValueError that names the rule and shows alphas, in other words; of the same class for strings",
    "test_n_iter": "departure: n_iter_ is 1 for a direct solver, as scikit-learn's own estimator checks want it of every model with max_iter; its Ridge has None",
    "test_ridge_fit_intercept_sparse_error": "departure: every solver fits an intercept to sparse rows",
    "test_ridge_fit_intercept_sparse_sag": "departure: sag means conjugate gradients, which need no warning about many iterations",
    "test_lbfgs_solver_error": "departure: non-negative ridge is solved directly and converges",
}
