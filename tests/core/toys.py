"""Small estimators for the tests of the core, which must not need a real model."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin

from learnable.core import Certificate, Estimator, ModelFileError
from learnable.core.checking import Recheck
from learnable.core.declare import MAX_ITER, MAX_SECONDS, TOLERANCE, Matches, Number, Options, optional
from learnable.core.registry import REGISTRY, Entry


def simple_door(estimator, X, y, sample_weight, run=None):
    X = np.asarray(X, dtype=np.float64)
    estimator.n_features_in_ = X.shape[1]
    return SimpleNamespace(X=X, y=np.asarray(y, dtype=np.float64), fingerprint=fingerprint(X, y))


def fingerprint(X, y) -> str:
    return f"{float(np.sum(X) + 1e3 * np.sum(y)):.6e}"


class Halving(RegressorMixin, Estimator):
    """Predicts a constant that creeps towards the mean of y: the distance halves with every iteration."""

    _parameters = {  # noqa: RUF012
        "start": Number(),
        "max_iter": MAX_ITER,
        "tol": TOLERANCE,
        "max_seconds": MAX_SECONDS,
        "trouble": optional(Options("error", "interrupt", "extra", "stop")),
    }
    _door = simple_door

    def __init__(self, start=0.0, max_iter=50, tol=1e-6, max_seconds=None, trouble=None):
        self.start = start
        self.max_iter = max_iter
        self.tol = tol
        self.max_seconds = max_seconds
        self.trouble = trouble

    def _fit(self, table, run):
        mean = table.y.mean()
        distance = abs(self.start - mean)
        self.constant_ = self.start
        if self.trouble == "extra":
            self.extra_ = "only this fit has it"
        for iteration in range(1, self.max_iter + 1):
            if self.trouble == "error" and iteration == 2:
                raise ValueError("Halving: out of luck")
            if self.trouble == "interrupt" and iteration == 2:
                raise KeyboardInterrupt
            if self.trouble == "stop" and iteration == 2:
                run.flag.raise_()
            distance /= 2
            self.constant_ = mean + distance
            if run.progress(iteration, distance) or distance <= self.tol:
                break
        self.n_iter_ = iteration
        return Certificate("gap", distance, self.tol, bound=None, n_iter=iteration)

    def predict(self, X):
        return np.full(len(X), self.constant_)


class Proofless(Halving):
    """A fit that proves nothing."""

    def _fit(self, table, run):
        self.constant_ = 0.0
        return Certificate("none", np.nan, 0.0)


class Box(Estimator):
    """Holds anything, as a parameter or as a fitted attribute."""

    _parameters = {"size": Number(low=0.0), "content": Matches(lambda value: True, "anything")}  # noqa: RUF012

    def __init__(self, content=None, size=1.0):
        self.content = content
        self.size = size

    def predict(self, X):
        return np.asarray(X) @ self.coef_

    @property
    def capacity_(self):
        return self.size

    def _check_loaded(self):
        coef = getattr(self, "coef_", np.zeros(0))
        if coef.ndim != 1 or not np.isfinite(coef).all():
            raise ModelFileError("load: Box: coef_ must be finite numbers in one row")


class SubBox(Box):
    """A subclass, which is not registered."""


@dataclass(frozen=True)
class Span:
    """A part that is stored inside models."""

    low: float
    high: float
    names: tuple[str, ...] = ()
    weights: NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        if not self.low <= self.high:
            raise ValueError("Span: low must not exceed high")


def recheck_halving(model, X, y, sample_weight) -> Recheck:
    distance = abs(model.constant_ - np.mean(y))
    return Recheck(distance, 1e-12, fingerprint(np.asarray(X, dtype=np.float64), y))


def register(monkeypatch) -> None:
    """Enter the toys into the registry for the time of a test."""
    for cls, estimator in ((Halving, True), (Proofless, True), (Box, True), (Span, False)):
        checker = f"{__name__}:recheck_halving" if issubclass(cls, Halving) else None
        entry = Entry(f"{__name__}:{cls.__name__}", checker, estimator)
        monkeypatch.setitem(REGISTRY, cls.__name__, entry)
