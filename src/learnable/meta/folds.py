"""The one loop over folds: fit a copy of the model on some rows, score it on others.

Everything that resamples goes through here: risk estimates, curves, and the choice of a parameter. An error says in
which fold it happened; a score that is no number is an error too.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier, is_regressor

from ..core import Certificate, DataError, LearnableError, ParameterError
from ..data.dask_tasks import run_on_cluster
from ..data.rows import RowTable, weight_keyword
from .splits import Rows, Split, make_splits

Scorer = Callable[..., float]


@dataclass(frozen=True)
class Fold:
    """One fit of many.

    Attributes
    ----------
    number, total : int
        Which fold this is, from 1, and how many there are.
    train, test : arrays of int
        Rows.
    model : estimator
        Fitted on the training rows.
    fit_seconds : float
        Time of the fit.
    """

    number: int
    total: int
    train: Rows
    test: Rows
    model: Any
    fit_seconds: float

    @property
    def certificate(self) -> Certificate | None:
        """What the fit proves about itself, where it does."""
        last = self.model.steps[-1][1] if hasattr(self.model, "steps") else self.model
        found = getattr(last, "certificate_", None)
        return found if isinstance(found, Certificate) else None


@dataclass(frozen=True)
class FoldScore:
    """What one fold gave.

    Attributes
    ----------
    score, train_score : float
        On the test rows, and on the training rows (NaN unless asked for).
    fit_seconds, score_seconds : float
        Time of the fit, and of scoring the test rows.
    certificate : Certificate or None
        What the fit proves about itself.
    """

    score: float
    train_score: float
    fit_seconds: float
    score_seconds: float
    certificate: Certificate | None


def fit_folds(
    owner: str,
    model: Any,
    table: RowTable,
    splits: Sequence[Split],
    *,
    place: str = "",
    first: int = 1,
    total: int | None = None,
) -> Iterator[Fold]:
    """Fit a copy of `model` on the training rows of each split.

    Parameters
    ----------
    owner : str
        Who asks, for error messages.
    model : estimator
        Any estimator of scikit-learn's kind; it is cloned.
    table : RowTable
        The rows.
    splits : list of (train, test)
        Row numbers.
    place : str
        Where the caller is, to be said in errors: `" with alpha=3"`.
    first, total : int
        Number of the first split, of how many; by default 1, of those that are given.
    """
    total = len(splits) if total is None else total
    keyword = None if table.weight is None else weight_keyword(owner, model)
    for number, (train, test) in enumerate(splits, start=first):
        X, y, weight = table.take(train)
        extra = {} if keyword is None else {keyword: weight}
        copy = clone(model)
        start = time.perf_counter()
        with naming_fold(owner, model, number, total, train, place):
            copy.fit(X, *(() if y is None else (y,)), **extra)
        yield Fold(number, total, train, test, copy, time.perf_counter() - start)


def cross_score(
    owner: str,
    model: Any,
    table: RowTable,
    splits: Sequence[Split],
    scorer: Scorer,
    *,
    train_scores: bool = False,
    place: str = "",
    client: Any = None,
) -> list[FoldScore]:
    """Score a copy of `model` on the test rows of each split; the parameters are those of `fit_folds`.

    With a client of Dask the folds are tasks of its workers, each of which gets a copy of the table.
    """
    if client is not None:
        work = partial(_score_one, owner, model, scorer, len(splits), train_scores, place)
        return run_on_cluster(owner, client, work, table, list(enumerate(splits, start=1)))
    found = []
    for fold in fit_folds(owner, model, table, splits, place=place):
        with naming_fold(owner, model, fold.number, fold.total, fold.train, place):
            found.append(score_fold(scorer, fold, table, train_scores))
    return found


def _score_one(
    owner: str,
    model: Any,
    scorer: Scorer,
    total: int,
    train_scores: bool,
    place: str,
    table: RowTable,
    numbered: tuple[int, Split],
) -> FoldScore:
    """Fit and score one fold. Runs on a worker."""
    number, split = numbered
    (fold,) = fit_folds(owner, model, table, [split], place=place, first=number, total=total)
    with naming_fold(owner, model, fold.number, fold.total, fold.train, place):
        return score_fold(scorer, fold, table, train_scores)


def score_fold(scorer: Scorer, fold: Fold, table: RowTable, train_scores: bool) -> FoldScore:
    """Score one fold's model on its test rows, and perhaps on its training rows."""
    start = time.perf_counter()
    score = score_rows(scorer, fold.model, table, fold.test)
    seconds = time.perf_counter() - start
    on_train = score_rows(scorer, fold.model, table, fold.train) if train_scores else np.nan
    return FoldScore(score, on_train, fold.fit_seconds, seconds, fold.certificate)


