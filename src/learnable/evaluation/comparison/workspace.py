"""A temporary folder that all jobs of a comparison share: the table, the targets and every split, encoded once.

Readers memory-map everything, so that a process costs no copy of the data. Splits are numbered
from 0; the split called "final" has all training rows on one side and the hold-out on the other.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import pickle
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ...core.errors import DataError

FINAL: Final = "final"
GIVEN: Final = "given"  # the hold-out as it would be if no row were a copy of another
Report = Callable[[Any], None]


class EncodedSplit(NamedTuple):
    """The numbers of one split, memory-mapped."""

    X_train: Any
    y_train: NDArray[Any]
    X_test: Any
    y_test: NDArray[Any]


def write_problem(
    folder: Path,
    features: Any,
    y: NDArray[Any],
    splits: dict[str, tuple[Any, Any]],
    readings: dict[str, str] | None = None,
) -> None:
    """Write the table of features (pyarrow), the targets (numbers or class codes) and the row numbers of each split.

    `readings` says how columns of text are read that hold dates or amounts.
    """
    import pyarrow as pa

    try:
        with pa.OSFile(str(folder / "features.arrow"), "wb") as sink, pa.ipc.new_file(sink, features.schema) as writer:
            writer.write_table(features)
        np.save(folder / "y.npy", y)
        (folder / "readings.json").write_text(json.dumps(readings or {}), encoding="utf-8")
        write_splits(folder, splits)
    except OSError as error:
        raise DataError(
            f"compare: cannot write temporary files to {folder.parent}: {error.strerror or error}; free some space, or "
            "set TMPDIR to another folder."
        ) from error


def write_splits(folder: Path, splits: dict[str, tuple[Any, Any]]) -> None:
    """Write the row numbers of further splits."""
    for name, (train, test) in splits.items():
        np.save(folder / f"{name}.train.npy", train)
        np.save(folder / f"{name}.test.npy", test)


def read_readings(folder: Path) -> dict[str, str]:
    """Return how columns of text are read that hold dates or amounts."""
    file = folder / "readings.json"
    found: dict[str, str] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    return found


def read_typed(folder: Path, table: Any) -> Any:
    """Return columns of the table of features with dates and numbers instead of the texts that hold them."""
    from .columns import as_numbers

    return as_numbers(table, read_readings(folder))


def read_features(folder: Path) -> Any:
    """Return the table of features, memory-mapped."""
    import pyarrow as pa

    return pa.ipc.open_file(pa.memory_map(str(folder / "features.arrow"))).read_all()


def read_rows(folder: Path, split: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the row numbers of a split."""
    return np.load(folder / f"{split}.train.npy"), np.load(folder / f"{split}.test.npy")


def read_split(folder: Path, split: str, *, dense: bool = False) -> EncodedSplit:
    """Return the encoded numbers of a split; with `dense`, those for models of dense columns, where they differ."""
    if dense and (folder / f"{_dense(split)}.names.json").exists():
        y = np.load(folder / "y.npy", mmap_mode="r")
        train, test = read_rows(folder, split)
        X_train, X_test = (_read_matrix(folder / f"{_dense(split)}.{side}") for side in ("X_train", "X_test"))
        return EncodedSplit(X_train, np.asarray(y[train]), X_test, np.asarray(y[test]))
    y = np.load(folder / "y.npy", mmap_mode="r")
    train, test = read_rows(folder, split)
    X_train, X_test = (_read_matrix(folder / f"{split}.{side}") for side in ("X_train", "X_test"))
    return EncodedSplit(X_train, np.asarray(y[train]), X_test, np.asarray(y[test]))


def read_names(folder: Path, split: str, *, dense: bool = False) -> tuple[list[str], list[str]]:
    """Return the names of the encoded columns of a split, and the input column that each comes from."""
    if dense and (folder / f"{_dense(split)}.names.json").exists():
        split = _dense(split)
    document = json.loads((folder / f"{split}.names.json").read_text(encoding="utf-8"))
    return document["names"], document["sources"]


def keep_fitted(folder: Path, name: str, model: Any) -> None:
    """Leave a fitted model for a later job, so that it need not be fitted again; one that cannot travel is dropped."""
    path = _fitted_file(folder, name)
    with contextlib.suppress(Exception):
        path.with_suffix(".part").write_bytes(pickle.dumps(model))
        path.with_suffix(".part").replace(path)  # a job may be killed while it writes


