"""The session's private folder: tables that came in, runs and what they found, each thing a file that is whole.

    folder/tables/<id>/about.json, table.csv      an uploaded table; one named on the command line stays where it is
    folder/runs/<id>/run.json                     what was asked
    folder/runs/<id>/events.jsonl, end.json       what happened, and how it ended
    folder/runs/<id>/record.json, report.html, …  what was found

Names that come from the browser are never parts of paths: things are found by ids that the server drew.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import secrets
import shutil
import tempfile
from collections.abc import AsyncIterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from ..core.errors import DataError, LearnableError
from ..data.demo import DEMO_TARGETS

_ID: Final = re.compile(r"[0-9a-f]{12}")
_NAMED: Final = re.compile(r"[^\w.\-+=@]")  # what a file's name may not hold in a header of an answer
_LEFT_FREE: Final = 64 * 2**20  # bytes of the disk that an upload must leave
_LONGEST_NAME: Final = 120
#: What files hold that the page reads, by how their names end; nothing that could run code.
TABLES: Final = (".csv", ".tsv", ".txt", ".json", ".jsonl", ".ndjson", ".parquet", ".pq", ".arrow", ".feather", ".xlsx")
PACKED: Final = (".gz", ".bz2", ".zst", ".lz4")
GENOTYPES: Final = (".str", ".vcf", ".vcf.gz")
_CODE: Final = (".pkl", ".pickle", ".joblib", ".npy", ".npz", ".pt", ".pth", ".py", ".exe", ".rds")


@dataclass(frozen=True)
class Limits:
    """What one person may ask of this machine."""

    upload: int = 2 * 2**30  #: bytes of a file
    request: int = 2**20  #: bytes of a request that is no file
    tables: int = 200
    runs: int = 500
    answer: float = 120.0  #: seconds that a question may take
    run: float = 86_400.0  #: seconds that a run may take


class RefusedError(LearnableError):
    """A request that cannot be met, with the status that says so."""

    def __init__(self, text: str, status: int = 400) -> None:
        super().__init__(text)
        self.status = status


@dataclass(frozen=True)
class Table:
    """A table of the session."""

    id: str
    name: str  #: as its owner calls it
    path: str  #: where it is read from, or demo:houses
    source: str  #: how a command names it
    size: int | None  #: bytes
    kind: str  #: "upload", "file" or "demo"

    def public(self) -> dict[str, Any]:
        """Return what the browser is told: not where the file is."""
        return {"id": self.id, "name": self.name, "size": self.size, "kind": self.kind}


class Store:
    """The session's folder.

    Parameters
    ----------
    folder : path, optional
        Where to keep things; by default a new temporary folder, which `close` removes.
    limits : Limits
        What is refused.

    Examples
    --------
    >>> from learnable.page.store import Store
    >>> with Store() as store:
    ...     store.add_demo("demo:houses").name
    'houses'
    """

    def __init__(self, folder: str | os.PathLike[str] | None = None, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self.temporary = folder is None
        self.folder = Path(tempfile.mkdtemp(prefix="learnable-page-") if folder is None else folder).absolute()
        self.tables: dict[str, Table] = {}
        for part in (self.folder, self.folder / "tables", self.folder / "runs"):
            part.mkdir(mode=0o700, parents=True, exist_ok=True)
            part.chmod(0o700)  # others on this machine read nothing here, whatever the umask says
        for about in sorted((self.folder / "tables").glob("*/about.json"), key=lambda path: path.stat().st_mtime):
            with contextlib.suppress(OSError, ValueError, TypeError):
                table = Table(**json.loads(about.read_text(encoding="utf-8")))
                self.tables[table.id] = table

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove the folder, if it is temporary."""
        if self.temporary:
            shutil.rmtree(self.folder, ignore_errors=True)

    def table(self, number: Any) -> Table:
        """Return a table by its id."""
        found = self.tables.get(number) if isinstance(number, str) and _ID.fullmatch(number) else None
        if found is None:
            raise RefusedError("There is no such table in this session.", 404)
        return found

    def folder_of(self, table: Table) -> Path:
        """Return where what is known of a table is kept."""
        return self.folder / "tables" / table.id

    def add_file(self, path: str) -> Table:
        """Take up a file where it is: the user named it on the command line."""
        from ..data.files import find_files

        if path in DEMO_TARGETS:
            return self.add_demo(path)
        find_files(path)
        size = os.path.getsize(path) if os.path.isfile(path) else None
        name = Path(path).name or path
        return self._add(Table(_new_id(), name, str(Path(path).absolute()), path, size, "file"))

    def add_demo(self, name: str) -> Table:
        """Take up a built-in table, once."""
        if name not in DEMO_TARGETS:
            raise RefusedError(f"There is no built-in table {name!r}.", 404)
        for table in self.tables.values():
            if table.path == name:
                return table
        return self._add(Table(_new_id(), name.removeprefix("demo:"), name, name, None, "demo"))

    async def add_upload(self, name: str, length: int | None, chunks: AsyncIterator[bytes]) -> Table:
        """Take up a file from the browser, piece by piece; what is too large or does not fit leaves nothing behind."""
        shown, suffix = check_name(name)
        self.check_room(length)
        number = _new_id()
        place = self.folder / "tables" / number
        place.mkdir(mode=0o700)
        path = place / f"table{suffix}"
        try:
            size = await self.write_upload(path, chunks)
            return self._add(Table(number, shown, str(path), shown, size, "upload"))
        except BaseException:
            shutil.rmtree(place, ignore_errors=True)
            raise

    def check_room(self, length: int | None) -> None:
        """Refuse a file that is too large, before it is sent."""
        if len(self.tables) >= self.limits.tables:
            raise RefusedError(f"This session has {len(self.tables)} tables, the most it takes. Start another.", 507)
        if length is not None and length > self.limits.upload:
            raise RefusedError(self._too_large(), 413)
        free = shutil.disk_usage(self.folder).free
        if length is not None and length > free - _LEFT_FREE:
            raise RefusedError(f"The disk has {free // 2**20:,} MB left, too little for this file.", 507)

    async def write_upload(self, path: Path, chunks: AsyncIterator[bytes]) -> int:
        """Write the pieces of a file and return its size."""
        size = 0
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
            with os.fdopen(descriptor, "wb") as file:
                async for chunk in chunks:
                    size += len(chunk)
                    if size > self.limits.upload:
                        raise RefusedError(self._too_large(), 413)
                    file.write(chunk)
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise RefusedError(
                    "The disk is full: the file was not kept. What was finished is still there.", 507
                ) from error
            raise
        if size == 0:
            raise RefusedError("The file is empty.")
        return size

    def _too_large(self) -> str:
        return (
            f"The file is larger than {self.limits.upload // 2**20:,} MB, the most the page takes. Name it on the "
            "command line instead: learnable page FILE reads it where it is."
        )

    def _add(self, table: Table) -> Table:
        place = self.folder_of(table)
        place.mkdir(mode=0o700, exist_ok=True)
        write_json(place / "about.json", asdict(table))
        self.tables[table.id] = table
        return table


