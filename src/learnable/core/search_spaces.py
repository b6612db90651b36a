"""What a comparison may tune: a small search space for each family of models, by registered name.

A space holds the two to six parameters that decide most, with ranges in which good values of real tables lie: wide
enough for tables of a hundred and of a million rows, narrow enough for a few dozen draws. Before the draws come a few
settings that lie far apart and do well on many tables, so that a search of four settings is not left to luck.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np


@dataclass(frozen=True)
class LogUniform:
    """Numbers whose logarithm is uniform, rounded to two digits, or to whole numbers.

    Examples
    --------
    >>> import numpy as np
    >>> LogUniform(0.01, 1.0).draw(np.random.default_rng(0))
    0.19
    >>> LogUniform(4, 64, whole=True).draw(np.random.default_rng(0))
    23
    """

    low: float
    high: float
    whole: bool = False

    def draw(self, rng: np.random.Generator) -> Any:
        """Return one value."""
        value = math.exp(rng.uniform(math.log(self.low), math.log(self.high)))
        return round(value) if self.whole else float(f"{value:.2g}")


@dataclass(frozen=True)
class Choice:
    """One of a few values, all alike."""

    values: tuple[Any, ...]

    def draw(self, rng: np.random.Generator) -> Any:
        """Return one value."""
        return self.values[int(rng.integers(len(self.values)))]


Space = Mapping[str, LogUniform | Choice]

_HISTOGRAM: Final[Space] = {
    "learning_rate": LogUniform(0.02, 0.2),
    "max_iter": LogUniform(100, 800, whole=True),
    "max_leaf_nodes": LogUniform(8, 128, whole=True),
    "min_samples_leaf": LogUniform(3, 60, whole=True),
    "l2_regularization": Choice((0.0, 0.1, 1.0, 10.0)),
    "max_features_tree": Choice((0.5, 0.7, 1.0)),
    "early_stopping": Choice((False,)),
}
_BOOSTING: Final[Space] = {
    "learning_rate": LogUniform(0.03, 0.3),
    "n_estimators": LogUniform(100, 500, whole=True),
    "max_depth": Choice((2, 3, 4, 5, 6)),
    "subsample": Choice((0.6, 0.8, 1.0)),
    "max_features": Choice((None, 0.5, 0.8)),
    "min_samples_leaf": LogUniform(1, 30, whole=True),
}
_FOREST: Final[Space] = {
    "max_features": Choice(("sqrt", 0.3, 0.5, 0.7, 1.0)),
    "min_samples_leaf": LogUniform(1, 10, whole=True),
    "n_estimators": Choice((100, 200)),
}
_NEIGHBOURS: Final[Space] = {
    "n_neighbors": LogUniform(2, 80, whole=True),
    "weights": Choice(("uniform", "distance")),
    "p": Choice((1, 2)),
}
_SUPPORT: Final[Space] = {"C": LogUniform(0.1, 100.0), "gamma": LogUniform(0.003, 0.5)}

SEARCH_SPACES: Final[dict[str, Space]] = {
    "HistGradientBoostingClassifier": _HISTOGRAM,
    "HistGradientBoostingRegressor": _HISTOGRAM,
    "GradientBoostingClassifier": _BOOSTING,
    "GradientBoostingRegressor": _BOOSTING,
    "RandomForestClassifier": _FOREST,
    "RandomForestRegressor": _FOREST,
    "ExtraTreesClassifier": _FOREST,
    "ExtraTreesRegressor": _FOREST,
    "KNeighborsClassifier": _NEIGHBOURS,
    "KNeighborsRegressor": _NEIGHBOURS,
    "SVC": _SUPPORT,
    "SVR": {**_SUPPORT, "epsilon": LogUniform(0.01, 0.3)},
    "KernelRidge": {
        "kernel": Choice(("rbf",)),
        "alpha": LogUniform(0.001, 3.0),
        "gamma": LogUniform(0.003, 0.5),
    },
    "LogisticRegression": {"C": LogUniform(0.001, 300.0), "l1_ratio": Choice((0.0, 0.5, 1.0))},
    "LinearSVC": {"C": LogUniform(0.001, 30.0)},
    "LinearSVR": {"C": LogUniform(0.01, 30.0), "epsilon": Choice((0.0, 0.05, 0.2))},
    "Ridge": {"alpha": LogUniform(0.01, 10000.0)},
    "ElasticNet": {"alpha": LogUniform(0.0003, 1.0), "l1_ratio": Choice((0.1, 0.5, 0.9))},
    "Lasso": {"alpha": LogUniform(0.0003, 1.0)},
}


def _histogram(rate: float, rounds: int, leaves: int, rows: int, penalty: float, columns: float) -> dict[str, Any]:
    return {
        "learning_rate": rate,
        "max_iter": rounds,
        "max_leaf_nodes": leaves,
        "min_samples_leaf": rows,
        "l2_regularization": penalty,
        "max_features_tree": columns,
        "early_stopping": False,
    }


#: From the middle outwards: medium trees, small ones for short or noisy tables, large ones for long tables, many large
#: ones with short steps for tables with much to find (R² of California's houses 0.859 instead of 0.855).
_HISTOGRAM_FIRST: Final = (
    _histogram(0.05, 300, 31, 20, 0.1, 0.7),
    _histogram(0.05, 300, 8, 10, 1.0, 0.7),
    _histogram(0.05, 600, 63, 10, 1.0, 0.5),
    _histogram(0.02, 800, 112, 16, 0.1, 0.7),
    _histogram(0.1, 200, 16, 5, 1.0, 0.5),
    _histogram(0.02, 600, 16, 30, 1.0, 0.5),
    _histogram(0.1, 400, 127, 20, 10.0, 0.7),
)
_FOREST_FIRST: Final = (
    {"max_features": 0.5, "min_samples_leaf": 1, "n_estimators": 200},
    {"max_features": "sqrt", "min_samples_leaf": 1, "n_estimators": 200},
    {"max_features": 0.3, "min_samples_leaf": 3, "n_estimators": 200},
)
_SUPPORT_FIRST: Final = ({"C": 10.0, "gamma": 0.05}, {"C": 30.0, "gamma": 0.15}, {"C": 3.0, "gamma": 0.015})

#: Tried before anything is drawn, by registered name.
FIRST_SETTINGS: Final[dict[str, tuple[dict[str, Any], ...]]] = {
    "HistGradientBoostingClassifier": _HISTOGRAM_FIRST,
    "HistGradientBoostingRegressor": _HISTOGRAM_FIRST,
    "RandomForestClassifier": _FOREST_FIRST,
    "RandomForestRegressor": _FOREST_FIRST,
    "ExtraTreesClassifier": _FOREST_FIRST,
    "ExtraTreesRegressor": _FOREST_FIRST,
    "SVC": _SUPPORT_FIRST,
    "SVR": tuple({**settings, "epsilon": 0.05} for settings in _SUPPORT_FIRST),
}


def draw_settings(name: str, n: int, seed: int) -> list[dict[str, Any]]:
    """Return up to `n` different settings of a registered model; none if it has no space.

    Those of `FIRST_SETTINGS` come first, the others are drawn at random.

    Examples
    --------
    >>> draw_settings("Ridge", 2, seed=0)
    [{'alpha': 66.0}, {'alpha': 0.42}]
    >>> draw_settings("LinearRegression", 2, seed=0)
    []
    """
    space = SEARCH_SPACES.get(name)
    if space is None:
        return []
    rng = np.random.default_rng(seed)
    found: list[dict[str, Any]] = [dict(settings) for settings in FIRST_SETTINGS.get(name, ())[:n]]
    if len(found) == n:
        return found
    for _ in range(3 * n):
        setting = {key: values.draw(rng) for key, values in space.items()}
        if setting not in found:
            found.append(setting)
        if len(found) == n:
            break
    return found