def fit_whole(owner: str, model: Any, table: RowTable, place: str = "") -> Any:
    """Fit a copy of `model` on all rows."""
    extra = {} if table.weight is None else {weight_keyword(owner, model): table.weight}
    with naming_place(owner, model, f"the fit to all rows{place}"):
        return clone(model).fit(table.X, *(() if table.y is None else (table.y,)), **extra)


def score_rows(scorer: Scorer, model: Any, table: RowTable, rows: Rows) -> float:
    """Return the score of a fitted model on some rows; raise DataError unless it is a finite number."""
    X, y, weight = table.take(rows)
    extra = {} if weight is None else {"sample_weight": weight}
    score = scorer(model, X, *(() if y is None else (y,)), **extra)
    try:
        number = float(score)
    except (TypeError, ValueError) as error:
        raise DataError(f"the scorer returned {score!r} instead of a number") from error
    if not np.isfinite(number):
        raise DataError(f"the score on {len(rows)} row(s) is {number}; use fewer folds, or another metric")
    return number


@contextmanager
def naming_place(owner: str, model: Any, place: str) -> Iterator[None]:
    """Turn whatever a model or a scorer raises into an error that says where it happened."""
    try:
        yield
    except Exception as error:
        kind = type(error) if isinstance(error, LearnableError) else DataError
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise kind(f"{owner}: {type(model).__name__} failed in {place}: {reason.removesuffix('.')}.") from error


def naming_fold(
    owner: str, model: Any, number: int, total: int, train: Rows, place: str = ""
) -> AbstractContextManager[None]:
    """Turn whatever a model or a scorer raises into an error that names the fold."""
    return naming_place(owner, model, f"fold {number} of {total}{place}, which trains on {len(train)} row(s)")


def scorer_of(owner: str, model: Any, scoring: Any) -> tuple[Scorer, str]:
    """Return a scorer and the name of its metric; greater is better.

    None is accuracy for a classifier, R² for a regressor, and the model's own `score` for everything else.
    """
    from sklearn.metrics import check_scoring, get_scorer

    if scoring is None and (is_classifier(model) or is_regressor(model)):
        scoring = "accuracy" if is_classifier(model) else "r2"
    try:
        if scoring is None:
            return check_scoring(model), "score"
        if isinstance(scoring, str):
            return get_scorer(scoring), scoring
    except (TypeError, ValueError) as error:
        reason = str(error).splitlines()[0].removesuffix(".")
        raise ParameterError(f"{owner}: scoring={scoring!r} does not work here: {reason}.") from error
    if not callable(scoring):
        raise ParameterError(f"{owner}: scoring must be a name, a scorer or None; got {scoring!r}.")
    return scoring, getattr(scoring, "__name__", None) or repr(scoring)


def splits_for(
    owner: str, model: Any, table: RowTable, scheme: Any, n_splits: int, repeats: int, random_state: Any
) -> tuple[list[Split], str]:
    """Return the splits and the name of their scheme; `scheme` may also be splits, or a splitter of scikit-learn.

    "auto" is by groups or by time where they are given, stratified for a classifier, plain folds otherwise.
    """
    groups, when = (table.columns.get(name) for name in ("groups", "time"))
    if isinstance(scheme, str):
        if scheme == "auto":
            by_class = is_classifier(model) and table.y is not None and table.y.ndim == 1
            scheme = next(
                name
                for name, wanted in (
                    ("grouped", groups is not None),
                    ("time", when is not None),
                    ("stratified", by_class),
                    ("kfold", True),
                )
                if wanted
            )
        rows = table.n_rows if table.y is None else table.y
        return _owned(
            owner,
            lambda: make_splits(
                rows,
                scheme=scheme,
                n_splits=n_splits,
                repeats=repeats,
                groups=groups,
                time=when,
                random_state=random_state,
            ),
        ), scheme
    return _given_splits(owner, table, scheme, groups), "given splits"


def _owned(owner: str, make: Callable[[], list[Split]]) -> list[Split]:
    try:
        return make()
    except LearnableError as error:
        raise type(error)(str(error).replace("make_splits", owner, 1)) from error


def _given_splits(owner: str, table: RowTable, scheme: Any, groups: Any) -> list[Split]:
    y = np.zeros(table.n_rows) if table.y is None else table.y
    try:
        pairs = scheme.split(np.zeros((table.n_rows, 1)), y, groups) if hasattr(scheme, "split") else scheme
        splits = [(np.asarray(train), np.asarray(test)) for train, test in pairs]
        splits = [tuple(np.arange(table.n_rows)[part] for part in pair) for pair in splits]  # type: ignore[misc]
    except (TypeError, ValueError, IndexError) as error:
        reason = str(error).splitlines()[0].removesuffix(".")
        raise ParameterError(f"{owner}: scheme {scheme!r} gives no splits of {table.n_rows} rows: {reason}.") from error
    if not splits or any(len(train) == 0 or len(test) == 0 for train, test in splits):
        raise ParameterError(f"{owner}: the splits given leave a fold without rows; every fold needs some of each.")
    return splits
