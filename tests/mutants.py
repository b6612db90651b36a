"""Changes of a fitted model that an independent check has to notice: every array, one at a time.

Each fitted array that any public method reads, also of models and parts inside, is changed by a thousandth as a whole
and in one entry; arrays of several entries are turned round, lose an entry, and have two entries swapped.
"""

import copy
import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from learnable import verify
from learnable.core.errors import VerificationError

#: Bookkeeping that no prediction reads.
_RECORDS = {"certificate_", "n_iter_", "n_features_in_", "feature_names_in_", "fixed", "limits"}

Path = tuple[Any, ...]


class Key(str):
    """A key of a dictionary, where a name would be an attribute."""

    __slots__ = ()


def arrays_of(model: Any) -> list[Path]:
    """Return where the fitted arrays and numbers of a model are: names of attributes, and places in lists."""
    return [path for name, value in _members(model) for path in _inside(value, (name,))]


def mutants(model: Any, path: Path) -> Iterator[tuple[str, Any]]:
    """Yield the name of each change of one array and a copy of the model that has it."""
    value = _at(model, path)
    for name, changed in _changes(value):
        if np.shape(changed) == np.shape(value) and np.array_equal(changed, value):
            continue  # a vector of equal numbers is the same when it is turned round
        twin = copy.deepcopy(model)
        holder = _at(twin, path[:-1])
        if isinstance(holder, (list, dict)):
            holder[path[-1]] = changed
        else:
            object.__setattr__(holder, path[-1], changed)
        yield name, twin


def unnoticed(model: Any, *data: Any) -> list[tuple[Path, str]]:
    """Return the changes of a fitted model that `verify` does not refuse; anything but a refusal is an error."""
    missed = []
    for path in arrays_of(model):
        for change, twin in mutants(model, path):
            try:
                seen = not verify(twin, *data)
            except VerificationError:
                seen = True
            if not seen:
                missed.append((path, change))
    return missed


def _members(part: Any) -> list[tuple[str, Any]]:
    names = [name for name in vars(part) if name not in _RECORDS]
    if isinstance(part, BaseEstimator):
        names = [name for name in names if name.endswith("_") and not name.startswith("_")]
    return [(name, getattr(part, name)) for name in names]


def _inside(value: Any, path: Path) -> list[Path]:
    if isinstance(value, np.ndarray):
        return [path] if value.size else []
    if isinstance(value, float):
        return [path]
    if isinstance(value, list):
        return [found for k, part in enumerate(value) for found in _inside(part, (*path, k))]
    if isinstance(value, dict):
        return [found for key, part in value.items() for found in _inside(part, (*path, Key(key)))]
    if isinstance(value, BaseEstimator) or dataclasses.is_dataclass(value):
        return [found for name, part in _members(value) for found in _inside(part, (*path, name))]
    return []


def _at(model: Any, path: Path) -> Any:
    for step in path:
        model = model[step] if isinstance(step, (int, Key)) else getattr(model, step)
    return model


def _changes(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, float):
        yield "scaled", value * 1.001 if value else 1e-3
        return
    if value.dtype.kind == "f":
        finite = np.where(np.isfinite(value), value, 0.0)
        yield "scaled", value * 1.001
        one = value.copy()
        one[np.unravel_index(int(np.argmax(np.abs(finite))), value.shape) if value.ndim else ()] *= 1.001
        yield "one entry", one
    if value.ndim == 0:
        return
    yield "reversed", value[::-1].copy()
    if len(value) > 1:
        yield "an entry less", value[:-1].copy()
        swapped = value.copy()
        swapped[[0, -1]] = swapped[[-1, 0]]
        yield "swapped", swapped
    if value.ndim > 1 and value.shape[1] > 1:
        yield "columns reversed", value[:, ::-1].copy()
