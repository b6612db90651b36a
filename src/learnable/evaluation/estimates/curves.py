"""Learning curves and validation curves: the score against the number of rows, and against a parameter.

Both fit the model on the same folds for every point, so that neighbouring points are comparable. The band is the
corrected interval of `corrected_t_interval`. A training score far above the test score says variance: more rows or a
simpler model would help. Two scores that are close and low say bias: neither would more rows help.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier

from ...core import RANDOM_STATE, Array, Boolean, Certificate, DataError, ParameterError, check_parameters
from ...data.rows import RowTable, read_rows
from ...meta.folds import FoldScore, cross_score, scorer_of, splits_for
from ...meta.splits import Rows, Split, as_generator, codes_of
from .intervals import LEVEL, corrected_t_interval


@dataclass(frozen=True)
class Curve:
    """Scores along an axis; greater is better.

    Attributes
    ----------
    name : str
        What varies: "rows", or the parameter's name.
    values : list
        Its values; the numbers of training rows of a learning curve.
    train, test : arrays of shape (n_values,)
        Mean scores on training and on test rows.
    low, high : arrays of shape (n_values,)
        Confidence interval of `test`.
    train_low, train_high : arrays of shape (n_values,)
        Confidence interval of `train`.
    train_scores, test_scores : arrays of shape (n_values, n_folds)
        Every score.
    fit_seconds : array of shape (n_values,)
        Mean time of a fit.
    metric : str
        Name of the score.
    level : float
        Confidence level.
    """

    name: str
    values: list[Any]
    train: Array
    test: Array
    low: Array
    high: Array
    train_low: Array
    train_high: Array
    train_scores: Array
    test_scores: Array
    fit_seconds: Array
    metric: str
    level: float

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON types, without the scores of the folds; an infinite end becomes None."""
        arrays = ("train", "test", "low", "high", "train_low", "train_high", "fit_seconds")
        plain = {name: [float(v) if np.isfinite(v) else None for v in getattr(self, name)] for name in arrays}
        values = [value.item() if isinstance(value, np.generic) else value for value in self.values]
        return {"name": self.name, "values": values, **plain, "metric": self.metric, "level": self.level}


def learning_curve(
    model: Any,
    X: Any,
    y: Any = None,
    sizes: Any = (0.1, 0.325, 0.55, 0.775, 1.0),
    *,
    scoring: Any = None,
    scheme: Any = "auto",
    n_splits: int = 5,
    groups: Any = None,
    time: Any = None,
    sample_weight: Any = None,
    shuffle: bool = True,
    level: float = 0.95,
    random_state: Any = 0,
) -> Curve:
    """Score a model that was trained on more and more rows.

    Parameters
    ----------
    model, X, y, sample_weight, groups, time, scoring, scheme, n_splits, level, random_state
        As in `evaluate`.
    sizes : array
        Numbers of training rows, or shares of the rows that a fold trains on.
    shuffle : bool
        Whether smaller training sets are random parts of larger ones, with the classes in proportion; otherwise they
        are the first rows of a fold. By time they are always the latest ones.

    Returns
    -------
    Curve
        One point a size. Sizes that come out equal are one point.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable import Ridge
    >>> from learnable.evaluation import learning_curve
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 5))
    >>> curve = learning_curve(Ridge(), X, X[:, 0] + rng.normal(size=200), [20, 160])
    >>> curve.values, bool(curve.test[1] > curve.test[0])
    ([20, 160], True)
    """
    owner = "learning_curve"
    rules = {"shuffle": Boolean(), "level": LEVEL, "random_state": RANDOM_STATE}
    check_parameters(owner, {"shuffle": shuffle, "level": level, "random_state": random_state}, rules)
    table = read_rows(owner, X, y, sample_weight, groups=groups, time=time)
    scorer, metric = scorer_of(owner, model, scoring)
    splits, name = splits_for(owner, model, table, scheme, n_splits, 1, random_state)
    rng = as_generator(random_state)
    ordered = [(_order(owner, model, table, train, name, shuffle, rng), test) for train, test in splits]
    counts = _numbers_of_rows(owner, sizes, min(len(train) for train, _ in splits))
    found = []
    cut = []
    for count in counts:
        cut.append([(train[:count], test) for train, test in ordered])
        found.append(
            cross_score(owner, model, table, cut[-1], scorer, train_scores=True, place=f" with {count} training rows")
        )
    return _curve("rows", counts, found, cut, metric, level)


