"""One bound, and all bounds of one model, as plain records."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import is_classifier, is_regressor

from ...core.errors import DataError, LearnableError, ParameterError
from ...data import read_table, take_named_columns
from ...data.rows import count_rows
from ...theory.concentration import Check, binomial_lower

Kind = Literal["held-out", "training"]
Verdict = Literal["vacuous", "useless", "informative"]
#: Rows whose labels are compared with the signs of their scores.
_PREDICTED_AGAIN = 100
#: Beyond this many rows none are counted.
_MOST_ROWS = 10**12


@dataclass(frozen=True)
class Bound:
    """An upper bound on the risk of a fitted model.

    Attributes
    ----------
    name : str
        Of the theorem.
    kind : {"held-out", "training"}
        Which rows it is computed from.
    value : float
        The risk is at most this, with probability at least 1 − `delta` over the rows.
    empirical : float
        What the bound starts from: the share of errors, the mean loss, the mean loss at a margin …
    delta : float
        This bound's share of the probability of failure.
    n : int
        Rows it is computed from.
    verdict : {"vacuous", "useless", "informative"}
        No better than knowing nothing; no better than the best constant prediction; better than that.
    statement, source : str
        The theorem, and where it stands.
    inputs : dict
        What went into the formula.
    assumptions : tuple of Check
        What it assumes; `holds` is False where the data break it, None where they cannot tell.
    """

    name: str
    kind: Kind
    value: float
    empirical: float
    delta: float
    n: int
    verdict: Verdict
    statement: str
    source: str
    inputs: dict[str, Any]
    assumptions: tuple[Check, ...]
    at: Callable[[int], float] | None = field(default=None, repr=False, compare=False)

    @property
    def broken(self) -> tuple[Check, ...]:
        """The assumptions that the data break."""
        return tuple(check for check in self.assumptions if check.holds is False)

    def rows_for(self, value: float) -> int | None:
        """Return how many rows would bring the bound down to `value` if all rates stayed; None if none would."""
        if self.at is None:
            return None
        low = 0
        high = self.n
        while self.at(high) > value:
            low = high
            high = 2 * high
            if high > _MOST_ROWS:
                return None
        while high - low > max(1, high // 10_000):
            middle = (low + high) // 2
            low, high = (middle, high) if self.at(middle) > value else (low, middle)
        return high

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON types."""
        return {
            "name": self.name,
            "kind": self.kind,
            "value": self.value if math.isfinite(self.value) else None,
            "empirical": self.empirical,
            "delta": self.delta,
            "n": self.n,
            "verdict": self.verdict,
            "statement": self.statement,
            "source": self.source,
            "inputs": self.inputs,
            "assumptions": [check._asdict() for check in self.assumptions],
        }


