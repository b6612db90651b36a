"""Tests of scikit-learn's `cluster/tests/test_k_means.py` that our classes are not meant to pass, with reasons."""

EXPECTED: dict[str, str] = {
    "test_kmeans_init_auto_with_initial_centroids": "private: asks for _n_init",
    "test_n_init_auto": "private: asks for _n_init",
    "test_minibatch_kmeans_init_size": "private: asks for _init_size",
    "test_sample_weight_init": "private: asks for _init_centroids",
    "test_sample_weight_zero": "private: asks for _init_centroids",
}
