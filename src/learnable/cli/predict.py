"""`learnable predict`: a model file and new rows in; predictions with intervals or probabilities out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import typer

from ..evaluation.predictions import columns_as_numbers as columns_as_numbers
from ..evaluation.predictions import predictions as predictions
from . import options
from .tables import given_file, load_table

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
