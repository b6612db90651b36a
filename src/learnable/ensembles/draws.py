r"""Which rows and columns each member of an ensemble is fitted on.

A bag is N′ of the N rows, drawn with replacement (bootstrap, N′ = N by default) or without. A row is out of a bootstrap
bag of N rows with probability (1 − 1/N)^N, about 37 %: those rows judge the member that has not seen them. A draw is a
function of the ensemble's seed and the member's number alone, so that neither threads nor a warm start change it, and
a checker can repeat it.

References: L. Breiman, Bagging predictors, Machine Learning 24 (1996); G. Louppe and P. Geurts, Ensembles on random
patches, ECML (2012).
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np

from ..core import Array, NDArray, Nothing, Number, ParameterError, Rule

Rows = NDArray[np.int64]

#: None (all rows), a number of rows, or a share of them.
MAX_SAMPLES: Rule = Nothing() | Number(low=1, integer=True) | Number(low=0.0, high=1.0, low_open=True)


class Draw(NamedTuple):
    """How bags are drawn."""

    seed: int  #: of the ensemble
    n_rows: int  #: N
    n_drawn: int  #: N′
    replace: bool
    weight: Array | None = None  #: rows are drawn in proportion to it


def bag_size(owner: str, max_samples: Any, n_rows: int, replace: bool, weight: Array | None = None) -> int:
    """Return N′; a share is of the rows, or of the total weight, as in scikit-learn."""
    if max_samples is None:
        size = n_rows
    elif isinstance(max_samples, (int, np.integer)):
        size = int(max_samples)
    else:
        total = n_rows if weight is None else weight.sum()
        size = max(1, int(max_samples * total))
        if size < max(10, n_rows ** (1 / 3)):
            of = "number of samples" if weight is None else "total sum of sample weights"
            warnings.warn(
                f"Using the fractional value max_samples={max_samples} when the {of} is {total} results in a low "
                f"number ({size}) of bootstrap samples. We recommend passing `max_samples` as an integer instead.",
                UserWarning,
                stacklevel=4,
            )
    available = n_rows if weight is None else int(np.count_nonzero(weight))
    if not replace and size > available:
        raise ParameterError(
            f"{owner}: max_samples={size} must be <= n_samples={available} to be able to sample without replacement. "
            f"Rows without weight do not count; got {max_samples!r}. Lower it, or set bootstrap=True."
        )
    return size


def chances(weight: Array | None) -> Array | None:
    """Return the weights by which rows are drawn; None if all are equal: then the rows are those without weights."""
    return None if weight is None or weight.min() == weight.max() else weight


def draw_rows(draw: Draw, member: int, attempt: int = 0) -> Rows:
    """Return the rows of one member's bag, sorted, each as often as it was drawn.

    Examples
    --------
    >>> draw_rows(Draw(seed=3, n_rows=5, n_drawn=5, replace=True), member=0).tolist()
    [0, 0, 0, 1, 4]
    """
    if draw.weight is None and not draw.replace and draw.n_drawn == draw.n_rows:
        return np.arange(draw.n_rows)
    return np.repeat(np.arange(draw.n_rows), draw_counts(draw, member, attempt))


def draw_counts(draw: Draw, member: int, attempt: int = 0) -> Rows:
    """Return how often each row is in one member's bag.

    Examples
    --------
    >>> draw_counts(Draw(seed=3, n_rows=5, n_drawn=5, replace=True), member=0).tolist()
    [3, 1, 0, 0, 1]
    """
    rng = np.random.default_rng([draw.seed, member, attempt])
    if draw.weight is not None:
        rows = rng.choice(draw.n_rows, draw.n_drawn, replace=draw.replace, p=draw.weight / draw.weight.sum())
    elif draw.replace:
        rows = rng.integers(draw.n_rows, size=draw.n_drawn)
    else:
        rows = rng.choice(draw.n_rows, draw.n_drawn, replace=False, shuffle=False)
    return np.bincount(rows, minlength=draw.n_rows)


def draw_columns(seed: int, member: int, n_columns: int, n_drawn: int, replace: bool) -> Rows:
    """Return the columns of one member, sorted; all of them if all are drawn without replacement."""
    if n_drawn == n_columns and not replace:
        return np.arange(n_columns)
    rng = np.random.default_rng([seed, member, 2**32])
    return np.sort(rng.choice(n_columns, n_drawn, replace=replace)).astype(np.int64)


def out_of_bag(rows: Rows, n_rows: int) -> Rows:
    """Return the rows that are not in a bag."""
    absent = np.ones(n_rows, dtype=bool)
    absent[rows] = False
    return np.flatnonzero(absent)
