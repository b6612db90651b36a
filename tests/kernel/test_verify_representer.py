"""The checker of kernel ridge regression: it shares no kernel value with the fit, and notices every change."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning
from tests.kernel.kernel_tables import curved

from learnable import KernelRidge, KernelRidgeCV, verify
from learnable.core.errors import VerificationError
from learnable.kernel.verify_kernels import values
from learnable.risk.kernels import (
    Constant,
    DoubleExponential,
    Gaussian,
    Linear,
    Matern,
    Periodic,
    Polynomial,
    RationalQuadratic,
    White,
)

X, y, weight = curved()
KERNELS = [
    Gaussian([1.0, 2.0, 0.5]),
    DoubleExponential(2.0),
    Matern(1.0, nu=0.5),
    Matern(1.5, nu=2.5),
    RationalQuadratic(1.0, alpha=0.7),
    Periodic(1.0, period=3.0),
    Polynomial(2, 0.1, 1.0),
    2.0 * (Gaussian(1.0).on(0, 2) + Constant(0.5)) * Linear() + White(0.3),
]


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.formula)
def test_formulas_agree_with_the_kernels(kernel):
    np.testing.assert_allclose(values(kernel, X[:9], X[9:30]), kernel(X[:9], X[9:30]), rtol=1e-9, atol=1e-13)
    assert verify(KernelRidge(kernel=kernel).fit(X, y, weight), X, y, weight)


@pytest.mark.parametrize("solver", ["cholesky", "cg"])
def test_every_change_is_noticed(solver):
    def fitted():
        return KernelRidge(alpha=0.3, kernel="rbf", solver=solver).fit(X, y, weight)

    assert verify(fitted(), X, y, weight)
    model = fitted()
    model.dual_coef_[3] *= 1.001
    assert not verify(model, X, y, weight)
    model = fitted()
    model.X_fit_[0, 0] += 1e-6
    assert not verify(model, X, y, weight)
    model = fitted()
    model.alpha = 0.3001
    assert not verify(model, X, y, weight)
    assert not verify(fitted(), X, y + 1e-9, weight)
    assert not verify(fitted(), X, y)
    with pytest.raises(VerificationError):
        verify(fitted(), X[:, :2], y)


def test_far_points_and_a_narrow_kernel_do_not_confuse_it():
    far = X + 1e6
    model = KernelRidge(alpha=0.1, kernel="rbf", gamma=100.0).fit(far, y)
    assert verify(model, far, y)


@given(st.integers(0, 10_000), st.sampled_from(["linear", "rbf", "poly", "laplacian"]), st.sampled_from([1.0, 1e-3]))
@settings(deadline=None, max_examples=60)
def test_what_holds_is_verified_at_every_scale(seed, kernel, alpha):
    """Columns of 1e±6, of equal and of different sizes, with and without a large mean."""
    rng = np.random.default_rng(seed)
    n, d = ((40, 3), (25, 40))[seed % 2]
    sizes = 10.0 ** (rng.integers(-6, 7, size=d) if seed % 3 else rng.integers(-6, 7))
    rows = (rng.normal(size=(n, d)) + 10.0 * (seed % 5 == 0)) * sizes
    t = rng.normal(size=n)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        models = [KernelRidge(alpha, kernel=kernel).fit(rows, t), KernelRidgeCV([alpha], kernel=kernel).fit(rows, t)]
    for model in models:
        assert verify(model, rows, t) or not model.certificate_.holds
