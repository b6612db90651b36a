"""Questions about tables and finished runs, and who answers them: `data`, `evaluation` and `report`.

Each function takes plain values and paths that the server chose, and returns plain JSON types. Nothing here computes:
it reads, asks the library, and puts figures of `plots` beside the numbers.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from ..core.errors import DataError, LearnableError, ParameterError
from ..data.demo import DEMO_TARGETS, demo_table
from ..plots.markup import isolated
from .store import GENOTYPES, read_json, write_json

_KEPT: Final = 3  # tables and models in memory at a time
_PAGE: Final = 200  # rows of one answer at most
_COLUMNS: Final = 60  # columns of one answer at most
_OTHERS: Final = 50  # rows that a row's explanation compares with
_ORDERS: Final = 32
_EXPLAINED: Final = 60  # columns with a share of their own
_LEVELS: Final = 200  # choices of a field of a form
_FIELDS: Final = 300  # fields of a form
_EFFECT_ROWS: Final = 2000

_tables: OrderedDict[tuple[str, float], Any] = OrderedDict()
_models: OrderedDict[tuple[str, float], Any] = OrderedDict()


def load_table(path: str) -> Any:
    """Return a table of the session; the last ones stay in memory."""
    from ..data.files import read_table

    if path in DEMO_TARGETS:
        return _kept(_tables, path, 0.0, lambda: demo_table(path))
    changed = os.path.getmtime(path) if os.path.exists(path) else 0.0
    return _kept(_tables, path, changed, lambda: read_table(path))


def load_model(path: str) -> Any:
    """Return a model of the session."""
    from ..core.model_file import load

    if not os.path.exists(path):
        raise DataError("This run kept no model: it was stopped or ended before one was finished.")
    return _kept(_models, path, os.path.getmtime(path), lambda: load(path))


def _kept(shelf: OrderedDict[tuple[str, float], Any], path: str, changed: float, make: Callable[[], Any]) -> Any:
    key = (path, changed)
    if key not in shelf:
        shelf[key] = make()
    shelf.move_to_end(key)
    while len(shelf) > _KEPT:
        shelf.popitem(last=False)
    return shelf[key]


# --------------------------------------------------------------------------------------------------------------------
# Tables.


def table_profile(path: str, folder: str, start: int = 0, count: int = _COLUMNS) -> dict[str, Any]:
    """Return what a table holds, a page of its columns with figures; the whole profile is kept beside the table."""
    from ..data.profile import profile

    if path.lower().endswith(GENOTYPES):
        return {"genotypes": True, "rows": None, "columns": None, "names": [], "profile": [], "warnings": []}
    file = Path(folder) / "profile.json"
    found = read_json(file)
    if found is None:
        found = profile(load_table(path)).to_dict()
        write_json(file, found)
    described = found["profile"]
    shown = described[start : start + min(count, _COLUMNS)]
    return {
        "genotypes": False,
        "rows": found["rows"],
        "columns": found["columns"],
        "duplicate_rows": found["duplicate_rows"],
        "warnings": found["warnings"][:40],
        "names": [column["name"] for column in described],
        "kinds": [column["kind"] for column in described],
        "start": start,
        "profile": [column | {"figure": _spark(column)} for column in shown],
        "target": DEMO_TARGETS.get(path),
    }


def _spark(column: dict[str, Any]) -> str | None:
    """Return a column's distribution as a small figure."""
    from ..plots import bars, sparkline

    title = f"Distribution of {isolated(column['name'], 60)}"
    bins = column.get("histogram")
    try:
        if bins and bins.get("counts"):
            return sparkline(bins["edges"], bins["counts"], title=title)
        if column.get("top"):
            return bars([number for _, number in column["top"]], title=title)
    except DataError:  # bins that cannot be drawn
        return None
    return None


def table_rows(path: str, start: int = 0, count: int = 20, first: int = 0) -> dict[str, Any]:
    """Return a page of rows as short text, of a page of columns."""
    from ..evaluation.comparison.glance import show_cell

    table = load_table(path)
    names = table.column_names[first : first + _COLUMNS]
    part = table.slice(max(0, start), min(max(1, count), _PAGE)).select(names)
    columns = [[show_cell(value) for value in column.to_pylist()] for column in part.columns]
    return {
        "total": table.num_rows,
        "start": start,
        "columns": names,
        "rows": [list(row) for row in zip(*columns, strict=True)],
    }


