"""Tests of scikit-learn's `manifold/tests/test_spectral_embedding.py` that our classes are not meant to pass."""

EXPECTED = {
    "test_error_pyamg_not_available": "departure: eigen_solver='amg' needs no other package; it is our own solver",
}
