"""What is drawn for one model: residuals or ROC, calibration, confusion, coefficients, importances, learning curve."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from ..core.errors import DataError
from ..plots import (
    confusion_matrix,
    histogram,
    learning_curve,
    line_with_band,
    reliability_diagram,
    residual_plot,
    roc_curves,
    scale_axis,
    scatter,
    whisker,
)
from ..plots.axes import extent
from ..plots.axes import numbers as arrays
from ..plots.markup import Markup, isolated, join
from ..plots.points import row_shares
from .advice import read_curve
from .numbers import Numbers, Style, decimals_for, is_number
from .tables import Effects, Figure, Grid, Place, cell, dicts, is_numeral, texts
from .words import interval, name

_MOST_EFFECTS: Final = 20
_MOST_CURVES: Final = 6
#: Up to here a confusion matrix is a table of numbers; beyond, a map and its worst confusions.
_TABLE_CLASSES: Final = 30
_WORST: Final = 10


def figures(numbers: Numbers, key: str, metric: str) -> list[Figure]:
    """Return the figures of the model whose details stand at `key`, in the order in which they are read."""
    place: Place = ("details", key)
    details = numbers.at(*place) or {}
    drawn: list[Figure] = []
    parts: tuple[tuple[str, Callable[[Numbers, Place, Any, str], list[Figure]]], ...] = (
        ("residuals", _residuals),
        ("roc", _roc),
        ("calibration", _calibration),
        ("confusion", _confusion),
        ("per_class", _per_class),
        ("thresholds", thresholds),
        ("coefficients", _coefficients),
        ("importances", _importances),
        ("effects", column_effects),
        ("slices", slices),
        ("worst", worst_rows),
        ("learning_curve", _learning_curve),
    )
    for part, draw in parts:
        if details.get(part):
            try:
                drawn += draw(numbers, (*place, part), details[part], metric)
            except DataError as error:  # one part of a record that cannot be drawn must not cost the report
                title = part.replace("_", " ").capitalize()
                drawn.append(Figure(title, join([f"This part of the record cannot be drawn: {error}"])))
    return sorted(drawn, key=lambda figure: figure.wide)  # small ones first, side by side


def _residuals(numbers: Numbers, place: Place, part: Any, metric: str) -> list[Figure]:
    predicted, actual = arrays("residuals", predicted=part.get("predicted") or [], actual=part.get("actual") or [])
    known = np.isfinite(predicted) & np.isfinite(actual)
    if not known.any():
        return []
    target = isolated(numbers.at("data", "target") or "target", 30)
    agreement = scatter(
        predicted, actual, title=f"Actual {target} against the prediction", x_label=f"predicted {target}",
        y_label="actual", reference="diagonal",
    )  # fmt: skip
    spread = residual_plot(predicted, actual, title="Residuals", x_label=f"predicted {target}")
    counts, edges = np.histogram((actual - predicted)[known], bins=min(30, max(5, int(known.sum() ** 0.5))))
    shape = histogram(edges, counts, title="Distribution of the residuals", x_label="actual − predicted", zero=True)
    right = join(["Each point is a row; on the line the prediction is right."])
    return [
        Figure("Actual against predicted", right, agreement),
        Figure("Residuals", join(["A pattern, a bend or a funnel, is something the model has not learned."]), spread),
        Figure("Size of the errors", join(["Right of zero the prediction was too low, left of it too high."]), shape),
    ]


def _roc(numbers: Numbers, place: Place, part: Any, metric: str) -> list[Figure]:
    curves = [(str(c.get("label")), c.get("fpr") or [], c.get("tpr") or []) for c in part]
    areas = [c.get("auc") if is_number(c.get("auc")) else np.inf for c in part]
    worst = int(np.argmin(areas))
    drawing = roc_curves(curves, title="ROC curve", highlight=worst if len(curves) > 3 else None)
    order = np.argsort(areas, kind="stable")
    lines = [
        join([name(curves[k][0], 40), ": AUC ", numbers.show(*place, int(k), "auc", decimals=3)])
        for k in order[:_MOST_CURVES]
    ]
    text = "Each point is a threshold: how many positives it finds, at the price of how many false alarms. "
    text += "The area under the curve is the chance that a positive row scores above a negative one."
    if len(curves) > 3:
        text += " The class that is hardest to tell apart is drawn strong; the lowest areas are listed."
    title = "ROC curve" if len(curves) == 1 else "ROC curves, each class against the rest"
    return [Figure(title, join([text]), drawing, notes=lines)]


def _calibration(numbers: Numbers, place: Place, part: Any, metric: str) -> list[Figure]:
    drawing = reliability_diagram(
        part.get("mean_predicted") or [], part.get("observed") or [], part.get("count"), title="Reliability diagram"
    )
    text = "Of the rows that were given a probability, the share where it came true; on the line, probabilities can be "
    text += "taken at their word. Larger dots stand for more rows."
    return [Figure("Calibration", join([*calibration_words(numbers, place, part), text]), drawing)]


def _confusion(numbers: Numbers, place: Place, part: Any, metric: str) -> list[Figure]:
    labels = [str(label) for label in part.get("labels") or []]
    counts = part.get("counts") or []
    k = len(labels)
    if not k or len(counts) != k or any(len(row) != k for row in counts):
        raise DataError(f"confusion: {k} labels need as many rows and columns.")
    table = np.array([[c if is_number(c) else 0.0 for c in row] for row in counts])
    notes = _worst_confusions(numbers, place, labels, table) if k > 2 else None
    text = "Rows are actual classes, columns the predicted ones; shades are shares of the row."
    if k > _TABLE_CLASSES:
        drawing = confusion_matrix(labels, table, title=f"Confusion matrix of {k} classes")
        return [Figure("Confusion matrix", join([text]), drawing, notes=notes, wide=True)]
    shares = row_shares(table)
    cells = [
        [
            (numbers.show(*place, "counts", i, j, style="count"), f"{shares[i, j]:.2f}", i == j, not table[i, j])
            for j in range(k)
        ]
        for i in range(k)
    ]
    matrix = {"labels": [name(label, 24) for label in labels], "cells": cells, "small": k > 8}
    return [Figure("Confusion matrix", join([text]), matrix=matrix, notes=notes, wide=k > 5)]


def _per_class(numbers: Numbers, place: Place, part: Any, metric: str) -> list[Figure]:
    """Return precision, recall and F1 of every class, the classes with the lowest F1 first where there are many."""
    entries = dicts(part)
    if len(entries) > _MOST_CURVES:
        entries.sort(key=lambda item: item[1]["f1"] if is_number(item[1].get("f1")) else -1.0)
    rows = [
        [
            name(entry.get("label"), 40),
            numbers.show(*place, k, "rows", style="count"),
            *(numbers.show(*place, k, key, decimals=3) for key in ("precision", "recall", "f1")),
        ]
        for k, entry in entries[:_TABLE_CLASSES]
    ]
    if not rows:
        return []
    text = "Precision: the share of rows called so that are so. Recall: the share of rows that are so that are found. "
    text += "F1 is their harmonic mean."
    lines = []
    decided = numbers.at("winner", "decision")
    if isinstance(decided, dict) and place[1] == numbers.at("winner", "name") and is_number(decided.get("threshold")):
        lines.append(
            join([name(decided.get("positive"), 40), " is predicted from a probability of ",
                  numbers.show("winner", "decision", "threshold", decimals=3), f" on: {decided.get('criterion')}."])
        )  # fmt: skip
    heads = [("Class", False), ("Rows", True), ("Precision", True), ("Recall", True), ("F1", True)]
    return [Figure("Precision and recall by class", join([text]), table=Grid(heads, rows), notes=lines, wide=True)]


def _worst_confusions(numbers: Numbers, place: Place, labels: list[str], table: Any) -> list[Markup]:
    wrong = table.copy()
    np.fill_diagonal(wrong, 0)
    order = np.argsort(-wrong, axis=None, kind="stable")[:_WORST]
    pairs = [divmod(int(cell), len(labels)) for cell in order]
    return [
        join([name(labels[i], 30), " taken for ", name(labels[j], 30), ": ",
              numbers.show(*place, "counts", i, j, style="count")])
        for i, j in pairs if wrong[i, j] > 0
    ]  # fmt: skip


def _coefficients(numbers: Numbers, place: Place, part: Any, metric: str) -> list[Figure]:
    what = next((entry["of"] for entry in part if isinstance(entry.get("of"), str)), "prediction")
    # A comparison encodes the table and standardises numbers; a model that came alone was fitted as it was.
    encoded = numbers.at("subject") != "model"
    unit = "unit of the encoded column (a standard deviation of a number)" if encoded else "unit of the column"
    return _effects(numbers, place, part, "Coefficients", f"The change of the {what} for one {unit}, all else equal")


def _importances(numbers: Numbers, place: Place, part: Any, metric: str) -> list[Figure]:
    text = f"How much the score ({metric}) falls when the column is shuffled"
    return _effects(numbers, place, part, "Importance of columns", text)


def _effects(numbers: Numbers, place: Place, part: Any, title: str, text: str) -> list[Figure]:
    usable = [k for k, entry in enumerate(part) if is_number(entry.get("value"))]
    order = sorted(usable, key=lambda k: -abs(part[k]["value"]))[:_MOST_EFFECTS]
    if not order:
        return []
    ends = [part[k][key] for k in order for key in ("low", "value", "high") if is_number(part[k].get(key))]
    domain = extent([*ends, 0.0], pad=0.05)
    halves = [
        (part[k]["high"] - part[k]["low"]) / 2
        for k in order
        if is_number(part[k].get("low")) and is_number(part[k].get("high"))
    ]
    decimals = decimals_for(halves) if halves else None
    lines = []
    for k in order:
        entry = part[k]
        drawing = whisker(
            entry["value"], entry.get("low"), entry.get("high"), domain=domain, marks=[0.0],
            title=f"{title}: {isolated(entry.get('name'), 60)}",
        )  # fmt: skip
        at = (*place, k)
        lines.append((name(entry.get("name"), 60), drawing, numbers.show(*at, "value", decimals=decimals),
                      interval(numbers, at, decimals)))  # fmt: skip
    intervals = any(line[3] is not None for line in lines)
    pieces: list[Any] = [text, "; lines are intervals." if intervals else "."]
    reason = next((entry["reason"] for entry in part if isinstance(entry.get("reason"), str)), None)
    if reason is not None and not intervals:
        pieces += [" No intervals: ", reason]
    if len(part) > len(order):
        pieces += [" The largest of ", numbers.length(*place), " are shown."]
    axis = scale_axis(domain, title=f"Scale of {title.lower()}", most=4)
    return [Figure(title, join(pieces), effects=Effects(lines, axis, intervals), wide=True)]


def _learning_curve(numbers: Numbers, place: Place, part: Any, metric: str) -> list[Figure]:
    drawing = learning_curve(
        part.get("sizes") or [], part.get("train") or [], part.get("test") or [], part.get("low"), part.get("high"),
        title="Learning curve", y_label=metric,
    )  # fmt: skip
    return [Figure("Learning curve", _about_curve(numbers, place, part), drawing)]


def _about_curve(numbers: Numbers, place: Place, part: Any) -> Markup:
    """Return what the end of a learning curve says about more rows."""
    trend = part.get("trend") or {}
    if read_curve(part) is None:
        unknown = trend.get("word") == "unknown"
        more = " Whether more rows help cannot be told from these folds." if unknown else ""
        return join(["The score as the training set grows.", more])
    at = (*place, "trend")
    ends = ["(", numbers.show(*at, "low", decimals=4), " to ", numbers.show(*at, "high", decimals=4), ")"]
    verb = "Still rising: twice as many rows improved the score by "
    if trend.get("word") != "rising":
        verb = "Flat at its end: twice as many rows changed the score by "
    return join([verb, numbers.show(*at, "per_doubling", decimals=4), " ", *ends, "."])


def correlation_figures(numbers: Numbers, part: dict[str, Any]) -> list[Figure]:
    """Return what the numbers of the table have to do with the target, and pairs of columns that say the same."""
    place: Place = ("data", "correlations")
    entries = [entry for _, entry in dicts(part.get("with_target"))]
    found: list[Figure] = []
    if entries and len(entries) == len(part["with_target"]):
        of = part.get("of")
        target = isolated(numbers.at("data", "target") or "the target", 40)
        toward = f" (towards {isolated(of, 40)})" if of is not None else ""
        text = f"How closely a column moves with {target}{toward} in a straight line, each column alone"
        found += _effects(numbers, (*place, "with_target"), entries, "Correlation with the target", text)
    rows = [
        [name(entry.get("a"), 40), name(entry.get("b"), 40), numbers.show(*place, "pairs", k, "value", decimals=3)]
        for k, entry in dicts(part.get("pairs"))
    ]
    if rows:
        beyond = ["beyond ", numbers.show(*place, "beyond")] if numbers.known(*place, "beyond") else ["near one"]
        text = " say nearly the same: a model needs only one of each pair, and shares coefficients and importances "
        caption = join(["Columns with a correlation ", *beyond, text, "between them."])
        heads = [("Column", False), ("Column", False), ("Correlation", True)]
        found.append(Figure("Columns that say the same", caption, table=Grid(heads, rows), wide=True))
    return found


# --------------------------------------------------------------------------------------------------------------------
# How a model comes to its predictions and where it fails: effects of columns, parts of the rows, worst rows.


_MOST_ROWS: Final = 40
_SIGNS: Final = {
    "rises": "As the column grows, it rises.",
    "falls": "As the column grows, it falls.",
    "rises and falls": "It rises and falls.",
    "hardly changes": "It hardly changes.",
}
_CALIBRATION: Final = {
    "calibrated": "Nothing speaks against taking the probabilities at their word",
    "nearly": "The probabilities are off beyond noise, but by so little that they can be taken at their word",
    "overconfident": "The probabilities are overconfident: less comes true than they promise",
    "underconfident": "The probabilities are underconfident: more comes true than they promise",
}


def column_effects(numbers: Numbers, place: Place, part: Any, metric: str) -> list[Figure]:
    """Return the partial dependence of the predictions on each column."""
    found = []
    for k, entry in dicts(part):
        points = texts(entry.get("points"))
        values = texts(entry.get("values"))
        if len(points) != len(values) or len(values) < 2 or not all(is_number(value) for value in values):
            continue
        of = entry.get("of")
        what = join(["the probability of ", name(of, 40)]) if of is not None else join(["the prediction"])
        text = join(["The mean of ", what, " if every row had this value. ", _SIGNS.get(str(entry.get("sign")), "")])
        label = isolated(entry.get("name"), 40)
        title = f"Effect of {isolated(entry.get('name'), 60)}"
        if entry.get("kind") == "number" and all(is_number(point) for point in points):
            y_label = f"p({isolated(of, 20)})" if of is not None else "mean prediction"
            drawing = line_with_band(points, values, title=title, x_label=label, y_label=y_label)
            found.append(Figure(title, text, drawing))
        else:
            found.append(_levels(numbers, (*place, k), title, text, points, values))
    return found


def _levels(numbers: Numbers, place: Place, title: str, text: Markup, points: list[Any], values: list[float]) -> Figure:
    domain = extent(values, pad=0.08)
    step = (max(values) - min(values)) / 4
    decimals = decimals_for([step]) if step > 0 else None
    lines: list[tuple[Markup, Markup, Markup, Markup | None]] = []
    for k, (point, value) in enumerate(zip(points, values, strict=True)):
        drawing = whisker(value, domain=domain, title=f"{title}: {isolated(point, 40)}")
        lines.append((name(point, 40), drawing, numbers.show(*place, "values", k, decimals=decimals), None))
    axis = scale_axis(domain, title=f"Scale of {title}", most=3)
    return Figure(title, text, effects=Effects(lines, axis, False))


def slices(numbers: Numbers, place: Place, part: Any, metric: str) -> list[Figure]:
    """Return the loss in parts of the rows, those that are worse than the rest first."""
    if not isinstance(part, dict):
        raise DataError("slices: the part must be an object with parts.")
    entries = [(k, entry) for k, entry in dicts(part.get("parts")) if is_number(entry.get("value"))]
    columns = list(dict.fromkeys(str(entry.get("column")) for _, entry in entries))
    entries.sort(key=lambda item: (item[1].get("verdict") != "worse", columns.index(str(item[1].get("column")))))
    if not entries:
        return []
    halves = [
        (entry["high"] - entry["low"]) / 2
        for _, entry in entries
        if is_number(entry.get("low")) and is_number(entry.get("high"))
    ]
    decimals = decimals_for(halves) if halves else None
    what = str(part.get("what") or "loss")
    style: Style = "percent" if what.startswith("share") else "number"
    rows: list[list[Markup]] = []
    strong: set[int] = set()
    for k, entry in entries[:_MOST_ROWS]:
        at = (*place, "parts", k)
        word = str(entry.get("verdict") or "")
        if word == "worse":
            strong.add(len(rows))
        ends = [numbers.show(*at, end, style=style, decimals=decimals) for end in ("low", "high")]
        rows.append(
            [
                join([cell(entry.get("column")), ": ", cell(entry.get("label"))]),
                cell(word or None),
                numbers.show(*at, "value", style=style, decimals=decimals),
                join(ends, " to "),
                numbers.show(*at, "rows", style="count"),
            ]
        )
    pieces: list[Any] = [
        f"The {what} in parts of the rows; less is better, and over all rows it is ",
        numbers.show(*place, "overall", style=style, decimals=decimals),
        ". “Worse” and “better” are beyond noise, all parts taken together.",
        "" if strong else " No part looked at is worse.",
    ]
    heads = [("Rows where", False), ("Verdict", False), (what.capitalize(), True), ("Interval", True), ("Rows", True)]
    title = "Where it is worse" if strong else "Parts of the rows"
    return [Figure(title, join(pieces), table=Grid(heads, rows, frozenset(strong)), wide=True)]


def worst_rows(numbers: Numbers, place: Place, part: Any, metric: str) -> list[Figure]:
    """Return the rows that the model gets most wrong."""
    if not isinstance(part, dict):
        raise DataError("worst: the part must be an object with rows.")
    columns = texts(part.get("columns"))
    rows = []
    classes = False
    for k, entry in dicts(part.get("rows")):
        at = (*place, "rows", k)
        values = texts(entry.get("values"))
        if len(values) != len(columns):
            continue
        if is_number(entry.get("actual")) and is_number(entry.get("predicted")):
            said = [numbers.show(*at, key) for key in ("actual", "predicted", "error")]
        else:
            classes = True
            said = [cell(entry.get("actual")), cell(entry.get("predicted"))]
            said.append(numbers.show(*at, "probability", decimals=3))
        rows.append([numbers.show(*at, "row", style="plain"), *said, *(cell(value) for value in values)])
    if not rows:
        return []
    last = "Probability of the actual class" if classes else "Actual − predicted"
    heads = [("Row", True), ("Actual", not classes), ("Predicted", not classes), (last, True)]
    shown = [texts(entry.get("values")) for _, entry in dicts(part.get("rows"))]
    shown = [values for values in shown if len(values) == len(columns)]
    heads += [(str(column), all(is_numeral(values[k]) for values in shown)) for k, column in enumerate(columns)]
    text = (
        "Look at these first: they may be mistakes in the table, or something that no column tells. Rows are counted "
    )
    text += "from one, after the header."
    return [Figure("Rows with the largest errors", join([text]), table=Grid(heads, rows), wide=True)]


def thresholds(numbers: Numbers, place: Place, part: Any, metric: str) -> list[Figure]:
    """Return what other thresholds would bring, and at which cost."""
    if not isinstance(part, dict):
        raise DataError("thresholds: the part must be an object with lines.")
    used = part.get("used")
    priced = isinstance(part.get("cost"), dict)
    rows: list[list[Markup]] = []
    strong: set[int] = set()
    for k, entry in dicts(part.get("lines")):
        at = (*place, "lines", k)
        if is_number(used) and entry.get("threshold") == used:
            strong.add(len(rows))
        shown = [numbers.show(*at, "threshold", decimals=3)]
        shown += [numbers.show(*at, key, style="count") for key in ("called", "false_alarms", "missed")]
        shown += [numbers.show(*at, key, decimals=3) for key in ("precision", "recall", "f1")]
        rows.append([*shown, *([numbers.show(*at, "cost")] if priced else [])])
    if not rows:
        return []
    positive = name(part.get("positive"), 40)
    pieces: list[Any] = [
        "Rows are called ", positive, " from this probability on. The model uses ",
        numbers.show(*place, "used", decimals=3),
    ]  # fmt: skip
    criterion = part.get("criterion")
    if criterion:
        pieces += [f" ({criterion}), chosen on rows of the folds"]
    pieces.append(". ")
    if priced:
        pieces += ["A false alarm costs ", numbers.show(*place, "cost", "FP"), ", a missed one ",
                   numbers.show(*place, "cost", "FN"), "."]  # fmt: skip
    else:
        pieces.append("If the two errors cost differently, say so with --cost: the cheapest threshold is then chosen.")
    heads = [("Threshold", True), ("Called so", True), ("False alarms", True), ("Missed", True)]
    heads += [("Precision", True), ("Recall", True), ("F1", True), *([("Cost", True)] if priced else [])]
    return [Figure("Which threshold", join(pieces), table=Grid(heads, rows, frozenset(strong)), wide=True)]


def calibration_words(numbers: Numbers, place: Place, part: Any) -> list[Any]:
    """Return the verdict on the probabilities as the beginning of a caption; nothing if there is none."""
    found = part.get("verdict") if isinstance(part, dict) else None
    if not isinstance(found, dict) or found.get("word") not in _CALIBRATION:
        return []
    at = (*place, "verdict")
    pieces: list[Any] = [_CALIBRATION[found["word"]]]
    if numbers.known(*at, "kept") and numbers.known(*at, "promised"):
        pieces += [
            " (what happened had a mean probability of ", numbers.show(*at, "kept", decimals=3), "; ",
            numbers.show(*at, "promised", decimals=3), " was to be expected",
        ]  # fmt: skip
        if numbers.known(*at, "p_value"):
            pieces += [", p = ", numbers.show(*at, "p_value", decimals=3)]
        pieces.append(")")
    return [*pieces, ". "]
