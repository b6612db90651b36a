r"""Losses of two classes: functions $\varphi(m)$ of the margin $m = y z$, where $y = \pm 1$.

The margin is positive if and only if the sign of the score is right. Each convex loss here but the
perceptron's bounds the 0/1 loss from above, up to a factor. The conjugate is $V^*(y, u) = \varphi^*(y u)$;
it is written in $p = -y u$, which for the logistic loss is the probability of the wrong class.

Reference: P. Bartlett, M. Jordan, J. McAuliffe, Convexity, classification, and risk bounds, JASA 101, 2006.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import entr, expit, wrightomega, xlog1py

from .base import Array, Step, overflow_is_inf, proximal_root


class MarginLoss:
    """A loss whose score predicts a class by its sign."""

    def predict(self, z: Array) -> Array:
        """Return +1 where z > 0, else -1: a score of zero counts as negative, as in scikit-learn."""
        return np.where(z > 0.0, 1.0, -1.0)


@dataclass(frozen=True)
class ZeroOneLoss(MarginLoss):
    r"""One for a wrong sign, zero for a right one; its expectation is the probability of error.

    $$ V(y, z) = \mathbb{1}[\operatorname{predict}(z) \ne y] $$

    Not convex: it has a value and a prediction, no gradient and no dual.

    Examples
    --------
    >>> y, z = np.array([1.0, -1.0, 1.0]), np.array([2.0, 0.5, 0.0])
    >>> ZeroOneLoss().value(y, z)
    array([0., 1., 1.])
    """

    def value(self, y: Array, z: Array) -> Array:
        """Return 1 where the predicted sign is not y."""
        return np.where(self.predict(z) != y, 1.0, 0.0)


@dataclass(frozen=True)
class LogisticLoss(MarginLoss):
    r"""Minus the log-likelihood of a label whose log-odds are the score.

    $$ V(y, z) = \log(1 + e^{-m}), \qquad
       V^*(y, u) = p \log p + (1 - p) \log (1 - p) \;\text{ on } 0 \le p \le 1 $$

    Examples
    --------
    >>> y, z = np.array([1.0, -1.0]), np.array([0.0, 3.0])
    >>> LogisticLoss().value(y, z)
    array([0.6931, 3.0486])
    """

    lipschitz: ClassVar[float] = 1.0
    smoothness: ClassVar[float] = 0.25

    def value(self, y: Array, z: Array) -> Array:
        """Return log(1 + e⁻ᵐ)."""
        return np.logaddexp(0.0, -y * z)

    def gradient(self, y: Array, z: Array) -> Array:
        """Return -y/(1 + eᵐ)."""
        slope: Array = -y * expit(-y * z)
        return slope

    def curvature(self, y: Array, z: Array) -> Array:
        """Return p(1 - p) with p = 1/(1 + e⁻ᵐ)."""
        m = y * z
        product: Array = expit(m) * expit(-m)
        return product

    def conjugate(self, y: Array, u: Array) -> Array:
        """Return p log p + (1 - p) log(1 - p) where 0 <= p <= 1."""
        p = -y * u
        inside = np.minimum(p, 1.0)
        negative_entropy = xlog1py(1.0 - inside, -inside) - entr(p)  # entr(p) = -inf where p < 0
        return np.where(p <= 1.0, negative_entropy, np.inf)

    def prox(self, y: Array, z: Array, step: Step) -> Array:
        """Return the root v of v - step y/(1 + exp(yv)) = z."""
        return proximal_root(self, y, z, step)

    def probability(self, z: Array) -> Array:
        """Return P(y = +1) = 1/(1 + e⁻ᶻ)."""
        p: Array = expit(z)
        return p


@dataclass(frozen=True)
class HingeLoss(MarginLoss):
    r"""How far the margin falls short of one; the loss of the support vector machine.

    $$ V(y, z) = \max(0, 1 - m), \qquad V^*(y, u) = -p \;\text{ on } 0 \le p \le 1 $$

    Examples
    --------
    >>> y, z = np.array([1.0, -1.0]), np.array([0.25, 3.0])
    >>> HingeLoss().value(y, z)
    array([0.75, 4.  ])
    """

    lipschitz: ClassVar[float] = 1.0
    smoothness: ClassVar[float] = math.inf

    def value(self, y: Array, z: Array) -> Array:
        """Return max(0, 1 - m)."""
        return np.maximum(1.0 - y * z, 0.0)

    def gradient(self, y: Array, z: Array) -> Array:
        """Return -y where m <= 1, else 0; at the kink m = 1 it is -y, as in scikit-learn."""
        return np.where(y * z <= 1.0, -y, 0.0)

    def conjugate(self, y: Array, u: Array) -> Array:
        """Return -p where 0 <= p <= 1."""
        p = -y * u
        return np.where((p >= 0.0) & (p <= 1.0), -p, np.inf)

    def prox(self, y: Array, z: Array, step: Step) -> Array:
        """Return z with its margin raised by the step, but not beyond one."""
        m = y * z
        return y * np.where(m < 1.0, np.minimum(m + step, 1.0), m)


@dataclass(frozen=True)
class SquaredHingeLoss(MarginLoss):
    r"""The hinge loss squared (not halved), as in LIBLINEAR; smooth, and still zero beyond the margin.

    $$ V(y, z) = \max(0, 1 - m)^2, \qquad V^*(y, u) = \tfrac14 p^2 - p \;\text{ on } p \ge 0 $$

    Examples
    --------
    >>> y, z = np.array([1.0, -1.0]), np.array([0.5, 3.0])
    >>> SquaredHingeLoss().value(y, z)
    array([ 0.25, 16.  ])
    """

    lipschitz: ClassVar[float] = math.inf
    smoothness: ClassVar[float] = 2.0

    @overflow_is_inf
    def value(self, y: Array, z: Array) -> Array:
        """Return max(0, 1 - m)²."""
        return np.square(np.maximum(1.0 - y * z, 0.0))

    def gradient(self, y: Array, z: Array) -> Array:
        """Return -2y max(0, 1 - m)."""
        return -2.0 * y * np.maximum(1.0 - y * z, 0.0)

    def curvature(self, y: Array, z: Array) -> Array:
        """Return 2 where m < 1, else 0; at m = 1 it is the derivative from above."""
        return np.where(y * z < 1.0, 2.0, 0.0)

    @overflow_is_inf
    def conjugate(self, y: Array, u: Array) -> Array:
        """Return ¼p² - p where p >= 0."""
        p = -y * u
        return np.where(p >= 0.0, p * (0.25 * p - 1.0), np.inf)

    def prox(self, y: Array, z: Array, step: Step) -> Array:
        """Return z with a margin m < 1 moved to (m + 2 step)/(1 + 2 step)."""
        m = y * z
        return y * np.where(m < 1.0, (m + 2.0 * step) / (1.0 + 2.0 * step), m)


@dataclass(frozen=True)
class ExponentialLoss(MarginLoss):
    r"""The loss that AdaBoost descends.

    $$ V(y, z) = e^{-m}, \qquad V^*(y, u) = p \log p - p \;\text{ on } p \ge 0 $$

    Its population minimiser is half the log-odds, hence $P(y = +1) = 1/(1 + e^{-2z})$.

    References ---------- J. Friedman, T. Hastie, R. Tibshirani, Additive logistic regression, Annals of
    Statistics 28, 2000, Lemma 1.

    Examples
    --------
    >>> y, z = np.array([1.0, -1.0]), np.array([0.0, 1.0])
    >>> ExponentialLoss().value(y, z)
    array([1.    , 2.7183])
    """

    lipschitz: ClassVar[float] = math.inf
    smoothness: ClassVar[float] = math.inf

    @overflow_is_inf
    def value(self, y: Array, z: Array) -> Array:
        """Return e⁻ᵐ."""
        return np.exp(-y * z)

    @overflow_is_inf
    def gradient(self, y: Array, z: Array) -> Array:
        """Return -y e⁻ᵐ."""
        return -y * np.exp(-y * z)

    @overflow_is_inf
    def curvature(self, y: Array, z: Array) -> Array:
        """Return e⁻ᵐ."""
        return np.exp(-y * z)

    def conjugate(self, y: Array, u: Array) -> Array:
        """Return p log p - p where p >= 0."""
        p = -y * u
        value: Array = -entr(p) - p  # entr(p) = -p log p, and -inf where p < 0
        return value

    def prox(self, y: Array, z: Array, step: Step) -> Array:
        """Return z with its margin m raised by ω(log step - m), ω Wright's function: ω + log ω is its argument."""
        raised: Array = z + y * wrightomega(np.log(step) - y * z)
        return raised

    def probability(self, z: Array) -> Array:
        """Return P(y = +1) = 1/(1 + e⁻²ᶻ)."""
        p: Array = expit(2.0 * z)
        return p


