"""Tables and models of the session: the last ones stay in memory; and rows that are typed in, with their types."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Final

from ..core.errors import DataError, ParameterError
from ..data.demo import DEMO_TARGETS, demo_table

_KEPT: Final = 3  # tables and models in memory at a time

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
