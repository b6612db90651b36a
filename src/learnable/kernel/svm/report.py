r"""How every training row of a support vector classifier stands to the margin, and what its optimality rests on.

With y = ±1, m = y(f(x) + b), slack ξ = max(0, 1 − m) and multipliers α = yβ, the optimum is where

    0 ≤ α ≤ c,   Σ yα = 0,   α(1 − ξ − m) = 0,   (c − α)ξ = 0,   f = Σ yα k(·, x),

so that a row is one of three kinds:

| case          | α         | m   |                                            |
|---------------|-----------|-----|--------------------------------------------|
| "non-support" | 0         | ≥ 1 | without it the machine would be the same   |
| "margin"      | inside    | = 1 | it fixes b                                 |
| "bound"       | c         | ≤ 1 | inside the margin; on the wrong side if ξ > 1 |

A margin of 1 is necessary, not sufficient, for 0 < α < c. A `NuSVC` is the machine of the costs cᵢ = sᵢ/ρ, where ρ is
what makes the multipliers sum to ν Σ cᵢ.

How every training row of a support vector regression stands to its tube, and what its optimality rests on.

With residuals r = t − f(x) − b, slack ξ = max(0, |r| − ε) and signed multipliers β, the optimum is where

    |β| ≤ c,   Σβ = 0,   β(|r| − ε − ξ) = 0 with r of β's sign,   (c − |β|)ξ = 0,   f = Σ β k(·, x),

so that a row is one of three kinds:

| case     | |β|    | |r| |                                          |
|----------|--------|-----|------------------------------------------|
| "inside" | 0      | ≤ ε | without it the machine would be the same |
| "edge"   | inside | = ε | it fixes b                               |
| "bound"  | c      | ≥ ε | outside the tube, by ξ                   |
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any, ClassVar, Final

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ...core import Array, DataError, NDArray, Run
from ...risk.losses import EpsilonInsensitiveLoss, HingeLoss
from .svc import row_costs

CASES: Final = ("non-support", "margin", "bound")
_AT_BOUND: Final = 1e-12  # share of its cost that a multiplier at its bound may lack
_AT_BOUND_NU: Final = 1e-9  # where the cost itself is a sum of multipliers


class Conditions:
    """What reports on all machines have in common."""

    cases: ClassVar[tuple[str, ...]]
    case: NDArray[np.str_]
    primal: float
    dual: float

    @property
    def gap(self) -> float:
        """Relative duality gap, (P − D)/D."""
        return max(self.primal - self.dual, 0.0) / self.dual if self.dual > 0 else float("inf")

    @property
    def counts(self) -> dict[str, int]:
        """How many rows each case has."""
        return {name: int((self.case == name).sum()) for name in self.cases}


@dataclass(frozen=True)
class SVMReport(Conditions):
    """The machine of two classes, condition by condition.

    Attributes
    ----------
    classes : (label, label)
        Those with y = −1 and y = +1.
    rows : (n,) array of int
        Which of the rows given these are: those of the two classes that have weight.
    y : (n,) array
        ±1.
    case : (n,) array of str
        "non-support", "margin" or "bound".
    alpha, cost : (n,) arrays
        α and its bound c.
    margin : (n,) array
        m = y(f(x) + b).
    slack : (n,) array
        ξ.
    box : float
        Largest α beyond [0, c], relative to c.
    balance : float
        |Σ yα|/Σα; 0 for a machine without offset, which has no such condition.
    outside : float
        Largest m − 1 of a row with α > 0: complementarity of α(1 − ξ − m) = 0.
    inside : float
        Largest ξ of a row with α < c: complementarity of (c − α)ξ = 0.
    violation : float
        outside and inside in the units of the certificate: by how much the pulls of the rows overlap. (That of a
        `NuSVC` is certified before its machine is divided by ρ; here it is that of the divided one.)
    norm : float
        ‖f‖.
    primal, dual : float
        Objective and lower bound.
    """

    cases: ClassVar[tuple[str, ...]] = CASES

    classes: tuple[Any, Any]
    rows: NDArray[np.int64]
    y: Array
    case: NDArray[np.str_]
    alpha: Array
    cost: Array
    margin: Array
    slack: Array
    box: float
    balance: float
    outside: float
    inside: float
    violation: float
    norm: float
    primal: float
    dual: float

    @property
    def margin_width(self) -> float:
        """Distance of the two margins, 2/‖f‖, in the kernel's space."""
        return 2.0 / self.norm if self.norm > 0 else float("inf")

    def __repr__(self) -> str:
        counts = ", ".join(f"{count} {name}" for name, count in self.counts.items())
        wrong = int((self.slack > 1).sum())
        return (
            f"{self.classes[0]!s} | {self.classes[1]!s}: {counts}; {wrong} on the wrong side\n"
            f"margin width {self.margin_width:.4g}, slack {float(self.slack.sum()):.4g}\n"
            f"box {self.box:.1e}, balance {self.balance:.1e}, outside {self.outside:.1e}, inside {self.inside:.1e}; "
            f"violation {self.violation:.2e}\n"
            f"P = {self.primal:.8g}, D = {self.dual:.8g}, gap {self.gap:.1e}"
        )


