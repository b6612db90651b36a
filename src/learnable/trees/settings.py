"""What the parameters of trees and forests mean for a table: ranges, counts, signs, categories, weights of classes."""

from __future__ import annotations

import warnings
from typing import Any, Final

import numpy as np
from sklearn.utils.class_weight import compute_class_weight, compute_sample_weight

from ..core import (
    Array,
    ArrayLike,
    DataError,
    Declared,
    Matches,
    NDArray,
    Number,
    Options,
    ParameterError,
    optional,
    param,
)
from ..data.door import Table
from .growth import GrowthRule

_SHARE = Matches(lambda v: isinstance(v, (float, np.floating)) and bool(0 < v <= 1), "a share > 0 and <= 1")

MAX_FEATURES: Final = optional(Number(low=1, integer=True) | _SHARE | Options("sqrt", "log2", "third"))


class TreeGrowth(Declared):
    """What trees and forests declare alike: where growth stops, and what a split may be."""

    max_depth: int | None = param(
        optional(Number(low=1, integer=True)), "Largest depth; None grows until leaves are pure.", default=None
    )
    min_samples_split: float = param(
        Number(low=2, integer=True) | _SHARE,
        "Rows, or share of the rows, that a node needs to be split; distinct ones, in a forest.",
        default=2,
    )
    min_samples_leaf: float = param(
        Number(low=1, integer=True) | _SHARE,
        "Rows, or share of the rows, that a leaf needs; distinct ones, in a forest.",
        default=1,
    )
    min_weight_fraction_leaf: float = param(
        Number(low=0.0, high=0.5), "Share of the total weight that a leaf needs.", default=0.0
    )
    max_features: Any = param(
        MAX_FEATURES, "Columns drawn at every node: √d, log₂ d, d/3, a number, a share, or all.", default=None
    )
    max_leaf_nodes: int | None = param(
        optional(Number(low=2, integer=True)), "Most leaves; a tree then grows by largest gain.", default=None
    )
    min_impurity_decrease: float = param(
        Number(low=0.0), "Fall of the impurity, times the node's share of the weight, that a split needs.", default=0.0
    )
    monotonic_cst: Any = param(
        optional(ArrayLike(Number())),
        "1, −1 or 0: the prediction (the probability of the second of two classes) rises with the column, "
        "falls, or is free.",
        default=None,
    )
    max_bins: int | None = param(
        optional(Number(low=2, high=255, integer=True)),
        "Bins (2 to 255) into which columns are cut by their quantiles; faster on many rows. None: exact.",
        default=None,
    )
    categorical_features: Any = param(
        optional(
            Matches(lambda value: hasattr(value, "__len__") and not isinstance(value, str), "an array of columns")
        ),
        "Numbers, names or a mask of columns that hold codes of categories; splits divide the set of codes.",
        default=None,
    )


CLASS_WEIGHT: Final = Matches(
    lambda v: v is None or isinstance(v, (dict, list)) or (isinstance(v, str) and v == "balanced"),
    "None, 'balanced', a dict of weights, or a list of dicts for several targets",
)


def warn_of_friedman(criterion: Any) -> None:
    """In `__post_init__`, say what scikit-learn says of a criterion that ranks splits as the squared error does."""
    if isinstance(criterion, str) and criterion == "friedman_mse":
        warnings.warn(
            'Value `"friedman_mse"` for `criterion` is deprecated and will be removed in 1.11. It maps to '
            '`"squared_error"`, which gives the same trees. Use `criterion="squared_error"`.',
            FutureWarning,
            stacklevel=4,
        )


def check_counts(owner: str, y: Array) -> None:
    """Raise DataError unless targets are what the Poisson criterion is for: not negative, and not all zero."""
    if (y < 0).any():
        raise DataError(
            f"{owner}: Some value(s) of y are negative which is not allowed for Poisson regression. The smallest is "
            f"{y.min():g}; use criterion='squared_error'."
        )
    if not (y.sum(axis=0) > 0).all():
        raise DataError(
            f"{owner}: Sum of y is not strictly positive which is necessary for Poisson regression. Use "
            "criterion='squared_error'."
        )


def growth_rule(model: Any, table: Table, weight: Array | None, splitter: str) -> GrowthRule:
    """Return the rule that the parameters of a model state for a table whose rows have these weights."""
    n = table.n_rows
    d = table.n_columns
    total = float(n if weight is None else weight.sum())
    return GrowthRule(
        max_depth=model.max_depth,
        max_leaf_nodes=model.max_leaf_nodes,
        min_samples_split=max(2, count_rows(model.min_samples_split, n)),
        min_samples_leaf=count_rows(model.min_samples_leaf, n),
        min_weight_leaf=model.min_weight_fraction_leaf * total,
        max_features=count_features(type(model).__name__, model.max_features, d),
        min_impurity_decrease=model.min_impurity_decrease,
        splitter=splitter,
        monotonic=monotone_signs(model, d),
    )


