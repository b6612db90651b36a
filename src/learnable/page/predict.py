"""Predictions of the kept model: one row from a form, or a file of rows."""

from __future__ import annotations

from typing import Any, Final

from .look import Kept, learned_columns
from .others import read_record
from .shelf import load_model, load_table, typed_row

_LEVELS: Final = 200  # choices of a field of a form
_FIELDS: Final = 300  # fields of a form


def predict_form(run: str, path: str) -> dict[str, Any]:
    """Return the fields of the form: what the model learned from, with typical values and choices."""
    record = read_record(run)
    kept = Kept(load_model(f"{run}/model.safetensors"))
    table = load_table(path)
    known = {column["name"]: column for column in record["data"]["profile"]}
    order = {name: place for place, name in enumerate(learned_columns(record))}
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
