"""Where a Gaussian mixture starts, and its prior.

A start is one M-step from responsibilities: those of k-means, of K random rows alone, or random ones. All are drawn
from the same rows, whether the table lies in memory, in files or on Dask (`lloyd.py`).
"""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..core import AnyArray, DataError, ParameterError
from ..data.blocks import Block, add_each, map_reduce
from ..data.sample import MOST_ROWS, stride_for
from .lloyd import plus_plus, rows_of
from .normals import Mixture, NormalMixture, Prior, whitening_factors


def check_enough_rows(owner: str, n_rows: int, K: int, name: str = "n_clusters") -> None:
    """Raise DataError unless there are as many rows as clusters."""
    if n_rows < K:
        raise DataError(
            f"{owner}: Expected n_samples >= {name}: n_samples={n_rows} should be >= {name}={K}. Pass more rows, or "
            f"ask for at most {n_rows}."
        )


_PRIOR_NAMES = {"alpha", "dof", "scale", "mean", "kappa"}


def covariances_of(kind: str, K: int, d: int) -> tuple[int, ...]:
    """Return the shape of the covariances."""
    return {"full": (K, d, d), "tied": (d, d), "diag": (K, d), "spherical": (K,)}[kind]


def sample_rows(blocks: Any, n_rows: int) -> tuple[AnyArray, AnyArray]:
    """Return the rows that starts are drawn from, and their weights."""
    X, _, weight = blocks.every(stride_for(n_rows, MOST_ROWS))
    return X, np.ones(X.shape[0]) if weight is None else weight


def random_rows(X: Any, K: int, rng: np.random.Generator, weight: AnyArray | None = None) -> tuple[AnyArray, AnyArray]:
    """Draw K different rows, with probability proportional to their weights; return them and their numbers."""
    n = X.shape[0]
    share = None if weight is None else weight / weight.sum()
    chosen = rng.choice(n, size=K, replace=False, p=share)
    return rows_of(X, chosen), chosen


def start_mixture(
    model: Any,
    problem: NormalMixture,
    X: AnyArray,
    weight: AnyArray,
    known: AnyArray | None,
    rng: np.random.Generator,
    seconds: float | None = None,
) -> Mixture:
    """Return the parameters that one M-step makes of a model's starting responsibilities, or that were given."""
    K = model.n_components
    d = X.shape[1]
    if all(given is not None for given in (model.weights_init, model.means_init, model.precisions_init)):
        return _with_given(model, Mixture(np.empty(0), np.empty(0), np.empty(0)), K, d)
    X = np.asarray(X, dtype=np.float64)
    filled = _fill(X)
    r = responsibilities(model.init_params, filled, weight, K, rng, seconds)
    if known is not None and len(known) == len(X):
        rows = np.flatnonzero(known >= 0)
        r[rows] = np.eye(K)[known[rows]]
    scale = problem.weight / weight.sum()  # the rows may be a sample
    mixture = from_responsibilities(problem, filled, r * weight[:, None] * scale)
    return _with_given(model, mixture, K, d)


def default_prior(blocks: Any, K: int, kind: str, n_jobs: int | None) -> Prior:
    """Return Fraley and Raftery's prior: weak, in the scale of the data."""
    mean, cov = table_moments(blocks, n_jobs)
    d = len(mean)
    if not (np.diag(cov) > 0).all():  # a constant column has no scale of its own
        cov = cov + np.diag(np.where(np.diag(cov) > 0, 0.0, max(1e-12, 1e-6 * float(np.diag(cov).max()))))
    if kind in ("full", "tied"):
        return Prior(1.0, d + 2.0, cov / K ** (2 / d), mean, 0.01)
    return Prior(1.0, d + 2.0, np.diag(cov) / K ** (2 / d), mean, 0.01)


def table_moments(blocks: Any, n_jobs: int | None) -> tuple[AnyArray, AnyArray]:
    """Return the mean and the covariance of all rows, over the entries that are there."""
    n, total = map_reduce(blocks, _column_sums, add_each, n_jobs=n_jobs)
    mean = total / n
    weight, squares = map_reduce(blocks, partial(_squares, mean), add_each, n_jobs=n_jobs)
    return mean, squares / np.where(weight > 0, weight, 1.0)


def given_prior(owner: str, prior: dict[str, Any], d: int) -> Prior:
    """Return a prior from its parameters by name."""
    unknown = set(prior) - _PRIOR_NAMES
    if unknown:
        names = ", ".join(sorted(_PRIOR_NAMES))
        raise ParameterError(f"{owner}: prior must have keys among {names}; got {sorted(unknown)[0]!r}.")
    alpha = float(prior.get("alpha", 1.0))
    kappa = float(prior.get("kappa", 0.0))
    if not alpha >= 1 or not kappa >= 0:
        raise ParameterError(f"{owner}: prior must have alpha >= 1 and kappa >= 0; got {alpha} and {kappa}.")
    if ("dof" in prior) != ("scale" in prior) or (kappa > 0) != ("mean" in prior):
        raise ParameterError(f"{owner}: prior must give dof with scale, and mean with kappa.")
    scale = mean = None
    if "scale" in prior:
        scale = np.asarray(prior["scale"], dtype=np.float64)
        scale = np.full(d, float(scale)) if scale.ndim == 0 else scale
        if scale.shape not in ((d,), (d, d)) or not np.isfinite(scale).all():
            raise ParameterError(f"{owner}: prior's scale must be a number, ({d},) or ({d}, {d}); got {scale.shape}.")
    if "mean" in prior:
        mean = np.broadcast_to(np.asarray(prior["mean"], dtype=np.float64), d).copy()
    return Prior(alpha, float(prior["dof"]) if "dof" in prior else None, scale, mean, kappa)


