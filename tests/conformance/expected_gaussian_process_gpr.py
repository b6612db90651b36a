# ruff: noqa: E501
"""Tests of scikit-learn's `gaussian_process/tests/test_gpr.py` that our classes are not meant to pass, each with its reason."""

EXPECTED: dict[str, str] = {
    "test_gpr_correct_error_message": "departure: a singular kernel matrix gets the least jitter it needs (jitter_) instead of an error",
    "test_constant_target": "private: reads _y_train_std; the public y_std_ is 1 there",
}
