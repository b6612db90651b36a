"""What must hold of a fitted model: shapes, ranges and laws, declared on its class and asked when a file is loaded.

    class Path(Estimator):
        alphas_: Array = fitted("(n_alphas,)", "λ, falling.", low=0.0)
        coefs_: Array = fitted("(n_alphas, n_features)", "β for each λ.")
        _laws = laws(law("alphas_ must fall", lambda model: (np.diff(model.alphas_) <= 0).all()))

Shapes and ranges are asked first, then the laws of the bases, then those of the class, in their order: each may assume
those before it. A law whose question fails (a member is missing, or is no array) does not hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp

from .errors import LearnableError, ModelFileError

if TYPE_CHECKING:
    from .declare import FittedAttribute


class Law(NamedTuple):
    """One thing that must hold of a fitted model, so that kernels need not check it."""

    what: str  #: completes "load: …"; `{model.coef_.shape}` and `{owner}` are filled in
    holds: Callable[[Any], Any]
    given: str = ""  #: an attribute without which the law is not asked


def law(what: str, holds: Callable[[Any], Any], given: str = "") -> Law:
    """Declare what must hold of a fitted model.

    Parameters
    ----------
    what : str
        The rule in words; `{model.coef_.shape}` and `{owner}`, the name of the class, are filled in.
    holds : callable
        Of the model; the law holds where it returns something true.
    given : str
        An attribute without which the law is not asked.
    """
    return Law(what, holds, given)


def laws(*given: Law) -> tuple[Law, ...]:
    """Return the laws of a class, in the order in which they are asked."""
    return given


def passes(check: Callable[..., None], *args: Any) -> bool:
    """Return True once a check, which raises an error otherwise, has passed."""
    check(*args)
    return True


class Loadable:
    """A model, or a part of one, that is checked when it is loaded: by its declarations, then by its laws.

    Examples
    --------
    >>> class Share(Loadable):
    ...     value = 1.5
    ...     _laws = laws(law("a share must be at most one, not {model.value}", lambda share: share.value <= 1.0))
    >>> Share()._check_loaded()
    Traceback (most recent call last):
        ...
    learnable.core.errors.ModelFileError: load: a share must be at most one, not 1.5.
    """

    _laws: ClassVar[tuple[Law, ...]] = ()

    def _check_loaded(self) -> None:
        """Raise ModelFileError unless the members are as the class declares them."""
        check_fitted(self)
        check_laws(self)


def check_laws(model: Any) -> None:
    """Raise ModelFileError unless the laws of a class and its bases hold."""
    for cls in reversed(type(model).__mro__):
        for one in vars(cls).get("_laws", ()):
            if (not one.given or hasattr(model, one.given)) and not _holds(one, model):
                raise ModelFileError(f"load: {_in_words(one, model)}.")


def _holds(one: Law, model: Any) -> bool:
    try:
        return bool(one.holds(model))
    except ModelFileError:  # it has its own message
        raise
    except (LearnableError, ArithmeticError, AttributeError, LookupError, MemoryError, TypeError, ValueError):
        return False


def _in_words(one: Law, model: Any) -> str:
    try:
        return one.what.format(model=model, owner=type(model).__name__)
    except (AttributeError, LookupError, TypeError, ValueError):
        return one.what


def is_labels(value: Any, fewest: int = 2) -> bool:
    """Tell whether `value` is an array of at least so many labels."""
    return isinstance(value, np.ndarray) and value.ndim == 1 and len(value) >= fewest


def are_counts(model: Any, *names: str) -> bool:
    """Tell whether these members are whole numbers from zero, as a kernel takes them."""
    return all(type(size := getattr(model, name, None)) is int and 0 <= size < 2**63 for name in names)


def is_array(value: Any, shape: tuple[int | None, ...], dtype: Any = np.float64, *, finite: bool = False) -> bool:
    """Tell whether `value` is an array of this type and shape, where None stands for any length."""
    if not isinstance(value, np.ndarray) or value.dtype != dtype or value.ndim != len(shape):
        return False
    same = all(want in (None, length) for want, length in zip(shape, value.shape, strict=True))
    return same and (not finite or bool(np.isfinite(value).all()))


def check_fitted(model: Any) -> None:
    """Raise ModelFileError unless the fitted attributes of a loaded model are as its class declares them.

    Parameters
    ----------
    model : estimator
        With any fitted attributes; what it lacks is not looked at here.
    """
    lengths: dict[str, int] = {name: getattr(model, name) for name in getattr(model, "_sizes", ())}
    if "n_features_in_" in vars(model):
        lengths["n_features"] = int(model.n_features_in_)
    if isinstance(getattr(model, "classes_", None), np.ndarray):
        lengths["n_classes"] = len(model.classes_)
    for name, attribute in getattr(model, "_declared_attributes", {}).items():
        value = vars(model).get(name)
        if name not in vars(model) or not attribute.shape.startswith("(") or (value is None and attribute.optional):
            continue
        if not (isinstance(value, (np.ndarray, np.generic, int, float)) or sp.issparse(value)):
            raise ModelFileError(f"load: {name} is a {type(value).__name__} instead of numbers.")
        array = value.data if sp.issparse(value) else np.asarray(value)
        shape = np.shape(array) if isinstance(value, (int, float)) else value.shape
        if array.dtype.kind not in attribute.kind or (attribute.kind[1:].isdigit() and array.dtype != attribute.kind):
            raise ModelFileError(f"load: {name} holds {array.dtype}, where {_words(attribute)} are expected.")
        if not any(_fits(shape, wanted, lengths) for wanted in _shapes(attribute.shape)):
            known = ", ".join(f"{symbol} = {length}" for symbol, length in lengths.items())
            raise ModelFileError(f"load: {name} has shape {shape} instead of {attribute.shape} ({known}).")
        _check_range(name, array, attribute)
        if attribute.below and array.max(initial=-1) >= lengths.get(attribute.below, 0):
            raise ModelFileError(f"load: {name} holds {array.max()}, which is not below {attribute.below}.")


def _words(attribute: FittedAttribute) -> str:
    return "real numbers" if attribute.kind == "f" else f"values of kind {attribute.kind!r}"


def _shapes(text: str) -> Iterator[list[str]]:
    for shape in text.split(" or "):
        yield [part.strip() for part in shape.strip("() ").split(",") if part.strip()]


def _fits(shape: tuple[int, ...], wanted: list[str], lengths: dict[str, int]) -> bool:
    """Tell whether an array has such a shape; names that are met for the first time get their length."""
    if len(shape) != len(wanted):
        return False
    found = dict(lengths)
    for length, symbol in zip(shape, wanted, strict=True):
        expected = int(symbol) if symbol.isdigit() else found.setdefault(symbol, length)
        if expected != length:
            return False
    lengths.update(found)
    return True


def _check_range(name: str, array: np.ndarray[Any, Any], attribute: FittedAttribute) -> None:
    if array.dtype.kind not in "fiu":
        return
    if attribute.finite and (np.isnan(array) if attribute.infinite else ~np.isfinite(array)).any():
        raise ModelFileError(f"load: {name} has {'NaN' if attribute.infinite else 'numbers that are not finite'}.")
    if ((array < attribute.low) | (array > attribute.high)).any():
        raise ModelFileError(f"load: {name} has numbers outside [{attribute.low:g}, {attribute.high:g}].")
