"""Tests of scikit-learn's `linear_model/tests/test_sag.py` that our classes are not meant to pass."""

EXPECTED: dict[str, str] = {
    "test_sag_classifier_computed_correctly": "numeric: against 20 epochs of SAG, which are not at the optimum",
    "test_sag_multiclass_computed_correctly": "numeric: against a few epochs of SAG, which are not at the optimum",
    "test_binary_classifier_class_weight": "numeric: against a few epochs of SAG, which are not at the optimum",
    "test_step_size_alpha_error": "private: asks for the division by zero of SAG's step size",
    "test_sag_classifier_raises_error": "numeric: asks for the error of a diverging SAG; our solvers do not diverge",
}
