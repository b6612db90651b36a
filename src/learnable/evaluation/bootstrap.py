r"""Bootstrap estimates of risk: out of bag, .632 and .632+.

With B resamples of the n rows, row i is judged only by the models that did not see it:

    Err₁   = n⁻¹ Σᵢ (mean loss of row i over the resamples without it)      leave-one-out bootstrap
    err    = mean loss of the model of all rows on these very rows           apparent error
    γ      = n⁻² Σᵢ Σⱼ L(yᵢ, f(xⱼ))                                          error without information
    .632   = .368 err + .632 Err₁
    .632+  = (1 − ŵ) err + ŵ min(Err₁, γ),  ŵ = .632/(1 − .368 R̂),  R̂ = (min(Err₁, γ) − err)/(γ − err)

with R̂ = 0 unless min(Err₁, γ) > err. So .632+ trusts the optimistic apparent error less, the more the model overfits.

Reference: B. Efron and R. Tibshirani, Improvements on cross-validation: the .632+ bootstrap method, JASA 92, 1997.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier

from ..core.declare import RANDOM_STATE, Number, check_parameters
from ..core.errors import DataError
from ..data.rows import RowTable, read_rows
from ..meta.folds import Scorer, fit_folds, fit_whole, naming_fold, score_rows, scorer_of
from ..meta.splits import Split, as_generator
from .intervals import LEVEL, Interval, corrected_t_interval
from .responses import Remembered, responses_of, score_of
from .row_losses import RowLoss, no_information_score, row_loss

Array = NDArray[np.float64]

_PERMUTATIONS = 50
_REDRAWS = 100
OUT_OF_BAG_SHARE = np.exp(-1.0)


@dataclass(frozen=True)
class Bootstrap:
    """Scores by the bootstrap; greater is better.

    Attributes
    ----------
    apparent : float
        On the training rows themselves.
    out_of_bag : float
        On the rows that a resample left out, Err₁.
    no_information : float
        Of random pairs of targets and predictions, γ.
    point632, point632_plus : float
        The weighted means of the first two.
    overfitting : float
        R̂, between 0 (none) and 1 (nothing was learned).
    weight : float
        ŵ, between .632 and 1.
    interval : dict
        For "bootstrap", ".632" and ".632+", the confidence interval: by the rows' own spread where the metric is a
        mean over rows, otherwise by the spread over resamples.
    scores : array of shape (n_resamples,)
        The score of each resample on its rows left out.
    metric : str
        Its name.
    """

    apparent: float
    out_of_bag: float
    no_information: float
    point632: float
    point632_plus: float
    overfitting: float
    weight: float
    interval: dict[str, Interval]
    scores: Array
    metric: str


def bootstrap_risk(
    model: Any,
    X: Any,
    y: Any,
    *,
    scoring: Any = None,
    n_resamples: int = 100,
    sample_weight: Any = None,
    level: float = 0.95,
    random_state: Any = 0,
) -> Bootstrap:
    """Estimate a model's score by the bootstrap, also by the .632 and .632+ rules.

    Parameters
    ----------
    model : estimator
        Any estimator of scikit-learn's kind.
    X, y, sample_weight
        As in `evaluate`.
    scoring : str, callable or None
        The metric. The formulas are those of the paper where it is a mean over rows (accuracy, squared and absolute
        error, R², log loss); other scores are averaged over resamples, and γ comes from permuted targets.
    n_resamples : int
        B.
    level : float
        Level of the intervals.
    random_state : int, Generator, RandomState or None
        Where randomness comes from.

    Returns
    -------
    Bootstrap
        All estimates together.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from learnable.evaluation import bootstrap_risk
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(60, 5)), rng.integers(2, size=60)       # nothing to learn
    >>> found = bootstrap_risk(KNeighborsClassifier(1), X, y)
    >>> found.apparent, round(found.point632, 1), round(found.point632_plus, 1)
    (1.0, 0.7, 0.5)
    """
    owner = "bootstrap_risk"
    table = read_rows(owner, X, y, sample_weight)
    scorer, metric = scorer_of(owner, model, scoring)
    return bootstrap_table(
        owner, model, table, scorer, metric, n_resamples=n_resamples, level=level, random_state=random_state
    )


def bootstrap_table(
    owner: str,
    model: Any,
    table: RowTable,
    scorer: Scorer,
    metric: str,
    *,
    n_resamples: int,
    level: float,
    random_state: Any,
) -> Bootstrap:
    """Return the estimates for a table that was read."""
    rules = {"n_resamples": Number(low=2, integer=True), "level": LEVEL, "random_state": RANDOM_STATE}
    check_parameters(owner, {"n_resamples": n_resamples, "level": level, "random_state": random_state}, rules)
    if table.y is None:
        raise DataError(f"{owner}: the bootstrap needs targets; y is None. Pass one target a row.")
    if table.n_rows < 2:
        raise DataError(f"{owner}: needs at least 2 rows to leave some out; got {table.n_rows}.")
    rng = as_generator(random_state)
    splits = _resamples(owner, model, table, n_resamples, rng)
    whole = fit_whole(owner, model, table)
    loss = row_loss(metric, table.y)
    if loss is not None and hasattr(whole, loss.response):
        return _by_rows(owner, model, table, splits, whole, loss, metric, level)
    return _by_resamples(owner, model, table, splits, whole, scorer, metric, level, rng)


def point632_plus(apparent: float, out_of_bag: float, no_information: float) -> tuple[float, float, float]:
    """Return the .632+ estimate, R̂ and ŵ from three errors (smaller is better).

    Examples
    --------
    >>> point632_plus(0.0, 0.5, 0.5)
    (0.5, 1.0, 1.0)
    >>> point632_plus(0.2, 0.2, 0.5)
    (0.2, 0.0, 0.632)
    """
    capped = min(out_of_bag, no_information)
    overfitting = (capped - apparent) / (no_information - apparent) if capped > apparent else 0.0
    weight = 0.632 / (1.0 - 0.368 * overfitting)
    if capped <= apparent:  # no sign of overfitting: the plain rule
        capped = out_of_bag
    return (1.0 - weight) * apparent + weight * capped, overfitting, weight


def _by_rows(
    owner: str,
    model: Any,
    table: RowTable,
    splits: list[Split],
    whole: Any,
    loss: RowLoss,
    metric: str,
    level: float,
) -> Bootstrap:
    """Average over resamples row by row, then over rows."""
    y = np.asarray(table.y)
    weight = table.weight
    classes = np.unique(y) if is_classifier(model) else None
    total = np.zeros(len(y))
    times = np.zeros(len(y))
    scores = []
    for fold in fit_folds(owner, model, table, splits):
        with naming_fold(owner, model, fold.number, fold.total, fold.train):
            losses = loss.loss(y[fold.test], _response(loss, fold.model, table, fold.test, classes), classes)
            total[fold.test] += losses
            times[fold.test] += 1
            part = None if weight is None else weight[fold.test]
            varied = not loss.relative or np.ptp(y[fold.test]) > 0  # R² divides by the variance of the targets
            scores.append(loss.score_of(loss.mean(losses, part), y[fold.test], part) if varied else np.nan)
    seen = times > 0
    if not seen.all():
        total[~seen] = total[seen].sum() / times[seen].sum()
        times[~seen] = 1.0
    out_of_bag = total / times
    response = _response(loss, whole, table, np.arange(len(y)), classes)
    apparent = loss.loss(y, response, classes)
    gamma = no_information_score(loss, y, response, classes, weight)
    err = loss.mean(apparent, weight)
    err1 = loss.mean(out_of_bag, weight)
    plus, overfitting, share = point632_plus(err, err1, gamma)
    mixed = {"bootstrap": (1.0, err1), ".632": (0.632, 0.368 * err + 0.632 * err1), ".632+": (share, plus)}
    intervals = {}
    for name, (of_out, value) in mixed.items():
        rows = (1.0 - of_out) * apparent + of_out * out_of_bag
        shifted = rows + (value - loss.mean(rows, weight))  # .632+ may have been capped at γ
        intervals[name] = loss.interval(shifted, y, weight, level=level)
    return Bootstrap(
        apparent=loss.score_of(err, y, weight),
        out_of_bag=loss.score_of(err1, y, weight),
        no_information=loss.score_of(gamma, y, weight),
        point632=loss.score_of(mixed[".632"][1], y, weight),
        point632_plus=loss.score_of(plus, y, weight),
        overfitting=overfitting,
        weight=share,
        interval=intervals,
        scores=np.array(scores),
        metric=metric,
    )


def _by_resamples(
    owner: str,
    model: Any,
    table: RowTable,
    splits: list[Split],
    whole: Any,
    scorer: Scorer,
    metric: str,
    level: float,
    rng: np.random.Generator,
) -> Bootstrap:
    """Average the scores of the resamples; the rules are applied to minus the score."""
    scores = []
    for fold in fit_folds(owner, model, table, splits):
        with naming_fold(owner, model, fold.number, fold.total, fold.train):
            scores.append(score_rows(scorer, fold.model, table, fold.test))
    everything = np.arange(table.n_rows)
    y = np.asarray(table.y)
    stand_in = Remembered(whole, responses_of(whole, table.X), getattr(whole, "classes_", None))
    err = -score_rows(scorer, whole, table, everything)
    pairs = [score_of(scorer, stand_in, rng.permutation(y), table.weight, everything) for _ in range(_PERMUTATIONS)]
    gamma = -float(np.mean(pairs))
    err1 = -float(np.mean(scores))
    plus, overfitting, share = point632_plus(err, err1, gamma)
    plain = 0.368 * err + 0.632 * err1
    around = corrected_t_interval(scores, OUT_OF_BAG_SHARE, level)
    intervals = {}
    for name, (of_out, value) in {"bootstrap": (1.0, err1), ".632": (0.632, plain), ".632+": (share, plus)}.items():
        half = of_out * (around.high - around.low) / 2.0
        intervals[name] = Interval(-value - half, -value + half, level, "corrected t over resamples")
    return Bootstrap(-err, -err1, -gamma, -plain, -plus, overfitting, share, intervals, np.array(scores), metric)


def _resamples(owner: str, model: Any, table: RowTable, n_resamples: int, rng: np.random.Generator) -> list[Split]:
    """Draw rows with replacement; a resample that leaves no row out, or has one class only, is drawn again."""
    y = np.asarray(table.y)
    everything = np.arange(table.n_rows)
    by_class = is_classifier(model) and y.ndim == 1 and len(np.unique(y)) > 1
    splits: list[Split] = []
    for generator in rng.spawn(n_resamples):
        for _ in range(_REDRAWS):
            train = np.sort(generator.integers(table.n_rows, size=table.n_rows))
            test = np.setdiff1d(everything, train)
            if len(test) and not (by_class and bool((y[train] == y[train[0]]).all())):
                break
        else:
            raise DataError(
                f"{owner}: {_REDRAWS} resamples of the {table.n_rows} rows in turn had one class only; get more rows "
                "of the rare class."
            )
        splits.append((train, test))
    return splits


def _response(loss: RowLoss, model: Any, table: RowTable, rows: NDArray[np.int64], classes: Any) -> NDArray[Any]:
    response = np.asarray(getattr(model, loss.response)(table.take(rows)[0]))
    seen: Any = getattr(model, "classes_", None)
    if loss.response != "predict_proba" or classes is None or len(seen) == len(classes):
        return response
    wide = np.zeros((len(response), len(classes)))
    wide[:, np.searchsorted(classes, seen)] = response
    return wide
