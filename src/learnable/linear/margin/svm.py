r"""Linear support vector machine for classification.

    min_{w, b}  ½(‖w‖² + b²/B²) + C Σᵢ sᵢ V(yᵢ(wᵀxᵢ + b)),     V(m) = max(0, 1 − m)  or its square

for two classes y = ±1, and once for each class against the rest for more; B is `intercept_scaling`. In the form
n⁻¹ΣV + λΩ with Ω = ½‖·‖², λ = 1/(nC). This is LIBLINEAR's objective, penalised intercept included: the larger B, the
freer b. Crammer and Singer's joint problem of all classes is in `crammer_singer.py`.

The certificate is the relative duality gap. For the squared hinge the dual point follows from the weights; for the
hinge it is part of the model (`dual_coef_`, in the order of the training rows), because weights on the margin do not
tell their multipliers.

References: C. Cortes and V. Vapnik, Support-vector networks, Machine Learning 20, 1995; R.-E. Fan et al., LIBLINEAR,
JMLR 9, 2008.

Linear support vector regression.

    min_{w, b}  ½(‖w‖² + b²/B²) + C Σᵢ sᵢ V(yᵢ − wᵀxᵢ − b),     V(r) = max(0, |r| − ε)  or its square

B is `intercept_scaling`. In the form n⁻¹ΣV + λΩ with Ω = ½‖·‖², λ = 1/(nC). A residual within ε costs nothing; the two
sides |r| are two shortfalls of the same row, and the methods and certificates are those of `LinearSVC`.

Reference: H. Drucker et al., Support vector regression machines, NIPS 9, 1997; C.-H. Ho and C.-J. Lin, JMLR 13, 2012.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.base import RegressorMixin

from ...core import (
    MAX_ITER,
    RANDOM_STATE,
    TOLERANCE,
    Array,
    Boolean,
    Certificate,
    DataError,
    NDArray,
    Number,
    Options,
    ParameterError,
    Run,
    fitted,
    param,
)
from ...data.door import Table, class_weights, door, read_features, refuse_extreme_sizes, refuse_tiny_sizes
from ...data.sources import NamedScore
from ...risk.shortfall import Target
from ...solvers.lab.first_order import generator_of
from ..base import IterativeModel, LinearClassifierModel, LinearRegressorModel, weighted_blocks
from .crammer_singer import fit_crammer_singer
from .solvers import SOLVERS, MarginFit, Settings, fit_l1, fit_margin


class KKTReport(NamedTuple):
    """How the training rows of one score stand to the margin."""

    inside: int  #: rows with yz < 1, which must have α = C s (hinge)
    on_margin: int  #: rows with yz = 1 up to 1e-6
    outside: int  #: rows with yz > 1, which must have α = 0
    stationarity: float  #: ‖w − Σ αyx‖ / max(1, ‖w‖)
    complementarity: float  #: largest α/(C s) outside, or 1 − α/(C s) inside


class MarginModel(IterativeModel):
    """What the linear support vector machines share."""

    tol: float = param(
        TOLERANCE, "Relative duality gap at which to stop (scikit-learn: 1e-4 of a gradient norm).", default=1e-6
    )
    C: float = param(Number(low=1e-100, high=1e100), "Inverse strength of the penalty.", default=1.0)
    dual: Any = param(
        Boolean() | Options("auto"),
        "Kept for compatibility: the optimum is the same; `solver` chooses the method.",
        default="auto",
    )
    intercept_scaling: float = param(Number(low=0.0, low_open=True, high=1e50), "B.", default=1)
    random_state: Any = param(
        RANDOM_STATE,
        "Orders the rows in coordinate and subgradient methods; None is the same as 0, and the optimum does not depend "
        "on it.",
        default=None,
    )
    max_iter: int = param(MAX_ITER, "Most Newton steps, interior-point steps or passes over the rows.", default=1000)
    warm_start: bool = param(Boolean(), "Start from the last fit, where the method can.", default=False)
    intercept_: Any = fitted("() or (1,) or (n_classes,)", "b; the number 0.0 without an intercept.")
    n_iter_: int = fitted("int", "The most iterations that a score took.")

    _remedy = "raise max_iter or max_seconds, or standardise the columns of X"


class LinearSVC(MarginModel, LinearClassifierModel):
    r"""Linear support vector machine: minimise ½(‖w‖² + b²/B²) + C Σᵢ sᵢ V(yᵢ(wᵀxᵢ + b)).

    V is the squared hinge max(0, 1 − m)² or the hinge max(0, 1 − m); B = `intercept_scaling`. In the form n⁻¹ΣV + λΩ
    with Ω = ½‖·‖², λ = 1/(nC). Time O(nd²) a step for few columns, O(nd) a pass for many; memory O(n + d²) besides the
    data, and in dual methods a copy of the rows on or inside the margin.

    Examples
    --------
    >>> from learnable import LinearSVC
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], ["no", "no", "yes", "yes"]
    >>> model = LinearSVC(loss="hinge", C=10.0).fit(X, y)
    >>> model.predict([[0.5], [2.5]])
    array(['no', 'yes'], dtype='<U3')
    >>> model.certificate_.kind, model.certificate_.holds
    ('gap', True)
    """

    _theory = "svm"

    penalty: str = param(
        Options("l2", "l1"),
        '"l1" replaces ½(‖w‖² + b²/B²) by ‖w‖₁ + |b/B|; with the squared hinge only.',
        default="l2",
        kw_only=False,
    )
    loss: str = param(Options("squared_hinge", "hinge"), "V.", default="squared_hinge", kw_only=False)
    multi_class: str = param(
        Options("ovr", "crammer_singer"),
        "One class against the rest, or the joint problem of all classes (hinge loss, L2 penalty).",
        default="ovr",
    )
    solver: str = param(
        Options(*SOLVERS),
        '"newton" is for the squared hinge, "interior-point" and "subgradient" (Pegasos) for the hinge; '
        'Crammer–Singer knows "interior-point" and "dual".',
        default="auto",
    )
    dual_coef_: Array = fitted(
        "(1, n_samples) or (n_classes, n_samples)",
        "yα of every training row, 0 ≤ α ≤ C s, w = Σ yα x; of the hinge loss and of dual methods.",
        optional=True,
    )
    certificate_: Certificate = fitted("Certificate", "`gap`: the largest of the classes.")

    _door = staticmethod(door(target="classes"))

    def _fit(self, table: Table, run: Run) -> Certificate:
        self._refuse_combinations()
        self.classes_ = np.asarray(table.classes)
        blocks = weighted_blocks(table, class_weights(table, self.class_weight, "LinearSVC"))
        if table.in_memory:
            refuse_extreme_sizes(table.X, blocks.parts[0].weight, "LinearSVC")
        if self.multi_class == "crammer_singer":
            fits = self._fit_jointly(blocks, run)
        else:
            positives = [1] if len(self.classes_) == 2 else range(len(self.classes_))
            fits = [self._fit_one(blocks, positive, run) for positive in positives]
        store_fits(self, fits, table.kept)
        gap = max(fit.gap for fit in fits)
        return Certificate("gap", gap, self.tol, gap, self.n_iter_)

    def _refuse_combinations(self) -> None:
        joint = self.multi_class == "crammer_singer"
        smooth = self.loss == "squared_hinge" and not joint
        if self.penalty == "l1" and not smooth:
            raise ParameterError(
                "LinearSVC: penalty must be 'l2' with the hinge loss or Crammer–Singer; got 'l1'. Unsupported set of "
                f"arguments: penalty='l1', loss={self.loss!r}, dual={self.dual!r}. Use loss='squared_hinge'."
            )
        if self.solver in ("interior-point", "subgradient") and smooth:
            raise ParameterError(
                f"LinearSVC: solver must be 'auto', 'newton' or 'dual' with the squared hinge; got {self.solver!r}. "
                "Use loss='hinge'."
            )
        if self.solver == "newton" and not smooth:
            raise ParameterError("LinearSVC: solver='newton' needs a smooth loss; got the hinge. Use solver='auto'.")
        if joint and self.solver == "subgradient":
            raise ParameterError(
                "LinearSVC: solver must be 'auto', 'interior-point' or 'dual' with Crammer–Singer; got 'subgradient'."
            )

    def _fit_one(self, blocks: Any, positive: int, run: Run) -> MarginFit:
        """Fit one class against the rest."""
        settings = settings_of(self, Target(positive), squared=self.loss == "squared_hinge")
        row = 0 if len(self.classes_) == 2 else positive
        start = previous_weights(self, run, row, len(self.classes_), blocks)
        if self.penalty == "l1":
            if not blocks.in_memory:
                raise DataError(
                    "LinearSVC: the L1 penalty needs the columns, so rows have to fit into memory; use penalty='l2'."
                )
            return fit_l1(blocks, settings, run.progress, start[0])
        return fit_margin(blocks, settings, run.progress, *start)

    def _fit_jointly(self, blocks: Any, run: Run) -> list[MarginFit]:
        if not blocks.in_memory:
            raise DataError("LinearSVC: Crammer–Singer keeps numbers for every row, which have to fit into memory.")
        settings = settings_of(self, Target(1), squared=False)
        return fit_crammer_singer(blocks, len(self.classes_), settings, run.progress)

    def kkt_report(self, X: Any, y: Any, sample_weight: Any = None) -> list[KKTReport]:
        """Return how the training rows stand to the margin, for every score of a one-vs-rest hinge fit.

        At the optimum w = Σ αyx, rows outside the margin have α = 0 and rows inside it α = C s.
        """
        if not hasattr(self, "dual_coef_") or self.multi_class != "ovr":
            raise ParameterError("LinearSVC: kkt_report needs a fit with loss='hinge' and multi_class='ovr'.")
        scores = self._score_rows(X)
        X = read_features(self, X)
        codes = np.searchsorted(self.classes_, np.asarray(y))
        s = np.ones(len(codes)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        of_class = {} if self.class_weight is None else self.class_weight
        if isinstance(of_class, dict):
            s = s * np.array([of_class.get(label, 1.0) for label in self.classes_.tolist()])[codes]
        else:
            totals = np.bincount(codes, s)
            s = s * (totals.sum() / (len(totals) * totals))[codes]
        return [self._kkt_of(k, X, scores[:, k], codes, self.C * s) for k in range(scores.shape[1])]

    def _kkt_of(self, k: int, X: Any, z: Array, codes: NDArray[Any], cost: Array) -> KKTReport:
        label = np.where(codes == (1 if len(self.classes_) == 2 else k), 1.0, -1.0)
        kept = cost > 0
        margin = (label * z)[kept]
        share = (label * self.dual_coef_[k])[kept] / cost[kept]
        inside = margin < 1 - 1e-6
        outside = margin > 1 + 1e-6
        w = self.coef_[k]
        residual = np.linalg.norm(w - X.T @ self.dual_coef_[k]) / max(1.0, float(np.linalg.norm(w)))
        wrong = np.r_[0.0, share[outside], 1.0 - share[inside]].max()
        counts = int(inside.sum()), int((~inside & ~outside).sum()), int(outside.sum())
        return KKTReport(*counts, float(residual), float(wrong))


def settings_of(model: Any, target: Target, squared: bool) -> Settings:
    """Return what the solvers have to know of an estimator."""
    return Settings(
        type(model).__name__,
        target,
        squared,
        float(model.C),
        bias_of(model),
        model.solver,
        model.tol,
        model.max_iter,
        model.n_jobs,
        random_order_of(model),
    )


def bias_of(model: Any) -> float:
    """Return the constant that stands in front of every row."""
    return float(model.intercept_scaling) if model.fit_intercept else 0.0


def random_order_of(model: Any) -> np.random.Generator:
    """Return the generator that orders the rows; None is 0: the optimum does not depend on it, the last bits do."""
    return generator_of(type(model).__name__, 0 if model.random_state is None else model.random_state)


def previous_weights(model: Any, run: Run, row: int, n_classes: int, blocks: Any) -> tuple[Array | None, Array | None]:
    """Return the last fit's weights and dual point of one score for `warm_start`, where their shapes still fit."""
    previous = run.previous
    coef = getattr(previous, "coef_", None)
    n_scores = 1 if n_classes <= 2 else n_classes
    if not model.warm_start or coef is None or np.atleast_2d(coef).shape != (n_scores, blocks.n_columns):
        return None, None
    bias = bias_of(model)
    first = np.broadcast_to(previous.intercept_, (n_scores,))[row] / bias if bias else 0.0
    dual = np.atleast_2d(getattr(previous, "dual_coef_", np.empty((0, 0))))
    fits = dual.shape == (n_scores, blocks.n_rows)
    return np.r_[first, np.atleast_2d(coef)[row]], dual[row] if fits else None


def store_fits(model: Any, fits: list[MarginFit], kept: NDArray[np.bool_] | None) -> None:
    """Set coefficients, intercepts, iterations and dual coefficients, as scikit-learn shows them."""
    W = np.stack([fit.w for fit in fits])
    if not np.isfinite(W).all():
        raise DataError(f"{type(model).__name__}: coefficients are beyond the range of float64; rescale X or C.")
    model.coef_ = np.ascontiguousarray(W[:, 1:])
    model.intercept_ = bias_of(model) * W[:, 0] if model.fit_intercept else 0.0
    model.n_iter_ = max(fit.n_iter for fit in fits)
    if fits[0].dual is not None:
        dual = np.stack([np.asarray(fit.dual) for fit in fits])
        if kept is not None:  # rows of weight zero have no say
            full = np.zeros((len(dual), len(kept)))
            full[:, kept] = dual
            dual = full
        model.dual_coef_ = dual


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
