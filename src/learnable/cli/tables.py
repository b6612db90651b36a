"""Tables for the commands: files, and the two that come with the tool."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..data.demo import DEMO_TARGETS as DEMO_TARGETS
from . import options

DEMO = "demo:houses"


def load_table(data: str, *, delimiter: str | None = None, encoding: str | None = None) -> Any:
    """Return a file, a glob, a folder or a built-in table as a pyarrow.Table.

    Examples
    --------
    >>> from learnable.cli.tables import load_table
    >>> load_table("demo:houses").num_rows
    1200
    """
    if data.startswith("demo:"):
        from ..data.demo import demo_table

        return demo_table(data)
    from ..data.files import read_table

    if data == "-":
        return _standard_input(delimiter, encoding)
    return read_table(data, delimiter=delimiter, encoding=encoding)


#: How files of a kind begin; what begins otherwise is CSV.
_BEGINNINGS = {b"PAR1": ".parquet", b"ARROW1": ".arrow", b"PK\x03\x04": ".xlsx", b"[": ".json", b"{": ".jsonl"}
_COMPRESSED = {b"\x1f\x8b": ".gz", b"\x28\xb5\x2f\xfd": ".zst", b"BZh": ".bz2", b"\x04\x22\x4d\x18": ".lz4"}


def _standard_input(delimiter: str | None, encoding: str | None) -> Any:
    """Return what comes in by a pipe; its first bytes tell what it is."""
    import sys
    import tempfile
    from pathlib import Path

    import pyarrow as pa

    from ..core.errors import DataError
    from ..data.files import read_table

    if sys.stdin.isatty():
        raise DataError("- stands for standard input, but nothing is piped in: learnable compare - < table.csv")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "standard input"
        with path.open("wb") as file:
            while chunk := sys.stdin.buffer.read(2**20):
                file.write(chunk)
        with path.open("rb") as file:
            begins = file.read(8)
        packed = next((end for start, end in _COMPRESSED.items() if begins.startswith(start)), "")
        if packed:
            packing = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2", ".lz4": "lz4"}[packed]
            with pa.CompressedInputStream(str(path), packing) as stream:
                begins = stream.read(8)
        kind = next((end for start, end in _BEGINNINGS.items() if begins.lstrip().startswith(start)), ".csv")
        return read_table(path.rename(f"{path}{kind}{packed}"), delimiter=delimiter, encoding=encoding)


# --------------------------------------------------------------------------------------------------------------------
# Where the tool writes: nothing that is there is replaced without a word.
#
# A name that the tool chose gets a number if it is taken: `report-2.html`; `--force` takes it all the same. A name
# that the user gave is used, and the tool says that it replaced a file. What a command reads is never written over.


def output_file(
    given: str | None, default: str, *, force: bool = False, reads: Sequence[str] = ()
) -> tuple[str, str | None]:
    """Return where to write, and what to say of a file that is there already.

    Parameters
    ----------
    given : str or None
        What the user asked for.
    default : str
        The tool's own name.
    force : bool
        Whether the tool's own name may replace a file.
    reads : sequence of str
        Files that the command reads, which may not be replaced.

    Examples
    --------
    >>> import os, tempfile
    >>> from learnable.cli.tables import output_file
    >>> os.chdir(tempfile.mkdtemp())
    >>> output_file(None, "report.html")
    ('report.html', None)
    >>> open("report.html", "w").close()
    >>> output_file(None, "report.html")
    ('report-2.html', 'report.html is there already, so this one is report-2.html (--force replaces it)')
    >>> output_file("report.html", "report.html")
    ('report.html', 'report.html was there already and is replaced')
    """
    name = default if given is None else given
    if not os.path.lexists(name):
        return name, None
    for file in reads:
        if os.path.exists(file) and os.path.exists(name) and os.path.samefile(file, name):
            raise options.WrongUsageError(f"{name} is read by this command and would be replaced; give another name")
    if given is not None or force:
        return name, f"{name} was there already and is replaced"
    path = Path(default)
    number = 2
    while os.path.lexists(path.with_stem(f"{path.stem}-{number}")):
        number += 1
    free = str(path.with_stem(f"{path.stem}-{number}"))
    return free, f"{name} is there already, so this one is {free} (--force replaces it)"


def given_file(given: str | None, *reads: str) -> str | None:
    """Return what to say of a file that the user named and that is there already; None if there is nothing to say."""
    return None if given is None else output_file(given, given, reads=reads)[1]
