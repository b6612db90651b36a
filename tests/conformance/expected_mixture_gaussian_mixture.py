"""Tests of scikit-learn's `mixture/tests/test_gaussian_mixture.py` that our classes need not pass, with reasons."""

EXPECTED: dict[str, str] = {
    "test_gaussian_mixture_precisions_init": "private: calls _set_parameters",
    "test_gaussian_mixture_all_init_does_not_estimate_gaussian_parameters": (
        "private: replaces a private function of scikit-learn's and counts its calls"
    ),
    "test_warm_start": (
        "departure: a fit returns the point before the step that confirms convergence, whose rise is the certificate"
    ),
    "test_gaussian_mixture_setting_best_params": (
        "departure: a component that collapses on too few rows is an error, with its remedy"
    ),
}
