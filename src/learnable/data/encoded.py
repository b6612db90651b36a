"""Messy tables beyond memory: a `TableEncoder` fitted piece by piece, and its features as a source of blocks.

The encoder's statistics are sums over the rows, so that the pieces give the encoder of the whole table; the features
are computed anew in every sweep, where the rows are.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from ..core.errors import DataError
from .arrays import kind_of
from .dask_blocks import Reader, run_on_partitions
from .door import is_dask, is_dask_frame
from .encoder import TableEncoder
from .encoder_input import open_table
from .files import Files
from .frames import open_frame, read_series
from .sources import labels_of_files, labels_on_dask, open_files


def encode_external(
    owner: str, encoder: TableEncoder, X: Any, y: Any, sample_weight: Any, *, classes: bool
) -> tuple[TableEncoder, Any, Any, Any]:
    """Fit a clone of `encoder` on files or a Dask frame, and return it with the features, y and the weights.

    Parameters
    ----------
    owner : str
        For messages.
    encoder : TableEncoder
        Not changed.
    X : path, Files or Dask dataframe
        The table.
    y, sample_weight : str
        Names of columns.
    classes : bool
        Whether the target is a class.

    Returns
    -------
    encoder, X, y, sample_weight
        The fitted encoder, and what a model of this library is fitted on.
    """
    for name, value in (("y", y), ("sample_weight", sample_weight)):
        if not isinstance(value, str) and value is not None:
            raise DataError(f"{owner}: with files and Dask, {name} must name a column; got {kind_of(value)}.")
    if is_dask(X):
        return _encode_dask(owner, encoder, X, y, sample_weight, classes)  # type: ignore[no-any-return]
    files = open_files(owner, X)
    labels = labels_of_files(owner, files, y, sample_weight)[0] if classes else None
    names = [name for name in files.columns if name not in (y, sample_weight)]
    fitted = clone(encoder)
    import pyarrow as pa

    for number, batch in enumerate(files.batches(labels=y if classes else None)):
        _update(fitted, pa.Table.from_batches([batch.rows]), names, y, sample_weight, labels, first=number == 0)
    fitted._finish()
    return fitted, files.encoded(partial(_encode, fitted), names, len(fitted.sources_)), y, sample_weight


def encoded_by(encoder: TableEncoder, files: Files) -> Files:
    """Return encoded files with the features of another fitted encoder of the same columns."""
    return files.encoded(partial(_encode, encoder), files.features or files.columns, len(encoder.sources_))


def _encode(encoder: TableEncoder, frame: Any, first_row: int) -> Any:
    """Return the features of rows of the fit, cross-fitted by their numbers."""
    return encoder._encode(open_table(type(encoder).__name__, frame), first_row=first_row)


def _update(
    encoder: TableEncoder, frame: Any, names: list[str], y: Any, weight: Any, labels: NDArray[Any] | None, first: bool
) -> None:
    opened = open_frame(type(encoder).__name__, frame)
    features = opened.select(names).to_native()
    if first:
        schema = open_table(type(encoder).__name__, features).schema()
        encoder._begin(schema, classes=labels, n_targets=0 if labels is not None or y is None else 1)
    columns = (None if name is None else read_series(opened.get_column(name)) for name in (y, weight))
    encoder._update(features, *columns)


def _encode_dask(owner: str, encoder: TableEncoder, X: Any, y: Any, weight: Any, classes: bool) -> Any:
    import dask
    import dask.array as da

    if not is_dask_frame(X):
        raise DataError(f"{owner}: a Dask table must be a dataframe; got {kind_of(X)}.")
    names = [name for name in X.columns if name not in (y, weight)]
    fitted = clone(encoder)
    parts = X.to_delayed()
    heights: list[int] = []
    pack = dask.delayed(_with_nothing, pure=False)
    labels = labels_on_dask(Reader(owner, names, y, weight), [pack(part) for part in parts])[0] if classes else None
    for frame in run_on_partitions(owner, _as_it_is, parts):
        _update(fitted, frame, names, y, weight, labels, first=not heights)
        heights.append(len(frame))
    fitted._finish()
    starts = np.cumsum([0, *heights]).tolist()
    encode = dask.delayed(_encode_part, pure=False)
    width = len(fitted.sources_)
    arrays = [
        da.from_delayed(encode(fitted, part, names, start), shape=(height, width), dtype=np.float64)
        for part, start, height in zip(parts, starts, heights, strict=False)
        if height
    ]
    column = [None if name is None else X[name].to_dask_array(lengths=heights) for name in (y, weight)]
    return fitted, da.concatenate(arrays), *column


def _encode_part(encoder: TableEncoder, frame: Any, names: list[str], first_row: int) -> NDArray[np.float64]:
    X = _encode(encoder, open_frame(type(encoder).__name__, frame).select(names).to_native(), first_row)
    return np.ascontiguousarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)


def _with_nothing(frame: Any) -> tuple[Any, None, None]:
    return frame, None, None


def _as_it_is(part: Any, number: int) -> Any:
    return part
