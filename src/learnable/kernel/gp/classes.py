r"""Several classes of a Gaussian process: the searches that all ways share, pairs that vote, and the joint softmax.

Functions of a GaussianProcessClassifier, which holds what they find.

Reference: C. Rasmussen and C. Williams, Gaussian Processes for Machine Learning, 2006, §3.5 and §5.5.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from ...core.errors import DataError, ModelFileError
from ...core.estimator import Certificate, Run
from ...core.threads import interruptible
from ...data.blocks import map_reduce
from ...meta.one_vs_one import count_votes
from ...risk.kernels.base import Kernel
from .laplace import Labels
from .likelihood import small_blas
from .posterior import chosen_kernel, inverse_factor, noise_free
from .search import Pace, climb, log_bounds, random_starts, share_of
from .softmax import SoftmaxObjective, averaged_softmax, find_joint_mode, joint_latent, one_hot

Array = NDArray[np.float64]

_BLOCK = 2**19  # kernel values of one block: 4 MB
_ROWS = 64  # of which the softmax is averaged at a time


class Kernels(list[Kernel]):
    """The kernels of several processes, with what scikit-learn's `CompoundKernel` has."""

    @property
    def kernels(self) -> list[Kernel]:
        """The kernels."""
        return list(self)

    @property
    def theta(self) -> Array:
        """Their hyperparameters' logarithms, one kernel after the other."""
        return np.concatenate([kernel.theta for kernel in self])

    @property
    def bounds(self) -> Array:
        """The bounds of θ."""
        return np.concatenate([kernel.bounds for kernel in self])

    @property
    def n_dims(self) -> int:
        """The length of θ."""
        return len(self.theta)


class Learned(NamedTuple):
    """What a search found."""

    kernel: Kernel
    measure: float  #: the relative gradient there
    n_iter: int
    mode: Any = None  #: the mode, as far as it was found when the time was up; None if it is to be found


def learn(
    model: Any, problem: Callable[..., Any], kernel: Kernel, data: Labels, run: Run, seconds: float | None
) -> Learned:
    """Return the kernel of greatest approximate marginal likelihood.

    Parameters
    ----------
    model : GaussianProcessClassifier
        Whose parameters count.
    problem : function
        (kernel, data, bounds, max_iter=, stop=) → objective.
    kernel : Kernel
        Where the search starts.
    data : Labels
        All rows.
    run : Run
        The fit.
    seconds : float or None
        What the search may take.
    """
    if model.optimizer is None or len(kernel.theta) == 0:
        return Learned(kernel, 0.0, 1)
    bounds = log_bounds(kernel)
    if callable(model.optimizer):
        objective = problem(kernel, data, bounds, max_iter=model.max_iter_predict)

        def function(theta: Array, eval_gradient: bool = True) -> Any:
            found = objective.evaluate(np.asarray(theta))
            return (found.value, found.gradient) if eval_gradient else found.value

        theta = np.clip(model.optimizer(function, kernel.theta, bounds=bounds)[0], *bounds.T)
        return Learned(kernel.with_theta(theta), objective.evaluate(theta).measure, 1)
    seed = model.random_state
    seed = int(seed.randint(2**31)) if isinstance(seed, np.random.RandomState) else seed
    owner, pace = type(model).__name__, Pace(run, len(data.y), seconds)
    starts = [kernel.theta, *random_starts(owner, kernel, bounds, model.n_restarts_optimizer, seed)]
    best, n_iter = None, 0
    objectives: list[Any] = []

    def on_rows(some: Labels) -> Any:
        made = problem(kernel, some, bounds, max_iter=model.max_iter_predict, stop=pace.over)
        if len(some.y) == len(data.y):
            objectives.append(made)
        return pace.timed(made)

    for start in starts:
        found = climb(
            on_rows, data, start, bounds,
            tol=model.tol, max_iter=model.max_iter, progress=run.progress, stop=pace,
        )  # fmt: skip
        n_iter += found.n_iter
        best = found if best is None or found.value < best.value else best
        if pace():
            break
    mode = objectives[0].unfinished if len(starts) == 1 or len(objectives) == 1 else None
    return Learned(kernel.with_theta(best.x), best.measure, n_iter, mode)  # type: ignore[union-attr]


