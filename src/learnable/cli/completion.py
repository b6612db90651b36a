"""What the shell offers when Tab is pressed: names of models, their parameters, columns of the table.

`learnable --install-completion` sets it up for bash, zsh, fish and PowerShell. A completion that fails offers nothing:
pressing Tab must not show an error.
"""

from __future__ import annotations

import csv
import gzip
import os
import re
import shlex
from collections.abc import Callable, Iterator
from functools import wraps
from pathlib import Path
from typing import Any, Final, TextIO

import typer

Found = list[tuple[str, str]]
_SPECIAL: Final = re.compile(r"([^\w@%+=:,./-])")  # what bash would not take for a part of a word
_PARQUET: Final = (".parquet", ".pq")
_TEXT: Final = (".csv", ".tsv", ".txt", ".gz")
_DEMOS: Final = (("demo:houses", "a built-in table of numbers"), ("demo:tumours", "a built-in table of classes"))


def _quiet(complete: Callable[..., Found]) -> Callable[..., Found]:
    """Return the function that offers nothing where it would fail."""

    @wraps(complete)
    def calm(ctx: typer.Context, incomplete: str) -> Found:
        try:
            return complete(ctx, incomplete)
        except Exception:  # whatever a file on disk holds
            return []

    return calm


@_quiet
def model_names(ctx: typer.Context, incomplete: str) -> Found:
    """Return the models whose names begin so, with what they predict."""
    from ..core.registry import REGISTRY

    return [
        (name, f"{entry.traits.family}: {', '.join(entry.traits.tasks)}")
        for name, entry in sorted(REGISTRY.items())
        if entry.traits is not None and name.startswith(incomplete)
    ]


@_quiet
def model_parameters(ctx: typer.Context, incomplete: str) -> Found:
    """Return the parameters of the model that was named, as `name=`."""
    from ..core.registry import registered_class

    name = ctx.params.get("model") or _after(("--model", "-m"))
    cls: Any = registered_class(str(name))
    parameters = cls._get_param_names()
    return [(f"{parameter}=", "") for parameter in parameters if f"{parameter}=".startswith(incomplete)]


@_quiet
def columns(ctx: typer.Context, incomplete: str) -> Found:
    """Return the columns of the table that begin so."""
    found = [name for name in column_names(table_of(ctx)) if name.startswith(incomplete)]
    in_bash = os.environ.get("_LEARNABLE_COMPLETE", "").endswith("bash")  # which inserts a word as it is
    return [(_SPECIAL.sub(r"\\\1", name) if in_bash else name, "") for name in found]


@_quiet
def tables(ctx: typer.Context, incomplete: str) -> Found:
    """Return the built-in tables once `demo` was begun; files are offered by the shell itself."""
    return [pair for pair in _DEMOS if incomplete and pair[0].startswith(incomplete)]


def table_of(ctx: typer.Context) -> Path | None:
    """Return the table that the command line names: what was parsed, or the first word that is a file."""
    parsed = ctx.params.get("data")
    words = [str(parsed)] if parsed else _words()[2:]
    return next((Path(word).expanduser() for word in words if Path(word).expanduser().is_file()), None)


def column_names(path: Path | None) -> list[str]:
    """Return the names in the head of a CSV or Parquet file; none of other files.

    Examples
    --------
    >>> from learnable.cli.completion import column_names
    >>> column_names(None)
    []
    """
    if path is None:
        return []
    endings = path.suffix.lower()
    if endings in _PARQUET:
        import pyarrow.parquet

        return [str(name) for name in pyarrow.parquet.read_schema(path).names]
    if endings not in _TEXT:
        return []
    with _open(path) as file:
        line = file.readline(1_000_000).rstrip("\r\n")
    separator = max(",;\t|", key=line.count)
    return [name.strip() for name in next(csv.reader([line], delimiter=separator), []) if name.strip()]


def _open(path: Path) -> TextIO:
    if path.suffix.lower() == ".gz":
        return gzip.open(path, "rt", encoding="utf-8-sig", errors="replace")
    return open(path, encoding="utf-8-sig", errors="replace")


def _words() -> list[str]:
    """Return the words of the command line as the shells hand them over."""
    line = os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS") or ""
    try:
        return shlex.split(line)
    except ValueError:  # a quote that is still open
        return line.split()


def _after(options: tuple[str, ...]) -> str:
    """Return the word after one of these options."""

    def following() -> Iterator[str]:
        words = _words()
        for place, word in enumerate(words[:-1]):
            if word in options:
                yield words[place + 1]

    return next(following(), "")
