r"""The three forms of a regularised risk, solved by one splitting method.

    Tikhonov   min R + λΩ            prox of R, prox of λΩ
    Ivanov     min R, Ω ≤ τ          prox of R, projection onto the ball of Ω
    Phillips   min Ω, R ≤ κ          projection onto the level set of R, prox of Ω

The projections are proximal steps whose length makes the constraint hold with equality, and that length is the
multiplier. A form's point is made feasible by moving it towards one that satisfies the constraint with room to spare;
its gap is the distance from the best feasible point so far to the best lower bound so far.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq

from ...core import Array, ParameterError, Progress, no_progress
from ...risk.losses import SquaredLoss
from ...risk.norms import NormPenalty
from ...risk.penalties import ElasticNetPenalty, L1Penalty, L2Penalty
from ...solvers.composite.coordinate import coordinate_descent
from ...solvers.composite.splitting import SplitPoint
from ...solvers.problem import Solution
from .problem import DualPoint, Problem

_ROUNDING = 1e-9  # relative slack within which a parameter at the end of its range counts as attainable
_SLACK = 1e-8  # share of the risk at the least penalty by which R may exceed κ; the gap counts it, times its multiplier
_SHORT = 500  # steps for one λ of that search
_DECADES = 14  # of λ, down from the variance of the columns, in the search for a risk below κ
_MOST_COLUMNS = 3000  # of a lasso whose moments are formed for coordinate descent
_FARTHEST = 1e12  # steps beyond this lead to the minimum of the function itself


class FormSolution(NamedTuple):
    """A feasible point, a dual point, and what they prove."""

    x: Array  #: (p + 1, k): b over W
    dual: DualPoint
    primal: float  #: objective of the form, the risk counted from its base
    bound: float  #: what it is at least
    gap: float  #: (P − D)/max(D, 1e-8 P₀)
    n_iter: int
    stopped: bool  #: whether `progress` told to stop


def solve_form(
    problem: Problem,
    form: str,
    value: float,
    *,
    tol: float,
    max_iter: int,
    progress: Progress = no_progress,
) -> FormSolution:
    """Minimise a regularised risk in one of its forms.

    Parameters
    ----------
    problem : Problem
        R, Ω and C.
    form : {"tikhonov", "ivanov", "phillips"}
        Which one.
    value : float
        λ, τ, or κ counted from the base of the risk.
    tol : float
        Relative duality gap at which to stop.
    max_iter : int
        Most steps.
    progress : function
        Called with steps and gap; True stops.

    Raises
    ------
    ParameterError
        If no point satisfies Ω ≤ τ or R ≤ κ; it states the attainable range.
    """
    easy = _least_penalty(problem, max_iter)
    judge = _Judge(problem, form, value, easy)
    if form == "ivanov":
        _refuse_small_ball(problem, easy, value)
    if form == "phillips":
        if judge.rest.risk <= value:
            return judge.without_risk(easy)
        judge.room = _roomy_risk(problem, judge.rest.risk, value, max_iter, progress)
        if problem.risk(problem.scores(judge.room)) > value:  # κ is the least risk, but for rounding
            judge.most = value + _SLACK * judge.rest.risk
    known = _by_coordinates(problem, value, tol, max_iter, progress) if form == "tikhonov" else None
    if known is not None and judge.offer(known.x) <= tol:
        return judge.solution(known.n_iter, False)
    operators = _operators(problem, form, value, judge)
    _, n_iter, stopped = problem.split(
        operators,
        judge,
        np.zeros((problem.shape[0] + 1, problem.shape[1])),
        tol=tol,
        max_iter=max_iter,
        progress=progress,
    )
    return judge.solution(n_iter, stopped)


class _Rest(NamedTuple):
    """The point of least penalty."""

    x: Array
    omega: float
    risk: float
    dual: DualPoint | None
    bound: float  #: what Ω is at least on C


class _Judge:
    """Keeps the best feasible point and the best lower bound of a form."""

    def __init__(self, problem: Problem, form: str, value: float, rest: _Rest) -> None:
        self.problem = problem
        self.form = form
        self.value = value
        self.rest = rest
        self.room: Array | None = None  # a point with R < κ
        self.most = value  # what R may be at most
        zeros = np.zeros((problem.X.shape[0], problem.shape[1]))
        self.null = 0.0 if form == "phillips" else problem.risk(zeros)  # P₀, the risk of f = 0
        self.pace = 1.0  # η/step of the last projection onto the level set of R
        self.x = rest.x
        self.primal = math.inf
        self.dual: DualPoint | None = None
        self.bound = -math.inf
        self.smooth = hasattr(problem.loss, "curvature") or hasattr(problem.loss, "curvature_product")

    def __call__(self, point: SplitPoint) -> float:
        """Return the relative gap after looking at one more point."""
        problem = self.problem
        x = self._feasible(problem.allow(point.x, point.values[1]))
        primal = self._objective(x)
        if primal < self.primal:
            self.x = x
            self.primal = primal
        bounds = np.zeros(problem.shape)
        equalities = np.zeros((len(problem.allowed.e), problem.shape[1]))
        if problem.allowed.constrains:
            _, bounds, equalities = problem.allowed.project(point.values[2] + point.duals[2])
        near = self._strength(point)
        share = near if self.form == "phillips" else 1.0
        slopes = [share * point.duals[0]]
        if self.smooth:
            slopes.append(problem.slopes(self.x))
        for theta in slopes:
            found = problem.dual_point(theta, share * bounds, share * equalities, near, self.form, self.value)
            bound = self._bound(found)
            if bound > self.bound or self.dual is None:
                self.bound = bound
                self.dual = found
        return self.gap()

    def offer(self, x: Array) -> float:
        """Return the relative gap after looking at a point of another method, for a smooth loss without constraints."""
        self.x = x
        self.primal = self._objective(x)
        none = np.zeros((0, self.problem.shape[1]))
        free = np.zeros(self.problem.shape)
        self.dual = self.problem.dual_point(self.problem.slopes(x), free, none, self.value, self.form, self.value)
        self.bound = self._bound(self.dual)
        return self.gap()

    def gap(self) -> float:
        """Return (P − D)/max(D, 1e-8 P₀); in Phillips's form P₀ is P itself."""
        excess = self.primal - self.bound
        if self.form == "phillips" and self.dual is not None and self.dual.strength < math.inf:
            over = self.problem.risk(self.problem.scores(self.x)) - self.value
            excess += max(0.0, over) / self.dual.strength
        if not math.isfinite(excess):
            return math.inf
        floor = 1e-8 * (self.primal if self.form == "phillips" else self.null)
        return excess / max(self.bound, floor, 1e-300) if excess > 0.0 else 0.0

    def solution(self, n_iter: int, stopped: bool) -> FormSolution:
        """Return the best of all."""
        dual = self.dual
        if dual is None:
            raise RuntimeError("the splitting method judges its first point")
        return FormSolution(self.x, dual, self.primal, self.bound, self.gap(), n_iter, stopped)

    def without_risk(self, rest: _Rest) -> FormSolution:
        """Return the point of least penalty, where R ≤ κ holds by itself."""
        self.x = rest.x
        self.primal = rest.omega
        self.bound = rest.bound
        zeros = np.zeros((self.problem.X.shape[0], self.problem.shape[1]))
        none = DualPoint(
            zeros,
            np.zeros(self.problem.shape),
            np.zeros((len(self.problem.allowed.e), self.problem.shape[1])),
            math.inf,
            0.0,
        )
        return FormSolution(rest.x, rest.dual or none, rest.omega, rest.bound, self.gap(), 0, False)

    def _strength(self, point: SplitPoint) -> float:
        """Return λ: given, or that of the last projection."""
        if self.form == "tikhonov":
            return self.value
        if self.form == "ivanov":
            paired = float(np.vdot(point.duals[1], point.values[1]))
            size = float(self.problem.penalty.value(point.values[1]))
            return max(paired, 0.0) / size if size > 0.0 else 0.0
        return 1.0 / max(self.pace, 1e-12)

    def _objective(self, x: Array) -> float:
        if self.form == "phillips":
            return self.problem.omega(x)
        risk = self.problem.risk(self.problem.scores(x))
        return risk + self.value * self.problem.omega(x) if self.form == "tikhonov" else risk

    def _bound(self, dual: DualPoint) -> float:
        if self.form == "tikhonov":
            return dual.value
        if self.form == "ivanov":
            return dual.value - dual.strength * self.value
        return (dual.value - self.value) / dual.strength

    def _feasible(self, x: Array) -> Array:
        """Return the point of the segment to one with room to spare that is next to x and feasible."""
        if self.form == "tikhonov":
            return x
        if self.form == "ivanov":
            return _nearest(lambda z: self.problem.omega(z) - self.value, x, self.rest.x)
        if self.room is None:
            return x
        return _nearest(lambda z: self.problem.risk(self.problem.scores(z)) - self.most, x, self.room)


