"""Fitted arrays found wherever they stand in a model, ways to damage them, and what a model answers, as arrays.

Each fitted array that any public method reads, also of models and parts inside, is changed by a thousandth as a whole
and in one entry; arrays of several entries are permuted, turned round, lose an entry, and have two entries swapped.
"""

import copy
import dataclasses
import inspect
import types
import warnings
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from learnable import verify
from learnable.core._soundness import is_fitted_name
from learnable.core.errors import VerificationError
from learnable.core.estimator import Certificate
from learnable.trees.layout import Trees, concatenate

#: Methods that need more than X, or that only describe the object.
NOT_ASKED = (
    "fit",
    "partial_fit",
    "set_",
    "get_metadata",
    "get_params",
    "get_feature_names",
    "online",
    "score",
    "certificate_",
)
TOO_SLOW = {"shap_interactions", "log_marginal_likelihood"}
#: Bookkeeping that no prediction reads.
RECORDS = {"certificate_", "n_iter_", "n_features_in_", "feature_names_in_", "fixed", "limits"}
#: A bound on nesting: deeper values are the arrays of models inside models inside models.
MAX_DEPTH = 6


class Leaf(NamedTuple):
    """One fitted value."""

    path: tuple[Any, ...]  #: names of attributes and fields, positions in lists
    value: Any

    @property
    def name(self):
        """Return the path, with every position in a list written as []: members of a list are alike."""
        text = ""
        for step in self.path:
            text += "[]" if isinstance(step, int) else f"[{step.key!r}]" if isinstance(step, Key) else f".{step}"
        return text.removeprefix(".")


class Key(NamedTuple):
    """A key of a dict, as a step of a path."""

    key: Any


def fitted_values(model, path=(), *, all_members=False):
    """Return the leaves of a fitted model: arrays, lists of things, numbers that are no counts.

    Members of a list are alike: only the first is looked into, unless `all_members`.
    """
    params = model.get_params(deep=False)
    leaves = []
    for name, value in vars(model).items():
        if is_fitted_name(name) and name not in params:
            leaves += _leaves(value, (*path, name), all_members)
    return leaves


def arrays_of(model):
    """Return the fitted arrays and numbers of a model and all its members, without bookkeeping."""
    found = fitted_values(model, all_members=True)
    return [leaf for leaf in found if not isinstance(leaf.value, list) and RECORDS.isdisjoint(leaf.path)]


def unnoticed(model, *data):
    """Return the changes of a fitted model that `verify` does not refuse; anything but a refusal is an error."""
    missed = []
    for leaf in arrays_of(model):
        for word, value in damages(leaf.value):
            if np.shape(value) == np.shape(leaf.value) and np.array_equal(value, leaf.value):
                continue  # a vector of equal numbers is the same when it is turned round
            try:
                seen = not verify(with_value(copy.deepcopy(model), leaf.path, value), *data)
            except VerificationError:
                seen = True
            if not seen:
                missed.append((leaf.name, word))
    return missed


def _leaves(value, path, all_members):
    if len(path) > MAX_DEPTH or isinstance(value, Certificate):
        return []
    if isinstance(value, np.ndarray):
        return [Leaf(path, value)] if value.size else []
    if isinstance(value, (float, np.floating)) or sp.issparse(value):
        return [Leaf(path, value)]
    if isinstance(value, list) and value:
        members = enumerate(value if all_members else value[:1])
        inside = [leaf for k, item in members for leaf in _leaves(item, (*path, k), all_members)]
        return [Leaf(path, value), *inside] if len(value) > 1 else inside
    if isinstance(value, dict):
        return [leaf for key, item in value.items() for leaf in _leaves(item, (*path, Key(key)), all_members)]
    if dataclasses.is_dataclass(value):
        fields = [field.name for field in dataclasses.fields(value) if field.init]
        leaves = [leaf for name in fields for leaf in _leaves(getattr(value, name), (*path, name), all_members)]
        return [Leaf(path, value), *leaves] if isinstance(value, Trees) and value.n_trees > 1 else leaves
    return fitted_values(value, path, all_members=all_members) if hasattr(value, "get_params") else []


def with_value(holder, path, value):
    """Return the holder with another value at the path; parts are built anew, so that nothing cached stays behind."""
    step, rest = path[0], path[1:]
    if isinstance(step, (int, Key)):
        place = step if isinstance(step, int) else step.key
        changed = copy.copy(holder)
        changed[place] = with_value(holder[place], rest, value) if rest else value
        return changed
    new = with_value(getattr(holder, step), rest, value) if rest else value
    if dataclasses.is_dataclass(holder):
        return dataclasses.replace(holder, **{step: new})
    changed = copy.copy(holder)
    setattr(changed, step, new)
    return changed


