"""Gaussian processes against scikit-learn and GPyTorch: learning hyperparameters, of few and of many rows, and
predictions with deviations.

The marginal likelihood of what a contender found is computed here, by a Cholesky factor in float64. GPyTorch
maximises it by
L-BFGS with a strong Wolfe search in float64, Cholesky factors throughout, until the mean gradient is below 1e-6.

Of many rows, the bound of Titsias with the same inducing points is maximised by ours and by SciPy's L-BFGS-B on plain
NumPy, both within scikit-learn's bounds. (GPyTorch's `InducingPointKernel` under its L-BFGS ends in NaN there.)
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
NUMPY = "numpy"


class Data(NamedTuple):
    X: np.ndarray
    y: np.ndarray
    Q: np.ndarray


def smooth_function(n: int, d: int, queries: int, quick: tuple[int, int] = (200, 500)) -> Callable[[bool], Data]:
    """Return a function of four of d columns, with noise."""

    few = quick

    def make(quick: bool) -> Data:
        rng = np.random.default_rng(0)
        rows, m = few if quick else (n, queries)
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


def ours_large(data: Data) -> Any:
    from learnable.kernel import GaussianProcessRegressor
    from learnable.risk.kernels import Gaussian, White

    kernel = 4.0 * Gaussian(np.full(data.X.shape[1], 3.0)) + White(0.1)
    model = GaussianProcessRegressor(kernel, inducing=data.Q).fit(data.X, data.y)
    return SimpleNamespace(theta=model.kernel_.theta, certificate_=model.certificate_)


def plain_numpys(data: Data) -> Any:
    """Maximise the bound by SciPy's L-BFGS-B, with dense matrices of all rows and inducing points."""
    from scipy.linalg import solve_triangular
    from scipy.optimize import minimize
    from scipy.spatial.distance import cdist

    X, y, Z = data
    (n, d), m, bounds = X.shape, len(Z), np.log([1e-5, 1e5])

    def function(theta: np.ndarray) -> tuple[float, np.ndarray]:
        variance, scales, noise = np.exp(theta[0]), np.exp(theta[1:-1]), np.exp(theta[-1])
        x, z = X / scales, Z / scales
        P, K = (variance * np.exp(-0.5 * cdist(points, z, "sqeuclidean")) for points in (z, x))
        P += 1e-10 * variance * np.eye(m)
        inverse = solve_triangular(np.linalg.cholesky(P), np.eye(m), lower=True)
        V = K @ inverse.T
        A = V.T @ V / noise
        B = np.linalg.cholesky(np.eye(m) + A)
        half = solve_triangular(B, np.eye(m), lower=True)
        w = half.T @ (half @ (V.T @ y / noise))
        rest = n * variance - np.sum(V * V)
        fit = (y @ y - y @ V @ w) / noise
        F = -0.5 * (n * np.log(2 * np.pi * noise) + fit + rest / noise) - np.log(np.diag(B)).sum()
        G = 0.5 * (np.eye(m) - half.T @ half - np.outer(w, w))
        by_K = ((2 * V @ G + np.outer(y, w)) / noise) @ inverse * K
        by_P = inverse.T @ (G - 0.5 * A) @ inverse * P
        by_scale = [
            np.einsum("ik,ik->", by_K, (x[:, [j]] - z[:, j]) ** 2) + np.sum(by_P * (z[:, [j]] - z[:, j]) ** 2)
            for j in range(d)
        ]
        by_variance = np.sum(by_K) + np.sum(by_P) - 0.5 * n * variance / noise
        inside = np.sum(G * A) + (y @ V @ w - 0.5 * y @ y - 0.5 * n * variance) / noise
        by_noise = -inside - 0.5 * n
        return -F, -np.array([by_variance, *by_scale, by_noise])

    start = np.log([4.0, *[3.0] * d, 0.1])
    found = minimize(
        function, start, jac=True, method="L-BFGS-B", bounds=[tuple(bounds)] * (d + 2),
        options={"ftol": 1e-13, "gtol": 1e-6 * n, "maxiter": 500},
    )  # fmt: skip
    return SimpleNamespace(theta=found.x)


def minus_bound(found: Any, data: Data) -> dict[str, float]:
    """Return −F at variance, length scales and noise, given by their logarithms."""
    from scipy.linalg import solve_triangular
    from scipy.spatial.distance import cdist

    variance, scales, noise = np.exp(found.theta[0]), np.exp(found.theta[1:-1]), np.exp(found.theta[-1])
    X, Z = data.X / scales, data.Q / scales
    P = variance * np.exp(-0.5 * cdist(Z, Z, "sqeuclidean")) + 1e-10 * variance * np.eye(len(Z))
    V = solve_triangular(np.linalg.cholesky(P), variance * np.exp(-0.5 * cdist(Z, X, "sqeuclidean")), lower=True)
    B = np.linalg.cholesky(np.eye(len(Z)) + V @ V.T / noise)
    c = solve_triangular(B, V @ data.y, lower=True) / noise
    n = len(data.y)
    fit = data.y @ data.y / noise - c @ c + (n * variance - np.sum(V * V)) / noise
    return {"objective": float(0.5 * (fit + n * np.log(2 * np.pi * noise)) + np.log(np.diag(B)).sum())}


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
        "gaussian_process_large",
        "GaussianProcessRegressor, 50 inducing points, ARD Gaussian kernel and noise, learned",
        "20k×5",
        smooth_function(20_000, 5, 50, quick=(2_000, 20)),
        {OURS: ours_large, NUMPY: plain_numpys},
        minus_bound,
        targets={NUMPY: 3.0},
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
