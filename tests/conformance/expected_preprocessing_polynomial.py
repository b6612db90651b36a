"""Tests of scikit-learn's `preprocessing/tests/test_polynomial.py` that our classes are not meant to pass, each with its reason."""

# ruff: noqa: E501

EXPECTED: dict[str, str] = {
    "test_num_combinations": "private: asks for _combinations",
    "test_csr_polynomial_expansion_index_overflow_non_regression": "private: asks for _num_combinations",
    "test_csr_polynomial_expansion_index_overflow": "private: asks for _num_combinations",
    "test_csr_polynomial_expansion_windows_fail": "departure: more than 2^27 monomials below the greatest degree are refused, with the remedy",
}
