"""What the parameters of boosted models mean for a table: ranges, signs, sets of columns, rows held out."""

from __future__ import annotations

import itertools
from numbers import Integral
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ...core.errors import DataError, ParameterError
from ...core.parameters import Matches, Number, Options, optional

Array = NDArray[np.float64]
Rows = NDArray[np.int64]

SHARE: Final = Number(low=0.0, high=1.0, low_open=True)
COLUMNS: Final = optional(
    Matches(
        lambda value: hasattr(value, "__len__") and not isinstance(value, str), "an array of columns or truth values"
    )
    | Options("from_dtype")
)
SIGNS: Final = optional(Matches(lambda value: hasattr(value, "__len__") and not isinstance(value, str), "an array"))
CUSTOM_LOSS: Final = Matches(
    lambda value: not isinstance(value, (str, type)) and hasattr(value, "value") and hasattr(value, "gradient"),
    "an object with value(y, z) and gradient(y, z)",
)
CLASS_WEIGHT: Final = optional(Options("balanced") | Matches(lambda v: isinstance(v, dict), "a dict of weights"))


#: Σh that a leaf needs for the log loss, for each of `min_samples_leaf` rows, in units of the mean weight. The default
#: of 20 rows needs 0.25, h of one row at even odds. On 50 generated tables with ten rows of the rare class, needs of
#: 1e-3, 0.1, 0.25, 0.5 and 1 had a median log loss of 0.94, 0.66, 0.59, 0.55 and 0.52 times LightGBM's, the worst 1.52,
#: 1.19, 1.02, 0.92 and 1.11; on spambase 0.5 and 1 were 1 % worse than 0.25.
EACH_ROW = 0.25 / 20
_LEAST = 1e-3  # scikit-learn's, whatever the loss


def least_hessian(model: Any, w: Array | None) -> float:
    """Return Σh that a leaf needs; that of the log loss has no unit, so that its least is known."""
    if model.min_hessian is not None:
        return float(model.min_hessian)
    if isinstance(model.loss, str) and model.loss == "log_loss":
        return EACH_ROW * model.min_samples_leaf * (1.0 if w is None else float(w.mean()))
    return _LEAST


def monotone_signs(owner: str, given: Any, n_columns: int, names: Any, n_outputs: int) -> NDArray[np.int8] | None:
    """Return 1, −1 or 0 for each column; None without constraints."""
    if given is None:
        return None
    if isinstance(given, dict):
        known = [] if names is None else list(names)
        strange = [name for name in given if name not in known]
        if strange:
            shown = [*sorted(strange)[:5], *(["..."] if len(strange) > 5 else [])]
            raise ParameterError(f"{owner}: monotonic_cst contains {len(strange)} unexpected feature names: {shown!r}.")
        signs = np.array([given.get(name, 0) for name in known])
    else:
        signs = np.asarray(given)
    if signs.shape != (n_columns,):
        raise ParameterError(
            f"{owner}: monotonic_cst has shape {signs.shape} but the input data X has {n_columns} features; give one "
            "sign for each."
        )
    if not np.isin(signs, (-1, 0, 1)).all():
        raise ParameterError(
            f"{owner}: monotonic_cst must be an array-like of -1, 0 or 1. Observed values: "
            f"{np.unique(signs).tolist()!r}."
        )
    if not signs.any():
        return None
    if n_outputs > 1:
        raise ParameterError(
            f"{owner}: monotonic constraints are not supported for multiclass classification, nor for several "
            "quantiles: they are for one score."
        )
    return signs.astype(np.int8)


def interaction_sets(owner: str, given: Any, n_columns: int) -> list[list[int]] | None:
    """Return the sets of columns that may meet on a path; those in no set form one of their own."""
    if given is None:
        return None
    if isinstance(given, str):
        sets = [{j} for j in range(n_columns)]
        if given == "pairwise":
            sets = [set(pair) for pair in itertools.combinations(range(n_columns), 2)] or sets
    else:
        try:
            sets = [set(group) for group in given]
        except TypeError as error:
            raise ParameterError(
                f"{owner}: Interaction constraints must be a sequence of tuples or lists, got: {given!r}."
            ) from error
    for group in sets:
        if not all(isinstance(j, (Integral, np.integer)) and 0 <= j < n_columns for j in group):
            raise ParameterError(
                f"{owner}: Interaction constraints must consist of integer indices in [0, n_features - 1] = "
                f"[0, {n_columns - 1}], specifying the position of features, got invalid indices: {group!r}."
            )
    rest = set(range(n_columns)).difference(*sets) if sets else set(range(n_columns))
    return [sorted(int(j) for j in group) for group in (*sets, rest) if group]


def hold_out(owner: str, y: NDArray[Any], classes: bool, fraction: Any, seed: int) -> tuple[Rows, Rows]:
    """Return the rows to fit on and the rows held out, the latter with the same shares of the classes."""
    from sklearn.model_selection import train_test_split

    try:
        fit, held = train_test_split(
            np.arange(len(y)),
            test_size=fraction,
            stratify=y.astype(np.float64) if classes else None,
            random_state=seed % 2**32,
        )
    except ValueError as error:
        raise DataError(f"{owner}: no rows can be held out for early stopping: {error}") from error
    if classes and len(np.unique(y[fit])) < len(np.unique(y)):
        raise DataError(
            f"{owner}: The training data after the early stopping split lacks a class: all its rows are held out. Pass "
            "X_val and y_val instead."
        )
    return np.sort(fit), np.sort(held)
