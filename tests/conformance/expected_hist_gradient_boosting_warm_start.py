"""Tests of scikit-learn's `ensemble/_hist_gradient_boosting/tests/test_warm_start.py` that our
classes are not meant to pass, each with its reason.
"""

# ruff: noqa: E501

EXPECTED: dict[str, str] = {
    "test_warm_start_yields_identical_results": "private: asks for _predictors",
    "test_warm_start_max_depth": "private: asks for _predictors",
    "test_warm_start_early_stopping": "departure: early stopping keeps the best round (docstring), so that a warm start goes on from the best",
    "test_warm_start_equal_n_estimators": "private: asks for _predictors",
    "test_warm_start_clear": "private: asks for _predictors",
    "test_random_seeds_warm_start": "private: asks for _random_seed",
}
