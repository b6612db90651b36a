r"""Whether a linear rule separates the classes.

The unpenalised likelihood has a maximum exactly if there is no direction θ ≠ 0 (in the space the data span) along
which no row's own score falls behind another's: z_y ≥ z_k for all k, with one strict. Every claim made here has a
margin above rounding; nothing is read out of a gradient that is noise.

- *Complete separation* shows itself in the coefficients, which then classify every row rightly.
- *A maximum exists* if positive weights on all rows make the gradient vanish exactly. The residuals after one more
  (linearised) Newton step are such weights if the step changes every score by less than one. The step is computed in
  the quotient by what no score sees: a common shift of the softmax's scores and directions that the data do not span.
  What rounding of the gradient may add to a change is bounded, and counted.
- *Quasi-complete separation*: Newton steps then go on for ever along a direction that separates, by about one per step;
  the direction itself is tested on every row.
- What is left, where the rows fit into memory, is decided by a linear program.

Reference: A. Albert and J. Anderson, Biometrika 71 (1984).
"""

from __future__ import annotations

import operator
from functools import partial
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.linalg import cho_solve, lapack
from scipy.optimize import linprog
from scipy.special import softmax

from ...core import Array, NDArray
from ...data.blocks import Block, map_reduce
from ...risk.classes import ClassRisk
from ...risk.objective import add_sums
from ...solvers.problem import Solution
from ...solvers.systems.least_squares import dense_rows
from ...solvers.systems.normal_equations import conjugate_gradient

_LARGEST_PROGRAM = 2e6  # entries
_LONGEST_PROGRAM = 20.0  # seconds
_LARGEST_HESSIAN = 1500  # parameters
_MOST_STEPS = 40  # further Newton steps: rows that are separated gain about one score per step, and e⁻⁴⁰ is rounding
_SUM_ROUNDING = 50  # units in the last place that a sum over rows may lose
_ENOUGH_CHANGE = 0.5  # weights stay positive below 1, and rows that are separated gain 1
_MOST_NOISE = 0.1  # change that rounding of the gradient may add
_SPANNED = 1e-12  # share of the largest eigenvalue of the columns' Gram matrix below which rounding decides
_WEAK = 1e-6  # curvature, relative to the Gram matrix, below which a direction is looked at row by row
_MOST_WEAK = 64  # directions
_TIE = 1e-6  # share of the largest gain that a row may lose in a direction that separates


def is_separable(problem: ClassRisk, solution: Solution) -> bool:
    """Tell whether the likelihood increases for ever, looking at where the solver arrived.

    Where neither is shown (rows beyond memory, a linear program beyond its time), the answer is no: the fit's own
    certificate then says how small the gradient is.
    """
    if problem.over_scores(solution.x, _all_right, operator.and_):
        return True
    verdict = _decided_by_newton(problem, solution)
    if verdict is None:
        verdict = _some_direction_separates(problem)
    return bool(verdict)


def _decided_by_newton(problem: ClassRisk, solution: Solution) -> bool | None:
    """Take further Newton steps until a maximum is proven, or a step separates; None if neither happens."""
    x = solution.x
    value = solution.value
    gradient = solution.gradient
    reach = _column_reach(problem)
    for _ in range(_MOST_STEPS if solution.converged else 1):
        look = _newton_look(problem, x, gradient, reach)
        if look is None:
            return None
        change = problem.over_scores(look.step, _largest_change, max)
        if look.noise < _MOST_NOISE and change < _ENOUGH_CHANGE:
            return False
        least, most = problem.over_scores(-look.step, _range_of_gains, _wider_range)
        if most >= _ENOUGH_CHANGE and least >= -_TIE * most:
            return True
        if not look.step.any():
            return None
        now = problem.evaluate(x - look.step / max(1.0, -least))  # a row may gain by far more than it loses
        if now.value > value * (1 + 1e-9):
            now = problem.evaluate(x - look.step / max(1.0, change))  # curvature then stays the same up to a factor e
        x = np.asarray(problem.at)
        value = now.value
        gradient = now.gradient
    return None


