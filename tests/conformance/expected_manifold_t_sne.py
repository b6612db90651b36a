"""Tests of scikit-learn's `manifold/tests/test_t_sne.py` that our classes are not meant to pass."""

EXPECTED = {
    "test_exact_no_precomputed_sparse": "wording: the error says how many neighbours a sparse table of distances lacks",
    "test_n_components_range": "departure: any number of dimensions goes with any method (docstring)",
    "test_max_iter_used": "departure: n_iter_ counts the steps, there it is the number of the last, from zero",
    "test_verbose": "departure: verbose is kept for compatibility; progress is shown as for all models",
    "test_n_iter_without_progress": "departure: verbose is kept for compatibility, and the test reads its words",
    "test_accessible_kl_divergence": "departure: verbose is kept for compatibility, and the test reads its words",
    "test_64bit[float64-barnes_hut]": "departure: coordinates of float64 rows are float64 (docstring)",
    "test_64bit[float64-exact]": "departure: coordinates of float64 rows are float64 (docstring)",
    "test_tsne_with_different_distance_metrics[barnes_hut-cosine-cosine_distances]": (
        "numeric: distances that differ in the last digit, after 300 steps of a descent that is not stable"
    ),
    "test_tsne_with_different_distance_metrics[exact-cosine-cosine_distances]": (
        "numeric: distances that differ in the last digit, after 300 steps of a descent that is not stable"
    ),
    "test_tsne_with_different_distance_metrics[exact-manhattan-manhattan_distances]": (
        "numeric: distances that differ in the last digit, after 300 steps of a descent that is not stable"
    ),
    "test_tsne_with_mahalanobis_distance": "wording: the error names the parameter VI in other words",
    "test_tsne_works_with_pandas_output": "private: sets a setting of scikit-learn through our `config_context`",
}
