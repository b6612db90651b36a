r"""The support vector machine in the primal: Newton's method on the representer coefficients of a smoothed hinge.

    min_{β, b}  ½ βᵀKβ + Σᵢ cᵢ V_h(yᵢ(fᵢ + b)),   f = Kβ,      V_h(m) = 0               for m > 1 + h
                                                                     (1 + h − m)²/(4h)  within h of 1
                                                                     1 − m              for m < 1 − h

Rows are beyond the band, inside it or short of it; for one such sorting the function is quadratic, and its minimum

    β = 0 beyond,   β = cy short of it,   (K + 2h/c) β + b = y(1 + h) in the band,   Σβ = 0

is one linear system with as many unknowns as rows in the band. A line search along it makes every step descend; when
the sorting repeats itself the minimum is exact. There β = −cyV_h′: it lies in the box of the dual with Σβ = 0, and no
optimality condition of the machine without smoothing is violated by more than 2h. So h is lowered to half the
tolerance, each time from the last solution, and the result is the dual's to that tolerance.

Costs beyond 10¹⁴ times the tolerance, over n max k(x, x), drown f = Kβ in the rounding of β. The machine of that
largest cost is then found first. If it separates the rows it is scaled to a hard margin, which no cost changes; if not,
the better of the two is returned, with a bound on what either misses.

Reference: O. Chapelle, Training a support vector machine in the primal, Neural Computation 19, 2007.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np

from ...core import Array, DataError, ParameterError, Progress, Run, no_progress
from ...risk.kernels import Kernel, Precomputed
from ...risk.losses import HingeLoss
from ...solvers.smooth.newton import factorised
from .base import Fit

_WIDEST: Final = 0.5  # the first band
_NARROWING: Final = 0.1  # factor on the band from one to the next, at least
_BISECTIONS: Final = 60  # of the line search, at most
_STEPS: Final = 200  # of one band, if the caller sets no limit
_MOST_ROWS: Final = 20_000  # whose matrix has 3.2 GB
_ROUNDING: Final = 1e-13  # relative length of a step that moves nothing
_PATIENCE: Final = 10  # steps without progress before the end
_EPSILON: Final = 2.0**-52  # distance from one to the next float64
_ROUNDED_AWAY: Final = 1.5e14  # times the tolerance, over n max k(x, x): the largest cost that rounding does not blur
_SETTLED: Final = 1e-9  # of the band: a smaller change of f does not sort the rows anew


class _Step(NamedTuple):
    """A direction in β and b, and what it adds to f."""

    beta: Array
    b: float
    f: Array


def solve_primal(kernel: Kernel, X: Any, y: Array, cost: Array, model: Any, run: Run) -> Fit:
    """Return the machine of two classes y = ±1 of a support vector classifier; memory 8n² bytes for K."""
    owner = type(model).__name__
    n = X.shape[0]
    if not np.isfinite(cost).all():
        raise ParameterError(f"{owner}: solver='primal' needs a finite C; got {model.C!r}. Use solver='decomposition'.")
    if n > _MOST_ROWS:
        raise DataError(
            f"{owner}: solver='primal' holds the whole kernel matrix, and {n:,} rows are more than {_MOST_ROWS:,}; "
            "use solver='decomposition'."
        )
    K = np.asarray(X, dtype=np.float64) if isinstance(kernel, Precomputed) else kernel(X)
    steps = None if model.max_iter < 0 else model.max_iter
    return primal_newton(
        K, y, cost, fit_intercept=model.fit_intercept, tol=model.tol, max_iter=steps, progress=run.progress
    )


def primal_newton(
    K: Array,
    y: Array,
    cost: Array,
    *,
    fit_intercept: bool = True,
    tol: float = 1e-3,
    max_iter: int | None = None,
    progress: Progress = no_progress,
) -> Fit:
    """Minimise ½βᵀKβ + Σ c max(0, 1 − y(Kβ + b)) until no optimality condition is violated by more than `tol`.

    Parameters
    ----------
    K : (n, n) array
        The kernel matrix.
    y, cost : (n,) arrays
        ±1, and the costs c > 0.
    fit_intercept : bool
        Whether there is an offset b.
    tol : float
        Largest violation, as in `solvers.decomposition`.
    max_iter : int, optional
        Most Newton steps, of all bands together.
    progress : callable
        Called as `progress(step, violation)` after every step; True stops.

    Examples
    --------
    >>> import numpy as np
    >>> x, y = np.array([0.0, 1.0, 2.0, 3.0]), np.array([-1.0, -1.0, 1.0, 1.0])
    >>> fit = primal_newton(np.outer(x, x), y, np.full(4, 10.0), tol=1e-6)
    >>> float((fit.beta @ x).round(5)), round(fit.b, 5)
    (2.0, -3.0)
    """
    solve = partial(_all_bands, K, y, fit_intercept=fit_intercept, progress=progress)
    size = float(np.abs(K.diagonal()).max(initial=0.0))
    ceiling = _ROUNDED_AWAY * tol / (size * len(y)) if size > 0 else np.inf  # rounding of Kβ blurs larger costs
    if cost.max(initial=0.0) <= ceiling:
        return solve(cost, tol=tol, max_iter=max_iter)
    lower = solve(np.minimum(cost, ceiling), tol=0.4 * tol, max_iter=max_iter)
    raised = _raised(lower, y, cost, np.minimum(cost, ceiling), fit_intercept, size)
    left = None if max_iter is None else max_iter - lower.n_steps
    if left == 0 or raised.violation <= tol:
        return raised
    fit = solve(cost, tol=tol, max_iter=left)
    best = fit if fit.violation <= tol or fit.primal - fit.dual <= raised.primal - raised.dual else raised
    return best._replace(n_steps=fit.n_steps + lower.n_steps)


def _raised(fit: Fit, y: Array, cost: Array, lower: Array, fit_intercept: bool, size: float) -> Fit:
    """Judge a machine of lower costs by those that were asked for; `size` is the largest k(x, x).

    If it separates the rows it is scaled until none falls short: costs do not matter then. If not, f hardly depends on
    costs so large, though β does; the dual's bound is that of the best tβ in the box.
    """
    margin = y * fit.f
    b = 0.0
    least = [float(margin[y == s].min(initial=np.inf)) for s in (-1.0, 1.0)]
    if fit_intercept and np.isfinite(least).all():
        b = 0.5 * (least[0] - least[1])
    width = float((margin + y * b).min(initial=np.inf))
    scale = 1.0 / width if 0.5 < width < np.inf else 1.0
    beta = scale * fit.beta
    f = scale * fit.f
    b = scale * (b if scale != 1.0 else fit.b)
    square = float(beta @ f)
    slack = HingeLoss().value(y, f + b)
    primal = 0.5 * square + float((cost * np.where(slack > 1e-14, slack, 0.0)).sum())
    total = float(np.abs(beta).sum())
    most = float((cost / lower).min(initial=np.inf, where=beta != 0.0)) / scale
    square = max(square, 0.0) + 4.0 * _EPSILON * size * float(beta @ beta)  # what rounding may have hidden
    t = float(np.clip(total / square, 0.0, most)) if square > 0.0 else 1.0
    return Fit(beta, b, f, _violation(beta, f, y, cost, b), primal, t * total - 0.5 * t * t * square, fit.n_steps)


def _all_bands(
    K: Array, y: Array, cost: Array, *, fit_intercept: bool, tol: float, max_iter: int | None, progress: Progress
) -> Fit:
    """Narrow the band to the tolerance; return the best machine at the end of a band: rounding may blur others."""
    n = len(y)
    beta = np.zeros(n)
    b = 0.0
    f = np.zeros(n)
    last = max(0.45 * tol, 1e-12)
    band = max(_WIDEST, last)
    n_iter = 0
    stopped = False
    best = None
    while True:
        still = 0
        for _ in range(_STEPS):
            step = _newton_step(K, y, cost, f, b, beta, band, fit_intercept)
            length = _line_search(step, y, cost, f, b, beta, band)
            beta = beta + length * step.beta
            b = b + length * step.b
            f = f + length * step.f
            n_iter += 1
            measure = _violation(np.clip(beta, *_box(y, cost)), f, y, cost, b if fit_intercept else 0.0)
            stopped = progress(n_iter, measure) or (max_iter is not None and n_iter >= max_iter)
            moved = length * _largest(step.beta) > _ROUNDING * _largest(beta)
            still = 0 if moved and length * _largest(step.f) >= _SETTLED * band else still + 1
            # A whole step that changes nothing is the minimum; a cut one may only have met the next row's band.
            if stopped or (still and length == 1.0) or still >= _PATIENCE:
                break
        fit = _dual_fit(K, y, cost, beta, fit_intercept, n_iter)
        if best is None or not fit.violation > best.violation:
            best = fit
        if stopped or band <= last:
            return best._replace(n_steps=n_iter)
        band = max(last, _NARROWING * band)


def _newton_step(
    K: Array, y: Array, cost: Array, f: Array, b: float, beta: Array, band: float, fit_intercept: bool
) -> _Step:
    """Return the way to the minimum of the quadratic that the rows' present sorting makes."""
    margin = y * (f + b)
    short = margin < 1.0 - band
    inside = np.flatnonzero(~short & (margin <= 1.0 + band))
    target = np.where(short, cost * y, 0.0)
    offset = b
    if len(inside):
        H = K[np.ix_(inside, inside)]
        H.flat[:: len(inside) + 1] += 2.0 * band / cost[inside]
        right = y[inside] * (1.0 + band) - K[inside] @ target
        solve = factorised(H)
        free = solve(right)
        if fit_intercept:
            ones = solve(np.ones(len(inside)))
            offset = (float(free.sum()) + float(target.sum())) / float(ones.sum())
            free = free - offset * ones
        target[inside] = free
    elif fit_intercept:
        # Nothing holds b: move it along the slope Σ yc of the rows that fall short, to the next row's band.
        slope = float(target.sum())
        reach = (1.0 - margin) * y
        ahead = reach[reach * slope > 0.0]
        offset = b + (float(ahead[np.abs(ahead).argmin()]) if slope != 0.0 and len(ahead) else 0.0)
    way = target - beta
    changed = np.flatnonzero(way)
    return _Step(way, offset - b, K[:, changed] @ way[changed])


