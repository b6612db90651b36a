"""AdaBoost where all rows have the same label: one learner that always names it, and nothing to boost."""

from __future__ import annotations

from typing import Any

import numpy as np

from .stumps import Stumps


def fit_one_class(model: Any, n_rows: int, learner: Any) -> None:
    """Set the attributes of a fitted `AdaBoostClassifier`; `learner` is None for stumps."""
    stumps = learner is None
    model.validation_rows_ = np.empty(0, dtype=np.int64)
    model.n_rows_ = n_rows
    model.stumps_ = Stumps(np.zeros(1, np.int64), np.zeros(1), np.full((1, 2, 1), -1.0)) if stumps else None
    model.stump_sides_ = np.array([[[1.0, n_rows], [0.0, 0.0]]]) if stumps else None
    model.models_ = None if stumps else [learner]
    model.estimator_weights_ = np.ones(1)
    model.estimator_errors_ = np.zeros(1)
    model.exponential_loss_ = np.zeros(1)
    model.training_bound_ = np.zeros(1)
    model.validation_errors_ = np.empty(0)
    learners = model.stumps_ if model.variant == "float" and stumps else [learner] if model.variant == "float" else None
    model.rounds_ = {
        "learners": learners,
        "votes": np.ones(1),
        "errors": np.zeros(1),
        "removed": np.full(1, -1, np.int64),
    }
