"""The theorem behind an estimator, and whether its assumptions hold for a fitted model and its data."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components
from scipy.stats import chi2
from sklearn.base import is_classifier

from ...core import REGISTRY, Array, DataError, LearnableError, ParameterError, registered_class
from ...data.door import read_features, take_named_columns
from ...theory.concentration.base import ALARM, Check, check_order
from .theorems import THEOREMS, Theorem


@dataclass(frozen=True)
class Explanation:
    """What is known of an estimator, and what its data say to it.

    Attributes
    ----------
    model : str
        Its class.
    kind : str
        optimality, consistency, rate, oracle inequality, coverage, approximation, reduction, or none.
    assumes : tuple of str
        What the theorem assumes.
    guarantees : str
        What it then guarantees.
    reference : str
        Where it is proven.
    checks : tuple of Check
        Assumptions held against the data; empty without data. `holds` is None where data cannot tell.
    """

    model: str
    kind: str
    assumes: tuple[str, ...]
    guarantees: str
    reference: str
    checks: tuple[Check, ...] = ()

    @property
    def broken(self) -> tuple[Check, ...]:
        """The assumptions that the data break."""
        return tuple(check for check in self.checks if check.holds is False)

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON types."""
        return {
            "model": self.model,
            "kind": self.kind,
            "assumes": list(self.assumes),
            "guarantees": self.guarantees,
            "reference": self.reference,
            "checks": [check._asdict() for check in self.checks],
        }

    def __str__(self) -> str:
        lines = [f"{self.model}: {self.guarantees} ({self.reference})"]
        lines += [f"  assumes: {assumption}" for assumption in self.assumes]
        words = {True: "holds", False: "BROKEN", None: "not refuted"}
        lines += [f"  {words[check.holds]}: {check.assumption} ({check.detail})" for check in self.checks]
        return "\n".join(lines)


def explain_theory(model: Any, X: Any = None, y: Any = None) -> Explanation:
    """Return the theorem behind an estimator; with data, which of its assumptions they break.

    Parameters
    ----------
    model : estimator, class or str
        An estimator of this library, fitted or not, its class, or its name.
    X, y : optional
        Training data of a fitted model.

    Examples
    --------
    >>> import numpy as np
    >>> import learnable as ln
    >>> from learnable.evaluation import explain_theory
    >>> explain_theory("Perceptron").guarantees
    'at most R²/γ² mistakes in all passes; the last vector then separates the rows'
    >>> x = np.linspace(0.0, 1.0, 200)[:, None]
    >>> y = x.ravel() ** 2
    >>> [check.assumption for check in explain_theory(ln.LinearRegression().fit(x, y), x, y).broken][0]
    'y is linear in the columns'
    """
    cls = _class_of(model)
    theorem = theorem_of(cls)
    checks: list[Check] = []
    if X is not None:
        if isinstance(model, (str, type)):
            raise ParameterError(f"explain_theory: data are held against a fitted model; got {model!r}. Fit it first.")
        if not hasattr(model, "certificate_") and not getattr(model, "n_features_in_", None):
            raise DataError(f"explain_theory: {cls.__name__} is not fitted; fit it to these data first.")
        X, y, _ = take_named_columns("explain_theory", X, y, None)
        found = (CHECKS[name](model, X, y) for name in theorem.checks)
        checks = [check for check in found if check is not None]
    return Explanation(
        cls.__name__, theorem.kind, theorem.assumes, theorem.guarantees, theorem.reference, tuple(checks)
    )


def theorem_of(cls: type) -> Theorem:
    """Return the theorem that a class declares."""
    name = getattr(cls, "_theory", None)
    if name is None:
        raise ParameterError(
            f"explain_theory: {cls.__name__} declares no theory; set _theory to one of {', '.join(THEOREMS)}."
        )
    if name not in THEOREMS:
        raise ParameterError(f"explain_theory: {cls.__name__} declares the unknown theory {name!r}.")
    return THEOREMS[name]


def _class_of(model: Any) -> type:
    if isinstance(model, str):
        if model not in REGISTRY:
            raise ParameterError(f"explain_theory: there is no model {model!r}; `learnable models` lists them.")
        return registered_class(model)
    return model if isinstance(model, type) else type(model)


# --------------------------------------------------------------------------------------------------------------------
# Assumptions of theorems held against a fitted model and its data.
#
# Each check takes (model, X, y) and returns a `Check`, or None where it does not apply. A test speaks up below a
# p-value of one in a thousand; what data can never show holds, such as independence, is None unless they show that it
# does not.


#: Larger tables are judged by this many rows, taken evenly.
MOST_ROWS = 5000
MOST_COLUMNS = 300


