"""Why a model predicts what it predicts, and what more rows would do: importances and a learning curve, as a job."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ...core.errors import LearnableError
from ..estimates.curves import Curve, learning_curve
from ..estimates.intervals import score_interval, t_interval, verdict_on
from .candidates import Candidate, wants_dense
from .glance import show_cell
from .importances import importances
from .measures import Decision, Measure, Prediction, predict_rows, ranking_measure, rarer_class
from .record import plain
from .warm import get_ready
from .workspace import FINAL, Report, read_features, read_names, read_rows, read_split, read_typed, take_fitted

_MOST_ROWS: Final = 3000
_MOST_TRAINING_ROWS: Final = 10_000
_MOST_NUMBERS: Final = 2**24  # of a shuffled copy of the rows
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


def _leading(weighed: list[dict[str, Any]], columns: list[str]) -> list[str]:
    """Return the columns that matter to the score, the most important first."""
    known = [line for line in weighed if line["name"] in columns and (line["value"] or 0.0) > 0]
    return [line["name"] for line in sorted(known, key=lambda line: -line["value"])]


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


# --------------------------------------------------------------------------------------------------------------------
# What a column does to the predictions of a model: partial dependence, for any model.
#
# For each of a few values of a column, every row of a sample is given that value and predicted; the mean is drawn
# over the values. The rows of a table are encoded, so a value is given by copying the encoded numbers of a row that
# has it.
#
# Reference: J. Friedman, Greedy function approximation: a gradient boosting machine, Annals of Statistics 29, 2001,
# section 8.2.


Array = NDArray[np.float64]

_MOST_EFFECT_ROWS: Final = 300
_MOST_EFFECT_NUMBERS: Final = 2**22  # of a sample, as a dense array
_POINTS: Final = 12
_LEVELS: Final = 10
_DAY: Final = 86_400_000_000  # microseconds
_FLAT: Final = 0.01  # share of the spread of all predictions below which an effect hardly changes them
_ONE_WAY: Final = 0.1  # share of the steps against the main direction that a rise or fall may have


def effects_of(
    model: Any,
    X: Any,
    sources: Sequence[str],
    table: Any,
    columns: Sequence[str],
    classes: Sequence[str] | None,
    positive: int | None,
    seed: int,
) -> list[dict[str, Any]]:
    """Return the partial dependence of predictions on some columns.

    Parameters
    ----------
    model : estimator
        Fitted to encoded rows.
    X : (n, d) array or sparse array
        Encoded rows.
    sources : d names
        The column of the table that each encoded number comes from.
    table : pyarrow.Table
        The same rows before they were encoded.
    columns : sequence of str
        Whose effect is wanted.
    classes : sequence of str or None
        The classes; None for numbers.
    positive : int or None
        The class whose probability is drawn; None for the one that changes most.
    seed : int
        Which rows are in the sample.

    Returns
    -------
    list of dict
        "name", "kind" ("number", "ordered" or "level"), "points" (numbers, or labels), "values" (mean predictions),
        "of" (a class or None) and "sign".
    """
    most = max(20, min(_MOST_EFFECT_ROWS, _MOST_EFFECT_NUMBERS // max(1, X.shape[1])))
    rows = np.sort(np.random.default_rng(seed).permutation(X.shape[0])[:most])
    sample = _dense(X[rows])
    spread = _spread(model, sample, classes)
    found = []
    for name in columns:
        block = [position for position, source in enumerate(sources) if source == name]
        kind, points, donors = grid(table[name])
        if not block or len(points) < 2:
            continue
        given = _dense(X[donors])[:, block]
        means = []
        for numbers in given:
            changed = sample.copy()
            changed[:, block] = numbers
            means.append(_mean(model, changed, classes))
        table_of_means = np.array(means)  # (points, classes or 1)
        which = _class_drawn(table_of_means, classes, positive)
        values = table_of_means[:, which or 0]
        sign = None if kind == "level" else direction(values, float(spread[which or 0]))
        of = None if classes is None or which is None else classes[which]
        found.append({"name": name, "kind": kind, "points": points, "values": values, "of": of, "sign": sign})
    result: list[dict[str, Any]] = plain(found)
    return result


def grid(column: Any) -> tuple[str, list[Any], list[int]]:
    """Return the kind of a column, values to try, and for each a row that has it.

    Examples
    --------
    >>> import pyarrow as pa
    >>> grid(pa.chunked_array([["b", "a", "b", None]]))
    ('level', ['b', 'a'], [0, 1])
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type
    numeric = pa.types.is_integer(kind) or pa.types.is_floating(kind)
    if not numeric and not _is_date(kind):
        return ("level", *_frequent(column))
    numbers = column if numeric else pc.cast(pc.cast(column, pa.timestamp("us")), pa.int64())
    values = np.asarray(pc.cast(numbers, pa.float64(), safe=False).to_numpy(), dtype=np.float64)
    known = np.flatnonzero(np.isfinite(values))
    if not known.size:
        return "number", [], []
    order = known[np.argsort(values[known], kind="stable")]
    places = np.unique(np.linspace(0.02, 0.98, _POINTS) * (len(order) - 1)).round().astype(int)
    donors = [int(order[place]) for place in places]
    donors = [row for k, row in enumerate(donors) if k == 0 or values[row] > values[donors[k - 1]]]
    if numeric:
        return "number", [float(values[row]) for row in donors], donors
    whole_days = not np.any(values[known] % _DAY)
    shown = [show_cell(column[row].as_py()) or "" for row in donors]
    return "ordered", [text.removesuffix(" 00:00:00") if whole_days else text for text in shown], donors


