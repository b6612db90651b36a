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
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ...core import DataError, Number, Options, check_parameters
from ...theory.concentration import Betting, ClopperPearson, EmpiricalBernstein, Hoeffding, KLBound, kl_upper
from ...theory.concentration.base import Check, check_order
from ...theory.concentration.betting import betting_interval
from .families import candidates_of
from .record import (
    Bound,
    Draft,
    Evidence,
    Kind,
    RiskBounds,
    baseline_of,
    count_shared_rows,
    gather,
    saw_these_rows,
    stored_rows,
    verdict_of,
)

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
    'with 95 % confidence the error is below 10.6 % (Clopper–Pearson, 1000 held-out rows): informative'
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


# --------------------------------------------------------------------------------------------------------------------
# Bounds from rows that the model has not seen.


_ONE_USE = "the model was fixed before these rows were looked at"


def held_out_drafts(evidence: Evidence, delta: float, uses: int, known: tuple[Check, ...]) -> list[Draft]:
    """Return every held-out bound, each at its share of δ/uses.

    For errors, Clopper and Pearson's bound is never above the others at the same δ, so that all may have the whole
    of it. For losses in [0, 1], δ is split evenly over kl, empirical Bernstein and betting.
    """
    checks = (*known, _use_check(uses))
    losses = evidence.losses
    n = evidence.n
    mean = float(losses.mean())
    level = delta / uses
    if evidence.classes is not None:
        errors = evidence.errors
        exact = ClopperPearson(n, errors=float(errors))

        def exact_at(m: int) -> float:
            return mean + ClopperPearson(m, errors=mean * m).radius(level)

        def kl_at(m: int) -> float:
            return kl_upper(mean, -math.log(level) / m)

        def one_at(m: int) -> float:
            return mean + Hoeffding(m).radius(level)

        inputs = {"errors": errors, "n": n, "uses": uses}
        return [
            Draft(
                exact.name,
                mean + exact.radius(level),
                mean,
                level,
                exact.statement,
                exact.source,
                inputs,
                checks,
                exact_at,
            ),
            Draft("kl", kl_at(n), mean, level, KLBound.statement, KLBound.source, inputs, checks, kl_at),
            Draft(
                "one function (Hoeffding)",
                one_at(n),
                mean,
                level,
                Hoeffding.statement,
                Hoeffding.source,
                inputs,
                checks,
                one_at,
            ),
        ]
    level /= 3.0
    given = {"mean loss": mean * evidence.scale, "n": n, "uses": uses}
    bernstein = EmpiricalBernstein.of(losses)
    upper = betting_interval(losses, level, sides=1).high

    def bernstein_at(m: int) -> float:
        return mean + EmpiricalBernstein(max(m, 2), variance=bernstein.variance).radius(level)

    def loss_kl_at(m: int) -> float:
        return kl_upper(mean, -math.log(level) / m)

    def betting_at(m: int) -> float:
        return min(1.0, mean + (upper - mean) * math.sqrt(n / m))

    return [
        Draft(
            bernstein.name,
            bernstein_at(n),
            mean,
            level,
            bernstein.statement,
            bernstein.source,
            given,
            checks,
            bernstein_at,
        ),
        Draft("kl", loss_kl_at(n), mean, level, KLBound.statement, KLBound.source, given, checks, loss_kl_at),
        Draft("betting", upper, mean, level, Betting.statement, Betting.source, given, checks, betting_at),
    ]


def rows_in_order(evidence: Evidence) -> Check:
    """Look for drift and dependence in the order of the rows, in the losses."""
    check = check_order(evidence.losses)
    if check.holds is False:
        return check
    if evidence.n >= 40 and evidence.classes is not None:
        half = evidence.n // 2
        gap = float(evidence.losses[:half].mean() - evidence.losses[half:].mean())
        spread = max(float(evidence.losses.std()), 1e-12) * math.sqrt(1.0 / half + 1.0 / (evidence.n - half))
        if abs(gap) / spread > 4.0:
            return Check(check.assumption, False, f"errors differ between the halves: z = {gap / spread:.1f}")
    return check


def _use_check(uses: int) -> Check:
    detail = (
        "one model was judged by them" if uses == 1 else f"{uses} models were judged by them: δ is divided by {uses}"
    )
    return Check(_ONE_USE, None, detail)


def widen_by_shared(evidence: Evidence, shared: NDArray[np.bool_]) -> Evidence:
    """Return the evidence with every row that stands in the training table, too, counted as a full loss."""
    return replace(evidence, memory={}, losses=np.where(shared, 1.0, evidence.losses))


