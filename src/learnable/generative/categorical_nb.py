r"""Naive Bayes with categories.

    x_j | class k  ~  Categorical(p_kj), independent given the class,   p_kj ~ Dir(α_j, …, α_j);
    p_kjc = (n_kjc + α_j) / (Σ_c n_kjc + C_j α_j)

n_kjc counts the rows of class k with category c in column j, which has C_j categories. The estimate is the mean of the
posterior Dir(n + α), and since a row shows one category per column, it is the posterior predictive too: to integrate
over the parameters changes nothing.

An entry that is NaN is integrated out, which under independence means that its factor is left out.

Reference: T. Mitchell, Machine Learning (1997), section 6.9.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ..core import (
    Array,
    ArrayLike,
    DataError,
    NDArray,
    Number,
    ParameterError,
    fitted,
    is_array,
    law,
    laws,
    optional,
    param,
    tags,
)
from ..data import Block, door, map_reduce
from ..probability.conjugate.dirichlet_multinomial import DirichletCategorical
from ._kernels import add_categories, category_scores
from .base import codes_of, log_or_minus_inf, score_rows, weights_of
from .counts_nb import CountsNB, rounding_of

_MOST_CELLS = 2**27  # of all tables together: 1 GB
_CATEGORIES = Number(low=1, integer=True)


class CategoricalNB(CountsNB):
    """Naive Bayes for categories 0, 1, …, C_j − 1 in each column.

    The fit is one pass over the rows, in O(n + K Σ_j C_j) memory besides the data. Text becomes such numbers by
    `sklearn.preprocessing.OrdinalEncoder`.

    Examples
    --------
    >>> from learnable import CategoricalNB
    >>> X, y = [[0, 2], [0, 1], [1, 0], [1, float("nan")]], ["a", "a", "b", "b"]
    >>> model = CategoricalNB().fit(X, y)
    >>> model.predict_proba([[0, 0], [float("nan"), 0]]).round(3)
    array([[0.545, 0.455],
           [0.286, 0.714]])
    """

    _theory = "naive-bayes"

    min_categories: Any = param(
        optional(_CATEGORIES | ArrayLike(Number(low=1))),
        "Least number of categories of the columns; None: what the rows show.",
        default=None,
    )
    category_count_: Any = fitted(
        "list of n_features arrays of shape (n_classes, n_categories_[j])", "Weight of the rows with each category."
    )
    feature_log_prob_: Any = fitted("list of n_features arrays of shape (n_classes, n_categories_[j])", "log p.")
    n_categories_: NDArray[np.int64] = fitted("(n_features,)", "C_j.", kind="i", low=1)

    _door = staticmethod(door(target="classes", sparse=False, missing=True, one_class=True))
    _missing = True
    _tags = tags(categorical=True, positive_only=True)

    def _sums(self, blocks: Any, n_classes: int) -> tuple[Array, list[Array]]:
        count = partial(_block_counts, n_classes=n_classes, owner=type(self).__name__)
        return map_reduce(blocks, count, _add, n_jobs=self.n_jobs)

    def _merge(self, a: tuple[Array, list[Array]], b: tuple[Array, list[Array]]) -> tuple[Array, list[Array]]:
        return _add((a[0].copy(), [table.copy() for table in a[1]]), b)

    def _stored(self) -> tuple[Array, list[Array]]:
        return self.class_count_, self.category_count_

    def _learn(self, sums: tuple[Array, list[Array]]) -> float:
        self.class_count_, tables = sums
        least = self._least_categories()
        K = len(self.classes_)
        alpha = self._alphas()
        if K * int(least.sum()) > _MOST_CELLS:
            raise ParameterError(f"{type(self).__name__}: min_categories asks for more than {_MOST_CELLS} counts.")
        self.category_count_ = [_widened(table, C) for table, C in zip(tables, least.tolist(), strict=True)]
        self.n_categories_ = np.array([table.shape[1] for table in self.category_count_], dtype=np.int64)
        self.feature_log_prob_ = []
        worst = 0.0
        for table, a in zip(self.category_count_, alpha.tolist(), strict=True):
            smoothed = table + a
            total = smoothed.sum(axis=1, keepdims=True)
            log_prob = log_or_minus_inf(smoothed) - np.log(np.where(total > 0, total, 1.0))
            worst = max(worst, rounding_of(log_prob))
            self.feature_log_prob_.append(log_prob)
        self._learn_class_prior()
        return worst

    def _least_categories(self) -> NDArray[np.int64]:
        d = self.n_features_in_
        given = np.asarray(1 if self.min_categories is None else self.min_categories)
        if given.dtype.kind not in "iu":
            raise ParameterError(
                f"{type(self).__name__}: 'min_categories' should have integral type. Got {given.dtype} instead."
            )
        if given.shape not in ((), (d,)):
            raise ParameterError(
                f"{type(self).__name__}: 'min_categories' should have shape ({d},) when an array-like is provided. Got "
                f"{given.shape} instead."
            )
        return np.broadcast_to(given.astype(np.int64), (d,))

    def posterior(self, column: int) -> DirichletCategorical:
        """Return the posterior of one column's probabilities, one for each class; it needs alpha > 0."""
        return DirichletCategorical(self.category_count_[column] + self._alphas()[column])

    def _joint(self, X: Any) -> Array:
        K = len(self.classes_)
        owner = type(self).__name__
        offset = np.r_[0, np.cumsum(self.n_categories_)[:-1]].astype(np.uint64)
        # A column of which a class shows nothing, without smoothing, says nothing about the class.
        tables = [np.where(np.isneginf(t).all(axis=1, keepdims=True), 0.0, t) for t in self.feature_log_prob_]
        log_prob = np.ascontiguousarray(np.concatenate(tables, axis=1).T)

        def score(rows: Array, out: Array) -> None:
            most = _check_codes(owner, rows)
            if (most >= self.n_categories_).any():
                j = int(np.argmax(most >= self.n_categories_))
                raise DataError(
                    f"{owner}: column {j} holds category {most[j]}; the fit knew 0 to {self.n_categories_[j] - 1}. "
                    "Fit with min_categories, or pass NaN for what is unknown."
                )
            out[:] = self.class_log_prior_
            category_scores(rows, offset, log_prob, out)

        return score_rows(X, K, score, self.n_jobs)

    _laws = laws(
        law(
            "category_count_ and feature_log_prob_ must be lists of one float64 array per column",
            lambda model: all(
                isinstance(tables, list)
                and len(tables) == model.n_features_in_
                and all(
                    is_array(table, (len(model.classes_), C)) and not np.isnan(table).any()
                    for table, C in zip(tables, model.n_categories_.tolist(), strict=True)
                )
                for tables in (model.category_count_, model.feature_log_prob_)
            ),
            "classes_",
        ),
        law(
            "category_count_ must not be negative",
            lambda model: all((table >= 0).all() for table in model.category_count_),
            "classes_",
        ),
    )


