"""Scikit-learn's interface of kernels: the same names, numbers and gradients as its own objects."""

import numpy as np
import pytest
import sklearn.gaussian_process.kernels as sk
from sklearn.base import clone

from learnable import GaussianProcessRegressor
from learnable.core.errors import ParameterError
from learnable.risk.kernels import Constant, Gaussian, Matern, White, as_kernel

X = np.random.default_rng(0).normal(size=(12, 2))
PEERS = {
    "rbf": sk.RBF([1.0, 2.0], (1e-2, 1e2)),
    "product": sk.ConstantKernel(2.0, (0.1, 10.0)) * sk.Matern(1.5, (1e-3, 1e3), nu=2.5),
    "sum": sk.ConstantKernel(2.0, "fixed") * sk.RBF(1.0) + sk.WhiteKernel(0.3, (1e-4, 1.0)),
    "periodic": sk.ExpSineSquared(1.0, 2.0, (1e-2, 1e2), (1e-1, 1e1)),
    "power": sk.Exponentiation(sk.RBF(2.0), 2),
    "another order": sk.Matern(1.0, nu=0.8),
    "pairwise": sk.PairwiseKernel(gamma=0.1, metric="laplacian"),
}


@pytest.mark.parametrize("name", PEERS)
def test_the_interface_is_scikit_learns(name):
    theirs, points = PEERS[name], X[:, :1] if name == "periodic" else X
    ours = as_kernel(theirs)
    np.testing.assert_allclose(ours.theta, theirs.theta)
    np.testing.assert_allclose(ours.bounds, theirs.bounds)
    assert ours.n_dims == theirs.n_dims and len(ours.clone_with_theta(theirs.theta + 0.5).theta) == theirs.n_dims
    assert [h.name for h in ours.hyperparameters] == [h.name for h in theirs.hyperparameters]
    assert [h.fixed for h in ours.hyperparameters] == [h.fixed for h in theirs.hyperparameters]
    np.testing.assert_allclose(ours.diag(points), theirs.diag(points))
    found, expected = ours(points, eval_gradient=True), theirs(points, eval_gradient=True)
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(found[1], expected[1], rtol=1e-5, atol=1e-7)


def test_parts_and_parameters_have_both_names():
    kernel = as_kernel(PEERS["sum"])
    assert kernel.k1.k1.constant_value == kernel.left.left.value == 2.0
    assert kernel.k2.noise_level == 0.3 and kernel.k2.noise_level_bounds == (1e-4, 1.0)
    assert kernel.k1.k1.constant_value_bounds == "fixed" and kernel.k2.hyperparameter_noise_level.name == "noise_level"
    params = kernel.get_params()
    assert params["k2__noise_level"] == 0.3 and params["k1__k2__length_scale"] == 1.0
    assert (2.0 * Gaussian(3.0)).get_params()["k1__constant_value"] == 2.0
    with pytest.raises(AttributeError):
        kernel.k2.length_scale  # noqa: B018


@pytest.mark.parametrize("kernel", [Constant(2.0) * Gaussian(1.0) + White(0.1), 2.0 * Matern(1.0, 1.5) + White(0.1)])
def test_parameters_inside_a_model_can_be_set_and_clones_are_free(kernel):
    model = GaussianProcessRegressor(kernel)
    twin = clone(model).set_params(kernel__k1__k2__length_scale=5.0, kernel__k2__noise_level_bounds="fixed")
    assert twin.kernel.k1.k2.length_scale == 5.0 and len(twin.kernel.theta) == len(kernel.theta) - 1
    assert kernel.k1.k2.length_scale == 1.0
    with pytest.raises(ParameterError, match="Invalid parameter"):
        twin.set_params(kernel__nothing=1.0)


def test_bounds_are_stated_checked_and_kept():
    kernel = Gaussian([1.0, 2.0]).within(length_scale=[(0.1, 10.0), (0.5, 4.0)])
    np.testing.assert_allclose(np.exp(kernel.with_theta([0.0, 0.0]).bounds), [[0.1, 10.0], [0.5, 4.0]])
    for bad in ({"length_scale": (2.0, 1.0)}, {"nothing": (1.0, 2.0)}, {"length_scale": [(1.0, 2.0)] * 3}):
        with pytest.raises(ParameterError):
            kernel.within(**bad)
