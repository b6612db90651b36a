"""Short names of models for narrow tables; the record keeps the full ones beside them."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
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


def short_name(name: str, model: str, without: Collection[str] = ()) -> str:
    """Return a model's name in fewer letters; one that the caller chose stays as it is.

    Parameters
    ----------
    name : str
        The name of its line, such as "RandomForestRegressor (min_samples_leaf=5, max_features=third)".
    model : str
        Its class.
    without : collection of str
        Settings that go without saying, such as "kernel=rbf".

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
        if setting in without:
            continue
        key, equals, value = setting.partition("=")
        pieces.append(f"{_SETTINGS.get(key, key)}={value}" if equals else setting)
    return " ".join(piece for piece in pieces if piece) + (found["number"] or "")


def short_names(rows: Sequence[Any]) -> list[str]:
    """Return the short names of some lines, without the settings that all lines of a class share.

    Where two would be the same, both keep their full names.

    Examples
    --------
    >>> from learnable.evaluation.comparison.titles import short_names
    >>> short_names([{"name": "Ridge (alpha=1)", "model": "Ridge"}, {"name": "Ridge", "model": "Ridge"}])
    ['Ridge alpha=1', 'Ridge']
    """
    shared = _shared_settings(rows)
    found = [short_name(str(row["name"]), str(row["model"]), shared.get(str(row["model"]), ())) for row in rows]
    return [short if found.count(short) == 1 else str(row["name"]) for short, row in zip(found, rows, strict=True)]


def _shared_settings(rows: Sequence[Any]) -> dict[str, set[str]]:
    """Return, by the class, the settings that stand in the names of all its lines that have any, if there are two."""
    found: dict[str, list[set[str]]] = {}
    for row in rows:
        parts = _PARTS.match(str(row["name"]))
        settings = {one for one in (parts["inside"] or "").split(", ") if "=" in one} if parts is not None else set()
        if settings and parts is not None and parts["name"] == row["model"]:
            found.setdefault(str(row["model"]), []).append(settings)
    return {model: set.intersection(*lines) for model, lines in found.items() if len(lines) > 1}
