"""Save a model to one `.safetensors` file and load it again: no pickle, nothing in the file is executed.

The file is a plain safetensors file, so any safetensors reader can list its arrays. Its metadata hold

| key                                  | value                                                       |
|--------------------------------------|-------------------------------------------------------------|
| `learnable_format`                   | the number of this format, `"1"`                            |
| `learnable`, `numpy`, `scikit-learn` | the versions that wrote the file                            |
| `model`                              | the model as JSON (`learnable.core._encoding` documents it) |
| `sha256`                             | checksum of everything else                                 |

**Trust.** The checksum finds damage, not forgery: an attacker who can write a file can also write its checksum.
Safety rests on the loader: sizes are checked before memory is taken, classes come from the registry alone,
parameters obey the ranges declared on the class, fitted attributes cannot hide methods, and each class checks
its own arrays.

**Policy.** Within one major version of the library, newer versions read the files of older ones: a parameter
that a file does not have takes its default. The format number rises when an old reader could misread a new
file; a reader refuses numbers above its own.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import math
import os
import secrets
import stat
import sys
from collections.abc import Iterable, Iterator
from importlib import metadata as distributions
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ._encoding import DTYPES, decode, encode
from ._soundness import are_sizes
from .errors import LearnableError, ModelFileError

# --------------------------------------------------------------------------------------------------------------------
# Write a file in one step: a reader sees the old file or the new one, and an error leaves no part of it.


@contextlib.contextmanager
def writing(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a temporary file beside `path`, for writing; when the block ends well, it takes the place of `path`.

    A device or a pipe is refused, because renaming would replace it. A link stays a link, and the permissions of a
    file that is there stay as they are.

    Examples
    --------
    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "note.txt")
    >>> with writing(path) as file:
    ...     _ = file.write(b"done")
    >>> open(path).read()
    'done'
    """
    target = Path(os.path.realpath(path))
    mode = target.stat().st_mode if target.exists() else None
    if mode is not None and not stat.S_ISREG(mode):
        raise FileExistsError(17, "exists and is not a file", target.name)
    temporary = target.with_name(f".learnable-{secrets.token_hex(8)}.tmp")
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    descriptor = os.open(temporary, flags, 0o666)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if mode is not None:
            os.chmod(temporary, stat.S_IMODE(mode))
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


