"""Who takes part in a comparison: the registered models of the task with their settings, and a baseline."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from sklearn.base import clone

from ...core.errors import ParameterError
from ...core.registry import REGISTRY, check_model_name, check_one_target, estimator_names, resolve
from ...core.search_spaces import SEARCH_SPACES

_BASELINES = {
    "regression": ("sklearn.dummy:DummyRegressor", {"strategy": "mean"}, "baseline: the mean"),
    "binary": ("sklearn.dummy:DummyClassifier", {"strategy": "prior"}, "baseline: the most frequent class"),
}
_BASELINES["multiclass"] = _BASELINES["binary"]
_CALIBRATION_FOLDS = 3  # each fits the classifier once more; three cost half of the usual five
_FEWEST_TO_CALIBRATE = 10  # rows of the rarest class: after hold-out and folds, three are left to every calibration
_NETWORKS = frozenset({"MLPClassifier", "MLPRegressor"})  # five seconds per fold of the demonstration, others under 0.3


@dataclass(frozen=True)
class Candidate:
    """A model that takes part; built in its own process, so that the caller imports no model.

    Attributes
    ----------
    name : str
        Unique within a comparison.
    model : str
        The class.
    parameters : dict
        What is set; the rest are defaults.
    path : str or None
        `"module:Class"`; None if an estimator was given.
    estimator : object or None
        The estimator that was given.
    baseline : bool
        Whether it looks at no feature.
    around : {"scaled target", "calibrated", "blend"} or None
        What is put around the model: standardised targets where its parameters are in their units, probabilities where
        it has none, a blend around `members`.
    members : tuple of Candidate
        Of a blend.
    weights : tuple of float
        Of the members.
    """

    name: str
    model: str
    parameters: dict[str, Any]
    path: str | None = None
    estimator: Any = None
    baseline: bool = False
    around: str | None = None
    members: tuple[Candidate, ...] = ()
    weights: tuple[float, ...] = ()

    def build(self, seed: int, max_seconds: float | None = None) -> Any:
        """Return a new unfitted estimator; `random_state` and `max_seconds` are set where it has them unset."""
        if self.around == "blend":
            share = None if max_seconds is None else max_seconds / len(self.members)
            built = [member.build(seed, share) for member in self.members]
            return resolve(str(self.path))(built, weights=list(self.weights))
        if self.around == "calibrated" and max_seconds is not None:
            max_seconds /= _CALIBRATION_FOLDS
        model = clone(self.estimator) if self.path is None else resolve(self.path)(**self.parameters)
        known = model.get_params(deep=False)
        wanted = {"random_state": seed, "max_seconds": max_seconds}
        model.set_params(**{key: value for key, value in wanted.items() if key in known and known[key] is None})
        if self.around == "scaled target":
            return resolve("learnable.meta.scaled_target:ScaledTargetRegressor")(model)
        if self.around == "calibrated":
            return resolve("learnable.evaluation.calibration:CalibratedClassifier")(model, cv=_CALIBRATION_FOLDS)
        return model


def wants_dense(candidate: Candidate) -> bool:
    """Tell whether a model takes dense columns only, or does better with few of them than with many sparse ones.

    Linear models use sparse columns well; trees, neighbours and kernels drown in hashed text.

    Examples
    --------
    >>> from learnable.evaluation.comparison.candidates import candidates_for, wants_dense
    >>> [wants_dense(candidates_for("binary", [name])[1]) for name in ("LinearSVC", "GaussianNB")]
    [False, True]
    """
    if candidate.members:
        return any(wants_dense(member) for member in candidate.members)
    if candidate.baseline:
        return False
    entry = REGISTRY.get(candidate.model)
    if entry is not None and entry.path == candidate.path and entry.traits is not None:
        return entry.traits.family != "linear"
    from sklearn.utils import get_tags

    return not get_tags(candidate.build(seed=0)).input_tags.sparse


def candidates_for(task: str, models: Iterable[Any] | None = None, y: Any = None) -> list[Candidate]:
    """Return the baseline and the models of a comparison.

    Parameters
    ----------
    task : {"regression", "binary", "multiclass"}
        What is predicted.
    models : iterable, optional
        Registered names, `"module:Class"` paths, estimators, or pairs of a name and an estimator; by default every
        registered model that is made for the task and for tables of this length, in each of its variants.
    y : array, optional
        The targets; models of counts or of positive numbers are left out where these are others, and models whose cost
        grows fast with the rows where there are many.

    Examples
    --------
    >>> from learnable.evaluation.comparison.candidates import candidates_for
    >>> [candidate.name for candidate in candidates_for("binary", ["LogisticRegression"])][:2]
    ['baseline: the most frequent class', 'LogisticRegression (C=1)']
    """
    path, parameters, name = _BASELINES[task]
    found = [Candidate(name, path.partition(":")[2], parameters, path, baseline=True)]
    if models is None:
        models = [name for name in estimator_names() if _is_for(name, task) and _suits(name, y) and _bears(name, y)]
    if isinstance(models, str):
        models = [models]
    for wanted in models:
        found += _registered(wanted, task) if isinstance(wanted, str) else [_given(wanted)]
    return _with_unique_names([surrounded(candidate, task, y) for candidate in found])


def stops_early(candidate: Candidate) -> bool:
    """Tell whether a model ends its fit when its time is up, with what it has by then.

    Examples
    --------
    >>> from learnable.evaluation.comparison.candidates import candidates_for, stops_early
    >>> [stops_early(candidates_for("binary", [name])[1]) for name in ("HistGradientBoostingClassifier", "GaussianNB")]
    [True, False]
    """
    return candidate.path is not None and "max_seconds" in inspect.signature(resolve(candidate.path)).parameters


def one_of_each_first(entries: Sequence[Any], candidate_of: Callable[[Any], Candidate]) -> list[Any]:
    """Return entries in the order in which they deserve time, for when it runs out.

    Baselines come first, then one setting of every class before a second of any, and those classes first that most
    often win on tables: the order of `SEARCH_SPACES`. Networks come last: they need the most time, and what the others
    left over is theirs, so that they are seldom cut and begun again.

    Examples
    --------
    >>> from learnable.evaluation.comparison.candidates import candidates_for, one_of_each_first
    >>> found = candidates_for("regression", ["Ridge", "HistGradientBoostingRegressor"])
    >>> [candidate.name for candidate in one_of_each_first(found, lambda candidate: candidate)][:3]
    ['baseline: the mean', 'HistGradientBoostingRegressor', 'Ridge (alpha=1)']
    """
    strength = {model: place for place, model in enumerate(SEARCH_SPACES)}
    seen: dict[str, int] = {}
    places = []
    for entry in entries:
        candidate = candidate_of(entry)
        setting = seen.get(candidate.model, 0)
        seen[candidate.model] = setting + 1
        place = strength.get(candidate.model, len(strength))
        places.append((not candidate.baseline, candidate.model in _NETWORKS, setting, place))
    return [entries[k] for k in sorted(range(len(entries)), key=lambda k: places[k])]


def surrounded(candidate: Candidate, task: str, y: Any) -> Candidate:
    """Return the candidate with what it lacks put around it; an estimator that was given is left as it is."""
    if candidate.path is None or candidate.baseline:
        return candidate
    if task == "regression":
        entry = REGISTRY.get(candidate.model)
        scaled = entry is not None and entry.path == candidate.path and entry.scales_target
        return replace(candidate, around="scaled target") if scaled else candidate
    if _has_probabilities(candidate):
        return candidate
    if y is not None and np.bincount(np.unique(y, return_inverse=True)[1]).min() < _FEWEST_TO_CALIBRATE:
        return candidate
    return replace(candidate, around="calibrated")


def with_probabilities(candidates: Sequence[Candidate], label: str) -> tuple[list[Candidate], str | None]:
    """Return the candidates that give probabilities, and a sentence about the others, if there are any.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.evaluation.comparison.candidates import candidates_for, with_probabilities
    >>> y = np.arange(200) < 8
    >>> found, note = with_probabilities(candidates_for("binary", ["GaussianNB", "LinearSVC"], y), "log loss")
    >>> [candidate.model for candidate in found]
    ['DummyClassifier', 'GaussianNB']
    >>> note
    'LinearSVC left out: log loss needs probabilities, and a class has too few rows to calibrate scores'
    """
    left_out = [c for c in candidates if c.around is None and not c.baseline and not _has_probabilities(c)]
    if not left_out:
        return list(candidates), None
    names = ", ".join(dict.fromkeys(candidate.model for candidate in left_out))
    note = f"{names} left out: {label} needs probabilities, and a class has too few rows to calibrate scores"
    return [candidate for candidate in candidates if candidate not in left_out], note


def _has_probabilities(candidate: Candidate) -> bool:
    """Tell whether a classifier has probabilities, or nothing that could be turned into some."""
    entry = REGISTRY.get(candidate.model)
    if entry is not None and entry.path == candidate.path:  # of our own models, the registry knows without an import
        return not entry.only_scores
    model = resolve(str(candidate.path))(**candidate.parameters)
    return hasattr(model, "predict_proba") or not hasattr(model, "decision_function")


def blend_of(members: Sequence[Candidate], weights: Sequence[float], task: str) -> Candidate:
    """Return the blend of some candidates as one more."""
    kind = "BlendRegressor" if task == "regression" else "BlendClassifier"
    shown = {member.name: round(float(weight), 4) for member, weight in zip(members, weights, strict=True)}
    return Candidate(
        f"blend of {len(members)} models",
        kind,
        {"weights": shown},
        REGISTRY[kind].path,
        around="blend",
        members=tuple(members),
        weights=tuple(float(weight) for weight in weights),
    )


def _is_for(name: str, task: str) -> bool:
    traits = REGISTRY[name].traits
    return traits is not None and task in traits.tasks and bool(REGISTRY[name].variants)


def _suits(name: str, y: Any) -> bool:
    """Tell whether a model is made for these targets; where they are not known, only if it is made for all."""
    traits = REGISTRY[name].traits
    wanted = "any" if traits is None else traits.targets
    if wanted == "any" or y is None:
        return wanted == "any"
    positive = bool((y > 0).all())
    return positive if wanted == "positive" else bool((y >= 0).all() and (y == np.round(y)).all() and (y > 0).any())


def _bears(name: str, y: Any) -> bool:
    """Tell whether a model can take so many rows in the time of a comparison."""
    most = REGISTRY[name].most_rows
    return most is None or y is None or len(y) <= most


def _registered(name: str, task: str) -> list[Candidate]:
    if ":" in name:
        return [_by_path(name)]
    check_model_name("compare", name)
    check_one_target("compare", name)
    traits = REGISTRY[name].traits
    if traits is None or task not in traits.tasks:
        suited = [known for known in estimator_names() if _is_for(known, task)]
        raise ParameterError(f"compare: {name} is not made for {task}; use one of {', '.join(suited)}.")
    variants = REGISTRY[name].variants or ({},)
    return [
        Candidate(_title(name, variant, len(variants)), name, dict(variant), REGISTRY[name].path)
        for variant in variants
    ]


def _by_path(path: str) -> Candidate:
    try:
        estimator = resolve(path)()
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        raise ParameterError(
            f"compare: {path!r} is no estimator that can be built: {error}; write it as module:Class, "
            "for example sklearn.linear_model:Lasso."
        ) from error
    name = path.partition(":")[2]
    _check_estimator(path, estimator)
    return Candidate(name, name, {}, path)


def _given(model: Any) -> Candidate:
    name, estimator = model if isinstance(model, Sequence) and len(model) == 2 else (None, model)
    _check_estimator(model, estimator)
    cls = type(estimator)
    default = cls().get_params(deep=False) if _has_defaults(cls) else {}
    given = estimator.get_params(deep=False)
    changed = {key: value for key, value in given.items() if key not in default or not _same(default[key], value)}
    return Candidate(
        str(name) if name is not None else _title(cls.__name__, changed), cls.__name__, changed, None, estimator
    )


def _check_estimator(given: Any, estimator: Any) -> None:
    if not all(hasattr(estimator, name) for name in ("fit", "predict", "get_params")):
        shown = repr(given)[:80]
        raise ParameterError(f"compare: models must be names, estimators or (name, estimator) pairs; got {shown}.")


def _has_defaults(cls: type) -> bool:
    try:
        cls()
    except TypeError:
        return False
    return True


def _same(a: Any, b: Any) -> bool:
    try:
        return bool(a is b or a == b)
    except ValueError:  # arrays
        return False


def _title(name: str, parameters: dict[str, Any], variants: int = 2) -> str:
    """Return the class with what is set, in a few words; a single variant needs none."""
    numbers = {k: v for k, v in parameters.items() if isinstance(v, (int, float)) and not isinstance(v, bool)}
    short = [f"{key}={value:g}" for key, value in numbers.items()]
    short += [f"{key}={value}" for key, value in parameters.items() if isinstance(value, (str, bool))]
    return f"{name} ({', '.join(short)})" if short and variants > 1 else name


def _with_unique_names(found: list[Candidate]) -> list[Candidate]:
    seen: dict[str, int] = {}
    unique = []
    for candidate in found:
        seen[candidate.name] = seen.get(candidate.name, 0) + 1
        count = seen[candidate.name]
        unique.append(candidate if count == 1 else replace(candidate, name=f"{candidate.name} #{count}"))
    return unique


# --------------------------------------------------------------------------------------------------------------------
# Short names of models for narrow tables; the record keeps the full ones beside them.


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
    >>> from learnable.evaluation.comparison.candidates import short_name
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
    >>> from learnable.evaluation.comparison.candidates import short_names
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
