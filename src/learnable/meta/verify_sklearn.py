"""Re-check scikit-learn workflows of our models: pipelines, searches, voting and stacking.

They have no certificate of their own; the models inside have. Each is checked by its own checker, on the rows that
its fit has seen: a pipeline's model on the transformed rows, a voter on the rows with labels as codes. The fingerprint
in a certificate is that of those rows: a changed scaler, which gives other rows, is found as well as a changed model.

What is not re-derived is said in `Verdict.unchecked`, in words: a verdict never claims more than was checked.
"""

from __future__ import annotations

import warnings
from copy import deepcopy
from dataclasses import replace
from typing import Any, Final

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.model_selection import check_cv, cross_val_predict

from ..core import Certificate, Verdict, VerificationError, verify

#: Two transformations agree when they differ by no more than this share of the largest value of a column.
_ROUNDING: Final = 1e-9
#: Stacking is refitted fold by fold up to this many numbers: rows × columns × models × folds.
_MOST_NUMBERS: Final = 5_000_000
_STATE = "what the steps before the model do to rows other than these"
_FAILURES: Final = (ValueError, TypeError, LookupError, ArithmeticError, AttributeError)


def pipeline(model: Any, X: Any, y: Any, sample_weight: Any) -> Verdict:
    """Check the last model of a pipeline on the rows that the steps before it give.

    The stored steps transform the rows. Where a fit gives its model other numbers than `transform` does (a principal
    component by rounding, a target encoder by cross-fitting), the steps are fitted again, and must agree with the
    stored ones.
    """
    final = model.steps[-1][1]
    recorded = _certificate(final)
    steps = [(name, step) for name, step in model.steps[:-1] if step not in ("passthrough", None)]
    try:
        rows = _transform(steps, X)
    except _FAILURES as error:
        return Verdict(False, float("nan"), recorded, (f"the steps cannot transform these rows: {_in_words(error)}",))
    found = verify(final, rows, y, sample_weight)
    if not found and steps:
        again, agree = _fit_steps_again(steps, X, y)
        if again is not None and agree:
            second = verify(final, again, y, sample_weight)
            found = second if second else found
            third, _ = _fit_steps_again(steps, X, y)
            if not found and (third is None or not _agree(again, third, rounding=0.0)):
                found = replace(found, reasons=(*found.reasons, "a step draws random numbers; fit with integer seeds"))
    return _with_unchecked(found, (_STATE,) if steps else ())


def search(model: Any, X: Any, y: Any, sample_weight: Any) -> Verdict:
    """Check the best model of a search; which one is the best is not recomputed."""
    best = getattr(model, "best_estimator_", None)
    if best is None:
        raise VerificationError(f"verify: this {type(model).__name__} has no best_estimator_; fit it with refit=True.")
    found = verify(best, X, y, sample_weight)
    return _with_unchecked(found, ("the scores of the search, and so its choice",))


def voting(model: Any, X: Any, y: Any, sample_weight: Any) -> Verdict:
    """Check every voter."""
    members = _members(model)
    codes = _codes(model, y)
    if isinstance(codes, Verdict):
        return codes
    return _all_of([(name, verify(member, X, codes, sample_weight)) for name, member in members])


def stacking(model: Any, X: Any, y: Any, sample_weight: Any) -> Verdict:
    """Check every model of a stack, and the final one where the out-of-fold features can be had cheaply."""
    members = _members(model)
    prefit = model.cv == "prefit"
    codes = _codes(model, y)
    if isinstance(codes, Verdict):
        return codes
    found = [(name, verify(member, X, y if prefit else codes, sample_weight)) for name, member in members]
    final, why = _check_final(model, members, X, codes, sample_weight)
    if final is None:
        return _all_of(found, unchecked=(f"the final model ({why})",))
    return _all_of([*found, ("final_estimator", final)])


def _members(model: Any) -> list[tuple[str, Any]]:
    """Return the fitted models with their names."""
    if not hasattr(model, "estimators_"):
        raise VerificationError(f"verify: this {type(model).__name__} is not fitted; call fit first.")
    names = [name for name, member in model.estimators if not isinstance(member, str)]
    return list(zip(names, model.estimators_, strict=True))


def _codes(model: Any, y: Any) -> Any:
    """Return the labels as the voters have seen them: their positions among the classes."""
    if not is_classifier(model):
        return y
    labels = np.asarray(y).ravel()
    classes = model.classes_
    found = np.unique(labels)
    if found.tolist() != classes.tolist():
        shown = f"the data have the labels {found.tolist()[:10]}, the model {classes.tolist()[:10]}"
        recorded = _certificate(model.estimators_[0])
        return Verdict(False, float("nan"), recorded, (shown,))
    return np.searchsorted(classes, labels)