FORMAT: Final = 1
_MAX_HEADER: Final = 2**24  # bytes; JSON can take thirty times its length in memory
_CODES: Final = {dtype: code for code, dtype in DTYPES.items()}
_CHECKSUM: Final = "sha256"
#: What Python, NumPy and SciPy raise on values that no file of ours holds.
_UNSOUND: Final = (
    *(ValueError, TypeError, LookupError, ArithmeticError, AttributeError),
    *(RecursionError, MemoryError, ImportError),
)


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Save a model, or a scikit-learn workflow of our models, fitted or not, to one `.safetensors` file.

    The parameters, the fitted attributes and the container of `set_output` are stored; callbacks and metadata
    requests are not. Workflows of scikit-learn (pipelines, searches, voting, stacking) are saved with their models
    if all of them are of this library, and their transformers are among the common ones. Arrays come back in
    C order and in the machine's byte order, otherwise bit for bit.

    Parameters
    ----------
    model : estimator
        A model of this library itself, not of a subclass; or a scikit-learn `Pipeline`, `ColumnTransformer`,
        `GridSearchCV`, `VotingClassifier`, … of such models.
    path : str or path
        Where to write. An existing file is replaced in one step: a reader sees the old file or the new one,
        and after an error the old one is still there.

    Raises
    ------
    ModelFileError
        If the model holds something that cannot be saved (the message names the member), or if writing fails.

    Examples
    --------
    >>> import os, tempfile
    >>> import learnable as ln
    >>> model = ln.Ridge(alpha=0.5).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0])
    >>> path = os.path.join(tempfile.mkdtemp(), "ridge.safetensors")
    >>> ln.save(model, path)
    >>> ln.load(path)
    Ridge(alpha=0.5)
    """
    target = _path_of("save", path)
    try:
        document, arrays = encode(model)
        header, order = _pack(document, arrays)
        _write_atomically(target, [header, *(_bytes_of(arrays[name]) for name in order)])
    except OSError as error:
        raise _error("save", f"cannot write {target.name}: {error.strerror or error}") from error
    except LearnableError as error:
        raise _error("save", str(error)) from None


def load(path: str | os.PathLike[str]) -> Any:
    """Load a model that `save` wrote.

    Nothing in the file is executed or trusted: a damaged, truncated, oversized or hostile file raises an
    error and needs no more memory than its own size warrants. That a file is sound does not prove its origin:
    the checksum finds damage, not forgery.

    Parameters
    ----------
    path : str or path
        A file that `save` wrote.

    Returns
    -------
    estimator
        The model, with the same parameters and the same arrays, hence the same predictions.

    Raises
    ------
    ModelFileError
        In one line, why the file cannot be loaded.
    """
    target = _path_of("load", path)
    try:
        with _open_regular_file(target) as file:
            header = _read_header(file)
            arrays = _read_arrays(file, header)
        if header.metadata.get(_CHECKSUM) != _checksum(header.metadata, header.table, arrays):
            raise ModelFileError("the file is damaged: its checksum does not match its content")
        return decode(_strict_json(header.metadata["model"]), arrays, header.metadata.get("scikit-learn", ""))
    except OSError as error:
        raise _error("load", f"cannot read {target.name}: {error.strerror or error}") from error
    except LearnableError as error:
        raise _error("load", f"{target.name}: {str(error).removeprefix('load: ')}") from None
    except _UNSOUND as error:
        what = f"{type(error).__name__}: {error}"
        raise _error("load", f"{target.name}: not a sound model file: {what}") from error


class _Header(NamedTuple):
    metadata: dict[str, str]
    table: dict[str, dict[str, Any]]  #: name of an array -> dtype, shape, data_offsets
    start: int  #: where the arrays begin


def _pack(document: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> tuple[bytes, list[str]]:
    """Return everything that stands before the arrays, and the order in which they follow.

    The same model gives the same bytes, which safetensors' own writer does not promise.
    """
    order = sorted(arrays, key=lambda name: (-arrays[name].itemsize, name))  # so that every array is aligned
    table = {}
    begin = 0
    for name in order:
        end = begin + arrays[name].nbytes
        shape = list(arrays[name].shape)
        table[name] = {"dtype": _CODES[arrays[name].dtype], "shape": shape, "data_offsets": [begin, end]}
        begin = end
    library = sys.modules[__name__.partition(".")[0]]  # an import would turn the layers upside down
    metadata = {"learnable_format": str(FORMAT), "learnable": library.__version__}
    metadata |= {name: distributions.version(name) for name in ("numpy", "scikit-learn")}
    metadata["model"] = json.dumps(document, allow_nan=False, separators=(",", ":"))
    metadata[_CHECKSUM] = _checksum(metadata, table, arrays)
    header = json.dumps({"__metadata__": metadata, **table}, separators=(",", ":")).encode("ascii")
    header += b" " * (-len(header) % 8)
    if len(header) > _MAX_HEADER:
        raise ModelFileError(f"the model without its arrays takes {len(header)} bytes; at most {_MAX_HEADER}")
    return len(header).to_bytes(8, "little") + header, order


def _checksum(metadata: dict[str, str], table: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> str:
    """Return the SHA-256 of the metadata (without the checksum), the table, and the arrays by name."""
    covered = {key: value for key, value in metadata.items() if key != _CHECKSUM}
    description = json.dumps([covered, table], sort_keys=True, separators=(",", ":"))
    digest = hashlib.sha256(description.encode("ascii"))
    for name in sorted(table):
        digest.update(_bytes_of(arrays[name]))
    return digest.hexdigest()


def _strict_json(text: str) -> Any:
    """Parse JSON as the standard has it: no NaN, no infinity (also not as 1e999), no key twice."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        result = dict(pairs)
        if len(result) < len(pairs):
            raise ModelFileError("the file is damaged: its JSON has a key twice")
        return result

    def refuse(word: str) -> float:
        raise ModelFileError(f"the file is damaged: its JSON has the number {word[:20]}")

    def finite(digits: str) -> float:
        number = float(digits)
        return number if math.isfinite(number) else refuse(digits)

    return json.loads(text, object_pairs_hook=unique, parse_constant=refuse, parse_float=finite)


def _read_header(file: io.BufferedReader) -> _Header:
    """Read and check everything but the arrays; nothing is allocated on the word of the file."""
    size = os.fstat(file.fileno()).st_size
    length = int.from_bytes(file.read(8), "little")
    if size < 8 or length > min(size - 8, _MAX_HEADER):
        what = f"its header would have {length} bytes, the file has {size}"
        raise ModelFileError(f"not a learnable model file, or cut short: {what}")
    raw = file.read(length)
    try:
        document = _strict_json(raw.decode("utf-8")) if raw.startswith(b"{") else {}
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise ModelFileError(f"not a learnable model file, or a damaged one: {error}") from error
    metadata = document.pop("__metadata__", None)
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise ModelFileError("not a learnable model file: it has no metadata")
    _check_format(metadata)
    _check_table(document, size - 8 - length)
    return _Header(metadata, document, 8 + length)


