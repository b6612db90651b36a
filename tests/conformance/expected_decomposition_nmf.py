"""Tests of scikit-learn's `decomposition/tests/test_nmf.py` that our classes are not meant to pass."""

EXPECTED = {
    "test_convergence_warning": (
        "departure: one round solves its table of ones, by coordinate descent; there are no multiplicative updates"
    ),
    "test_parameter_checking": ("wording: of an error about beta_loss"),
    "test_nmf_custom_init_dtype_error": ("departure: starts of another float type are taken"),
    "test_nmf_dtype_match": (
        "departure: parts are float64, coordinates of float32 rows float32; there are no multiplicative updates"
    ),
    "test_nmf_n_components_auto": ("private: asks for _n_components"),
    "test_non_negative_factorization_consistency": (
        "departure: compares with their function; W is solved for given H in the end"
    ),
    "test_nmf_fit_close": ("departure: there are no multiplicative updates (solver='mu')"),
    "test_nmf_fit_nn_output": ("departure: there are no multiplicative updates (solver='mu')"),
    "test_nmf_float32_float64_consistency": ("departure: there are no multiplicative updates (solver='mu')"),
    "test_nmf_inverse_transform": ("departure: there are no multiplicative updates (solver='mu')"),
    "test_nmf_minibatchnmf_equivalence": ("departure: there are no multiplicative updates (solver='mu')"),
    "test_nmf_regularization": ("departure: there are no multiplicative updates (solver='mu')"),
    "test_nmf_smoke": ("departure: there are no multiplicative updates (solver='mu')"),
    "test_nmf_sparse_input": ("departure: there are no multiplicative updates (solver='mu')"),
    "test_nmf_sparse_transform": ("departure: there are no multiplicative updates (solver='mu')"),
    "test_nmf_transform": ("departure: there are no multiplicative updates (solver='mu')"),
    "test_nmf_transform_custom_init": ("departure: there are no multiplicative updates (solver='mu')"),
    "test_nmf_true_reconstruction": ("departure: there are no multiplicative updates (solver='mu')"),
}
