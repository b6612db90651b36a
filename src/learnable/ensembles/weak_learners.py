"""Weak learners, seen by a booster: give a distribution over the training rows, get a learner and what it says of them.

`Stumps` are found by exhaustive search over all columns; any other estimator that takes weights is cloned and fitted.
What a learner says is a class code for each row, or scores: (n, 1) for two classes, (n, K) for K.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from ..core import (
    MAX_SECONDS,
    N_JOBS,
    RANDOM_STATE,
    Array,
    DataError,
    Declared,
    NDArray,
    Number,
    are_counts,
    fitted,
    law,
    laws,
    param,
    tags,
)
from ..data.rows import weight_keyword
from .adaboost.stumps import Stump, StumpSearch, coded, confidences, stump_outputs

Codes = NDArray[np.int64]

#: What a learner of this library is given instead of a weight of (almost) zero, as in scikit-learn.
_LEAST_WEIGHT = float(np.finfo(np.float64).eps)


class WeakLearning(Declared):
    """What both AdaBoosts declare alike."""

    n_estimators: int = param(
        Number(low=1, integer=True),
        "Most learners; fewer if one has no error, or none is better than guessing.",
        default=50,
    )
    learning_rate: float = param(
        Number(low=0.0, low_open=True, high=1e6),
        "Factor on every vote, and power of β in `AdaBoostRegressor`.",
        default=1.0,
    )
    random_state: Any = param(RANDOM_STATE, "Seeds the learners' `random_state` and the choice of rows.", default=None)
    n_jobs: int | None = param(N_JOBS, "Threads; the result does not depend on it.", default=None)
    max_seconds: float | None = param(MAX_SECONDS, "Time after which the rounds end.", default=None)
    estimator_weights_: Array = fitted("(n_learners,)", "Votes of the learners.", kind="f8", low=0.0)
    estimator_errors_: Array = fitted(
        "array of shape (n_learners,)", "Their weighted errors under the distribution that each was fitted to."
    )
    models_: list[Any] | None = fitted("list or None", "The fitted clones of `estimator`.")
    _tags = tags(sparse=True)
    _laws = laws(
        law("{owner}: some estimator_weights_ must be positive", lambda model: model.estimator_weights_.sum() > 0),
        law("{owner}: seed_ must be a whole number", lambda model: are_counts(model, "seed_")),
    )


class Learned(NamedTuple):
    """One weak learner and its outputs on the training rows."""

    learner: Any  #: a Stump or a fitted estimator
    codes: Codes  #: (n,) classes that it names
    scores: Array | None  #: (n, C) of a confidence-rated learner, between −1 and 1
    vote: float  #: by which these scores are to be multiplied
    sides: Array | None = None  #: (2, K + 1) of a stump: weights of the classes on both sides, and rows there


class WeakLearner(Protocol):
    """What a booster asks of a learner."""

    name: str

    def find(self, D: Array) -> Learned:
        """Return a learner for the distribution D."""
        ...


class StumpLearner:
    """The best stump over all columns and thresholds.

    Parameters are those of `StumpSearch`.
    """

    name = "stump"

    def __init__(self, X: Any, y: Codes, n_classes: int, confident: bool, n_jobs: int | None) -> None:
        self.search = StumpSearch(X, y, n_classes, confident=confident, n_jobs=n_jobs)

    def find(self, D: Array) -> Learned:
        """Return the best stump for D."""
        stump, right = self.search.find(D)
        vote = 1.0
        if self.search.confident:
            vote = spread(stump.value) or 1.0
            stump = stump._replace(value=stump.value / vote)
        side = right.astype(np.int64)
        scores = stump.value[side] if self.search.confident else None
        n_right = int(np.count_nonzero(right))
        sides = np.column_stack([self.search.sides, [len(right) - n_right, n_right]])
        return Learned(stump, labels_of(stump.value)[side], scores, vote, sides)


class ModelLearner:
    """Clones of an estimator, fitted with the distribution as sample weights.

    Parameters
    ----------
    estimator : estimator
        Cloned, not changed.
    X, y : arrays
        Rows and their class codes.
    classes : (K,) array
        Labels, which the clones are fitted to.
    confident : bool
        Whether `predict_proba` is used instead of `predict`.
    seed : int
        Of the ensemble; every clone that has a `random_state` gets its own.
    """

    def __init__(self, estimator: Any, X: Any, y: Codes, classes: NDArray[Any], confident: bool, seed: int) -> None:
        owner = "AdaBoostClassifier"
        self.name = type(estimator).__name__
        if confident and not hasattr(estimator, "predict_proba"):
            raise DataError(f"{owner}: variant='real' needs probabilities, but {self.name} has no predict_proba.")
        self.keyword = weight_keyword(owner, estimator)
        self.estimator = estimator
        self.X = X
        self.y = y
        self.classes = classes
        self.confident = confident
        self.seed = seed
        self.count = 0
        self.least = 0.5 / len(y)

    def find(self, D: Array) -> Learned:
        """Return a clone fitted to D."""
        model = self.fit(D)
        if not self.confident:
            return Learned(model, model_codes(model, self.X, self.classes), None, 1.0)
        scores = model_scores(model, self.X, self.classes, self.least)
        return Learned(model, labels_of(scores), scores, model_vote(len(self.classes), self.least))

    def fit(self, D: Array) -> Any:
        """Return the next clone, fitted to D."""
        model = clone(self.estimator)
        seed_parts(model, self.seed, self.count)
        self.count += 1
        model.fit(self.X, self.classes[self.y], **{self.keyword: np.maximum(D, _LEAST_WEIGHT)})
        return model


def spread(value: Array) -> float:
    """Return the largest distance between two classes' scores, times (K−1)/K: 1 for a learner that names a class."""
    if value.shape[-1] == 1:
        return float(np.abs(value).max())
    K = value.shape[-1]
    return float((value.max(axis=-1) - value.min(axis=-1)).max() * (K - 1) / K)


