"""Tests of scikit-learn's `ensemble/_hist_gradient_boosting/tests/test_gradient_boosting.py` that our
classes are not meant to pass, each with its reason.
"""

# ruff: noqa: E501

EXPECTED: dict[str, str] = {
    "test_early_stopping_classification[loss-0.1-True-5-1e-07-data1]": "numeric: three rows are set aside; their loss still falls after 50 rounds where scikit-learn's three rows, drawn otherwise, are lost",
    "test_early_stopping_regression[neg_mean_squared_error-0.1-True-5-1e-07]": "departure: early stopping keeps the best round (docstring)",
    "test_early_stopping_regression[None-0.1-True-5-1e-07]": "departure: early stopping keeps the best round (docstring)",
    "test_early_stopping_regression[loss-0.1-True-5-1e-07]": "departure: early stopping keeps the best round (docstring)",
    "test_early_stopping_classification[accuracy-0.1-True-5-1e-07-data0]": "departure: early stopping keeps the best round (docstring)",
    "test_early_stopping_classification[accuracy-0.1-True-5-1e-07-data1]": "departure: early stopping keeps the best round (docstring)",
    "test_early_stopping_classification[None-0.1-True-5-1e-07-data0]": "departure: early stopping keeps the best round (docstring)",
    "test_early_stopping_classification[None-0.1-True-5-1e-07-data1]": "departure: early stopping keeps the best round (docstring)",
    "test_should_stop": "private: asks for _should_stop",
    "test_binning_train_validation_are_separated": "private: asks for _bin_mapper",
    "test_small_trainset": "private: asks for _get_small_trainset",
    "test_consistent_lengths": "wording: sample_weight.shape == (3,), expected",
    "test_sample_weight_effect": "private: asks for _raw_predict",
    "test_max_depth_max_leaf_nodes": "private: asks for _predictors",
    "test_early_stopping_with_sample_weights": "private: replaces _raw_predict",
    "test_raw_predict_is_called_with_custom_scorer": "private: replaces _raw_predict",
    "test_single_node_trees": "private: asks for _predictors",
    "test_custom_loss": "private: losses of sklearn._loss",
    "test_categorical_encoding_strategies": "private: asks for _predictors",
    "test_categorical_bad_encoding_errors": "departure: more levels than max_bins are allowed, the rarest share a bin",
    "test_dataframe_categorical_errors": "departure: more levels than max_bins are allowed, the rarest share a bin",
    "test_check_interaction_cst": "private: asks for _check_interaction_cst",
    "test_X_val_in_fit": "private: repeats the random draws inside fit to find the rows held out",
    "test_dataframe_categorical_results_same_as_ndarray": "private: asks for _preprocessor and _predictors",
    "test_categorical_different_order_same_model": "private: asks for _predictors",
}