def _by_coordinates(
    problem: Problem, strength: float, tol: float, max_iter: int, progress: Progress
) -> Solution | None:
    """Return the lasso or the elastic net by the coordinate descent made for it; None for every other problem."""
    penalty = problem.penalty
    if not isinstance(problem.loss, SquaredLoss) or problem.allowed.constrains or problem.shape[1] > 1:
        return None
    if problem.shape[0] > _MOST_COLUMNS or not isinstance(penalty, (L1Penalty, ElasticNetPenalty)):
        return None
    ratio = penalty.l1_ratio if isinstance(penalty, ElasticNetPenalty) else 1.0
    if ratio == 0.0:
        return None
    mean = float(problem.weight @ problem.y[:, 0])
    y = problem.y[:, 0] - (mean if problem.intercept else 0.0)
    weighted = problem.weight * y
    cross = np.asarray(problem.X.T @ weighted) - problem.centre * float(weighted.sum())
    level = strength * penalty.strength
    found = coordinate_descent(
        problem.gram,
        cross,
        float(weighted @ y),
        level * ratio,
        level * (1.0 - ratio),
        tol=0.1 * tol,
        max_iter=max_iter,
        progress=progress,
    )
    b = mean - float(problem.centre @ found.x) if problem.intercept else 0.0
    return found._replace(x=np.r_[b, found.x][:, None])


