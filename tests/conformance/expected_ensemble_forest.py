"""Tests of scikit-learn's `ensemble/tests/test_forest.py` that ours are not meant to pass, with reasons."""

EXPECTED: dict[str, str] = {
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
