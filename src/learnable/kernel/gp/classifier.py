r"""Gaussian process classification: labels seen through a smooth function, P(y = 1 | x) = σ(f(x)), f ~ GP(0, k).

The posterior of f is approximated at its mode (`laplace.py`), the hyperparameters are those of greatest approximate
marginal likelihood, and probabilities are averages of σ over the posterior of f(x). Several classes are one process
each against the rest, whose probabilities are normalised; or one for each pair, which vote (`classes.py`); or
processes that share one likelihood, the softmax (`softmax.py`).

Reference: C. Rasmussen and C. Williams, Gaussian Processes for Machine Learning, 2006, §3.4, §3.5 and §5.5.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from ...core.declare import MAX_ITER, TOLERANCE, Boolean, Options, param
from ...core.errors import DataError, ParameterError
from ...core.estimator import Certificate, Run
from ...core.threads import interruptible
from ...data.blocks import map_reduce
from ...data.door import Table, read_features
from ...data.sources import NamedScore, rowwise
from ...risk.kernels.base import Kernel
from ...risk.kernels.rkhs import RKHSFunction
from .classes import (
    Kernels,
    check_arrays,
    fit_pairs,
    fit_softmax,
    latent_softmax,
    learn,
    not_mercer,
    probabilities_softmax,
    row_slices,
    start_kernels,
    votes_of_pairs,
)
from .laplace import Labels, LaplaceObjective, Mode, averaged_sigmoid, find_mode
from .likelihood import small_blas
from .posterior import inverse_factor, lower_times, noise_free
from .search import share_of, warn_at_bounds
from .softmax import SoftmaxObjective
from .structures import GaussianProcess, own_points, process_door

Array = NDArray[np.float64]


class GaussianProcessClassifier(NamedScore, ClassifierMixin, GaussianProcess):
    r"""Gaussian process classification by Laplace's approximation.

    About ten times n³ operations an evaluation. Memory: eight matrices of n × n with a Gaussian kernel, twelve with
    another one of distances, five more for each further kernel in a sum or product, and one for every process. With
    `multi_class="softmax"`, for C classes: C times the operations, 3C + 10 matrices, and C + 1 afterwards.

    Attributes
    ----------
    classes_, n_classes_ : array, int
        The labels, and how many there are.
    kernel_, kernels_ : Kernel, list of them
        k with the hyperparameters found; of several processes that are fitted apart, of each.
    X_train_ : array of shape (n, n_features)
        The rows.
    f_, g_, L_ : arrays of shape (k, n), (k, n), (k, n, n)
        Modes, t − σ(f) there, and factors of B, of each of the k processes (one for two classes); not for pairs.
    M_ : array of shape (n, n)
        With the softmax, the factor of Σ Eᶜ.
    estimators_ : list of GaussianProcessClassifier
        With one process a pair, those of (0, 1), (0, 2), …, (1, 2), …
    n_iter_ : int
        Steps of all searches.
    log_marginal_likelihood_value_ : float
        Its approximation; of several processes, the mean.
    certificate_ : Certificate
        `stationarity` of the approximate marginal likelihood and of the modes.

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
        if not table.in_memory:
            raise DataError(f"{owner}: needs all rows in memory; pass an array, or a sample of the rows.")
        X = own_points(self, table.X)
        self.X_train_, self.classes_, self.n_classes_ = X, table.classes, len(table.classes)
        codes, several = np.asarray(table.y), self.n_classes_ > 2
        if several and self.multi_class == "one_vs_one":
            return fit_pairs(self, X, codes, run)
        if several and self.multi_class == "softmax":
            return fit_softmax(self, X, codes, run)
        positive = range(self.n_classes_) if several else [1]
        starts = start_kernels(self, run, len(positive))
        kernels, modes, values, n_iter = [], [], [], 0
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
        self.f_, self.g_ = np.array([m.f for m in modes]), np.array([m.g for m in modes])
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
        mean, reduced = np.empty(len(points)), np.empty(len(points))
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
        theta, p = np.asarray(theta, dtype=np.float64), len(self.kernels_[0].theta)
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
        kernel, bounds = self.kernels_[number].with_theta(theta), np.full((len(theta), 2), [-np.inf, np.inf])
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