def kkt_report(model: Any, X: Any, y: Any, sample_weight: Any = None) -> SVMReport | dict[tuple[Any, Any], SVMReport]:
    """Evaluate the optimality conditions of a fitted SVC or NuSVC on its training data, in float64.

    Parameters
    ----------
    model : SVC or NuSVC
        Fitted.
    X, y, sample_weight
        What it was fitted to; other data are refused.

    Returns
    -------
    SVMReport, or dict of them
        For more than two classes one for each pair of labels.

    Examples
    --------
    >>> from learnable import SVC
    >>> X, y = [[0.0], [1.0], [2.0], [3.0], [0.5]], ["a", "a", "b", "b", "b"]
    >>> report = SVC(kernel="linear", C=1.0, tol=1e-6).fit(X, y).kkt_report(X, y)
    >>> report.counts, report.case[4].item()
    ({'non-support': 1, 'margin': 2, 'bound': 2}, 'bound')
    """
    table, given, sums = open_rows(model, X, y, sample_weight)
    by_nu = hasattr(model, "nu")
    cost = row_costs(model, table, 1.0 if by_nu else None)
    reports = {}
    labels = model.classes_.tolist()
    for (i, j), columns, b in _machines(model):
        rows = np.flatnonzero((table.y == i) | (table.y == j))
        beta, f = sums(rows, columns)
        sign = np.where(table.y[rows] == j, 1.0, -1.0)
        pair = (labels[i], labels[j])
        c = cost[rows]
        if by_nu:
            c = c * (np.abs(beta[rows]).sum() / (model.nu * c.sum()))
        reports[pair] = _judge(
            pair,
            given[rows],
            sign,
            beta[rows],
            f,
            b,
            c,
            offset=by_nu or bool(model.fit_intercept),
            lack=_AT_BOUND_NU if by_nu else _AT_BOUND,
        )
    return next(iter(reports.values())) if len(model.classes_) == 2 else reports


