r"""Variants of AdaBoost that revise earlier votes: totally corrective boosting and FloatBoost.

**Totally corrective** (J. Kivinen and M. Warmuth, Boosting as entropy projection, 1999): after each round the votes of
*all* learners minimise the exponential loss, φ(a) = Σ_i w_i exp(Σ_t a_t(1[h_t wrong on i] − c)) over a ≥ 0 with
c = (K−1)/K. φ is convex; a projected Newton method (D. Bertsekas, 1982) ends where every learner with a vote has the
error c of a guess under D, and no other has less. Where the learners separate the rows, φ has no minimum but the limit
zero, and the votes stop growing when the gradient is below the tolerance, in units of φ(0) = 1.

**FloatBoost** (S. Li and Z. Zhang, FloatBoost learning and statistical face detection, 2004): after each round, remove
the learner whose removal leaves the smallest loss, as long as that loss is below the smallest ever reached with that
many learners. Every removal lowers a recorded minimum, so that the walk cannot cycle.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.run import never

Array = NDArray[np.float64]
Wrong = NDArray[np.uint8]

_CHUNK_ROWS = 2**13
_MOST_STEPS = 200
_ARMIJO = 1e-4
_ACTIVE = 1e-10
#: Steps that lower the gradient, though the loss is flat to the last digit.
_LAST_STEPS = 3
#: A removal has to lower the recorded loss by this share: rounding is no reason to remove anybody.
_HELPFUL = 1e-9


class Corrected(NamedTuple):
    """Votes of all learners."""

    votes: Array  #: (T,) a ≥ 0
    g: Array  #: (n,) Σ_t a_t·1[h_t wrong on i]
    gradient: float  #: largest entry of the projected gradient
    n_iter: int


def correct_votes(
    wrong: Wrong, weight: Array, n_classes: int, start: Array, tol: float, stop: Callable[[], bool] = never
) -> Corrected:
    """Minimise φ over the votes of all learners.

    Parameters
    ----------
    wrong : (T, n) uint8
        Which learner errs on which row.
    weight : (n,) float64
        Positive, with sum one.
    n_classes : int
        K.
    start : (T,) float64
        Votes to begin with.
    tol : float
        Largest projected gradient left.
    stop : function
        Asked once a step; True returns the votes so far.
    """
    c = (n_classes - 1) / n_classes
    a = np.maximum(start, 0.0)
    z = combine(wrong, a) - c * a.sum()
    value = float(weight @ np.exp(z))
    n_iter, flat = 0, 0
    while True:
        E = weight * np.exp(z)
        gradient, hessian = _derivatives(wrong, E, c)
        worst = float(np.where(a > 0, np.abs(gradient), np.maximum(-gradient, 0.0)).max())
        if worst <= tol or n_iter == _MOST_STEPS or flat == _LAST_STEPS or stop():
            break
        n_iter += 1
        free = (a > _ACTIVE) | (gradient < 0)
        direction = -a  # a vote that is almost zero, and should fall, becomes zero
        ridge = 1e-12 * max(float(np.trace(hessian)), value) * np.eye(int(free.sum()))
        direction[free] = -np.linalg.solve(hessian[np.ix_(free, free)] + ridge, gradient[free])
        moved = _search(wrong, weight, c, a, direction, gradient, value)
        if moved is None:  # nothing more that float64 could tell apart
            break
        flat += moved[2] >= value
        a, z, value = moved
    return Corrected(a, combine(wrong, a), worst, n_iter)


def _search(
    wrong: Wrong, weight: Array, c: float, a: Array, direction: Array, gradient: Array, value: float
) -> tuple[Array, Array, float] | None:
    """Halve the step along the projected arc until φ falls enough (Armijo)."""
    step, rounding = 1.0, 4 * np.finfo(np.float64).eps * value
    while step > 1e-12:
        trial = np.maximum(a + step * direction, 0.0)
        z = combine(wrong, trial) - c * trial.sum()
        with np.errstate(over="ignore"):
            found = float(weight @ np.exp(z))
        if found <= value + _ARMIJO * float(gradient @ (trial - a)) + rounding:
            return trial, z, found
        step /= 2
    return None


def _derivatives(wrong: Wrong, E: Array, c: float) -> tuple[Array, Array]:
    """Return gradient and Hessian of φ, whose terms are E; the rows are taken in chunks."""
    T = len(wrong)
    G, H = np.zeros(T), np.zeros((T, T))
    for start in range(0, len(E), _CHUNK_ROWS):
        rows = slice(start, start + _CHUNK_ROWS)
        B = wrong[:, rows].astype(np.float64)
        G += B @ E[rows]
        H += (B * E[rows]) @ B.T
    total = float(E.sum())
    return G - c * total, H - c * (G[:, None] + G) + c * c * total


def combine(wrong: Wrong, votes: Array) -> Array:
    """Return Σ_t votes_t·wrong_t for each row."""
    found = np.zeros(wrong.shape[1])
    for start in range(0, len(found), _CHUNK_ROWS):
        rows = slice(start, start + _CHUNK_ROWS)
        found[rows] = votes @ wrong[:, rows].astype(np.float64)
    return found


def losses_without(wrong: Wrong, votes: Array, D: Array, loss: float, n_classes: int) -> Array:
    """Return the exponential loss that is left if one learner is removed, for each of them.

    A learner with error ε under the present D leaves L·e^{ac}((1 − ε) + εe^{−a}).
    """
    error = _errors(wrong, D)
    return loss * np.exp(votes * (n_classes - 1) / n_classes) * ((1.0 - error) + error * np.exp(-votes))


def _errors(wrong: Wrong, D: Array) -> Array:
    found = np.zeros(len(wrong))
    for start in range(0, len(D), _CHUNK_ROWS):
        rows = slice(start, start + _CHUNK_ROWS)
        found += wrong[:, rows].astype(np.float64) @ D[rows]
    return found


class SmallestLosses:
    """The smallest loss reached with each number of learners, by which FloatBoost decides."""

    def __init__(self) -> None:
        self.of_size: dict[int, float] = {0: 1.0}

    def record(self, size: int, loss: float) -> None:
        """Note the loss of an ensemble."""
        self.of_size[size] = min(loss, self.of_size.get(size, np.inf))

    def improved_by(self, size: int, loss: float) -> bool:
        """Tell whether an ensemble of this size would be better than any before."""
        return loss < self.of_size.get(size, np.inf) * (1.0 - _HELPFUL)