def start_kernels(model: Any, run: Run, count: int) -> list[Kernel]:
    """Return where the searches start: at the kernel given, or with `warm_start` at those of the last fit."""
    given = chosen_kernel(model.kernel)
    found: list[Any] = getattr(run.previous, "kernels_", [None]) if model.warm_start else [None]
    same = len(found) == count and all(isinstance(k, Kernel) and k.theta_names == given.theta_names for k in found)
    return [given.with_theta(k.theta) for k in found] if same else [given] * count


def not_mercer(model: Any, kernel: Kernel) -> DataError:
    """Return the error of a kernel that is none."""
    return DataError(f"{type(model).__name__}: the kernel {kernel.formula} is not positive semidefinite on these rows.")


# -- one process a pair ------------------------------------------------------------------------------------------------


def fit_pairs(model: Any, X: Array, codes: NDArray[Any], run: Run) -> Certificate:
    """Fit a classifier of two classes to each pair; in time that is left, each."""
    pairs = list(combinations(range(model.n_classes_), 2))
    starts = start_kernels(model, run, len(pairs))
    model.estimators_ = []
    for number, ((first, second), start) in enumerate(zip(pairs, starts, strict=True)):
        rows = (codes == first) | (codes == second)
        left = share_of(model, run, len(pairs) - number)
        left = None if left is None else max(left, 1e-3)
        one = clone(model).set_params(multi_class="one_vs_rest", warm_start=True, max_seconds=left)
        one.kernels_ = [start]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the certificate of all says it
            one.fit(X[rows], (codes[rows] == second).astype(np.int64))
        model.estimators_.append(one.set_params(warm_start=model.warm_start, max_seconds=model.max_seconds))
    model.kernels_ = [one.kernels_[0] for one in model.estimators_]
    model.n_iter_ = sum(one.n_iter_ for one in model.estimators_)
    model.log_marginal_likelihood_value_ = float(np.mean([m.log_marginal_likelihood_value_ for m in model.estimators_]))
    value = max(one.certificate_.value for one in model.estimators_)
    return Certificate("stationarity", value, model.tol, n_iter=model.n_iter_)


def votes_of_pairs(model: Any, X: Any) -> Array:
    """Return the votes of all pairs for each class; sums of probabilities beyond one half decide between equals.

    scikit-learn sums the probabilities themselves, which favours later classes.
    """
    return count_votes(
        np.column_stack([one.predict_proba(X)[:, 1] - 0.5 for one in model.estimators_]), model.n_classes_
    )


# -- all processes together --------------------------------------------------------------------------------------------


def fit_softmax(model: Any, X: Array, codes: NDArray[Any], run: Run) -> Certificate:
    """Fit one kernel to the joint likelihood of all classes."""
    data, C = Labels(X, codes.astype(np.float64)), model.n_classes_
    with small_blas(len(X)):
        problem = partial(SoftmaxObjective, n_classes=C)
        found = learn(model, problem, start_kernels(model, run, 1)[0], data, run, share_of(model, run, 1))
        mode = found.mode
        if mode is None:
            K, y = found.kernel(X), one_hot(data.y, C)
            mode = find_joint_mode(K, y, None, model.max_iter_predict, run.should_stop)
    if mode is None:
        raise not_mercer(model, found.kernel)
    model.kernels_, model.f_, model.g_, model.L_, model.M_ = [found.kernel], mode.f, mode.g, mode.L, mode.M
    model.log_marginal_likelihood_value_, model.n_iter_ = mode.value, max(1, found.n_iter)
    return Certificate("stationarity", max(found.measure, mode.residual), model.tol, n_iter=model.n_iter_)


