"""Independent check of a `TableModel`: encode the rows afresh, compare, and have the inner model checked.

A fit is what it says only if its encoder is the one these rows give. So an encoder with the same parameters is fitted
again; its features must be those of the stored encoder, number by number. Then the checker of the inner model, which
shares no code with its fit, recomputes the certificate on these features. Mean targets are cross-fitted by row number:
a model with such columns is verified on the rows in their order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier

from ..core.checking import Recheck
from ..core.errors import VerificationError
from ..core.registry import REGISTRY, registered_name, resolve
from ..data.dask_blocks import is_dask
from ..data.encoded import encode_external, encoded_by
from ..data.encoder_input import read_whole
from ..data.frames import take_named_columns
from ..data.sources import pieces_of

#: Two features agree when they differ by no more than this share of the larger: sums in another order do.
_ROUNDING = 1e-9
_ROUNDING_OF_VECTORS = 1e-6  # of the largest entry


def table_model(model: Any, X: Any, y: Any, sample_weight: Any) -> Recheck:
    """Recompute the certificate of a TableModel; large files are read piece by piece."""
    name = registered_name(type(model.model_))
    checker = REGISTRY[name].checker if name else None
    if checker is None:
        raise VerificationError(f"verify: {type(model.model_).__name__} is not a model of this library.")
    outside = not is_dask(X) and model._stays_outside(X)
    encode = _encode_files if outside else _encode_table
    try:
        fresh, stored, again, y, sample_weight = encode(model, X, y, sample_weight)
        names, names_again = (e.get_feature_names_out() for e in (model.encoder_, fresh))
        where = _differing_names(names, names_again) or _differing_records(model.encoder_, fresh)
        if where is None:
            where = _differing_numbers(names, *((_pieces(s) if outside else [s]) for s in (stored, again)))
    except (ValueError, IndexError) as error:  # a DataError, or an encoder whose parts do not fit together
        raise VerificationError(f"verify: the data are not the table of the fit: {error}") from error
    try:
        found: Recheck = resolve(checker)(model.model_, stored, y, sample_weight)
    except (ValueError, IndexError) as error:
        raise VerificationError(f"verify: the model inside is not one of these rows: {error}") from error
    if where is None:
        return found
    return found._replace(fingerprint=f"{found.fingerprint}, but these rows give another encoder: {where}")


def _encode_table(model: Any, X: Any, y: Any, sample_weight: Any) -> tuple[Any, ...]:
    """Return an encoder fitted again, the features of the stored one and of it, y and the weights."""
    X, y, sample_weight = take_named_columns("verify", *read_whole("verify", X, y, sample_weight))
    table, fresh = model.encoder_._open(X), clone(model.encoder_)
    stored = model.encoder_._encode(table, first_row=0)
    again = fresh._fit_table(table, y, sample_weight)._encode(table, first_row=0)
    return fresh, stored, again, y, sample_weight


def _encode_files(model: Any, X: Any, y: Any, sample_weight: Any) -> tuple[Any, ...]:
    """Return the same for files, which stay where they are: the features are computed whenever they are read."""
    fresh, again, y, sample_weight = encode_external(
        "verify", model.encoder_, X, y, sample_weight, classes=is_classifier(model.model_)
    )
    return fresh, encoded_by(model.encoder_, again), again, y, sample_weight


def _pieces(files: Any) -> Iterator[Any]:
    return pieces_of("verify", files, [])


def _differing_names(names: NDArray[Any], names_again: NDArray[Any]) -> str | None:
    """Say where the features of two encoders differ; None if nowhere."""
    if np.array_equal(names, names_again):
        return None
    odd = sorted(set(names.tolist()) ^ set(names_again.tolist()))
    return f"the feature {odd[0]!r} is in one of them" if odd else "the features are in another order"


def _differing_records(stored: Any, fresh: Any) -> str | None:
    """Say where what two encoders remember of the columns differs; None if nowhere.

    Numbers that these rows do not need, such as the value for a missing one, are read for other rows.
    """
    if not np.array_equal(stored.sources_, fresh.sources_):
        return "the columns that features come from are others"
    if len(stored.columns_) != len(fresh.columns_):
        return f"it has {len(stored.columns_)} columns"
    for one, other in zip(stored.columns_, fresh.columns_, strict=True):
        if one.keys() != other.keys():
            return f"the column {other.get('name')!r} is of another kind"
        for key, value in other.items():
            agree = _agree_as_vectors if key == "reduction" else _agree
            if not agree(one[key], value):
                return f"{key!r} of the column {other.get('name')!r} differs"
    return None


def _agree(one: Any, other: Any) -> bool:
    """Tell whether two records are the same, up to rounding of sums."""
    if isinstance(other, dict):
        return isinstance(one, dict) and one.keys() == other.keys() and all(_agree(one[k], other[k]) for k in other)
    if isinstance(other, (list, tuple)):
        return (
            isinstance(one, (list, tuple))
            and len(one) == len(other)
            and all(_agree(a, b) for a, b in zip(one, other, strict=True))
        )
    left, right = np.asarray(one), np.asarray(other)
    if left.shape != right.shape:
        return False
    if left.dtype.kind == right.dtype.kind == "f":
        return bool(np.allclose(left, right, rtol=_ROUNDING, atol=0.0, equal_nan=True))
    return bool(np.array_equal(left, right))


def _agree_as_vectors(one: Any, other: Any) -> bool:
    """Tell whether columns are the same vectors, up to what rounding does to eigenvectors of close eigenvalues."""
    left, right = np.asarray(one), np.asarray(other)
    if left.shape != right.shape or left.dtype != right.dtype:
        return False
    return bool((np.abs(left - right) <= _ROUNDING_OF_VECTORS * _largest(right)).all())


def _differing_numbers(names: NDArray[Any], stored: Iterable[Any], again: Iterable[Any]) -> str | None:
    """Say where two encodings of the same rows, given in pieces, differ; None if nowhere."""
    size = gap = np.zeros(len(names))
    for one, other in zip(stored, again, strict=True):
        size, gap = np.maximum(size, _largest(one)), np.maximum(gap, _largest(one - other))
    wrong = ~(gap <= _ROUNDING * size)
    return f"the feature {names[int(np.argmax(wrong))]!r} differs by {gap[wrong][0]:.2g}" if wrong.any() else None


def _largest(X: Any) -> NDArray[np.float64]:
    """Return the largest absolute value of every column."""
    largest = abs(X).max(axis=0)
    return np.asarray(largest.todense() if sp.issparse(largest) else largest, dtype=np.float64).ravel()
