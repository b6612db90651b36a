"""Held-out rows that count how often they were used, and widen their bounds accordingly.

With K models planned, fixed before the rows are looked at, each bound is given δ/K. Further models may be judged;
the j-th is then given δ/(j(j + 1)), so that all bounds ever given hold together with probability at least 1 − δ(1 +
1/(K + 1)).

What the count cannot repair: a model that was built after looking at earlier answers depends on these rows. A few
looks move it little; a search over hundreds of variants by the same rows needs new rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.parameters import Number, check_parameters
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
