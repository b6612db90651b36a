"""How good a model is on rows it has not seen.

`evaluate` answers with one record, whatever the way: a hold-out, folds (plain, stratified, grouped, by time), exact
leave-one-out, the bootstrap, or a model's own out-of-bag rows. The record says the score, how uncertain it is and by
which method, the score on the training rows, the times and the certificates.

What it estimates is the score of the *procedure* on n_train rows: folds and hold-outs train on fewer rows than there
are, so that they are a little pessimistic.

Reference: T. Hastie, R. Tibshirani and J. Friedman, The Elements of Statistical Learning, 2nd ed., chapter 7.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from ...core import (
    RANDOM_STATE,
    Array,
    Boolean,
    Certificate,
    DataError,
    LearnableError,
    NDArray,
    Number,
    ParameterError,
    check_parameters,
)
from ...data.dask_tasks import client_of
from ...data.rows import RowTable, read_rows
from ...meta.folds import (
    FoldScore,
    Scorer,
    cross_score,
    fit_folds,
    fit_whole,
    naming_fold,
    score_fold,
    score_rows,
    scorer_of,
    splits_for,
)
from ...meta.splits import Split, hold_out
from .intervals import LEVEL, Interval, binomial_interval, corrected_t_interval
from .losses import Remembered, jackknife_interval, remember_model, row_loss, score_of
from .resampling import bootstrap_table, leave_one_out

# --------------------------------------------------------------------------------------------------------------------
# The record of an estimated score, and how its interval is found: from folds, or from one prediction per row.


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
        One score per fold; one in all for a hold-out and leave-one-out.
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
    """Return the interval from one prediction per row: by its losses if the metric is their mean, else by jackknife."""
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


BOOTSTRAPS = ("bootstrap", ".632", ".632+")
SCHEMES = ("auto", "kfold", "stratified", "grouped", "time", "holdout", "loo", *BOOTSTRAPS, "oob")


def evaluate(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    scheme: Any = "auto",
    scoring: Any = None,
    n_splits: int = 5,
    repeats: int = 1,
    share: float = 0.2,
    n_resamples: int = 100,
    groups: Any = None,
    time: Any = None,
    sample_weight: Any = None,
    level: float = 0.95,
    bounds: tuple[float, float] | None = None,
    train_scores: bool = True,
    random_state: Any = 0,
    client: Any = None,
) -> RiskEstimate:
    """Estimate a model's score on rows it has not seen, with a confidence interval.

    Parameters
    ----------
    model : estimator
        Any estimator of scikit-learn's kind, pipelines included. It is cloned, and stays as it is.
    X : array, sparse array, dataframe, or path or glob of CSV or Parquet files
        The rows.
    y : array of shape (n_rows,) or str
        Targets, or the name of their column. None for models without targets.
    scheme : str, splitter of scikit-learn, or list of (train, test)
        "kfold", "stratified", "grouped", "time"; "holdout"; "loo" (leave-one-out, by the closed form where there is
        one); "bootstrap", ".632", ".632+"; "oob" (the model's own out-of-bag rows). "auto" is "grouped" or "time" where
        these are given, "stratified" for a classifier, "kfold" otherwise.
    scoring : str, callable or None
        A metric of scikit-learn, greater is better. None is accuracy for a classifier, R² for a regressor, and the
        model's own `score` for others.
    n_splits, repeats : int
        Folds, and how often to cut anew.
    share : float
        Share of a hold-out.
    n_resamples : int
        Resamples of a bootstrap.
    groups, time : array of shape (n_rows,) or str, optional
        Rows of a group stay together; rows are trained on before those that follow. A column named here is no feature.
    sample_weight : array of shape (n_rows,) or str, optional
        Weights, for fits and for scores.
    level : float
        Confidence level.
    bounds : (low, high), optional
        The range of one row's loss, if it is known beforehand: a hold-out's interval is then empirical Bernstein's,
        which holds for every distribution.
    train_scores : bool
        Whether to score the training rows as well.
    random_state : int, Generator, RandomState or None
        Where the cuts come from.
    client : distributed.Client or True, optional
        A Dask cluster, or the one in use: folds then are fitted side by side by its workers, which each get a copy of
        the table. Everything but the times is the same.

    Returns
    -------
    RiskEstimate
        The score, its interval, and what every fold gave.

    Raises
    ------
    DataError
        If a model fails in a fold, or a score is no number; the message names the fold.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable import Ridge
    >>> from learnable.evaluation import evaluate
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 3))
    >>> found = evaluate(Ridge(), X, X[:, 0] + rng.normal(size=100), scoring="neg_mean_squared_error")
    >>> found.scheme, found.interval.low < found.mean < found.interval.high
    ('5-fold', True)
    >>> evaluate(Ridge(), X, X[:, 0], scheme="loo").interval.method
    't over rows'
    """
    owner = "evaluate"
    rules = {
        "share": Number(low=0.0, high=1.0, low_open=True, high_open=True),
        "level": LEVEL,
        "train_scores": Boolean(),
        "random_state": RANDOM_STATE,
    }
    given = {"share": share, "level": level, "train_scores": train_scores, "random_state": random_state}
    check_parameters(owner, given, rules)
    if isinstance(scheme, str) and scheme not in SCHEMES:
        raise ParameterError(f"{owner}: scheme must be one of {', '.join(map(repr, SCHEMES))}; got {scheme!r}.")
    cluster = client_of(owner, client)
    table = read_rows(owner, X, y, sample_weight, groups=groups, time=time)
    scorer, metric = scorer_of(owner, model, scoring)
    if isinstance(scheme, str) and scheme in BOOTSTRAPS:
        return _bootstrap(owner, model, table, scorer, metric, scheme, n_resamples, level, random_state)
    if isinstance(scheme, str) and scheme == "loo":
        return _leave_one_out(owner, model, table, scorer, metric, level, train_scores)
    if isinstance(scheme, str) and scheme == "oob":
        return _out_of_bag(owner, model, table, scorer, metric, level)
    if isinstance(scheme, str) and scheme == "holdout":
        return _hold_out(owner, model, table, scorer, metric, share, level, bounds, train_scores, random_state)
    splits, name = splits_for(owner, model, table, scheme, n_splits, repeats, random_state)
    found = cross_score(owner, model, table, splits, scorer, train_scores=train_scores, client=cluster)
    words = name if name == "given splits" else _words(name, n_splits, repeats)
    return fold_estimate(found, splits, metric, words, level)


def _hold_out(
    owner: str,
    model: Any,
    table: RowTable,
    scorer: Scorer,
    metric: str,
    share: float,
    level: float,
    bounds: tuple[float, float] | None,
    train_scores: bool,
    random_state: Any,
) -> RiskEstimate:
    rows = table.n_rows if table.y is None else table.y
    task = "classification" if is_classifier(model) and table.y is not None and table.y.ndim == 1 else None
    groups, when = (table.columns.get(name) for name in ("groups", "time"))
    try:
        split = hold_out(rows, share=share, task=task, groups=groups, time=when, random_state=random_state)
    except LearnableError as error:
        raise type(error)(str(error).replace("hold_out", owner, 1)) from error
    (fold,) = fit_folds(owner, model, table, [split])
    with naming_fold(owner, model, 1, 1, fold.train):
        one = score_fold(scorer, fold, table, train_scores)
        stand_in = remember_model(fold.model, table, fold.test) if table.y is not None else None
    _, y, weight = table.take(fold.test)
    interval = (
        Interval(-math.inf, math.inf, level, "none: no targets")
        if stand_in is None
        else row_interval(scorer, metric, stand_in, y, weight, level, bounds)
    )
    estimate = fold_estimate([one], [split], "", f"hold-out of {100 * share:g}%", level)
    return replace(estimate, metric=metric, interval=interval)


def _leave_one_out(
    owner: str, model: Any, table: RowTable, scorer: Scorer, metric: str, level: float, train_scores: bool
) -> RiskEstimate:
    found = leave_one_out(owner, model, table)
    y = np.asarray(table.y)
    stand_in = Remembered(model, found.responses, found.classes)
    score = pooled_score(owner, scorer, stand_in, y, table.weight)
    n = table.n_rows
    nan = np.array([np.nan])
    on_train = nan
    certificate = None
    if train_scores:
        whole = fit_whole(owner, model, table)
        on_train = np.array([score_rows(scorer, whole, table, np.arange(n))])
        certificate = getattr(whole, "certificate_", None)
    note = "; ".join(filter(None, (found.method, found.note)))
    return RiskEstimate(
        score,
        row_interval(scorer, metric, stand_in, y, table.weight, level, None),
        np.array([score]),
        on_train,
        metric,
        "leave-one-out",
        n - 1,
        1,
        nan,
        nan,
        [certificate],
        note,
        found.predictions,
    )


def _out_of_bag(owner: str, model: Any, table: RowTable, scorer: Scorer, metric: str, level: float) -> RiskEstimate:
    """Use the model's own out-of-bag predictions, or at least its score of them."""
    whole = fit_whole(owner, model, table)
    y = np.asarray(table.y)
    nan = np.array([np.nan])
    classes = getattr(whole, "classes_", None)
    responses: dict[str, NDArray[Any]] = {}
    if hasattr(whole, "oob_decision_function_") and classes is not None:
        proba = np.asarray(whole.oob_decision_function_)
        known = np.isfinite(proba).all(axis=1)
        responses = {
            "predict": classes[np.argmax(np.where(known[:, None], proba, 0.0), axis=1)],
            "predict_proba": proba,
        }
    elif hasattr(whole, "oob_prediction_"):
        responses = {"predict": np.asarray(whole.oob_prediction_)}
    if not responses and not hasattr(whole, "oob_score_"):
        raise ParameterError(
            f"{owner}: {type(model).__name__} keeps no out-of-bag predictions; use a bagged model with oob_score=True, "
            "or another scheme."
        )
    on_train = np.array([score_rows(scorer, whole, table, np.arange(table.n_rows))])
    certificate = getattr(whole, "certificate_", None)
    if not responses:
        score = float(whole.oob_score_)
        interval = Interval(-math.inf, math.inf, level, "none: the model keeps no rows")
        predictions = None
        note = "the model's own score"
        metric = "oob_score_"
    else:
        stand_in = Remembered(whole, responses, classes)
        rows = np.flatnonzero(
            np.isfinite(np.column_stack([_numbers(values) for values in responses.values()])).all(axis=1)
        )
        stand_in.responses = {name: values[rows] for name, values in responses.items()}
        weight = None if table.weight is None else table.weight[rows]
        score = pooled_score(owner, scorer, stand_in, y[rows], weight)
        interval = row_interval(scorer, metric, stand_in, y[rows], weight, level, None)
        missing = table.n_rows - len(rows)
        note = f"{missing} row(s) were in every bag" if missing else ""
        predictions = responses["predict"]
    n = table.n_rows
    return RiskEstimate(
        score,
        interval,
        np.array([score]),
        on_train,
        metric,
        "out of bag",
        n,
        n,
        nan,
        nan,
        [certificate],
        note,
        predictions,
    )