def linearity(model: Any, X: Any, y: Any) -> Check | None:
    """Test whether squares of the columns, and powers of the fitted values (Ramsey), explain what is left."""
    parts = _residuals(model, X, y)
    if parts is None:
        return None
    design, fit, residual = parts
    n, p = design.shape
    assumption = "y is linear in the columns"
    if n <= p + 3 or not float(residual @ residual) > 0.0:
        return Check(assumption, None, "too few rows to tell")
    scaled = (fit - fit.mean()) / max(float(fit.std()), 1e-300)
    further = [scaled**2, scaled**3]
    if p <= 50 and n > 4 * p:
        columns = design[:, 1:] - design[:, 1:].mean(axis=0)
        further += list((columns / np.maximum(columns.std(axis=0), 1e-300)).T ** 2)
    extended = np.column_stack([design, *further])
    before = _rest(design, residual)
    after = _rest(extended, residual)
    statistic = n * math.log(max(before, 1e-300) / max(after, 1e-300))
    p_value = float(chi2.sf(max(statistic, 0.0), len(further)))
    detail = f"squares of the columns and of the fit: χ² = {statistic:.2f}, p = {p_value:.2g}"
    return Check(assumption, False if p_value < ALARM else None, detail)


def equal_variance(model: Any, X: Any, y: Any) -> Check | None:
    """Test by Koenker's form of Breusch and Pagan whether the columns explain squared residuals."""
    parts = _residuals(model, X, y)
    if parts is None:
        return None
    design, _, residual = parts
    n, p = design.shape
    assumption = "errors have one variance"
    squares = residual**2
    total = float(((squares - squares.mean()) ** 2).sum())
    if n <= 2 * p or not total > 0.0:
        return Check(assumption, None, "too few rows to tell")
    statistic = n * (1.0 - _rest(design, squares - squares.mean()) / total)
    p_value = float(chi2.sf(max(statistic, 0.0), max(p - 1, 1)))
    detail = f"squared residuals on the columns: χ² = {statistic:.2f}, p = {p_value:.2g}"
    return Check(assumption, False if p_value < ALARM else None, detail)


def leverage(model: Any, X: Any, y: Any) -> Check | None:
    """Find rows that decide their own prediction."""
    parts = _residuals(model, X, y)
    if parts is None:
        return None
    design = parts[0]
    n, p = design.shape
    q, r = np.linalg.qr(design)
    kept = np.abs(np.diag(r)) > 1e-10 * max(float(np.abs(np.diag(r)).max()), 1e-300)
    shares = (q[:, kept] ** 2).sum(axis=1)
    largest = float(shares.max())
    detail = f"largest leverage {largest:.3g}, mean {p / n:.3g}, row {int(shares.argmax())}"
    return Check("no single row decides its own fit", bool(largest < 0.5), detail)


def order(model: Any, X: Any, y: Any) -> Check | None:
    """Look for drift and dependence in the order of the rows: in residuals, errors, or the targets."""
    target = None if y is None else np.asarray(y)
    series: Array
    if target is None or target.ndim != 1:
        matrix = _matrix(model, X)
        if matrix is None:
            return None
        series = matrix[:, 0]
    elif target.dtype.kind in "fiu" and not is_classifier(model):
        series = target.astype(np.float64)
        if hasattr(model, "predict"):
            predicted = np.asarray(model.predict(X), dtype=np.float64)
            if predicted.shape == target.shape:
                series = series - predicted
    else:
        series = np.unique(target, return_inverse=True)[1].astype(np.float64)
    return check_order(series)._replace(assumption="rows are exchangeable: no drift, no dependence on neighbours")


def duplicates(model: Any, X: Any, y: Any) -> Check | None:
    """Count rows that stand in the table twice: a split may then put one on each side."""
    matrix = _matrix(model, X)
    if matrix is None:
        return None
    extra = len(matrix) - len(np.unique(matrix, axis=0))
    detail = f"{extra} of {len(matrix)} rows repeat another"
    return Check("no row stands in the table twice", extra == 0, detail)


def separability(model: Any, X: Any, y: Any) -> Check | None:
    """Tell whether the fitted line separates the rows: perceptrons need it, likelihoods must not have it."""
    if not is_classifier(model) or y is None or len(getattr(model, "classes_", [])) != 2:
        return None
    wrong = int((np.asarray(model.predict(X)) != np.asarray(y)).sum())
    if type(model).__name__ == "Perceptron":
        return Check(
            "the classes are separable", wrong == 0 or None, f"{wrong} rows are on the wrong side of the last line"
        )
    detail = f"{wrong} rows are on the wrong side: " + ("they overlap" if wrong else "the fitted line separates them")
    return Check("the classes overlap, so that the likelihood has a maximum", True if wrong else None, detail)


