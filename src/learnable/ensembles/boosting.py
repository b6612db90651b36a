r"""The algebra of AdaBoost: who was wrong goes in, votes and the next distribution come out. No learner is known here.

f = Σ_t α_t h_t is built to make the exponential loss L(f) = Σ_i w_i e^{−y_i f(x_i)} small, w normalised. With h_t ∈ ±1
and its weighted error ε_t under D_i ∝ w_i e^{−y_i f_{t−1}(x_i)}, the best vote is α_t = ½ log((1−ε_t)/ε_t); it
multiplies the loss by Z_t = 2√(ε_t(1−ε_t)), and under the next D the learner errs on exactly half of the weight.

K classes (SAMME; J. Zhu, H. Zou, S. Rosset and T. Hastie, Multi-class AdaBoost, 2009) are coded as 1 and −1/(K−1), the
loss is Σ w e^{−y·f/K}, and α_t = (K−1)²/K · (log((1−ε_t)/ε_t) + log(K−1)): for K = 2 the formula above. In terms of
the *full* votes a_t = log((1−ε_t)/ε_t) + log(K−1) and of g_i = Σ_t a_t·1[h_t wrong on i], A = Σ a_t,

    L = Σ w_i e^{g_i − A(K−1)/K},      training error ≤ Σ w_i e^{g_i − A/2} = Π K√(ε_t(1−ε_t)/(K−1)),

since a wrong row has at least half of the votes against its class. Both agree for K = 2.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.errors import DataError

Array = NDArray[np.float64]
Bools = NDArray[np.bool_]

#: A learner whose error is within this of guessing is no better than guessing: sums of weights are not more exact.
NO_EDGE = 1e-10
#: A vote by which a weight is multiplied with more than a float holds: all rows but a few have no weight left.
LARGEST_VOTE = float(np.log(np.finfo(np.float64).max))


def half_of_full(n_classes: int) -> float:
    """Return α/a: ½ for two classes, (K−1)²/K for K."""
    return (n_classes - 1) ** 2 / n_classes


def full_vote(error: float, n_classes: int) -> float:
    """Return a = log((1−ε)/ε) + log(K−1).

    Examples
    --------
    >>> round(full_vote(0.25, 2), 6), round(full_vote(0.5, 3), 6)
    (1.098612, 0.693147)
    """
    return float(np.log1p(-error) - np.log(max(error, 1e-300)) + np.log(n_classes - 1.0))


def normalise(exponent: Array) -> tuple[Array, float]:
    """Return e^exponent divided by its sum, and the logarithm of that sum; no exponent overflows."""
    most = float(exponent.max())
    D = np.exp(exponent - most)
    total = float(D.sum())
    D /= total
    return D, most + float(np.log(total))


class Trace(NamedTuple):
    """What one round leaves behind."""

    error: float  #: ε of the learner
    loss: float  #: L after the round
    bound: float  #: on the training error after the round
    residual: float  #: error of the learner under the next D, against what its vote makes of it


class VotedBoost:
    """Boosting by learners that name a class: discrete AdaBoost and SAMME.

    Parameters
    ----------
    weight : (n,) float64
        Weights w of the rows; normalised here.
    n_classes : int
        K.
    learning_rate : float
        Factor on every vote.
    """

    def __init__(self, weight: Array, n_classes: int, learning_rate: float = 1.0) -> None:
        self.log_weight = np.log(weight / weight.sum())
        self.K, self.rate = n_classes, learning_rate
        self.share = (n_classes - 1) / n_classes  # error of a guess, and the K-class loss's exponent
        self.set_votes(np.zeros(len(weight)), 0.0)

    def set_votes(self, g: Array, total: float) -> None:
        """Replace the votes of all learners so far: g and A are what they sum to."""
        self.g, self.total = g, total
        self._D, self._log_sum = normalise(self.log_weight + g)

    def distribution(self) -> Array:
        """Return D."""
        return self._D

    @property
    def loss(self) -> float:
        """The exponential loss L."""
        with np.errstate(over="ignore"):  # a learning rate above two raises it
            return float(np.exp(self._log_sum - self.total * self.share))

    @property
    def bound(self) -> float:
        """Σ w e^{g − A/2}, never below the training error."""
        with np.errstate(over="ignore"):
            return float(np.exp(self._log_sum - self.total / 2))

    def vote(self, wrong: Bools, error: float) -> float:
        """Return the full vote of a learner; one without any error outweighs all others together."""
        if not wrong.any():
            return self.total + full_vote(0.5 / len(wrong), self.K)
        return self.rate * full_vote(error, self.K)

    def has_edge(self, error: float) -> bool:
        """Tell whether a learner is better than guessing."""
        return error < self.share - NO_EDGE

    def add(self, wrong: Bools, error: float, vote: float) -> Trace:
        """Add a learner with its full vote."""
        self.set_votes(self.g + vote * wrong, self.total + vote)
        after = float((self._D * wrong).sum())
        expected = error / (error + (1.0 - error) * np.exp(-vote))
        return Trace(error, self.loss, self.bound, abs(after - expected))


class ScoredBoost:
    """Boosting by learners that give scores, (n, 1) for two classes or (n, K): real AdaBoost and SAMME.R.

    The loss is Σ w e^{−yf} for two classes and Σ w e^{−f_y/(K−1)} for K, whose scores sum to zero.
    """

    def __init__(self, weight: Array, y: NDArray[np.int64], n_classes: int, learning_rate: float = 1.0) -> None:
        self.log_weight = np.log(weight / weight.sum())
        self.y, self.K, self.rate = y, n_classes, learning_rate
        self.rows = np.arange(len(y))
        self.sign = np.where(y == 1, 1.0, -1.0)
        self.set_scores(np.zeros((len(y), 1 if n_classes == 2 else n_classes)))

    def set_scores(self, scores: Array) -> None:
        """Let f be these scores of the rows."""
        self.scores = scores
        own = self.sign * scores[:, 0] if self.K == 2 else scores[self.rows, self.y] / (self.K - 1)
        self._D, self._log_sum = normalise(self.log_weight - own)

    def distribution(self) -> Array:
        """Return D."""
        return self._D

    @property
    def loss(self) -> float:
        """The exponential loss L."""
        with np.errstate(over="ignore"):
            return float(np.exp(self._log_sum))

    @property
    def bound(self) -> float:
        """Σ w e^{−(f_y − max other f)/2}, never below the training error; for two classes the loss itself."""
        if self.K == 2:
            return self.loss
        others = self.scores.copy()
        others[self.rows, self.y] = -np.inf
        lead = self.scores[self.rows, self.y] - others.max(axis=1)
        return float(np.exp(normalise(self.log_weight - lead / 2)[1]))

    def add(self, outputs: Array) -> Trace:
        """Add what a learner says, already multiplied by its vote."""
        D, before = self.distribution(), self.loss
        guess = outputs[:, 0] > 0 if self.K == 2 else outputs.argmax(axis=1)
        error = float(D[guess != self.y].sum())
        own = self.sign * outputs[:, 0] if self.K == 2 else outputs[self.rows, self.y] / (self.K - 1)
        self.set_scores(self.scores + outputs)
        Z = float((D * np.exp(-own)).sum())
        return Trace(error, self.loss, self.bound, abs(self.loss - before * Z) / before)


def refuse_guessing(owner: str, error: float, learner: str) -> DataError:
    """Return the error for a first learner that is no better than guessing."""
    return DataError(
        f"{owner}: no {learner} is better than guessing: the first one found has weighted error {error:.6g}. Give a "
        "stronger learner (estimator=…), or columns that tell the classes apart."
    )
