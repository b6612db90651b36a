"""Tests of scikit-learn's `decomposition/tests/test_pca.py` that our classes are not meant to pass."""

EXPECTED = {
    "test_sparse_pca_solver_error": ("departure: every solver takes sparse rows"),
    "test_pca_validation": ("departure: every solver gives any number of components, none and all among them"),
    "test_n_components_none": ("departure: every solver gives all components by default"),
    "test_n_components_mle_error": ("departure: every solver gives all variances that the evidence needs"),
    "test_pca_score": ("departure: the density is that of the rows whether they are whitened or not"),
    "test_pca_zero_noise_variance_edge_cases": ("departure: rows in a plane have no density, which is an error"),
    "test_pca_svd_solver_auto": ("private: asks for _fit_svd_solver"),
    "test_pca_dtype_preservation": ("departure: components are float64, coordinates of float32 rows float32"),
}
