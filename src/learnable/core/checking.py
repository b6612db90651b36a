"""The record that every checker returns, and what checkers need to compare a fitted number with its definition.

A checker is a function `(model, X, y, sample_weight) -> Recheck` in a file `verify*.py`. Such files import `core`,
`data`, NumPy, SciPy, scikit-learn and each other, and nothing that a fit uses: an import contract holds it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .errors import ModelFileError
from .estimator import Certificate

#: A recomputed value may differ from the record by this share, besides the rounding of its own computation.
AGREEMENT = 0.01
#: What rounding may add to a bound: sums of single precision go into it.
BOUND_ROUNDING = 1e-6
#: A tolerance below this asks for more digits than a check has; rounding up to it does not count against a model.
FINEST_CLAIM = 1e-9


class Recheck(NamedTuple):
    """What a checker found."""

    value: float  #: the certificate's value, computed afresh
    rounding: float  #: how large `value` may come out by rounding alone
    fingerprint: str  #: the fingerprint of the data it was given
    inner: Verdict | None = None  #: on the model inside, where it has a certificate of its own
    bound: float | None = None  #: the relative suboptimality, proven afresh; inf if nothing proves one


@dataclass(frozen=True)
class Verdict:
    """The outcome of `verify`; true when the claim holds and agrees with the record.

    Attributes
    ----------
    ok : bool
        Whether every check passed; `bool(verdict)` is the same.
    value : float
        The certificate's value, recomputed.
    recorded : Certificate
        The certificate that came with the model.
    reasons : tuple of str
        What failed, in words; empty when `ok`.
    inner : Verdict or None
        On the model inside, where it has a certificate of its own: that behind prediction intervals, for example.
    unchecked : tuple of str
        What was not re-derived, in words; of a scikit-learn workflow only.
    members : tuple of (str, Verdict)
        On each model of a voting or stacking workflow; `value` and `recorded` are those of the weakest.
    """

    ok: bool
    value: float
    recorded: Certificate
    reasons: tuple[str, ...] = ()
    inner: Verdict | None = None
    unchecked: tuple[str, ...] = ()
    members: tuple[tuple[str, Verdict], ...] = ()

    def __bool__(self) -> bool:
        return self.ok

    def __str__(self) -> str:
        if self.ok:
            claim = f"{self.recorded.tolerance:.3g}"
            if self.value > self.recorded.tolerance:
                claim += f" + {self.value - self.recorded.tolerance:.2g} of rounding"
            gaps = f"; not checked: {'; '.join(self.unchecked)}" if self.unchecked else ""
            shown = f"{self.recorded.kind} {self.value:.3g} <= {claim} (recorded {self.recorded.value:.3g})"
            return f"verified: {shown}{gaps}"
        return "NOT verified: " + "; ".join(self.reasons)


def has_shapes(model: Any, **shapes: tuple[int, ...]) -> bool:
    """Tell whether fitted arrays have these shapes; −1 stands for any length."""
    for name, shape in shapes.items():
        found = np.asarray(getattr(model, name, None)).shape
        if len(found) != len(shape) or any(n not in (-1, m) for n, m in zip(shape, found, strict=True)):
            return False
    return True


def relative(found: Any, expected: Any, size: Any = None) -> float:
    """Return the largest |found − expected| / size; by default relative to what is expected. NaN stays NaN."""
    found = np.asarray(found, dtype=np.longdouble)
    expected = np.asarray(expected, dtype=np.longdouble)
    if found.shape != expected.shape:
        return np.inf
    size = np.broadcast_to(abs(expected) if size is None else size, expected.shape)
    gap = np.where(found == expected, 0, abs(found - expected))  # infinities that agree
    return float(np.max(np.where(gap == 0, 0, gap / np.where(size > 0, size, np.finfo(float).tiny)), initial=0.0))


def flaw_of(parts: Iterable[Any]) -> str:
    """Say what is wrong with the shapes and ranges of fitted arrays, as a file's reader would; "" if nothing is."""
    try:
        for part in parts:
            if hasattr(part, "_check_loaded"):
                part._check_loaded()
    except ModelFileError as error:
        return str(error).removeprefix("load: ").rstrip(".")
    return ""
