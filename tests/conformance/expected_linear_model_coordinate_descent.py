"""Tests of scikit-learn's `linear_model/tests/test_coordinate_descent.py` that our classes are not meant to pass, each with its reason."""

# ruff: noqa: E501

EXPECTED: dict[str, str] = {
    "test_enet_nonfinite_params": "wording: a ValueError in other words",
    "test_lasso_dual_gap": "numeric: compares gaps of 2e-15, which are rounding",
    "test_lassocv_alphas_validation": "wording: a ValueError that names the rule and shows alphas, in other words; of the same class for strings",
    "test_warm_start": "numeric: compares fits cut after ten epochs of one method, which another does not reproduce",
    "test_lasso_alpha_warning": "departure: with alpha=0 the model is least squares, solved directly; there is nothing to warn of",
    "test_check_input_false": "departure: asks that check_input=False fails for rows in C order; ours are right in any order",
    "test_enet_copy_X_False_check_input_False": "departure: copy_X=False says that X may be overwritten; ours never is",
    "test_lassoCV_does_not_set_precompute": "private: replaces a class inside scikit-learn's module",
}
