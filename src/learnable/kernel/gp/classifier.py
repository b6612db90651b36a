r"""Gaussian process classification: labels seen through a smooth function, P(y = 1 | x) = σ(f(x)), f ~ GP(0, k).

The posterior of f is approximated at its mode (`laplace.py`), the hyperparameters are those of greatest approximate
marginal likelihood, and probabilities are averages of σ over the posterior of f(x). Several classes are one process
each against the rest, whose probabilities are normalised; or one for each pair, which vote; or
processes that share one likelihood, the softmax.

Reference: C. Rasmussen and C. Williams, Gaussian Processes for Machine Learning, 2006, §3.4, §3.5 and §5.5.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from itertools import combinations
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import ClassifierMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from ...core import (
    MAX_ITER,
    TOLERANCE,
    Array,
    Boolean,
    Certificate,
    DataError,
    ModelFileError,
    NDArray,
    Options,
    ParameterError,
    Run,
    fitted,
    interruptible,
    param,
)
from ...data import Table, map_reduce, read_features
from ...data.sources import NamedScore, rowwise
from ...meta.one_vs_one import count_votes
from ...risk.kernels.base import Kernel
from ...risk.kernels.spaces import RKHSFunction
from .laplace import (
    Labels,
    LaplaceObjective,
    Mode,
    SoftmaxObjective,
    averaged_sigmoid,
    averaged_softmax,
    find_joint_mode,
    find_mode,
    joint_latent,
    one_hot,
)
from .likelihood import small_blas
from .posterior import chosen_kernel, inverse_factor, lower_times, noise_free
from .search import Pace, climb, log_bounds, random_starts, share_of, warn_at_bounds
from .structures import GaussianProcess, own_points, process_door

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
    owner = type(model).__name__
    pace = Pace(run, len(data.y), seconds)
    starts = [kernel.theta, *random_starts(owner, kernel, bounds, model.n_restarts_optimizer, seed)]
    best = None
    n_iter = 0
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


# -- one process per pair ----------------------------------------------------------------------------------------------


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
    data = Labels(X, codes.astype(np.float64))
    C = model.n_classes_
    with small_blas(len(X)):
        problem = partial(SoftmaxObjective, n_classes=C)
        found = learn(model, problem, start_kernels(model, run, 1)[0], data, run, share_of(model, run, 1))
        mode = found.mode
        if mode is None:
            K = found.kernel(X)
            y = one_hot(data.y, C)
            mode = find_joint_mode(K, y, None, model.max_iter_predict, run.should_stop)
    if mode is None:
        raise not_mercer(model, found.kernel)
    model.kernels_ = [found.kernel]
    model.f_ = mode.f
    model.g_ = mode.g
    model.L_ = mode.L
    model.M_ = mode.M
    model.log_marginal_likelihood_value_ = mode.value
    model.n_iter_ = max(1, found.n_iter)
    return Certificate("stationarity", max(found.measure, mode.residual), model.tol, n_iter=model.n_iter_)


def latent_softmax(model: Any, points: Array) -> tuple[Array, Array]:
    """Return means (n, C) and covariances (n, C, C) of the processes at some points."""
    C = model.n_classes_
    free = noise_free(model.kernels_[0]) or model.kernels_[0]
    inverses = np.array([interruptible(inverse_factor, L) for L in model.L_])
    inverse_M = interruptible(inverse_factor, model.M_)
    e = np.exp(model.f_ - model.f_.max(axis=0))
    root = np.sqrt(e / e.sum(axis=0))
    mean = np.empty((len(points), C))
    covariance = np.empty((len(points), C, C))

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
    owner = type(model).__name__
    C = len(model.classes_)
    joint = hasattr(model, "M_")
    pairs = hasattr(model, "estimators_")
    kernels = model.kernels_
    count = 1 if joint or C == 2 else C
    if pairs:
        count = C * (C - 1) // 2
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
    n = len(model.X_train_)
    k = C if joint else count
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


class GaussianProcessClassifier(NamedScore, ClassifierMixin, GaussianProcess):
    r"""Gaussian process classification by Laplace's approximation.

    About ten times n³ operations an evaluation. Memory: eight matrices of n × n with a Gaussian kernel, twelve with
    another one of distances, five more for each further kernel in a sum or product, and one for every process. With
    `multi_class="softmax"`, for C classes: C times the operations, 3C + 10 matrices, and C + 1 afterwards.

    Examples
    --------
    >>> from learnable import GaussianProcessClassifier
    >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]], ["a", "a", "a", "b", "b", "b"]
    >>> model = GaussianProcessClassifier().fit(X, y)
    >>> model.predict([[1.0], [4.0]])
    array(['a', 'b'], dtype='<U1')
    >>> model.predict_proba([[2.5]]).round(2)
    array([[0.5, 0.5]])
    """

    _theory = "gaussian-process"

    max_iter_predict: int = param(MAX_ITER, "Newton steps to the mode.", default=100)
    warm_start: bool = param(
        Boolean(), "Whether the search starts from the hyperparameters of the last fit.", default=False
    )
    multi_class: str = param(
        Options("one_vs_rest", "one_vs_one", "softmax"),
        "How more than two classes are told apart: by a process for each; by one for each pair, whose votes "
        "give labels but no probabilities; or by a process for each in one joint likelihood with one kernel, "
        "which scikit-learn does not have.",
        default="one_vs_rest",
    )
    tol: float = param(
        TOLERANCE,
        "Largest derivative of the approximate log marginal likelihood by a log hyperparameter, divided by n.",
        default=1e-6,
    )

    classes_: NDArray[Any] = fitted("array of shape (n_classes,)", "The labels.")
    n_classes_: int = fitted("int", "Their number.")
    kernels_: list[Any] = fitted("list of Kernel", "The kernel of each process that is fitted apart.")
    f_: Array = fitted(
        "array of shape (k, n)", "Modes of the k processes, one for two classes; not for pairs.", optional=True
    )
    g_: Array = fitted("array of shape (k, n)", "t − σ(f) there.", optional=True)
    L_: Array = fitted("array of shape (k, n, n)", "Factors of B there.", optional=True)
    M_: Array = fitted("array of shape (n, n)", "With the softmax, the factor of Σ Eᶜ.", optional=True)
    estimators_: list[Any] = fitted(
        "list of GaussianProcessClassifier",
        "With one process per pair, those of (0, 1), (0, 2), …, (1, 2), …",
        optional=True,
    )
    log_marginal_likelihood_value_: float = fitted("float", "Its approximation; of several processes, the mean.")
    certificate_: Certificate = fitted(
        "Certificate", "`stationarity` of the approximate marginal likelihood and of the modes."
    )

    _door = staticmethod(process_door(target="classes"))
    _remedy = "raise max_iter or max_iter_predict, add restarts, or scale the columns of X"

    def fit(self, X: Any, y: Any) -> Self:  # type: ignore[override]
        """Fit the model.

        Parameters
        ----------
        X : array or dataframe of shape (n_samples, n_features)
            Training data.
        y : array of shape (n_samples,), or str
            Labels; with a dataframe, the name of a column.

        Returns
        -------
        self
            The fitted estimator. If the fit fails or is interrupted, the estimator stays as it was.
        """
        return super().fit(X, y)  # type: ignore[no-any-return]

    def _fit(self, table: Table, run: Run) -> Certificate:
        owner = type(self).__name__
        table.require_memory(f"{owner}: needs all rows in memory; pass an array, or a sample of the rows.")
        X = own_points(self, table.X)
        self.X_train_ = X
        self.classes_ = table.classes
        self.n_classes_ = len(table.classes)
        codes = np.asarray(table.y)
        several = self.n_classes_ > 2
        if several and self.multi_class == "one_vs_one":
            return fit_pairs(self, X, codes, run)
        if several and self.multi_class == "softmax":
            return fit_softmax(self, X, codes, run)
        positive = range(self.n_classes_) if several else [1]
        starts = start_kernels(self, run, len(positive))
        kernels = []
        modes = []
        values = []
        n_iter = 0
        for number, code in enumerate(positive):
            data = Labels(X, (codes == code).astype(np.float64))
            with small_blas(len(X)):
                seconds = share_of(self, run, len(positive) - number)
                found = learn(self, LaplaceObjective, starts[number], data, run, seconds)
                mode = found.mode
                if mode is None:
                    mode = find_mode(found.kernel(X), data.y, None, self.max_iter_predict, run.should_stop)
            if mode is None:
                raise not_mercer(self, found.kernel)
            kernels.append(found.kernel)
            modes.append(mode)
            values.append(max(found.measure, mode.residual))
            n_iter += found.n_iter
        self.kernels_ = kernels
        for kernel in kernels if self.optimizer is not None else []:
            warn_at_bounds(kernel)
        self._store(modes)
        self.n_iter_ = max(1, n_iter)
        return Certificate("stationarity", max(values), self.tol, n_iter=self.n_iter_)

    def _store(self, modes: list[Mode]) -> None:
        self.f_ = np.array([m.f for m in modes])
        self.g_ = np.array([m.g for m in modes])
        self.L_ = np.array([m.L for m in modes])
        self.log_marginal_likelihood_value_ = float(np.mean([m.value for m in modes]))

    def latent(self, X: Any) -> tuple[Array, Array]:
        """Return mean and variance of f at the rows of X, of shape (n,), or (n, n_classes) for several classes."""
        check_is_fitted(self)
        self._refuse_pairs("a process for each class")
        points = self._read(X)
        if self._is_joint():
            mean, covariance = latent_softmax(self, points)
            return mean, np.maximum(np.diagonal(covariance, axis1=1, axis2=2), 0.0)
        found = [self._latent_of(number, kernel, points) for number, kernel in enumerate(self.kernels_)]
        mean, variance = (np.column_stack(columns) for columns in zip(*found, strict=True))
        return (mean[:, 0], variance[:, 0]) if self.n_classes_ == 2 else (mean, variance)

    def latent_mean_and_variance(self, X: Any) -> tuple[Array, Array]:
        """Return mean and variance of f for two classes, by scikit-learn's name; `latent` does it for more."""
        check_is_fitted(self)
        if self.n_classes_ > 2:
            raise ValueError(
                "Returning the mean and variance of the latent function f is only supported for binary "
                f"classification, received {self.n_classes_} classes; use latent."
            )
        return self.latent(X)

    def _latent_of(self, number: int, kernel: Kernel, points: Array) -> tuple[Array, Array]:
        root = np.sqrt(np.maximum(_variances(self.f_[number]), 0.0))
        inverse = interruptible(inverse_factor, self.L_[number])
        mean = np.empty(len(points))
        reduced = np.empty(len(points))
        free = noise_free(kernel)

        def fill(rows: slice) -> None:
            K = (free or kernel)._between(points[rows], self.X_train_)
            mean[rows] = K @ self.g_[number]
            V = lower_times(inverse, K * root)
            reduced[rows] = np.einsum("ij,ij->i", V, V)

        map_reduce(row_slices(len(points), len(self.X_train_)), fill, lambda a, b: None, n_jobs=self.n_jobs)
        return mean, np.maximum(kernel.diagonal(points) - reduced, 0.0)

    @rowwise
    def predict_proba(self, X: Any) -> Array:
        """Return the probability of each class, (n_samples, n_classes): σ(f) averaged over the posterior of f.

        Averages of σ have eight digits, those of the softmax about three.
        """
        check_is_fitted(self)
        self._refuse_pairs("probabilities")
        if self._is_joint():
            return probabilities_softmax(self, self._read(X))
        mean, variance = self.latent(X)
        if self.n_classes_ == 2:
            one = averaged_sigmoid(mean, variance)
            return np.column_stack([1.0 - one, one])
        odds = np.maximum(averaged_sigmoid(mean, variance), np.finfo(float).tiny)
        return np.asarray(odds / odds.sum(axis=1, keepdims=True))

    @rowwise
    def predict(self, X: Any) -> Any:
        """Return the most probable class of each row."""
        check_is_fitted(self)
        scores = votes_of_pairs(self, X) if self._is_pairs() else self.predict_proba(X)
        return self.classes_[np.argmax(scores, axis=1)]

    def log_marginal_likelihood(self, theta: Any = None, eval_gradient: bool = False, clone_kernel: bool = True) -> Any:
        """Return its approximation at hyperparameters θ of `kernel_`, and its gradient if asked for.

        Parameters
        ----------
        theta : array of shape (p,) or None
            Logarithms of the hyperparameters; None are those found. Of several processes, one θ for all, or one after
            the other.
        eval_gradient : bool
            Whether to return the pair (value, gradient); needs θ.
        clone_kernel : bool
            If False, `kernel_` is left at θ, as in scikit-learn; predictions are then none of the fit.
        """
        check_is_fitted(self)
        if theta is None:
            if eval_gradient:
                raise ValueError("Gradient can only be evaluated for theta!=None")
            return np.float64(self.log_marginal_likelihood_value_)
        theta = np.asarray(theta, dtype=np.float64)
        p = len(self.kernels_[0].theta)
        if len(self.kernels_) == 1:
            return self._likelihood_of(0, theta, eval_gradient, clone_kernel)
        if eval_gradient:
            raise NotImplementedError("Gradient of log-marginal-likelihood not implemented for multi-class GPC.")
        if len(theta) not in (p, p * len(self.kernels_)):
            raise ValueError(
                f"Shape of theta must be either {p} or {p * len(self.kernels_)}. Obtained theta with shape "
                f"{len(theta)}."
            )
        parts = np.split(theta, len(self.kernels_)) if len(theta) > p or not p else [theta] * len(self.kernels_)
        return np.mean([self._likelihood_of(k, part, False, clone_kernel) for k, part in enumerate(parts)])

    def _likelihood_of(self, number: int, theta: Array, eval_gradient: bool, clone_kernel: bool) -> Any:
        if self._is_pairs():
            return self.estimators_[number].log_marginal_likelihood(theta, eval_gradient, clone_kernel)
        kernel = self.kernels_[number].with_theta(theta)
        bounds = np.full((len(theta), 2), [-np.inf, np.inf])
        if not clone_kernel:
            self.kernels_[number] = kernel
        if self._is_joint():
            codes = np.argmax(self.g_, axis=0).astype(np.float64)  # y − π is positive for the label alone
            objective: Any = SoftmaxObjective(kernel, Labels(self.X_train_, codes), bounds, self.n_classes_)
        else:
            t = (self.g_[number] > 0.0).astype(np.float64)  # t − σ(f) has the sign of the label
            objective = LaplaceObjective(kernel, Labels(self.X_train_, t), bounds)
        if not eval_gradient:
            return np.float64(-objective.value(theta))
        found = objective.evaluate(theta)
        return np.float64(-found.value), -found.gradient

    @property
    def function_(self) -> RKHSFunction:
        """The mean of f, Σ gᵢ k(·, xᵢ), as an element of the kernel's space; two classes only."""
        check_is_fitted(self)
        kernel = noise_free(self.kernels_[0])
        if self.n_classes_ > 2 or kernel is None:
            raise AttributeError(
                f"{type(self).__name__}: the mean of f is a function for two classes, and not noise alone."
            )
        return RKHSFunction(kernel, self.X_train_, self.g_[0])

    @property
    def kernel_(self) -> Any:
        """The kernel with the hyperparameters found; of several processes that are fitted apart, all of them."""
        if not hasattr(self, "kernels_"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute 'kernel_'; call fit first")
        return self.kernels_[0] if self.n_classes_ == 2 or self._is_joint() else Kernels(self.kernels_)

    @kernel_.setter
    def kernel_(self, kernel: Any) -> None:
        self.kernels_ = list(kernel) if isinstance(kernel, list) else [kernel]

    def _read(self, X: Any) -> Any:
        if self.X_train_.dtype.kind != "f":
            return self.kernels_[0]._read(X)
        return np.asarray(read_features(self, X, sparse=False), dtype=np.float64)

    def _is_pairs(self) -> bool:
        return hasattr(self, "estimators_")

    def _is_joint(self) -> bool:
        return hasattr(self, "M_")

    def _refuse_pairs(self, what: str) -> None:
        if self._is_pairs():
            raise ParameterError(
                f"{type(self).__name__}: multi_class='one_vs_one' has no {what}; use 'one_vs_rest' or 'softmax'."
            )

    def _check_loaded(self) -> None:
        check_arrays(self)


def _variances(f: Array) -> Array:
    """Return σ(f)(1 − σ(f))."""
    e = np.exp(-np.abs(f))
    return np.asarray(e / np.square(1.0 + e))
