"""From the fitted records of the columns to the numbers of the rows.

A record is a plain dict, one for each input column: its `kind`, the type it was read as (`input`), how many values are
`missing`, and what its kind needs. `features` names the output columns; `encode` fills them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import scipy.sparse as sp

from ..core import Array, DataError, NDArray
from .encoder_categories import FOLDS, component_names, prefix_labels
from .encoder_input import Columns
from .encoder_read import Labels

Record = dict[str, Any]

_CHUNK_ELEMENTS: Final = 2**17
_YEAR = 365.2425
_WEEK = 7.0
MISSING: Final = "(missing)"
OTHER: Final = "(other)"


class Triples(NamedTuple):
    """Entries of a sparse matrix."""

    rows: NDArray[np.int64]
    columns: NDArray[np.int64]
    data: Array


def features(record: Record) -> list[str]:
    """Return the names of the output columns of one input column."""
    name = record["name"]
    kind = record["kind"]
    if kind in ("constant", "empty"):
        names = []
    elif kind in ("number", "boolean"):
        names = [name] if record["varies"] else []
    elif kind == "date":
        cycles = ["year", "week", *(["day"] if record["clock"] else [])]
        names = [f"{name}: days"] + [
            f"{name}: {wave} of the {cycle}" for cycle in cycles for wave in ("sine", "cosine")
        ]
    elif kind == "text" and "reduction" in record:
        names = list(component_names(name, record["reduction"].shape[1]))
    elif kind == "text":
        names = [f"{name}: hash {number}" for number in range(record["n_features"])]
    elif record["encoding"] == "target":
        names = [f"{name}: mean target {label}".rstrip() for label in record["targets"] or [""]]
    else:
        names = _level_names(record)
    if "prefix" in record:
        names = [*names, *features(record["prefix"] | {"name": f"{name}: prefix"})]
    return [*names, f"{name}={MISSING}"] if record.get("flag") else names


def _level_names(record: Record) -> list[str]:
    levels = [*record["levels"].tolist(), MISSING]
    columns = record["columns"]
    names = [OTHER] * (int(columns.max(initial=-1)) + 1)
    shared = np.bincount(columns[columns >= 0], minlength=len(names)) > 1
    for level, column in zip(levels, columns.tolist(), strict=True):
        if column >= 0 and not shared[column]:
            names[column] = level
    return [f"{record['name']}={level}" for level in names]


def encode(table: Columns, records: Sequence[Record], *, sparse: bool, first_row: int | None) -> Any:
    """Return the features of the rows of a table.

    Parameters
    ----------
    table : Columns
        Its columns are those of the records.
    records : list of dict
        What was fitted.
    sparse : bool
        Whether to return a CSR array.
    first_row : int or None
        The number of the first row if these are the rows of the fit, which must not see their own target; else None.
    """
    starts = np.cumsum([0] + [len(features(record)) for record in records])
    width = int(starts[-1])
    numeric = [j for j, record in enumerate(records) if record["kind"] in ("number", "boolean", "date")]
    types = [records[j]["input"] for j in numeric]
    zones = [records[j].get("zone") for j in numeric]
    X = table.numbers(numeric, types, zones) if numeric else np.empty((table.n_rows, 0))
    _refuse_infinity(table, X, numeric)
    if sparse:
        return _encode_sparse(table, records, starts, numeric, X, first_row)
    order = "C" if X.flags.c_contiguous and X.shape[1] > 1 else "F"
    out = np.zeros((table.n_rows, width), order=order)  # type: ignore[call-overload]
    _put_numbers(out, X, [records[j] for j in numeric], starts[numeric])
    for j, record in enumerate(records):
        if record["kind"] == "date":
            _put_cycles(out, X[:, numeric.index(j)], record, int(starts[j]))
        elif record["kind"] in ("category", "text"):
            _put_labels(out, table.labels(j, record["input"]), record, int(starts[j]), first_row)
    return out


def _encode_sparse(
    table: Columns, records: Sequence[Record], starts: Any, numeric: list[int], X: Array, first_row: int | None
) -> Any:
    parts: list[Triples] = []
    for place, j in enumerate(numeric):
        block = np.zeros((table.n_rows, len(features(records[j]))), order="F")
        _put_numbers(block, X[:, [place]], [records[j]], np.zeros(1, dtype=np.int64))
        if records[j]["kind"] == "date":
            _put_cycles(block, X[:, place], records[j], 0)
        parts.append(_triples(block, int(starts[j])))
    for j, record in enumerate(records):
        if record["kind"] in ("category", "text"):
            parts += _label_triples(table.labels(j, record["input"]), record, int(starts[j]), first_row)
    merged = [np.concatenate(pieces) for pieces in zip(*parts, strict=True)] if parts else [np.empty(0)] * 3
    rows, columns, data = merged
    matrix = sp.coo_array((data, (rows.astype(np.int32), columns.astype(np.int32))), shape=(table.n_rows, starts[-1]))
    csr = matrix.tocsr()
    csr.sort_indices()
    return csr


def _triples(block: Array, start: int) -> Triples:
    rows, columns = np.nonzero(block)
    return Triples(rows, columns + start, block[rows, columns])


def _put_numbers(out: Array, X: Array, records: Sequence[Record], starts: NDArray[np.int64]) -> None:
    """Fill, centre and scale all columns of numbers at once, and flag what was missing."""
    fill, mean, scale = (np.array([r[key] for r in records], dtype=np.float64) for key in ("fill", "mean", "scale"))
    value = np.array([r["kind"] == "date" or r["varies"] for r in records], dtype=bool)
    flag = np.array([bool(r["flag"]) for r in records], dtype=bool)
    ends = starts + [len(features(r)) - 1 for r in records]
    if not out.flags.c_contiguous:
        _put_columns(out, X, fill, mean, scale, np.where(value, starts, -1), np.where(flag, ends, -1))
        return
    to = _as_slice(starts[value]) if value.any() else None
    step = max(1, _CHUNK_ELEMENTS // max(1, X.shape[1]))
    for start in range(0, len(X), step):
        rows = slice(start, start + step)
        Z = X[rows]
        gaps = np.isnan(Z)
        if gaps.any():
            Z = np.where(gaps, fill, Z)
            if flag.any():
                out[rows, ends[flag]] = gaps[:, flag]
        if to is not None:
            Z = Z if value.all() else Z[:, value]
            out[rows, to] = (Z - mean[value]) / scale[value]


def _put_columns(out: Array, X: Array, fill: Array, mean: Array, scale: Array, to: Any, flag_to: Any) -> None:
    """Do the same column after column, for arrays whose columns lie together; −1 stands for no column."""
    for start in range(0, len(X), _CHUNK_ELEMENTS):
        rows = slice(start, start + _CHUNK_ELEMENTS)
        for j in range(X.shape[1]):
            z = X[rows, j]
            gaps = np.isnan(z)
            if gaps.any():
                z = np.where(gaps, fill[j], z)
                if flag_to[j] >= 0:
                    out[rows, flag_to[j]] = gaps
            if to[j] >= 0:
                np.divide(z - mean[j], scale[j], out=out[rows, to[j]])


def _as_slice(columns: NDArray[np.int64]) -> Any:
    """Return column numbers as a slice where they can be one: assignments are then much faster."""
    first = int(columns[0])
    last = int(columns[-1])
    return slice(first, last + 1) if last - first + 1 == len(columns) else columns


def _put_cycles(out: Array, days: Array, record: Record, start: int) -> None:
    """Put sine and cosine of the place in the year, the week and the day; zero where the date is missing."""
    present = np.flatnonzero(~np.isnan(days))
    t = days[present]
    day = np.floor(t)
    dates = day.astype(np.int64).astype("datetime64[D]")
    year_start = dates.astype("datetime64[Y]").astype("datetime64[D]")
    of_year = (dates - year_start).astype(np.float64) + (t - day)
    angles = [of_year / _YEAR, (t + 3.0) / _WEEK % 1.0, t - day]  # 1 January 1970 was a Thursday
    for number, share in enumerate(angles[: 3 if record["clock"] else 2]):
        out[present, start + 1 + 2 * number] = np.sin(2 * np.pi * share)
        out[present, start + 2 + 2 * number] = np.cos(2 * np.pi * share)


def _put_labels(out: Array, labels: Labels, record: Record, start: int, first_row: int | None) -> None:
    if record["kind"] == "category" and record["encoding"] == "target":
        values = _target_values(labels, record, first_row)
        out[:, start : start + values.shape[1]] = values
        if "prefix" in record:
            _put_labels(out, prefix_labels(labels), record["prefix"], start + values.shape[1], first_row)
        return
    if record["kind"] == "category":
        columns = _onehot_columns(labels, record).astype(np.int32)
        for column in range(int(record["columns"].max(initial=-1)) + 1):  # much faster than to scatter ones
            out[:, start + column] = columns == column
        return
    for part in _text_triples(labels, record, start):
        out[part.rows, part.columns] = part.data


def _label_triples(labels: Labels, record: Record, start: int, first_row: int | None) -> list[Triples]:
    if record["kind"] == "text":
        return _text_triples(labels, record, start)
    if record["encoding"] == "target":
        values = _target_values(labels, record, first_row)
        own = [_triples(values, start)]
        if "prefix" in record:
            own += _label_triples(prefix_labels(labels), record["prefix"], start + values.shape[1], first_row)
        return own
    columns = _onehot_columns(labels, record)
    rows = np.flatnonzero(columns >= 0)
    return [Triples(rows, columns[rows] + start, np.ones(len(rows)))]


def _onehot_columns(labels: Labels, record: Record) -> NDArray[np.int64]:
    """Return the place of the one in each row, −1 where there is none."""
    return np.append(record["columns"], -1)[_levels_of(labels, record)]


def _levels_of(labels: Labels, record: Record) -> NDArray[np.int64]:
    """Return the level of each row: L levels, then missing, then unseen."""
    n_levels = len(record["levels"])
    known = {name: number for number, name in enumerate(record["levels"].tolist())}
    lookup = np.array([known.get(value, n_levels + 1) for value in labels.values] + [n_levels], dtype=np.int64)
    return lookup[labels.codes]  # code −1 is the last


def _target_values(labels: Labels, record: Record, first_row: int | None) -> Array:
    levels = _levels_of(labels, record)
    fold: Any = FOLDS if first_row is None else (first_row + np.arange(len(levels))) % FOLDS
    return np.asarray((record["values"][fold, levels] - record["mean"]) / record["scale"], dtype=np.float64)


def _text_triples(labels: Labels, record: Record, start: int) -> list[Triples]:
    parts = []
    width = record["reduction"].shape[1] if "reduction" in record else record["n_features"]
    if labels.values and record["n_features"]:  # scikit-learn would divide by zero features
        hashed = vectorizer(record).transform(labels.values).tocsr()
        if "reduction" in record:
            hashed = sp.csr_array(hashed @ record["reduction"])
        coo = hashed[labels.codes].tocoo()
        present = labels.codes[coo.row] >= 0
        parts.append(Triples(coo.row[present].astype(np.int64), coo.col[present] + start, coo.data[present]))
    if record["flag"]:
        rows = np.flatnonzero(labels.codes < 0)
        parts.append(Triples(rows, np.full(len(rows), start + width), np.ones(len(rows))))
    return parts


def vectorizer(record: Record) -> Any:
    """Return scikit-learn's hashing of n-grams, of words or of characters; it has no state."""
    from sklearn.feature_extraction.text import HashingVectorizer

    words = record["analyzer"] == "words"
    return HashingVectorizer(
        analyzer="word" if words else "char_wb",
        ngram_range=(1, 2) if words else (2, 4),
        n_features=record["n_features"],
    )


def _refuse_infinity(table: Columns, X: Array, positions: Sequence[int]) -> None:
    with np.errstate(invalid="ignore", over="ignore"):
        if not X.size or np.isfinite(X.sum()):
            return
    bad = np.isinf(X)
    if bad.any():
        row, column = np.argwhere(bad)[0].tolist()
        raise DataError(
            f"{table.owner}: column {table.names[positions[column]]!r} contains infinity, first in row {row}. "
            "Replace it by a number, or by a missing value."
        )