def damages(value):
    """Yield what a value can be changed to, with a word for it."""
    rng = np.random.default_rng(7)
    if isinstance(value, (float, np.floating)):
        yield "1e-3", type(value)(value * 1.001 if value else 1e-3)
    elif sp.issparse(value):
        changed = value.copy()
        changed.data = value.data * 1.001
        yield "1e-3", changed
    elif isinstance(value, Trees):
        yield "a tree dropped", concatenate([value.tree(t) for t in range(value.n_trees - 1)])
        yield "a tree repeated", concatenate([value.tree(max(t, 1)) for t in range(value.n_trees)])
    elif isinstance(value, list):
        yield "permuted", value[::-1]
        yield "dropped", value[:-1]
    else:
        if value.dtype.kind == "f":
            relative = 1.0 + 1e-3 * rng.choice([-1.0, 1.0], size=value.shape)
            yield "1e-3", np.where(value == 0, 1e-3, value * relative).astype(value.dtype)
            one = value.copy()
            finite = np.abs(np.where(np.isfinite(value), value, 0.0))
            one[np.unravel_index(int(finite.argmax()), value.shape)] *= 1.001
            yield "one entry", one
        if value.dtype.kind == "b":
            yield "flipped", ~value
        if value.ndim == 0 or value.dtype == object:
            return
        yield "permuted", value[rng.permutation(len(value))]
        yield "reversed", np.ascontiguousarray(value[::-1])
        yield "dropped", value[:-1]
        flat = value.ravel()
        others = np.flatnonzero(flat != flat[0])
        if len(others):
            swapped = flat.copy()
            swapped[[0, others[0]]] = swapped[[others[0], 0]]
            yield "swapped", swapped.reshape(value.shape)
        if value.ndim > 1 and value.shape[1] > 1:
            yield "columns reversed", np.ascontiguousarray(value[:, ::-1])


def questions(model):
    """Return the names of the public methods that X alone, or nothing, answers, and of the public properties."""
    names = []
    for name in dir(type(model)):
        if name.startswith(("_", *NOT_ASKED)) and name != "score_samples":
            continue
        if isinstance(inspect.getattr_static(type(model), name), property):
            names.append(name)
            continue
        if name in TOO_SLOW or not callable(getattr(model, name, None)):
            continue
        required = [
            parameter.name
            for parameter in inspect.signature(getattr(model, name)).parameters.values()
            if parameter.default is parameter.empty and parameter.kind not in (2, 4)
        ]
        if required in ([], ["X"]):
            names.append(name)
    return names


def answers(model, X):
    """Return what every public method says of X, as {method: plain values}; an error is an answer too."""
    model = copy.deepcopy(model)
    found = {}
    for name in questions(model):
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                found[name] = plain(_ask(model, name, X))
            except Exception as error:
                found[name] = type(error).__name__
    return found


def _ask(model, name, X):
    method = getattr(model, name)
    if not inspect.ismethod(method):  # a property; one that shows parts of the model says nothing about their use
        return method if isinstance(method, (np.ndarray, np.number)) and method.dtype.kind != "O" else None
    parameters = inspect.signature(method).parameters
    options = {"random_state": 0} if "random_state" in parameters else {}
    return method(X, **options) if "X" in parameters else method(**options)


def plain(value, depth=0):
    """Return a value as nested lists of arrays and words."""
    if sp.issparse(value):
        return value.toarray()
    if isinstance(value, np.ndarray) and value.dtype != object:
        return value
    if isinstance(value, (int, float, np.number)):
        return np.asarray(value)
    if isinstance(value, str) or value is None or depth > MAX_DEPTH:
        return str(value) if isinstance(value, str) else ""
    if isinstance(value, dict):
        return [plain(item, depth + 1) for item in value.values()]
    if isinstance(value, (list, tuple, np.ndarray, types.GeneratorType)):
        return [plain(item, depth + 1) for item in value]
    return [plain(item, depth + 1) for item in getattr(value, "__dict__", {}).values()]


def same(a, b, rtol=1e-6):
    """Tell whether two answers agree to rounding."""
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key], rtol) for key in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(same(x, y, rtol) for x, y in zip(a, b, strict=True))
    if isinstance(a, str):
        return a == b
    if a.shape != b.shape or a.dtype.kind != b.dtype.kind:
        return False
    if a.dtype.kind not in "fc":
        return np.array_equal(a, b)
    scale = np.abs(a[np.isfinite(a)]).max(initial=0.0)
    return np.allclose(a, b, rtol=rtol, atol=rtol * scale, equal_nan=True)