def latent_softmax(model: Any, points: Array) -> tuple[Array, Array]:
    """Return means (n, C) and covariances (n, C, C) of the processes at some points."""
    C, free = model.n_classes_, noise_free(model.kernels_[0]) or model.kernels_[0]
    inverses = np.array([interruptible(inverse_factor, L) for L in model.L_])
    inverse_M = interruptible(inverse_factor, model.M_)
    e = np.exp(model.f_ - model.f_.max(axis=0))
    root = np.sqrt(e / e.sum(axis=0))
    mean, covariance = np.empty((len(points), C)), np.empty((len(points), C, C))

    def fill(rows: slice) -> None:
        K = free._between(points[rows], model.X_train_)
        mean[rows], below = joint_latent(K, model.g_, root, inverses, inverse_M)
        covariance[rows] = model.kernels_[0].diagonal(points[rows])[:, None, None] * np.eye(C) - below

    map_reduce(row_slices(len(points), C * len(model.X_train_)), fill, lambda a, b: None, n_jobs=model.n_jobs)
    return mean, covariance


def probabilities_softmax(model: Any, points: Array) -> Array:
    """Return the softmax averaged over the posterior, (n, C)."""
    mean, covariance = latent_softmax(model, points)
    out = np.empty_like(mean)

    def fill(start: int) -> None:
        rows = slice(start, start + _ROWS)
        out[rows] = averaged_softmax(mean[rows], covariance[rows])

    map_reduce(list(range(0, len(points), _ROWS)), fill, lambda a, b: None, n_jobs=model.n_jobs)
    return out


def row_slices(n: int, width: int) -> list[slice]:
    """Return blocks of n rows that a thread works on at a time, each with `width` kernel values."""
    step = max(16, min(_BLOCK // max(width, 1), 2048))
    return [slice(start, min(start + step, n)) for start in range(0, n, step)]


def check_arrays(model: Any) -> None:
    """Raise ModelFileError unless a loaded classifier fits together."""
    owner, C = type(model).__name__, len(model.classes_)
    joint, pairs = hasattr(model, "M_"), hasattr(model, "estimators_")
    kernels = model.kernels_
    count = C * (C - 1) // 2 if pairs else 1 if joint or C == 2 else C
    if model.n_classes_ != C or len(kernels) != count or not all(isinstance(one, Kernel) for one in kernels):
        raise ModelFileError(f"{owner}: kernels_ must hold a kernel for each process")
    if pairs:
        width = getattr(model, "n_features_in_", None)
        if len(model.estimators_) != count or not all(
            isinstance(one, type(model)) and one.n_classes_ == 2 and getattr(one, "n_features_in_", None) == width
            for one in model.estimators_
        ):
            raise ModelFileError(f"{owner}: estimators_ must hold a classifier for each pair of classes")
        return
    n, k = len(model.X_train_), C if joint else count
    shapes: dict[str, tuple[int, ...]] = {"f_": (k, n), "g_": (k, n), "L_": (k, n, n)}
    shapes |= {"M_": (n, n)} if joint else {}
    if all(one.requires_vector_input for one in kernels):  # else points may be texts, which only the kernel can read
        shapes["X_train_"] = (n, getattr(model, "n_features_in_", -1))
    for name, shape in shapes.items():
        value = getattr(model, name)
        sound = isinstance(value, np.ndarray) and value.dtype.kind == "f" and value.shape == shape
        if not sound or not np.isfinite(value).all():
            raise ModelFileError(f"{owner}: {name} must be finite and of shape {shape}")
    factors = [*model.L_, model.M_] if joint else model.L_
    if not all((np.diagonal(factor) > 0.0).all() for factor in factors):
        raise ModelFileError(f"{owner}: factors must have positive diagonals")