def labels_of(scores: Array) -> Codes:
    """Return the class of the largest score; (n, 1) scores are those of the second class."""
    return (scores[:, 0] > 0).astype(np.int64) if scores.shape[1] == 1 else scores.argmax(axis=1)


def model_vote(n_classes: int, least: float) -> float:
    """Return the spread of the scores of probabilities 1 − δ and δ: what a clone's scores are divided by."""
    if n_classes == 2:
        return float(0.5 * np.log((1.0 - least) / least))
    return float((n_classes - 1) ** 2 / n_classes * -np.log(least))


def model_codes(model: Any, X: Any, classes: NDArray[Any]) -> Codes:
    """Return the classes that a model names, as codes."""
    return np.searchsorted(classes, np.asarray(model.predict(X))).astype(np.int64)


def model_scores(model: Any, X: Any, classes: NDArray[Any], least: float) -> Array:
    """Return the scores of a model's probabilities, kept away from 0 and 1, between −1 and 1."""
    found = np.asarray(model.predict_proba(X), dtype=np.float64)
    p = np.zeros((len(found), len(classes)))
    p[:, np.searchsorted(classes, model.classes_)] = found
    most = 1.0 - least if len(classes) == 2 else 1.0
    return confidences(np.clip(p, least, most)) / model_vote(len(classes), least)


def learner_outputs(learner: Any, X: Any, classes: NDArray[Any], least: float | None) -> Array:
    """Return what one learner says of new rows, as scores; `least` is given for confidence-rated models."""
    if isinstance(learner, Stump):
        return stump_outputs(learner, X)
    if least is not None:
        return model_scores(learner, X, classes, least)
    return coded(model_codes(learner, X, classes), len(classes))


def seed_parts(model: Any, seed: int, number: int) -> None:
    """Give every random_state inside a model a seed of its own, which depends on the seed and the number alone."""
    names = sorted(name for name in model.get_params(deep=True) if name.split("__")[-1] == "random_state")
    states = np.random.SeedSequence([seed, number]).generate_state(max(1, len(names)))
    model.set_params(**{name: int(state >> 1) for name, state in zip(names, states, strict=False)})


def remembering_container(read: Callable[..., Any]) -> Callable[..., Any]:
    """Return a door that notes in which sparse container X came: other people's learners are fitted to the same."""

    def read_and_note(estimator: Any, X: Any, *rest: Any) -> Any:
        table = read(estimator, X, *rest)
        if sp.issparse(X):
            csc, csr = (sp.csc_matrix, sp.csr_matrix) if isinstance(X, sp.spmatrix) else (sp.csc_array, sp.csr_array)
            estimator._container = csc if X.format == "csc" else csr
        else:
            estimator._container = None
        return table

    return read_and_note


def as_given(estimator: Any, X: Any) -> Any:
    """Return X in the container that the door noted."""
    container = estimator.__dict__.get("_container")
    return X if container is None or not sp.issparse(X) else container(X)