def _check_codes(owner: str, X: Array) -> NDArray[np.int64]:
    """Return the largest category of every column (−1 if there is none); raise unless all are whole and >= 0."""
    there = np.where(np.isnan(X), 0.0, X)
    if (there < 0).any():
        raise DataError(
            f"{owner}: Negative values in data passed to {owner} (input X): it holds {there.min():g}; categories are "
            "0, 1, …"
        )
    if (there != np.floor(there)).any():
        raise DataError(
            f"{owner}: categories must be whole numbers; X holds {there[there != np.floor(there)][0]:g}. Bin such a "
            "column first, or use GaussianNB."
        )
    if there.max(initial=0.0) >= _MOST_CELLS:
        raise DataError(
            f"{owner}: X holds the category {there.max():g}; categories are numbered 0, 1, …: encode such a column, "
            "for example by OrdinalEncoder."
        )
    return np.asarray(np.max(np.where(np.isnan(X), -1.0, X), axis=0, initial=-1.0), dtype=np.int64)


def _block_counts(block: Block, n_classes: int, owner: str) -> tuple[Array, list[Array]]:
    sizes = np.maximum(_check_codes(owner, block.X), 0) + 1
    if n_classes * int(sizes.sum()) > _MOST_CELLS:
        raise DataError(
            f"{owner}: {int(sizes.sum())} categories and {n_classes} classes need more than 1 GB of counts; number the "
            "categories of every column 0, 1, …, for example by OrdinalEncoder."
        )
    ends = np.cumsum(sizes * n_classes)
    counts = np.zeros(int(ends[-1]))
    offset = (ends - sizes * n_classes).astype(np.uint64)
    w = weights_of(block)
    add_categories(block.X, codes_of(block), w, offset, n_classes, counts)
    tables = [part.reshape(-1, n_classes).T.copy() for part in np.split(counts, ends[:-1])]
    return np.bincount(block.y, w, n_classes).astype(np.float64), tables  # type: ignore[arg-type]


def _add(a: tuple[Array, list[Array]], b: tuple[Array, list[Array]]) -> tuple[Array, list[Array]]:
    tables = []
    for mine, other in zip(a[1], b[1], strict=True):
        wide = _widened(mine, other.shape[1])
        wide[:, : other.shape[1]] += other
        tables.append(wide)
    return a[0] + b[0], tables


def _widened(table: Array, n_categories: int) -> Array:
    """Return the table with at least so many columns."""
    return np.pad(table, ((0, 0), (0, max(0, n_categories - table.shape[1]))))
