"""Paths and Dask collections at the door: opened, matched with the estimator, and turned into sources of blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from functools import wraps
from typing import Any, NamedTuple

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_regressor
from sklearn.utils.validation import check_is_fitted

from ..core.errors import DataError
from .arrays import kind_of
from .dask_blocks import DaskBlocks, Reader, run_on_partitions
from .door import Target, encode_classes, is_dask, is_dask_frame, is_external, require_target, take_named_columns
from .files import Files
from .frames import listed, read_series
from .stream import ArrowRows, FileBlocks, batches_for, weights_of


class Opened(NamedTuple):
    """A table that is not in memory, as a fit wants it."""

    blocks: Any  #: FileBlocks or DaskBlocks
    names: list[str] | None  #: of the features
    classes: NDArray[Any] | None
    class_weight: NDArray[np.float64] | None  #: total weight of each class


def open_files(owner: str, X: Any) -> Files:
    """Return the files that X names; what is wrong with them is said in the estimator's name."""
    if isinstance(X, Files):
        return X
    try:
        return Files(X)
    except DataError as error:
        raise type(error)(f"{owner}: {error}") from error


def read_files(owner: str, files: Files) -> Any:
    """Return all rows of files as a pyarrow.Table; what is wrong with them is said in the estimator's name."""
    try:
        return files.read()
    except DataError as error:
        raise type(error)(f"{owner}: {error}") from error


def open_source(owner: str, X: Any, y: Any, sample_weight: Any, target: Target, several: bool = False) -> Opened:
    """Open a path or a Dask collection for a fit; `several`: a Dask y may have several columns."""
    if isinstance(X, Files):
        return _open_files(owner, X, y, sample_weight, target)
    return _open_dask(owner, X, y, sample_weight, target, several)


def _open_files(owner: str, files: Files, y: Any, sample_weight: Any, target: Target) -> Opened:
    y = None if target == "none" else y
    for name, value in (("y", y), ("sample_weight", sample_weight)):
        if not isinstance(value, str) and ((name == "y" and target != "none") or value is not None):
            raise DataError(f"{owner}: with files, {name} must name a column; got {kind_of(value)}.")
    _check_names(owner, files.columns, y, sample_weight)
    names = files.features or [name for name in files.columns if name not in (y, sample_weight)]
    if not names:
        raise DataError(f"{owner}: {files!r} has no column besides {y!r}. Pass at least one feature.")
    classes = totals = None
    if target == "classes":
        classes, totals = labels_of_files(owner, files, y, sample_weight)
    columns = [*names, *([y] if y else []), *([sample_weight] if sample_weight else [])]
    convert = ArrowRows(owner, names, y, sample_weight, classes, files.encode)
    labels = y if classes is not None else None
    features = names if files.encode is None else None
    blocks = FileBlocks(owner, files, columns, convert, features, labels)
    blocks.n_targets = 0 if y is None else 1
    return Opened(blocks, features, classes, totals)


def labels_of_files(owner: str, files: Files, y: str, weight: str | None) -> tuple[NDArray[Any], NDArray[np.float64]]:
    """Return the labels, sorted, and the total weight of each, in a sweep that reads these columns only."""
    totals: dict[Any, float] = {}
    kind: Any = None
    for batch in batches_for(owner, files, [y, *([weight] if weight else [])], labels=y):
        column = batch.rows.column(y)
        if column.null_count:
            row = batch.start + column.is_null().index(True).as_py()
            raise DataError(
                f"{owner}: Input y contains NaN: row {row} of {batch.path.name}, column {y!r}. Drop such rows."
            )
        labels = column.to_numpy(zero_copy_only=False)
        w = np.ones(len(labels)) if weight is None else weights_of(owner, batch.rows, weight)
        labels = labels[w > 0]
        w = w[w > 0]
        codes, found = encode_classes(owner, labels)
        kind = found.dtype if kind is None or found.dtype == kind else np.result_type(kind, found.dtype)
        for label, total in zip(found.tolist(), np.bincount(codes, w, len(found)).tolist(), strict=True):
            totals[label] = totals.get(label, 0.0) + total
    return _sorted_labels(totals, kind)


def _sorted_labels(totals: dict[Any, float], kind: Any) -> tuple[NDArray[Any], NDArray[np.float64]]:
    labels = sorted(totals)
    return np.array(labels, dtype=kind), np.array([totals[label] for label in labels])


