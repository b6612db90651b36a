"""Tests of scikit-learn's `neural_network/tests/test_mlp.py` that our classes are not meant to pass, each with its reason."""

# ruff: noqa: E501

EXPECTED: dict[str, str] = {
    "test_fit": "private: sets weights by hand and calls _initialize and _optimizer",
    "test_gradient": "private: asks for _loss_grad_lbfgs",
    "test_learning_rate_warmstart": "private: asks for _optimizer",
    "test_adaptive_learning_rate": "private: asks for _optimizer",
    "test_n_iter_no_change": "private: asks for _no_improvement_count",
    "test_n_iter_no_change_inf": "private: asks for _no_improvement_count",
    "test_early_stopping_stratified": "departure: a class with one row stays in training, whatever the share set aside",
    "test_mlp_param_dtypes[MLPClassifier-float64]": "departure: stochastic training is in float32, unless dtype says otherwise",
    "test_mlp_param_dtypes[MLPRegressor-float64]": "departure: stochastic training is in float32, unless dtype says otherwise",
    "test_mlp_param_dtypes[MLPRegressor-float32]": "departure: predictions are float64",
    "test_preserve_feature_names[MLPClassifier]": "departure: one class is refused",
    "test_mlp_diverging_loss": "departure: a run whose loss is not finite goes back to the last good weights, so that its scores are numbers",
}
