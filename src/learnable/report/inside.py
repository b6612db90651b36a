"""How a model comes to its predictions and where it fails: effects of columns, parts of the rows, worst rows."""

from __future__ import annotations

from typing import Any, Final

from ..core.errors import DataError
from ..plots import line_with_band, scale_axis, whisker
from ..plots.axes import extent
from ..plots.markup import Markup, isolated, join
from .drawn import Effects, Figure, Place
from .numbers import Numbers, Style, decimals_for, is_number
from .tables import Grid, cell, dicts, is_numeral, texts
from .words import name

_MOST_ROWS: Final = 40
_SIGNS: Final = {
    "rises": "As the column grows, it rises.",
    "falls": "As the column grows, it falls.",
    "rises and falls": "It rises and falls.",
    "hardly changes": "It hardly changes.",
}
_CALIBRATION: Final = {
    "calibrated": "Nothing speaks against taking the probabilities at their word",
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
