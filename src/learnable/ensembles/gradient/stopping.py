"""When rounds end early: scores of rows held out, or of the training rows, after every round."""

from __future__ import annotations

from copy import copy
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...core.threads import resolve_n_jobs
from ...trees.layout import Trees
from .driver import Rounds
from .evaluator import mean_loss
from .loss_base import BoostingLoss

Array = NDArray[np.float64]


class Stopping(NamedTuple):
    """When rounds end early."""

    fraction: Any  #: rows held out; None: judged on the training rows
    patience: int
    tol: float
    scoring: Any = "loss"


class Part(NamedTuple):
    """Some rows, ready for the loop."""

    X: Any
    y: NDArray[Any]  #: as the door gives it: numbers or class codes
    w: Array | None


class Watch:
    """Scores of rows held out, or of the training rows, after every round; says when no more are needed."""

    def __init__(
        self,
        model: Any,
        loss: BoostingLoss,
        part: Part,
        y: Array,
        held: Part | None,
        stopping: Stopping,
        rounds: Rounds,
        old: Any,
    ) -> None:
        self.model, self.loss, self.part, self.y, self.held, self.rule = model, loss, part, y, held, stopping
        self.threads = resolve_n_jobs(model.n_jobs)
        self.first = len(rounds.steps)
        kept = old is not None and len(getattr(old, "train_score_", ())) > self.first
        self.train_scores = old.train_score_[: self.first + 1].tolist() if kept else []
        self.scores = old.validation_score_[: self.first + 1].tolist() if kept else []
        self.y_held = np.empty(0) if held is None else loss.truth(held.y)
        if held is not None:
            self.F = (old if old is not None else model)._raw_start(held.X)
            if old is not None:
                self.F = old._raw_of(held.X)
        if not kept:
            self._note(rounds)

    def __call__(self, rounds: Rounds, trees: list[Trees]) -> bool:
        """Look at one more round; return whether it is enough."""
        if self.held is not None:
            for k, tree in enumerate(trees):
                self.F[k] += tree.sum(self.held.X, self.threads)[:, 0]
        self._note(rounds)
        scores = self.decisive()
        if len(scores) <= self.rule.patience:
            return False
        before = scores[-self.rule.patience - 1] + self.rule.tol
        return not any(score > before for score in scores[-self.rule.patience :])

    def best_round(self, n_rounds: int) -> int:
        """Return the round with the best score on the rows held out, at least one; else all rounds."""
        if self.held is None or not self.scores:
            return n_rounds
        return max(1, int(np.argmax(self.scores)))

    def decisive(self) -> list[float]:
        """Return the scores that early stopping goes by: of the rows held out, or else of the training rows."""
        return self.train_scores if self.held is None else self.scores

    def _note(self, rounds: Rounds) -> None:
        if isinstance(self.rule.scoring, str) and self.rule.scoring == "loss":
            if not rounds.losses:
                rounds.losses.append(mean_loss(self.loss, self.y, rounds.F, self.part.w))
            self.train_scores.append(-rounds.losses[-1])
            if self.held is not None:
                self.scores.append(-mean_loss(self.loss, self.y_held, self.F, self.held.w))
            return
        self.train_scores.append(self._scored(self.part, rounds.F))
        if self.held is not None:
            self.scores.append(self._scored(self.held, self.F))

    def _scored(self, part: Part, F: Array) -> float:
        """Return what the scorer says of scores that are known already."""
        from sklearn.metrics import check_scoring

        twin = copy(self.model)
        twin._scores = F
        twin.__dict__.pop("feature_names_in_", None)  # the rows below are placeholders
        scorer = check_scoring(twin, self.rule.scoring)
        y = twin.classes_[part.y] if twin._classes else part.y
        kwargs = {} if part.w is None else {"sample_weight": part.w}
        return float(scorer(twin, np.zeros((F.shape[1], twin.n_features_in_)), y, **kwargs))


def take_rows(part: Part, rows: NDArray[np.int64]) -> Part:
    """Return some of the rows."""
    return Part(part.X[rows], part.y[rows], None if part.w is None else part.w[rows])
