r"""How every training row of a support vector regression stands to its tube, and what its optimality rests on.

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

from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from .svm_report import Conditions, open_rows

Array = NDArray[np.float64]

CASES: Final = ("inside", "edge", "bound")
_AT_BOUND: Final = 1e-12  # share of its cost that a multiplier at its bound may lack


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

    cases: ClassVar[tuple[str, ...]] = CASES

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
    t, b = np.asarray(table.y, dtype=np.float64), float(model.intercept_[0])
    by_nu = hasattr(model, "nu")
    eps = float(model.epsilon_ if by_nu else model.epsilon)
    r, size, total = t - f - b, np.abs(beta), float(np.abs(beta).sum())
    slack, bound = np.maximum(0.0, np.abs(r) - eps), size >= (1.0 - _AT_BOUND) * cost
    # Pulls on b: of a residual above the tube, which β > 0 answers, and of one below it.
    above, below = t - f - eps, t - f + eps
    rises = max(above[~bound | (beta < 0)].max(initial=b), below[beta < 0].max(initial=b))
    falls = min(below[~bound | (beta > 0)].min(initial=b), above[beta > 0].min(initial=b))
    square = float(beta @ f)
    return TubeReport(
        rows=given,
        case=np.where(bound, CASES[2], np.where(size > 0, CASES[1], CASES[0])),
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
