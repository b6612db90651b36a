"""Tests of scikit-learn's `ensemble/tests/test_weight_boosting.py` that ours are not meant to pass, with reasons."""

EXPECTED: dict[str, str] = {
    "test_classification_toy": "departure: labels of several types in one y are refused",
    "test_estimator": "departure: labels of several types in one y are refused",
    "test_adaboost_classifier_sample_weight_error": "departure: labels of several types in one y are refused",
    "test_multidimensional_X": "departure: tables have two dimensions",
    "test_adaboost_negative_weight_error": "wording: negative weights are refused in our words, with the row",
    "test_adaboost_numerically_stable_feature_importance_with_small_weights": (
        "departure: weights beyond 1e-100 and 1e100 are refused"
    ),
}