class _Look(NamedTuple):
    """A Newton step at one point."""

    step: Array  #: (p,), H⁺ × gradient
    noise: float  #: by how much rounding of the gradient may change a row's score under that step


def _newton_look(problem: ClassRisk, x: Array, gradient: Array, reach: Array) -> _Look | None:
    """Return the Newton step with its noise; None where it cannot be had."""
    noise = _gradient_noise(problem, x, reach)
    n_classes = problem.n_scores
    if n_classes * problem.width > _LARGEST_HESSIAN:
        return _iterative_look(problem, x, gradient, noise)
    H = problem.hessian(x)
    look = _cholesky_look(problem, H, gradient, noise, reach)
    return look or _spectral_look(problem, x, H, gradient, noise, reach)


def _cholesky_look(problem: ClassRisk, H: Array, gradient: Array, noise: Array, reach: Array) -> _Look | None:
    """Solve with the last class's scores held at zero, which fixes the gauge; None unless well conditioned."""
    kept = max(1, problem.n_scores - 1) * problem.width
    H = H[:kept, :kept]
    diagonal = np.diag(H)
    if not (diagonal > 0).all():
        return None
    scale = 1.0 / np.sqrt(diagonal)
    A = H * np.outer(scale, scale)
    R, info = lapack.dpotrf(A, lower=0)
    if info != 0:
        return None
    norm = float(np.abs(A).sum(axis=0).max())
    rcond, info = lapack.dpocon(R, norm, uplo="U")
    if info != 0 or not rcond > _SPANNED:
        return None
    step = np.zeros(problem.n_scores * problem.width)
    step[:kept] = scale * cho_solve((R, False), scale * gradient[:kept], check_finite=False)
    longest = np.linalg.norm(scale.reshape(-1, problem.width) * reach, axis=1).max()
    error = float(longest * np.linalg.norm(scale * noise[:kept]) / (rcond * norm))
    return _Look(step, error) if error < _MOST_NOISE else None


def _spectral_look(problem: ClassRisk, x: Array, H: Array, gradient: Array, noise: Array, reach: Array) -> _Look | None:
    """Solve in coordinates in which the columns are orthonormal, and weak directions row by row.

    In a weak direction the terms of the Hessian cancel; summed over the rows' own scores along it they do not.
    """
    basis = _spanning_basis(problem)
    contrasts = _contrasts(problem.n_scores)
    T = np.kron(contrasts, basis)
    curvature, Q = np.linalg.eigh(T.T @ H @ T)
    strong = curvature > _WEAK
    F = T @ Q
    along = F.T @ gradient
    step = F[:, strong] @ (along[strong] / curvature[strong])
    longest = float(np.linalg.norm(np.abs(basis).T @ reach))
    blurred = np.abs(F).T @ noise
    error = float(np.linalg.norm(blurred[strong] / curvature[strong]))
    weak = np.ascontiguousarray(F[:, ~strong])
    if weak.shape[1] > _MOST_WEAK:
        return None
    if weak.shape[1]:
        statistic = partial(_weak_sums, problem, theta=x.reshape(problem.shape), directions=weak)
        slope, H_weak = map_reduce(problem.blocks, statistic, add_sums, n_jobs=problem.n_jobs)
        inner, V = np.linalg.eigh(H_weak)
        resolved = inner > max(_SPANNED * inner.max(), 1e-300)
        if not resolved.any():
            return None
        step = step + weak @ (V[:, resolved] @ ((V.T @ slope)[resolved] / inner[resolved]))
        # A row's score along a direction rounds like its terms, and its residual is at most one.
        total = float(problem.sums.weight.sum())
        blur = _unit(problem, x, reach) * total * float(reach @ np.abs(basis).max(axis=1))
        error += blur / float(inner[resolved].min()) if resolved.all() else np.inf
    return _Look(step, error * longest)


