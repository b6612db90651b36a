r"""Laplace's approximation of a Gaussian process that is seen through labels.

    tᵢ ~ Bernoulli(σ(fᵢ)),   f ~ N(0, K).   With g = t − σ(f), W = σ(1 − σ) and B = I + √W K √W = LLᵀ:

the posterior is approximated by a normal distribution at its mode, f = Kg, found by Newton's method; then

    log p(t) ≈ log q = −½ fᵀg + Σ log p(tᵢ | fᵢ) − Σ log Lᵢᵢ,

    ∂ log q/∂θⱼ = Σᵢₖ Sᵢₖ ∂Kᵢₖ/∂θⱼ,   S = ½(ggᵀ − R) + ½(ugᵀ + guᵀ),   R = √W B⁻¹ √W,   u = (I − RK)s,

where s = −½ diag(K − KRK) ∘ σ(1 − σ)(1 − 2σ): how log|B| changes because the mode moves.

Reference: C. Rasmussen and C. Williams, Gaussian Processes for Machine Learning, 2006, algorithms 3.1, 3.2 and 5.1.

Laplace's approximation of several Gaussian processes that are seen through one label.

    P(y = c | x) = exp fᶜ(x) / Σₖ exp fᵏ(x),   f¹, …, fᶜ ~ GP(0, k), independent, with the same kernel.

With one-hot labels yᶜ, probabilities πᶜ at the mode, gᶜ = yᶜ − πᶜ, Bᶜ = I + √πᶜ K √πᶜ = LᶜLᶜᵀ,
Eᶜ = √πᶜ Bᶜ⁻¹ √πᶜ and Σ Eᶜ = MMᵀ, the mode is fᶜ = Kgᶜ, found by Newton's method, and

    log p(y) ≈ log q = Σᵢ log πᵢ(yᵢ) − ½ Σ fᶜᵀgᶜ − Σ log Lᶜᵢᵢ − Σ log Mᵢᵢ,

because |I + KW| = Π|Bᶜ| |Σ Eᶜ|. (The book's algorithm leaves the last term out.) With Rᵃᵇ = δᵃᵇEᵃ − Eᵃ(MMᵀ)⁻¹Eᵇ, the
blocks of (W⁻¹ + K)⁻¹, the derivatives are Σᵢₖ Sᵢₖ ∂Kᵢₖ/∂θⱼ, S = ½ Σ (gᶜgᶜᵀ − Rᶜᶜ + uᶜgᶜᵀ + gᶜuᶜᵀ), u = (I − RK)s, and
s says how log|I + KW| changes because the mode moves.

Reference: C. Rasmussen and C. Williams, Gaussian Processes for Machine Learning, 2006, §3.5, algorithms 3.3 and 3.4.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.linalg.blas import dtrsm
from scipy.linalg.lapack import dpotrf, dpotri
from scipy.special import expit, log_softmax, ndtr, softmax
from scipy.stats import norm, qmc

from ...core import Array, NDArray, interruptible, never
from ...risk.kernels.base import Kernel
from ...risk.kernels.tape import record
from ...risk.losses import LogisticLoss
from ...solvers.problem import Evaluation, backtrack
from .likelihood import mirror, stationarity

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
_HALVINGS = 30  # 2⁻³⁰ of a step moves nothing that float64 could tell


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
    a = np.zeros(len(t))
    f = np.zeros(len(t))
    height = _height(sign, a, f)
    if start is not None and len(start) == len(t):  # as a = g(start), so that f is in the span of K
        trial = t - expit(start)
        moved = K @ trial
        if _height(sign, trial, moved) > height:
            a = trial
            f = moved
            height = _height(sign, trial, moved)
    g, root, L = _around(K, t, f)
    n_iter = 0
    still = False
    while L is not None and n_iter < max_iter and not still and not stop():
        b = root**2 * f + g
        step = b - root * _solve(L, root * (K @ b)) - a
        (a, f, height), still = climb(K, (a, f, height), step, lambda a, f: _height(sign, a, f))
        g, root, L = _around(K, t, f)
        n_iter += 1
    if L is None:
        return None
    value = _height(sign, a, f) - float(np.log(np.diagonal(L)).sum())
    residual = float(np.abs(f - K @ g).max()) / (1.0 + float(np.abs(f).max()))
    return Mode(value, f, g, root, L, residual, n_iter, still) if np.isfinite(value) else None


def climb(
    K: Array, at: tuple[Array, Array, float], step: Array, height: Callable[[Array, Array], float]
) -> tuple[tuple[Array, Array, float], bool]:
    """Take a step from (a, f = aK, height), halved until the height does not fall; tell whether f stands still."""
    a, f, now = at

    def trial(length: float) -> tuple[Array, Array, float] | None:
        there = a + length * step
        moved = there @ K
        new = height(there, moved)
        return (there, moved, new) if new >= now - 1e-14 * abs(now) else None

    found = backtrack(trial, most=_HALVINGS)
    if found is None:
        return at, True
    moved = found[1]
    return found, float(np.abs(moved - f).max()) <= _STILL * (1.0 + float(np.abs(moved).max()))


def _height(sign: Array, a: Array, f: Array) -> float:
    """Return log p(t | f) − ½ fᵀK⁻¹f, where f = Ka."""
    return -0.5 * float(a @ f) - float(LogisticLoss().value(sign, f).sum())


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
        self.kernel = kernel
        self.data = data
        self.bounds = bounds
        self.max_iter = max_iter
        self._stop = stop
        self._last: Array | None = None
        self.unfinished: Any = None  #: the mode that the first evaluation had when the time was up

    def evaluate(self, theta: Array) -> Evaluation:
        """Return value, gradient and measure; infinite where a matrix is not positive definite."""
        K, back, _ = record(self.kernel.with_theta(theta), self.data.X)
        first = self._last is None
        mode = self._mode(K, self._last)
        if mode is None:
            return Evaluation(np.inf, np.zeros_like(theta), np.inf)
        self._last = mode.f
        if not mode.still and self._stop():  # of no use but as a start, which the first one has to be
            self.unfinished = mode if first else None
            return Evaluation(-mode.value if first else np.inf, np.zeros_like(theta), np.inf)
        gradient = back(interruptible(self._slopes, K, mode))
        if not np.isfinite(gradient).all():
            return Evaluation(np.inf, np.zeros_like(theta), np.inf)
        return Evaluation(-mode.value, -gradient, stationarity(theta, gradient, self.bounds, len(K)))

    def value(self, theta: Array) -> float:
        """Return −log q alone."""
        mode = self._mode(self.kernel.with_theta(theta)(self.data.X), self._last)
        return np.inf if mode is None or (not mode.still and self._stop()) else -mode.value

    def _mode(self, K: Array, start: Array | None) -> Any:
        """Return the mode for these kernel values; None where there is none to working precision."""
        if not np.isfinite(K).all():
            return None
        return find_mode(K, self.data.y, start, self.max_iter, self._stop)

    def _slopes(self, K: Array, mode: Any) -> Array:
        """Return S, with which ∂ log q/∂θⱼ = Σᵢₖ Sᵢₖ ∂Kᵢₖ/∂θⱼ."""
        return _weights(K, mode)

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


_POINTS = 512  # of the average of the softmax, and as many mirror images
_NOTHING = np.empty((0, 0, 0))
_SMALLEST = 1e-200  # a probability below counts as this: its square root is still a number


class JointMode(NamedTuple):
    """The mode of the posterior of all C processes and what stands around it."""

    value: float  #: log q
    f: Array  #: (C, n)
    g: Array  #: (C, n) y − π
    root: Array  #: (C, n) √π
    L: Array  #: (C, n, n) lower factors of the Bᶜ; above the diagonal zeros; one matrix seen C times where all f agree
    M: Array  #: (n, n) lower factor of Σ Eᶜ
    residual: float  #: max |fᶜ − Kgᶜ| / (1 + max |f|)
    n_iter: int
    still: bool  #: whether the last step moved nothing


class _Around(NamedTuple):
    g: Array
    root: Array
    L: Array
    E: Array
    M: Array


def find_joint_mode(
    K: Array, y: Array, start: Array | None = None, max_iter: int = 100, stop: Callable[[], bool] = never
) -> JointMode | None:
    """Return the mode by Newton's method; None where a matrix is not positive definite to working precision.

    Parameters
    ----------
    K : (n, n) array
        Kernel values.
    y : (C, n) array
        One-hot labels.
    start : (C, n) array, optional
        A guess of f.
    max_iter : int
        Newton steps.
    stop : function
        Once it says True the last point is returned whose matrices are known; the start is one for the price of one
        process, as equal scores have equal factors. The residual tells how far from the mode that is.
    """
    return interruptible(_find_joint_mode, K, y, start, max_iter, stop)


def _find_joint_mode(
    K: Array, y: Array, start: Array | None, max_iter: int, stop: Callable[[], bool]
) -> JointMode | None:
    a = np.zeros_like(y)
    f = np.zeros_like(y)
    height = _joint_height(y, a, f)
    if start is not None and start.shape == y.shape:  # as a = g(start), so that f is in the span of K
        trial = y - softmax(start, axis=0)
        moved = trial @ K
        if _joint_height(y, trial, moved) > height:
            a = trial
            f = moved
            height = _joint_height(y, trial, moved)
    at = _joint_around(K, y, f)
    n_iter = 0
    still = False
    while at is not None and n_iter < max_iter and not still and not stop():
        pi = at.root**2
        b = pi * f - pi * np.sum(pi * f, axis=0) + at.g
        step = b - _precision_times(at, b @ K) - a
        step -= step.mean(axis=0)  # as Σ aᶜ = 0: what rounding says else, K would amplify
        # the matrices are the most of all memory
        here = at._replace(E=_NOTHING)
        at = None
        reached, still = climb(K, (a, f, height), step, lambda a, f: _joint_height(y, a, f))
        at = _joint_around(K, y, reached[1], stop)
        if at is None and stop():
            at = here
            still = False
            break
        a, f, height = reached
        n_iter += 1
    if at is None:
        return None
    value = _joint_height(y, a, f) - float(
        np.log(np.diagonal(at.L, axis1=1, axis2=2)).sum() + np.log(np.diag(at.M)).sum()
    )
    residual = float(np.abs(f - at.g @ K).max()) / (1.0 + float(np.abs(f).max()))
    found = JointMode(value, f, at.g, at.root, at.L, np.ascontiguousarray(at.M), residual, n_iter, still)
    return found if np.isfinite(value) else None


def _joint_height(y: Array, a: Array, f: Array) -> float:
    """Return log p(y | f) − ½ Σ fᶜᵀK⁻¹fᶜ, where fᶜ = Kaᶜ."""
    return float(np.sum(y * log_softmax(f, axis=0))) - 0.5 * float(np.sum(a * f))


def _joint_around(K: Array, y: Array, f: Array, stop: Callable[[], bool] = never) -> _Around | None:
    """Return g, √π, the factors of the Bᶜ, the Eᶜ and the factor of their sum; None once `stop` says True."""
    pi = softmax(f, axis=0)
    root = np.sqrt(np.maximum(pi, _SMALLEST))
    n = len(K)
    C = len(y)
    distinct = root[:1] if (root == root[0]).all() else root
    L = np.empty((len(distinct), n, n))
    E = np.empty_like(L)
    for c, r in enumerate(distinct):
        if stop():
            return None
        B = r[:, None] * K * r
        B.flat[:: n + 1] += 1.0
        if not np.isfinite(B).all():
            return None
        factor, info = dpotrf(B.T, lower=1, clean=1, overwrite_a=1)
        if info != 0:
            return None
        L[c] = factor
        E[c] = _precision(r, L[c])
    L = np.broadcast_to(L, (C, n, n))
    E = np.broadcast_to(E, (C, n, n))
    M, info = dpotrf(E.sum(axis=0).T, lower=1, clean=1, overwrite_a=1)
    return _Around(y - pi, root, L, E, M) if info == 0 else None


def _precision(root: Array, L: Array) -> Array:
    """Return Eᶜ from the factor of Bᶜ."""
    inverse, _ = dpotri(L, lower=1)
    E = np.asarray(inverse.T)
    mirror(E)
    E *= root[:, None]
    E *= root
    return E


def _precision_times(at: _Around, v: Array) -> Array:
    """Return (W⁻¹ + K)⁻¹v = Ev − E(Σ Eᶜ)⁻¹ Σ Eᶜvᶜ for v (C, n)."""
    Ev = np.einsum("cij,cj->ci", at.E, v)
    half = dtrsm(1.0, at.M, Ev.sum(axis=0)[:, None], lower=1)
    shared = dtrsm(1.0, at.M, half, lower=1, trans_a=1)[:, 0]
    return np.asarray(Ev - at.E @ shared)


class SoftmaxObjective(LaplaceObjective):
    """The same for several processes; the labels are numbers 0, …, C − 1."""

    def __init__(
        self,
        kernel: Kernel,
        data: Labels,
        bounds: Array,
        n_classes: int,
        max_iter: int = 100,
        stop: Callable[[], bool] = never,
    ) -> None:
        super().__init__(kernel, data, bounds, max_iter, stop)
        self.y = one_hot(data.y, n_classes)

    def _mode(self, K: Array, start: Array | None) -> JointMode | None:
        if not np.isfinite(K).all():
            return None
        return find_joint_mode(K, self.y, start, self.max_iter, self._stop)

    def _slopes(self, K: Array, mode: JointMode) -> Array:
        return _joint_weights(K, mode)

    def curvature(self, theta: Array) -> Array:
        """Return ½ Σ tr Eᶜ∂ⱼK Eᶜ∂ₖK, the information of normal observations with the precisions πᶜ. For few rows."""
        kernel = self.kernel.with_theta(theta)
        K = kernel(self.data.X)
        mode = find_joint_mode(K, self.y, None, self.max_iter, self._stop)
        at = None if mode is None else _joint_around(K, self.y, mode.f)
        if at is None:
            return np.eye(len(theta))
        slopes = kernel.gradient(self.data.X)
        F = np.zeros((len(theta), len(theta)))
        for E in at.E:
            parts = E @ slopes
            F += 0.5 * np.einsum("aij,bji->ab", parts, parts)
        return np.asarray(0.5 * (F + F.T) + np.eye(len(F)) * (1e-3 * float(np.trace(F)) + 1e-6))


def _joint_weights(K: Array, mode: JointMode) -> Array:
    """Return S."""
    C, n = mode.f.shape
    E = np.array([_precision(root, L) for root, L in zip(mode.root, mode.L, strict=True)])
    at = _Around(mode.g, mode.root, mode.L, E, np.asfortranarray(mode.M))
    pi = at.root**2
    S = np.zeros((n, n))
    EK = at.E @ K
    own = np.diagonal(K) - np.einsum("ij,cij->cj", K, EK)
    for c in range(C):
        half = dtrsm(1.0, at.M, at.E[c], lower=1)
        S += half.T @ half
        S -= at.E[c]
        EK[c] = dtrsm(1.0, at.M, EK[c], lower=1)
    blocks = np.einsum("aki,bki->abi", EK, EK)  # covariances of the processes at each row, given the labels
    blocks[np.arange(C), np.arange(C)] += own
    own = blocks[np.arange(C), np.arange(C)] - 2.0 * np.einsum("abi,bi->ai", blocks, pi)
    s = -0.5 * pi * (own - np.sum(pi * own, axis=0))
    u = s - _precision_times(at, s @ K)
    g = at.g
    S += (g + u).T @ g + g.T @ u
    return np.asarray(0.5 * S)


def one_hot(codes: Array, n_classes: int) -> Array:
    """Return y of shape (C, n)."""
    return (codes == np.arange(n_classes)[:, None]).astype(np.float64)


def joint_latent(K: Array, g: Array, root: Array, inverses: Array, inverse_M: Array) -> tuple[Array, Array]:
    """Return means (c, C) and how much each covariance (c, C, C) of the processes is below that of the prior.

    Parameters
    ----------
    K : (c, n) array
        Kernel values of new points with the rows.
    g, root : (C, n) arrays
        Of the mode.
    inverses, inverse_M : (C, n, n) and (n, n) arrays
        Lᶜ⁻¹ and M⁻¹.
    """
    C = len(g)
    shared = []
    below = np.zeros((len(K), C, C))
    for c in range(C):
        V = (K * root[c]) @ inverses[c].T
        below[:, c, c] = np.einsum("ij,ij->i", V, V)
        shared.append(((V @ inverses[c]) * root[c]) @ inverse_M.T)
    Q = np.array(shared)
    below -= np.einsum("aki,bki->kab", Q, Q)
    return K @ g.T, below


def averaged_softmax(mean: Array, covariance: Array) -> Array:
    """Return E softmax(f) for f ~ N(mean, covariance), rows of (c, C) and (c, C, C), to about three digits.

    The average runs over 1024 fixed points, a scrambled Sobol sequence and its mirror image: the same for every row, so
    that equal rows have equal probabilities.
    """
    C = mean.shape[1]
    z = norm.ppf(np.clip(qmc.Sobol(C, seed=0).random(_POINTS), 1e-9, 1.0 - 1e-9))
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
    spread = np.einsum("iab,pb->ipa", root, np.vstack([z, -z]))
    return np.asarray(softmax(mean[:, None, :] + spread, axis=2).mean(axis=1))