def validation_curve(
    model: Any,
    X: Any,
    y: Any = None,
    name: str = "alpha",
    values: Sequence[Any] = (),
    *,
    scoring: Any = None,
    scheme: Any = "auto",
    n_splits: int = 5,
    repeats: int = 1,
    groups: Any = None,
    time: Any = None,
    sample_weight: Any = None,
    level: float = 0.95,
    random_state: Any = 0,
) -> Curve:
    """Score a model for every value of one parameter.

    Parameters
    ----------
    model, X, y, sample_weight, groups, time, scoring, scheme, n_splits, repeats, level, random_state
        As in `evaluate`.
    name : str
        The parameter, `"step__name"` inside a pipeline.
    values : sequence
        Its values.

    Returns
    -------
    Curve
        One point a value. To choose one of them, use `learnable.meta.select`.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable import Ridge
    >>> from learnable.evaluation import validation_curve
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 20))
    >>> curve = validation_curve(Ridge(), X, X[:, 0] + rng.normal(size=60), "alpha", [0.1, 10.0, 1000.0])
    >>> curve.values[int(np.argmax(curve.test))], bool(curve.train[0] > curve.train[2])
    (10.0, True)
    """
    owner = "validation_curve"
    rules = {"level": LEVEL, "random_state": RANDOM_STATE}
    check_parameters(owner, {"level": level, "random_state": random_state}, rules)
    if isinstance(values, str) or not hasattr(values, "__len__") or len(values) == 0:
        raise ParameterError(f"{owner}: values must be one or more values of {name}; got {values!r}.")
    if name not in model.get_params():
        raise ParameterError(f"{owner}: {type(model).__name__} has no parameter {name!r}.")
    table = read_rows(owner, X, y, sample_weight, groups=groups, time=time)
    scorer, metric = scorer_of(owner, model, scoring)
    splits, _ = splits_for(owner, model, table, scheme, n_splits, repeats, random_state)
    found = [
        cross_score(
            owner,
            clone(model).set_params(**{name: value}),
            table,
            splits,
            scorer,
            train_scores=True,
            place=f" with {name}={value!r}",
        )
        for value in values
    ]
    return _curve(name, list(values), found, [splits] * len(found), metric, level)


def _curve(
    name: str, values: list[Any], found: list[list[FoldScore]], splits: list[list[Split]], metric: str, level: float
) -> Curve:
    test = np.array([[fold.score for fold in folds] for folds in found])
    train = np.array([[fold.train_score for fold in folds] for folds in found])
    shares = [
        float(np.mean([len(tested) / (len(trained) + len(tested)) for trained, tested in folds])) for folds in splits
    ]
    ends = {
        prefix + end: np.array(
            [getattr(corrected_t_interval(row, part, level), end) for row, part in zip(scores, shares, strict=True)]
        )
        for prefix, scores in (("", test), ("train_", train))
        for end in ("low", "high")
    }
    return Curve(
        name,
        values,
        train.mean(axis=1),
        test.mean(axis=1),
        **ends,
        train_scores=train,
        test_scores=test,
        fit_seconds=np.array([np.mean([fold.fit_seconds for fold in folds]) for folds in found]),
        metric=metric,
        level=level,
    )


def _numbers_of_rows(owner: str, sizes: Any, most: int) -> list[int]:
    array = np.atleast_1d(np.asarray(sizes))
    if array.ndim != 1 or array.dtype.kind not in "iuf" or len(array) == 0 or not np.isfinite(array).all():
        raise ParameterError(f"{owner}: sizes must be numbers of rows or shares; got {sizes!r}.")
    shares = array.dtype.kind == "f" and bool((array <= 1.0).all())
    counts = np.floor(array * most + 1e-9) if shares else array
    if (array <= 0).any() or (counts > most).any() or (counts != np.floor(counts)).any():
        raise ParameterError(
            f"{owner}: sizes must be shares in (0, 1] or numbers of rows from 1 to {most}, which a fold trains on; "
            f"got {sizes!r}."
        )
    return [int(count) for count in np.unique(np.maximum(counts, 1))]


def _order(
    owner: str, model: Any, table: RowTable, train: Rows, scheme: str, shuffle: bool, rng: np.random.Generator
) -> Rows:
    """Order the training rows of a fold so that every beginning of them is a fair smaller training set."""
    if scheme == "time":
        when = table.columns.get("time")
        codes = np.arange(table.n_rows) if when is None else codes_of(owner, when, table.n_rows, "time")
        return train[np.argsort(-codes[train], kind="stable")]
    if not shuffle:
        return train
    train = rng.permutation(train)
    if not (is_classifier(model) and table.y is not None and table.y.ndim == 1):
        return train
    codes = codes_of(owner, table.y[train], len(train), "y")
    # The j-th of m members of a class comes at the share (j + ½)/m: classes stay in proportion.
    place = np.empty(len(train))
    for label in range(codes.max() + 1):
        members = np.flatnonzero(codes == label)
        place[members] = (np.arange(len(members)) + 0.5) / len(members)
    return np.asarray(train[np.argsort(place, kind="stable")])


