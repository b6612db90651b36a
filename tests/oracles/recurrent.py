"""One step of each recurrent cell as the textbook writes it: the slow twins of `neural._recurrent_kernels`."""

import numpy as np


def sigmoid(x):
    return 1.0 / (1.0 + np.exp(-x))


def lstm_step(x, h, c, Wx, Wh, b):
    """Return the next h and c."""
    i, f, g, o = np.split(x @ Wx + h @ Wh + b, 4, axis=1)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(c), c


def gru_step(x, h, Wx, Wh, b, bn):
    """Return the next h."""
    z, r, n = np.split(x @ Wx + b, 3, axis=1)
    uz, ur, un = np.split(h @ Wh, 3, axis=1)
    z = sigmoid(z + uz)
    n = np.tanh(n + sigmoid(r + ur) * (un + bn))
    return (1.0 - z) * n + z * h


def rnn_step(x, h, Wx, Wh, b):
    """Return the next h."""
    return np.tanh(x @ Wx + h @ Wh + b)
