"""Tests of scikit-learn's `ensemble/tests/test_forest.py` that ours are not meant to pass, with reasons."""

EXPECTED: dict[str, str] = {
    "test_regression_criterion[squared_error-RandomForestRegressor]": "numeric: R² 0.92998 of five trees, > 0.93 asked",
    "test_regression_criterion[friedman_mse-RandomForestRegressor]": "numeric: R² 0.92998 of five trees, > 0.93 asked",
    "test_importances[RandomForestRegressor-absolute_error-float64]": (
        "numeric: of 0/1 targets many cuts have the same absolute error; which wins decides the importances"
    ),
    "test_importances[RandomForestRegressor-absolute_error-float32]": (
        "numeric: of 0/1 targets many cuts have the same absolute error; which wins decides the importances"
    ),
    "test_importances_asymptotic": "numeric: a Monte Carlo mean error of 0.0104 at one seed, < 0.01 asked",
    "test_classifier_error_oob_score_multiclass_multioutput": (
        "departure: out-of-bag accuracy of several targets with many classes is computed here, as `score` is"
    ),
    "test_forest_multioutput_integral_regression_target": "private: draws bags with _generate_unsampled_indices",
    "test_validate_y_class_weight": "private: calls _validate_y_class_weight",
    "test_class_weights_forest": "private: reads _sample_weight",
    "test_class_weight_errors": "departure: a warm start on another table is refused (docstring of warm_start)",
    "test_oob_not_computed_twice": "private: patches _set_oob_score_and_attributes",
    "test_backend_respected": "departure: trees grow on our own threads, joblib's backends are not asked",
    "test_max_samples_geq_one": "private: reads _n_samples_bootstrap",
    "test_mse_criterion_object_segfault_smoke_test": "private: passes an object of sklearn.tree._criterion",
}
