"""Tests of hmmlearn's `tests/test_categorical_hmm.py` that our classes are not meant to pass, with reasons."""

EXPECTED: dict[str, str] = {
    "test_attributes": "private: calls _check",
    "test_fit_with_init": "private: calls _init",
    "test__check_and_set_categorical_n_features": "private: calls _check_and_set_n_features",
}
