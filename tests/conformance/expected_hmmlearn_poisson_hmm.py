"""Tests of hmmlearn's `tests/test_poisson_hmm.py` that our classes are not meant to pass, with reasons."""

EXPECTED: dict[str, str] = {
    "test_attributes": "private: calls _check",
    "test_fit_with_init": "private: calls _init",
}
