"""Why a model predicts what it predicts, and what more rows would do: importances and a learning curve, as a job."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ...core.errors import LearnableError
from ..curves import Curve, learning_curve
from ..importance import permutation_importance
from ..ties import verdict_on
from .candidates import Candidate, wants_dense
from .decision import Decision
from .effects import effects_of
from .measures import Measure, Prediction, predict_rows, ranking_measure, rarer_class
from .record import plain
from .slices import row_losses, slices_of, worst_rows
from .warm import get_ready
from .workspace import FINAL, Report, read_features, read_names, read_rows, read_split, read_typed, take_fitted

_MOST_ROWS: Final = 3000
_MOST_TRAINING_ROWS: Final = 10_000
_MOST_NUMBERS: Final = 2**24  # of a shuffled copy of the rows
_MOST_COLUMNS: Final = 60
_SHOWN_COLUMNS: Final = 30
_REPEATS: Final = 5
_SPLITS: Final = 5
_LAST_SIZES: Final = 3  # of a learning curve, from which it is told whether it still rises
_DRAWN: Final = 6  # columns whose partial dependence is computed
_SLICED: Final = 5  # columns by which the hold-out is cut
_WORST_SHOWN: Final = 5  # columns shown of the rows with the largest errors
_SHARES: Final = (0.1, 0.325, 0.55, 0.775, 1.0)  # of the training rows of a fold


def explain_candidate(
    report: Report,
    folder: str,
    candidate: Candidate,
    task: str,
    metric: str,
    seed: int,
    groups: NDArray[Any] | None = None,
    times: NDArray[Any] | None = None,
    classes: list[str] | None = None,
    decision: Decision | None = None,
    places: NDArray[np.int64] | None = None,
) -> None:
    """Report `{"importances": …}` of the columns of the table on the hold-out, then `{"learning_curve": …}`; a job.

    In between come `{"effects": …}`, `{"slices": …}` and `{"worst": …}`, of the columns of the greatest importance;
    `places` says where the rows stand in the table as it was read.
    A model that cannot be fitted to a few rows has a curve that begins later, and `{"note": …}` says why.
    """
    warnings.simplefilter("ignore")
    get_ready(report, candidate, task)
    where = Path(folder)
    dense = wants_dense(candidate)
    data = read_split(where, FINAL, dense=dense)
    measure = ranking_measure(task, metric)
    rng = np.random.default_rng(seed)
    model = take_fitted(where, candidate.name)
    if model is None:
        model = candidate.build(seed).fit(data.X_train, data.y_train)
    rows = _some(len(data.y_test), min(_MOST_ROWS, max(50, _MOST_NUMBERS // max(data.X_test.shape[1], 1))), rng)
    sources = read_names(where, FINAL, dense=dense)[1]
    weighed = importances(model, data.X_test[rows], data.y_test[rows], sources, measure, seed)
    report({"importances": weighed})
    test = read_rows(where, FINAL)[1]
    table = read_features(where).take(test)
    prediction = predict_rows(model, data.X_test, None if classes is None else len(classes))
    if decision is not None and prediction.probabilities is not None:
        prediction = Prediction(decision.decide(prediction.probabilities), prediction.probabilities)
    top = _leading(weighed, table.column_names)
    what, losses = row_losses(data.y_test, prediction, metric, numbers=classes is None)
    typed = read_typed(where, table)
    report({"slices": slices_of(typed, top[:_SLICED], what, losses)})
    where_read = test if places is None else places[test]
    worst = worst_rows(table, top[:_WORST_SHOWN], data.y_test, prediction, classes, where_read)
    report({"worst": {"columns": top[:_WORST_SHOWN], "rows": worst}})
    rare = None if classes is None or len(classes) != 2 else rarer_class(data.y_test)
    report({"effects": effects_of(model, data.X_test, sources, typed, top[:_DRAWN], classes, rare, seed)})
    rows = _some(len(data.y_train), _MOST_TRAINING_ROWS, rng)
    numbers = read_rows(where, FINAL)[0][rows]
    scheme = "auto" if times is None else "time"
    if groups is not None:
        scheme = "grouped"
    curve, failure = curve_where_possible(
        candidate.build(seed),
        data.X_train[rows],
        data.y_train[rows],
        scoring=measure.scoring,
        scheme=scheme,
        groups=None if groups is None else groups[numbers],
        time=None if times is None else times[numbers],
        n_splits=_SPLITS,
        random_state=seed,
    )
    if curve is not None:
        told = {"trend": trend(curve, measure, _SPLITS), "rows": len(data.y_train)}
        report({"learning_curve": _as_measured(curve.to_dict(), measure) | told})
    if failure is not None:
        begins = "has no points" if curve is None else f"begins at {curve.values[0]} rows"
        reason = failure.rsplit("row(s): ", 1)[-1].split(". ")[0].removesuffix(".")
        report({"note": f"The learning curve of {candidate.name} {begins}: a fit to fewer fails ({reason})."})


def curve_where_possible(model: Any, X: Any, y: NDArray[Any], **settings: Any) -> tuple[Curve | None, str | None]:
    """Return the learning curve from the least share of the rows that the model can be fitted to, and why not below.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable import QuadraticDiscriminantAnalysis
    >>> from learnable.evaluation.comparison.explain import curve_where_possible
    >>> X = np.random.default_rng(0).normal(size=(60, 6))
    >>> curve, failure = curve_where_possible(QuadraticDiscriminantAnalysis(), X, np.arange(60) % 2, n_splits=3)
    >>> curve.values[0], "training rows" in failure
    (22, True)
    """
    failure = None
    for first in range(len(_SHARES)):
        try:
            return learning_curve(model, X, y, _SHARES[first:], **settings), failure
        except LearnableError as error:
            failure = str(error)
    return None, failure


def trend(curve: Curve, measure: Measure, n_splits: int) -> dict[str, Any] | None:
    """Return what twice as many rows bring at the end of a learning curve, and whether that is more than noise.

    Each fold's score is regressed on the logarithm of the size over the last three sizes; the slopes of the folds have
    the corrected interval. "rising" is a slope above zero, "falling" one below, "flat" one within the measure's margin,
    and "unknown" what the folds cannot tell. Greater is better here, whatever the measure.
    """
    sizes = np.array(curve.values[-_LAST_SIZES:], dtype=float)
    scores = curve.test_scores[-_LAST_SIZES:]
    if len(sizes) < _LAST_SIZES or not np.isfinite(scores).all():
        return None
    steps = np.log2(sizes) - np.log2(sizes).mean()
    slopes = steps @ scores / (steps @ steps)
    margin = measure.margin(float(abs(scores[-1].mean()) if not measure.greater_is_better else scores[-1].mean()))
    found = verdict_on(slopes, n_splits - 1, 1, margin)
    falls = verdict_on(-slopes, n_splits - 1, 1, margin).word == "worse"
    words = {"worse": "rising", "equal": "flat"}
    word = "falling" if falls else words.get(found.word, "unknown")
    told = {"per_doubling": found.difference, "low": found.low, "high": found.high, "margin": margin, "word": word}
    return dict(plain(told))


def importances(
    model: Any, X: Any, y: NDArray[Any], sources: list[str], measure: Measure, seed: int
) -> list[dict[str, Any]]:
    """Return how much score is lost when all features of one column of the table are shuffled together."""
    groups: dict[str, list[int]] = {}
    for position, source in enumerate(sources):
        groups.setdefault(source, []).append(position)
    if len(groups) > _MOST_COLUMNS:
        groups = _weightiest(groups, model, X)
    found = permutation_importance(
        model, X, y, scoring=measure.scoring, n_repeats=_REPEATS, groups=groups, random_state=seed
    )
    shown: list[dict[str, Any]] = plain(found.to_dict()["importances"])
    return shown[:_SHOWN_COLUMNS]


def _leading(weighed: list[dict[str, Any]], columns: list[str]) -> list[str]:
    """Return the columns that matter to the score, the most important first."""
    known = [line for line in weighed if line["name"] in columns and (line["value"] or 0.0) > 0]
    return [line["name"] for line in sorted(known, key=lambda line: -line["value"])]


def _weightiest(groups: dict[str, list[int]], model: Any, X: Any) -> dict[str, list[int]]:
    """Return the columns with the largest coefficients, or the first ones of a model that has none."""
    coef = np.abs(np.atleast_2d(getattr(model, "coef_", np.zeros((1, X.shape[1])))))
    weight = coef.max(axis=0) if coef.shape[1] == X.shape[1] else np.zeros(X.shape[1])
    order = sorted(groups, key=lambda name: -float(weight[groups[name]].max()))
    return {name: groups[name] for name in order[:_MOST_COLUMNS]}


def _some(n: int, most: int, rng: np.random.Generator) -> NDArray[np.int64]:
    return np.sort(rng.permutation(n)[:most])


def _as_measured(curve: dict[str, Any], measure: Measure) -> dict[str, Any]:
    """Return a curve in the measure's own units: scikit-learn turns errors around, so that greater is better."""
    found = {key: curve[key] for key in ("train", "test", "low", "high")}
    if not measure.greater_is_better:
        found = {key: [None if v is None else -v for v in values] for key, values in found.items()}
        found["low"], found["high"] = found["high"], found["low"]
    for end in ("low", "high"):  # no score is beyond its best, whatever a t-interval says
        found[end] = [None if v is None else min(max(v, measure.low), measure.high) for v in found[end]]
    result: dict[str, Any] = plain({"sizes": curve["values"], **found})
    return result
