"""Tests of scikit-learn's `decomposition/tests/test_truncated_svd.py` that our classes are not meant to pass."""

EXPECTED = {
    "test_too_many_components": ("departure: Lanczos gives all singular values, too"),
}
