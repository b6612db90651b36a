"""What must hold of anything that is saved or loaded: shapes, offsets, indices, parameters, invariants.

Saving and loading ask the same questions, so that what was saved can be loaded.
"""

from __future__ import annotations

import dataclasses
import math
from numbers import Integral, Real
from types import UnionType
from typing import Any, Final, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from .declare import check_parameters
from .errors import LearnableError, ModelFileError
from .estimator import Certificate
from .fitted_members import check_fitted_members
from .registry import registered_name

_MAX_DIMENSIONS: Final = 32
_MAX_PADDED_TEXT: Final = 2**28  # bytes of fixed-width strings in one file


class TextBudget:
    """Strings are stored without their padding; this bounds how much memory a small file can ask for."""

    def __init__(self) -> None:
        self._left = _MAX_PADDED_TEXT

    def spend(self, width: int | None, count: int, path: str) -> None:
        self._left -= 4 * (width or 0) * max(count, 1)
        if self._left < 0:
            raise ModelFileError(f"{path} pads its strings to more than {_MAX_PADDED_TEXT} bytes; use dtype object")


def check_model(model: Any, path: str) -> None:
    """Check the parameters, what every estimator has in common, and the class's own invariants."""
    params = model.get_params(deep=False)
    check_parameters(path, params, getattr(type(model), "_parameters", {}))
    attributes = vars(model)
    if not isinstance(attributes.get("certificate_"), (Certificate, type(None))):
        raise ModelFileError(f"{path}.certificate_ is not a certificate")
    n_features = attributes.get("n_features_in_", 0)
    if not isinstance(n_features, (int, np.integer)) or n_features < 0:
        raise ModelFileError(f"{path}.n_features_in_ is not a number of columns")
    if "feature_names_in_" in attributes:
        names = attributes["feature_names_in_"]
        if not (isinstance(names, np.ndarray) and names.dtype == object and names.shape == (n_features,)):
            raise ModelFileError(f"{path}.feature_names_in_ is not an array with one name for each column")
        if not all(type(name) is str for name in names):
            raise ModelFileError(f"{path}.feature_names_in_ has names that are not strings")
    is_fitted = any(is_fitted_name(key) and key not in params for key in attributes)
    if is_fitted:
        check_fitted_members(registered_name(type(model)), model, path)
        _check_own(model)


def check_members(value: Any) -> None:
    """Raise ModelFileError unless the arrays of a fitted model, and of everything inside it, fit together.

    It asks what a loader asks of arrays, without asking that the model can be saved.
    """
    if isinstance(value, (list, tuple)):
        for item in value:
            check_members(item)
    elif isinstance(value, dict):
        for item in value.values():
            check_members(item)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            check_members(getattr(value, field.name))
        _check_own(value)
    elif hasattr(value, "get_params") and not isinstance(value, type):
        params = value.get_params(deep=False)
        fitted = [x for key, x in vars(value).items() if is_fitted_name(key) and key not in params]
        check_members(fitted)
        if fitted:
            check_fitted_members(registered_name(type(value)), value, type(value).__name__)
            _check_own(value)


def _check_own(value: Any) -> None:
    """Ask the class; a question that fails because a member is not what it should be is answered with no."""
    if not hasattr(value, "_check_loaded"):
        return
    try:
        value._check_loaded()
    except LearnableError:
        raise
    except (ArithmeticError, AttributeError, LookupError, MemoryError, TypeError, ValueError) as error:
        owner = type(value).__name__
        raise ModelFileError(f"load: the members of {owner} do not fit together ({error}).") from error


def check_part(part: Any, path: str) -> None:
    """Check the fields of a dataclass against their annotations, and its own invariants if it states any."""
    hints = get_type_hints(type(part))
    for field in dataclasses.fields(part):
        value = getattr(part, field.name)
        if not _agrees(value, hints[field.name]):
            raise ModelFileError(f"{path}.{field.name} must be {field.type}; got {with_article(type(value))}")
    _check_own(part)


def _agrees(value: Any, hint: Any) -> bool:
    origin = get_origin(hint)
    if hint is Any:
        return True
    if origin is Literal:
        return isinstance(value, str) and value in get_args(hint)
    if origin in (Union, UnionType):
        return any(_agrees(value, option) for option in get_args(hint))
    if hint in (float, int):
        return isinstance(value, Real if hint is float else Integral) and not isinstance(value, bool)
    return isinstance(value, origin or hint)


def is_fitted_name(name: str) -> bool:
    return name.isidentifier() and name.endswith("_") and not name.startswith("_")


def hides_attribute(cls: type, name: str) -> bool:
    """Tell whether a fitted attribute of this name would hide one of the class: all but properties that store it."""
    found = getattr(cls, name, None)
    stores = isinstance(found, property) and found.fset is not None and found.fdel is not None
    return hasattr(cls, name) and not stores


def count_of(shape: Any, path: str) -> int:
    """Return the number of items of an array of this shape, having checked that it is one."""
    if not are_sizes(shape):
        raise ModelFileError(f"the shape of {path} must be a list of at most {_MAX_DIMENSIONS} sizes")
    return math.prod(shape)


def are_sizes(sizes: Any) -> bool:
    """Tell whether `sizes` is a short list of 64-bit sizes, whose product Python can form at no cost."""
    if not isinstance(sizes, list) or len(sizes) > _MAX_DIMENSIONS:
        return False
    return all(type(size) is int and 0 <= size < 2**63 for size in sizes)


def are_offsets(offsets: NDArray[Any], count: int, end: int) -> bool:
    """Tell whether `offsets` cuts 0…end into `count` pieces."""
    if offsets.shape != (count + 1,) or offsets.dtype not in (np.dtype("i4"), np.dtype("i8")):
        return False
    # Compared, not subtracted: a difference of hostile offsets can overflow.
    return bool(offsets[0] == 0 and offsets[-1] == end and (offsets[1:] >= offsets[:-1]).all())


def is_sound_csr(data: NDArray[Any], indices: NDArray[Any], indptr: NDArray[Any], shape: Any) -> bool:
    if len(shape) != 2 or data.ndim != 1 or data.dtype == np.float16 or indices.shape != data.shape:
        return False
    if indices.dtype != indptr.dtype or not are_offsets(indptr, shape[0], len(data)):
        return False
    return len(indices) == 0 or bool(indices.min() >= 0 and indices.max() < shape[1])


def with_article(cls: type) -> str:
    return f"{'an' if cls.__name__[:1].lower() in 'aeio' else 'a'} {cls.__name__}"