@dataclass(frozen=True)
class PerceptronLoss(MarginLoss):
    r"""The margin of a wrong sign; gradient steps of length one on it are the perceptron.

    $$ V(y, z) = \max(0, -m), \qquad V^*(y, u) = 0 \;\text{ on } 0 \le p \le 1 $$

    Examples
    --------
    >>> y, z = np.array([1.0, -1.0]), np.array([0.5, 3.0])
    >>> PerceptronLoss().value(y, z)
    array([0., 3.])
    """

    lipschitz: ClassVar[float] = 1.0
    smoothness: ClassVar[float] = math.inf

    def value(self, y: Array, z: Array) -> Array:
        """Return max(0, -m)."""
        return np.maximum(-y * z, 0.0)

    def gradient(self, y: Array, z: Array) -> Array:
        """Return -y where m <= 0, else 0.

        At the kink m = 0 it is -y: from zero weights, where every margin is zero, the perceptron must move.
        """
        return np.where(y * z <= 0.0, -y, 0.0)

    def conjugate(self, y: Array, u: Array) -> Array:
        """Return 0 where 0 <= p <= 1."""
        p = -y * u
        return np.where((p >= 0.0) & (p <= 1.0), 0.0, np.inf)

    def prox(self, y: Array, z: Array, step: Step) -> Array:
        """Return z with its margin raised by the step, but not beyond zero."""
        m = y * z
        return y * np.where(m < 0.0, np.minimum(m + step, 0.0), m)