def _open_dask(owner: str, X: Any, y: Any, sample_weight: Any, target: Target, several: bool) -> Opened:
    import dask

    names = None
    if is_dask_frame(X):
        given = [name if isinstance(name, str) else None for name in (y, sample_weight)]
        _check_names(owner, list(X.columns), *given)
        names = [name for name in X.columns if name not in given]
        if not all(isinstance(name, str) for name in names):
            raise DataError(f"{owner}: the columns of a Dask frame must have strings as names; got {listed(names)}.")
        n_columns = len(names)
        parts = X.to_delayed()
    else:
        X = _whole_rows(owner, X)
        n_columns = int(X.shape[1])
        # Not optimised one by one: what X and y have in common, such as loading the rows, is then done once per pass.
        parts = X.to_delayed(optimize_graph=False).ravel().tolist()
    if n_columns == 0:
        raise DataError(f"{owner}: X has no columns. Pass at least one feature.")
    if target != "none":
        require_target(owner, y)
    extra = ((y, "y"), (sample_weight, "sample_weight"))
    columns = [
        _column_parts(owner, X, value, len(parts), label, 2 if several and label == "y" else 1)
        for value, label in extra
    ]
    pack = dask.delayed(_pack, pure=False)
    triples = [pack(*triple) for triple in zip(parts, *columns, strict=True)]
    target_name, weight_name = (value if isinstance(value, str) else None for value, _ in extra)
    read = Reader(owner, names, target_name, weight_name)
    classes = totals = None
    if target == "classes":
        classes, totals = _labels_alone(read, X, triples, y, sample_weight, columns)
        read.classes = classes
    most_rows = None if names is not None or np.isnan(X.shape[0]) else int(X.shape[0])
    blocks = DaskBlocks(triples, read, n_columns, most_rows=most_rows)
    blocks.n_targets = 0 if y is None else 1
    if several and getattr(y, "ndim", 1) == 2:
        blocks.n_targets = int(y.shape[1])
        blocks.y_shape = (blocks.n_targets,)
    return Opened(blocks, names, classes, totals)


def _labels_alone(
    read: Reader, X: Any, triples: list[Any], y: Any, sample_weight: Any, columns: list[list[Any]]
) -> tuple[NDArray[Any], NDArray[np.float64]]:
    """Return the labels and their weights, from these columns alone where they can be had without the others."""
    import dask

    pack = dask.delayed(_pack, pure=False)
    given = [value for value in (y, sample_weight) if value is not None]
    named = [value for value in given if isinstance(value, str)]
    if named and len(named) < len(given):
        return labels_on_dask(read, triples)
    alone = X[named].to_delayed() if named else [None] * len(triples)
    if len(alone) != len(triples):  # Dask joins partitions of few columns
        columns = [[None] * len(alone) for _ in columns]
    try:
        return labels_on_dask(read, [pack(*triple) for triple in zip(alone, *columns, strict=True)])
    except DataError:
        return labels_on_dask(read, triples)  # what is wrong is said better where all columns are seen


def labels_on_dask(read: Reader, triples: list[Any]) -> tuple[NDArray[Any], NDArray[np.float64]]:
    """Return the labels, sorted, and the total weight of each."""
    found: dict[Any, float] = {}
    kind: Any = None
    for labels, weights in run_on_partitions(read.owner, read.labels, triples):
        kind = labels.dtype if kind is None or labels.dtype == kind else np.result_type(kind, labels.dtype)
        for label, weight in zip(labels.tolist(), weights.tolist(), strict=True):
            found[label] = found.get(label, 0.0) + weight
    return _sorted_labels(found, kind)


def _pack(X: Any, y: Any, weight: Any) -> tuple[Any, Any, Any]:
    return X, y, weight


def _whole_rows(owner: str, X: Any) -> Any:
    """Return a 2-D Dask array whose chunks hold whole rows."""
    if getattr(X, "ndim", None) != 2:
        raise DataError(f"{owner}: a Dask X must be a dataframe or a 2-D array; got {kind_of(X)}.")
    return X.rechunk({1: -1}) if X.numblocks[1] > 1 else X


