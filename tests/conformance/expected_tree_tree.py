"""Tests of scikit-learn's `tree/tests/test_tree.py` that ours are not meant to pass, with reasons."""

EXPECTED: dict[str, str] = {
    "test_error": "wording: a Poisson fit with one row and three targets is refused for its shape first",
    "test_sample_weight_invalid": "wording: a scalar weight is a ValueError in our words, not a TypeError",
    "test_almost_constant_feature": "departure: splits are exact in float64, columns of 1e-7 count (class docstring)",
    "test_big_input": "departure: X is float64 here, 1e40 is a number",
    "test_missing_value_errors": "departure: NaN in sparse tables is a missing value here (class docstring)",
    "test_huge_allocations": "private: asks for the MemoryError of a table allocated by max_leaf_nodes",
    "test_mae": "departure: of cuts that gain nothing the smallest squared error wins (class docstring)",
    "test_min_sample_split_1_error": "wording: the range of min_samples_split in our words",
    "test_deterministic_pickle": "departure: the certificate records the seconds of the fit",
    "test_build_pruned_tree_py": "private: sklearn.tree._tree._build_pruned_tree_py on its own Tree",
    "test_build_pruned_tree_infinite_loop": "private: sklearn.tree._tree._build_pruned_tree_py on its own Tree",
}
