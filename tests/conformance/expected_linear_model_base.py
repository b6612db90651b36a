"""Tests of scikit-learn's `linear_model/tests/test_base.py` that our classes are not meant to pass, each with its reason."""

# ruff: noqa: E501

EXPECTED: dict[str, str] = {
    "test_raises_value_error_if_positive_and_sparse": "departure: positive=True takes sparse rows, too",
    "test_inplace_data_preprocessing": "departure: copy_X=False says that X may be overwritten; ours never is",
}