def seconds_left(max_seconds: float | None, run: Any) -> float | None:
    """Return what a start may take of the time of a fit."""
    return None if max_seconds is None else max(1e-3, max_seconds - run.seconds)


def responsibilities(
    how: str, X: AnyArray, weight: AnyArray, K: int, rng: np.random.Generator, seconds: float | None = None
) -> AnyArray:
    """Return what each component starts with of each row, (n, K), after `seconds` at most."""
    if how == "random":
        r = rng.random((len(X), K))
        return r / r.sum(axis=1, keepdims=True)
    if how == "kmeans":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            from .kmeans import KMeans  # here: it imports this file

            kmeans = KMeans(K, random_state=rng, max_iter=50, max_seconds=seconds)
            labels = kmeans.fit(X, sample_weight=weight).labels_
        r = np.eye(K)[labels]
        r[:, ~r.any(axis=0)] = 1.0 / K  # of fewer different rows than components, some would have no row to begin with
        return r
    rows = (plus_plus if how == "k-means++" else random_rows)(X, K, rng, weight)[1]
    r = np.zeros((len(X), K))
    r[rows, np.arange(K)] = 1.0
    return r


def from_responsibilities(problem: Any, X: AnyArray, r: AnyArray) -> Any:
    """Take one M-step: moments about the mean of all rows, with the given responsibilities."""
    K = problem.K
    d = problem.d
    counts = r.sum(axis=0)
    some = np.where(counts > 0, counts, 1.0)
    means = (r.T @ X) / some[:, None]
    matrix = problem.kind in ("full", "tied")
    second = np.zeros((K, d, d) if matrix else (K, d))
    for k in range(K):
        mine = r[:, k] > 0
        gaps = X[mine] - means[k]
        w = r[mine, k]
        second[k] = (gaps.T * w) @ gaps if matrix else w @ gaps**2
    centred = Mixture(np.full(K, 1 / K), means, np.empty(0))
    return problem.maximisation((counts, np.zeros((K, d)), second), centred)


def _with_given(model: Any, mixture: Mixture, K: int, d: int) -> Mixture:
    owner = type(model).__name__
    kind = model.covariance_type
    given = {"weights": model.weights_init, "means": model.means_init, "covariances": model.precisions_init}
    shapes = {"weights": (K,), "means": (K, d), "covariances": covariances_of(kind, K, d)}
    for name, values in given.items():
        if values is None:
            continue
        array = np.array(values, dtype=np.float64)
        if array.shape != shapes[name]:
            label = "precisions" if name == "covariances" else name
            what = f"{kind} precision" if name == "covariances" else name
            raise ParameterError(
                f"{owner}: {label}_init must have shape {shapes[name]}. The parameter '{what}' should have the shape "
                f"of {shapes[name]}, but got {array.shape}."
            )
        if name == "weights":
            if (array < 0).any() or (array > 1).any():
                raise ParameterError(
                    f"{owner}: The parameter 'weights' should be in the range [0, 1], but got max value "
                    f"{array.min():.5f}, min value {array.max():.5f}"
                )
            if not np.isclose(array.sum(), 1.0):
                raise ParameterError(
                    f"{owner}: weights_init must sum to one. The parameter 'weights' should be normalized, but got "
                    f"sum(weights) = {array.sum():.5f}"
                )
            array = array / array.sum()
        if name == "covariances":
            array = _inverse(owner, array, kind)
        mixture = mixture._replace(**{name: array})
    return mixture


def _inverse(owner: str, precisions: AnyArray, kind: str) -> AnyArray:
    if kind in ("diag", "spherical"):
        if not (precisions > 0).all():
            raise ParameterError(f"{owner}: The parameter '{kind} precision' should be positive")
        return 1 / precisions
    d = precisions.shape[-1]
    matrices = precisions.reshape(-1, d, d)
    symmetric = np.allclose(matrices, np.swapaxes(matrices, 1, 2))
    if not symmetric or not (np.linalg.eigvalsh(matrices) > 0).all():
        raise ParameterError(f"{owner}: The parameter '{kind} precision' should be symmetric, positive-definite")
    roots = whitening_factors(owner, precisions.reshape(-1, d, d))
    return (np.swapaxes(roots, 1, 2) @ roots).reshape(precisions.shape)


def _fill(X: AnyArray) -> AnyArray:
    """Return X with the means of the columns in place of NaN: good enough for a start."""
    gaps = np.isnan(X)
    if not gaps.any():
        return X
    counts = (~gaps).sum(axis=0)
    means = np.where(gaps, 0.0, X).sum(axis=0) / np.maximum(counts, 1)
    return np.where(gaps, means, X)


def _column_sums(block: Block) -> tuple[AnyArray, AnyArray]:
    seen = ~np.isnan(block.X)
    w = np.ones(len(block.X)) if block.weight is None else block.weight
    return np.maximum(w @ seen, 1e-300), w @ np.where(seen, block.X, 0.0)


@np.errstate(over="ignore", invalid="ignore")  # the caller looks at the result
def _squares(mean: AnyArray, block: Block) -> tuple[AnyArray, AnyArray]:
    """Return products of the deviations from the means, over the pairs of entries that are there, and their weights."""
    seen = ~np.isnan(block.X)
    w = np.ones(len(block.X)) if block.weight is None else block.weight
    gaps = np.where(seen, block.X - mean, 0.0)
    return (seen.T * w) @ seen.astype(float), (gaps.T * w) @ gaps
