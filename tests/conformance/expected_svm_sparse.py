"""Tests of scikit-learn's `svm/tests/test_sparse.py` that our classes are not meant to pass, each with its reason."""

EXPECTED: dict[str, str] = {}