def direction(values: Array, spread: float) -> str:
    """Say which way predictions go as a column grows.

    Examples
    --------
    >>> [direction(np.array(v), 1.0) for v in ([0, 1, 2.0], [2, 1, 0.0], [0, 2, 0.0], [0, 1e-4, 0])]
    ['rises', 'falls', 'rises and falls', 'hardly changes']
    """
    if np.ptp(values) <= _FLAT * spread:
        return "hardly changes"
    steps = np.diff(values)
    up = float(steps[steps > 0].sum())
    down = float(-steps[steps < 0].sum())
    if min(up, down) <= _ONE_WAY * max(up, down):
        return "rises" if up > down else "falls"
    return "rises and falls"


def _is_date(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_date(kind) or pa.types.is_timestamp(kind))


def _frequent(column: Any) -> tuple[list[str], list[int]]:
    """Return the most frequent levels, and the first row of each; none of free text, where every row has its own."""
    labels = [None if value is None else str(value) for value in column.to_pylist()]
    first: dict[str, int] = {}
    counts: dict[str, int] = {}
    for row, label in enumerate(labels):
        if label is not None:
            first.setdefault(label, row)
            counts[label] = counts.get(label, 0) + 1
    if max(counts.values(), default=0) < 2:
        return [], []
    levels = sorted(counts, key=lambda label: -counts[label])[:_LEVELS]
    return [show_cell(level) or "" for level in levels], [first[level] for level in levels]


def _mean(model: Any, X: Array, classes: Sequence[str] | None) -> Array:
    """Return the mean prediction, or the mean probability of every class."""
    return np.asarray(_predictions(model, X, classes).mean(axis=0))


def _predictions(model: Any, X: Array, classes: Sequence[str] | None) -> Array:
    found = predict_rows(model, X, None if classes is None else len(classes))
    if classes is None:
        return np.asarray(found.values, dtype=np.float64)[:, None]
    if found.probabilities is not None:
        return np.asarray(found.probabilities)
    return np.asarray(found.values[:, None] == np.arange(len(classes)), dtype=np.float64)


def _spread(model: Any, X: Array, classes: Sequence[str] | None) -> Array:
    return np.asarray(np.ptp(_predictions(model, X, classes), axis=0))


