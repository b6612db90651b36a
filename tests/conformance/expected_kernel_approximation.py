"""Tests of scikit-learn's `tests/test_kernel_approximation.py` that our classes are not meant to pass, with reasons."""

EXPECTED: dict[str, str] = {}
