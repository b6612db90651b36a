"""The data of a fit as a checker reads them: plain arrays, class codes, weights and the checksum.

`plain_rows` shares nothing with the fits but the reading of column names and files. Checkers of models that hold rows
of their own kind (trees, neighbours, mixtures) take the table of the fit itself, from `read_table`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import clone

from ..core.errors import DataError, VerificationError
from .door import is_external
from .sources import named_columns, pieces_of

Array = NDArray[Any]

_CHUNK_ELEMENTS = 2**19


def sound(check: Callable[..., Any]) -> Callable[..., Any]:
    """Turn what arrays of the wrong shape or kind cause inside a checker into a VerificationError."""

    @wraps(check)
    def checked(model: Any, X: Any, y: Any, sample_weight: Any) -> Any:
        try:
            return check(model, X, y, sample_weight)
        except (VerificationError, DataError):
            raise
        except (ValueError, TypeError, IndexError, KeyError, AttributeError, ArithmeticError) as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise VerificationError(
                f"verify: the arrays of this {type(model).__name__} do not fit together, or not to the data: {reason}"
            ) from error

    return checked


class Rows(NamedTuple):
    """Training data as plain arrays, with X in pieces that are read again in every pass."""

    pieces: Callable[[], Iterator[Any]]  #: consecutive rows of X, dense or CSR, without those of weight zero
    n_columns: int
    y: Array  #: (n, k) targets or (n,) codes
    weight: Array  #: (n,)

    def chunks(self) -> Iterator[tuple[Any, Array, Array]]:
        """Yield some rows (dense or CSR), their targets and weights at a time, in extended precision."""
        done = 0
        for piece in self.pieces():
            step = max(1, _CHUNK_ELEMENTS // (1 if sp.issparse(piece) else max(1, self.n_columns)))
            for start in range(0, piece.shape[0], step):
                X = piece[start : start + step]
                part = slice(done, done + X.shape[0])
                done += X.shape[0]
                yield (
                    X.astype(np.longdouble),
                    self.y[part].astype(np.longdouble),
                    self.weight[part].astype(np.longdouble),
                )


def read_table(model: Any, X: Any, y: Any, sample_weight: Any, *, again: Any = None) -> Any:
    """Return the table that a fit makes of the data; raise VerificationError where it cannot be that of the model.

    `again` is the unfitted model whose door reads it; by default a clone.
    """
    try:
        table = type(model)._door(clone(model) if again is None else again, X, y, sample_weight)
    except DataError as error:
        raise VerificationError(f"verify: the data are not the table of a fit: {error}") from error
    if table.n_columns != model.n_features_in_:
        wanted = model.n_features_in_
        raise VerificationError(
            f"verify: the model has {wanted} features, the data {table.n_columns}; pass the {wanted} columns it knows."
        )
    return table


def read_classes(model: Any, X: Any, y: Any, sample_weight: Any) -> tuple[Rows, str]:
    """Return the rows with class codes, and the fingerprint of the data."""
    X, y, sample_weight = named_columns("verify", X, y, sample_weight)
    rows = plain_rows(model, X, np.asarray([] if y is None else y).ravel(), sample_weight)
    rows = rows._replace(y=codes_of(model.classes_, rows.y))
    return rows, fingerprint_of(rows, model.classes_)


def coefficients_of(model: Any) -> Array:
    """Return `coef_` in extended precision, whether it is kept dense or sparse."""
    coef = model.coef_.toarray() if sp.issparse(model.coef_) else model.coef_
    return np.asarray(coef, dtype=np.longdouble)


def codes_of(classes: Array, labels: Array) -> Array:
    """Return the number of each label's class; raise VerificationError for a label that the model does not know."""
    codes = np.full(len(labels), -1)
    for code, label in enumerate(classes.tolist()):
        codes[labels == label] = code
    if (codes < 0).any():
        unknown = labels[codes < 0].tolist()[0]
        raise VerificationError(f"verify: the model does not know the label {unknown!r} of the data.")
    return codes


def class_weights_of(class_weight: Any, classes: Array, rows: Rows) -> Array:
    """Return the weight of each class, as the estimator states it; `rows.y` holds the codes."""
    if class_weight is None:
        return np.ones(len(classes))
    if isinstance(class_weight, str):
        return np.asarray(rows.weight.sum() / (len(classes) * np.bincount(rows.y, rows.weight, len(classes))))
    return np.array([class_weight.get(label, 1.0) for label in classes.tolist()], dtype=float)