def margins(model: Any, X: Any, y: Any) -> Check | None:
    """Report the margins of a classifier of two classes."""
    if y is None or not hasattr(model, "decision_function") or len(getattr(model, "classes_", [])) != 2:
        return None
    scores = np.ravel(np.asarray(model.decision_function(X), dtype=np.float64))
    signs = np.where(np.asarray(y) == model.classes_[1], 1.0, -1.0)
    inside = float((signs * scores < 1.0).mean())
    return Check(
        "most rows lie outside the margin", None, f"{inside:.1%} of the rows lie inside it or on the wrong side"
    )


def irrepresentable(model: Any, X: Any, y: Any) -> Check | None:
    """Compute ‖X_NᵀX_S(X_SᵀX_S)⁻¹ sign(β_S)‖_∞ for the columns S that the fit chose."""
    parts = _chosen(model, X)
    if parts is None:
        return None
    chosen, others, coef = parts
    assumption = "irrepresentable condition, for the columns that were chosen"
    if chosen.shape[1] == 0 or others.shape[1] == 0 or chosen.shape[1] > len(chosen):
        return Check(assumption, None, "no column, or every column, was chosen")
    weights = np.linalg.lstsq(chosen.T @ chosen, np.sign(coef), rcond=None)[0]
    largest = float(np.abs(others.T @ (chosen @ weights)).max())
    return Check(assumption, largest < 1.0, f"largest value {largest:.3f}, must be below 1")


def restricted_eigenvalue(model: Any, X: Any, y: Any) -> Check | None:
    """Compute the smallest eigenvalue of the chosen columns: an upper bound of the restricted eigenvalue."""
    parts = _chosen(model, X)
    if parts is None:
        return None
    chosen = parts[0]
    assumption = "restricted eigenvalue is positive, for the columns that were chosen"
    if chosen.shape[1] == 0:
        return Check(assumption, None, "no column was chosen")
    scaled = chosen / np.maximum(np.linalg.norm(chosen, axis=0), 1e-300)
    smallest = float(np.linalg.eigvalsh(scaled.T @ scaled)[0])
    return Check(assumption, smallest > 1e-8, f"smallest eigenvalue of their correlations {smallest:.3g}")


def bounded_targets(model: Any, X: Any, y: Any) -> Check | None:
    """Report the range of the targets, and whether one stands far out."""
    if y is None or np.asarray(y).dtype.kind not in "fiu":
        return None
    target = np.asarray(y, dtype=np.float64).ravel()
    spread = float(np.quantile(target, 0.75) - np.quantile(target, 0.25))
    far = float(np.abs(target - np.median(target)).max()) / spread if spread > 0.0 else 0.0
    detail = f"from {target.min():.4g} to {target.max():.4g}; the farthest is {far:.1f} quartile ranges from the median"
    return Check("targets are bounded", False if far > 20.0 else None, detail)


def prior_conflict(model: Any, X: Any, y: Any) -> Check | None:
    """Hold the fitted coefficients against the prior: λ‖β‖² is χ² with d degrees of freedom under it."""
    precision = getattr(model, "lambda_", None)
    coef = getattr(model, "coef_", None)
    if precision is None or coef is None or np.ndim(precision) != 0 or not np.isfinite(precision):
        return None
    beta = np.ravel(np.asarray(coef, dtype=np.float64))
    statistic = float(precision) * float(beta @ beta)
    p_value = float(chi2.sf(statistic, len(beta)))
    detail = f"λ‖β‖² = {statistic:.3g} on {len(beta)} degrees of freedom, p = {p_value:.2g}"
    return Check("prior and data agree", False if p_value < ALARM else None, detail)


def identifiability(model: Any, X: Any, y: Any) -> Check | None:
    """Tell whether components of a mixture have rows of their own and stand apart."""
    weights = getattr(model, "weights_", None)
    if weights is None:
        return None
    shares = np.asarray(weights, dtype=np.float64)
    means = getattr(model, "means_", None)
    detail = f"smallest weight {shares.min():.3g}"
    apart = True
    if means is not None and len(np.asarray(means)) > 1:
        centres = np.asarray(means, dtype=np.float64).reshape(len(shares), -1)
        gaps = np.linalg.norm(centres[:, None] - centres, axis=2)[np.triu_indices(len(shares), 1)]
        scale = float(np.abs(centres - centres.mean(axis=0)).max())
        apart = bool(gaps.min() > 1e-6 * max(scale, 1e-300))
        detail += f", least distance of two means {gaps.min():.3g}"
    return Check("components differ and none is empty", bool(shares.min() > 1e-6 and apart), detail)


