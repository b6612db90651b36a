"""Gaussian processes against scikit-learn and GPyTorch: learning hyperparameters, and predictions with deviations.

The marginal likelihood of what a contender found is computed here, by a Cholesky factor in float64. GPyTorch
maximises it by
L-BFGS with a strong Wolfe search in float64, Cholesky factors throughout, until the mean gradient is below 1e-6.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from .harness import OURS, Row, blas_threads
from .linear import SKLEARN

GPYTORCH = "gpytorch"


class Data(NamedTuple):
    X: np.ndarray
    y: np.ndarray
    Q: np.ndarray


def smooth_function(n: int, d: int, queries: int) -> Callable[[bool], Data]:
    """Return a function of four of d columns, with noise."""

    def make(quick: bool) -> Data:
        rng = np.random.default_rng(0)
        rows, m = (200, 500) if quick else (n, queries)
        X, Q = rng.normal(size=(rows, d)), rng.normal(size=(m, d))
        f = np.sin(1.5 * X[:, 0]) + 0.5 * X[:, 1] * X[:, 2] + np.cos(X[:, 3])
        return Data(X, f + 0.2 * rng.normal(size=rows), Q)

    return make


def ours(data: Data) -> Any:
    from learnable.kernel import GaussianProcessRegressor
    from learnable.risk.kernels import Gaussian, White

    kernel = 1.0 * Gaussian(np.ones(data.X.shape[1])) + White(0.1)
    model = GaussianProcessRegressor(kernel).fit(data.X, data.y)
    return SimpleNamespace(theta=model.kernel_.theta, certificate_=model.certificate_)


def scikit_learns(data: Data) -> Any:
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

    kernel = ConstantKernel(1.0) * RBF(np.ones(data.X.shape[1])) + WhiteKernel(0.1)
    return SimpleNamespace(theta=GaussianProcessRegressor(kernel).fit(data.X, data.y).kernel_.theta)


def gpytorchs(data: Data) -> Any:
    gpytorch, torch = import_module(GPYTORCH), import_module("torch")
    torch.set_num_threads(blas_threads())
    X, y = (torch.tensor(a, dtype=torch.float64) for a in (data.X, data.y))

    class Exact(gpytorch.models.ExactGP):  # type: ignore[misc,name-defined]
        def __init__(self, likelihood: Any) -> None:
            super().__init__(X, y, likelihood)
            self.mean_module = gpytorch.means.ZeroMean()
            self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel(ard_num_dims=X.shape[1]))

        def forward(self, x: Any) -> Any:
            return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))

    likelihood = gpytorch.likelihoods.GaussianLikelihood()
    model = Exact(likelihood).double()
    model.covar_module.outputscale, model.covar_module.base_kernel.lengthscale, likelihood.noise = 1.0, 1.0, 0.1
    objective = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
    model.train()
    search = torch.optim.LBFGS(model.parameters(), max_iter=200, tolerance_grad=1e-6, tolerance_change=1e-12,
                               line_search_fn="strong_wolfe")  # fmt: skip

    def closure() -> Any:
        search.zero_grad()
        loss = -objective(model(X), y)
        loss.backward()
        return loss

    with gpytorch.settings.max_cholesky_size(10**6):
        search.step(closure)
    parts = [model.covar_module.outputscale, model.covar_module.base_kernel.lengthscale, likelihood.noise]
    return SimpleNamespace(theta=np.log(np.concatenate([p.detach().numpy().ravel() for p in parts])))


def minus_log_likelihood(found: Any, data: Data) -> dict[str, float]:
    """Return −log p(y) at variance, length scales and noise, given by their logarithms."""
    variance, scales, noise = np.exp(found.theta[0]), np.exp(found.theta[1:-1]), np.exp(found.theta[-1])
    Z = data.X / scales
    square = np.sum((Z[:, None, :] - Z[None, :, :]) ** 2, axis=2) if len(Z) < 500 else _squares(Z)
    L = np.linalg.cholesky(variance * np.exp(-0.5 * square) + (noise + 1e-10) * np.eye(len(Z)))
    half = np.linalg.solve(L, data.y)
    return {"objective": float(0.5 * half @ half + np.log(np.diag(L)).sum() + 0.5 * len(Z) * np.log(2 * np.pi))}


def _squares(Z: np.ndarray) -> np.ndarray:
    from scipy.spatial.distance import cdist

    return cdist(Z, Z, "sqeuclidean")


def fitted_once(library: str) -> Callable[[Data], Any]:
    """Return the prediction of a process that was fitted, with a fixed kernel, in the first call."""
    fitted: dict[int, Any] = {}

    def predict(data: Data) -> SimpleNamespace:
        if id(data) not in fitted:
            fitted[id(data)] = _fixed(library, data)
        mean, std = fitted[id(data)].predict(data.Q, return_std=True)
        return SimpleNamespace(mean=mean, std=std)

    return predict


def _fixed(library: str, data: Data) -> Any:
    kernels = import_module("sklearn.gaussian_process.kernels")
    module = import_module("learnable.kernel" if library == OURS else "sklearn.gaussian_process")
    kernel = kernels.ConstantKernel(4.0) * kernels.RBF([2.0, 4.0, 4.0, 3.0, 9.0]) + kernels.WhiteKernel(0.04)
    return module.GaussianProcessRegressor(kernel, optimizer=None).fit(data.X, data.y)


def difference(found: Any, data: Data) -> dict[str, float]:
    """Return how far means and deviations of some rows are from those of dense solves."""
    own = data.Q[:200]
    model = _fixed(SKLEARN, data)
    mean, cov = model.predict(own, return_cov=True)
    return {"objective": 1.0 + float(max(np.abs(found.mean[:200] - mean).max(),
                                         np.abs(found.std[:200] - np.sqrt(np.diag(cov))).max()))}  # fmt: skip


ROWS = (
    Row(
        "gaussian_process",
        "GaussianProcessRegressor, ARD Gaussian kernel and noise, learned",
        "2k×5",
        smooth_function(2_000, 5, 10),
        {OURS: ours, SKLEARN: scikit_learns, GPYTORCH: gpytorchs},
        minus_log_likelihood,
        targets={SKLEARN: 4.0, GPYTORCH: 1.0},
        tolerance=1e-6,
    ),
    Row(
        "gaussian_process_predict",
        "GaussianProcessRegressor, means and standard deviations",
        "2k×5, 50k new rows",
        smooth_function(2_000, 5, 50_000),
        {OURS: fitted_once(OURS), SKLEARN: fitted_once(SKLEARN)},
        difference,
        targets={SKLEARN: 3.0},
        tolerance=1e-6,
    ),
)
