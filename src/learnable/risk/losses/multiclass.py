r"""Losses of K classes: the truth is a code $y \in \{0, \dots, K-1\}$, the score a row $z \in \mathbb{R}^K$.

`y` has shape (n,), `z` and `u` (n, K); values have shape (n,), gradients (n, K). The constants refer to the
Euclidean norm of a row. With $e_y$ the unit vector of the true class and $\Delta$ the probability simplex,
the conjugates of both convex losses live on $p = u + e_y \in \Delta$. There a row of $u$ sums to zero,
which in floats can be so only up to rounding: a sum of at most 4Kε, with ε = 2.2e-16, counts as zero.

References: K. Crammer and Y. Singer, On the algorithmic implementation of multiclass kernel-based vector
machines, JMLR 2, 2001. D. Böhning, Multinomial logistic regression algorithm, Annals of the Institute of
Statistical Mathematics 44, 1992, for the bound ½ on the Hessian of the softmax loss.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr, xlog1py

from .base import Array, Codes, Step

_MOST_STEPS = 100  # of Newton's method in the proximal operator; about six are taken


class ArgmaxLoss:
    """A loss whose row of scores predicts the class of the largest one."""

    def predict(self, z: Array) -> Codes:
        """Return the code of the largest score; of equal ones, the lowest code."""
        codes: Codes = np.argmax(z, axis=1)
        return codes


@dataclass(frozen=True)
class MulticlassZeroOneLoss(ArgmaxLoss):
    r"""One for a wrong class, zero for the right one; its expectation is the probability of error.

    $$ V(y, z) = \mathbb{1}[\operatorname{argmax}_k z_k \ne y] $$

    Examples
    --------
    >>> y, z = np.array([0, 1]), np.array([[2.0, 1.0, 0.0], [2.0, 1.0, 0.0]])
    >>> MulticlassZeroOneLoss().value(y, z)
    array([0., 1.])
    """

    def value(self, y: Codes, z: Array) -> Array:
        """Return 1 where the predicted class is not y."""
        return np.where(self.predict(z) != y, 1.0, 0.0)


@dataclass(frozen=True)
class SoftmaxLoss(ArgmaxLoss):
    r"""The cross-entropy of the softmax: minus the log-likelihood of a class whose log-odds are the scores.

    $$ V(y, z) = \log \sum_k e^{z_k} - z_y, \qquad
       V^*(y, u) = \sum_k p_k \log p_k \;\text{ on } p = u + e_y \in \Delta $$

    Examples
    --------
    >>> y, z = np.array([0, 1]), np.array([[2.0, 1.0, 0.0], [2.0, 1.0, 0.0]])
    >>> SoftmaxLoss().value(y, z)
    array([0.4076, 1.4076])
    """

    lipschitz: ClassVar[float] = math.sqrt(2.0)
    smoothness: ClassVar[float] = 0.5

    def value(self, y: Codes, z: Array) -> Array:
        """Return log Σₖ exp(zₖ) - z_y."""
        best = np.argmax(z, axis=1)[:, np.newaxis]
        top = np.take_along_axis(z, best, axis=1)
        others = np.exp(z - top)
        # The largest term is exactly 1: log1p of the others keeps the digits of a small loss.
        np.put_along_axis(others, best, 0.0, axis=1)
        loss: Array = (top - _of_class(y, z))[:, 0] + np.log1p(others.sum(axis=1))
        return loss

    def gradient(self, y: Codes, z: Array) -> Array:
        """Return p - e_y, where p is the softmax of z."""
        g = self.probability(z)
        np.put_along_axis(g, y[:, np.newaxis], 0.0, axis=1)
        # The row sums to zero: -Σ of the others keeps the digits that p_y - 1 would lose. Rounding must not
        # take it below -1, out of the domain of the conjugate.
        np.put_along_axis(g, y[:, np.newaxis], np.maximum(-g.sum(axis=1, keepdims=True), -1.0), axis=1)
        return g

    def curvature_product(self, z: Array, v: Array) -> Array:
        """Return Hv row by row, with the Hessian H = diag(p) - ppᵀ of a row; it does not depend on y."""
        p = self.probability(z)
        product: Array = p * (v - np.sum(p * v, axis=1, keepdims=True))
        return product

    def conjugate(self, y: Codes, u: Array) -> Array:
        """Return Σₖ pₖ log pₖ where p = u + e_y lies in the simplex."""
        own = np.maximum(_of_class(y, u), -1.0)[:, 0]
        others = u.copy()
        np.put_along_axis(others, y[:, np.newaxis], 0.0, axis=1)
        negative_entropy = xlog1py(1.0 + own, own) - entr(others).sum(axis=1)
        return np.where(_in_shifted_simplex(y, u), negative_entropy, np.inf)

    def prox(self, y: Codes, z: Array, step: Step) -> Array:
        """Return the rows v with v + step (softmax(v) - e_y) = z, by damped Newton steps."""
        t = np.broadcast_to(np.asarray(step, dtype=np.float64), (len(z),))[:, np.newaxis]
        target = z.copy()
        np.put_along_axis(target, y[:, np.newaxis], _of_class(y, z) + t, axis=1)
        v = z.copy()
        miss = v + t * self.probability(v) - target
        size = np.abs(miss).max(axis=1, keepdims=True)
        length = np.ones_like(size)
        for _ in range(_MOST_STEPS):
            p = self.probability(v)
            a = 1.0 / (1.0 + t * p)  # the Hessian is diag(1/a) - t ppᵀ
            along = (p * a * miss).sum(axis=1, keepdims=True) / (1.0 - t * (p * a * p).sum(axis=1, keepdims=True))
            trial = v - length * (a * miss + t * a * p * along)
            new_miss = trial + t * self.probability(trial) - target
            new_size = np.abs(new_miss).max(axis=1, keepdims=True)
            better = new_size < size
            v = np.where(better, trial, v)
            miss = np.where(better, new_miss, miss)
            length = np.where(better, np.minimum(1.0, 2.0 * length), 0.5 * length)
            small = 1e-14 * (1.0 + np.abs(z).max(axis=1, keepdims=True) + t)
            size = np.where(better, new_size, size)
            if ((size <= small) | (length < 1e-8)).all():
                break
        return v

    def probability(self, z: Array) -> Array:
        """Return the softmax of each row: exp(zₖ)/Σⱼ exp(zⱼ)."""
        weights = np.exp(z - z.max(axis=1, keepdims=True))
        probabilities: Array = weights / weights.sum(axis=1, keepdims=True)
        return probabilities


@dataclass(frozen=True)
class MulticlassHingeLoss(ArgmaxLoss):
    r"""How far the true class falls short of leading its best rival by one (Crammer and Singer).

    $$ V(y, z) = \max\bigl(0,\; 1 + \max_{k \ne y} z_k - z_y\bigr), \qquad
       V^*(y, u) = u_y \;\text{ on } u + e_y \in \Delta $$

    Examples
    --------
    >>> y, z = np.array([0, 1]), np.array([[2.0, 1.5, 0.0], [2.0, 1.0, 0.0]])
    >>> MulticlassHingeLoss().value(y, z)
    array([0.5, 2. ])
    """

    lipschitz: ClassVar[float] = math.sqrt(2.0)
    smoothness: ClassVar[float] = math.inf

    def value(self, y: Codes, z: Array) -> Array:
        """Return max(0, 1 + max over k ≠ y of zₖ - z_y)."""
        _, shortfall = _best_rival(y, z)
        return np.maximum(shortfall, 0.0)[:, 0]

    def gradient(self, y: Codes, z: Array) -> Array:
        """Return eₖ - e_y for the best rival k if it comes within one of the true class, else zero.

        At the kink, a lead of exactly one, it is eₖ - e_y; of equal rivals, the one of the lowest code.
        """
        rival, shortfall = _best_rival(y, z)
        active = np.where(shortfall >= 0.0, 1.0, 0.0)
        g = np.zeros_like(z)
        np.put_along_axis(g, rival, active, axis=1)
        np.put_along_axis(g, y[:, np.newaxis], -active, axis=1)
        return g

    def conjugate(self, y: Codes, u: Array) -> Array:
        """Return u_y where u + e_y lies in the simplex."""
        return np.where(_in_shifted_simplex(y, u), _of_class(y, u)[:, 0], np.inf)

    def prox(self, y: Codes, z: Array, step: Step) -> Array:
        """Return z - step (p - e_y), p the projection of z/step + e_y - e_y/step onto the simplex."""
        t = np.broadcast_to(np.asarray(step, dtype=np.float64), (len(z),))[:, np.newaxis]
        own = np.zeros_like(z)
        np.put_along_axis(own, y[:, np.newaxis], 1.0, axis=1)
        p = _on_simplex(z / t + own - own / t)
        return np.asarray(z - t * (p - own))


def _on_simplex(x: Array) -> Array:
    """Return the nearest probability vector to each row: max(x - θ, 0) with the θ that makes it sum to one."""
    ordered = -np.sort(-x, axis=1)
    excess = (np.cumsum(ordered, axis=1) - 1.0) / np.arange(1.0, 1.0 + x.shape[1])
    count = (ordered > excess).sum(axis=1, keepdims=True)
    theta = np.take_along_axis(excess, count - 1, axis=1)
    return np.asarray(np.maximum(x - theta, 0.0))


def _of_class(y: Codes, z: Array) -> Array:
    """Return the entry of the true class in each row, (n, 1)."""
    return np.take_along_axis(z, y[:, np.newaxis], axis=1)


def _best_rival(y: Codes, z: Array) -> tuple[Codes, Array]:
    """Return the best class other than the true one, and one plus its lead over the true one; both (n, 1)."""
    rivals = z.copy()
    np.put_along_axis(rivals, y[:, np.newaxis], -np.inf, axis=1)
    rival = np.argmax(rivals, axis=1)[:, np.newaxis]
    return rival, 1.0 + (np.take_along_axis(rivals, rival, axis=1) - _of_class(y, z))


def _in_shifted_simplex(y: Codes, u: Array) -> NDArray[np.bool_]:
    """Tell for each row whether u + e_y is a probability vector, its sum up to rounding."""
    p = u.copy()
    np.put_along_axis(p, y[:, np.newaxis], 1.0 + _of_class(y, u), axis=1)
    rounding = 4.0 * u.shape[1] * np.finfo(np.float64).eps
    inside: NDArray[np.bool_] = (p >= 0.0).all(axis=1) & (np.abs(u.sum(axis=1)) <= rounding)
    return inside
