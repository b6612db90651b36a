"""What a model says of the rows of a table, in order, part by part: with intervals, or with probabilities."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

_ROWS: Final = 2**15  # of one table


def predictions(model: Any, table: Any, *, level: float | None = None, append: bool = False) -> Iterator[Any]:
    """Yield the predictions for the rows of a table, in order, as small pyarrow tables.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from learnable import Ridge
    >>> from learnable.meta import TableModel
    >>> from learnable.evaluation.predictions import predictions
    >>> table = pa.table({"x": [0.0, 1.0, 2.0], "y": [0.0, 1.0, 2.0]})
    >>> model = TableModel(Ridge(alpha=0.0)).fit(table, "y")
    >>> next(predictions(model, table)).column_names
    ['prediction']
    """
    import pyarrow as pa

    from ..core.errors import DataError

    if table.num_rows == 0:
        raise DataError("predict: the table has no rows.")
    _check_columns(model, table)
    _check_infinity(model, table)
    for start in range(0, table.num_rows, _ROWS):
        rows = table.slice(start, _ROWS)
        found = _predict_rows(model, rows, level)
        kept = {name: rows[name] for name in rows.column_names} if append else {}
        clash = [name for name in found if name in kept]
        if clash:
            raise DataError(f"predict: the table already has a column {clash[0]!r}; rename it, or leave --append out.")
        yield pa.table(kept | found)


def _check_columns(model: Any, table: Any) -> None:
    """Say which columns are missing, in the words of the table."""
    from ..core.errors import DataError
    from ..data.frames import listed

    wanted = [str(name) for name in getattr(model, "feature_names_in_", [])]
    missing = [name for name in wanted if name not in table.column_names]
    if missing:
        raise DataError(
            f"predict: the table lacks {listed(missing)}, which the model was fitted with; it has "
            f"{listed(table.column_names)}."
        )


def _check_infinity(model: Any, table: Any) -> None:
    """Name the row of an infinite number before rows are cut into parts."""
    from .comparison.problem import refuse_infinity

    refuse_infinity("predict", table, [str(name) for name in getattr(model, "feature_names_in_", [])])


def _predict_rows(model: Any, rows: Any, level: float | None) -> dict[str, Any]:
    from ..core.errors import ParameterError

    names = [str(name) for name in getattr(model, "feature_names_in_", [])]
    X = rows.select(names) if names else columns_as_numbers("predict", model, rows)
    found: dict[str, Any] = {"prediction": model.predict(X)}
    if hasattr(model, "predict_proba"):
        for label, column in zip(model.classes_.tolist(), model.predict_proba(X).T, strict=True):
            found[f"p({label})"] = column
    elif hasattr(model, "predict_interval"):
        found["lower"], found["upper"] = (
            model.predict_interval(X) if level is None else model.predict_interval(X, level)
        )
    if level is not None and "lower" not in found:
        raise ParameterError("predict: this model has no intervals, so --level means nothing; leave it out.")
    return found


def columns_as_numbers(owner: str, model: Any, rows: Any) -> Any:
    """Return the columns as an array, for a model that was fitted without names; their number must be the model's.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from learnable import Ridge
    >>> from learnable.evaluation.predictions import columns_as_numbers
    >>> model = Ridge().fit([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0]], [0.0, 1.0, 2.0])
    >>> columns_as_numbers("predict", model, pa.table({"a": [1.0], "b": [2.0]}))
    array([[1., 2.]])
    """
    from ..core.errors import DataError
    from ..data.frames import listed, open_frame, read_frame

    wanted = getattr(model, "n_features_in_", None)
    if wanted is not None and wanted != rows.num_columns:
        raise DataError(
            f"{owner}: the model was fitted to {wanted} column(s) without names, so that it is not known which of "
            f"{listed(rows.column_names)} they are. Give a table of these columns alone, in the order of the fit."
        )
    return read_frame(owner, open_frame(owner, rows))
