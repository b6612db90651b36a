r"""Maps from a classifier's scores to probabilities, each fitted to held-out rows.

- **Sigmoid** (Platt): p = 1/(1 + e^{as + b}), maximum likelihood for the targets t₊ = (n₊ + 1)/(n₊ + 2), t₋ = 1/(n₋ +
  2), which keep the optimum finite when the scores separate the classes. Two parameters, by Newton's method.
- **Isotonic**: the nondecreasing f that minimises Σ w (y − f(s))², by pool-adjacent-violators; linear between the
  scores it was fitted at, constant outside.
- **Temperature**: p = softmax(βz), β = 1/T > 0 minimising the log loss. The order of the classes stays as it is. The
  loss is convex in β, and its slope Σ w (E_p[z] − z_y) increases, so its root is found by bracketing.

Weights count as repetitions. Each fit returns the map and how far it is from optimal, as a relative gradient.

References: J. Platt, Probabilistic outputs for support vector machines, 1999; B. Zadrozny and C. Elkan, Transforming
classifier scores into accurate multiclass probability estimates, KDD 2002; C. Guo et al., On calibration of modern
neural networks, ICML 2017.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq, isotonic_regression
from scipy.special import expit, softmax

from ..core.errors import ModelFileError
from ..solvers.problem import Evaluation
from ..solvers.smooth.newton import newton

Array = NDArray[np.float64]

#: Relative gradient that the sigmoid and the temperature have to reach.
TOLERANCE = 1e-8
#: The temperature lies between e^{−10} and e^{10}, as in scikit-learn; there softmax is uniform or one-hot already.
LARGEST_LOG_TEMPERATURE = 10.0
_GOAL = 1e-12  # two parameters: the last digits cost one more step


@dataclass(frozen=True)
class Sigmoid:
    """Platt's map s ↦ 1/(1 + e^{as + b}).

    Attributes
    ----------
    a : float
        Slope; negative when a larger score means a larger probability.
    b : float
        Offset.
    """

    a: float
    b: float

    def __call__(self, scores: Array) -> Array:
        """Return the probabilities of scores (n,)."""
        return np.asarray(expit(-(self.a * scores + self.b)))

    def _check_loaded(self) -> None:
        if not (np.isfinite(self.a) and np.isfinite(self.b)):
            raise ModelFileError("load: a sigmoid's numbers are not finite.")


@dataclass(frozen=True)
class Isotonic:
    """A nondecreasing map, linear between its points and constant outside.

    Attributes
    ----------
    scores : (m,) array
        Where the map is given, increasing.
    values : (m,) array
        Its values there, nondecreasing, between 0 and 1.
    """

    scores: NDArray[Any]
    values: NDArray[Any]

    def __call__(self, scores: Array) -> Array:
        """Return the probabilities of scores (n,)."""
        return np.asarray(np.interp(scores, self.scores, self.values))

    def _check_loaded(self) -> None:
        x = self.scores
        f = self.values
        if x.dtype != np.float64 or f.dtype != np.float64 or x.ndim != 1 or x.shape != f.shape or not len(x):
            raise ModelFileError("load: an isotonic map must be two arrays of numbers of the same length.")
        rises = (x[1:] > x[:-1]).all() and (f[1:] >= f[:-1]).all()
        if not (np.isfinite(x).all() and rises and f[0] >= 0 and f[-1] <= 1):
            raise ModelFileError("load: an isotonic map must increase, from 0 to 1.")


@dataclass(frozen=True)
class Temperature:
    """The map z ↦ softmax(βz) on rows of logits.

    Attributes
    ----------
    beta : float
        Inverse temperature β > 0.
    """

    beta: float

    def __call__(self, logits: Array) -> Array:
        """Return the probabilities (n, K) of logits (n, K)."""
        return np.asarray(softmax(self.beta * logits, axis=1))

    def _check_loaded(self) -> None:
        if not 0 < self.beta < np.inf:
            raise ModelFileError("load: an inverse temperature must be positive.")


def fit_sigmoid(scores: Array, positive: NDArray[np.bool_], weight: Array | None = None) -> tuple[Sigmoid, float]:
    """Fit Platt's sigmoid to scores (n,) of rows that are positive or not.

    Examples
    --------
    >>> import numpy as np
    >>> sigmoid, gradient = fit_sigmoid(np.array([-1.0, 0.0, 1.0]), np.array([False, False, True]))
    >>> sigmoid(np.array([-1.0, 1.0])).round(3), gradient < 1e-8
    (array([0.188, 0.605]), True)
    """
    w = np.ones(len(scores)) if weight is None else weight
    target = platt_targets(positive, w)
    # In standard units the two parameters hardly interact, whatever the scores' offset and scale.
    centre, scale = _standard_units(scores, w)
    problem = _PlattLoss((scores - centre) / scale, target, w)
    mean = float(np.average(target, weights=w))
    start = np.array([0.0, np.log(mean) - np.log1p(-mean)])
    solution = newton(problem, start, tol=_GOAL)
    slope, offset = solution.x
    a = -slope / scale
    return Sigmoid(float(a), float(-offset - a * centre)), float(solution.measure)


def platt_targets(positive: NDArray[np.bool_], w: Array) -> Array:
    """Return t₊ and t₋: the posterior means of the two labels under a uniform prior."""
    n_positive = float(w[positive].sum())
    n_negative = float(w[~positive].sum())
    return np.where(positive, (n_positive + 1.0) / (n_positive + 2.0), 1.0 / (n_negative + 2.0))


def fit_isotonic(scores: Array, positive: NDArray[np.bool_], weight: Array | None = None) -> tuple[Isotonic, float]:
    """Fit a nondecreasing map to scores (n,) of rows that are positive or not.

    Examples
    --------
    >>> import numpy as np
    >>> isotonic, _ = fit_isotonic(np.array([1.0, 2.0, 3.0, 4.0]), np.array([False, True, False, True]))
    >>> isotonic.values
    array([0. , 0.5, 0.5, 1. ])
    """
    w = np.ones(len(scores)) if weight is None else weight
    points, place = np.unique(scores, return_inverse=True)
    totals = np.bincount(place, w)
    means = np.bincount(place, w * positive) / totals
    values = np.clip(isotonic_regression(means, weights=totals).x, 0.0, 1.0)
    inner = (values[1:-1] != values[:-2]) | (values[1:-1] != values[2:])
    kept = np.concatenate(([True], inner, [True]))[: len(points)]  # inside a flat stretch the ends say it all
    return Isotonic(points[kept], values[kept]), 0.0


def fit_temperature(logits: Array, codes: NDArray[np.int64], weight: Array | None = None) -> tuple[Temperature, float]:
    """Fit the temperature to logits (n, K) of rows whose classes are `codes`.

    Examples
    --------
    >>> import numpy as np
    >>> logits = np.array([[9.0, 0.0], [9.0, 0.0], [9.0, 0.0], [0.0, 9.0]])
    >>> temperature, _ = fit_temperature(logits, np.array([0, 0, 1, 1]))
    >>> temperature(logits)[0].round(3)
    array([0.75, 0.25])
    """
    w = np.ones(len(logits)) if weight is None else weight
    own = logits[np.arange(len(codes)), codes]
    excess = logits - own[:, None]
    size = float(w @ np.abs(excess).max(axis=1)) or 1.0

    def slope(log_beta: float) -> float:
        p = softmax(np.exp(log_beta) * logits, axis=1)
        return float(w @ (p * excess).sum(axis=1)) / size

    most = LARGEST_LOG_TEMPERATURE
    if slope(-most) >= 0:  # the scores do not help, or mislead
        return Temperature(float(np.exp(-most))), 0.0
    if slope(most) <= 0:  # no row is misplaced: colder is always better
        return Temperature(float(np.exp(most))), 0.0
    log_beta = float(brentq(slope, -most, most, xtol=1e-14, rtol=1e-14))
    return Temperature(float(np.exp(log_beta))), abs(slope(log_beta))


class _PlattLoss:
    """The function (u, v) ↦ Σ w [log(1 + e^z) − tz], z = us + v, per unit of weight."""

    def __init__(self, scores: Array, target: Array, w: Array) -> None:
        self.design = np.column_stack([scores, np.ones(len(scores))])
        self.target = target
        self.w = w / w.sum()

    def evaluate(self, x: Array) -> Evaluation:
        z = self.design @ x
        loss = float(self.w @ (np.logaddexp(0.0, z) - self.target * z))
        gradient = self.design.T @ (self.w * (expit(z) - self.target))
        return Evaluation(loss, gradient, float(np.abs(gradient).max()))

    def hessian(self, x: Array) -> Array:
        p = expit(self.design @ x)
        return np.asarray(self.design.T @ ((self.w * p * (1.0 - p))[:, None] * self.design))


def _standard_units(scores: Array, w: Array) -> tuple[float, float]:
    """Return the weighted mean and deviation of the scores (1 if they are all alike)."""
    largest = float(np.abs(scores).max()) or 1.0
    scaled = scores / largest
    centre = float(np.average(scaled, weights=w))
    deviation = float(np.sqrt(np.average((scaled - centre) ** 2, weights=w)))
    if deviation < 1e-14:
        return float(scores[0]), largest
    return centre * largest, deviation * largest
