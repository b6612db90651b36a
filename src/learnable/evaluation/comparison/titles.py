"""Short names of models for narrow tables; the record keeps the full ones beside them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

#: Endings of classes that the task tells already; what is left must say something.
_ENDINGS: Final = ("Regressor", "Classifier")
_FAMILIES: Final = {
    "KNeighbors": "KNN",
    "GaussianProcess": "GP",
    "LinearDiscriminantAnalysis": "LDA",
    "QuadraticDiscriminantAnalysis": "QDA",
    "BayesianLinearRegression": "BayesianLinear",
}
_SETTINGS: Final = {
    "n_neighbors": "k",
    "min_samples_leaf": "leaf",
    "max_depth": "depth",
    "max_leaf_nodes": "leaves",
    "n_estimators": "trees",
    "max_features": "features",
    "learning_rate": "rate",
    "ccp_alpha": "pruning",
    "l1_ratio": "l1",
    "reg_lambda": "lambda",
}
_PARTS: Final = re.compile(r"^(?P<name>[^()]+?)(?: \((?P<inside>.*)\))?(?P<number> #\d+)?$", re.DOTALL)


def short_name(name: str, model: str) -> str:
    """Return a model's name in fewer letters; one that the caller chose stays as it is.

    Parameters
    ----------
    name : str
        The name of its line, such as "RandomForestRegressor (min_samples_leaf=5, max_features=third)".
    model : str
        Its class.

    Examples
    --------
    >>> from learnable.evaluation.comparison.titles import short_name
    >>> short_name("RandomForestRegressor (min_samples_leaf=5, max_features=third)", "RandomForestRegressor")
    'RandomForest leaf=5 features=third'
    >>> short_name("KNeighborsClassifier (n_neighbors=5)", "KNeighborsClassifier")
    'KNN k=5'
    >>> short_name("my model (v2)", "Ridge")
    'my model (v2)'
    """
    found = _PARTS.match(name)
    if found is None or found["name"] != model:
        return name
    family = model
    for ending in _ENDINGS:
        family = family.removesuffix(ending) or family
    pieces = [_FAMILIES.get(family, family)]
    for setting in (found["inside"] or "").split(", "):
        key, equals, value = setting.partition("=")
        pieces.append(f"{_SETTINGS.get(key, key)}={value}" if equals else setting)
    return " ".join(piece for piece in pieces if piece) + (found["number"] or "")


def short_names(rows: Sequence[Any]) -> list[str]:
    """Return the short names of some lines; where two would be the same, both keep their full names.

    Examples
    --------
    >>> from learnable.evaluation.comparison.titles import short_names
    >>> short_names([{"name": "Ridge (alpha=1)", "model": "Ridge"}, {"name": "Ridge", "model": "Ridge"}])
    ['Ridge alpha=1', 'Ridge']
    """
    found = [short_name(str(row["name"]), str(row["model"])) for row in rows]
    return [short if found.count(short) == 1 else str(row["name"]) for short, row in zip(found, rows, strict=True)]
