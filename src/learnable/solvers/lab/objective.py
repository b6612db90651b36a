r"""Any function as a problem for the solvers, and the record of a run.

The measure of optimality is the relative gradient of Dennis and Schnabel,

    maxⱼ |gⱼ| · max(|xⱼ|, 1) / max(|f|, 1),

which follows from the point alone, so that a stranger can re-check it.

Reference: J. Dennis and R. Schnabel, Numerical Methods for Unconstrained Optimization, 1983, section 7.2.

Whether a gradient step is too long for the curvature.

The second-order look at one gradient step is

    f(x − ηg) ≈ f(x) − ηgᵀg + ½η²gᵀHg.

Where ½η²gᵀHg exceeds ηgᵀg the function rises although the step goes downhill: the problem is ill-conditioned for η.

Reference: I. Goodfellow, Y. Bengio and A. Courville, Deep Learning, 2016, section 8.2.1.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import eigvalsh

from ...core import Array, DataError, Kind, NDArray, Number, ParameterError
from ..derivatives import as_point, difference_steps, numerical_jacobian
from ..problem import Evaluation, Moment, Trace

Rows = NDArray[np.intp] | slice

ALL_ROWS = slice(None)
_MOST_COORDINATES = 100  # of points that a trace keeps unasked
_DIFFERENCES = "gradient by central differences: about ten digits, and the certificate is no more exact than they are"


def is_whole(rows: Rows) -> bool:
    """Tell whether the rows are all there are."""
    return isinstance(rows, slice) and rows == ALL_ROWS


def relative_gradient(x: Array, value: float, gradient: Array) -> float:
    """Return maxⱼ |gⱼ|·max(|xⱼ|, 1)/max(|f|, 1); infinite where f or g are not finite."""
    if not (np.isfinite(value) and np.isfinite(gradient).all()):
        return float("inf")
    sizes = np.maximum(np.abs(x), 1.0) / max(abs(value), 1.0)  # divided first: the product could overflow
    with np.errstate(over="ignore", invalid="ignore"):
        return float(np.max(np.abs(gradient) * sizes, initial=0.0))


class Objective:
    """A function with what derivatives there are; the others by differences.

    Parameters
    ----------
    fun : function or object
        x ↦ f(x); or an object with `evaluate(x) -> Evaluation`, or with `value` (or `__call__`), and `gradient` and
        `hessian` if it has them. With `n_rows`, f(x, rows) is the mean over some of n rows.
    gradient, hessian : functions, optional
        x ↦ ∇f(x) (with `n_rows`: (x, rows) ↦ …) and x ↦ H or x ↦ (v ↦ Hv).
    n_rows : int, optional
        Number of rows that f is a mean over; an attribute of an object, or given.
    """

    def __init__(self, fun: Any, gradient: Any = None, hessian: Any = None, n_rows: int | None = None) -> None:
        self._joint = getattr(fun, "evaluate", None) if gradient is None else None
        self._fun = fun if callable(fun) else getattr(fun, "value", None)
        self._gradient = getattr(fun, "gradient", None) if gradient is None else gradient
        self._hessian = getattr(fun, "hessian", None) if hessian is None else hessian
        self.n_rows = getattr(fun, "n_rows", None) if n_rows is None else n_rows
        self.kind: Kind = getattr(fun, "kind", "stationarity") if self._joint is not None else "stationarity"
        self.evaluations = 0.0
        self._last: tuple[Array, Evaluation] | None = None
        for name, value in (
            ("fun", self._fun or self._joint),
            ("gradient", self._gradient),
            ("hessian", self._hessian),
        ):
            if value is not None and not callable(value):
                raise ParameterError(f"minimize: {name} must be a function; got {value!r}.")
        if self._fun is None and self._joint is None:
            raise ParameterError(f"minimize: fun must be a function or have the method evaluate or value; got {fun!r}.")

    @property
    def note(self) -> str:
        """What a reader of the trace has to know."""
        return "" if self._joint is not None or self._gradient is not None else _DIFFERENCES

    def evaluate(self, x: Array) -> Evaluation:
        """Return value, gradient and measure at x; the last point is remembered."""
        if self._last is not None and np.array_equal(self._last[0], x):
            return self._last[1]
        if self._joint is not None:
            self.evaluations += 1
            with np.errstate(over="ignore", invalid="ignore"):
                found: Evaluation = self._joint(x)
        else:
            # both together count once
            value = self.value(x)
            gradient = self._slope(x, ALL_ROWS)
            doubt = np.zeros(len(x))
            if self._gradient is None:
                doubt = np.finfo(float).eps * abs(value) / difference_steps(x)  # what rounding may hide
            found = Evaluation(value, gradient, relative_gradient(x, value, np.abs(gradient) + doubt))
        self._last = (x.copy(), found)
        return found

    def value(self, x: Array, rows: Rows = ALL_ROWS) -> float:
        """Return f(x), over some rows."""
        if self._fun is None:
            return self.evaluate(x).value
        self.evaluations += self._share(rows)
        with np.errstate(over="ignore", invalid="ignore"):
            value = np.asarray(self._fun(x) if self.n_rows is None else self._fun(x, rows), dtype=np.float64)
        if value.size != 1:
            raise DataError(f"minimize: fun must return one number; got shape {value.shape}.")
        return float(value.reshape(()))

    def gradient(self, x: Array, rows: Rows = ALL_ROWS) -> Array:
        """Return ∇f(x), over some rows."""
        if self._joint is not None and is_whole(rows):
            return self.evaluate(x).gradient
        if self._gradient is not None:
            self.evaluations += self._share(rows)
        return self._slope(x, rows)

    def _slope(self, x: Array, rows: Rows) -> Array:
        if self._gradient is None:
            return np.asarray(numerical_jacobian(lambda z: np.array([self.value(z, rows)]), x)[0])
        with np.errstate(over="ignore", invalid="ignore"):
            gradient = self._gradient(x) if self.n_rows is None else self._gradient(x, rows)
        gradient = np.array(gradient, dtype=np.float64, ndmin=1)
        if gradient.shape != x.shape:
            raise DataError(f"minimize: the gradient must have the shape {x.shape} of x; got {gradient.shape}.")
        return gradient

    def hessian(self, x: Array) -> Any:
        """Return the Hessian at x, as a matrix or as a product; by differences of the gradient if there is none."""
        if self._hessian is None:
            H = numerical_jacobian(self.gradient, x)
            return 0.5 * (H + H.T)
        with np.errstate(over="ignore", invalid="ignore"):
            H = self._hessian(x)
        if callable(H):
            return H
        H = np.array(H, dtype=np.float64, ndmin=2)
        if H.shape != (len(x), len(x)):
            raise DataError(f"minimize: the Hessian must have shape {(len(x), len(x))}; got {H.shape}.")
        return H

    def _share(self, rows: Rows) -> float:
        if is_whole(rows) or not self.n_rows:
            return 1.0
        return (rows.stop - rows.start if isinstance(rows, slice) else len(rows)) / self.n_rows


class _Label(float):
    """A measure that can be told from an equal one: each belongs to one point."""


class Recorder:
    """Collects the trace of a run and tells it when to stop.

    Parameters
    ----------
    objective : Objective
        Whose evaluations are counted.
    callback : function of a Moment, optional
        True stops.
    keep_path : bool or None
        Whether points are kept; None keeps up to a hundred coordinates.
    max_seconds : float or None
        Time after which to stop.
    """

    def __init__(
        self,
        objective: Objective,
        callback: Callable[[Moment], Any] | None = None,
        keep_path: bool | None = None,
        max_seconds: float | None = None,
    ) -> None:
        self.objective = objective
        self.callback = callback
        self.keep_path = keep_path
        self.started = time.perf_counter()
        self.deadline = None if max_seconds is None else self.started + max_seconds
        self.entries: list[tuple[float, float, float, float, float]] = []
        self.points: list[Array] = []
        self._sum: Array | None = None
        self._weight = 0.0
        self._candidates: list[tuple[Array, Evaluation]] = []

    @property
    def seconds(self) -> float:
        """Time since the run began."""
        return time.perf_counter() - self.started

    def add(self, x: Array, now: Evaluation, step: float) -> bool:
        """Record a point; return whether to stop."""
        with np.errstate(over="ignore"):
            norm = float(np.linalg.norm(now.gradient))
        self.entries.append((now.value, norm, now.measure, step, self.objective.evaluations))
        if self.keep_path or (self.keep_path is None and len(x) <= _MOST_COORDINATES):
            self.points.append(x.copy())
        stop = self.deadline is not None and time.perf_counter() > self.deadline
        if self.callback is not None:
            iteration = len(self.entries) - 1
            moment = Moment(iteration, x.copy(), now.value, now.gradient.copy(), now.measure, step)
            stop |= bool(self.callback(moment))
        return stop

    def average(self, x: Array, weight: float = 1.0) -> None:
        """Add an iterate to the mean."""
        self._sum = weight * x if self._sum is None else self._sum + weight * x
        self._weight += weight

    def evaluate(self, x: Array) -> Evaluation:
        """Evaluate for a solver that keeps its iterates to itself; `progress` finds out which one it took."""
        found = self.objective.evaluate(x)
        found = found._replace(measure=_Label(found.measure))
        self._candidates.append((x.copy(), found))
        return found

    def hessian(self, x: Array) -> Any:
        """Return the objective's Hessian."""
        return self.objective.hessian(x)

    def progress(self, iteration: int, measure: float) -> bool:
        """Record the point a solver has just moved to: the one whose very measure it reports."""
        taken = [(x, found) for x, found in self._candidates if found.measure is measure]
        x, found = taken[0] if taken else self._candidates[-1]
        previous = self._candidates[0][0]
        self.average(previous)
        self._candidates = [(x, found)]
        return self.add(x, found, float(np.linalg.norm(x - previous)))

    def trace(self, x: Array) -> Trace:
        """Return the record; x is where the run ended, in case it never moved."""
        columns = np.array(self.entries, dtype=np.float64).reshape(-1, 5).T
        mean = x.copy() if self._sum is None else self._sum / self._weight
        path = np.array(self.points) if self.points else None
        value, norm, measure, step, evaluations = columns
        return Trace(value, norm, measure, step, evaluations, path, mean, self.objective.note)


