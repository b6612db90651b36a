"""Densities against SciPy's; the error is that of sampled rows, computed here by solving with the covariance."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .harness import OURS, Row

SCIPY = "scipy"


class Points(NamedTuple):
    X: np.ndarray
    mean: np.ndarray
    cov: np.ndarray


def normal_points(quick: bool) -> Points:
    """Rows of a correlated normal distribution."""
    n, d = (20_000, 20) if quick else (1_000_000, 20)
    rng = np.random.default_rng(0)
    root = rng.standard_normal((d, d))
    mean = rng.standard_normal(d)
    return Points(rng.standard_normal((n, d)) @ root.T + mean, mean, root @ root.T + 0.1 * np.eye(d))


def ours(points: Points) -> Any:
    from learnable.probability import MultivariateNormal

    return MultivariateNormal(points.mean, points.cov).logpdf(points.X)


def scipys(points: Points) -> Any:
    from scipy.stats import multivariate_normal

    return multivariate_normal(points.mean, points.cov).logpdf(points.X)


def density_error(found: Any, points: Points) -> dict[str, float]:
    """Return the minus mean log-density of all rows, and the largest error on a thousandth of them."""
    rows = slice(None, None, 997)
    away = points.X[rows] - points.mean
    squares = np.einsum("ij,ij->i", away, np.linalg.solve(points.cov, away.T).T)
    constant = points.mean.size * np.log(2.0 * np.pi) + np.linalg.slogdet(points.cov)[1]
    return {
        "objective": -float(np.mean(found)),
        "error": float(np.max(np.abs(found[rows] + 0.5 * (squares + constant)))),
    }


ROWS = (
    Row(
        "multivariate_normal_logpdf",
        "MultivariateNormal.logpdf",
        "1M×20",
        normal_points,
        {OURS: ours, SCIPY: scipys},
        density_error,
        targets={SCIPY: 3.0},
        tolerance=1e-10,
        limits={"error": 1e-8},
    ),
)
