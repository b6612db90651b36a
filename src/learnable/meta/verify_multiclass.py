"""Independent check of one-vs-rest and one-vs-one models: state every binary problem again, and have its model checked.

The rows and the 0/1 labels of each problem are taken from the data by comparing labels, in plain NumPy; then the
checker of the binary model, which shares no code with its fit, recomputes its certificate on them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.certificate import Certificate
from ..core.checking import Recheck, Verdict
from ..core.errors import DataError, VerificationError
from ..core.verification import verify
from ..data.rows import ClassTable, read_classes, take_columns, take_rows


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
    labels, problems = table.classes[table.codes], []
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
    X, weight = table.rows.X, table.rows.weight
    if len(problems) != len(model.estimators_):
        raise VerificationError(f"verify: {len(problems)} models are needed; this one has {len(model.estimators_)}.")
    members, wrong = [], []
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
    fingerprints, wrong = [], list(wrong)
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