def _class_drawn(means: Array, classes: Sequence[str] | None, positive: int | None) -> int | None:
    if classes is None:
        return None
    return int(np.argmax(np.ptp(means, axis=0))) if positive is None else positive


def _dense(X: Any) -> Array:
    return np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)


# --------------------------------------------------------------------------------------------------------------------
# Where a model is worse than elsewhere: its loss in parts of the hold-out, and the rows it gets most wrong.
#
# A part is a level of a column of few levels, or a quarter of the values of a numeric one. Whether it differs from
# the rest is tested (Welch's t, Fisher's exact test for shares) at 0.05 over the number of parts looked at, so that
# of many equal parts one is rarely called worse.


_FEWEST: Final = 10  # rows of a part
_MOST_LEVELS: Final = 12
_QUARTERS: Final = 4
_LEVEL: Final = 0.95
_WORST: Final = 8


def row_losses(y: NDArray[Any], prediction: Prediction, metric: str, *, numbers: bool) -> tuple[str, Array]:
    """Return what a row costs, and its name: the absolute error, log loss, or one for a wrong class."""
    if numbers:
        return "mean absolute error", np.abs(y - prediction.values)
    if metric == "log_loss" and prediction.probabilities is not None:
        p = prediction.probabilities[np.arange(len(y)), y.astype(np.intp)]
        return "log loss", -np.log(np.clip(p, 1e-15, 1.0))
    return "share of wrong classes", (y != prediction.values).astype(np.float64)


def slices_of(table: Any, columns: Sequence[str], what: str, losses: Array) -> dict[str, Any] | None:
    """Return the mean loss of parts of the rows, with intervals.

    Parameters
    ----------
    table : pyarrow.Table
        The rows before they were encoded.
    columns : sequence of str
        The columns to cut by.
    what : str
        The name of the loss.
    losses : (n,) array
        Of each row.

    Returns
    -------
    dict or None
        "what", the "overall" mean, and "parts": "column", "label", "rows", "value", "low", "high" and "verdict":
        "worse", "better" or "like the rest". None if no column can be cut.

    Examples
    --------
    >>> import numpy as np
    >>> import pyarrow as pa
    >>> town = ["a"] * 50 + ["b"] * 50
    >>> losses = np.r_[np.linspace(0, 1, 50), np.linspace(4, 5, 50)]
    >>> found = slices_of(pa.table({"town": town}), ["town"], "mean absolute error", losses)
    >>> [(part["label"], part["verdict"]) for part in found["parts"]]
    [('a', 'better'), ('b', 'worse')]
    """
    parts = [(name, label, mask) for name in columns for label, mask in cuts(table[name])]
    parts = [part for part in parts if _FEWEST <= part[2].sum() <= len(losses) - _FEWEST]
    if not parts:
        return None
    shares = bool(np.isin(losses, (0.0, 1.0)).all())
    found = []
    for name, label, mask in parts:
        inside = losses[mask]
        outside = losses[~mask]
        interval = score_interval(inside, level=_LEVEL) if shares else t_interval(inside, _LEVEL)
        p = _p_value(inside, outside, shares)
        word = "like the rest"
        if p * len(parts) < 1.0 - _LEVEL:
            word = "worse" if inside.mean() > outside.mean() else "better"
        low = max(0.0, interval.low)
        found.append(
            {
                "column": name,
                "label": label,
                "rows": int(mask.sum()),
                "value": float(inside.mean()),
                "low": low,
                "high": interval.high,
                "verdict": word,
            }
        )
    result: dict[str, Any] = plain({"what": what, "overall": float(losses.mean()), "level": _LEVEL, "parts": found})
    return result


