# ruff: noqa: E501
"""Tests of scikit-learn's `tests/test_naive_bayes.py` that our classes are not meant to pass, each with its reason."""

EXPECTED: dict[str, str] = {
    "test_gnb_check_update_with_no_data": "private: calls GaussianNB._update_mean_variance",
    "test_discretenb_provide_prior": "departure: asks that a fit that failed has changed classes_; here a failed fit leaves the model as it was",
    "test_discretenb_provide_prior_with_partial_fit[CategoricalNB]": "departure: asks that 5.1 is taken for category 5; categories are numbers 0, 1, 2 …, as scikit-learn documents them",
    "test_alpha_vector": "wording: a negative alpha is refused in other words; then it calls _check_alpha",
    "test_check_alpha": "private: calls _check_alpha",
}
