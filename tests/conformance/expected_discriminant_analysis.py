# ruff: noqa: E501
"""Tests of scikit-learn's `tests/test_discriminant_analysis.py` that our classes are not meant to pass, each with its reason."""

EXPECTED: dict[str, str] = {
    "test_qda_regularization": "departure: with solver='svd' reg_param makes every covariance regular, as scikit-learn documents it; the fit that has to fail succeeds",
}
