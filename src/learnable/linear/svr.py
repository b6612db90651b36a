r"""Linear support vector regression.

    min_{w, b}  ½(‖w‖² + b²/B²) + C Σᵢ sᵢ V(yᵢ − wᵀxᵢ − b),     V(r) = max(0, |r| − ε)  or its square

B is `intercept_scaling`. In the form n⁻¹ΣV + λΩ with Ω = ½‖·‖², λ = 1/(nC). A residual within ε costs nothing; the two
sides |r| are two shortfalls of the same row, and the methods and certificates are those of `LinearSVC`.

Reference: H. Drucker et al., Support vector regression machines, NIPS 9, 1997; C.-H. Ho and C.-J. Lin, JMLR 13, 2012.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.base import RegressorMixin

from ..core.certificate import Certificate
from ..core.errors import ParameterError
from ..core.parameters import Number, Options, Rule
from ..core.run import Run
from ..data.door import Table, door
from ..data.sources import NamedScore
from ._base import LinearRegressorModel, refuse_extreme_sizes, refuse_tiny_sizes
from .squared_margin import Target
from .svm import SVM_PARAMETERS, check_loaded_dual, previous_weights, settings_of, store_fits
from .svm_solvers import fit_margin


class LinearSVR(NamedScore, RegressorMixin, LinearRegressorModel):
    r"""Linear support vector regression: minimise ½(‖w‖² + b²/B²) + C Σᵢ sᵢ V(yᵢ − wᵀxᵢ − b).

    V is max(0, |r| − ε) or its square; B = `intercept_scaling`. In the form n⁻¹ΣV + λΩ with Ω = ½‖·‖², λ = 1/(nC).
    Time O(nd²) a step for few columns, O(nd) a pass for many; memory O(n + d²) besides the data.

    Parameters
    ----------
    epsilon : float, default=0.0
        ε ≥ 0, in the units of y.
    tol : float, default=1e-6
        Relative duality gap at which to stop (scikit-learn: 1e-4 of a gradient norm).
    C : float, default=1.0
        Inverse strength of the penalty.
    loss : {"epsilon_insensitive", "squared_epsilon_insensitive"}, default="epsilon_insensitive"
        V.
    fit_intercept : bool, default=True
        Whether b is fitted or zero.
    intercept_scaling : float, default=1.0
        B.
    dual : bool or "auto", default="auto"
        Kept for compatibility: the optimum is the same; `solver` chooses the method.
    verbose : int, default=0
        Kept for compatibility; progress comes through `set_callbacks`.
    random_state : int, Generator, RandomState or None, default=None
        Orders the rows in dual coordinate descent; None is the same as 0.
    max_iter : int, default=1000
        Most Newton steps, interior-point steps or passes over the rows.
    solver : {"auto", "newton", "interior-point", "dual"}, default="auto"
        "newton" is for the squared loss, "interior-point" for the other.
    warm_start : bool, default=False
        Start from the last fit, where the method can.
    n_jobs : int or None, default=None
        Threads of sums over rows. The result does not depend on it.
    max_seconds : float or None, default=None
        Time after which the best so far is returned.

    Attributes
    ----------
    coef_ : array of shape (n_features,)
        w.
    intercept_ : array of shape (1,)
        b; the number 0.0 without an intercept.
    dual_coef_ : array of shape (1, n_samples)
        Multipliers β of the training rows, |β| ≤ C s, w = Σ βx; of the epsilon-insensitive loss and of dual methods.
    n_iter_ : int
        Iterations.
    certificate_ : Certificate
        `gap`.

    Examples
    --------
    >>> from learnable import LinearSVR
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0.0, 1.0, 2.0, 30.0]
    >>> model = LinearSVR(C=100.0, max_iter=500).fit(X, y)
    >>> model.predict([[1.5]]).round(3)
    array([1.5])
    """

    _parameters: ClassVar[dict[str, Rule]] = {
        **SVM_PARAMETERS,
        "epsilon": Number(low=0.0),
        "loss": Options("epsilon_insensitive", "squared_epsilon_insensitive"),
        "solver": Options("auto", "newton", "interior-point", "dual"),
    }
    _door = staticmethod(door(target="numeric"))
    _remedy = "raise max_iter or max_seconds, or standardise the columns of X"

    def __init__(
        self,
        *,
        epsilon: float = 0.0,
        tol: float = 1e-6,
        C: float = 1.0,
        loss: str = "epsilon_insensitive",
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        dual: Any = "auto",
        verbose: int = 0,
        random_state: Any = None,
        max_iter: int = 1000,
        solver: str = "auto",
        warm_start: bool = False,
        n_jobs: int | None = None,
        max_seconds: float | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.tol = tol
        self.C = C
        self.loss = loss
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.dual = dual
        self.verbose = verbose
        self.random_state = random_state
        self.max_iter = max_iter
        self.solver = solver
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.max_seconds = max_seconds

    def _fit(self, table: Table, run: Run) -> Certificate:
        squared = self.loss == "squared_epsilon_insensitive"
        if self.solver == ("interior-point" if squared else "newton"):
            raise ParameterError(f"LinearSVR: solver={self.solver!r} is not for loss={self.loss!r}; use solver='auto'.")
        blocks = table.blocks
        if table.in_memory:
            refuse_extreme_sizes(table.X, table.weight, "LinearSVR")
            refuse_extreme_sizes(table.y, None, "LinearSVR", "y")
            refuse_tiny_sizes("LinearSVR", y=table.y)
        settings = settings_of(self, Target(None, float(self.epsilon)), squared)
        start = previous_weights(self, run, 0, 1, blocks)
        fit = fit_margin(blocks, settings, run.progress, *start)
        store_fits(self, [fit], table.kept)
        self.coef_ = self.coef_[0]
        return Certificate("gap", fit.gap, self.tol, fit.gap, self.n_iter_)

    def _check_loaded(self) -> None:
        super()._check_loaded()
        if hasattr(self, "coef_") and np.ndim(self.coef_) != 1:
            self.coef_ = np.ravel(self.coef_)
        check_loaded_dual(self)
