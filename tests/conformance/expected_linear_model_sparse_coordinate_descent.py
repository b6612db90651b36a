"""Tests of scikit-learn's `linear_model/tests/test_sparse_coordinate_descent.py` that our classes are not meant to pass, each with its reason."""

# ruff: noqa: E501

EXPECTED: dict[str, str] = {
    "test_same_output_sparse_dense_lasso_and_enet_cv": "numeric: asks for errors on folds to 1e-7 at a tolerance of 1e-6",
}
