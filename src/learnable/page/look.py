"""Questions about a finished comparison, answered by `evaluation` and drawn by `report`.

`run` is the folder of the run, `path` that of its table; both are the server's own words.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from ..core.errors import DataError, ParameterError
from .others import ASIDE, MODEL, about_other, askable, folder_of, read_record
from .shelf import load_model, load_table, typed_row

_OTHERS: Final = 50  # rows that a row's explanation compares with
_ORDERS: Final = 32
_EXPLAINED: Final = 60  # columns with a share of their own
_EFFECT_ROWS: Final = 2000


def look_summary(run: str, model: str | None = None) -> dict[str, Any]:
    """Return what the page says of a comparison before anything is asked: the verdict, the winner, what is proven.

    Of another `model` than the winner, which must have been fitted again, what is known of that one.
    """
    from ..report.numbers import Numbers
    from ..report.sections import score_decimals
    from ..report.words import certificate_sentence, standing, verdict

    record = read_record(run)
    numbers = Numbers(record)
    winner = record["winner"] or {}
    folder = folder_of(run, model)
    other = about_other(run, model)
    name = winner.get("name") if folder == Path(run) else model
    details = (record.get("details") or {}).get(name) or {}
    sentences = [_plain_text(sentence) for sentence in verdict(numbers, standing(record), score_decimals(record))]
    claim = certificate_sentence(numbers, "details", str(name), "certificate")
    data = record["data"]
    if folder != Path(run):
        if other is None:
            raise DataError(f"{name} has to be fitted again before it can be asked.")
        sentences = [_about_fitted_again(record, other), *sentences[:1]]
        winner = {}
        line = [row["name"] for row in record["leaderboard"]].index(name)
        claim = certificate_sentence(numbers, "leaderboard", line, "certificate")
    return {
        "verdict": sentences,
        "status": record["status"],
        "asked": name,
        "winner": (record["winner"] or {}).get("name"),
        "models": askable(record),
        "task": data["task"],
        "target": data["target"],
        "classes": data["classes"],
        "metric": record["protocol"]["metric"],
        "holdout_rows": record["protocol"]["holdout_rows"],
        "optimism": winner.get("optimism_note"),
        "claim": None if claim is None else _plain_text(claim),
        "certificate": details.get("certificate"),
        "proven": (winner.get("holdout") or {}).get("proven"),
        "intervals": winner.get("intervals"),
        "decision": winner.get("decision"),
        "advice": record["advice"],
        "columns": learned_columns(record, name),
        "importances": details.get("importances") or [],
        "aside": (folder / ASIDE).is_file(),
        "model": (folder / MODEL).is_file(),
        "figures": _figures(numbers, name),
    }


def _about_fitted_again(record: dict[str, Any], other: dict[str, Any]) -> str:
    """Say what a model is that was not kept, and how it does on the rows set aside."""
    from ..report.numbers import text_of

    found = other["holdout"]
    label = record["protocol"]["metric"]["label"]
    decimals = 4
    ends = ""
    if found["low"] is not None and found["high"] is not None:
        ends = f" ({text_of(found['low'], decimals=decimals)} to {text_of(found['high'], decimals=decimals)})"
    return (
        f"{other['name']} was fitted again to the {other['rows']:,} training rows, to be asked: on the "
        f"{record['protocol']['holdout_rows']:,} rows set aside it reaches {label} "
        f"{text_of(found['score'], decimals=decimals)}{ends}. It is not the model that is kept."
    )


def learned_columns(record: dict[str, Any], model: str | None = None) -> list[str]:
    """Return the columns learned from, those that matter most to a model first; if that is not known, to the winner."""
    known = record.get("details") or {}
    details = known.get(model) or known.get((record["winner"] or {}).get("name")) or {}
    weight = {entry["name"]: entry["value"] for entry in details.get("importances") or []}
    learned = [c["name"] for c in record["data"]["profile"] if c["role"] == "feature" or c.get("learned")]
    return sorted(learned, key=lambda column: -(weight.get(column) or 0.0))


def _figures(numbers: Any, name: str | None) -> list[dict[str, Any]]:
    """Return the report's own drawings of the winner."""
    from ..report.figures import figures

    label = str((numbers.at("protocol", "metric") or {}).get("label") or "score")
    if name is None or not (numbers.at("details") or {}).get(name):
        return []
    found = []
    for figure in figures(numbers, name, label):
        if figure.svg is not None:
            notes = [_plain_text(note) for note in figure.notes or []]
            found.append(
                {"title": figure.title, "caption": _plain_text(figure.caption), "svg": figure.svg, "notes": notes}
            )
    return found