def open_rows(
    model: Any, X: Any, y: Any, sample_weight: Any
) -> tuple[Any, NDArray[np.int64], Callable[[NDArray[np.int64], Array], tuple[Array, Array]]]:
    """Return the rows of a fit, their numbers among those given, and what makes β and f = Σ β k of some of them.

    That function takes the rows wanted and the coefficients of the support vectors, and returns β of all rows.
    """
    check_is_fitted(model)
    draft = model._draft()
    table = type(model)._door(draft, X, y, sample_weight, Run())
    if table.fingerprint != model.certificate_.fingerprint:
        raise DataError(
            f"{type(model).__name__}: kkt_report needs the rows, targets and weights of the fit; these are others."
        )
    points = draft._points(table)
    draft.gamma_ = model.gamma_
    kernel = draft._mercer()
    given = np.arange(table.n_rows) if table.kept is None else np.flatnonzero(table.kept)
    support = np.searchsorted(given, model.support_)

    def sums(rows: NDArray[np.int64], columns: Array) -> tuple[Array, Array]:
        beta = np.zeros(table.n_rows)
        beta[support] = columns
        used = np.flatnonzero(beta)
        if draft._has_matrix():
            return beta, np.asarray(points[rows][:, used] @ beta[used], dtype=np.float64)
        return beta, kernel.products(points[rows], beta[used], points[used]) if len(used) else np.zeros(len(rows))

    return table, given, sums


def _machines(model: Any) -> Iterator[tuple[tuple[int, int], Array, float]]:
    """Yield each pair of classes with its coefficients and offset, so that the second class is positive."""
    if len(model.classes_) == 2:
        yield (0, 1), model._dual()[0], float(model.intercept_[0])
        return
    columns = model._coefficients()
    for number, pair in enumerate(combinations(range(len(model.classes_)), 2)):
        yield pair, -columns[:, number], -float(model.intercept_[number])


def _judge(
    pair: tuple[Any, Any],
    rows: NDArray[np.int64],
    y: Array,
    beta: Array,
    f: Array,
    b: float,
    cost: Array,
    *,
    offset: bool,
    lack: float,
) -> SVMReport:
    """Evaluate every condition of one machine."""
    # + 0.0: no negative zeros
    alpha = y * beta + 0.0
    margin = y * (f + b)
    slack = HingeLoss().value(y, f + b)
    bound = alpha >= (1.0 - lack) * cost
    case = np.where(bound, CASES[2], np.where(alpha > 0, CASES[1], CASES[0]))
    pull = y - f  # what b would have to be for the row to stand on the margin
    rises = ~bound & (y > 0) | (alpha > 0) & (y < 0)
    falls = (alpha > 0) & (y > 0) | ~bound & (y < 0)
    violation = max(0.0, float(pull[rises].max(initial=b)) - float(pull[falls].min(initial=b)))
    square = float(beta @ f)
    total = float(np.abs(alpha).sum())
    finite = bool(np.isfinite(cost).all())
    if finite:
        primal = 0.5 * square + float(cost @ slack)
    else:  # divided by its smallest margin the function keeps all rows outside
        least = float(margin.min())
        primal = 0.5 * square / least**2 if least > 0 else float("inf")
    beyond = max(0.0, float(-alpha.min()), float((alpha - cost).max()) if finite else 0.0)
    scale = float(cost.max()) if finite else max(total, 1e-300)
    return SVMReport(
        pair,
        rows,
        y,
        case,
        alpha,
        cost,
        margin,
        slack,
        beyond / scale,
        abs(float(beta.sum())) / total if offset and total > 0 else 0.0,
        float((margin - 1.0)[alpha > 0].max(initial=0.0)),
        float(slack[~bound].max(initial=0.0)),
        violation,
        float(np.sqrt(max(square, 0.0))),
        primal,
        float(alpha.sum()) - 0.5 * square,
    )


TUBE_CASES: Final = ("inside", "edge", "bound")


