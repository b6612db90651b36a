"""Independent checks of bagged models and forests.

Bagging: draw every bag again from the seed, and have the checker of the member, which shares no code with its fit,
recompute its certificate on the bag.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.utils.validation import has_fit_parameter

from ..core.checking import Recheck, flaw_of
from ..core.errors import DataError, VerificationError
from ..data.rows import take_columns, take_rows
from ..meta.verify import check_members
from .verify_forest import r_squared


def bagging(model: Any, X: Any, y: Any, sample_weight: Any) -> Recheck:
    """Recompute the certificate of a BaggingClassifier or BaggingRegressor: those of all its members."""
    try:
        again = type(model)(estimator=model.estimator)
        table = again._read(X, y, sample_weight)
    except DataError as error:
        raise VerificationError(f"verify: the data are not the table of the fit: {error}") from error
    wrong = []
    classes = getattr(model, "classes_", np.array([], dtype=np.int64))
    if table.classes is not None and table.classes.tolist() != classes.tolist():
        wrong.append(f"the data have the labels {table.classes.tolist()[:10]}")
    weight = model.sample_weight_
    if len(table.y) != model.n_samples_ or again.n_features_in_ != model.n_features_in_:
        wrong.append(f"the data have {len(table.y)} rows and {again.n_features_in_} columns")
    elif (weight is None) != (table.weight is None) or not (weight is None or np.array_equal(weight, table.weight)):
        wrong.append("the weights are others")
    if not wrong and (flaw := _flaw_of(model)):
        wrong.append(flaw)
    if wrong:
        return Recheck(np.inf, 0.0, f"{model.certificate_.fingerprint}, but {wrong[0]}")

    def members() -> Iterator[tuple[str, Any, Any, Any, Any]]:
        weighs = bool(getattr(model, "counted_", has_fit_parameter(model.estimator_, "sample_weight")))
        for number, inner in enumerate(model.estimators_):
            rows, counts = model._bag(number), None
            if weighs:  # a row that was drawn twice entered as one row of weight two
                rows, counts = np.unique(rows, return_counts=True)
            X = take_columns(take_rows(table.X, rows), model.estimators_features_[number])
            if table.container is not None and not isinstance(X, table.container):
                X = table.container(X)
            weight = None if counts is None or (counts == 1).all() else counts.astype(np.float64)
            yield f"number {number}", inner, X, table.y[rows], weight

    found = check_members(model.certificate_, members(), classes, wrong)
    if found.fingerprint != model.certificate_.fingerprint or not np.isfinite(found.value):
        return found
    if model.oob_score and (flaw := _flaw_out_of_bag(model, table)):
        return Recheck(np.inf, 0.0, f"{model.certificate_.fingerprint}, but {flaw}")
    return found


def _flaw_of(model: Any) -> str:
    """Say what is wrong with the number of members, and with their columns, which are drawn again."""
    if flaw := flaw_of([model]):
        return flaw
    if len(model.estimators_) != model.n_estimators:
        return f"there are {len(model.estimators_)} members, not {model.n_estimators}"
    drawn = [model._columns(member) for member in range(model.n_estimators)]
    same = all(np.array_equal(*pair) for pair in zip(drawn, model.estimators_features_, strict=True))
    return "" if same else "the columns of a member are others"


def _flaw_out_of_bag(model: Any, table: Any) -> str:
    """Say what is wrong with the out-of-bag figures: the members' answers are added up again."""
    name = "oob_decision_function_" if table.classes is not None else "oob_prediction_"
    shown = getattr(model, name, None)
    n = len(table.y)
    total = np.zeros((n, len(table.classes)) if table.classes is not None else table.y.shape)
    voters = np.zeros(n)
    if not isinstance(shown, np.ndarray) or shown.shape != total.shape:
        return "the out-of-bag predictions are not there"
    for inner, rows, X in model._out_of_bag(table):
        if table.classes is None:
            total[rows] += np.asarray(inner.predict(X)).reshape(total[rows].shape)
        elif hasattr(inner, "predict_proba"):
            total[np.ix_(rows, np.asarray(inner.classes_, dtype=np.int64))] += inner.predict_proba(X)
        else:
            total[rows, np.asarray(inner.predict(X), dtype=np.int64)] += 1.0
        voters[rows] += 1.0
    wanted = (total.T / np.where(voters > 0, voters, np.nan)).T
    size = float(np.abs(total).max(initial=0.0)) or 1.0
    if not np.allclose(shown, wanted, rtol=0.0, atol=1e-9 * size, equal_nan=True):
        return "the out-of-bag predictions are others"
    judged = voters > 0 if table.weight is None else (voters > 0) & (table.weight > 0)
    if table.classes is not None:
        score = float(np.mean(shown[judged].argmax(axis=1) == table.y[judged]))
    else:
        score = r_squared(table.y[judged], shown[judged]) if judged.sum() > 1 else np.nan
    near = np.isclose(score, model.oob_score_, rtol=1e-9, atol=1e-9, equal_nan=True)
    return "" if near else f"oob_score_ is {model.oob_score_:.6g}, not {score:.6g}"
