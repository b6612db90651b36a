"""The record of an estimated score, and how its interval is found: from folds, or from one prediction a row."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import DataError
from ..core.estimator import Certificate
from ..meta.folds import FoldScore, Scorer
from ..meta.splits import Split
from .intervals import Interval, binomial_interval, corrected_t_interval
from .responses import Remembered, jackknife_interval, score_of
from .row_losses import row_loss

Array = NDArray[np.float64]


@dataclass(frozen=True)
class RiskEstimate:
    """An estimated score, and where it comes from; greater is better.

    Attributes
    ----------
    mean : float
        The score.
    interval : Interval
        Its confidence interval, with the method's name.
    scores : array of shape (n_folds,)
        One score a fold; one in all for a hold-out and leave-one-out.
    train_scores : array of shape (n_folds,)
        The same on the training rows; NaN where they were not asked for.
    metric : str
        Name of the score.
    scheme : str
        How the rows were cut, in words.
    n_train, n_test : int
        Rows trained on and tested on, on average.
    fit_seconds, score_seconds : arrays of shape (n_folds,)
        Time of each fit, and of scoring its test rows.
    certificates : list of Certificate or None
        What each fit proves about itself.
    note : str
        What to know about the estimate.
    predictions : array or None
        Predictions of rows by models that did not see them, where each row has exactly one.
    """

    mean: float
    interval: Interval
    scores: Array
    train_scores: Array
    metric: str
    scheme: str
    n_train: int
    n_test: int
    fit_seconds: Array
    score_seconds: Array
    certificates: list[Certificate | None]
    note: str = ""
    predictions: NDArray[Any] | None = None

    @property
    def gap(self) -> float:
        """How much better the model scores on its training rows."""
        return float(np.mean(self.train_scores) - self.mean)

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON types, without the predictions; what is no number becomes None."""
        return {
            "metric": self.metric,
            "scheme": self.scheme,
            "mean": _plain(self.mean),
            **self.interval.to_dict(),
            "scores": [_plain(score) for score in self.scores],
            "train_scores": [_plain(score) for score in self.train_scores],
            "n_train": self.n_train,
            "n_test": self.n_test,
            "fit_seconds": [_plain(seconds) for seconds in self.fit_seconds],
            "score_seconds": [_plain(seconds) for seconds in self.score_seconds],
            "certificates": [None if found is None else found.to_dict() for found in self.certificates],
            "note": self.note,
        }

    def __repr__(self) -> str:
        ends = f"[{self.interval.low:.4g}, {self.interval.high:.4g}]"
        level = f"{100 * self.interval.level:g}% by {self.interval.method}"
        note = f"; {self.note}" if self.note else ""
        return f"{self.metric} {self.mean:.4g} {ends} ({level}); {self.scheme}{note}"


def fold_estimate(found: list[FoldScore], splits: list[Split], metric: str, scheme: str, level: float) -> RiskEstimate:
    """Return the record of scores on folds; an interval of accuracy holds the exact binomial one of the rows tested."""
    scores = np.array([fold.score for fold in found])
    n_train, n_test = (float(np.mean([len(split[part]) for split in splits])) for part in (0, 1))
    interval = corrected_t_interval(scores, n_test / (n_train + n_test), level)
    if metric == "accuracy":
        # Folds that agree by chance would have no spread; the tested rows still are a sample.
        tested = len(np.unique(np.concatenate([test for _, test in splits])))
        wrong = int(np.clip(np.floor((1.0 - scores.mean()) * tested + 0.5), 0, tested))
        rate = binomial_interval(wrong, tested, level)
        interval = interval.hull(rate._replace(low=1.0 - rate.high, high=1.0 - rate.low)).clipped(0.0, 1.0)
    return RiskEstimate(
        float(scores.mean()),
        interval,
        scores,
        np.array([fold.train_score for fold in found]),
        metric,
        scheme,
        round(n_train),
        round(n_test),
        np.array([fold.fit_seconds for fold in found]),
        np.array([fold.score_seconds for fold in found]),
        [fold.certificate for fold in found],
    )


def row_interval(
    scorer: Scorer,
    metric: str,
    stand_in: Remembered,
    y: NDArray[Any],
    weight: Array | None,
    level: float,
    bounds: tuple[float, float] | None,
) -> Interval:
    """Return the interval from one prediction a row: by its losses if the metric is their mean, else by jackknife."""
    loss = row_loss(metric, y)
    if loss is not None and loss.response in stand_in.responses:
        losses = loss.loss(y, stand_in.responses[loss.response], getattr(stand_in, "classes_", None))
        return loss.interval(losses, y, weight, level=level, bounds=bounds)
    try:
        return jackknife_interval(scorer, stand_in, y, weight, level, np.random.default_rng(0))
    except (
        AttributeError,
        TypeError,
        ValueError,
    ):  # a scorer that needs the model itself, or all classes in every part
        return Interval(-math.inf, math.inf, level, "none: the metric is no smooth function of the rows")


def pooled_score(
    owner: str, scorer: Scorer, stand_in: Remembered, y: NDArray[Any], weight: Array | None = None
) -> float:
    """Return the score of all predictions together; raise DataError unless it is a finite number."""
    try:
        score = score_of(scorer, stand_in, y, weight, np.arange(len(y)))
    except (AttributeError, TypeError, ValueError) as error:
        reason = str(error).strip().splitlines()[0].removesuffix(".")
        raise DataError(
            f"{owner}: the metric cannot judge predictions without their model: {reason}; use folds or a hold-out."
        ) from error
    if not np.isfinite(score):
        raise DataError(f"{owner}: the score of {len(y)} row(s) is {score}; get more rows, or use another metric.")
    return score


def _plain(number: float) -> float | None:
    return float(number) if math.isfinite(number) else None
