# ruff: noqa: E501
"""Tests of scikit-learn's `tests/test_multiclass.py` that our classes are not meant to pass, each with its reason."""

EXPECTED: dict[str, str] = {
    "test_ovr_single_label_predict_proba_zero": "departure: probabilities sum to one, as scikit-learn documents it, also where no model is for its class",
}
