r"""Normal rows with few hidden factors, x = μ + Wz + noise: the two steps of EM, with values missing or not.

With z ~ N(0, I_k) and noise of variances ψ (equal in probabilistic PCA, one for each column in factor analysis), a row
whose observed columns are o has x_o ~ N(μ_o, W_oW_oᵀ + Ψ_o). The E-step needs M = I + W_oᵀΨ_o⁻¹W_o:

    E[z | x_o] = M⁻¹W_oᵀΨ_o⁻¹(x_o − μ_o),    cov[z | x_o] = M⁻¹.

With z̃ = (z, 1), the M-step regresses every column j on the factors, over the rows where it was observed:
(W_j, μ_j) = (Σ x_ij E[z̃ᵢ])ᵀ (Σ E[z̃ᵢz̃ᵢᵀ])⁻¹. Missing values are integrated out, so the likelihood is that of what was
observed, and never falls. Without missing values all sums follow from the covariance S of the rows: one pass serves all
steps. There W is known, too, given the noise: with the largest eigenpairs of Ψ^{−½}SΨ^{−½} = VΛVᵀ the likelihood is
greatest at W = Ψ^{½}V(Λ − I)₊^{½}. Putting it there after every step raises the likelihood further (ECME).

References: D. Rubin and D. Thayer, EM algorithms for ML factor analysis, Psychometrika 47 (1982), 69–76; M. Tipping and
C. Bishop, Probabilistic principal component analysis, JRSS B 61 (1999), 611–622 (section 4.1 on missing values); C. Liu
and D. Rubin, The ECME algorithm, Biometrika 81 (1994), 633–648.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from ..core.errors import DataError
from ..core.estimator import Run
from ..data.blocks import map_reduce
from ..solvers.em import EMResult, em

Array = NDArray[np.float64]

#: Least noise as a share of a column's variance: below it the density of a row is a matter of rounding.
FLOOR = 1e-9


class Factors(NamedTuple):
    """Parameters of the model."""

    mean: Array  #: (d,), μ
    loadings: Array  #: (d, k), W
    noise: Array  #: (d,), ψ


class Scatter(NamedTuple):
    """What all complete rows say: a block of rows in one."""

    weight: float  #: W, the number of rows or the sum of their weights
    mean: Array  #: (d,), x̄
    covariance: Array  #: (d, d), Σ w(x − x̄)(x − x̄)ᵀ/W


class FactorProblem:
    """The two steps, for `solvers.em`."""

    def __init__(self, isotropic: bool, floor: Array, complete: Scatter | None = None) -> None:
        self.isotropic = isotropic
        self.floor = floor
        self.complete = complete

    def expectation(self, block: Any, p: Factors) -> tuple[tuple[Any, ...], float]:
        """Return Σ E[z̃z̃ᵀ] for each column (d, k+1, k+1), Σ (x − μ)E[z̃]ᵀ, Σ (x − μ)², Σ w, and the log-likelihood.

        Without gaps the first is the same for all columns, and of shape (k+1, k+1).
        """
        if isinstance(block, Scatter):
            return _expect_scatter(block, p)
        return _expect_rows(block.X, block.weight, p)

    def maximisation(self, statistics: tuple[Any, ...], p: Factors) -> Factors:
        """Return the regression of every column on the factors, and what it leaves as noise."""
        products, cross, square, weight = statistics
        shared = products.ndim == 2
        found = (
            np.linalg.solve(products, cross.T).T if shared else np.linalg.solve(products, cross[:, :, None])[:, :, 0]
        )
        left = np.maximum(square - (found * cross).sum(axis=1), 0.0)
        noise = np.full(len(left), left.sum() / weight.sum()) if self.isotropic else left / weight
        noise = np.maximum(noise, self.floor)
        if self.complete is not None:
            return best_factors(self.complete, noise, p.loadings.shape[1])
        return Factors(p.mean + found[:, -1], np.ascontiguousarray(found[:, :-1]), noise)

    def log_prior(self, p: Factors) -> float:
        """Return zero: there is no prior."""
        return 0.0


class Posterior(NamedTuple):
    """What rows say of their factors."""

    seen: NDArray[np.bool_]  #: (n, d), what was observed
    away: Array  #: (n, d), x − μ, zero where it was not
    patterns: Array  #: (m, d), the different rows of `seen`
    which: NDArray[np.int64]  #: (n,), which of them each row has
    spread: Array  #: (m, k, k), cov[z]
    means: Array  #: (n, k), E[z]
    log_density: Array  #: (n,), of what each row shows


def posterior(X: Array, p: Factors) -> Posterior:
    """Return the law of the factors of each row, given what it shows."""
    d, k = p.loadings.shape
    seen = ~np.isnan(X)
    patterns, which = _patterns_of(seen)
    away = np.where(seen, X - p.mean, 0.0)
    scaled = p.loadings / p.noise[:, None]
    outer = (p.loadings[:, :, None] * scaled[:, None, :]).reshape(d, k * k)
    M = (patterns @ outer).reshape(-1, k, k) + np.eye(k)
    spread = np.asarray(np.linalg.inv(M), dtype=np.float64)
    right = away @ scaled
    z = right @ spread[0] if len(patterns) == 1 else np.einsum("nij,nj->ni", spread[which], right)
    log_det = np.linalg.slogdet(M)[1] + patterns @ np.log(2.0 * np.pi * p.noise)
    fit = (away**2 / p.noise).sum(axis=1) - (right * z).sum(axis=1)
    return Posterior(seen, away, patterns, which, spread, z, -0.5 * (log_det[which] + fit))


def filled_rows(X: Array, p: Factors) -> Array:
    """Return rows with their gaps filled by the mean of what is missing, given what was observed."""
    return np.where(np.isnan(X), p.mean + posterior(X, p).means @ p.loadings.T, X)


def _expect_rows(X: Array, weight: Array | None, p: Factors) -> tuple[tuple[Any, ...], float]:
    d, k = p.loadings.shape
    w = np.ones(len(X)) if weight is None else weight
    found = posterior(X, p)
    m = len(found.patterns)
    lifted = np.column_stack([found.means, np.ones(len(X))])
    weighted = lifted * w[:, None]
    sums = np.zeros((m, k + 1, k + 1))
    if m == 1:
        sums[0] = lifted.T @ weighted
    else:
        np.add.at(sums, found.which, weighted[:, :, None] * lifted[:, None, :])
    sums[:, :k, :k] += np.bincount(found.which, w, m)[:, None, None] * found.spread
    products = (found.patterns.T @ sums.reshape(m, -1)).reshape(d, k + 1, k + 1)
    statistics = (products, found.away.T @ weighted, w @ found.away**2, w @ found.seen)
    return statistics, float(w @ found.log_density)


def _patterns_of(seen: NDArray[np.bool_]) -> tuple[Array, NDArray[np.int64]]:
    """Return the different rows of a table of truth values, and which of them each row is."""
    if seen.all():
        return np.ones((1, seen.shape[1])), np.zeros(len(seen), dtype=np.int64)
    packed = np.ascontiguousarray(np.packbits(seen, axis=1))
    keys = packed.view(np.dtype((np.void, packed.shape[1]))).ravel()
    _, first, which = np.unique(keys, return_index=True, return_inverse=True)
    return seen[first].astype(np.float64), which


def _expect_scatter(block: Scatter, p: Factors) -> tuple[tuple[Any, ...], float]:
    d, k = p.loadings.shape
    n = block.weight
    offset = block.mean - p.mean
    S = block.covariance + np.outer(offset, offset)
    scaled = p.loadings / p.noise[:, None]
    M = np.eye(k) + p.loadings.T @ scaled
    root = cho_factor(M, lower=True, check_finite=False)
    G = cho_solve(root, scaled.T, check_finite=False)
    SG = S @ G.T
    products = np.zeros((k + 1, k + 1))
    products[:k, :k] = cho_solve(root, np.eye(k), check_finite=False) + G @ SG
    products[:k, k] = products[k, :k] = G @ offset
    products[k, k] = 1.0
    cross = np.column_stack([SG, offset])
    trace = float((np.diag(S) / p.noise).sum() - (scaled * SG).sum())
    log_det = float(2.0 * np.log(np.diag(root[0])).sum() + np.log(2.0 * np.pi * p.noise).sum())
    statistics = (n * products, n * cross, n * np.diag(S).copy(), np.full(d, n))
    return statistics, -0.5 * n * (log_det + trace)


def fit_factors(
    owner: str,
    blocks: Any,
    start: Factors,
    floor: Array,
    *,
    isotropic: bool,
    weight: float,
    tol: float,
    max_iter: int,
    n_jobs: int | None,
    run: Run,
) -> EMResult[Factors]:
    """Climb from a start to a local maximum of the likelihood, two steps and an extrapolation at a time.

    `blocks` are those of a table, or a list of one `Scatter`.
    """
    d, k = start.loadings.shape
    complete = blocks[0] if isinstance(blocks, list) else None

    def pack(p: Factors) -> Array:
        if complete is not None:  # the rest follows from the noise
            return np.log(p.noise)
        return np.concatenate([p.mean, p.loadings.ravel(), np.log(p.noise)])

    def unpack(x: Array) -> Factors | None:
        if not np.isfinite(x).all():
            return None
        noise = np.maximum(np.exp(np.minimum(x[-d:], 700.0)), floor)
        if complete is not None:
            return best_factors(complete, noise, k)
        return Factors(x[:d], x[d : d + d * k].reshape(d, k), noise)

    return em(
        FactorProblem(isotropic, floor, complete),
        blocks,
        [start],
        tol=tol * weight,
        max_iter=max_iter,
        n_jobs=n_jobs,
        flag=run.flag,
        progress=run.progress,
        rounding=1e-9 * weight,
        pack=pack,
        unpack=unpack,
        owner=owner,
    )


def start_of_gaps(owner: str, blocks: Any, n_jobs: int | None) -> Scatter:
    """Return the moments of rows whose gaps are filled with the column means."""

    def first(block: Any) -> tuple[Array, Array, float]:
        w = np.ones(len(block.X)) if block.weight is None else block.weight
        return w @ np.nan_to_num(block.X, nan=0.0), w @ ~np.isnan(block.X), float(w.sum())

    def add(a: Any, b: Any) -> Any:
        return tuple(x + y for x, y in zip(a, b, strict=True))

    total, count, weight = map_reduce(blocks, first, add, n_jobs=n_jobs)
    if not (count > 0).all():
        raise DataError(
            f"{owner}: column {int((count > 0).argmin())} has no value at all; drop it, or impute it with a constant."
        )
    mean = total / count

    def second(block: Any) -> Array:
        w = np.ones(len(block.X)) if block.weight is None else block.weight
        away = np.where(np.isnan(block.X), 0.0, block.X - mean)
        return np.asarray(away.T @ (away * w[:, None]))

    scatter = map_reduce(blocks, second, lambda a, b: a + b, n_jobs=n_jobs)
    # A column's own variance is that of its observed values; the filled ones would make it smaller.
    found = scatter / weight
    grow = np.sqrt(weight / count)
    return Scatter(weight, mean, found * grow * grow[:, None])


def best_factors(scatter: Scatter, noise: Array, k: int) -> Factors:
    """Return the loadings of greatest likelihood given the noise."""
    root = np.sqrt(noise)
    values, vectors = np.linalg.eigh(scatter.covariance / root / root[:, None])
    size = np.sqrt(np.maximum(values[::-1][:k] - 1.0, 0.0))
    return Factors(scatter.mean, vectors[:, ::-1][:, :k] * size * root[:, None], noise)


def principal_factors(scatter: Scatter, k: int, floor: float) -> Factors:
    """Return the probabilistic principal components of a covariance: the maximum for complete rows."""
    values, vectors = np.linalg.eigh((scatter.covariance + scatter.covariance.T) / 2.0)
    d = len(values)
    noise = max(float(values[: d - k].mean()) if k < d else 0.0, floor)
    size = np.sqrt(np.maximum(values[::-1][:k] - noise, 0.0))
    return Factors(scatter.mean, vectors[:, ::-1][:, :k] * size, np.full(d, noise))