def _nearest(excess: Callable[[Array], float], x: Array, inside: Array) -> Array:
    """Return the first point on the way from x to a point inside with an excess of at most zero; convex functions."""
    if excess(x) <= 0.0:
        return x
    low = 0.0
    high = 1.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        if excess(x + middle * (inside - x)) <= 0.0:
            high = middle
        else:
            low = middle
        if high - low <= 1e-3 * high:
            break
    return np.asarray(x + high * (inside - x)) if high < 1.0 else inside


def _operators(problem: Problem, form: str, value: float, judge: _Judge) -> tuple[Any, Any]:
    """Return the proximal operators of the loss's and of the penalty's part."""
    loss = problem.loss
    penalty = problem.penalty

    def risk_prox(Z: Array, step: float) -> Array:
        return np.asarray(loss.prox(problem.y, Z, step))

    if form == "tikhonov":
        return risk_prox, lambda W, step: penalty.prox(W, step * value)
    if form == "ivanov":
        return risk_prox, _Ball(penalty, value)
    level = _LevelSet(problem, value, judge)
    return level, lambda W, step: penalty.prox(W, step)


class _Ball:
    """The projection onto {Ω ≤ τ}: a proximal step as long as that takes."""

    def __init__(self, penalty: Any, tau: float) -> None:
        self.penalty = penalty
        self.tau = tau
        self.last = 1.0

    def __call__(self, W: Array, step: float) -> Array:
        size = float(self.penalty.value(W))
        if size <= self.tau:
            return W
        if isinstance(self.penalty, L2Penalty):
            return W * math.sqrt(self.tau / size)
        if isinstance(self.penalty, NormPenalty):
            return W * (self.tau / size)
        self.last = _root(lambda t: float(self.penalty.value(self.penalty.prox(W, t))) - self.tau, self.last)
        return np.asarray(self.penalty.prox(W, self.last))


