"""Independent check of a `TableModel`: encode the rows afresh, compare, and have the inner model checked.

A fit is what it says only if its encoder is the one these rows give. So an encoder with the same parameters is fitted
again; its features must be those of the stored encoder, number by number. Then the checker of the inner model, which
shares no code with its fit, recomputes the certificate on these features. Mean targets are cross-fitted by row number:
a model with such columns is verified on the rows in their order.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Iterator
from itertools import combinations
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier

from ..core import (
    REGISTRY,
    Certificate,
    DataError,
    Recheck,
    Verdict,
    VerificationError,
    registered_name,
    resolve,
    verify,
)
from ..data.door import is_dask, read_values, take_named_columns
from ..data.encoder import encode_external, encoded_by
from ..data.encoder_input import read_whole
from ..data.rows import ClassTable, read_classes, take_columns, take_rows
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
    table = model.encoder_._open(X)
    fresh = clone(model.encoder_)
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
    left = np.asarray(one)
    right = np.asarray(other)
    if left.shape != right.shape:
        return False
    if left.dtype.kind == right.dtype.kind == "f":
        return bool(np.allclose(left, right, rtol=_ROUNDING, atol=0.0, equal_nan=True))
    return bool(np.array_equal(left, right))


def _agree_as_vectors(one: Any, other: Any) -> bool:
    """Tell whether columns are the same vectors, up to what rounding does to eigenvectors of close eigenvalues."""
    left = np.asarray(one)
    right = np.asarray(other)
    if left.shape != right.shape or left.dtype != right.dtype:
        return False
    return bool((np.abs(left - right) <= _ROUNDING_OF_VECTORS * _largest(right)).all())


def _differing_numbers(names: NDArray[Any], stored: Iterable[Any], again: Iterable[Any]) -> str | None:
    """Say where two encodings of the same rows, given in pieces, differ; None if nowhere."""
    size = gap = np.zeros(len(names))
    for one, other in zip(stored, again, strict=True):
        size = np.maximum(size, _largest(one))
        gap = np.maximum(gap, _largest(one - other))
    wrong = ~(gap <= _ROUNDING * size)
    return f"the feature {names[int(np.argmax(wrong))]!r} differs by {gap[wrong][0]:.2g}" if wrong.any() else None


def _largest(X: Any) -> NDArray[np.float64]:
    """Return the largest absolute value of every column."""
    largest = abs(X).max(axis=0)
    return np.asarray(largest.todense() if sp.issparse(largest) else largest, dtype=np.float64).ravel()


# Independent checks of models around models of the same rows: standardised targets, and blends.


def scaled_target(model: Any, X: Any, y: Any, sample_weight: Any) -> Recheck:
    """Recompute mean and deviation of the targets, and the certificate of the model inside on standardised ones."""
    name = registered_name(type(model.model_))
    checker = REGISTRY[name].checker if name else None
    if checker is None:
        raise VerificationError(f"verify: {type(model.model_).__name__} is not a model of this library.")
    X, y, sample_weight = take_named_columns("verify", X, y, sample_weight)
    targets = np.asarray(read_values("verify", y), dtype=np.float64).reshape(-1)
    weight = np.ones(len(targets))
    if sample_weight is not None:
        weight = np.asarray(read_values("verify", sample_weight), dtype=np.float64).reshape(-1)
    if weight.shape != targets.shape or not weight.sum() > 0:
        raise VerificationError("verify: the data are not the table of the fit: targets and weights differ in number.")
    center = math.fsum(weight * targets) / math.fsum(weight)
    spread = math.sqrt(math.fsum(weight * (targets - center) ** 2) / math.fsum(weight))
    expected = spread if spread > 1e-12 * abs(center) and spread > 0 else 1.0
    found: Recheck = resolve(checker)(model.model_, X, (targets - model.center_) / model.scale_, sample_weight)
    size = max(abs(center), expected)
    if abs(center - model.center_) <= _ROUNDING * size and abs(expected - model.scale_) <= _ROUNDING * size:
        return found
    return found._replace(
        fingerprint=f"{found.fingerprint}, but these targets have mean {center:.6g} and deviation {expected:.6g}"
    )


def blend(model: Any, X: Any, y: Any, sample_weight: Any) -> Recheck:
    """Check that the weights are shares, and verify every member on the same rows."""
    weights = np.asarray(model.weights_, dtype=np.float64)
    wrong: list[str] = []
    given = model.weights
    if given is not None and not np.allclose(weights, np.asarray(given, float) / np.sum(given), rtol=1e-12, atol=0.0):
        wrong.append("its weights are not those of its parameters")
    elif given is None and not np.allclose(weights, 1.0 / len(weights), rtol=1e-12, atol=0.0):
        wrong.append("its weights are not equal")
    worst: Verdict | None = None
    for number, member in enumerate(model.members_):
        verdict = verify(member, X, y, sample_weight)
        if worst is None or (not verdict and verdict.recorded.holds):
            worst = verdict
        if not verdict and verdict.recorded.holds:
            wrong.append(f"its member {number}, {type(member).__name__}, is not verified: {verdict.reasons[0]}")
    fingerprint = model.members_[0].certificate_.fingerprint
    value = abs(math.fsum(weights.tolist()) - 1.0)
    if wrong:
        return Recheck(math.inf, 0.0, f"{fingerprint}, but {wrong[0]}", worst)
    return Recheck(value, 1e-15 * len(weights), fingerprint, worst)


# Independent check of one-vs-rest and one-vs-one models: state every binary problem again, and have its model
# checked.
#
# The rows and the 0/1 labels of each problem are taken from the data by comparing labels, in plain NumPy; then the
# checker of the binary model, which shares no code with its fit, recomputes its certificate on them.


def one_vs_rest(model: Any, X: Any, y: Any, sample_weight: Any) -> Recheck:
    """Recompute the certificate of a OneVsRestClassifier."""
    table = _read(X, y, sample_weight, several=bool(model.multilabel_))
    everything = np.ones(len(table.codes), dtype=bool)
    if model.multilabel_:
        problems = [(f"of label {k}", everything, column > 0) for k, column in enumerate(table.codes.T)]
        return _check_all(model, table, problems)
    labels = table.classes[table.codes]
    shown = [model.classes_[1]] if len(model.classes_) == 2 else list(model.classes_)
    return _check_all(model, table, [(f"of {label!r}", everything, labels == label) for label in shown])


def one_vs_one(model: Any, X: Any, y: Any, sample_weight: Any) -> Recheck:
    """Recompute the certificate of a OneVsOneClassifier."""
    table = _read(X, y, sample_weight)
    labels = table.classes[table.codes]
    problems = []
    for first, second in combinations(model.classes_, 2):
        rows = (labels == first) | (labels == second)
        problems.append((f"of {first!r} and {second!r}", rows, labels[rows] == second))
    return _check_all(model, table, problems, indices=model._indices())


def _read(X: Any, y: Any, sample_weight: Any, several: bool = False) -> ClassTable:
    try:
        return read_classes("verify", X, y, sample_weight, several=several)
    except DataError as error:
        raise VerificationError(f"verify: the data are not the table of the fit: {error}") from error


def _check_all(
    model: Any,
    table: ClassTable,
    problems: list[tuple[str, NDArray[np.bool_], NDArray[np.bool_]]],
    indices: Any = None,
) -> Recheck:
    X = table.rows.X
    weight = table.rows.weight
    if len(problems) != len(model.estimators_):
        raise VerificationError(f"verify: {len(problems)} models are needed; this one has {len(model.estimators_)}.")
    members = []
    wrong = []
    for number, (inner, (which, rows, positive)) in enumerate(zip(model.estimators_, problems, strict=True)):
        if not (positive.any() and not positive.all()):
            raise VerificationError(f"verify: the data lack a class of the model {which}.")
        part = np.flatnonzero(rows)
        own = take_rows(X, part)
        if indices is not None:  # a kernel matrix: the columns are training rows too
            own = take_columns(own, table.kept[part])
            if number >= len(indices) or not np.array_equal(indices[number], table.kept[part]):
                wrong.append(f"pairwise_indices_ of the model {which} are other rows")
        members.append((which, inner, own, positive.astype(np.int64), None if weight is None else weight[part]))
    found = table.classes.tolist()
    if found != model.classes_.tolist():
        wrong.append(f"the data have the labels {found[:10]}")
    if indices is not None and model.n_columns_ != table.n_columns:
        wrong.append(f"the data have {table.n_columns} columns")
    return check_members(model.certificate_, members, model.classes_, wrong)


def check_members(
    recorded: Certificate, members: Iterable[tuple[str, Any, Any, Any, Any]], classes: NDArray[Any], wrong: list[str]
) -> Recheck:
    """Have each member (its name, model, X, y and weights) checked, and compare with the certificate of them all."""
    verdicts: list[Verdict] = []
    fingerprints = []
    wrong = list(wrong)
    for which, inner, X, y, weight in members:
        try:
            verdict = verify(inner, X, y, weight)
        except (ValueError, IndexError) as error:
            wrong.append(f"the model {which}: {error}")
            fingerprints.append(inner.certificate_.fingerprint)
            continue
        verdicts.append(verdict)
        fingerprints.append(inner.certificate_.fingerprint)
        wrong += [f"the model {which}: {reason}" for reason in verdict.reasons]
    labels = [label if isinstance(label, str) else int(label) for label in classes.tolist()]
    text = json.dumps([fingerprints, labels])
    fingerprint = hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
    if wrong:
        return Recheck(np.inf, 0.0, f"{fingerprint}, but {wrong[0]}")
    # Each value agrees with its own record; the one that the record of all of them shows is the one to compare.
    shown = next(v for v in verdicts if v.recorded.value == recorded.value and v.recorded.kind == recorded.kind)
    return Recheck(shown.value, max(abs(shown.value - recorded.value), 1e-15), fingerprint)
