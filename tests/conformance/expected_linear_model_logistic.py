"""Tests of scikit-learn's `linear_model/tests/test_logistic.py` that our classes are not meant to pass."""

EXPECTED: dict[str, str] = {
    "test_check_solver_option": "departure: every solver takes an L1 part and dual=True; the optimum is the same",
    "test_liblinear_dual_random_state": "departure: asks that dual solutions differ by random_state; ours are optima",
    "test_logistic_cv_multinomial_score": "private: passes our get_params() to _log_reg_scoring_path",
    "test_logreg_predict_proba_multinomial": "private: asks for _predict_proba_lr",
    "test_warm_start_newton_solver[inf-True-newton-cholesky]": "departure: C=inf with separable classes is refused",
    "test_warm_start_newton_solver[inf-True-newton-cg]": "departure: C=inf with separable classes is refused",
    "test_warm_start_newton_solver[inf-False-newton-cholesky]": "departure: C=inf with separable classes is refused",
    "test_warm_start_newton_solver[inf-False-newton-cg]": "departure: C=inf with separable classes is refused",
    "test_c_inf_no_warning": "departure: C=inf with separable classes is refused",
    "test_large_sparse_matrix": "departure: asks that 64-bit sparse indices are refused; ours are taken",
    "test_liblinear_with_large_values": "wording: ours names 1e100 as the limit, for every solver",
    "test_newton_cholesky_fallback_to_lbfgs": "numeric: lbfgs within 100 iterations at tol=1e-8 instead of 1e-4",
    "test_logisticregression_warns_with_n_jobs": "departure: n_jobs has an effect here",
    "test_logistic_regression_callback_support": "departure: one task for each iteration, without an empty last one",
    "test_logistic_regression_callback_support_warning": "departure: callbacks work with every solver",
}