def _iterative_look(problem: ClassRisk, x: Array, gradient: Array, noise: Array) -> _Look | None:
    """Solve by conjugate gradients, which stay in the span of the data; None if the gradient is mostly noise."""
    G = gradient.reshape(problem.shape)
    if problem.n_scores > 1:
        G = G - G.mean(axis=0)  # the exact gradient has no part along the gauge
    g = G.ravel()
    product = problem.hessian_product(x)
    step = conjugate_gradient(product, g, tol=1e-10).x
    rest = np.linalg.norm(product(step) - g)
    if rest <= 1e-3 * np.linalg.norm(g):
        return _Look(step, 0.0)
    return _Look(step, 0.0) if rest <= np.linalg.norm(noise) and _least_weight(problem, x) > 1e-8 else None


def _least_weight(problem: ClassRisk, x: Array) -> float:
    """Return the smallest probability of any class at any row: weights far above the gradient's noise."""
    return problem.over_scores(x, lambda scores, _: float(softmax(scores, axis=1).min()), min)


def _column_reach(problem: ClassRisk) -> Array:
    """Return the largest |(1, x − centre)| of each column (zero for an intercept that is not free)."""
    reach = map_reduce(problem.blocks, partial(_largest_entries, centre=problem.centre), np.maximum)
    return np.r_[1.0 if problem.intercept else 0.0, reach]


def _largest_entries(block: Block, centre: Array) -> Array:
    if sp.issparse(block.X):
        return np.asarray(np.abs(block.X).max(axis=0).toarray()).ravel() + np.abs(centre)
    # Rounded differences rise with x, so these are those of |x − centre| to the last bit, without a copy of the rows.
    return np.maximum(block.X.max(axis=0) - centre, centre - block.X.min(axis=0))


def _unit(problem: ClassRisk, x: Array, reach: Array) -> float:
    """Return how much, in parts of its largest term, a sum over rows may round: scores included."""
    size = float((np.abs(x.reshape(problem.shape)) @ reach).max())
    return float(np.finfo(np.float64).eps) * (_SUM_ROUNDING + size)


def _gradient_noise(problem: ClassRisk, x: Array, reach: Array) -> Array:
    """Return by how much each entry of the gradient may be wrong: |residuals| ≤ 1 and Cauchy–Schwarz."""
    total = float(problem.sums.weight.sum())
    squares = np.r_[total if problem.intercept else 0.0, problem.sums.square]
    return np.tile(_unit(problem, x, reach) * np.sqrt(total * squares), problem.n_scores)


def _contrasts(n_scores: int) -> Array:
    """Return an orthonormal basis of the scores modulo a common shift; (1, 1) for a single score."""
    if n_scores == 1:
        return np.ones((1, 1))
    return np.linalg.qr(np.eye(n_scores)[:, :-1] - 1.0 / n_scores)[0]


def _spanning_basis(problem: ClassRisk) -> Array:
    """Return B (width, r) such that the columns of (1, X − centre)B are orthonormal and span the rows."""
    G = problem.gram()
    free = slice(None) if problem.intercept else slice(1, None)
    diagonal = np.diag(G)[free]
    scale = np.divide(1.0, np.sqrt(diagonal), out=np.zeros_like(diagonal), where=diagonal > 0)
    values, U = np.linalg.eigh(G[free, free] * np.outer(scale, scale))
    kept = values > _SPANNED * values[-1]
    basis = np.zeros((problem.width, int(kept.sum())))
    basis[free] = scale[:, None] * U[:, kept] / np.sqrt(values[kept])
    return basis


