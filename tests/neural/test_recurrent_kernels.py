"""The compiled steps of recurrent cells are those of the textbook, also for large inputs and in float32."""

import numpy as np
import pytest
from tests.oracles.recurrent import gru_step, lstm_step, rnn_step

from learnable.neural import GRU, LSTM, Network, Recurrent


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("scale", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("layer", [LSTM(5), GRU(5), Recurrent(5)], ids=repr)
def test_states_are_those_of_the_textbook(layer, scale, dtype):
    rng = np.random.default_rng(0)
    net = Network([layer], 3, dtype=dtype)
    theta = (net.start(0) + 0.1 * rng.normal(size=net.n_parameters)).astype(dtype)
    x = (scale * rng.normal(size=(7, 4, 3))).astype(dtype)
    found = net.activations(theta, x)[0]
    views = {name: array.astype(np.float64) for name, array in net.views(theta, 0).items()}
    h = c = np.zeros((4, 5))
    with np.errstate(over="ignore"):
        for t in range(7):
            if isinstance(layer, LSTM):
                h, c = lstm_step(x[t].astype(float), h, c, views["Wx"], views["Wh"], views["b"])
            elif isinstance(layer, GRU):
                h = gru_step(x[t].astype(float), h, views["Wx"], views["Wh"], views["b"], views["bn"])
            else:
                h = rnn_step(x[t].astype(float), h, views["Wx"], views["Wh"], views["b"])
            tolerance = 1e-12 if dtype == "float64" else 2e-5
            np.testing.assert_allclose(found[t], h, atol=tolerance)