def start_of(x0: Any, objective: Objective) -> tuple[Array, Evaluation]:
    """Return the start as a vector, and the function there; raise DataError unless both are finite."""
    x = as_point("minimize", x0)
    now = objective.evaluate(x)
    if not (np.isfinite(now.value) and np.isfinite(now.gradient).all()):
        what = "fun" if not np.isfinite(now.value) else "the gradient"
        raise DataError(f"minimize: {what} is not finite at x0 (value {now.value:g}); start elsewhere.")
    return x, now


_MOST_EIGENVALUES = 1000  # parameters up to which all of them are computed


@dataclass(frozen=True)
class ConditioningReport:
    """What one gradient step of length η does, to second order.

    Attributes
    ----------
    step : float
        η.
    linear : float
        ηgᵀg, what the slope promises.
    quadratic : float
        ½η²gᵀHg, what the curvature takes back.
    predicted : float
        −ηgᵀg + ½η²gᵀHg.
    actual : float
        f(x − ηg) − f(x).
    best_step : float
        gᵀg/gᵀHg, the best step along −g to second order; infinite where the curvature is not positive.
    eigenvalues : (2,) array or None
        Smallest and largest eigenvalue of H; None above a thousand parameters, or for a Hessian known by products.
    """

    step: float
    linear: float
    quadratic: float
    predicted: float
    actual: float
    best_step: float
    eigenvalues: Array | None

    @property
    def ill_conditioned(self) -> bool:
        """Whether ½η²gᵀHg exceeds ηgᵀg."""
        return self.quadratic > self.linear

    @property
    def condition_number(self) -> float:
        """Largest over smallest eigenvalue; infinite unless both are positive, NaN if they are not known."""
        if self.eigenvalues is None:
            return float("nan")
        low, high = self.eigenvalues
        return float(high / low) if low > 0 else float("inf")

    def __repr__(self) -> str:
        verdict = "the step is too long: f rises" if self.ill_conditioned else "the step is short enough"
        sign = ">" if self.ill_conditioned else "<="
        known = "" if self.eigenvalues is None else f"; condition number {self.condition_number:.3g}"
        return (
            f"½η²gᵀHg = {self.quadratic:.4g} {sign} ηgᵀg = {self.linear:.4g}: {verdict}; best step {self.best_step:.4g}"
            f"{known}"
        )


