"""Best subsets and steps against mlxtend's exhaustive search, abess and scikit-learn's sequential selector.

The R package leaps needs R. It was measured once by processor time, one thread each, on the rows of `best_subset_all`
(`regsubsets(x, y, nvmax=p, method="exhaustive", really.big=TRUE)` of leaps 3.1): p = 30 0.585 s against 0.0366 s (16×),
p = 40 90.8 s against 0.613 s (148×), with the same residual sum of squares for every size.

The residual sum of squares is computed here from the columns that each contender chose.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .harness import OURS, Row

MLXTEND, SKLEARN, ABESS = "mlxtend", "scikit-learn", "abess"


class Data(NamedTuple):
    X: np.ndarray
    y: np.ndarray
    size: int  #: columns to choose


def half_matters(n: int, p: int, size: int, quick: tuple[int, int, int]) -> Callable[[bool], Data]:
    """Independent columns of which half have the same coefficient, and noise of the size of one of them."""

    def make(is_quick: bool) -> Data:
        rows, columns, chosen = quick if is_quick else (n, p, size)
        rng = np.random.default_rng(columns)
        X = rng.standard_normal((rows, columns))
        y = X[:, rng.permutation(columns)[: columns // 2]].sum(axis=1) + rng.standard_normal(rows)
        return Data(X, y, chosen)

    return make


def every_size(data: Data) -> Any:
    from learnable import BestSubset

    return BestSubset(size=(0, data.X.shape[1])).fit(data.X, data.y).support_


def one_size(data: Data) -> Any:
    from learnable import BestSubset

    return BestSubset(size=data.size).fit(data.X, data.y).support_


def exhaustive(data: Data) -> Any:
    from mlxtend.feature_selection import ExhaustiveFeatureSelector
    from sklearn.linear_model import LinearRegression

    search = ExhaustiveFeatureSelector(
        LinearRegression(), min_features=data.size, max_features=data.size, cv=0, scoring="r2", print_progress=False
    )
    return np.isin(np.arange(data.X.shape[1]), search.fit(data.X, data.y).best_idx_)


def few_matter(n: int, p: int, size: int, quick: tuple[int, int, int]) -> Callable[[bool], Data]:
    """Correlated columns of which `size` have coefficients of either sign, and noise."""

    def make(is_quick: bool) -> Data:
        rows, columns, chosen = quick if is_quick else (n, p, size)
        rng = np.random.default_rng(columns)
        X = rng.standard_normal((rows, columns)) + 0.5 * rng.standard_normal((rows, 1))
        beta = rng.choice([-2.0, -1.0, 1.0, 2.0], size=chosen)
        y = X[:, rng.permutation(columns)[:chosen]] @ beta + 2.0 * rng.standard_normal(rows)
        return Data(X, y, chosen)

    return make


def splicing(data: Data) -> Any:
    from learnable import BestSubset

    return BestSubset(size=data.size, method="splicing").fit(data.X, data.y).support_


def abess(data: Data) -> Any:
    from abess.linear import LinearRegression

    model = LinearRegression(path_type="seq", support_size=[data.size], cv=1).fit(data.X, data.y)
    return model.coef_ != 0


def grouped(data: Data) -> Any:
    from learnable import BestSubset

    pairs = [[j, j + 1] for j in range(0, data.X.shape[1] - 1, 2)]
    return BestSubset(size=data.size // 2, groups=pairs, alpha=1e-6).fit(data.X, data.y).support_


def classes(data: Data) -> Any:
    from learnable import BestSubsetClassifier

    return BestSubsetClassifier(size=data.size).fit(data.X, data.y > 0).support_


def penalised(data: Data) -> Any:
    from learnable import NonconvexRegression

    return NonconvexRegression("mcp", alpha=0.3).fit(data.X, data.y).coef_ != 0


def steps(data: Data) -> Any:
    from learnable import ForwardStepwise

    return ForwardStepwise(size=data.size).fit(data.X, data.y).support_


def selector(data: Data) -> Any:
    from sklearn.feature_selection import SequentialFeatureSelector
    from sklearn.linear_model import LinearRegression

    every = np.arange(len(data.y))  # judged on the rows of the fit: the same rule as ours
    search = SequentialFeatureSelector(LinearRegression(), n_features_to_select=data.size, cv=[(every, every)])
    return search.fit(data.X, data.y).get_support()


def rss(support: Any, data: Data) -> dict[str, float]:
    part = np.column_stack([np.ones(len(data.y)), data.X[:, support]])
    r = data.y - part @ np.linalg.lstsq(part, data.y, rcond=None)[0]
    return {"objective": float(r @ r), "columns": float(np.sum(support))}


ROWS = (
    Row(
        "best_subset_all",
        "BestSubset, every size",
        "1,000×40",
        half_matters(1000, 40, 20, (300, 20, 10)),
        {OURS: every_size},
        rss,
        compared=None,
    ),
    Row(
        "best_subset_one",
        "BestSubset, 7 of 15 columns",
        "1,000×15",
        half_matters(1000, 15, 7, (200, 10, 5)),
        {OURS: one_size, MLXTEND: exhaustive},
        rss,
        targets={MLXTEND: 100.0},
    ),
    Row(
        "best_subset_splicing",
        "BestSubset by splicing, 10 columns",
        "500×2,000",
        few_matter(500, 2000, 10, (200, 300, 5)),
        {OURS: splicing, ABESS: abess},
        rss,
        targets={ABESS: 1.0},
    ),
    Row(
        "best_subset_groups",
        "BestSubset of pairs of columns",
        "500×20",
        few_matter(500, 20, 6, (200, 10, 4)),
        {OURS: grouped},
        rss,
        compared=None,
    ),
    Row(
        "best_subset_classes",
        "BestSubsetClassifier, 5 columns",
        "500×20",
        few_matter(500, 20, 5, (200, 10, 3)),
        {OURS: classes},
        rss,
        compared=None,
    ),
    Row(
        "nonconvex_mcp",
        "NonconvexRegression, MCP",
        "500×200",
        few_matter(500, 200, 10, (200, 30, 5)),
        {OURS: penalised},
        rss,
        compared=None,
    ),
    Row(
        "forward_stepwise",
        "ForwardStepwise, 20 columns",
        "500×200",
        half_matters(500, 200, 20, (200, 30, 5)),
        {OURS: steps, SKLEARN: selector},
        rss,
        targets={SKLEARN: 20.0},
    ),
)