def cuts(column: Any) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    """Yield parts of a column: each of few levels, or quarters of its numbers; and its gaps."""
    import pyarrow as pa
    import pyarrow.compute as pc

    missing = np.asarray(pc.is_null(column, nan_is_null=True).to_numpy(), dtype=bool)
    kind = column.type
    if pa.types.is_dictionary(kind):
        column = pc.cast(column, kind.value_type)
        kind = kind.value_type
    few = pc.count_distinct(column).as_py() <= _MOST_LEVELS
    if pa.types.is_floating(kind) or (pa.types.is_integer(kind) and not few):
        values = np.asarray(pc.cast(column, pa.float64(), safe=False).to_numpy(), dtype=np.float64)
        yield from _quarters(values, ~missing)
    elif few and not pa.types.is_temporal(kind):
        labels = np.array([show_cell(value) or "" for value in column.to_pylist()], dtype=object)
        known = sorted(set(labels[~missing].tolist()), key=lambda label: (len(label), label))
        for label in known if len(known) > 1 else []:
            yield str(label), np.asarray((labels == label) & ~missing)
    if missing.any():
        yield "missing", missing


def _quarters(values: Array, known: NDArray[np.bool_]) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    if not known.any():
        return
    ends = np.unique(np.quantile(values[known], np.linspace(0.0, 1.0, _QUARTERS + 1)))
    for k in range(len(ends) - 1):
        above = values >= ends[k] if k == 0 else values > ends[k]
        sign = "" if k == 0 else "over "
        yield f"{sign}{ends[k]:.4g} to {ends[k + 1]:.4g}", known & above & (values <= ends[k + 1])


def _p_value(inside: Array, outside: Array, shares: bool) -> float:
    """Return how likely so large a difference is between equal parts; one where it cannot be told."""
    from scipy import stats

    if shares:
        a = int(inside.sum())
        b = int(outside.sum())
        return float(stats.fisher_exact([[a, len(inside) - a], [b, len(outside) - b]])[1])
    if np.ptp(inside) == 0 and np.ptp(outside) == 0:
        return 1.0
    p = float(stats.ttest_ind(inside, outside, equal_var=False).pvalue)
    return 1.0 if math.isnan(p) else p


def worst_rows(
    table: Any,
    columns: Sequence[str],
    y: NDArray[Any],
    prediction: Prediction,
    classes: Sequence[str] | None,
    places: NDArray[np.int64],
) -> list[dict[str, Any]]:
    """Return the rows with the largest errors, or with the least probability of the class that they are of.

    Parameters
    ----------
    table : pyarrow.Table
        The rows before they were encoded.
    columns : sequence of str
        What is shown of them.
    y : (n,) array
        Targets, or codes of classes.
    prediction : Prediction
        What the model said.
    classes : sequence of str or None
        The classes.
    places : (n,) array of int
        Where the rows stand in the table as it was read, from 0; they are told from 1.
    """
    if classes is None:
        wrong = np.abs(y - prediction.values)
    elif prediction.probabilities is not None:
        wrong = 1.0 - prediction.probabilities[np.arange(len(y)), y.astype(np.intp)]
    else:
        wrong = (y != prediction.values).astype(np.float64)
    bad = wrong > 0 if classes is None else (wrong >= 0.5) | (y != prediction.values)
    order = [int(row) for row in np.argsort(-wrong, kind="stable") if bad[row]][:_WORST]
    cells = table.select(list(columns)).take(np.array(order, dtype=np.int64))
    shown = [[show_cell(value) for value in column.to_pylist()] for column in cells.columns]
    found = []
    for k, row in enumerate(order):
        said: dict[str, Any] = {"row": int(places[row]) + 1, "values": [column[k] for column in shown]}
        if classes is None:
            said |= {"actual": float(y[row]), "predicted": float(prediction.values[row])}
            said["error"] = said["actual"] - said["predicted"]
        else:
            said |= {"actual": classes[int(y[row])], "predicted": classes[int(prediction.values[row])]}
            said["probability"] = None if prediction.probabilities is None else 1.0 - float(wrong[row])
        found.append(said)
    result: list[dict[str, Any]] = plain(found)
    return result