def _column_parts(owner: str, X: Any, values: Any, n_parts: int, name: str, most: int = 1) -> list[Any]:
    """Return y or the weights of each partition: None where there are none, or where they are a column of X."""
    if values is None or isinstance(values, str):
        return [None] * n_parts
    if not is_dask(values):
        if not hasattr(X, "chunks") or np.isnan(X.shape[0]):
            raise DataError(
                f"{owner}: with a Dask frame, {name} must be a column name or a Dask collection; got {kind_of(values)}."
            )
        import dask.array as da

        values = da.from_array(np.asarray(values), chunks=-1)
    if not 1 <= values.ndim <= most:
        allowed = "one dimension" if most == 1 else "one or two dimensions"
        raise DataError(f"{owner}: {name} must have {allowed} on Dask; got {values.ndim}.")
    arrays = hasattr(values, "chunks") and hasattr(X, "chunks")
    if arrays and not np.isnan(X.shape[0]) and not np.isnan(values.shape[0]):
        if values.shape[0] != X.shape[0]:
            raise DataError(
                f"{owner}: X and y have inconsistent numbers of samples: X has {X.shape[0]} rows, {name} has "
                f"{values.shape[0]}."
            )
        values = values.rechunk((X.chunks[0], *([-1] * (values.ndim - 1))))
    delayed = values.to_delayed(optimize_graph=not (hasattr(values, "chunks") and hasattr(X, "chunks")))
    parts = np.ravel(delayed).tolist() if hasattr(values, "chunks") else list(delayed)
    if len(parts) != n_parts:
        raise DataError(f"{owner}: X has {n_parts} partitions, {name} has {len(parts)}. Give both the same.")
    return parts


def _check_names(owner: str, columns: list[str], *names: Any) -> None:
    named = [name for name in names if isinstance(name, str)]
    for name in named:
        if name not in columns:
            raise DataError(f"{owner}: there is no column {name!r}. Name one of these: {listed(columns)}.")
    if len(set(named)) < len(named):
        raise DataError(f"{owner}: y and sample_weight both name column {named[0]!r}. Name two different columns.")


def rowwise(method: Callable[..., Any]) -> Callable[..., Any]:
    """Let a method of one table argument take paths (the result is an array) and Dask (the result is lazy).

    Of a Dask array the result is a Dask array, of a Dask frame a series or a frame with its index and divisions.
    """

    @wraps(method)
    def over_rows(self: Any, X: Any, *args: Any, **kwargs: Any) -> Any:
        if not is_external(X):
            return method(self, X, *args, **kwargs)
        if hasattr(self, "fit"):
            check_is_fitted(self)  # before a path is looked at
        if is_dask(X):
            as_it_is_now = copy(self)  # a later fit must not change what is computed then
            return _lazily(method.__name__, lambda part: method(as_it_is_now, part, *args, **kwargs), self, X)
        names = list(getattr(self, "feature_names_in_", []))
        found = [method(self, piece, *args, **kwargs) for piece in pieces_of(type(self).__name__, X, names)]
        if not found:
            raise DataError(f"{type(self).__name__}: {X!r} holds no rows. Pass at least one.")
        if isinstance(found[0], tuple):
            return tuple(np.concatenate(column) for column in zip(*found, strict=True))
        return np.concatenate(found)

    return over_rows


def _lazily(method: str, function: Callable[[Any], Any], estimator: Any, X: Any) -> Any:
    """Return the results of all partitions: as a Dask array of an array, as a series or a frame of a frame.

    Series and frames keep the index and the divisions of X, so that `X.assign(prediction=model.predict(X))` needs no
    shuffle. A method of several results gives a tuple of collections.
    """
    import dask

    owner = type(estimator).__name__
    of_frame = is_dask_frame(X)
    if of_frame:
        names = list(getattr(estimator, "feature_names_in_", X.columns))
        _check_names(owner, list(X.columns), *names)
        X = X[names]
        parts = X.to_delayed()
        sample = X._meta_nonempty
    else:
        X = _whole_rows(owner, X)
        parts = X.to_delayed().ravel().tolist()
        sample = np.zeros((1, X.shape[1]), dtype=X.dtype)
    found = function(sample)  # shape and type of a result
    several = isinstance(found, tuple)
    likes = [np.asarray(like) for like in (found if several else (found,))]
    names = [_result_names(estimator, method, like) if of_frame else None for like in likes]
    shared = dask.delayed(_Shared(function))  # one copy per worker, not one per partition
    call = dask.delayed(_of_part, pure=False, nout=len(likes))
    answers = [call(shared, part, [like[:0] for like in likes], names if of_frame else None) for part in parts]
    columns = [[answer[k] for answer in answers] for k in range(len(likes))]
    if of_frame:
        import dask.dataframe as dd

        metas = [_with_index(X._meta, like[:0], given) for like, given in zip(likes, names, strict=True)]
        options: dict[str, Any] = {"divisions": X.divisions, "verify_meta": False}
        found = tuple(dd.from_delayed(c, meta=meta, **options) for c, meta in zip(columns, metas, strict=True))
    else:
        found = tuple(_joined_array(X.chunks[0], c, like) for c, like in zip(columns, likes, strict=True))
    return found if several else found[0]