@dataclass(frozen=True)
class RiskBounds:
    """Every bound that applies to one fitted model, the tightest first.

    Attributes
    ----------
    model : str
        Its class.
    loss : str
        What is bounded: "error rate", or "mean squared error of clipped predictions".
    largest : float
        The largest value of the loss.
    delta : float
        Held-out bounds fail, any of them, with at most this probability; training-set bounds likewise.
    bounds : tuple of Bound
        Sorted by value; those whose assumptions the data break stand last.
    baseline : float
        Lower bound on the risk of the best constant prediction, at the same δ: what separates useless from informative.
    reasons : tuple of str
        Which bounds do not apply, and why.
    """

    model: str
    loss: str
    largest: float
    delta: float
    bounds: tuple[Bound, ...]
    baseline: float
    reasons: tuple[str, ...]

    @property
    def best(self) -> Bound | None:
        """The tightest bound whose assumptions the data do not break; None if there is none."""
        return next((bound for bound in self.bounds if not bound.broken), None)

    def of(self, kind: Kind) -> Bound | None:
        """Return the tightest held-out or training-set bound; None if there is none."""
        if kind not in ("held-out", "training"):
            raise ParameterError(f"RiskBounds.of: kind must be 'held-out' or 'training'; got {kind!r}.")
        return next((bound for bound in self.bounds if bound.kind == kind and not bound.broken), None)

    @property
    def sentence(self) -> str:
        """The tightest bound in words; or why there is none."""
        best = self.of("held-out") or self.best
        if best is None:
            return f"nothing is proven about its risk: {self._why_none()}"
        return self.sentence_of(best)

    def _why_none(self) -> str:
        """Say why no bound holds: what the first of them assumes and the rows break, or why none was tried."""
        if self.bounds:
            broken = self.bounds[0].broken[0]
            return f"its bounds assume that {broken.assumption}, which does not hold here ({broken.detail})"
        return self.reasons[0] if self.reasons else "no bound applies"

    def sentence_of(self, bound: Bound) -> str:
        """Return one bound in words."""
        level = f"{100.0 * (1.0 - self.delta):.4g} %"
        rows = f"{bound.name}, {bound.n} {'held-out' if bound.kind == 'held-out' else 'training'} rows"
        if self.loss == "error rate":
            shown = f"the error is below {rounded_up(100.0 * min(bound.value, 1.0), 1):.1f} %"
        else:
            least = min(bound.value, self.largest)
            digits = 3 - math.floor(math.log10(least)) if math.isfinite(least) and least > 0.0 else 0
            shown = f"the {self.loss} is below {rounded_up(least, digits):.4g}"
        return f"with {level} confidence {shown} ({rows}): {_MEANING[bound.verdict]}"

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON types."""
        return {
            "model": self.model,
            "loss": self.loss,
            "largest": self.largest,
            "delta": self.delta,
            "baseline": self.baseline,
            "sentence": self.sentence,
            "bounds": [bound.to_dict() for bound in self.bounds],
            "reasons": list(self.reasons),
        }

    def __str__(self) -> str:
        lines = [self.sentence]
        for bound in self.bounds:
            broken = "; broken: " + ", ".join(check.assumption for check in bound.broken) if bound.broken else ""
            lines.append(f"  {bound.kind:9s} {bound.name:36s} {bound.value:10.4g}  {bound.verdict}{broken}")
        lines += [f"  none      {reason}" for reason in self.reasons]
        return "\n".join(lines)


def rounded_up(value: float, decimals: int) -> float:
    """Return a number of so many decimals that is not below the one given: what is proven of 5.63 % is not of 5.6 %.

    Examples
    --------
    >>> rounded_up(5.625, 1), rounded_up(5.6, 1), rounded_up(1234.5, -1)
    (5.7, 5.6, 1240.0)
    """
    if not math.isfinite(value):
        return value
    scale = 10.0**decimals
    return math.ceil(value * scale * (1.0 - 1e-12)) / scale


#: A verdict in a sentence that may stand alone.
_MEANING: Final = {
    "vacuous": "vacuous, every model is below that",
    "useless": "useless, a constant guess may do as well",
    "informative": "informative",
}


def verdict_of(value: float, largest: float, baseline: float) -> Verdict:
    """Return the word for a bound: vacuous at the largest loss, to three digits, useless at the best constant's."""
    if not value < 0.9995 * largest:
        return "vacuous"
    return "useless" if value >= baseline else "informative"


# --------------------------------------------------------------------------------------------------------------------
# A bound before it is judged.


class Draft(NamedTuple):
    """A bound on a loss in [0, 1], at its share of δ."""

    name: str
    value: float
    empirical: float
    delta: float
    statement: str
    source: str
    inputs: dict[str, Any]
    assumptions: tuple[Check, ...]
    at: Callable[[int], float] | None = None


# --------------------------------------------------------------------------------------------------------------------
# What a bound is computed from: rows, their losses under a fitted model, and whether the model saw them.


Array = NDArray[np.float64]


