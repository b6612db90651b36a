"""Every kernel and composition: positive semidefinite, products without the matrix, derivatives, other names."""

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.gaussian_process.kernels as sk
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import pairwise

from learnable.core.errors import DataError, ParameterError
from learnable.risk.kernels import (
    Constant,
    DoubleExponential,
    FunctionKernel,
    Gaussian,
    Linear,
    Matern,
    Periodic,
    Polynomial,
    Precomputed,
    RationalQuadratic,
    Restricted,
    Scaled,
    White,
    as_kernel,
    is_mercer,
)

RNG = np.random.default_rng(0)
X = RNG.standard_normal((25, 3)) * [1.0, 5.0, 0.2] + [0.0, 100.0, -3.0]
Z = RNG.standard_normal((7, 3)) * [1.0, 5.0, 0.2] + [0.0, 100.0, -3.0]
ARD = np.array([0.7, 4.0, 0.3])

KERNELS = {
    "linear": Linear(),
    "polynomial": Polynomial(3, 0.01, 0.5),
    "gaussian": Gaussian(1.5),
    "gaussian of columns": Gaussian(ARD),
    "double exponential": DoubleExponential(2.0),
    "matern 1/2": Matern(1.5, nu=0.5),
    "matern 3/2": Matern(ARD, nu=1.5),
    "matern 5/2": Matern(2.0, nu=2.5),
    "rational quadratic": RationalQuadratic(ARD, alpha=0.8),
    "periodic": Periodic(1.2, period=3.0),
    "constant": Constant(2.0),
    "white": White(0.3),
    "sum": Gaussian(ARD) + White(0.1) + 2.0,
    "product": Linear() * Periodic(1.0, period=7.0),
    "scaled": 3.0 * Matern(1.0, nu=2.5) * Gaussian(4.0),
    "power": Gaussian(2.0) ** 3,
    "restricted": Gaussian([2.0, 0.3]).on(1, 2) + 0.5 * Linear().on(0),
    "all of it": 2.0 * (Gaussian(ARD) + Constant(0.5)) * RationalQuadratic(1.0).on(0) + White(0.2),
}
each = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)


@each
def test_matrices_are_symmetric_and_positive_semidefinite(kernel):
    K = kernel(X)
    np.testing.assert_allclose(K, K.T, rtol=1e-12)
    assert is_mercer(K), is_mercer(K)
    np.testing.assert_allclose(K.diagonal(), kernel.diagonal(X), rtol=1e-13)


@each
def test_between_other_points_no_two_are_the_same(kernel):
    """White noise is that of a point alone; all else depends on the coordinates only."""
    np.testing.assert_allclose(kernel(X, X) + kernel_of_noise(kernel), kernel(X), rtol=1e-7, atol=1e-10)
    np.testing.assert_allclose(kernel(X, Z), kernel(Z, X).T, rtol=1e-9, atol=1e-12)


def kernel_of_noise(kernel):
    return np.diag(kernel(X).diagonal() - kernel(X, X).diagonal())


