"""Functions to minimise: value, gradient, Hessian and where the minimum is."""

import numpy as np
from scipy.special import expit

from learnable.solvers import Evaluation


class Function:
    """A function of a vector, built from three callables; `calls` counts evaluations, `hessians` Hessians."""

    def __init__(self, value, gradient, hessian=None, *, as_product=False):
        self._value, self._gradient, self._hessian = value, gradient, hessian
        self._as_product = as_product
        self.calls = self.hessians = 0

    def evaluate(self, x):
        self.calls += 1
        gradient = np.asarray(self._gradient(x), dtype=float)
        return Evaluation(float(self._value(x)), gradient, float(np.abs(gradient).max()))

    def hessian(self, x):
        self.hessians += 1
        H = np.asarray(self._hessian(x), dtype=float)
        return (lambda v: H @ v) if self._as_product else H


def quadratic(A, b, **options):
    """Return ½xᵀAx − bᵀx."""
    return Function(lambda x: 0.5 * x @ A @ x - b @ x, lambda x: A @ x - b, lambda x: A, **options)


def square_plus_exponential():
    """Return w² + e^w."""
    return Function(lambda w: (w**2 + np.exp(w))[0], lambda w: 2 * w + np.exp(w), lambda w: np.diag(2 + np.exp(w)))


def root_of_one_plus_square():
    """Return √(1 + x²), on which full Newton steps map x to −x³: they diverge from |x| > 1."""
    return Function(
        lambda x: np.hypot(1.0, x)[0], lambda x: x / np.hypot(1.0, x), lambda x: np.diag(np.hypot(1.0, x) ** -3)
    )


def soft_plus_sum(seed=0, n=60, p=5, alpha=0.1, **options):
    """Return a logistic loss with an L2 penalty: smooth, convex, not quadratic."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    s = np.where(rng.random(n) < 0.5, -1.0, 1.0)

    def probability(w):
        return expit(-s * (X @ w))

    return Function(
        lambda w: np.logaddexp(0, -s * (X @ w)).sum() + 0.5 * alpha * w @ w,
        lambda w: -X.T @ (s * probability(w)) + alpha * w,
        lambda w: X.T @ ((probability(w) * (1 - probability(w)))[:, None] * X) + alpha * np.eye(p),
        **options,
    )


def rosenbrock(**options):
    """Return Rosenbrock's valley (1 − x)² + 100 (y − x²)²: not convex, minimum at (1, 1)."""
    return Function(
        lambda x: (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2,
        lambda x: np.array([-2 * (1 - x[0]) - 400 * x[0] * (x[1] - x[0] ** 2), 200 * (x[1] - x[0] ** 2)]),
        lambda x: np.array([[2 - 400 * (x[1] - 3 * x[0] ** 2), -400 * x[0]], [-400 * x[0], 200.0]]),
        **options,
    )


def definite_matrix(seed, eigenvalues):
    """Return a symmetric matrix with the given eigenvalues in random directions."""
    p = len(eigenvalues)
    Q = np.linalg.qr(np.random.default_rng(seed).normal(size=(p, p)))[0]
    A = (Q * np.asarray(eigenvalues, dtype=float)) @ Q.T
    return (A + A.T) / 2