def _all_of(found: list[tuple[str, Verdict]], unchecked: tuple[str, ...] = ()) -> Verdict:
    """Return the verdict of the weakest model, with the reasons and the gaps of all."""
    reasons = [f"of {name!r}, {reason}" for name, verdict in found for reason in verdict.reasons]
    gaps = [f"of {name!r}, {gap}" for name, verdict in found for gap in verdict.unchecked]
    bad = [verdict for _, verdict in found if not verdict]
    weakest = bad[0] if bad else max((verdict for _, verdict in found), key=_share_of_tolerance)
    return replace(weakest, ok=not bad, reasons=tuple(reasons), unchecked=(*gaps, *unchecked), members=tuple(found))


def _share_of_tolerance(verdict: Verdict) -> float:
    return verdict.value / max(verdict.recorded.tolerance, 1e-300)


def _with_unchecked(verdict: Verdict, gaps: tuple[str, ...]) -> Verdict:
    return replace(verdict, unchecked=(*verdict.unchecked, *gaps))


def _certificate(model: Any) -> Certificate:
    """Return the certificate to show with a verdict: of the model, or of the one inside it."""
    inside = model
    while not hasattr(inside, "certificate_"):
        if hasattr(inside, "steps"):
            inside = inside.steps[-1][1]
        elif hasattr(inside, "best_estimator_"):
            inside = inside.best_estimator_
        elif len(getattr(inside, "estimators_", ())):
            inside = inside.estimators_[0]
        else:
            raise VerificationError(f"verify: {type(inside).__name__} is not a fitted model of this library.")
    recorded = inside.certificate_
    if not isinstance(recorded, Certificate):
        raise VerificationError(f"verify: the certificate of {type(inside).__name__} is none.")
    return recorded


# Steps of a pipeline


def _transform(steps: list[tuple[str, Any]], X: Any) -> Any:
    for _, step in steps:
        X = step.transform(X)
    return X


def _fit_steps_again(steps: list[tuple[str, Any]], X: Any, y: Any) -> tuple[Any, bool]:
    """Return the rows that steps fitted afresh give to the model, and whether they agree with the stored steps."""
    rows = X
    plain = X
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # those of the first fit
            for _, step in steps:
                fresh = clone(step)
                following = fresh.fit_transform(rows, y)
                if not _agree(step.transform(plain), fresh.transform(plain)):
                    return None, False
                rows = following
                plain = step.transform(plain)
    except _FAILURES:
        return None, False
    return rows, True


def _agree(one: Any, other: Any, rounding: float = _ROUNDING) -> bool:
    """Tell whether two transformations of the same rows are the same, up to rounding."""
    left = _numbers(one)
    right = _numbers(other)
    if left is None or right is None or left.shape != right.shape:
        return False
    size = np.max(np.abs(right), axis=0, initial=0.0, where=np.isfinite(right))
    return bool(
        np.all((np.abs(left - right) <= rounding * size) | (left == right) | (np.isnan(left) & np.isnan(right)))
    )


def _numbers(X: Any) -> NDArray[np.float64] | None:
    """Return a transformed table as an array of numbers; None if it is none."""
    try:
        return np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)
    except (TypeError, ValueError):
        return None


# Stacking


def _check_final(
    model: Any, members: list[tuple[str, Any]], X: Any, y: Any, sample_weight: Any
) -> tuple[Verdict | None, str]:
    """Return the verdict on the final model of a stack; None, and why, where its rows cannot be had again.

    A model that does not hold on the features fitted again is refused only if fitting twice gives the same features:
    otherwise random numbers differ, not the model.
    """
    folds = None if model.cv == "prefit" else check_cv(model.cv, y, classifier=is_classifier(model))
    fits = 0 if folds is None else len(members) * folds.get_n_splits(X, y)
    shape = X.shape if hasattr(X, "shape") else np.shape(X)
    if fits * int(np.prod(shape)) > _MOST_NUMBERS:
        return None, f"{fits} fits on folds would be needed, too many for this table"
    try:
        features = _features(model, members, folds, X, y, sample_weight)
        found = verify(model.final_estimator_, features, y, sample_weight)
        if found or _agree(features, _features(model, members, folds, X, y, sample_weight), rounding=0.0):
            return found, ""
    except _FAILURES as error:
        return None, f"its models cannot be fitted again: {_in_words(error)}"
    return None, "its models, or their folds, draw random numbers without a seed, so that its rows cannot be had again"


def _features(model: Any, members: list[tuple[str, Any]], folds: Any, X: Any, y: Any, sample_weight: Any) -> Any:
    """Return what the final model was fitted on: predictions out of fold, or of models given fitted."""
    params = None if sample_weight is None else {"sample_weight": sample_weight}
    predictions = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # those of the first fit
        for (_, member), method in zip(members, model.stack_method_, strict=True):
            if folds is None:
                predictions.append(getattr(member, method)(X))
            else:  # every model gets the same folds, even if they are drawn
                own = deepcopy(folds)
                predictions.append(cross_val_predict(clone(member), X, y, cv=own, method=method, params=params))
    return model._concatenate_predictions(X, predictions)


def _in_words(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