def _plain_text(markup: Any) -> str:
    """Return markup of the report as text."""
    import html
    import re

    return html.unescape(re.sub(r"<[^>]*>", "", str(markup)))


def look_threshold(run: str, cost: dict[str, float] | None = None, model: str | None = None) -> dict[str, Any]:
    """Return what every threshold brings on the rows set aside, with the confusion at each."""
    from ..evaluation.comparison.aside import threshold_lines

    return threshold_lines(_aside(run, model), cost)


def look_confusion(run: str, model: str | None = None) -> dict[str, Any] | None:
    """Return the confusion matrix of the rows set aside."""
    from ..evaluation.comparison.aside import confusion_of

    return confusion_of(_aside(run, model))


def look_slices(run: str, path: str, column: str, model: str | None = None) -> dict[str, Any]:
    """Return the loss in the parts of any column of the table, learned from or not."""
    from ..evaluation.comparison.aside import slices_by
    from ..evaluation.comparison.columns import as_numbers

    record = read_record(run)
    aside = _aside(run, model)
    table = load_table(path)
    _check_column(column, table)
    readings = {
        entry["name"]: entry["reading"]
        for entry in record["data"]["profile"]
        if entry.get("reading") and entry["name"] == column
    }
    part = as_numbers(table.select([column]).take(aside.rows), readings)
    found = slices_by(aside, part[column], column, record["protocol"]["metric"]["name"])
    if found is None:
        raise DataError(
            f"{column!r} cannot be cut into parts of at least ten rows: it has too many different values, or one only."
        )
    return found


def look_errors(
    run: str, path: str, by: str = "error", start: int = 0, count: int = 20, model: str | None = None
) -> dict[str, Any]:
    """Return a page of the rows set aside with what was said of them."""
    from ..evaluation.comparison.aside import rows_in_order

    columns = learned_columns(read_record(run), model)[:6]
    return rows_in_order(_aside(run, model), load_table(path), columns, by=by, start=start, count=count)


def look_effect(run: str, path: str, column: str, model: str | None = None) -> dict[str, Any]:
    """Return the partial dependence of a model on any column it learned from, as the report draws it."""
    import numpy as np

    from ..evaluation.comparison.columns import as_numbers
    from ..evaluation.comparison.explain import effects_of
    from ..report.figures import column_effects
    from ..report.numbers import Numbers

    record = read_record(run)
    kept = Kept(load_model(str(folder_of(run, model) / MODEL)))
    table = load_table(path)
    if column not in kept.names:
        raise ParameterError(f"The model did not learn from {column!r}.")
    rows = np.unique(np.linspace(0, table.num_rows - 1, min(table.num_rows, _EFFECT_ROWS)).astype(int))
    part = table.select(kept.names).take(rows)
    readings = {entry["name"]: entry["reading"] for entry in record["data"]["profile"] if entry.get("reading")}
    typed = as_numbers(part.select([column]), {k: v for k, v in readings.items() if k == column})
    sources = [kept.names[source] for source in kept.encoder.sources_]
    positive = kept.positive(record)
    found = effects_of(kept, kept.encode(part), sources, typed, [column], kept.classes, positive, record["seed"])
    if not found:
        raise DataError(f"{column!r} has too few different values, or text of its own in every row.")
    numbers = Numbers({"effects": found})
    drawn = column_effects(numbers, ("effects",), found, "")
    return found[0] | {
        "svg": drawn[0].svg if drawn else None,
        "caption": _plain_text(drawn[0].caption) if drawn else "",
    }