def table_target(path: str, target: str) -> dict[str, Any]:
    """Return what a target is, by itself: the task and why, what can rank, which models suit it."""
    from ..data.profile import profile
    from ..evaluation.comparison.problem import check_column

    table = load_table(path)
    check_column("page", target, table.column_names, "target")
    found = profile(table.select([target]), target)
    return _choices_of(target, str(found.task), found.task_reason, found.classes)


def _choices_of(target: str, task: str, reason: str | None, classes: Any) -> dict[str, Any]:
    """Return what can be chosen for a task."""
    from ..evaluation.comparison.measures import measures_for
    from .commands import models_for

    return {
        "target": target,
        "task": task,
        "reason": reason,
        "n_classes": None if classes is None else len(classes),
        "metrics": [{"name": measure.name, "label": measure.label} for measure in measures_for(task)],
        "models": models_for(task),
    }


def table_check(path: str, target: str, **roles: Any) -> dict[str, Any]:
    """Return what a comparison would make of a target: what is learned from, how texts are read, leaks, copies."""
    from ..evaluation.comparison.problem import read_problem

    problem = read_problem("page", load_table(path), target, source="", **roles)
    data = problem.data
    return _choices_of(target, problem.task, data["task_reason"], data["classes"]) | {
        "rows": data["rows"],
        "features": problem.features.num_columns,
        "notes": problem.notes[:20],
        "warnings": data["warnings"][:20],
    }


# --------------------------------------------------------------------------------------------------------------------
# A finished comparison.


def look_summary(run: str) -> dict[str, Any]:
    """Return what the page says of a comparison before anything is asked: the verdict, the winner, what is proven."""
    from ..report.numbers import Numbers
    from ..report.sections import score_decimals
    from ..report.words import certificate_sentence, standing, verdict

    record = _record(run)
    numbers = Numbers(record)
    winner = record["winner"] or {}
    name = winner.get("name")
    details = (record.get("details") or {}).get(name) or {}
    sentences = [_plain_text(sentence) for sentence in verdict(numbers, standing(record), score_decimals(record))]
    claim = certificate_sentence(numbers, "details", str(name), "certificate")
    data = record["data"]
    return {
        "verdict": sentences,
        "status": record["status"],
        "winner": name,
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
        "columns": _learned(record),
        "importances": details.get("importances") or [],
        "aside": (Path(run) / "aside.npz").is_file(),
        "model": (Path(run) / "model.safetensors").is_file(),
        "figures": _figures(numbers, name),
    }


def _learned(record: dict[str, Any]) -> list[str]:
    """Return the columns learned from, those that matter most to the winner first."""
    details = (record.get("details") or {}).get((record["winner"] or {}).get("name")) or {}
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


def look_threshold(run: str, cost: dict[str, float] | None = None) -> dict[str, Any]:
    """Return what every threshold brings on the rows set aside, with the confusion at each."""
    from ..evaluation.comparison.aside import threshold_lines

    return threshold_lines(_aside(run), cost)


def look_confusion(run: str) -> dict[str, Any] | None:
    """Return the confusion matrix of the rows set aside."""
    from ..evaluation.comparison.aside import confusion_of

    return confusion_of(_aside(run))


def look_slices(run: str, path: str, column: str) -> dict[str, Any]:
    """Return the loss in the parts of any column of the table, learned from or not."""
    from ..evaluation.comparison.aside import slices_by
    from ..evaluation.comparison.columns import as_numbers

    record = _record(run)
    aside = _aside(run)
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


def look_rows(run: str, path: str, by: str = "error", start: int = 0, count: int = 20) -> dict[str, Any]:
    """Return a page of the rows set aside with what was said of them."""
    from ..evaluation.comparison.aside import rows_in_order

    columns = _learned(_record(run))[:6]
    return rows_in_order(_aside(run), load_table(path), columns, by=by, start=start, count=count)


