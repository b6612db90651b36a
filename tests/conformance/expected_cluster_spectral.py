"""Tests of scikit-learn's `cluster/tests/test_spectral.py` that our classes are not meant to pass."""

EXPECTED = {
    "test_affinities": (
        "departure: separate parts of a graph are found exactly, without a warning; n_parts_ counts them"
    ),
}
