"""The diagonal of an inverse, dense and by Woodbury's formula."""

import numpy as np
from tests.kernel.kernel_tables import curved

from learnable.kernel.operators import Operator
from learnable.kernel.ridge.regression import inverse_diagonal
from learnable.risk.kernels import Gaussian, Linear

X, _, weight = curved()


def test_it_is_the_diagonal_of_the_inverse():
    for kernel, keep in ((Gaussian(1.0), True), (Gaussian(1.0), False), (Linear(), False), (Linear(), True)):
        d = 0.3 / weight
        exact = np.linalg.inv(kernel(X) + np.diag(d)).diagonal()
        np.testing.assert_allclose(inverse_diagonal(Operator(kernel, X, keep=keep), d), exact, rtol=1e-10)


def test_a_small_penalty_of_the_linear_kernel_keeps_its_digits():
    Z = X[:3]  # as many rows as columns: 1 − h is a difference of equals
    exact = np.linalg.inv(Z @ Z.T + 1e-9 * np.eye(3)).diagonal()
    np.testing.assert_allclose(inverse_diagonal(Operator(Linear(), Z, keep=False), np.full(3, 1e-9)), exact, rtol=1e-5)


def test_a_singular_matrix_has_none():
    assert inverse_diagonal(Operator(Linear(), X, keep=True), np.zeros(len(X))) is None
    assert inverse_diagonal(Operator(Linear(), 0.0 * X, keep=True), np.zeros(len(X))) is None