def check_name(name: str) -> tuple[str, str]:
    """Return a file's name without its folders, and how it ends; refuse what is no table.

    Examples
    --------
    >>> from learnable.page.store import check_name
    >>> check_name("../../etc/houses.csv.gz")
    ('houses.csv.gz', '.csv.gz')
    """
    last = re.split(r"[/\\]", str(name))[-1]
    shown = "".join(c if c.isprintable() else "?" for c in last)[-_LONGEST_NAME:].strip()
    lower = shown.lower()
    packed = next((end for end in PACKED if lower.endswith(end)), "")
    inner = lower.removesuffix(packed)
    ending = next((end for end in (*TABLES, ".str", ".vcf") if inner.endswith(end) and inner != end), None)
    if any(inner.endswith(end) for end in _CODE):
        raise RefusedError(
            f"{shown} may run code when it is read, so the page does not take it. Save the table as CSV or Parquet.",
            415,
        )
    if ending is None:
        raise RefusedError(f"{shown or 'A file without a name'} is not read; the page takes {', '.join(TABLES)}.", 415)
    return shown, ending + packed


def plain_name(name: str, default: str = "file") -> str:
    r"""Return a name that is safe in a header: letters, digits and a few signs.

    Examples
    --------
    >>> from learnable.page.store import plain_name
    >>> plain_name('a";b\nc 😀.csv')
    'a__b_c__.csv'
    """
    ascii_only = name.encode("ascii", "replace").decode().replace("?", "_")
    return _NAMED.sub("_", ascii_only).strip(". ")[:_LONGEST_NAME] or default


def write_json(path: Path, value: Any) -> None:
    """Write JSON in one step: a reader sees the old file or the new one.

    `core.model_file.writing` does the same for any file, but brings scikit-learn, which the server has no need of and
    which would double the time until the link is printed.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        temporary.write_bytes(json.dumps(value, allow_nan=False).encode("utf-8"))
        temporary.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise RefusedError("The disk is full. What was finished is still there; free some space.", 507) from error
        raise DataError(f"page: cannot write {path.name}: {error.strerror or error}.") from error


def read_json(path: Path) -> Any:
    """Return what a JSON file holds; None if there is none, or a part of one."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def _new_id() -> str:
    return secrets.token_hex(6)