def _weak_sums(problem: ClassRisk, block: Block, theta: Array, directions: Array) -> list[Array]:
    """Return gradient (e,) and Hessian (e, e) along some directions, from sums of terms that do not cancel."""
    n_directions = directions.shape[1]
    V = directions.T.reshape(n_directions * problem.n_scores, problem.width)
    codes = np.asarray(block.y)
    weight = np.ones(len(codes)) if block.weight is None else block.weight
    slope = np.zeros(n_directions)
    H = np.zeros((n_directions, n_directions))
    for rows, X in problem._tiles(block):
        z = problem._scores(X, theta)
        u = problem._scores(X, V).reshape(len(z), n_directions, problem.n_scores)
        if problem.n_scores == 1:
            z = np.column_stack([np.zeros(len(z)), z[:, 0]])
            u = np.concatenate([np.zeros_like(u), u], axis=2)
        p = softmax(z, axis=1)
        own = np.take_along_axis(u, codes[rows][:, None, None], axis=2)
        lead = u - own  # of each class before the row's own, whose share of the gradient it takes
        s = weight[rows]
        slope += np.einsum("i,ik,iek->e", s, p, lead)
        mean = np.einsum("ik,iek->ie", p, lead)
        spread = np.sqrt(s[:, None, None] * p[:, None, :]) * (lead - mean[:, :, None])
        H += np.einsum("iek,ifk->ef", spread, spread, optimize=True)
    return [slope, H]


def _all_right(scores: Array, codes: NDArray[np.int64]) -> bool:
    """Tell whether every row's own score is above the others."""
    rows = np.arange(len(codes))
    own = scores[rows, codes]
    rivals = scores.copy()
    rivals[rows, codes] = -np.inf
    return bool((own > rivals.max(axis=1)).all())


def _largest_change(change: Array, codes: NDArray[np.int64]) -> float:
    """Return the largest change of one class's score against another's."""
    return float((change.max(axis=1) - change.min(axis=1)).max())


def _range_of_gains(change: Array, codes: NDArray[np.int64]) -> tuple[float, float]:
    """Return the smallest and the largest z_y − z_k over rows and rivals k."""
    gains = np.take_along_axis(change, codes[:, None], axis=1) - change  # zero for the own class
    return float(gains.min()), float(gains.max())


def _wider_range(a: tuple[float, float], b: tuple[float, float]) -> tuple[float, float]:
    return min(a[0], b[0]), max(a[1], b[1])


def _some_direction_separates(problem: ClassRisk) -> bool | None:
    """Maximise Σ min(z_y − z_k, 1) subject to z_y ≥ z_k over all directions: positive exactly if one separates.

    None where the program is too large to be solved.
    """
    size = problem.blocks.n_rows * problem.width * problem.n_classes
    if size > _LARGEST_PROGRAM or not problem.blocks.in_memory:
        return None
    codes = np.asarray(problem.blocks.joined().y)
    X = dense_rows(problem.blocks)[0] - problem.sums.centre
    design = np.column_stack([np.ones(len(X)), X]) if problem.intercept else X
    size = np.abs(design).max(axis=0)
    design = design / np.where(size > 0, size, 1.0)
    if problem.n_scores == 1:
        differences = sp.csr_array(design * np.where(codes == 1, 1.0, -1.0)[:, None])
    else:
        pairs = []
        for rival in range(problem.n_classes):
            rows = np.flatnonzero(codes != rival)
            place = np.zeros((len(rows), problem.n_classes))
            place[np.arange(len(rows)), codes[rows]] = 1.0
            place[:, rival] = -1.0
            pairs.append(sp.csr_array((place[:, :, None] * design[rows][:, None, :]).reshape(len(rows), -1)))
        differences = sp.vstack(pairs, format="csr")
    m, p = differences.shape
    gain = sp.hstack([-differences, sp.eye_array(m)], format="csr")  # t ≤ z_y − z_k, 0 ≤ t ≤ 1
    result = linprog(
        np.r_[np.zeros(p), -np.ones(m)],
        A_ub=gain,
        b_ub=np.zeros(m),
        bounds=[(-1e6, 1e6)] * p + [(0.0, 1.0)] * m,
        method="highs",
        options={"time_limit": _LONGEST_PROGRAM},
    )
    return bool(-result.fun > 1e-6) if result.status == 0 else None