# --------------------------------------------------------------------------------------------------------------------
# Held-out rows that count how often they were used, and widen their bounds accordingly.
#
# With K models planned, fixed before the rows are looked at, each bound is given δ/K. Further models may be judged;
# the j-th is then given δ/(j(j + 1)), so that all bounds ever given hold together with probability at least 1 − δ(1 +
# 1/(K + 1)).
#
# What the count cannot repair: a model that was built after looking at earlier answers depends on these rows.
# `Ladder` is for that: it tells the best error so far, rounded, and only when it has fallen by a step η. Then few
# different histories of answers are possible, and the union over all of them holds for models that are chosen in any
# way (Blum and Hardt):
#
#     P(some answer is off by more than ε + η) ≤ exp(−2ε²n + (1/η + 2) ln(4k/η) + 1)        after k models.
#
# Reference: A. Blum and M. Hardt, The ladder: a reliable leaderboard for machine learning competitions, ICML 2015,
# theorem 3.1.


class HeldOutRows:
    """Rows that no model has seen, with a count of the models that they judged.

    Parameters
    ----------
    X, y
        The rows.
    planned : int
        How many models they are to judge.
    delta : float
        Probability that some bound of the planned models fails.
    target_range : (low, high), optional
        Of a regression: the range that no target can leave.

    Examples
    --------
    >>> import numpy as np
    >>> import learnable as ln
    >>> from learnable.evaluation import HeldOutRows
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(900, 2))
    >>> y = (X[:, 0] > 0).astype(int)
    >>> rows = HeldOutRows(X[300:], y[300:], planned=2)
    >>> for model in (ln.LogisticRegression(), ln.GaussianNB(), ln.Perceptron()):
    ...     bound = rows.judge(model.fit(X[:300], y[:300])).best
    >>> rows.uses, round(bound.delta, 5)
    (3, 0.00417)
    """

    def __init__(
        self, X: Any, y: Any, planned: int = 1, delta: float = 0.05, target_range: tuple[float, float] | None = None
    ) -> None:
        check_parameters("HeldOutRows", {"planned": planned}, {"planned": Number(low=1, integer=True)})
        self.X = X
        self.y = y
        self.planned = planned
        self.delta = delta
        self.target_range = target_range
        self._answers: list[bytes] = []

    @property
    def uses(self) -> int:
        """How many different models were judged; models with the same predictions count once."""
        return len(self._answers)

    def judge(self, model: Any) -> RiskBounds:
        """Return the bounds of one more model."""
        answer = np.asarray(model.predict(self.X))
        key = repr(answer.tolist()).encode() if answer.dtype == object else answer.tobytes()
        if key not in self._answers:
            self._answers.append(key)
        place = self._answers.index(key) + 1
        share = self.planned if place <= self.planned else place * (place + 1)
        return risk_bound(
            model, self.X, self.y, self.delta, kind="held-out", target_range=self.target_range, uses=share
        )


class Ladder:
    """A leaderboard that may be asked again and again: models may be built by its earlier answers.

    Parameters
    ----------
    X, y
        Rows with their labels.
    step : float
        η: the best error is told only when it has fallen by more than this, rounded to it.

    Examples
    --------
    >>> import numpy as np
    >>> import learnable as ln
    >>> from learnable.evaluation import Ladder
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(3000, 2))
    >>> y = (X[:, 0] > 0).astype(int)
    >>> ladder = Ladder(X[300:], y[300:], step=0.05)
    >>> ladder.submit(ln.GaussianNB().fit(X[:300], y[:300]))
    0.0
    >>> round(ladder.radius(delta=0.05, models=100), 3)
    0.243
    """

    def __init__(self, X: Any, y: Any, step: float = 0.02) -> None:
        check_parameters("Ladder", {"step": step}, {"step": Number(low=0.0, high=1.0, low_open=True, high_open=True)})
        self.X = X
        self.y = np.asarray(y)
        self.step = step
        self.best = 1.0
        self.submitted = 0

    def submit(self, model: Any) -> float:
        """Return the best error so far; it changes only where this model is better by more than the step."""
        if saw_these_rows(model, self.X, self.y):
            raise DataError("Ladder: the model was fitted to these rows; submit models that have not seen them.")
        error = float((np.asarray(model.predict(self.X)) != self.y).mean())
        self.submitted += 1
        if error < self.best - self.step:
            self.best = round(error / self.step) * self.step
        return self.best

    def radius(self, delta: float = 0.05, models: int | None = None) -> float:
        """Return how far, at most, an answer is from the least true error so far, with probability 1 − δ."""
        k = self.submitted if models is None else models
        check_parameters(
            "Ladder",
            {"delta": delta, "models": k},
            {"delta": Number(low=0.0, high=1.0, low_open=True, high_open=True), "models": Number(low=1, integer=True)},
        )
        histories = (1.0 / self.step + 2.0) * math.log(4.0 * k / self.step) + 1.0
        return self.step + math.sqrt((histories - math.log(delta)) / (2.0 * len(self.y)))
