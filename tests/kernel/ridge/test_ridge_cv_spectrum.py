"""One eigendecomposition: coefficients, leave-one-out and degrees of freedom of every penalty."""

import numpy as np
from tests.kernel.kernel_tables import curved

from learnable.kernel.ridge.ridge_cv import kernel_spectrum
from learnable.risk.kernels import Gaussian

X, Y, weight = curved(targets=2)
K, ALPHAS = Gaussian(1.0)(X), np.array([0.01, 1.0, 50.0])


def test_everything_is_that_of_the_dense_matrices():
    spectrum = kernel_spectrum(K, Y, 7.0 * weight)
    errors, residuals = spectrum.leave_one_out(ALPHAS), spectrum.residuals(ALPHAS)
    for number, alpha in enumerate(ALPHAS):
        inverse = np.linalg.inv(K + alpha * np.diag(1 / (7.0 * weight)))
        c = inverse @ Y
        np.testing.assert_allclose(spectrum.coefficients(ALPHAS)[number], c, rtol=1e-8)
        np.testing.assert_allclose(errors[:, :, number], c / inverse.diagonal()[:, None], rtol=1e-8)
        np.testing.assert_allclose(residuals[:, :, number], Y - K @ c, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(spectrum.freedom(ALPHAS)[number], 1 - np.trace(K @ inverse) / len(K), rtol=1e-8)
        np.testing.assert_allclose(spectrum.inverse(Y, alpha), c, rtol=1e-8)
