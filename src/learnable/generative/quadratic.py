r"""Quadratic discriminant analysis: normal classes, each with a covariance of its own.

    x | class k ~ N(μ_k, Σ_k);   log π_k p_k(x) = −½(x − μ_k)ᵀΣ_k⁻¹(x − μ_k) − ½ log|Σ_k| + log π_k − (d/2) log 2π

The boundary between two classes is a quadric, in the plane a conic section. With one covariance for all classes this is
linear discriminant analysis.

Reference: T. Hastie, R. Tibshirani and J. Friedman, The Elements of Statistical Learning, 2nd ed., section 4.3.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import cholesky, eigh, solve_triangular, svd
from sklearn.utils.validation import check_is_fitted

from ..core import Array, Boolean, Certificate, Number, Options, Run, fitted, is_array, law, laws, param
from ..data import Table, door, map_reduce
from ..data.sources import rowwise
from ..probability.multivariate_normal import MultivariateNormal
from .base import PRIORS, TOLERANCE, DensityModel, RankError, log_or_minus_inf, score_rows
from .discriminant import ESTIMATOR, SHRINKAGE, Boundary, boundary_between, class_number, read_priors, refuse_method
from .moments import class_covariances, class_scatter


class QuadraticDiscriminantAnalysis(DensityModel):
    """Quadratic discriminant analysis.

    Both solvers work on the means and scatter matrices of the classes, which one pass over the rows gives, in O(nd²)
    time and O(n + Kd²) memory besides the data.

    Examples
    --------
    >>> from learnable import QuadraticDiscriminantAnalysis
    >>> X, y = [[-1.0, -1.0], [-2.0, -1.0], [-3.0, -2.0], [1.0, 1.0], [2.0, 1.0], [3.0, 2.0]], [1, 1, 1, 2, 2, 2]
    >>> model = QuadraticDiscriminantAnalysis().fit(X, y)
    >>> model.predict([[-0.8, -1.0]])
    array([1])
    >>> model.boundary(1, 2).kind
    'line'
    """

    _theory = "qda"

    solver: str = param(
        Options("svd", "eigen"),
        '"svd" uses `reg_param`, "eigen" `shrinkage` or `covariance_estimator`; the covariances are '
        "otherwise the same.",
        default="svd",
    )
    shrinkage: Any = param(
        SHRINKAGE,
        "Share λ of (tr Σ_k/d) I in every class's covariance, or Ledoit and Wolf's estimate of the best. Not "
        'with "svd".',
        default=None,
    )
    priors: Any = param(PRIORS, "Class probabilities; by default the shares of the classes.", default=None)
    reg_param: float = param(
        Number(low=0.0, high=1.0), 'With "svd": Σ_k becomes (1 − reg_param) Σ_k + reg_param I.', default=0.0
    )
    store_covariance: bool = param(Boolean(), "Whether to keep Σ_k.", default=False)
    tol: float = param(
        Number(low=0.0),
        "A class is refused if its covariance is singular: if, in columns scaled to one, the standard "
        "deviation in some direction is at most this. (scikit-learn compares eigenvalues in the units of the "
        "columns.)",
        default=1e-4,
    )
    covariance_estimator: Any = param(
        ESTIMATOR, 'Fitted to the rows of each class (in memory) for its `covariance_`. Not with "svd".', default=None
    )
    priors_: Array = fitted("(n_classes,)", "Class probabilities.")
    means_: Array = fitted("(n_classes, n_features)", "μ.")
    rotations_: Any = fitted(
        "list of n_classes arrays of shape (n_features, n_features)", "Principal axes of each class."
    )
    scalings_: Any = fitted(
        "list of n_classes arrays of shape (n_features,)", "The variances along them, largest first."
    )
    whiten_: Array = fitted(
        "(n_classes, n_features, n_features)",
        "W, triangular, with WᵀΣ_kW = I: what densities are computed with, because it does not mix columns of "
        "different units.",
    )
    covariance_: Any = fitted(
        "list of n_classes arrays of shape (n_features, n_features)", "Σ_k, if `store_covariance`."
    )
    certificate_: Certificate = fitted("Certificate", "Relative residual of WᵀΣ_kW = I.")

    _door = staticmethod(door(target="classes", sparse=False))

    def _fit(self, table: Table, run: Run) -> Certificate:
        owner = type(self).__name__
        self.classes_ = np.asarray(table.classes)
        refuse_method(owner, self, "svd")
        sums = class_scatter(owner, table.blocks, len(self.classes_), pooled=False, n_jobs=self.n_jobs)
        self.priors_ = read_priors(owner, self.priors, sums.weight)
        self.means_ = sums.mean
        cov = class_covariances(owner, table, sums, self.shrinkage, self.covariance_estimator, self.n_jobs)
        if self.solver == "svd":
            cov = (1.0 - self.reg_param) * cov + self.reg_param * np.eye(cov.shape[-1])
        # Classes are factorised side by side, each by one thread.
        found = map_reduce(range(len(cov)), lambda k: [self._factorise(k, cov[k])], list.__add__, n_jobs=self.n_jobs)
        whiten, rotations, scalings, residuals = zip(*found, strict=True)
        self.whiten_ = np.stack(whiten)
        self.rotations_ = list(rotations)
        self.scalings_ = list(scalings)
        if self.store_covariance:
            self.covariance_ = list(cov)
        return Certificate("closed-form", max(residuals), TOLERANCE)

    def _factorise(self, k: int, cov: Array) -> tuple[Array, Array, Array, float]:
        """Return W, the principal axes, the variances along them, and the residual of WᵀΣW = I."""
        std = self._require_rank(k, cov)
        R = cov / np.outer(std, std)
        L = cholesky(R, lower=True)
        W = np.ascontiguousarray(solve_triangular(L, np.diag(1.0 / std), lower=True).T)
        axes, spread, _ = svd(std[:, None] * L)  # its squares are the eigenvalues of Σ, with all their digits
        return W, np.ascontiguousarray(axes), spread**2, _residual(R, std[:, None] * W)

    def _require_rank(self, k: int, cov: Array) -> Array:
        """Return the deviations of the columns in a class; raise unless its correlations are positive definite."""
        std: Array = np.sqrt(np.diag(cov))
        least = 0.0 if (std <= 0).any() else float(eigh(cov / np.outer(std, std), eigvals_only=True)[0])
        if not least > max(self.tol**2, 4 * len(cov) * np.finfo(float).eps):
            label = self.classes_.tolist()[k]
            remedy = "shrinkage" if self.solver == "eigen" else "reg_param"
            if not std.any():
                raise RankError(
                    f"{type(self).__name__}: y has only 1 sample in class {label!r}, or only equal ones. The "
                    f"covariance matrix of class {label!r} is not full rank: it is zero. Increase the value of "
                    f"`{remedy}`, add rows, or use LinearDiscriminantAnalysis."
                )
            raise RankError(
                f"{type(self).__name__}: The covariance matrix of class {label!r} is not full rank. When using "
                f"`solver={self.solver!r}` its density is not defined with so few rows, or dependent columns. Increase "
                f"the value of `{remedy}`, or use LinearDiscriminantAnalysis."
            )
        return std

    def _joint(self, X: Any) -> Array:
        d = self.n_features_in_
        constant = -0.5 * self._log_dets() - 0.5 * d * np.log(2 * np.pi) + log_or_minus_inf(self.priors_)

        def score(rows: Array, out: Array) -> None:
            for k, (mean, W) in enumerate(zip(self.means_, self.whiten_, strict=True)):
                Z = (rows - mean) @ W
                out[:, k] = constant[k] - 0.5 * np.einsum("ij,ij->i", Z, Z)

        return score_rows(X, len(self.classes_), score, self.n_jobs)

    @rowwise
    def decision_function(self, X: Any) -> Array:
        """Return log P(class | x) up to a constant of the row; for two classes, the log of their ratio."""
        check_is_fitted(self)
        joint = self._joint(self._read_rows(X))
        joint += 0.5 * self.n_features_in_ * np.log(2 * np.pi)  # as scikit-learn has it
        return joint[:, 1] - joint[:, 0] if len(self.classes_) == 2 else joint

    def densities(self) -> MultivariateNormal:
        """Return the densities of the classes, an array of normal distributions of shape (n_classes,)."""
        check_is_fitted(self)
        factors = [np.linalg.inv(W).T for W in self.whiten_]
        return MultivariateNormal(self.means_, np.stack([F @ F.T for F in factors]))

    def _log_dets(self) -> Array:
        """Return log|Σ_k|."""
        return -2.0 * np.log(np.einsum("kii->ki", self.whiten_)).sum(axis=1)

    def boundary(self, a: Any, b: Any) -> Boundary:
        """Return the quadric between two classes, positive on the side of the second, and its kind.

        Parameters
        ----------
        a, b : labels
            Two of `classes_`.
        """
        check_is_fitted(self)
        pair = [class_number(self, label) for label in (b, a)]  # positive where the second is more probable
        precisions = [self.whiten_[k] @ self.whiten_[k].T for k in pair]
        log_dets = self._log_dets()[pair]
        priors = self.priors_[pair].tolist()
        means = self.means_[pair]
        return boundary_between((a, b), (priors[0], priors[1]), (means[0], means[1]), precisions, log_dets)

    _laws = laws(
        law(
            "whiten_ must have a positive diagonal",
            lambda model: (np.einsum("kii->ki", model.whiten_) > 0).all(),
            "classes_",
        ),
        law(
            "rotations_ and scalings_ must be lists of one finite float64 array per class",
            lambda model: all(
                isinstance(arrays, list)
                and len(arrays) == len(model.classes_)
                and all(is_array(array, (model.n_features_in_,) * rank, finite=True) for array in arrays)
                for arrays, rank in ((model.rotations_, 2), (model.scalings_, 1))
            ),
            "classes_",
        ),
        law("scalings_ must not be negative", lambda model: all((s >= 0).all() for s in model.scalings_), "classes_"),
    )


def _residual(R: Array, W: Array) -> float:
    """Return the largest error of WᵀRW = I, relative to the sizes of what is summed."""
    size = np.abs(W).T @ np.abs(R) @ np.abs(W)
    gap = np.abs(W.T @ R @ W - np.eye(len(R)))
    return float(np.max(gap / np.where(size > 0, size, 1.0)))