def _check_format(metadata: dict[str, str]) -> None:
    number = metadata.get("learnable_format", "")
    if not (number.isascii() and number.isdigit() and len(number) < 10):
        raise ModelFileError("not a learnable model file: its metadata name no learnable_format")
    if int(number) > FORMAT:
        writer = metadata.get("learnable", "a newer version")
        raise ModelFileError(
            f"the file has format {number}, written by learnable {writer[:40]}; this version reads up to "
            f"format {FORMAT}: upgrade learnable"
        )


def _check_table(table: dict[str, Any], n_bytes: int) -> None:
    """Check that the arrays fill the rest of the file: no gap, no overlap, each as long as its shape says."""
    spans = []
    for name, entry in table.items():
        if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
            raise ModelFileError(f"the array {name!r} must have dtype, shape and data_offsets")
        if not isinstance(entry["dtype"], str) or entry["dtype"] not in DTYPES:
            raise ModelFileError(f"the array {name!r} has the unknown dtype {entry['dtype']!r}")
        shape = entry["shape"]
        offsets = entry["data_offsets"]
        if not are_sizes(shape) or not are_sizes(offsets) or len(offsets) != 2:
            raise ModelFileError(f"the array {name!r} has a shape or offsets that no array can have")
        if offsets[1] - offsets[0] != math.prod(shape) * DTYPES[entry["dtype"]].itemsize:
            raise ModelFileError(f"the array {name!r} is not as long as its shape says")
        spans.append((*offsets, name))
    expected = 0
    for begin, end, name in sorted(spans):
        if begin != expected:
            raise ModelFileError(f"the array {name!r} does not begin where the one before it ends")
        expected = end
    if expected != n_bytes:
        raise ModelFileError(f"cut short, or with a tail: arrays of {expected} bytes in {n_bytes} bytes of file")


def _read_arrays(file: io.BufferedReader, header: _Header) -> dict[str, NDArray[Any]]:
    """Read every array into memory of its own."""
    arrays = {}
    for name, entry in header.table.items():
        array = np.empty(entry["shape"], dtype=DTYPES[entry["dtype"]])
        buffer = _bytes_of(array)
        file.seek(header.start + entry["data_offsets"][0])
        if len(buffer) and file.readinto(buffer) != len(buffer):
            raise ModelFileError("the file became shorter while it was read")
        if array.dtype == np.bool_ and (array.reshape(-1).view(np.uint8) > 1).any():
            raise ModelFileError(f"the array {name!r} has truth values other than 0 and 1")
        arrays[name] = array.astype(array.dtype.newbyteorder("="), copy=False)
    return arrays


def _bytes_of(array: NDArray[Any]) -> memoryview:
    return array.astype(array.dtype.newbyteorder("<"), copy=False).reshape(-1).view(np.uint8).data


def _open_regular_file(target: Path) -> io.BufferedReader:
    # Without O_NONBLOCK, opening a FIFO blocks until it has a writer.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    descriptor = os.open(target, flags)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise ModelFileError("not a file but a directory, a pipe or a device")
    return os.fdopen(descriptor, "rb")


def _write_atomically(target: Path, chunks: Iterable[bytes | memoryview]) -> None:
    try:
        with writing(target) as file:
            for chunk in chunks:
                file.write(chunk)
    except FileExistsError as error:
        raise ModelFileError(f"{error.filename} {error.strerror}") from error


def _path_of(owner: str, path: Any) -> Path:
    if not isinstance(path, (str, os.PathLike)) or not isinstance(os.fspath(path), str):
        raise _error(owner, f"path must be a string or a path; got {path!r}")
    if "\0" in os.fspath(path) or not Path(path).name:
        raise _error(owner, f"{os.fspath(path)!r} does not name a file")
    return Path(path)


def _error(owner: str, message: str, most: int = 380) -> ModelFileError:
    """Return the error in one printable line of bounded length: part of it may come from a hostile file."""
    text = " ".join(message.removeprefix("load: ").split())
    text = "".join(c if c.isprintable() else "?" for c in text)
    return ModelFileError(f"{owner}: {text if len(text) <= most else text[: most - 1] + '…'}")