def _bootstrap(
    owner: str,
    model: Any,
    table: RowTable,
    scorer: Scorer,
    metric: str,
    scheme: str,
    n_resamples: int,
    level: float,
    random_state: Any,
) -> RiskEstimate:
    found = bootstrap_table(
        owner, model, table, scorer, metric, n_resamples=n_resamples, level=level, random_state=random_state
    )
    value = {"bootstrap": found.out_of_bag, ".632": found.point632, ".632+": found.point632_plus}[scheme]
    words = "out-of-bag bootstrap" if scheme == "bootstrap" else f"{scheme} bootstrap"
    note = f"weight {found.weight:.3g} on the rows left out" if scheme == ".632+" else ""
    n = table.n_rows
    none = np.full(n_resamples, np.nan)
    on_train = np.full(n_resamples, found.apparent)
    return RiskEstimate(
        value,
        found.interval[scheme],
        found.scores,
        on_train,
        metric,
        f"{words}, {n_resamples} resamples",
        n,
        round(n * math.exp(-1.0)),
        none,
        none,
        [None] * n_resamples,
        note,
    )


def _words(scheme: str, n_splits: int, repeats: int) -> str:
    words = {"kfold": "", "stratified": "stratified ", "grouped": "grouped ", "time": "forward-in-time "}[scheme]
    again = f", {repeats} times" if repeats > 1 else ""
    return f"{words}{n_splits}-fold{again}"


def _numbers(values: NDArray[Any]) -> Array:
    """Return real numbers to look for NaN in; labels have none."""
    return values.reshape(len(values), -1) if values.dtype.kind == "f" else np.zeros((len(values), 1))