def look_effect(run: str, path: str, column: str) -> dict[str, Any]:
    """Return the partial dependence of the kept model on any column it learned from, as the report draws it."""
    import numpy as np

    from ..evaluation.comparison.columns import as_numbers
    from ..evaluation.comparison.explain import effects_of
    from ..report.figures import column_effects
    from ..report.numbers import Numbers

    record = _record(run)
    kept = Kept(load_model(f"{run}/model.safetensors"))
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


def look_explain(run: str, path: str, row: int | None = None, values: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return why the kept model predicts what it predicts, for a row of the table (from 1) or one that was typed in."""
    import numpy as np

    from ..evaluation.comparison.glance import show_cell
    from ..evaluation.comparison.record import plain
    from ..evaluation.estimates.attribution import attribute_row

    record = _record(run)
    kept = Kept(load_model(f"{run}/model.safetensors"))
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


def _record(run: str) -> dict[str, Any]:
    found = read_json(Path(run) / "record.json")
    if not isinstance(found, dict):
        raise DataError("This run has no result: it failed, or was stopped before a model was finished.")
    return found


def _aside(run: str) -> Any:
    from ..evaluation.comparison.aside import read_aside

    file = Path(run) / "aside.npz"
    if not file.is_file():
        raise DataError("This run kept no rows set aside: it was stopped before its winner was judged.")
    return read_aside(file)


def _check_column(column: str, table: Any) -> None:
    if column not in table.column_names:
        raise ParameterError(f"The table has no column {column[:80]!r}.")


# --------------------------------------------------------------------------------------------------------------------
# Predictions: one row from a form, or a file.


def predict_form(run: str, path: str) -> dict[str, Any]:
    """Return the fields of the form: what the model learned from, with typical values and choices."""
    record = _record(run)
    kept = Kept(load_model(f"{run}/model.safetensors"))
    table = load_table(path)
    known = {column["name"]: column for column in record["data"]["profile"]}
    order = {name: place for place, name in enumerate(_learned(record))}
    fields = []
    for name in sorted(kept.names, key=lambda name: order.get(name, len(order)))[:_FIELDS]:
        column = known.get(name, {})
        summary = column.get("summary") or {}
        top = [value for value, _ in column.get("top") or []]
        kind = str(column.get("kind") or "text")
        choices = _choices(table[name]) if kind in ("category", "boolean") and not column.get("reading") else []
        typical = None if summary.get("median") is None else f"{summary['median']:.6g}"
        if kind in ("category", "boolean") and top:
            typical = top[0]
        example = column.get("example")
        field = {"name": name, "kind": kind, "choices": choices, "example": example}
        field["typical"] = typical if typical is not None else example
        fields.append(field | {"low": summary.get("min"), "high": summary.get("max")})
    return {"target": record["data"]["target"], "fields": fields, "more": max(0, len(kept.names) - _FIELDS)}


def _choices(column: Any) -> list[str]:
    """Return the values of a category, the most frequent first."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(column.type):
        column = pc.cast(column, column.type.value_type)
    counted = pc.value_counts(column.combine_chunks()).to_pylist()
    counted.sort(key=lambda entry: -entry["counts"])
    return [str(entry["values"]) for entry in counted if entry["values"] is not None][:_LEVELS]


def predict_row(run: str, path: str, values: dict[str, Any]) -> dict[str, Any]:
    """Return the prediction of one row that was typed in, with its interval or its probabilities."""
    from ..evaluation.comparison.record import plain
    from ..evaluation.predictions import predictions

    model = load_model(f"{run}/model.safetensors")
    names = [str(name) for name in model.feature_names_in_]
    one = typed_row(load_table(path), names, values)
    found = next(predictions(model, one)).to_pylist()[0]
    answer: dict[str, Any] = {"prediction": found.pop("prediction")}
    if "lower" in found:
        answer |= {"lower": found["lower"], "upper": found["upper"], "level": getattr(model, "level", None)}
        answer["guarantee"] = getattr(model, "guarantee_", None)
    else:
        pairs = [{"label": name[2:-1], "value": value} for name, value in found.items()]
        answer["probabilities"] = sorted(pairs, key=lambda pair: -pair["value"])[:20]
    result: dict[str, Any] = plain(answer)
    return result


def typed_row(table: Any, names: list[str], values: dict[str, Any]) -> Any:
    """Return one row of text from a form with the types of the table; what is left empty is missing."""
    import pyarrow as pa

    columns = {}
    for name in names:
        kind = table.schema.field(name).type
        if pa.types.is_dictionary(kind):
            kind = kind.value_type
        given = values.get(name)
        text = None if given is None or str(given).strip() == "" else str(given)
        columns[name] = pa.array([text], pa.string()) if text is None else _cell(name, text, kind)
        if text is None:
            columns[name] = pa.nulls(1, kind)
    return pa.table(columns)


def _cell(name: str, text: str, kind: Any) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        if pa.types.is_integer(kind):
            number = float(text)
            return pa.array([number], pa.float64()) if number != int(number) else pa.array([int(number)], kind)
        if pa.types.is_boolean(kind):
            return pa.array([{"true": True, "false": False, "1": True, "0": False}[text.strip().lower()]])
        return pc.cast(pa.array([text]), kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError, KeyError, OverflowError) as error:
        what = "a number" if pa.types.is_integer(kind) or pa.types.is_floating(kind) else str(kind)
        raise ParameterError(f"{name}: {text[:40]!r} is not {what}.") from error


def predict_file(run: str, upload: str, output: str) -> dict[str, Any]:
    """Write the predictions for the rows of a file beside its columns, and return the first of them."""
    import pyarrow.csv

    from ..core.model_file import writing
    from ..data.files import read_table
    from ..evaluation.comparison.glance import preview
    from ..evaluation.predictions import predictions

    model = load_model(f"{run}/model.safetensors")
    table = read_table(upload)
    taken = {"prediction", "lower", "upper"} & set(table.column_names)
    parts = predictions(model, table, append=not taken)
    first = next(parts)
    with writing(output) as file, pyarrow.csv.CSVWriter(file, first.schema) as writer:
        writer.write_table(first)
        for part in parts:
            writer.write_table(part.cast(first.schema))
    said = preview(first.select(list(reversed(first.column_names))))
    return {"rows": table.num_rows, "preview": said}


# --------------------------------------------------------------------------------------------------------------------
# The laboratory, where it is installed.


def lab_scenes() -> list[dict[str, Any]]:
    """Return the scenes by name, with their titles and what tables they take."""
    from importlib import import_module

    try:
        scenes = import_module("learnable.lab").SCENES
    except ModuleNotFoundError:
        return []
    parts = ("title", "text", "takes")
    return [{"name": name} | {part: str(getattr(scenes[name], part, "")) for part in parts} for name in scenes]


def lab_scene(name: str, path: str | None = None) -> str:
    """Return a scene as one page, on the built-in table or on one of the session."""
    from importlib import import_module

    scenes = import_module("learnable.lab").SCENES
    if name not in scenes:
        raise ParameterError(f"There is no scene {name[:60]!r}.")
    found: str = scenes[name].page() if path is None else scenes[name].page(load_table(path))
    return found


QUESTIONS: Final[dict[str, Callable[..., Any]]] = {
    "profile": table_profile,
    "rows": table_rows,
    "target": table_target,
    "check": table_check,
    "summary": look_summary,
    "threshold": look_threshold,
    "confusion": look_confusion,
    "slices": look_slices,
    "errors": look_rows,
    "effect": look_effect,
    "explain": look_explain,
    "form": predict_form,
    "predict": predict_row,
    "predict_file": predict_file,
    "scenes": lab_scenes,
    "scene": lab_scene,
}


def answer(question: dict[str, Any]) -> dict[str, Any]:
    """Return `{"answer": …}`, or `{"error": …}` in one line."""
    from ..evaluation.comparison.race import one_line

    asked = dict(question)
    try:
        return {"answer": QUESTIONS[asked.pop("question")](**asked)}
    except LearnableError as error:
        return {"error": one_line(error).removeprefix("page: ").removeprefix("predict: ")}
    except MemoryError:
        return {"error": "Out of memory: the table is too large for this machine."}
    except Exception as error:
        return {"error": one_line(error)}