def ergodicity(model: Any, X: Any, y: Any) -> Check | None:
    """Tell whether the hidden chain reaches every state from every state, at all large times."""
    matrix = getattr(model, "transmat_", None)
    if matrix is None:
        return None
    reach = np.asarray(matrix, dtype=np.float64) > 1e-12
    k = len(reach)
    parts = int(connected_components(sp.csr_array(reach), directed=True, connection="strong")[0])
    # Wielandt: a matrix is primitive if and only if its power (k − 1)² + 1 is positive.
    power = np.linalg.matrix_power(np.eye(k, dtype=int) @ reach, 1) > 0
    needed = (k - 1) ** 2 + 1
    result = np.eye(k, dtype=bool)
    while needed:
        if needed & 1:
            result = (result.astype(int) @ power.astype(int)) > 0
        power = (power.astype(int) @ power.astype(int)) > 0
        needed >>= 1
    holds = parts == 1 and bool(result.all())
    detail = "every state is reached from every state" if holds else f"{parts} classes of states, or a period"
    return Check("the hidden chain is irreducible and aperiodic", holds, detail)


def leaf_sizes(model: Any, X: Any, y: Any) -> Check | None:
    """Report leaves and rows: leaves·ln n/n should be small."""
    count = getattr(model, "get_n_leaves", None)
    matrix = _matrix(model, X)
    if count is None or matrix is None:
        return None
    leaves = int(count())
    n = len(matrix)
    ratio = leaves * math.log(max(n, 2)) / n
    return Check(
        "leaves hold many rows: leaves·ln n/n is small", ratio < 1.0, f"{leaves} leaves, {n} rows: {ratio:.2f}"
    )


def independence_within(model: Any, X: Any, y: Any) -> Check | None:
    """Find the largest correlation of two columns within classes."""
    matrix = _matrix(model, X)
    if matrix is None or y is None or matrix.shape[1] < 2:
        return None
    labels = np.asarray(y)
    residual = matrix.copy()
    for label in np.unique(labels):
        residual[labels == label] -= residual[labels == label].mean(axis=0)
    spread = np.sqrt((residual**2).sum(axis=0))
    kept = residual[:, spread > 0.0] / spread[spread > 0.0]
    if kept.shape[1] < 2:
        return None
    table = np.abs(kept.T @ kept) - np.eye(kept.shape[1])
    largest = float(table.max())
    pairs = kept.shape[1] * (kept.shape[1] - 1) / 2.0
    p_value = min(1.0, pairs * 2.0 * math.exp(-len(kept) * largest**2 / 2.0))
    detail = f"largest correlation of two columns within classes {largest:.2f}"
    return Check("columns are independent within classes", False if p_value < ALARM else None, detail)


def equal_covariances(model: Any, X: Any, y: Any) -> Check | None:
    """Compare covariances of the classes by Box's M."""
    matrix = _matrix(model, X)
    if matrix is None or y is None:
        return None
    labels = np.asarray(y)
    matrix = _independent_directions(matrix, labels)
    groups = [matrix[labels == label] for label in np.unique(labels)]
    d = matrix.shape[1]
    assumption = "classes have one covariance"
    if d == 0 or min(len(group) for group in groups) <= d + 1:
        return Check(assumption, None, "too few rows of a class to tell")
    sizes = np.array([len(group) - 1 for group in groups], dtype=np.float64)
    covariances = [np.atleast_2d(np.cov(group.T)) for group in groups]
    pooled = sum(size * cov for size, cov in zip(sizes, covariances, strict=True)) / sizes.sum()
    logs = [np.linalg.slogdet(cov)[1] for cov in covariances]
    pooled_log = np.linalg.slogdet(pooled)[1]
    if not np.isfinite([*logs, pooled_log]).all():
        return Check(assumption, None, "a covariance is singular")
    statistic = float(sizes.sum() * pooled_log - sizes @ np.array(logs))
    K = len(groups)
    factor = (2.0 * d * d + 3.0 * d - 1.0) / (6.0 * (d + 1.0) * max(K - 1.0, 1.0))
    statistic *= 1.0 - factor * (float((1.0 / sizes).sum()) - 1.0 / float(sizes.sum()))
    p_value = float(chi2.sf(max(statistic, 0.0), d * (d + 1) * (K - 1) / 2.0))
    detail = f"Box's M: χ² = {statistic:.1f}, p = {p_value:.2g} (it is sensitive to tails that are not normal)"
    return Check(assumption, False if p_value < ALARM else None, detail)


