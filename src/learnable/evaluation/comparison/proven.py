"""What is proven about the winner: the bound on its risk from the hold-out, and the theorem behind it with its checks.

The hold-out took no part in the choice of the winner, so that one model is judged by it and δ is not divided.
Training-set bounds are not given here: the encoder was fitted to the same rows, which they do not cover. `learnable
verify` gives the one that does.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import get_tags

from ...core.errors import LearnableError
from ..guarantees.explain import explain_theory, theorem_of
from ..guarantees.risk_bound import bounds_of_predictions, risk_bound

#: Checks look at no more training rows than this: they must cost little beside the fit.
_MOST_ROWS = 2000
NO_RANGE = (
    "a squared error has no largest value, so that nothing bounds the risk of a regression without the range of its "
    "target: learnable.risk_bound takes it as target_range"
)


def proven(
    model: Any,
    X: Any,
    y: NDArray[Any],
    truth: NDArray[Any],
    predicted: NDArray[Any],
    classes: list[str] | None,
    level: float,
) -> dict[str, Any]:
    """Return the bound of the hold-out, and the theorem behind the model with its checks on training rows (X, y)."""
    found: dict[str, Any] = {"sentence": NO_RANGE, "bound": None, "checks": [], "theorem": None}
    if classes is not None:
        bounds = bounds_of_predictions(truth, predicted, len(classes), delta=1.0 - level, model=type(model).__name__)
        best = bounds.of("held-out") or bounds.bounds[0]
        found["sentence"] = bounds.sentence
        found["bound"] = {"value": best.value, "verdict": best.verdict, "name": best.name, "n": best.n}
        found["checks"] = [check._asdict() for check in best.assumptions]
    found["theorem"] = _theorem(model, X[:_MOST_ROWS], y[:_MOST_ROWS])
    return found


def proven_of(model: Any, X: Any, y: NDArray[Any]) -> dict[str, Any] | None:
    """Return what given rows prove about a fitted model, be they held out or its own; None if nobody can tell which.

    Examples
    --------
    >>> import learnable as ln
    >>> from learnable.evaluation.comparison.proven import proven_of
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]
    >>> proven_of(ln.LogisticRegression().fit(X, y), X, y)["bound"]["verdict"]
    'vacuous'
    """
    try:
        bounds = risk_bound(model, X, y)
    except LearnableError:
        return None
    best = bounds.of("held-out") or bounds.best
    found: dict[str, Any] = {"sentence": bounds.sentence, "bound": None, "checks": []}
    if best is not None:
        found["bound"] = {"value": best.value, "verdict": best.verdict, "name": best.name, "n": best.n}
        found["checks"] = [check._asdict() for check in best.assumptions]
    return found | {"theorem": _theorem(model, X[:_MOST_ROWS], y[:_MOST_ROWS])}


def _theorem(model: Any, X: Any, y: NDArray[Any]) -> dict[str, Any] | None:
    inner = model
    while theorem_name(inner) in (None, "wrapped", "calibration"):
        inside = (
            getattr(inner, "model_", None) or getattr(inner, "estimator_", None) or getattr(inner, "regressor_", None)
        )
        if inside is None:
            break
        inner = inside
    if theorem_name(inner) is None:
        return None
    try:
        fits = inner is model and get_tags(inner).target_tags.required
        return explain_theory(inner, X, y).to_dict() if fits else explain_theory(inner).to_dict()
    except (LearnableError, ValueError, np.linalg.LinAlgError):
        return explain_theory(inner).to_dict()


def theorem_name(model: Any) -> str | None:
    """Return the name of the theorem that a model's class declares."""
    name = getattr(type(model), "_theory", None)
    if name is not None:
        theorem_of(type(model))
    return name