@each
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_products_are_those_of_the_matrix(kernel, n_jobs, monkeypatch):
    monkeypatch.setattr("learnable.risk.kernels.base._BLOCK", 60)
    V = RNG.standard_normal((25, 2))
    np.testing.assert_allclose(kernel.products(X, V, n_jobs=n_jobs), kernel(X) @ V, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(kernel.products(Z, V[:, 0], X), kernel(Z, X) @ V[:, 0], rtol=1e-8, atol=1e-8)


@each
def test_gradients_are_those_of_differences(kernel):
    theta, h = kernel.theta, 1e-6
    assert len(theta) == len(kernel.theta_names)
    found = kernel.gradient(X)
    S = RNG.standard_normal((25, 25))
    S = S + S.T
    for j in range(len(theta)):
        step = h * (np.arange(len(theta)) == j)
        numeric = (kernel.with_theta(theta + step)(X) - kernel.with_theta(theta - step)(X)) / (2 * h)
        np.testing.assert_allclose(found[j], numeric, rtol=1e-6, atol=1e-6 * max(1.0, np.abs(numeric).max()))
    weighted = np.array([(S * part).sum() for part in found])
    np.testing.assert_allclose(kernel.weighted_gradient(X, S), weighted, rtol=1e-8, atol=1e-7)
    assert kernel.with_theta(theta) is not kernel and np.allclose(kernel.with_theta(theta)(X), kernel(X))


@each
def test_what_is_held_leaves_theta(kernel):
    held = kernel.hold()
    assert held.theta.size == 0 and held.gradient(X).shape == (0, 25, 25)
    np.testing.assert_array_equal(held(X), kernel(X))
    assert held.formula == kernel.formula and isinstance(kernel.formula, str)


@given(st.integers(0, 10**6), st.floats(1e-3, 1e3), st.integers(1, 4), st.integers(1, 30))
@settings(max_examples=40)
def test_compositions_stay_mercer(seed, scale, d, n):
    rng = np.random.default_rng(seed)
    points = rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-2, 2)
    points[rng.integers(n)] = points[0]
    parts = [Gaussian(scale), DoubleExponential(scale), Matern(scale, nu=2.5), RationalQuadratic(scale, 0.5), Linear()]
    parts += [Polynomial(2, 1.0 / scale**2, 1.0), Periodic(1.0, scale), Constant(scale)]
    a, b, c = (parts[i] for i in rng.integers(len(parts), size=3))
    assert is_mercer(2.0 * a * b + c, points)


@pytest.mark.parametrize("kernel", [Linear(), Polynomial(2, 0.1), Gaussian(2.0), Gaussian(ARD)])
def test_sparse_points_give_the_same(kernel):
    S = np.where(RNG.random((20, 3)) < 0.5, 0.0, RNG.standard_normal((20, 3)))
    np.testing.assert_allclose(kernel(sp.csr_array(S)), kernel(S), atol=1e-12)
    np.testing.assert_allclose(kernel(sp.csc_array(S), sp.csr_array(S[:4])), kernel(S, S[:4]), atol=1e-12)
    np.testing.assert_allclose(kernel.diagonal(sp.csr_array(S)), kernel.diagonal(S), atol=1e-12)


FOREIGN = {
    "rbf": sk.RBF(1.5),
    "rbf of columns": sk.RBF(ARD),
    "matern": sk.Matern(1.2, nu=1.5) + sk.Matern(ARD, nu=2.5) + sk.Matern(2.0, nu=0.5) + sk.Matern(1.0, nu=np.inf),
    "rational": sk.RationalQuadratic(1.3, 0.7),
    "dot": sk.DotProduct(0.5) + sk.DotProduct(0.0),
    "product": sk.ConstantKernel(2.0) * sk.RBF(1.0) + sk.WhiteKernel(0.1),
    "power": sk.Exponentiation(sk.RBF(2.0), 2),
    "odd power": sk.Exponentiation(sk.RBF(2.0), 0.5),
    "another nu": sk.Matern(1.0, nu=0.8),
    "pairwise": sk.PairwiseKernel(gamma=0.1, metric="laplacian"),
}


