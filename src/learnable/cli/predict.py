"""`learnable predict`: a model file and new rows in; predictions with intervals or probabilities out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import typer

from . import options
from .tables import given_file, load_table

_ROWS = 2**15

#: Shown by --help.
EXAMPLES = (
    "learnable predict model.safetensors new.csv",
    "learnable predict model.safetensors new.parquet -o predictions.parquet --level 0.95",
    "learnable predict model.safetensors new.csv --append > with_predictions.csv",
)


def predict(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A file that compare, fit or learnable.save wrote.")],
    data: options.Data,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="A .csv or .parquet file; by default CSV goes to the standard output.",
        ),
    ] = None,
    level: Annotated[
        float | None,
        typer.Option(
            metavar="P", help="Probability with which an interval holds the target; by default the model's own, 0.9."
        ),
    ] = None,
    append: Annotated[
        bool, typer.Option("--append", help="Write the columns of DATA too, before the predictions.")
    ] = False,
    delimiter: options.Delimiter = None,
    encoding: options.Encoding = None,
    debug: options.Debug = False,
) -> None:
    """Predict every row of a table, in its order: intervals for numbers, probabilities for classes.

    The columns are `prediction`, then `lower` and `upper`, or `p(class)` for each class.
    """
    if level is not None and not 0.0 < level < 1.0:
        raise options.WrongUsageError(f"--level must lie between 0 and 1; got {level:g}")
    if output is not None and not output.lower().endswith((".csv", ".parquet", ".pq")):
        raise options.WrongUsageError(f"--output must end in .csv or .parquet; got {output!r}")
    said = given_file(output, model, data)
    from ..core.model_file import load

    fitted = load(model)
    table = load_table(data, delimiter=delimiter, encoding=encoding)
    write(predictions(fitted, table, level=level, append=append), output)
    if said is not None:
        print(f"note: {said}")  # the predictions are in the file, so this line is all that is printed


def predictions(model: Any, table: Any, *, level: float | None = None, append: bool = False) -> Iterator[Any]:
    """Yield the predictions for the rows of a table, in order, as small pyarrow tables.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from learnable import Ridge
    >>> from learnable.meta import TableModel
    >>> from learnable.cli.predict import predictions
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
    from ..evaluation.comparison.problem import refuse_infinity

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
    >>> from learnable.cli.predict import columns_as_numbers
    >>> model = Ridge().fit([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0]], [0.0, 1.0, 2.0])
    >>> columns_as_numbers("predict", model, pa.table({"a": [1.0], "b": [2.0]}))
    array([[1., 2.]])
    """
    from ..core.errors import DataError
    from ..data.frames import listed, open_frame, read_frame

    wanted = getattr(model, "n_features_in_", None)
    if wanted is not None and wanted != rows.num_columns:
        raise DataError(
            f"{owner}: the model was fitted to {wanted} column(s) without names, so that nobody knows which of "
            f"{listed(rows.column_names)} they are. Give a table of these columns alone, in the order of the fit."
        )
    return read_frame(owner, open_frame(owner, rows))


def write(parts: Iterator[Any], output: str | None) -> None:
    """Write tables one after the other, to a file in one step or to the standard output."""
    import sys
    from pathlib import Path

    import pyarrow.csv
    import pyarrow.parquet

    from ..core.model_file import writing

    first = next(parts)
    if output is None:
        sys.stdout.flush()
        with pyarrow.csv.CSVWriter(sys.stdout.buffer, first.schema) as writer:
            _write_all(writer, first, parts)
        return
    is_csv = Path(output).suffix.lower() == ".csv"
    make = pyarrow.csv.CSVWriter if is_csv else pyarrow.parquet.ParquetWriter
    with writing(output) as file, make(file, first.schema) as writer:
        _write_all(writer, first, parts)


def _write_all(writer: Any, first: Any, rest: Iterator[Any]) -> None:
    writer.write_table(first)
    for part in rest:
        writer.write_table(part.cast(first.schema))
