"""Independent checks of models around models of the same rows: standardised targets, and blends."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..core.checking import Recheck, Verdict
from ..core.errors import VerificationError
from ..core.registry import REGISTRY, registered_name, resolve
from ..core.verification import verify
from ..data.frames import read_values, take_named_columns

#: Sums of the targets in another order differ by no more than this share of their spread.
_ROUNDING = 1e-9


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
