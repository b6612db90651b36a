"""Tests of scikit-learn's `ensemble/tests/test_weight_boosting.py` that ours are not meant to pass, with reasons."""

EXPECTED: dict[str, str] = {
    "test_estimator": "wording: a member that is no better than guessing is refused in our words",
    "test_adaboost_classifier_sample_weight_error": "wording: weights of a wrong shape are refused in our words",
    "test_multidimensional_X": "departure: tables have two dimensions",
    "test_adaboost_negative_weight_error": "wording: negative weights are refused in our words, with the row",
    "test_adaboost_numerically_stable_feature_importance_with_small_weights": (
        "departure: weights beyond 1e-100 and 1e100 are refused"
    ),
}