# --------------------------------------------------------------------------------------------------------------------
# One convergence verdict for everything: has it converged, how sure is that, what to do.


#: What each kind of certificate says about the answer if it holds: how sure, and of what.
_MEANINGS = {
    "closed-form": ("proven", "the equations that define the answer hold"),
    "gap": ("proven", "no answer is better by more than the gap"),
    "stationarity": ("local", "no small step improves the answer; with a convex objective it is the best"),
    "ascent": ("local", "one more step changes nothing; other starts may end elsewhere"),
    "greedy": ("local", "each split is the best given those above it"),
    "chain": ("statistical", "chains from different starts agree, and there are draws enough"),
    "bellman": ("proven", "one more backup changes nothing; the value's error is at most residual·γ/(1 − γ)"),
}
#: What to do if it does not hold.
_REMEDIES = {
    "closed-form": "rescale the columns: the equations are ill-conditioned",
    "gap": "raise max_iter or max_seconds, or standardise the columns",
    "stationarity": "raise max_iter or max_seconds, or standardise the columns",
    "ascent": "raise max_iter, or loosen tol if the gain left is small enough for you",
    "greedy": "fit again: a split is not the best of its candidates",
    "chain": "draw more, or reparametrise",
    "bellman": "raise max_iter",
}
#: How to be surer although it holds.
_ADVICE = {
    "ascent": "try more starts (n_init) and keep the best",
    "stationarity": "if the objective is not convex, try more starts",
    "greedy": "judge the tree on rows it has not seen",
    "chain": "look at rank plots; run with other starts if several modes are possible",
}


@dataclass(frozen=True)
class Diagnosis:
    """The verdict on one fit.

    Attributes
    ----------
    converged : bool
        Whether the certificate holds.
    sure : {"proven", "local", "statistical", "nothing"}
        What kind of certainty that is.
    value, tolerance : float
        The certificate's number and what it had to reach.
    kind : str
        Kind of the certificate.
    reason : str
        The verdict in one sentence.
    advice : tuple of str
        What to do.
    """

    converged: bool
    sure: str
    value: float
    tolerance: float
    kind: str
    reason: str
    advice: tuple[str, ...]

    def __bool__(self) -> bool:
        return self.converged

    def to_dict(self) -> dict[str, Any]:
        """Return the record as plain JSON types."""
        record = dict(vars(self)) | {"advice": list(self.advice)}
        for key in ("value", "tolerance"):
            if not math.isfinite(record[key]):
                record[key] = None
        return record

    def __str__(self) -> str:
        verdict = "converged" if self.converged else "NOT converged"
        lines = [f"{verdict} ({self.sure}): {self.reason}"]
        return "\n".join([*lines, *(f"- {one}" for one in self.advice)])


def diagnose(fitted: Any) -> Diagnosis:
    """Say whether a fit has converged, how sure that is, and what to do.

    Parameters
    ----------
    fitted : estimator, Chains or Posterior
        Anything with a certificate: EM, hidden Markov models, k-means, mixtures, variational fits, samplers, and every
        model with an optimum.

    Returns
    -------
    Diagnosis
        Same words and same record for all of them; true if converged.

    Examples
    --------
    >>> import learnable as ln
    >>> from learnable.evaluation import diagnose
    >>> print(diagnose(ln.KMeans(2, random_state=0).fit([[0.0], [0.1], [5.0], [5.2]])))  # doctest: +ELLIPSIS
    converged (local): ...
    """
    certificate = getattr(fitted, "certificate_", None)
    if not isinstance(certificate, Certificate):
        raise DataError(f"diagnose: this {type(fitted).__name__} has no certificate; fit it first.")
    kind = certificate.kind
    value = certificate.value
    tolerance = certificate.tolerance
    if kind == "none":
        advice: tuple[str, ...] = ("judge it on rows it has not seen: nothing else is known",)
        return Diagnosis(False, "nothing", value, tolerance, kind, "this fit proves nothing about itself", advice)
    sure, meaning = _MEANINGS[kind]
    measured = f"{certificate.sentence} (tolerance {tolerance:.2g})"
    if certificate.holds:
        advice = tuple(_own_advice(fitted)) or ((_ADVICE[kind],) if kind in _ADVICE else ())
        return Diagnosis(True, sure, value, tolerance, kind, f"{meaning}; {measured}", advice)
    advice = tuple(_own_advice(fitted)) or (_REMEDIES[kind],)
    return Diagnosis(False, sure, value, tolerance, kind, measured, advice)


def _own_advice(fitted: Any) -> list[str]:
    """Return what the fit itself says is wrong: chains do."""
    chains = getattr(fitted, "chains", fitted)
    warnings = getattr(chains, "warnings", None)
    return list(warnings()) if callable(warnings) and hasattr(chains, "n_chains") else []