class _LevelSet:
    """The projection of scores onto {R ≤ κ}, in the metric of the rows' weights; it tells the multiplier."""

    def __init__(self, problem: Problem, kappa: float, judge: _Judge) -> None:
        self.problem = problem
        self.kappa = kappa
        self.judge = judge
        self.last = 1.0

    def __call__(self, Z: Array, step: float) -> Array:
        problem = self.problem
        if problem.risk(Z) <= self.kappa:
            self.judge.pace = 0.0
            return Z
        self.last = _root(lambda t: problem.risk(problem.loss.prox(problem.y, Z, t)) - self.kappa, self.last)
        self.judge.pace = self.last / step
        return np.asarray(problem.loss.prox(problem.y, Z, self.last))


def _root(excess: Callable[[float], float], near: float) -> float:
    """Return the t > 0 at which a falling function, positive at zero, is zero; the farthest if it is nowhere."""
    low = high = min(max(near, 1e-12), _FARTHEST)
    while excess(low) < 0.0 and low > 1e-30:
        high = low
        low /= 4.0
    while excess(high) > 0.0:
        low = high
        high *= 4.0
        if high > _FARTHEST:
            return _FARTHEST
    if low == high:
        return low
    found = brentq(lambda t: excess(math.exp(t)), math.log(low), math.log(high), xtol=1e-13, rtol=1e-13)
    return math.exp(float(found))


def _least_penalty(problem: Problem, max_iter: int) -> _Rest:
    """Return the allowed W of least penalty with its best intercept."""
    p, k = problem.shape
    x = np.zeros((p + 1, k))
    dual: DualPoint | None = None
    bound = 0.0
    at_zero = float(problem.penalty.value(x[1:])) == 0.0
    if not (at_zero and problem.allowed.has_zero):
        x, dual, bound = _smallest_allowed(problem, max_iter)
    x = x.copy()
    x[0] = _best_intercept(problem, problem.scores(x)) if problem.intercept else 0.0
    return _Rest(x, problem.omega(x), problem.risk(problem.scores(x)), dual, bound)


def _smallest_allowed(problem: Problem, max_iter: int) -> tuple[Array, DualPoint | None, float]:
    """Minimise Ω over C by the same method, with no loss."""
    p, k = problem.shape
    zeros = np.zeros((problem.X.shape[0], k))
    best: list[Any] = [None, math.inf, None, -math.inf]

    def judge(point: SplitPoint) -> float:
        W = problem.allowed.project(point.values[1])[0]
        size = float(problem.penalty.value(W))
        if size < best[1]:
            best[0] = np.vstack([np.zeros(k), W])
            best[1] = size
        bounds = np.zeros((p, k))
        equalities = np.zeros((len(problem.allowed.e), k))
        if problem.allowed.constrains:
            _, bounds, equalities = problem.allowed.project(point.values[2] + point.duals[2])
        found = problem.dual_point(zeros, bounds, equalities, 1.0, "tikhonov", 1.0)
        if found.value > best[3]:
            best[2] = found
            best[3] = found.value
        return float(max(0.0, best[1] - best[3]) / max(abs(best[3]), 1e-12))

    operators = (lambda Z, step: Z, lambda W, step: problem.penalty.prox(W, step))
    problem.split(operators, judge, np.zeros((p + 1, k)), tol=1e-9, max_iter=max_iter)
    return best[0], best[2], float(best[3])


def _best_intercept(problem: Problem, Z: Array) -> Array:
    """Return the b that makes R(Z + b) least; with several classes, the better of zero and the classes' log-shares."""
    k = Z.shape[1]
    if problem.multiclass:
        shares = np.log(np.bincount(problem.y, problem.weight, k))
        return shares if problem.risk(Z + shares) < problem.risk(Z) else np.zeros(k)
    reach = float(np.abs(problem.y).max(initial=0.0) + np.abs(Z).max(initial=0.0)) + 50.0
    low = np.full(k, -reach)
    high = np.full(k, reach)
    for _ in range(100):
        b = 0.5 * (low + high)
        with np.errstate(over="ignore"):
            rising = problem.weight @ problem.loss.gradient(problem.y, Z + b) > 0.0
        low = np.where(rising, low, b)
        high = np.where(rising, b, high)
    return 0.5 * (low + high)


