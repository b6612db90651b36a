r"""Linear support vector regression.

    min_{w, b}  ½(‖w‖² + b²/B²) + C Σᵢ sᵢ V(yᵢ − wᵀxᵢ − b),     V(r) = max(0, |r| − ε)  or its square

B is `intercept_scaling`. In the form n⁻¹ΣV + λΩ with Ω = ½‖·‖², λ = 1/(nC). A residual within ε costs nothing; the two
sides |r| are two shortfalls of the same row, and the methods and certificates are those of `LinearSVC`.

Reference: H. Drucker et al., Support vector regression machines, NIPS 9, 1997; C.-H. Ho and C.-J. Lin, JMLR 13, 2012.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import RegressorMixin

from ..core.certificate import Certificate
from ..core.declare import fitted, param
from ..core.errors import ParameterError
from ..core.parameters import Number, Options
from ..core.run import Run
from ..data.door import Table, door
from ..data.sources import NamedScore
from ._base import LinearRegressorModel, refuse_extreme_sizes, refuse_tiny_sizes
from .squared_margin import Target
from .svm import MarginModel, previous_weights, settings_of, store_fits
from .svm_solvers import fit_margin


class LinearSVR(MarginModel, NamedScore, RegressorMixin, LinearRegressorModel):
    r"""Linear support vector regression: minimise ½(‖w‖² + b²/B²) + C Σᵢ sᵢ V(yᵢ − wᵀxᵢ − b).

    V is max(0, |r| − ε) or its square; B = `intercept_scaling`. In the form n⁻¹ΣV + λΩ with Ω = ½‖·‖², λ = 1/(nC).
    Time O(nd²) a step for few columns, O(nd) a pass for many; memory O(n + d²) besides the data.

    Examples
    --------
    >>> from learnable import LinearSVR
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0.0, 1.0, 2.0, 30.0]
    >>> model = LinearSVR(C=100.0, max_iter=500).fit(X, y)
    >>> model.predict([[1.5]]).round(3)
    array([1.5])
    """

    _theory = "svr"

    epsilon: float = param(Number(low=0.0), "ε ≥ 0, in the units of y.", default=0.0)
    loss: str = param(
        Options("epsilon_insensitive", "squared_epsilon_insensitive"), "V.", default="epsilon_insensitive"
    )
    intercept_scaling: float = param(Number(low=0.0, low_open=True, high=1e50), "B.", default=1.0)
    solver: str = param(
        Options("auto", "newton", "interior-point", "dual"),
        '"newton" is for the squared loss, "interior-point" for the other.',
        default="auto",
    )
    coef_: Any = fitted("(n_features,)", "w.")
    intercept_: Any = fitted("() or (1,)", "b; the number 0.0 without an intercept.")
    dual_coef_: Any = fitted(
        "(1, n_samples)",
        "Multipliers β of the training rows, |β| ≤ C s, w = Σ βx; of the epsilon-insensitive loss and of dual methods.",
        optional=True,
    )
    certificate_: Certificate = fitted("Certificate", "`gap`.")

    _door = staticmethod(door(target="numeric"))

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
        if isinstance(getattr(self, "coef_", None), np.ndarray):
            self.coef_ = self.coef_.ravel()  # of shape (1, n_features) in older files
        super()._check_loaded()
