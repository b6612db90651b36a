r"""Laplace's approximation of a Gaussian process that is seen through labels.

    tᵢ ~ Bernoulli(σ(fᵢ)),   f ~ N(0, K).   With g = t − σ(f), W = σ(1 − σ) and B = I + √W K √W = LLᵀ:

the posterior is approximated by a normal distribution at its mode, f = Kg, found by Newton's method; then

    log p(t) ≈ log q = −½ fᵀg + Σ log p(tᵢ | fᵢ) − Σ log Lᵢᵢ,

    ∂ log q/∂θⱼ = Σᵢₖ Sᵢₖ ∂Kᵢₖ/∂θⱼ,   S = ½(ggᵀ − R) + ½(ugᵀ + guᵀ),   R = √W B⁻¹ √W,   u = (I − RK)s,

where s = −½ diag(K − KRK) ∘ σ(1 − σ)(1 − 2σ): how log|B| changes because the mode moves.

Reference: C. Rasmussen and C. Williams, Gaussian Processes for Machine Learning, 2006, algorithms 3.1, 3.2 and 5.1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dtrsm
from scipy.linalg.lapack import dpotrf, dpotri
from scipy.special import expit, ndtr

from ...core.estimator import never
from ...core.threads import interruptible
from ...risk.kernels.base import Kernel
from ...risk.kernels.tape import record
from ...solvers.problem import Evaluation
from .._kernels import mirror
from .likelihood import stationarity

Array = NDArray[np.float64]

#: σ(x) ≈ Σ pₖ Φ(sₖ x) to eight digits: J. Monahan and L. Stefanski, in N. Balakrishnan (ed.), Handbook of the
#: Logistic Distribution, 1992.
_SHARES = np.array([
    0.003246343272134, 0.051517477033972, 0.195077912673858, 0.315569823632818,
    0.274149576158423, 0.131076880695470, 0.027912418727972, 0.001449567805354,
])  # fmt: skip
_SLOPES = np.array([
    1.365340806296348, 1.059523971016916, 0.830791313765644, 0.650732166639391,
    0.508135425366489, 0.396313345166341, 0.308904252267995, 0.238212616409306,
])  # fmt: skip
_STILL = 1e-9  # relative step at which the mode is found: steps shrink quadratically, so its square is left
_HALVINGS = 30


@dataclass(frozen=True)
class Labels:
    """Points and labels."""

    share: ClassVar[int] = 2  #: a search on half of the rows comes first: it takes an eighth of the time
    X: Array  #: (n, d)
    y: Array  #: (n,) 0 or 1

    def some(self, rows: NDArray[np.int64]) -> Labels:
        """Return some of the rows."""
        return replace(self, X=self.X[rows], y=self.y[rows])


class Mode(NamedTuple):
    """The mode of the posterior and what stands around it."""

    value: float  #: log q
    f: Array  #: (n,)
    g: Array  #: (n,) t − σ(f)
    root: Array  #: (n,) √W
    L: Array  #: (n, n) lower factor of B; above the diagonal zeros
    residual: float  #: max |f − Kg| / (1 + max |f|)
    n_iter: int
    still: bool  #: whether the last step moved nothing


def find_mode(
    K: Array, t: Array, start: Array | None = None, max_iter: int = 100, stop: Callable[[], bool] = never
) -> Mode | None:
    """Return the mode by Newton's method; None where B is not positive definite to working precision.

    Once `stop` says True no step is begun: the residual tells how far from the mode that is.
    """
    return interruptible(_find_mode, K, t, start, max_iter, stop)


def _find_mode(K: Array, t: Array, start: Array | None, max_iter: int, stop: Callable[[], bool]) -> Mode | None:
    sign = 2.0 * t - 1.0
    a, f = np.zeros(len(t)), np.zeros(len(t))
    height = _height(sign, a, f)
    if start is not None and len(start) == len(t):  # as a = g(start), so that f is in the span of K
        trial = t - expit(start)
        moved = K @ trial
        if _height(sign, trial, moved) > height:
            a, f, height = trial, moved, _height(sign, trial, moved)
    g, root, L = _around(K, t, f)
    n_iter, still = 0, False
    while L is not None and n_iter < max_iter and not still and not stop():
        b = root**2 * f + g
        step = b - root * _solve(L, root * (K @ b)) - a
        (a, f, height), still = climb(K, (a, f, height), step, lambda a, f: _height(sign, a, f))
        g, root, L = _around(K, t, f)
        n_iter += 1
    if L is None:
        return None
    value = -0.5 * float(a @ f) - float(np.logaddexp(0.0, -sign * f).sum()) - float(np.log(np.diagonal(L)).sum())
    residual = float(np.abs(f - K @ g).max()) / (1.0 + float(np.abs(f).max()))
    return Mode(value, f, g, root, L, residual, n_iter, still) if np.isfinite(value) else None


def climb(
    K: Array, at: tuple[Array, Array, float], step: Array, height: Callable[[Array, Array], float]
) -> tuple[tuple[Array, Array, float], bool]:
    """Take a step from (a, f = aK, height), halved until the height does not fall; tell whether f stands still."""
    a, f, now = at
    length = 1.0
    for _ in range(_HALVINGS):
        trial = a + length * step
        moved = trial @ K
        new = height(trial, moved)
        if new >= now - 1e-14 * abs(now):
            still = float(np.abs(moved - f).max()) <= _STILL * (1.0 + float(np.abs(moved).max()))
            return (trial, moved, new), still
        length *= 0.5
    return at, True


def _height(sign: Array, a: Array, f: Array) -> float:
    """Return log p(t | f) − ½ fᵀK⁻¹f, where f = Ka."""
    return -0.5 * float(a @ f) - float(np.logaddexp(0.0, -sign * f).sum())


def _around(K: Array, t: Array, f: Array) -> tuple[Array, Array, Array | None]:
    """Return g, √W and the factor of B."""
    pi = expit(f)
    root = np.sqrt(pi * expit(-f))
    B = root[:, None] * K * root
    B.flat[:: len(B) + 1] += 1.0
    if not np.isfinite(B).all():
        return t - pi, root, None
    L, info = dpotrf(B.T, lower=1, clean=1, overwrite_a=1)
    return t - pi, root, L if info == 0 else None


def _solve(L: Array, b: Array) -> Array:
    half = dtrsm(1.0, L, b[:, None], lower=1)
    return np.asarray(dtrsm(1.0, L, half, lower=1, trans_a=1)[:, 0])


class LaplaceObjective:
    """−log q as a function of θ in a box, for solvers; each mode starts from the last one found.

    The measure is the largest derivative that no bound holds back, relative to n.
    """

    def __init__(
        self, kernel: Kernel, data: Labels, bounds: Array, max_iter: int = 100, stop: Callable[[], bool] = never
    ) -> None:
        self.kernel, self.data, self.bounds, self.max_iter = kernel, data, bounds, max_iter
        self._stop = stop
        self._last: Array | None = None
        self.unfinished: Mode | None = None  #: what the first evaluation had when the time was up

    def evaluate(self, theta: Array) -> Evaluation:
        """Return value, gradient and measure; infinite where B is not positive definite."""
        K, back, _ = record(self.kernel.with_theta(theta), self.data.X)
        first, sound = self._last is None, np.isfinite(K).all()
        mode = find_mode(K, self.data.y, self._last, self.max_iter, self._stop) if sound else None
        if mode is None:
            return Evaluation(np.inf, np.zeros_like(theta), np.inf)
        self._last = mode.f
        if not mode.still and self._stop():  # of no use but as a start, which the first one has to be
            self.unfinished = mode if first else None
            return Evaluation(-mode.value if first else np.inf, np.zeros_like(theta), np.inf)
        gradient = back(interruptible(_weights, K, mode))
        if not np.isfinite(gradient).all():
            return Evaluation(np.inf, np.zeros_like(theta), np.inf)
        return Evaluation(-mode.value, -gradient, stationarity(theta, gradient, self.bounds, len(K)))

    def value(self, theta: Array) -> float:
        """Return −log q alone."""
        K = self.kernel.with_theta(theta)(self.data.X)
        mode = find_mode(K, self.data.y, self._last, self.max_iter, self._stop) if np.isfinite(K).all() else None
        return np.inf if mode is None or (not mode.still and self._stop()) else -mode.value

    def curvature(self, theta: Array) -> Array:
        """Return ½ tr R ∂ⱼK R ∂ₖK, the information of normal observations with the precisions W. For few rows."""
        kernel = self.kernel.with_theta(theta)
        mode = find_mode(kernel(self.data.X), self.data.y, None, self.max_iter, self._stop)
        if mode is None:
            return np.eye(len(theta))
        slopes = kernel._gradients(self.data.X)
        G = np.empty((len(slopes), mode.L.size))
        for j in range(len(G)):
            half = dtrsm(1.0, mode.L, np.asfortranarray(mode.root[:, None] * slopes.pop(0) * mode.root), lower=1)
            G[j] = dtrsm(1.0, mode.L, half, side=1, lower=1, trans_a=1, overwrite_b=1).ravel()
        F = 0.5 * G @ G.T
        return F + np.eye(len(F)) * (1e-3 * float(np.trace(F)) + 1e-6)


def _weights(K: Array, mode: Mode) -> Array:
    """Return S."""
    inverse, _ = dpotri(mode.L.copy(order="F"), lower=1, overwrite_c=1)
    R = inverse.T
    mirror(R)
    R *= mode.root[:, None]
    R *= mode.root
    RK = R @ K
    pi = expit(mode.f)
    left = np.diagonal(K) - np.einsum("ij,ij->j", K, RK)
    s = -0.5 * left * mode.root**2 * (1.0 - 2.0 * pi)
    u = s - RK @ s
    g = mode.g
    return np.asarray(0.5 * (np.outer(g + u, g) + np.outer(g, u) - R))


def averaged_sigmoid(mean: Array, variance: Array) -> Array:
    """Return E σ(f) for f ~ N(mean, variance), to eight digits: a mixture of probits has it in closed form."""
    spread = np.sqrt(1.0 + np.square(_SLOPES) * variance[..., None])
    return np.asarray(np.clip(ndtr(mean[..., None] * _SLOPES / spread) @ _SHARES, 0.0, 1.0))