@dataclass(frozen=True)
class Evidence:
    """Rows, and what a fitted model makes of them.

    Attributes
    ----------
    model : estimator
        Fitted.
    X : any container
        Rows.
    y : (n,) array
        Targets, as given.
    losses : (n,) array
        In [0, 1]: errors, or squared errors of clipped predictions over the squared range.
    codes : (n,) int array or None
        Positions of the labels in `classes`; −1 for a label that the model does not know.
    classes : array or None
        Labels of a classifier.
    low, high : float
        Range of the targets of a regressor.
    memory : dict
        What several bounds need and one computes.
    """

    model: Any
    X: Any
    y: NDArray[Any]
    losses: Array
    codes: NDArray[np.int64] | None
    classes: NDArray[Any] | None
    low: float = 0.0
    high: float = 1.0
    memory: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    def once(self, name: str, compute: Callable[[], Any]) -> Any:
        """Return what was computed under a name before, or compute it."""
        if name not in self.memory:
            self.memory[name] = compute()
        return self.memory[name]

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.losses)

    @property
    def errors(self) -> int:
        """Number of errors of a classifier."""
        return round(float(self.losses.sum()))

    @property
    def scale(self) -> float:
        """What a loss of one stands for."""
        return 1.0 if self.classes is not None else (self.high - self.low) ** 2

    @property
    def signs(self) -> Array:
        """Labels as ±1, of two classes."""
        return np.where(np.asarray(self.codes) == 1, 1.0, -1.0)


def gather(model: Any, X: Any, y: Any, target_range: tuple[float, float] | None) -> Evidence | str:
    """Return the evidence, or the reason why there is no risk to bound."""
    owner = "risk_bound"
    if isinstance(X, str) or hasattr(X, "__fspath__"):
        X = read_table(X)
    if not hasattr(model, "predict") or not (is_classifier(model) or is_regressor(model)):
        return f"{type(model).__name__} predicts no target, so that there is no risk to bound"
    if y is None:
        raise DataError(f"{owner}: y is missing; pass the true targets of the rows.")
    X, y, _ = take_named_columns(owner, X, y, None)
    if not (hasattr(X, "shape") or sp.issparse(X)):
        X = np.asarray(X)
    target = np.asarray(y)
    n = count_rows(X)
    if len(target) != n or n == 0:
        raise DataError(f"{owner}: X has {n} rows, y has {len(target)}; pass one target per row, and at least one row.")
    if target.ndim != 1:
        return "several targets per row have no single risk; bound each column by its own model"
    if is_classifier(model):
        predicted, memory = _predictions(model, X)
        if predicted.shape != target.shape:
            return f"{type(model).__name__} predicts {predicted.shape[1:]} values per row"
        classes = np.asarray(model.classes_)
        codes = np.full(n, -1, dtype=np.int64)
        for code, label in enumerate(classes):
            codes[target == label] = code
        losses = (predicted != target).astype(np.float64)
        memory["predicted"] = predicted
        return Evidence(model, X, target, losses, codes, classes, memory=memory)
    if target_range is None:
        return (
            "a squared loss has no largest value; pass target_range=(low, high), the range that no target can leave, "
            "and predictions are clipped to it"
        )
    return _regression(owner, model, X, target, target_range)


def _predictions(model: Any, X: Any) -> tuple[NDArray[Any], dict[str, Any]]:
    """Return the predicted labels, and scores that were computed for them.

    A kernel machine of two classes predicts the sign of its score, which its margins need, too: one pass serves both.
    Some rows are predicted all the same, and where their labels are others than the signs say, all are.
    """
    if hasattr(type(model), "function_") and len(np.asarray(model.classes_)) == 2 and hasattr(X, "shape"):
        scores = np.ravel(np.asarray(model.decision_function(X), dtype=np.float64))
        labels = np.asarray(model.classes_)[(scores > 0.0).astype(np.int64)]
        few = min(X.shape[0], _PREDICTED_AGAIN)
        part = X.iloc[:few] if hasattr(X, "iloc") else X[:few]
        if len(labels) == X.shape[0] and (np.asarray(model.predict(part)) == labels[:few]).all():
            return labels, {"scores": scores}
    return np.asarray(model.predict(X)), {}


