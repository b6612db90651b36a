"""Held-out rows that count how often they were used, and widen their bounds accordingly.

With K models planned, fixed before the rows are looked at, each bound is given δ/K. Further models may be judged;
the j-th is then given δ/(j(j + 1)), so that all bounds ever given hold together with probability at least 1 − δ(1 +
1/(K + 1)).

What the count cannot repair: a model that was built after looking at earlier answers depends on these rows. `Ladder`
is for that: it tells the best error so far, rounded, and only when it has fallen by a step η. Then few different
histories of answers are possible, and the union over all of them holds for models that are chosen in any way (Blum
and Hardt):

    P(some answer is off by more than ε + η) ≤ exp(−2ε²n + (1/η + 2) ln(4k/η) + 1)        after k models.

Reference: A. Blum and M. Hardt, The ladder: a reliable leaderboard for machine learning competitions, ICML 2015,
theorem 3.1.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...core.declare import Number, check_parameters
from ...core.errors import DataError
from .evidence import saw_these_rows
from .record import RiskBounds
from .risk_bound import risk_bound


class HeldOutRows:
    """Rows that no model has seen, with a count of the models that they judged.

    Parameters
    ----------
    X, y
        The rows.
    planned : int
        How many models they are to judge.
    delta : float
        Probability that some bound of the planned models fails.
    target_range : (low, high), optional
        Of a regression: the range that no target can leave.

    Examples
    --------
    >>> import numpy as np
    >>> import learnable as ln
    >>> from learnable.evaluation import HeldOutRows
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(900, 2))
    >>> y = (X[:, 0] > 0).astype(int)
    >>> rows = HeldOutRows(X[300:], y[300:], planned=2)
    >>> for model in (ln.LogisticRegression(), ln.GaussianNB(), ln.Perceptron()):
    ...     bound = rows.judge(model.fit(X[:300], y[:300])).best
    >>> rows.uses, round(bound.delta, 5)
    (3, 0.00417)
    """

    def __init__(
        self, X: Any, y: Any, planned: int = 1, delta: float = 0.05, target_range: tuple[float, float] | None = None
    ) -> None:
        check_parameters("HeldOutRows", {"planned": planned}, {"planned": Number(low=1, integer=True)})
        self.X = X
        self.y = y
        self.planned = planned
        self.delta = delta
        self.target_range = target_range
        self._answers: list[bytes] = []

    @property
    def uses(self) -> int:
        """How many different models were judged; models with the same predictions count once."""
        return len(self._answers)

    def judge(self, model: Any) -> RiskBounds:
        """Return the bounds of one more model."""
        answer = np.asarray(model.predict(self.X))
        key = repr(answer.tolist()).encode() if answer.dtype == object else answer.tobytes()
        if key not in self._answers:
            self._answers.append(key)
        place = self._answers.index(key) + 1
        share = self.planned if place <= self.planned else place * (place + 1)
        return risk_bound(
            model, self.X, self.y, self.delta, kind="held-out", target_range=self.target_range, uses=share
        )


class Ladder:
    """A leaderboard that may be asked again and again: models may be built by its earlier answers.

    Parameters
    ----------
    X, y
        Rows with their labels.
    step : float
        η: the best error is told only when it has fallen by more than this, rounded to it.

    Examples
    --------
    >>> import numpy as np
    >>> import learnable as ln
    >>> from learnable.evaluation import Ladder
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(3000, 2))
    >>> y = (X[:, 0] > 0).astype(int)
    >>> ladder = Ladder(X[300:], y[300:], step=0.05)
    >>> ladder.submit(ln.GaussianNB().fit(X[:300], y[:300]))
    0.0
    >>> round(ladder.radius(delta=0.05, models=100), 3)
    0.243
    """

    def __init__(self, X: Any, y: Any, step: float = 0.02) -> None:
        check_parameters("Ladder", {"step": step}, {"step": Number(low=0.0, high=1.0, low_open=True, high_open=True)})
        self.X = X
        self.y = np.asarray(y)
        self.step = step
        self.best = 1.0
        self.submitted = 0

    def submit(self, model: Any) -> float:
        """Return the best error so far; it changes only where this model is better by more than the step."""
        if saw_these_rows(model, self.X, self.y):
            raise DataError("Ladder: the model was fitted to these rows; submit models that have not seen them.")
        error = float((np.asarray(model.predict(self.X)) != self.y).mean())
        self.submitted += 1
        if error < self.best - self.step:
            self.best = round(error / self.step) * self.step
        return self.best

    def radius(self, delta: float = 0.05, models: int | None = None) -> float:
        """Return how far, at most, an answer is from the least true error so far, with probability 1 − δ."""
        k = self.submitted if models is None else models
        check_parameters(
            "Ladder",
            {"delta": delta, "models": k},
            {"delta": Number(low=0.0, high=1.0, low_open=True, high_open=True), "models": Number(low=1, integer=True)},
        )
        histories = (1.0 / self.step + 2.0) * math.log(4.0 * k / self.step) + 1.0
        return self.step + math.sqrt((histories - math.log(delta)) / (2.0 * len(self.y)))