def count_rows(value: float, n_rows: int) -> int:
    """Return a number of rows that was given as such, or as a share."""
    return int(value) if isinstance(value, (int, np.integer)) else int(np.ceil(value * n_rows))


def count_features(owner: str, max_features: Any, n_columns: int) -> int:
    """Return how many columns a node draws."""
    if max_features is None:
        return n_columns
    if isinstance(max_features, str):
        share = {"sqrt": np.sqrt(n_columns), "log2": np.log2(n_columns), "third": n_columns / 3}[max_features]
        return max(1, int(share))
    if isinstance(max_features, (int, np.integer)):
        if max_features > n_columns:
            raise ParameterError(
                f"{owner}: max_features must be <= {n_columns}, the number of columns; got {max_features}."
            )
        return int(max_features)
    return max(1, int(max_features * n_columns))


def monotone_signs(model: Any, n_columns: int) -> NDArray[np.int8] | None:
    """Return 1, −1 or 0 for each column; None without constraints."""
    if model.monotonic_cst is None:
        return None
    owner = type(model).__name__
    signs = np.asarray(model.monotonic_cst)
    classes = getattr(model, "classes_", None)
    if signs.any() and (isinstance(classes, list) or model.n_outputs_ > 1):
        raise ParameterError(f"{owner}: Monotonicity constraints are not supported with multiple outputs.")
    if signs.shape != (n_columns,):
        raise ParameterError(
            f"{owner}: monotonic_cst has shape {signs.shape[0] if signs.ndim == 1 else signs.shape} but the input "
            f"data X has {n_columns} features. Pass one sign per column."
        )
    if not np.isin(signs, (-1, 0, 1)).all():
        raise ParameterError(f"{owner}: monotonic_cst must be None or an array-like of -1, 0 or 1. It holds {signs}")
    if signs.any() and classes is not None and len(classes) > 2:
        raise ParameterError(f"{owner}: Monotonicity constraints are not supported with multiclass classification.")
    return signs.astype(np.int8)


def categorical_mask(model: Any, n_columns: int) -> NDArray[np.bool_] | None:
    """Return which columns hold codes of categories; None if no such parameter is set."""
    given = model.categorical_features
    if given is None:
        return None
    marked = np.zeros(n_columns, dtype=bool)
    array = np.asarray(given)
    names = getattr(model, "feature_names_in_", None)
    try:
        if array.dtype == bool and array.shape == (n_columns,):
            marked = array
        elif array.dtype.kind in "OU" and names is not None:
            marked[[names.tolist().index(name) for name in array.tolist()]] = True
        elif array.dtype.kind in "iu":
            marked[array] = True
        elif array.size:
            raise ValueError
    except (ValueError, IndexError) as error:
        raise ParameterError(
            f"{type(model).__name__}: categorical_features must hold numbers or names of columns, or a truth value for "
            f"each of {n_columns}; got {given!r}."
        ) from error
    return marked


def weights_of_classes(owner: str, class_weight: Any, table: Table) -> Array | None:
    """Return the weights of the rows times the factors that `class_weight` gives them, the product over targets."""
    if class_weight is None:
        return table.weight
    several = isinstance(table.classes, list)
    codes = table.y if several else table.y[:, None]
    labels = table.classes if several else [table.classes]
    if isinstance(class_weight, str):
        factors = [
            compute_class_weight("balanced", classes=np.arange(len(own)), y=codes[:, k], sample_weight=table.weight)
            for k, own in enumerate(labels)
        ]
        factor = np.prod([own[codes[:, k]] for k, own in enumerate(factors)], axis=0)
    else:
        y = np.column_stack([np.asarray(own, dtype=object)[codes[:, k]] for k, own in enumerate(labels)])
        try:
            factor = compute_sample_weight(class_weight, y if several else y[:, 0])
        except (ValueError, TypeError) as error:
            raise ParameterError(f"{owner}: class_weight: {error}") from error
    if (factor < 0).any() or not np.isfinite(factor).all() or not factor.any():
        raise ParameterError(f"{owner}: class_weight must hold weights >= 0, not all zero; got {class_weight!r}.")
    return np.asarray(factor if table.weight is None else factor * table.weight, dtype=np.float64)