def numbers_of(y: Any) -> Array:
    """Return targets as an (n, k) array."""
    try:
        targets = np.asarray(y, dtype=np.float64)
        return targets.reshape(len(targets), -1)
    except (TypeError, ValueError) as error:
        raise VerificationError(f"verify: y does not hold the targets of a fit: {error}") from error


def plain_rows(model: Any, X: Any, y: Array, sample_weight: Any) -> Rows:
    """Return the rows of a table that have weight; raise VerificationError where they cannot be those of the model."""
    names = list(getattr(model, "feature_names_in_", []))

    def every() -> Iterator[Any]:
        return map(_plain, pieces_of("verify", X, names)) if is_external(X) else iter([_plain(X)])

    pieces = every
    shapes = [piece.shape for piece in pieces()] or [(0, 0)]
    n = sum(shape[0] for shape in shapes)
    d = shapes[0][1]
    if d != model.n_features_in_ or n != len(y):
        raise VerificationError(
            f"verify: the model has {model.n_features_in_} features; the data have shape ({n}, {d}) "
            f"with {len(y)} targets."
        )
    try:
        weight = np.ones(1) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        weight = np.broadcast_to(weight, (n,))
    except (TypeError, ValueError) as error:
        raise VerificationError(f"verify: the data are not the table of a fit: {error}") from error
    if (weight == 0).any():
        kept = weight > 0
        starts = np.cumsum([0] + [shape[0] for shape in shapes]).tolist()

        def weighty() -> Iterator[Any]:
            for piece, start in zip(every(), starts, strict=False):
                yield piece[kept[start : start + piece.shape[0]]]

        pieces = weighty
        y = y[kept]
        weight = weight[kept]
    return Rows(pieces, d, y, weight)


def _plain(X: Any) -> Any:
    """Return a table as a float64 array or CSR array."""
    try:
        if sp.issparse(X):
            X = sp.csr_array(X).astype(np.float64)
            X.sum_duplicates()
            return X
        X = np.asarray(X.to_numpy() if hasattr(X, "to_numpy") else X, dtype=np.float64)
    except (TypeError, ValueError, IndexError) as error:
        raise VerificationError(f"verify: the data are not the table of a fit: {error}") from error
    if X.ndim != 2:
        raise VerificationError(f"verify: X must have two dimensions; the data have shape {X.shape}.")
    return X


def fingerprint_of(rows: Rows, classes: Array | None = None) -> str:
    """Compute Σ_rows mix(Σ_j fold(bits xⱼ)·mⱼ) + shape + labels mod 2⁶⁴ again, as `data.blocks` defines it."""
    n = len(rows.y)
    d = rows.n_columns
    k = rows.y.size // max(1, n)
    columns = _odd_numbers(range(d))
    others = _odd_numbers([*range(2**33, 2**33 + k), 2**32])
    checksum = 0
    for Z, t, s in rows.chunks():
        rest = np.concatenate([t.reshape(len(s), k), s[:, None]], axis=1)
        sums = (_folded(rest) * others).sum(axis=1, dtype=np.uint64)
        if sp.issparse(Z):
            products = np.r_[np.uint64(0), np.cumsum(_folded(Z.data) * columns[Z.indices], dtype=np.uint64)]
            sums += np.diff(products[Z.indptr])
        else:
            sums += (_folded(Z) * columns).sum(axis=1, dtype=np.uint64)
        checksum += int(_scrambled(sums).sum(dtype=np.uint64))
    for number, size in zip(_odd_numbers(range(2**34, 2**34 + 3)).tolist(), (n, d, k), strict=True):
        checksum += number * size
    if classes is not None:
        labels = json.dumps([label if isinstance(label, str) else int(label) for label in classes.tolist()])
        checksum += int.from_bytes(hashlib.blake2b(labels.encode(), digest_size=8).digest(), "little")
    return f"{checksum % 2**64:016x}"


def _folded(values: Array) -> Array:
    bits = np.ascontiguousarray(values.astype(np.float64) + 0.0).view(np.uint64)  # −0.0 becomes 0.0
    bits = bits ^ (bits >> np.uint64(32))
    return bits ^ (bits >> np.uint64(16))


def _odd_numbers(columns: Sequence[int]) -> Array:
    return _scrambled((np.array(columns, dtype=np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)) | np.uint64(
        1
    )


def _scrambled(x: Array) -> Array:
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: Array = x ^ (x >> np.uint64(31))
    return mixed