def _line_search(step: _Step, y: Array, cost: Array, f: Array, b: float, beta: Array, band: float) -> float:
    """Return where along the step the convex function is least, at most 1: where its slope vanishes."""
    square = float(step.beta @ step.f)
    mixed = float(beta @ step.f)
    margin = y * (f + b)
    change = y * (step.f + step.b)

    def slope(t: float) -> float:
        pull = np.clip((1.0 + band - (margin + t * change)) / (2.0 * band), 0.0, 1.0)
        return mixed + t * square - float((cost * pull) @ change)

    if slope(1.0) <= 0.0:
        return 1.0
    low = 0.0
    high = 1.0
    for _ in range(_BISECTIONS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if slope(middle) <= 0.0 else (low, middle)
    return 0.5 * (low + high)


def _largest(values: Array) -> float:
    return float(np.abs(values).max(initial=0.0))


def _box(y: Array, cost: Array) -> tuple[Array, Array]:
    return np.where(y > 0, 0.0, -cost), np.where(y > 0, cost, 0.0)


def _violation(beta: Array, f: Array, y: Array, cost: Array, b: float) -> float:
    """Return by how much the optimality conditions are violated with this offset."""
    low, high = _box(y, cost)
    pull = y - f
    rises = float(pull[beta < high].max(initial=b))
    return max(0.0, rises - float(pull[beta > low].min(initial=b)))


def _dual_fit(K: Array, y: Array, cost: Array, beta: Array, fit_intercept: bool, n_iter: int) -> Fit:
    """Make β feasible for the dual, compute Kβ afresh, and judge both problems without smoothing."""
    low, high = _box(y, cost)
    beta = np.clip(beta, low, high)
    edge = np.minimum(1e-10 * cost, 1e-12 * _largest(beta))  # what rounding left of rows that stand at a bound
    beta = np.where(beta - low <= edge, low, np.where(high - beta <= edge, high, beta))
    if fit_intercept:
        beta = _balanced(beta, low, high)
    f = K @ beta
    pull = y - f
    free = (beta > low) & (beta < high)
    b = 0.0
    if fit_intercept:
        top = pull[beta < high].max(initial=-np.inf)
        bottom = pull[beta > low].min(initial=np.inf)
        b = float(pull[free].mean()) if free.any() else float(0.5 * (top + bottom))
    square = float(beta @ f)
    primal = 0.5 * square + float((cost * HingeLoss().value(y, f + b)).sum())
    dual = float(np.abs(beta).sum()) - 0.5 * square
    return Fit(beta, b, f, _violation(beta, f, y, cost, b), primal, dual, n_iter)


def _balanced(beta: Array, low: Array, high: Array) -> Array:
    """Change β as evenly as the box allows, so that its sum is zero."""
    for _ in range(100):
        excess = float(beta.sum())
        room = (beta - low) if excess > 0 else (high - beta)
        free = (beta > low) & (beta < high)
        inside = free if free.any() else room > 0
        total = float(room[inside].sum())
        if abs(excess) <= 1e-15 * float(np.abs(beta).sum()) or total <= 0.0:
            break
        share = min(abs(excess) / total, 1.0) * np.sign(excess)
        beta = np.clip(beta - share * np.where(inside, room, 0.0), low, high)
    return beta