def _regression(owner: str, model: Any, X: Any, y: NDArray[Any], target_range: tuple[float, float]) -> Evidence | str:
    low, high = (float(end) for end in target_range)
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise ParameterError(f"{owner}: target_range must be two finite numbers, low < high; got {target_range}.")
    numbers = y.astype(np.float64)
    if not np.isfinite(numbers).all():
        raise DataError(f"{owner}: y has values that are not finite; the loss of such a row is unbounded.")
    if numbers.min() < low or numbers.max() > high:
        raise DataError(
            f"{owner}: y runs from {numbers.min():g} to {numbers.max():g}, outside target_range=({low:g}, {high:g}); "
            "pass the range that no target can leave."
        )
    predicted = np.asarray(model.predict(X), dtype=np.float64)
    if predicted.shape != numbers.shape:
        return f"{type(model).__name__} predicts {predicted.shape[1:]} values per row"
    losses = ((np.clip(predicted, low, high) - numbers) / (high - low)) ** 2
    return Evidence(model, X, numbers, losses, None, None, low, high)


def baseline_of(evidence: Evidence, delta: float) -> float:
    """Return a lower bound on the risk of the best constant prediction, at confidence 1 − δ.

    Classes: the least of the lower bounds of 1 − P(class), at δ/K each. Numbers: the standard deviation of values in an
    interval of length one is at least that of the sample minus √(2 ln(1/δ)/(n − 1)) (Maurer and Pontil, theorem 10).
    """
    n = evidence.n
    if evidence.classes is not None:
        labels, counts = np.unique(evidence.y, return_counts=True)
        share = delta / max(len(labels), len(evidence.classes))
        return min(binomial_lower(n - int(count), n, share) for count in counts)
    if n < 2:
        return 0.0
    spread = float(evidence.y.std(ddof=1)) / (evidence.high - evidence.low)
    return evidence.scale * max(0.0, spread - math.sqrt(-2.0 * math.log(delta) / (n - 1))) ** 2


def saw_these_rows(model: Any, X: Any, y: Any) -> bool | None:
    """Tell whether the model was fitted to exactly these rows; None if it does not remember."""
    recorded = getattr(getattr(model, "certificate_", None), "fingerprint", "")
    door = getattr(type(model), "_door", None)
    draft = getattr(model, "_draft", None)
    if not recorded or door is None or draft is None:
        return None
    try:
        return bool(door(draft(), X, y, None).fingerprint == recorded)
    except (LearnableError, ValueError, TypeError):
        return False


def stored_rows(model: Any) -> Any:
    """Return the training rows that a model keeps (neighbours, support vectors, points of a kernel), or None."""
    for name in ("rows_", "X_fit_", "X_train_", "support_vectors_"):
        rows = getattr(model, name, None)
        if rows is not None and getattr(rows, "ndim", 0) == 2:
            return rows
    return None


def count_shared_rows(X: Any, other: Any) -> NDArray[np.bool_] | None:
    """Return which rows of X stand in another table, too; None for tables whose rows cannot be compared."""
    keys = _row_keys(X)
    others = _row_keys(other)
    if keys is None or others is None:
        return None
    known = set(others)
    return np.array([key in known for key in keys], dtype=np.bool_)


def _row_keys(X: Any) -> list[Any] | None:
    if sp.issparse(X):
        X = X.toarray() if X.shape[0] * X.shape[1] <= 10**7 else None
    if X is None:
        return None
    if hasattr(X, "to_numpy"):
        X = X.to_numpy()
    array = np.asarray(X)
    if array.ndim != 2:
        return None
    if array.dtype.kind in "fiub":
        array = np.ascontiguousarray(array, dtype=np.float64) + 0.0  # −0 is 0
        return [row.tobytes() for row in array]
    return [tuple(str(value) for value in row) for row in array]