@dataclass(frozen=True)
class TubeReport(Conditions):
    """The machine of a regression, condition by condition.

    Attributes
    ----------
    rows : (n,) array of int
        Which of the rows given these are: those that have weight.
    case : (n,) array of str
        "inside", "edge" or "bound".
    beta, cost : (n,) arrays
        β and the bound c of its size.
    residual, slack : (n,) arrays
        r and ξ.
    epsilon : float
        ε, half the width of the tube.
    box : float
        Largest |β| beyond c, relative to the largest c.
    balance : float
        |Σβ|/Σ|β|; 0 for a machine without offset, which has no such condition.
    short : float
        Largest ε − |r| of a row with β ≠ 0, with r counted along the sign of β.
    beyond : float
        Largest ξ of a row with |β| < c.
    violation : float
        short and beyond in the units of the certificate: by how much the pulls of the rows overlap.
    norm : float
        ‖f‖.
    primal, dual : float
        ½‖f‖² + Σ cξ, and the lower bound Σ tβ − ε Σ|β| − ½‖f‖².
    """

    cases: ClassVar[tuple[str, ...]] = TUBE_CASES

    rows: NDArray[np.int64]
    case: NDArray[np.str_]
    beta: Array
    cost: Array
    residual: Array
    slack: Array
    epsilon: float
    box: float
    balance: float
    short: float
    beyond: float
    violation: float
    norm: float
    primal: float
    dual: float

    def __repr__(self) -> str:
        counts = ", ".join(f"{count} {name}" for name, count in self.counts.items())
        return (
            f"{counts}; tube ±{self.epsilon:.4g}, slack {float(self.slack.sum()):.4g}\n"
            f"box {self.box:.1e}, balance {self.balance:.1e}, short {self.short:.1e}, beyond {self.beyond:.1e}; "
            f"violation {self.violation:.2e}\n"
            f"P = {self.primal:.8g}, D = {self.dual:.8g}, gap {self.gap:.1e}"
        )


def tube_report(model: Any, X: Any, y: Any, sample_weight: Any = None) -> TubeReport:
    """Evaluate the optimality conditions of a fitted SVR or NuSVR on its training data, in float64.

    Parameters
    ----------
    model : SVR or NuSVR
        Fitted.
    X, y, sample_weight
        What it was fitted to; other data are refused.

    Examples
    --------
    >>> from learnable import SVR
    >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0]], [0.0, 1.1, 1.9, 3.0, 9.0]
    >>> SVR(kernel="linear", epsilon=0.2, tol=1e-6).fit(X, y).kkt_report(X, y).counts
    {'inside': 2, 'edge': 2, 'bound': 1}
    """
    table, given, sums = open_rows(model, X, y, sample_weight)
    beta, f = sums(np.arange(table.n_rows), model._dual()[0])
    cost = float(model.C) * (np.ones(table.n_rows) if table.weight is None else table.weight)
    t = np.asarray(table.y, dtype=np.float64)
    b = float(model.intercept_[0])
    by_nu = hasattr(model, "nu")
    eps = float(model.epsilon_ if by_nu else model.epsilon)
    r = t - f - b
    size = np.abs(beta)
    total = float(np.abs(beta).sum())
    slack = EpsilonInsensitiveLoss(eps).value(t, f + b)
    bound = size >= (1.0 - _AT_BOUND) * cost
    # Pulls on b: of a residual above the tube, which β > 0 answers, and of one below it.
    above = t - f - eps
    below = t - f + eps
    rises = max(above[~bound | (beta < 0)].max(initial=b), below[beta < 0].max(initial=b))
    falls = min(below[~bound | (beta > 0)].min(initial=b), above[beta > 0].min(initial=b))
    square = float(beta @ f)
    return TubeReport(
        rows=given,
        case=np.where(bound, TUBE_CASES[2], np.where(size > 0, TUBE_CASES[1], TUBE_CASES[0])),
        beta=beta,
        cost=cost,
        residual=r,
        slack=slack,
        epsilon=eps,
        box=max(0.0, float((size - cost).max())) / float(cost.max()),
        balance=abs(float(beta.sum())) / total if total > 0 and (by_nu or model.fit_intercept) else 0.0,
        short=float((eps - np.sign(beta) * r)[beta != 0].max(initial=0.0)),
        beyond=float(slack[~bound].max(initial=0.0)),
        violation=float(rises - falls),
        norm=float(np.sqrt(max(square, 0.0))),
        primal=0.5 * square + float(cost @ slack),
        dual=float(t @ beta) - eps * total - 0.5 * square,
    )
