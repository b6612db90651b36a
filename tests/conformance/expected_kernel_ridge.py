"""Tests of scikit-learn's `tests/test_kernel_ridge.py` that our class is not meant to pass, each with its reason."""

EXPECTED: dict[str, str] = {}