_DEPENDENT: Final = 1e-8  # variance of a direction of standardised columns below which it is a sum of others


def _independent_directions(matrix: Any, labels: Any) -> Any:
    """Return the rows in directions that vary within classes: indicators of all levels of a category add up to one.

    Box's M is the same in all coordinates, and not defined where a covariance is singular.
    """
    residual = np.array(matrix, dtype=np.float64)
    for label in np.unique(labels):
        residual[labels == label] -= residual[labels == label].mean(axis=0)
    spread = residual.std(axis=0)
    kept = spread > 0.0
    scaled = residual[:, kept] / spread[kept]
    values, directions = np.linalg.eigh(scaled.T @ scaled / max(len(scaled), 1))
    used = directions[:, values > _DEPENDENT]
    return (np.asarray(matrix, dtype=np.float64)[:, kept] / spread[kept]) @ used


def weak_learning(model: Any, X: Any, y: Any) -> Check | None:
    """Report the edge of the weakest learner."""
    errors = getattr(model, "estimator_errors_", None)
    if errors is None or len(errors) == 0:
        return None
    chance = 1.0 - 1.0 / max(2, len(getattr(model, "classes_", [0, 1])))
    edge = chance - float(np.max(errors))
    return Check(
        "every round's learner beats chance", edge > 0.0, f"smallest edge γ = {edge:.3g} in {len(errors)} rounds"
    )


def cluster_sizes(model: Any, X: Any, y: Any) -> Check | None:
    """Report the smallest cluster."""
    labels = getattr(model, "labels_", None)
    if labels is None:
        return None
    counts = np.bincount(np.asarray(labels)[np.asarray(labels) >= 0])
    return Check("no cluster is empty", bool(counts.min() > 0), f"smallest cluster {int(counts.min())} rows")


CHECKS: dict[str, Callable[[Any, Any, Any], Check | None]] = {
    "linearity": linearity,
    "equal variance": equal_variance,
    "leverage": leverage,
    "order": order,
    "duplicates": duplicates,
    "separability": separability,
    "margins": margins,
    "irrepresentable condition": irrepresentable,
    "restricted eigenvalue": restricted_eigenvalue,
    "bounded targets": bounded_targets,
    "prior-data conflict": prior_conflict,
    "identifiability": identifiability,
    "ergodicity": ergodicity,
    "leaf sizes": leaf_sizes,
    "independence within classes": independence_within,
    "equal covariances": equal_covariances,
    "weak learning": weak_learning,
    "cluster sizes": cluster_sizes,
}


def _matrix(model: Any, X: Any) -> Array | None:
    """Return X as dense numbers; None for tables that are too wide or are no numbers."""
    try:
        rows = read_features(model, X) if hasattr(model, "n_features_in_") else np.asarray(X, dtype=np.float64)
    except (LearnableError, ValueError, TypeError):
        return None
    if sp.issparse(rows) or rows.ndim != 2 or rows.shape[1] > MOST_COLUMNS:
        return None
    dense = np.asarray(rows, dtype=np.float64)
    return dense if np.isfinite(dense).all() else None


def _residuals(model: Any, X: Any, y: Any) -> tuple[Array, Array, Array] | None:
    """Return the design with a constant, fitted values and residuals of a regression of one target."""
    matrix = _matrix(model, X)
    if matrix is None or y is None or is_classifier(model):
        return None
    target = np.asarray(y, dtype=np.float64)
    fit = np.asarray(model.predict(X), dtype=np.float64)
    if target.ndim != 1 or fit.shape != target.shape:
        return None
    step = max(1, len(target) // MOST_ROWS)
    design = np.column_stack([np.ones(len(target)), matrix])[::step]
    return design, fit[::step], (target - fit)[::step]


def _rest(design: Array, values: Array) -> float:
    """Return the residual sum of squares of a regression."""
    solution = np.linalg.lstsq(design, values, rcond=None)[0]
    gap = values - design @ solution
    return float(gap @ gap)


def _chosen(model: Any, X: Any) -> tuple[Array, Array, Array] | None:
    """Return the centred columns with a coefficient, those without, and the coefficients."""
    matrix = _matrix(model, X)
    coef = getattr(model, "coef_", None)
    if matrix is None or coef is None:
        return None
    beta = np.asarray(coef.toarray() if sp.issparse(coef) else coef, dtype=np.float64)
    if beta.ndim != 1 or len(beta) != matrix.shape[1]:
        return None
    centred = matrix - matrix.mean(axis=0)
    used = beta != 0.0
    return centred[:, used], centred[:, ~used], beta[used]
