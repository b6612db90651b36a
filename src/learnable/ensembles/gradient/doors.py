"""The door of boosted models: tables with columns of categories, in memory, in files or on Dask, as numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...data.door import Table, door, is_dask, is_dask_frame, is_external, take_named_columns
from ...data.sources import open_files, read_files
from .external_levels import find_categories, use_levels
from .settings import categorical_columns, encode, find_levels


def boosting_door(target: Any) -> Callable[..., Table]:
    """Return a door that turns categories into codes first."""
    doors = {infinite: door(target=target, sparse=True, missing=True, infinite=infinite) for infinite in (False, True)}

    def read(estimator: Any, X: Any, y: Any = None, sample_weight: Any = None, run: Any = None) -> Table:
        owner, inner = type(estimator).__name__, doors[estimator._infinite]
        if is_external(X):
            files = None if is_dask(X) else open_files(owner, X)
            if files is None or not files.is_small():
                table = inner(estimator, X if files is None else files, y, sample_weight, run)
                mask = find_categories(owner, estimator.categorical_features, table.blocks, _types_of(X, files))
                estimator.is_categorical_ = mask
                estimator.levels_ = None if mask is None else use_levels(owner, table.blocks, mask)
                return table
            X = read_files(owner, files)
        X, y, sample_weight = take_named_columns(owner, X, y, sample_weight)
        mask = categorical_columns(owner, estimator.categorical_features, X)
        estimator.is_categorical_ = mask
        estimator.levels_ = None if mask is None else find_levels(owner, X, mask)
        if mask is not None:
            X = encode(owner, X, mask, estimator.levels_)
        return inner(estimator, X, y, sample_weight, run)

    return read


def _types_of(X: Any, files: Any) -> dict[str, Any] | None:
    """Return the types of the columns of a Dask frame or of files."""
    if files is not None:
        return {name: files.schema.field(name).type for name in files.columns}
    return dict(X.dtypes) if is_dask_frame(X) else None
