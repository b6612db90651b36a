"""Options that several commands share, each documented once."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import Annotated

import typer

from .completion import columns, tables


def process_age() -> float:
    """Return for how many seconds this process has been running."""
    try:
        with open("/proc/self/stat", encoding="ascii", errors="replace") as file:
            ticks = int(file.read().rpartition(")")[2].split()[19])
        return max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK"))
    except (OSError, ValueError, IndexError, AttributeError):
        return time.process_time()  # about as long as it took to get here


#: When the command began, by `time.monotonic`; set by the caller.
started = time.monotonic()

#: Whether tracebacks are shown; set by `--debug`.
debug = False
#: Whether the command has said itself that it was interrupted.
reported = False
#: What follows the program's name.
arguments: list[str] = []


def shown(examples: Sequence[str]) -> str:
    """Return examples as help shows them, line by line."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in examples)


class WrongUsageError(Exception):
    """The tool was asked in a way it does not understand; exit code 2."""


def kinds_of(texts: Sequence[str] | None) -> dict[str, str]:
    """Return what `--as COLUMN=KIND` says, by column.

    Examples
    --------
    >>> from learnable.cli.options import kinds_of
    >>> kinds_of(["posted=text", "a=b=date"])
    {'posted': 'text', 'a=b': 'date'}
    """
    found = {}
    for text in texts or []:
        column, equals, kind = text.rpartition("=")
        if not equals or not column or not kind:
            raise WrongUsageError(f"--as takes COLUMN=KIND; got {text!r}")
        found[column] = kind.strip()
    return found


Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        autocompletion=tables,
        help="A CSV, Parquet, Arrow, JSON or Excel file, a glob in quotes, a folder of them, - for standard input, or "
        "a built-in table: demo:houses, demo:tumours.",
    ),
]
Target = Annotated[
    str | None, typer.Option("--target", "-t", metavar="COLUMN", help="The column to predict.", autocompletion=columns)
]
Groups = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        autocompletion=columns,
        help="Rows with equal values here stay together in every split; with --time, each value is a series.",
    ),
]
Time = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        autocompletion=columns,
        help="Train on earlier rows, test on later ones, by this column of dates or numbers.",
    ),
]
DayFirst = Annotated[
    bool | None,
    typer.Option("--dayfirst/--no-dayfirst", help="Whether 03/04/2024 is in April, where no row of a column tells."),
]
As = Annotated[
    list[str] | None,
    typer.Option(
        "--as",
        metavar="COLUMN=KIND",
        help="Take a column of text for text, date, number, day-month-year, month-day-year, year-month-day, 'decimal "
        "point' or 'decimal comma' (may be repeated).",
    ),
]
Task = Annotated[
    str | None,
    typer.Option(metavar="TASK", help="regression or classification; by default the target's values decide."),
]
Drop = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMN", autocompletion=columns, help="Leave this column out (may be repeated)."),
]
Keep = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN",
        autocompletion=columns,
        help="Learn from this column although it looks like an identifier (may be repeated).",
    ),
]
Seed = Annotated[
    int, typer.Option(min=0, metavar="NUMBER", help="Where randomness comes from; the same seed gives the same result.")
]
Delimiter = Annotated[
    str | None, typer.Option(metavar="CHARACTER", help="What separates the cells of a CSV file; found out by default.")
]
Encoding = Annotated[
    str | None, typer.Option(metavar="NAME", help="Encoding of a CSV file, such as latin-1; found out by default.")
]
Force = Annotated[
    bool,
    typer.Option(
        "--force", help="Replace files of the tool's own names that are there; by default the new ones get a number."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
