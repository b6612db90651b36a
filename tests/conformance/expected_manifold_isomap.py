"""Tests of scikit-learn's `manifold/tests/test_isomap.py` that our classes are not meant to pass."""

EXPECTED = {
    "test_multiple_connected_components_metric_precomputed": (
        "departure: the error is a DataError, a ValueError as all of ours"
    ),
}
