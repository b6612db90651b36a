"""Independent check of one-vs-rest and one-vs-one models: state every binary problem again, and have its model checked.

The rows and the 0/1 labels of each problem are taken from the data by comparing labels, in plain NumPy; then the
checker of the binary model, which shares no code with its fit, recomputes its certificate on them.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.certificate import Certificate
from ..core.errors import DataError, VerificationError
from ..core.verification import Recheck, Verdict, verify
from .binary import combined_fingerprint, read_classes
from .rows import take_rows


def one_vs_rest(model: Any, X: Any, y: Any, sample_weight: Any) -> Recheck:
    """Recompute the certificate of a OneVsRestClassifier."""
    X, labels, weight = _read(X, y, sample_weight)
    shown = [model.classes_[1]] if len(model.classes_) == 2 else list(model.classes_)
    everything = np.ones(len(labels), dtype=bool)
    problems = [(f"of {label!r}", everything, labels == label) for label in shown]
    return _check_all(model, X, labels, weight, problems)


def one_vs_one(model: Any, X: Any, y: Any, sample_weight: Any) -> Recheck:
    """Recompute the certificate of a OneVsOneClassifier."""
    X, labels, weight = _read(X, y, sample_weight)
    problems = []
    for first, second in combinations(model.classes_, 2):
        rows = (labels == first) | (labels == second)
        problems.append((f"of {first!r} and {second!r}", rows, labels[rows] == second))
    return _check_all(model, X, labels, weight, problems)


def _read(X: Any, y: Any, sample_weight: Any) -> tuple[Any, NDArray[Any], Any]:
    try:
        table = read_classes("verify", X, y, sample_weight)
    except DataError as error:
        raise VerificationError(f"verify: the data are not the table of the fit: {error}") from error
    return table.rows.X, table.classes[table.codes], table.rows.weight


def _check_all(
    model: Any,
    X: Any,
    labels: NDArray[Any],
    weight: Any,
    problems: list[tuple[str, NDArray[np.bool_], NDArray[np.bool_]]],
) -> Recheck:
    if len(problems) != len(model.estimators_):
        raise VerificationError(f"verify: {len(problems)} models are needed; this one has {len(model.estimators_)}.")
    members = []
    for inner, (which, rows, positive) in zip(model.estimators_, problems, strict=True):
        if not (positive.any() and not positive.all()):
            raise VerificationError(f"verify: the data lack a class of the model {which}.")
        part = np.flatnonzero(rows)
        table = take_rows(X, part), positive.astype(np.int64), None if weight is None else weight[part]
        members.append((which, inner, *table))
    found = sorted(set(labels.tolist())) if labels.size else []
    wrong = [] if found == sorted(model.classes_.tolist()) else [f"the data have the labels {found[:10]}"]
    return check_members(model.certificate_, members, model.classes_, wrong)


def check_members(
    recorded: Certificate, members: Iterable[tuple[str, Any, Any, Any, Any]], classes: NDArray[Any], wrong: list[str]
) -> Recheck:
    """Have each member (its name, model, X, y and weights) checked, and compare with the certificate of them all."""
    verdicts: list[Verdict] = []
    fingerprints, wrong = [], list(wrong)
    for which, inner, X, y, weight in members:
        verdict = verify(inner, X, y, weight)
        verdicts.append(verdict)
        fingerprints.append(inner.certificate_.fingerprint)
        wrong += [f"the model {which}: {reason}" for reason in verdict.reasons]
    fingerprint = combined_fingerprint(fingerprints, classes)
    if wrong:
        return Recheck(np.inf, 0.0, f"{fingerprint}, but {wrong[0]}")
    # Each value agrees with its own record; the one that the record of all of them shows is the one to compare.
    shown = next(v for v in verdicts if v.recorded.value == recorded.value and v.recorded.kind == recorded.kind)
    return Recheck(shown.value, max(abs(shown.value - recorded.value), 1e-15), fingerprint)