@pytest.mark.parametrize("foreign", FOREIGN.values(), ids=FOREIGN)
def test_scikit_learns_kernels_are_taken(foreign):
    ours = as_kernel(foreign)
    np.testing.assert_allclose(ours(X), foreign(X), rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(ours(X, Z), foreign(X, Z), rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(ours.diagonal(X), foreign.diag(X), rtol=1e-9)


def test_scikit_learns_periodic_kernel_is_that_of_one_column():
    foreign = sk.ExpSineSquared(1.2, 3.0)
    np.testing.assert_allclose(as_kernel(foreign)(X[:, :1]), foreign(X[:, :1]), rtol=1e-8)


def test_fixed_bounds_hold_a_hyperparameter():
    kernel = as_kernel(
        sk.RBF(2.0, "fixed") * sk.ConstantKernel(3.0) + sk.RationalQuadratic(1.0, 2.0, alpha_bounds="fixed")
    )
    assert kernel.theta_names == ["Constant.value", "RationalQuadratic.length_scale"]


@pytest.mark.parametrize(
    ("name", "theirs"),
    [
        ("linear", lambda: pairwise.linear_kernel(X)),
        ("poly", lambda: pairwise.polynomial_kernel(X, degree=2, gamma=0.1, coef0=0.5)),
        ("rbf", lambda: pairwise.rbf_kernel(X, gamma=0.1)),
        ("sigmoid", lambda: pairwise.sigmoid_kernel(X, gamma=0.1, coef0=0.5)),
        ("laplacian", lambda: pairwise.laplacian_kernel(X, gamma=0.1)),
        ("cosine", lambda: pairwise.cosine_similarity(X)),
    ],
)
def test_names_are_scikit_learns(name, theirs):
    kernel = as_kernel(name, gamma=0.1, degree=2, coef0=0.5)
    np.testing.assert_allclose(kernel(X), theirs(), rtol=1e-8, atol=1e-10)
    assert kernel == as_kernel(name, gamma=0.1, degree=2, coef0=0.5) and hash(kernel) == hash(
        as_kernel(name, gamma=0.1, degree=2, coef0=0.5)
    )


def test_distances_keep_their_digits_far_from_zero():
    far = np.array([[1e8], [1e8 + 1.0]])
    assert Gaussian()(far)[0, 1] == pytest.approx(np.exp(-0.5), rel=1e-6)


def test_functions_and_matrices():
    brownian = FunctionKernel(lambda A, B: np.minimum(A, B.T))
    points = np.array([[1.0], [2.0], [5.0]])
    assert brownian(points).tolist() == [[1.0, 1.0, 1.0], [1.0, 2.0, 2.0], [1.0, 2.0, 5.0]]
    assert brownian.diagonal(points).tolist() == [1.0, 2.0, 5.0]
    K = brownian(points)
    assert (Precomputed()(K) == K).all() and (Precomputed().diagonal(K) == K.diagonal()).all()
    with pytest.raises(DataError, match="shape"):
        FunctionKernel(lambda A, B: np.zeros(3))(points)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Gaussian(0.0),
        lambda: Gaussian([1.0, -1.0]),
        lambda: Gaussian(np.nan),
        lambda: Gaussian.from_gamma(-1.0),
        lambda: Matern(1.0, nu=1.0),
        lambda: Polynomial(0),
        lambda: Polynomial(2, 1.0, -1.0),
        lambda: Gaussian() * -1.0,
        lambda: Gaussian() * "2",
        lambda: Gaussian() ** 0.5,
        lambda: Gaussian().on(),
        lambda: Gaussian().hold("sigma"),
        lambda: (Gaussian() + White()).hold("noise"),
        lambda: Gaussian().with_theta([0.0, 0.0]),
        lambda: Periodic([1.0, 2.0]),
        lambda: Gaussian("wide"),
        lambda: Gaussian([1.0, None]),
        lambda: Scaled(2.0, Gaussian()),
        lambda: Restricted(2.0, [0]),
        lambda: as_kernel("spline"),
        lambda: as_kernel(3),
    ],
)
def test_bad_parameters_are_refused(make):
    with pytest.raises(ParameterError):
        make()


@pytest.mark.parametrize(
    "call",
    [
        lambda: Gaussian()([[np.nan]]),
        lambda: Gaussian()([[1.0]], [[1.0, 2.0]]),
        lambda: Gaussian([1.0, 2.0])([[1.0]]),
        lambda: Gaussian().on(3)(X),
        lambda: Gaussian().products(X, np.zeros(4)),
        lambda: Gaussian()(np.zeros((2, 2, 2))),
    ],
)
def test_bad_points_are_refused(call):
    with pytest.raises(DataError):
        call()


def test_an_array_of_scales_stays_the_users():
    scales = np.array([1.0, 2.0])
    kernel = Gaussian(scales)
    scales[0] = 9.0
    np.testing.assert_array_equal(kernel.length_scale, [1.0, 2.0])


def test_one_far_point_leaves_the_distances_of_the_others():
    X = np.random.default_rng(5).normal(size=(30, 4))
    near = Gaussian(0.5)(X)
    X[3, 1] = 1e18
    others = np.delete(np.arange(30), 3)
    far = Gaussian(0.5)(X)
    np.testing.assert_allclose(far[np.ix_(others, others)], near[np.ix_(others, others)], rtol=1e-12)
    assert (far[3, others] == 0).all()
