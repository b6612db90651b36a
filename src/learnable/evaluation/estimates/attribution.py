"""Why a model predicts what it predicts for one row: Shapley values of the columns of a table, for any model.

A column's share of a prediction is what the prediction changes when the column takes its value in the row instead of
its value in another row, averaged over the order in which columns change and over the other rows:

    φ_j = E_z E_π [ f(x_{S ∪ j}, z_rest) − f(x_S, z_rest) ],   S = the columns before j in the order π.

The shares add up to f(x) − E_z f(z), whatever the model. They are estimated from random orders, each walked forwards
and backwards, so that the estimate is exact for a sum of effects of single columns, up to the sample of other rows;
the standard errors come from the spread of these pairs.

References: L. Shapley, A value for n-person games, 1953. E. Štrumbelj and I. Kononenko, Explaining prediction models
and individual predictions with feature contributions, Knowledge and Information Systems 41, 2014. On walking an order
both ways: R. Mitchell and others, Sampling permutations for Shapley value estimation, JMLR 23, 2022.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from ...core import Array, DataError, NDArray, Number, check_parameters

_MOST_NUMBERS: Final = 2**22  # of one batch of changed rows, 32 MB
_RULES: Final = {"n_orders": Number(low=1, integer=True), "random_state": Number(low=0, integer=True)}


class Attribution(NamedTuple):
    """The shares of the columns in one prediction."""

    names: list[str]  #: d columns
    shares: Array  #: (d,) φ
    errors: Array  #: (d,) standard errors of the shares; 0 with a single order
    prediction: float  #: f(x)
    base: float  #: the mean prediction of the other rows, E f(z): base + Σ shares = prediction

    def to_dict(self) -> dict[str, Any]:
        """Return the shares as plain JSON types, the largest first."""
        order = np.argsort(-np.abs(self.shares), kind="stable").tolist()
        return {
            "prediction": self.prediction,
            "base": self.base,
            "shares": [
                {"name": self.names[j], "value": float(self.shares[j]), "error": float(self.errors[j])} for j in order
            ],
        }


def attribute_row(
    predict: Callable[[Array], Array],
    row: Array,
    others: Array,
    groups: Mapping[str, Sequence[int]],
    *,
    n_orders: int = 32,
    random_state: int = 0,
) -> Attribution:
    """Return the shares of groups of columns in the prediction of one row.

    Parameters
    ----------
    predict : callable
        f: (m, p) numbers to (m,) predictions.
    row : (p,) array
        x, encoded.
    others : (n, p) array
        z: rows of the same table, encoded; the orders take them in turn.
    groups : mapping
        The columns of the table by name: which of the p numbers each stands for. Numbers in no group keep the value
        of x.
    n_orders : int
        Orders of the columns, each walked in both directions with one of the others.
    random_state : int
        Draws the orders.

    Returns
    -------
    Attribution
        The shares, their standard errors, f(x) and the mean of f over the others that were used.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.evaluation.estimates.attribution import attribute_row
    >>> found = attribute_row(lambda X: X @ [2.0, 1.0], np.array([3.0, 5.0]), np.zeros((4, 2)), {"a": [0], "b": [1]})
    >>> found.shares, found.base, found.prediction
    (array([6., 5.]), 0.0, 11.0)
    """
    check_parameters("attribute_row", {"n_orders": n_orders, "random_state": random_state}, _RULES)
    if not len(others):
        raise DataError("attribute_row: there are no other rows to compare with; pass at least one.")
    if others.shape[1] != len(row):
        raise DataError(
            f"attribute_row: the row has {len(row)} numbers, the others {others.shape[1]}; encode both alike."
        )
    names = list(groups)
    blocks = [np.asarray(groups[name], dtype=np.intp) for name in names]
    d = len(names)
    rng = np.random.default_rng(random_state)
    walks: list[tuple[NDArray[np.int64], Array]] = []
    for number in range(n_orders):
        z = others[number % len(others)]
        order = rng.permutation(d)
        walks += [(order, z), (order[::-1], z)]
    steps = np.empty((len(walks), d + 1))
    at_once = max(1, _MOST_NUMBERS // ((d + 1) * len(row)))
    for first in range(0, len(walks), at_once):
        part = walks[first : first + at_once]
        rows = np.concatenate([_walk(row, z, order, blocks) for order, z in part])
        steps[first : first + len(part)] = np.asarray(predict(rows), dtype=np.float64).reshape(len(part), d + 1)
    found = np.empty((len(walks), d))
    for k, (order, _) in enumerate(walks):
        found[k, order] = np.diff(steps[k])
    pairs = (found[0::2] + found[1::2]) / 2.0
    errors = pairs.std(axis=0, ddof=1) / np.sqrt(n_orders) if n_orders > 1 else np.zeros(d)
    return Attribution(names, pairs.mean(axis=0), errors, float(steps[0, -1]), float(steps[:, 0].mean()))


def _walk(x: Array, z: Array, order: NDArray[np.int64], blocks: list[NDArray[np.intp]]) -> Array:
    """Return the d + 1 rows on the way from z to x, one column of the table after the other in this order."""
    start = x.copy()
    for block in blocks:
        start[block] = z[block]
    rows = np.tile(start, (len(order) + 1, 1))
    for step, j in enumerate(order.tolist(), start=1):
        rows[step:, blocks[j]] = x[blocks[j]]
    return rows
