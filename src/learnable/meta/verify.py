"""Independent check of a `TableModel`: encode the rows afresh, compare, and have the inner model checked.

A fit is what it says only if its encoder is the one these rows give. So an encoder with the same parameters is fitted
again; its features must be those of the stored encoder, number by number. Then the checker of the inner model, which
shares no code with its fit, recomputes the certificate on these features. Mean targets are cross-fitted by row number:
a model with such columns is verified on the rows in their order.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import clone

from ..core.errors import DataError, VerificationError
from ..core.registry import REGISTRY, registered_name, resolve
from ..core.verification import Recheck
from ..data.encoder_input import read_whole
from ..data.frames import take_named_columns

#: Two features agree when they differ by no more than this share of the larger: sums in another order do.
_ROUNDING = 1e-9


def table_model(model: Any, X: Any, y: Any, sample_weight: Any) -> Recheck:
    """Recompute the certificate of a TableModel."""
    name = registered_name(type(model.model_))
    checker = REGISTRY[name].checker if name else None
    if checker is None:
        raise VerificationError(f"verify: {type(model.model_).__name__} is not a model of this library.")
    X, y, sample_weight = take_named_columns("verify", *read_whole("verify", X, y, sample_weight))
    encoder, fresh = model.encoder_, clone(model.encoder_)
    try:
        table = encoder._open(X)
        stored = encoder._encode(table, first_row=0)
        again = fresh._fit_table(table, y, sample_weight)._encode(table, first_row=0)
    except DataError as error:
        raise VerificationError(f"verify: the data are not the table of the fit: {error}") from error
    found: Recheck = resolve(checker)(model.model_, stored, y, sample_weight)
    names, names_again = (e.get_feature_names_out() for e in (encoder, fresh))
    where = _difference(names, names_again, stored, again)
    if where is None:
        return found
    return found._replace(fingerprint=f"{found.fingerprint}, but these rows give another encoder: {where}")


def _difference(names: NDArray[Any], names_again: NDArray[Any], stored: Any, again: Any) -> str | None:
    """Say where two encodings of the same rows differ; None if nowhere."""
    if not np.array_equal(names, names_again):
        odd = sorted(set(names.tolist()) ^ set(names_again.tolist()))
        return f"the feature {odd[0]!r} is in one of them" if odd else "the features are in another order"
    size = np.asarray(abs(stored).max(axis=0).todense() if sp.issparse(stored) else abs(stored).max(axis=0)).ravel()
    gap = abs(stored - again).max(axis=0)
    gap = np.asarray(gap.todense() if sp.issparse(gap) else gap).ravel()
    wrong = ~(gap <= _ROUNDING * size)
    return f"the feature {names[int(np.argmax(wrong))]!r} differs by {gap[wrong][0]:.2g}" if wrong.any() else None
