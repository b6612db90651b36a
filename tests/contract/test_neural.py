"""Neural networks keep scikit-learn's contract."""

from tests.contract.checks import WEIGHTS, contract_of, registered_models

from learnable.neural import (
    LSTMClassifier,
    LSTMRegressor,
    MLPClassifier,
    MLPRegressor,
    ResNetClassifier,
    ResNetRegressor,
    RNNClassifier,
    RNNRegressor,
)

BATCHES = "mini-batches of repeated rows are others than mini-batches of weighted rows"

test_sklearn_contract = contract_of(
    [
        MLPClassifier(max_iter=30),
        MLPRegressor(max_iter=60),
        ResNetClassifier(units=8, max_iter=60, learning_rate_init=0.01),
        ResNetRegressor(units=8, max_iter=60, learning_rate_init=0.02),
        LSTMClassifier(4, max_iter=30, learning_rate_init=0.05),
        LSTMRegressor(4, max_iter=60, learning_rate_init=0.05),
        RNNClassifier(4, max_iter=30, learning_rate_init=0.05),
        RNNRegressor(4, max_iter=60, learning_rate_init=0.05, cell="gru"),
    ],
    lambda model: {} if model.solver == "lbfgs" else dict.fromkeys(WEIGHTS, BATCHES),
    others=[*registered_models("neural"), MLPClassifier(solver="lbfgs", hidden_layer_sizes=(5,))],
)
