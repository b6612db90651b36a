"""The checker of forward stagewise models has eyes of its own."""

import numpy as np

from learnable import ForwardStagewiseAdditive
from learnable.ensembles.verify_stagewise import stagewise


def test_a_worse_stump_and_a_wrong_loss_are_found():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 3))
    y = X[:, 0] + X[:, 1] > 0
    model = ForwardStagewiseAdditive("log_loss", n_estimators=4).fit(X, y)
    assert stagewise(model, X, y, None).value == 0.0
    model.train_loss_[2] += 1e-6
    assert stagewise(model, X, y, None).value == 0.25
    model.train_loss_[2] -= 1e-6
    model.stumps_.feature[3] = (model.stumps_.feature[3] + 1) % 3
    assert stagewise(model, X, y, None).value >= 0.25
    numbers = ForwardStagewiseAdditive("huber", n_estimators=4).fit(X, X[:, 0] * X[:, 1])
    assert stagewise(numbers, X, X[:, 0] * X[:, 1], None).value <= 1e-9
    numbers.train_loss_[2] += 1e-6
    assert stagewise(numbers, X, X[:, 0] * X[:, 1], None).value == np.inf
