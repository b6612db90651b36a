# ruff: noqa: E501
"""Tests of scikit-learn's `tests/test_discriminant_analysis.py` that our classes are not meant to pass, each with its reason."""

EXPECTED: dict[str, str] = {
    "test_lda_dtype_match[float32-float32]": "departure: coefficients are float64 whatever the rows are, as in every generative model",
    "test_qda_regularization": "departure: with solver='svd' reg_param makes every covariance regular, so that the fit which has to fail succeeds",
}