def _refuse_small_ball(problem: Problem, rest: _Rest, tau: float) -> None:
    if rest.omega > tau * (1.0 + _ROUNDING):
        raise ParameterError(
            f"RegularizedRisk: value must be at least {rest.omega:.6g} in the form 'ivanov': no allowed coefficients "
            f"have a penalty of at most {tau:.6g}. Attainable are all values from {rest.omega:.6g} on."
        )


def _roomy_risk(problem: Problem, most: float, kappa: float, max_iter: int, progress: Progress) -> Array:
    """Return a point with R < κ: Tikhonov's with a λ that is small enough; raise ParameterError if none is.

    Where R stays above κ, the dual point of the last λ proves that reaching κ takes a penalty above (D − κ)/λ.
    """
    strength = problem.spread
    start = np.zeros((problem.shape[0] + 1, problem.shape[1]))
    found: Array | None = None
    wanted = kappa + problem.base
    roomy = kappa - 0.02 * (most - kappa)
    lowest = most
    for _ in range(_DECADES):
        judge = _Judge(problem, "tikhonov", strength, _Rest(start, 0.0, most, None, 0.0))

        def enough(point: SplitPoint, judge: _Judge = judge) -> float:
            gap = judge(point)
            return 0.0 if problem.risk(problem.scores(judge.x)) < roomy else gap

        _, _, stopped = problem.split(
            _operators(problem, "tikhonov", strength, judge),
            enough,
            start,
            tol=1e-3,
            max_iter=min(max_iter, _SHORT),
            progress=lambda step, _: progress(step, math.inf),
        )
        start = judge.x
        lowest = problem.risk(problem.scores(start))
        if lowest < kappa - _ROUNDING * most:
            if found is not None or stopped or lowest < roomy:
                return start
            found = start  # one more decade gives more room
        elif stopped:
            raise ParameterError(
                f"RegularizedRisk: max_seconds was over before a risk of at most {wanted:.6g} was found; the lowest so "
                f"far is {lowest + problem.base:.6g}. Raise max_seconds, or value."
            )
        elif judge.bound > kappa and strength <= 1e-8 * problem.spread:
            raise ParameterError(
                "RegularizedRisk: value is too small in the form 'phillips': the least risk of allowed coefficients is "
                f"about {lowest + problem.base:.6g}, and it is proven that a risk of {wanted:.6g} would take a penalty "
                f"above {(judge.bound - kappa) / strength:.3g}. Attainable are values from about "
                f"{lowest + problem.base:.6g} to {most + problem.base:.6g}, the risk at the least penalty, beyond "
                "which the constraint is idle."
            )
        strength /= 10.0
    if found is None:  # κ may be the least risk itself: a small λ can have it, and a long run finds it
        judge = _Judge(problem, "tikhonov", 1e-3 * problem.spread, _Rest(start, 0.0, most, None, 0.0))

        def reached(point: SplitPoint) -> float:
            gap = judge(point)
            return 0.0 if problem.risk(problem.scores(judge.x)) <= kappa + 0.5 * _SLACK * most else gap

        operators = _operators(problem, "tikhonov", 1e-3 * problem.spread, judge)
        problem.split(
            operators, reached, start, tol=1e-12, max_iter=max_iter, progress=lambda step, _: progress(step, math.inf)
        )
        lowest = min(lowest, problem.risk(problem.scores(judge.x)))
        found = judge.x if lowest <= kappa + _SLACK * most else None
    if found is None:
        raise ParameterError(
            f"RegularizedRisk: no coefficients with a risk below {wanted:.6g} were found; the lowest risk is about "
            f"{lowest + problem.base:.6g}. Raise value above it, or max_iter."
        )
    return found