def take_fitted(folder: Path, name: str) -> Any:
    """Return the fitted model that an earlier job of this comparison left; None if there is none."""
    with contextlib.suppress(Exception):
        return pickle.loads(_fitted_file(folder, name).read_bytes())
    return None


def keep_predictions(folder: Path, name: str, split: str, prediction: Any) -> None:
    """Leave what a model predicts of the test rows of a split, for a blend: probabilities, or numbers."""
    values = prediction.values if prediction.probabilities is None else prediction.probabilities
    path = _predictions_file(folder, name, split)
    with contextlib.suppress(OSError):  # without them there is no blend, and nothing else is missing
        np.save(path.with_suffix(".part.npy"), values)
        path.with_suffix(".part.npy").replace(path)


def take_predictions(folder: Path, name: str, split: str) -> NDArray[np.float64] | None:
    """Return what a model predicted of the test rows of a split; None if it left nothing."""
    with contextlib.suppress(OSError, ValueError):
        return np.asarray(np.load(_predictions_file(folder, name, split)), dtype=np.float64)
    return None


def _predictions_file(folder: Path, name: str, split: str) -> Path:
    return folder / f"{hashlib.blake2b(name.encode(), digest_size=8).hexdigest()}.{split}.predictions.npy"


def _fitted_file(folder: Path, name: str) -> Path:
    return folder / f"{hashlib.blake2b(name.encode(), digest_size=8).hexdigest()}.fitted"


def _dense(split: str) -> str:
    """Return the name of a split's files for models of dense columns."""
    return f"{split}.dense"


def encode_splits(report: Report, folder: str, splits: list[str], task: str, dense: bool = False) -> None:
    """Encode each split by an encoder that has seen its training rows alone; a job.

    Where its columns are sparse and `dense` ones are wanted too, a second encoder makes these, with free text reduced
    to a few columns. Reports one `{"split", "seconds", "columns"}` for each split that is ready.
    """
    from ...data.encoder import TableEncoder

    where = Path(folder)
    features = read_features(where)
    y = np.load(where / "y.npy")
    columns = features.column_names
    readings = read_readings(where)
    for split in splits:
        began = time.perf_counter()
        train, test = read_rows(where, split)
        kind = "regression" if task == "regression" else "classification"
        wanted = [(split, TableEncoder(task=kind, readings=readings))]
        for name, encoder in wanted:
            encoded = encoder.fit_transform(features.take(train), y[train])
            _write_matrix(where / f"{name}.X_train", encoded)
            _write_matrix(where / f"{name}.X_test", encoder.transform(features.take(test)))
            names = [str(column) for column in encoder.get_feature_names_out()]
            document = {"names": names, "sources": [columns[source] for source in encoder.sources_]}
            (where / f"{name}.names.json").write_text(json.dumps(document), encoding="utf-8")
            if dense and encoder.sparse_:
                wanted.append((_dense(split), dense_encoder(kind, readings)))
        report({"split": split, "seconds": time.perf_counter() - began, "columns": len(names)})


def dense_encoder(task: str, readings: dict[str, str] | None = None) -> Any:
    """Return the encoder for models of dense columns."""
    from ...data.encoder import TableEncoder
    from ...data.encoder_categories import COMPONENTS

    return TableEncoder(task=task, sparse=False, n_text_components=COMPONENTS, readings=readings)


def _write_matrix(path: Path, X: Any) -> None:
    if sp.issparse(X):
        X = sp.csr_array(X)
        for part in ("data", "indices", "indptr"):
            np.save(f"{path}.{part}.npy", getattr(X, part))
        np.save(f"{path}.shape.npy", np.array(X.shape))
    else:
        np.save(f"{path}.npy", np.ascontiguousarray(X))


def _read_matrix(path: Path) -> Any:
    if os.path.exists(f"{path}.npy"):
        return _map(f"{path}.npy")
    parts = tuple(_map(f"{path}.{part}.npy") for part in ("data", "indices", "indptr"))
    return sp.csr_array(parts, shape=tuple(np.load(f"{path}.shape.npy")))


def _map(path: str) -> NDArray[Any]:
    """Map a file so that writing changes no file: kernels are compiled for writable arrays, estimators may scribble."""
    return np.asarray(np.load(path, mmap_mode="c"))
