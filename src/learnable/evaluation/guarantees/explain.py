"""The theorem behind an estimator, and whether its assumptions hold for a fitted model and its data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...core.errors import DataError, ParameterError
from ...core.registry import REGISTRY, registered_class
from ...data.door import take_named_columns
from ...theory.concentration import Check
from .checks import CHECKS
from .theorems import THEOREMS, Theorem


@dataclass(frozen=True)
class Explanation:
    """What is known of an estimator, and what its data say to it.

    Attributes
    ----------
    model : str
        Its class.
    kind : str
        optimality, consistency, rate, oracle inequality, coverage, approximation, reduction, or none.
    assumes : tuple of str
        What the theorem assumes.
    guarantees : str
        What it then guarantees.
    reference : str
        Where it is proven.
    checks : tuple of Check
        Assumptions held against the data; empty without data. `holds` is None where data cannot tell.
    """

    model: str
    kind: str
    assumes: tuple[str, ...]
    guarantees: str
    reference: str
    checks: tuple[Check, ...] = ()

    @property
    def broken(self) -> tuple[Check, ...]:
        """The assumptions that the data break."""
        return tuple(check for check in self.checks if check.holds is False)

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON types."""
        return {
            "model": self.model,
            "kind": self.kind,
            "assumes": list(self.assumes),
            "guarantees": self.guarantees,
            "reference": self.reference,
            "checks": [check._asdict() for check in self.checks],
        }

    def __str__(self) -> str:
        lines = [f"{self.model}: {self.guarantees} ({self.reference})"]
        lines += [f"  assumes: {assumption}" for assumption in self.assumes]
        words = {True: "holds", False: "BROKEN", None: "cannot be told"}
        lines += [f"  {words[check.holds]}: {check.assumption} ({check.detail})" for check in self.checks]
        return "\n".join(lines)


def explain_theory(model: Any, X: Any = None, y: Any = None) -> Explanation:
    """Return the theorem behind an estimator; with data, which of its assumptions they break.

    Parameters
    ----------
    model : estimator, class or str
        An estimator of this library, fitted or not, its class, or its name.
    X, y : optional
        Training data of a fitted model.

    Examples
    --------
    >>> import numpy as np
    >>> import learnable as ln
    >>> from learnable.evaluation import explain_theory
    >>> explain_theory("Perceptron").guarantees
    'at most R²/γ² mistakes in all passes; the last vector then separates the rows'
    >>> x = np.linspace(0.0, 1.0, 200)[:, None]
    >>> y = x.ravel() ** 2
    >>> [check.assumption for check in explain_theory(ln.LinearRegression().fit(x, y), x, y).broken][0]
    'y is linear in the columns'
    """
    cls = _class_of(model)
    theorem = theorem_of(cls)
    checks: list[Check] = []
    if X is not None:
        if isinstance(model, (str, type)):
            raise ParameterError(f"explain_theory: data are held against a fitted model; got {model!r}. Fit it first.")
        if not hasattr(model, "certificate_") and not getattr(model, "n_features_in_", None):
            raise DataError(f"explain_theory: {cls.__name__} is not fitted; fit it to these data first.")
        X, y, _ = take_named_columns("explain_theory", X, y, None)
        found = (CHECKS[name](model, X, y) for name in theorem.checks)
        checks = [check for check in found if check is not None]
    return Explanation(
        cls.__name__, theorem.kind, theorem.assumes, theorem.guarantees, theorem.reference, tuple(checks)
    )


def theorem_of(cls: type) -> Theorem:
    """Return the theorem that a class declares."""
    name = getattr(cls, "_theory", None)
    if name is None:
        raise ParameterError(
            f"explain_theory: {cls.__name__} declares no theory; set _theory to one of {', '.join(THEOREMS)}."
        )
    if name not in THEOREMS:
        raise ParameterError(f"explain_theory: {cls.__name__} declares the unknown theory {name!r}.")
    return THEOREMS[name]


def _class_of(model: Any) -> type:
    if isinstance(model, str):
        if model not in REGISTRY:
            raise ParameterError(f"explain_theory: there is no model {model!r}; `learnable models` lists them.")
        return registered_class(model)
    return model if isinstance(model, type) else type(model)
