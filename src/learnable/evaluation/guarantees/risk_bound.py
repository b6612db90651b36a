"""Every bound that applies to a fitted model, sorted by tightness, each called what it is.

From rows that the model has not seen: Clopper–Pearson, kl, empirical Bernstein, betting; δ is divided by the number
of models that were judged by the same rows. From its training rows: bounds by description, VC dimension, margins,
PAC-Bayes, compression, stability, leave-one-out, whichever apply; δ is split over those that are tried, which depend
on the class of the model alone, so that all of them hold together.

A bound is *vacuous* if it is no better than the largest loss, *useless* if no better than the best constant
prediction, and *informative* otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ...core.declare import Number, Options, check_parameters
from ...core.errors import DataError
from ...theory.concentration.base import Check, check_order
from .draft import Draft
from .evidence import Evidence, baseline_of, count_shared_rows, gather, saw_these_rows, stored_rows
from .families import candidates_of
from .held_out import held_out_drafts, rows_in_order, widen_by_shared
from .record import Bound, Kind, RiskBounds, verdict_of

_LEVEL = Number(low=0.0, high=1.0, low_open=True, high_open=True)
_COUNT = Number(low=1, integer=True)
_KINDS = Options("auto", "held-out", "training")


def risk_bound(
    model: Any,
    X: Any,
    y: Any = None,
    delta: float = 0.05,
    kind: Literal["auto", "held-out", "training"] = "auto",
    *,
    X_train: Any = None,
    y_train: Any = None,
    target_range: tuple[float, float] | None = None,
    uses: int = 1,
    choices: int = 1,
) -> RiskBounds:
    """Return what is proven about the risk of a fitted model.

    Parameters
    ----------
    model : estimator
        Fitted classifier or regressor, of this library or with scikit-learn's methods.
    X, y
        Rows with their targets. If they are the rows that the model was fitted to (its certificate remembers),
        bounds are those of training rows; otherwise the model must not have seen them.
    delta : float
        Probability, over the draw of the rows, that some bound of a kind fails.
    kind : {"auto", "held-out", "training"}
        Insist on one kind; held-out bounds from training rows are refused. Models that do not remember their rows,
        pipelines for example, need it.
    X_train, y_train : optional
        The training rows, if X and y are others: both kinds are computed, and rows that stand in both tables are
        counted as full losses.
    target_range : (low, high), optional
        Of a regressor: the range that no target can leave. Predictions are clipped to it and the squared loss is
        bounded; without it there is no bound.
    uses : int
        How many models, this one included, were or will be judged by the same held-out rows: δ is divided by it.
        They must be fixed before the rows are looked at.
    choices : int
        How many settings, such as values of λ, were tried on the training rows before this model was chosen: δ of
        the training-set bounds is divided by it.

    Returns
    -------
    RiskBounds
        Sorted, the tightest first; `sentence` says it in words, `reasons` what does not apply.

    Examples
    --------
    >>> import numpy as np
    >>> import learnable as ln
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(3000, 3))
    >>> y = (X[:, 0] + 0.3 * rng.normal(size=3000) > 0).astype(int)
    >>> model = ln.LogisticRegression().fit(X[:2000], y[:2000])
    >>> ln.risk_bound(model, X[2000:], y[2000:]).sentence
    'with 95 % confidence the error is below 10.5 % (Clopper–Pearson, 1000 held-out rows): informative'
    >>> ln.risk_bound(model, X[:2000], y[:2000]).best.name
    'VC, relative deviations'
    """
    owner = "risk_bound"
    check_parameters(
        owner,
        {"delta": delta, "kind": kind, "uses": uses, "choices": choices},
        {"delta": _LEVEL, "kind": _KINDS, "uses": _COUNT, "choices": _COUNT},
    )
    evidence = gather(model, X, y, target_range)
    if isinstance(evidence, str):
        return RiskBounds(type(model).__name__, "risk", math.nan, delta, (), math.nan, (evidence,))
    saw = saw_these_rows(model, X, y)
    if kind == "auto" and saw is None:
        raise DataError(
            f"{owner}: {type(model).__name__} does not remember its training rows; these may be among them. "
            "Say kind='held-out' if it has not seen them, kind='training' if it was fitted to them."
        )
    if kind == "held-out" and saw:
        raise DataError(
            f"{owner}: the model was fitted to these rows, so that they hold nothing out. Pass rows that it "
            "has not seen, or kind='training'."
        )
    if kind == "training" and saw is False and X_train is None:
        raise DataError(
            f"{owner}: kind='training' needs the rows that the model was fitted to, without weights; these are others."
        )
    as_training = kind == "training" or (kind == "auto" and saw is True)
    drafts: list[tuple[Kind, Evidence, Draft]] = []
    reasons: list[str] = []
    training = evidence if as_training else None
    if not as_training:
        judged, unseen = _look_for_shared(evidence, X_train)
        known = (rows_in_order(evidence), unseen)
        drafts += [("held-out", judged, draft) for draft in held_out_drafts(judged, delta, uses, known)]
    if X_train is not None:
        found = gather(model, X_train, y_train, target_range)
        training = found if isinstance(found, Evidence) else None
        if saw_these_rows(model, X_train, y_train) is False:
            raise DataError(f"{owner}: X_train and y_train are not the rows that the model was fitted to.")
    if training is not None:
        found_drafts, why = _training_drafts(training, delta / choices)
        drafts += [("training", training, draft) for draft in found_drafts]
        reasons += why
    return _assemble(model, evidence, drafts, reasons, delta)


def bounds_of_predictions(
    truth: NDArray[Any],
    predicted: NDArray[Any],
    n_classes: int,
    *,
    delta: float = 0.05,
    uses: int = 1,
    model: str = "model",
) -> RiskBounds:
    """Return held-out bounds of a classifier from its predictions alone, labels being numbers from 0 on.

    Parameters
    ----------
    truth, predicted : arrays of shape (n,)
        Labels of rows that the model has not seen, and what it predicts for them.
    n_classes : int
        Number of classes.
    delta, uses
        As in `risk_bound`.
    model : str
        Its name.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.evaluation.guarantees import bounds_of_predictions
    >>> truth = np.arange(100) % 2
    >>> round(bounds_of_predictions(truth, truth, 2).best.value, 4)
    0.0295
    """
    rules = {"delta": _LEVEL, "uses": _COUNT, "n_classes": _COUNT}
    check_parameters("bounds_of_predictions", {"delta": delta, "uses": uses, "n_classes": n_classes}, rules)
    if len(truth) == 0 or truth.shape != predicted.shape or truth.ndim != 1:
        raise DataError(f"bounds_of_predictions: shapes of truth {truth.shape} and predicted {predicted.shape} differ.")
    codes = truth.astype(np.int64)
    losses = (truth != predicted).astype(np.float64)
    evidence = Evidence(None, None, truth, losses, codes, np.arange(n_classes))
    unseen = Check("the model has not seen these rows", True, "they were set aside before any model was fitted")
    drafts = held_out_drafts(evidence, delta, uses, (rows_in_order(evidence), unseen))
    return _assemble(model, evidence, [("held-out", evidence, draft) for draft in drafts], [], delta)


def rows_needed(
    model: Any, X: Any, y: Any = None, delta: float = 0.05, *, width: float | None = None, **options: Any
) -> dict[str, int | None]:
    """Return how many rows would halve what each bound adds to the empirical risk, if all rates stayed.

    Parameters
    ----------
    model, X, y, delta
        As in `risk_bound`.
    width : float, optional
        Bring the addition down to this, instead of half of what it is; in the units of the loss.
    **options
        Further arguments of `risk_bound`.

    Returns
    -------
    dict of str to int or None
        By the name of the bound; None where more rows of the same kind do not help.

    Examples
    --------
    >>> import numpy as np
    >>> import learnable as ln
    >>> from learnable.evaluation import rows_needed
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(3000, 3))
    >>> y = (X[:, 0] + 0.3 * rng.normal(size=3000) > 0).astype(int)
    >>> model = ln.LogisticRegression().fit(X[:2000], y[:2000])
    >>> 3500 < rows_needed(model, X[2000:], y[2000:])["Clopper–Pearson"] < 4500
    True
    """
    if width is not None:
        check_parameters("rows_needed", {"width": width}, {"width": Number(low=0.0, low_open=True)})
    found = risk_bound(model, X, y, delta, **options)
    needed: dict[str, int | None] = {}
    for bound in found.bounds:
        # A vacuous bound's addition is beyond the loss itself: half the range is the goal then.
        addition = min(bound.value, found.largest) - bound.empirical if width is None else 2.0 * width
        needed.setdefault(bound.name, bound.rows_for(bound.empirical + max(addition, 1e-9) / 2.0))
    return needed


def _look_for_shared(evidence: Evidence, X_train: Any) -> tuple[Evidence, Check]:
    assumption = "the model has not seen these rows"
    kept = X_train if X_train is not None else stored_rows(evidence.model)
    if kept is None:
        return evidence, Check(assumption, None, "pass X_train to look for rows that stand in both tables")
    shared = count_shared_rows(evidence.X, kept)
    if shared is None:
        return evidence, Check(assumption, None, "rows of these tables cannot be compared")
    count = int(shared.sum())
    if count == 0:
        return evidence, Check(assumption, None, "no row stands in both tables")
    detail = f"{count} of {evidence.n} rows stand in the training table, too; each is counted as a full loss"
    return widen_by_shared(evidence, shared), Check(assumption, None, detail)


def _training_drafts(evidence: Evidence, delta: float) -> tuple[list[Draft], list[str]]:
    candidates = candidates_of(evidence.model)
    if isinstance(candidates, str):
        return [], [candidates]
    found = []
    reasons = []
    share = delta / len(candidates)
    common = (check_order(evidence.losses),)
    for candidate in candidates:
        draft = candidate(evidence, share)
        if isinstance(draft, str):
            reasons.append(draft)
        else:
            found.append(draft._replace(assumptions=(*common, *draft.assumptions)))
    return found, list(dict.fromkeys(reasons))


def _assemble(
    model: Any, evidence: Evidence, drafts: list[tuple[Kind, Evidence, Draft]], reasons: list[str], delta: float
) -> RiskBounds:
    scale = evidence.scale
    baseline = baseline_of(evidence, delta)
    bounds = []
    for kind, rows, draft in drafts:
        value = float(draft.value) * scale
        bounds.append(
            Bound(
                name=draft.name,
                kind=kind,
                value=value,
                empirical=draft.empirical * scale,
                delta=draft.delta,
                n=rows.n,
                verdict=verdict_of(value, scale, baseline),
                statement=draft.statement,
                source=draft.source,
                inputs={name: _plain(number) for name, number in draft.inputs.items()},
                assumptions=draft.assumptions,
                at=_scaled(draft.at, scale),
            )
        )
    bounds.sort(key=lambda bound: (bool(bound.broken), bound.value))
    loss = "error rate" if evidence.classes is not None else "mean squared error of clipped predictions"
    name = model if isinstance(model, str) else type(model).__name__
    return RiskBounds(name, loss, scale, delta, tuple(bounds), baseline, tuple(reasons))


def _scaled(at: Callable[[int], float] | None, scale: float) -> Callable[[int], float] | None:
    return None if at is None else lambda m: float(at(m)) * scale


def _plain(number: Any) -> Any:
    return number.item() if isinstance(number, np.generic) else number
