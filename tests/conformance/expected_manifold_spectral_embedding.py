"""Tests of scikit-learn's `manifold/tests/test_spectral_embedding.py` that our classes are not meant to pass."""

EXPECTED = {
    "test_error_pyamg_not_available": "departure: eigen_solver='amg' needs no other package; it is our own solver",
    "test_spectral_embedding_preserves_dtype": (
        "departure: affinities and coordinates are float64 inside; fit_transform returns float32 for float32"
    ),
}
