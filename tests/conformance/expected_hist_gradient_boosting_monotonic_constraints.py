"""Tests of scikit-learn's `ensemble/_hist_gradient_boosting/tests/test_monotonic_constraints.py` not for ours.

Each with its reason.
"""

EXPECTED: dict[str, str] = {
    "test_input_error_related_to_feature_names": (
        "wording: names for a table without names are unexpected names here, not 'was not fitted on data with names'"
    ),
}
