"""A temporary folder that is gone afterwards, whatever happens."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_open: set[Path] = set()


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Provide a new folder, and remove it at the end of the block.

    Examples
    --------
    >>> from learnable.evaluation.comparison.folder import temporary_folder
    >>> with temporary_folder() as folder:
    ...     _ = (folder / "file").write_text("text")
    >>> folder.exists()
    False
    """
    folder = Path(tempfile.mkdtemp(prefix="learnable-"))
    _open.add(folder)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        _open.discard(folder)


def remove_all() -> None:
    """Remove all folders in use: for whoever ends the process without leaving its blocks."""
    for folder in list(_open):
        shutil.rmtree(folder, ignore_errors=True)


def checksum(folder: Path) -> str:
    """Return a checksum of the columns learned from and of the targets."""
    digest = hashlib.blake2b(digest_size=8)
    for name in ("features.arrow", "y.npy"):
        with open(folder / name, "rb") as file:
            while chunk := file.read(2**22):
                digest.update(chunk)
    return digest.hexdigest()