def conditioning_report(
    fun: Any, x: Any, gradient: Any = None, hessian: Any = None, *, step: float
) -> ConditioningReport:
    """Compare ½η²gᵀHg with ηgᵀg at a point.

    Parameters
    ----------
    fun, gradient, hessian
        As for `minimize`; derivatives that are not given come from differences.
    x : (p,) array
        Where.
    step : float
        η > 0.

    Examples
    --------
    >>> from learnable.solvers import conditioning_report
    >>> valley = lambda x: 50 * x[0] ** 2 + 0.5 * x[1] ** 2
    >>> conditioning_report(valley, [1.0, 1.0], step=0.03)
    ½η²gᵀHg = 450 > ηgᵀg = 300: the step is too long: f rises; best step 0.01; condition number 100
    """
    if not Number(low=0.0, low_open=True).allows(step):
        raise ParameterError(f"conditioning_report: step must be a number > 0; got {step!r}.")
    objective = Objective(fun, gradient, hessian)
    point, now = start_of(x, objective)
    H = objective.hessian(point)
    g = now.gradient
    Hg = np.asarray(H(g) if callable(H) else H @ g)
    curvature = float(g @ Hg)
    square = float(g @ g)
    linear = step * square
    quadratic = 0.5 * step**2 * curvature
    values = None
    if not callable(H) and len(point) <= _MOST_EIGENVALUES and np.isfinite(H).all():
        values = np.asarray(eigvalsh(H))[[0, -1]]
    return ConditioningReport(
        float(step),
        linear,
        quadratic,
        quadratic - linear,
        objective.value(point - step * g) - now.value,
        square / curvature if curvature > 0 else float("inf"),
        values,
    )


def largest_eigenvalue(product: Callable[[Array], Array], p: int, *, steps: int = 20) -> float:
    """Estimate the largest eigenvalue of a symmetric positive semidefinite matrix from products v ↦ Hv.

    Power iteration from a fixed random start: a lower bound, within a few per cent after twenty products, which is what
    a step size needs.

    Examples
    --------
    >>> import numpy as np
    >>> round(largest_eigenvalue(lambda v: np.array([1.0, 5.0]) * v, 2), 6)
    5.0
    """
    v = np.random.default_rng(0).standard_normal(p)
    value = 0.0
    for _ in range(steps):
        v /= max(float(np.linalg.norm(v)), np.finfo(float).tiny)
        Hv = product(v)
        value = max(value, float(v @ Hv))
        v = Hv
        if not v.any():
            break
    return value