class _Shared:
    """A function as a value of its own in the graph of Dask, which would call a bare one."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.function = function


def _of_part(shared: _Shared, part: Any, nothing: list[NDArray[Any]], names: list[Any] | None) -> tuple[Any, ...]:
    """Return the results of one partition; with `names` as columns beside its index."""
    found = shared.function(part) if len(part) else tuple(nothing)
    answers = found if isinstance(found, tuple) else (found,)
    if names is None:
        return answers
    return tuple(_with_index(part, answer, given) for answer, given in zip(answers, names, strict=True))


def _joined_array(heights: tuple[Any, ...], answers: list[Any], like: NDArray[Any]) -> Any:
    import dask.array as da

    arrays = [
        da.from_delayed(answer, shape=(height, *like.shape[1:]), dtype=like.dtype)
        for answer, height in zip(answers, heights, strict=True)
    ]
    return da.concatenate(arrays, allow_unknown_chunksizes=True)


def _with_index(part: Any, answer: Any, names: list[Any] | None) -> Any:
    import pandas as pd

    values = np.asarray(answer)
    return pd.Series(values, index=part.index) if names is None else pd.DataFrame(values, part.index, names)


def _result_names(estimator: Any, method: str, like: NDArray[Any]) -> list[Any] | None:
    """Return names for the columns of a result: labels of classes, those of a transformer, or numbers."""
    if like.ndim == 1:
        return None
    if like.ndim > 2:
        raise DataError(
            f"{type(estimator).__name__}: {method} gives {like.ndim - 1} dimensions per row, which a Dask frame cannot "
            "hold. Pass X.to_dask_array(lengths=True)."
        )
    width = like.shape[1]
    classes = getattr(estimator, "classes_", None)
    if "transform" not in method and classes is not None and np.ndim(classes) == 1 and len(classes) == width:
        return list(np.asarray(classes).tolist())
    if method == "transform" and hasattr(estimator, "get_feature_names_out"):
        names = list(estimator.get_feature_names_out())
        return names if len(names) == width else list(range(width))
    return list(range(width))


def pieces_of(owner: str, X: Any, names: list[str]) -> Iterator[Any]:
    """Yield the features of an external table, some rows at a time: frames from files, what Dask holds from Dask.

    Of files that are encoded these are the encoded numbers.
    """
    if is_dask(X):
        table = X[names] if is_dask_frame(X) and names else X
        parts = table.to_delayed() if is_dask_frame(X) else _whole_rows(owner, X).to_delayed().ravel().tolist()
        yield from run_on_partitions(owner, _as_it_is, parts)
        return
    import pyarrow as pa

    files = open_files(owner, X)
    wanted = names if files.encode is None else files.features
    _check_names(owner, files.columns, *(wanted or []))
    n_rows = 0
    for batch in batches_for(owner, files, wanted or None):
        table = pa.Table.from_batches([batch.rows])
        yield table if files.encode is None else files.encode(table, n_rows)
        n_rows += table.num_rows


def _as_it_is(part: Any, number: int) -> Any:
    return part


def named_columns(owner: str, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any]:
    """Return X, and y and the weights as arrays: those that are names are taken from X, those on Dask are computed.

    A file or a Dask frame stays whole: who reads it takes the features by their names.
    """
    if not is_external(X):
        return take_named_columns(owner, X, y, sample_weight)
    named = X if is_dask(X) else open_files(owner, X)
    columns = list(getattr(named, "columns", [])) if not is_dask(X) or is_dask_frame(X) else []
    _check_names(owner, columns, y, sample_weight)
    return X, *(_values(owner, X, column) for column in (y, sample_weight))


class NamedScore:
    """Mixin, before scikit-learn's: `score` takes paths and Dask too, and column names for y and the weights."""

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return R² of a regressor, the accuracy of a classifier.

        Parameters
        ----------
        X : array, sparse array, dataframe, path or Dask collection
            Rows to predict.
        y, sample_weight : array or str
            Their targets and weights; with a frame, a path or Dask also the name of a column.
        """
        from sklearn.metrics import accuracy_score, r2_score

        X, y, sample_weight = named_columns(type(self).__name__, X, y, sample_weight)
        if not is_external(X):
            return float(super().score(X, y, sample_weight))  # type: ignore[misc]
        metric = r2_score if is_regressor(self) else accuracy_score
        return float(metric(y, np.asarray(self.predict(X)), sample_weight=sample_weight))  # type: ignore[attr-defined]


def _values(owner: str, X: Any, column: Any) -> Any:
    if isinstance(column, str):
        values = X[column].compute() if is_dask(X) else open_files(owner, X).read([column]).column(column)
        return read_series(nw.from_native(values, series_only=True))
    return np.asarray(column.compute()) if is_dask(column) else column