def look_explain(
    run: str,
    path: str,
    row: int | None = None,
    values: dict[str, Any] | None = None,
    model: str | None = None,
) -> dict[str, Any]:
    """Return why a model predicts what it predicts, for a row of the table (from 1) or one that was typed in."""
    import numpy as np

    from ..evaluation.comparison.glance import show_cell
    from ..evaluation.comparison.record import plain
    from ..evaluation.estimates.attribution import attribute_row

    record = read_record(run)
    kept = Kept(load_model(str(folder_of(run, model) / MODEL)))
    table = load_table(path)
    if values is not None:
        one = typed_row(table, kept.names, values)
    else:
        number = 0 if row is None else int(row)
        if not 1 <= number <= table.num_rows:
            raise ParameterError(f"The table has rows 1 to {table.num_rows:,}; got {number:,}.")
        one = table.select(kept.names).slice(number - 1, 1)
    picked = np.random.default_rng(record["seed"]).permutation(table.num_rows)[:_OTHERS]
    others = kept.encode(table.select(kept.names).take(np.sort(picked)))
    encoded = kept.encode(one)[0]
    which = kept.explained(encoded[None], record)
    groups: dict[str, list[int]] = {}
    for position, source in enumerate(kept.encoder.sources_.tolist()):
        groups.setdefault(kept.names[source], []).append(position)
    rest = list(groups)[_EXPLAINED:]
    if rest:
        merged = [position for name in rest for position in groups.pop(name)]
        groups[f"{len(rest)} other columns"] = merged
    found = attribute_row(
        lambda X: kept.numbers(X, which), encoded, others, groups, n_orders=_ORDERS, random_state=record["seed"]
    )
    cells = {name: show_cell(one[name][0].as_py()) for name in one.column_names}
    answer = found.to_dict()
    for share in answer["shares"]:
        share["cell"] = cells.get(share["name"])
    of = None if kept.classes is None or which is None else kept.classes[which]
    actual = None
    target = record["data"]["target"]
    if values is None and target in table.column_names:
        actual = show_cell(table[target][number - 1].as_py())
    result: dict[str, Any] = plain(answer | {"of": of, "row": row, "actual": actual})
    return result


class Kept:
    """A kept model as questions need it: rows encoded once, classes as codes.

    Parameters
    ----------
    model : TableModel, or a ConformalRegressor of one
        What a comparison saved.
    """

    def __init__(self, model: Any) -> None:
        import numpy as np

        inner = getattr(model, "estimator_", model)
        self.whole = model
        self.encoder = inner.encoder_
        self.model = inner.model_
        self.names = [str(name) for name in inner.feature_names_in_]
        labels = getattr(model, "classes_", None)
        self.classes = None if labels is None else [str(label) for label in np.asarray(labels).tolist()]
        self.classes_ = None if labels is None else np.arange(len(labels))  # codes, as comparisons have them
        if hasattr(self.model, "predict_proba"):
            self.predict_proba = self.model.predict_proba

    def encode(self, table: Any) -> Any:
        """Return rows of the table as the model sees them, dense."""
        import numpy as np
        import scipy.sparse as sp

        X = self.encoder.transform(table)
        return np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)

    def predict(self, X: Any) -> Any:
        """Return predictions, or codes of classes."""
        import numpy as np

        found = self.model.predict(X)
        if self.classes is None:
            return found
        return np.searchsorted(np.asarray(self.whole.classes_), found)

    def numbers(self, X: Any, which: int | None) -> Any:
        """Return predictions, or probabilities of one class (or whether it is predicted)."""
        import numpy as np

        if self.classes is None or which is None:
            return np.asarray(self.model.predict(X), dtype=np.float64)
        if hasattr(self, "predict_proba"):
            return np.asarray(self.predict_proba(X))[:, which]
        return (self.predict(X) == which).astype(np.float64)

    def positive(self, record: dict[str, Any]) -> int | None:
        """Return the code of the rarer of two classes, whose probability is drawn; None for others."""
        counts = record["data"].get("class_counts")
        if self.classes is None or counts is None or len(self.classes) != 2:
            return None
        return int(counts[1] <= counts[0])

    def explained(self, X: Any, record: dict[str, Any]) -> int | None:
        """Return the class whose probability is explained: the rarer of two, else the one that is predicted."""
        if self.classes is None:
            return None
        positive = self.positive(record)
        return int(self.predict(X)[0]) if positive is None else positive


def _aside(run: str, model: str | None = None) -> Any:
    from ..evaluation.comparison.aside import read_aside

    file = folder_of(run, model) / ASIDE
    if not file.is_file():
        raise DataError("This run kept no rows set aside: it was stopped before its winner was judged.")
    return read_aside(file)


def _check_column(column: str, table: Any) -> None:
    if column not in table.column_names:
        raise ParameterError(f"The table has no column {column[:80]!r}.")
