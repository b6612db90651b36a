"""Independent checks of bagged models and forests.

Bagging: draw every bag again from the seed, and have the checker of the member, which shares no code with its fit,
recompute its certificate on the bag.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..core.errors import DataError, VerificationError
from ..core.verification import Recheck
from ..meta.verify_multiclass import check_members
from ._bags import bag_table, takes_counts


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
    if wrong:
        return Recheck(np.inf, 0.0, f"{model.certificate_.fingerprint}, but {wrong[0]}")

    def members() -> Iterator[tuple[str, Any, Any, Any, Any]]:
        weighs = takes_counts(model.estimator_)
        for number, inner in enumerate(model.estimators_):
            bag = bag_table(table, model._bag(number), model.estimators_features_[number], weighs)
            yield f"number {number}", inner, *bag

    return check_members(model.certificate_, members(), classes, wrong)
