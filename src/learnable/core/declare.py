"""A model is declared once: one line per parameter, one per fitted attribute.

    class Ridge(Estimator):
        alpha: float = param(Number(low=0), "α ≥ 0; with 0 the model is least squares", default=1.0, kw_only=False)
        coef_: Array = fitted("(n_features,) or (n_targets, n_features)", "β")

The constructor, its signature, the range check in `fit`, the docstring's sections and the check of a loaded file all
follow from these lines. A subclass inherits them, overrides a line by writing it again, and takes a parameter out of
its constructor by setting a plain value: `l1_ratio = 1.0`. Where arguments given by place have another order than the
lines, `_positional = ("component", "n_components")` states it. `__post_init__`, if there is one, is called once the
arguments are stored. scikit-learn's tags are a line, too: `_tags = tags(sparse=True)`. An attribute that is computed
when it is asked for is a property whose name ends in an underscore: its own docstring is its line (`sections.py`).
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, Literal, dataclass_transform

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import ClassifierTags, RegressorTags, get_tags

from .errors import ParameterError
from .loaded import Loadable
from .sections import with_sections

# --------------------------------------------------------------------------------------------------------------------
# Rules: what a parameter may be. A rule tests a value and says itself in words, so that the error can name owner,
# parameter, rule, value and remedy.


class Rule:
    """What a parameter may be: `allows(value)` and a phrase that completes "must be …".

    Examples
    --------
    >>> (Number(low=1) | Options("auto")).phrase
    "a number >= 1, or one of 'auto'"
    """

    phrase: str = ""

    def allows(self, value: Any) -> bool:
        """Tell whether `value` is allowed."""
        raise TypeError("a Rule must define allows")

    def __or__(self, other: Rule) -> Rule:
        return Either(self, other)


@dataclass(frozen=True)
class Either(Rule):
    """One rule or another."""

    first: Rule
    second: Rule

    @property
    def phrase(self) -> str:  # type: ignore[override]
        """Both phrases, joined."""
        return f"{self.first.phrase}, or {self.second.phrase}"

    def allows(self, value: Any) -> bool:
        """Tell whether one of the two allows it."""
        return self.first.allows(value) or self.second.allows(value)


@dataclass(frozen=True)
class Number(Rule):
    """A real number (or an integer only) between two ends; NaN never passes.

    Examples
    --------
    >>> Number(low=0.0).allows(0), Number(low=0.0, low_open=True).allows(0), Number(integer=True).allows(1.5)
    (True, False, False)
    """

    low: float = -math.inf
    high: float = math.inf
    low_open: bool = False
    high_open: bool = False
    integer: bool = False
    finite: bool = True

    @property
    def phrase(self) -> str:  # type: ignore[override]
        """The range in words."""
        what = "an integer" if self.integer else "a number"
        ends = []
        if self.low > -math.inf:
            ends.append(f"{'>' if self.low_open else '>='} {self.low:g}")
        if self.high < math.inf:
            ends.append(f"{'<' if self.high_open else '<='} {self.high:g}")
        return " ".join([what, " and ".join(ends)]).strip()

    def allows(self, value: Any) -> bool:
        """Tell whether `value` is such a number."""
        plain = type(value) is int or (type(value) is float and not self.integer)  # the abstract types are slow to ask
        if not plain and (
            isinstance(value, (bool, np.bool_)) or not isinstance(value, Integral if self.integer else Real)
        ):
            return False
        try:
            x = float(value)
        except OverflowError:  # an integer beyond every float
            return False
        if math.isnan(x) or (self.finite and math.isinf(x)):
            return False
        above = x > self.low if self.low_open else x >= self.low
        below = x < self.high if self.high_open else x <= self.high
        return above and below


@dataclass(frozen=True)
class Boolean(Rule):
    """True or False.

    Examples
    --------
    >>> Boolean().allows(True), Boolean().allows(1)
    (True, False)
    """

    phrase: str = "True or False"

    def allows(self, value: Any) -> bool:
        """Tell whether `value` is a truth value."""
        return isinstance(value, (bool, np.bool_))


class Options(Rule):
    """One of a few words.

    Examples
    --------
    >>> Options("l1", "l2").allows("l1"), Options("l1", "l2").allows("L1")
    (True, False)
    """

    def __init__(self, *words: str) -> None:
        self.words = words
        self.phrase = "one of " + ", ".join(repr(word) for word in words)

    def allows(self, value: Any) -> bool:
        """Tell whether `value` is one of the words."""
        return isinstance(value, str) and value in self.words


@dataclass(frozen=True)
class Nothing(Rule):
    """None.

    Examples
    --------
    >>> (Number() | Nothing()).allows(None)
    True
    """

    phrase: str = "None"

    def allows(self, value: Any) -> bool:
        """Tell whether `value` is None."""
        return value is None


@dataclass(frozen=True)
class ArrayLike(Rule):
    """A sequence of numbers, each of which obeys `each`.

    Examples
    --------
    >>> ArrayLike(Number(low=0.0)).allows([0.5, 2]), ArrayLike().allows([])
    (True, False)
    """

    each: Rule = Number()

    @property
    def phrase(self) -> str:  # type: ignore[override]
        """The rule in words."""
        return f"an array of numbers, each {self.each.phrase}"

    def allows(self, value: Any) -> bool:
        """Tell whether `value` is a non-empty array whose members all obey the rule."""
        if isinstance(value, (str, bytes)) or not hasattr(value, "__len__"):
            return False
        try:
            array = np.asarray(value)
        except (TypeError, ValueError):
            return False
        return array.dtype.kind in "iuf" and array.size > 0 and all(self.each.allows(float(x)) for x in array.flat)


@dataclass(frozen=True)
class Matches(Rule):
    """Whatever a predicate accepts; for callables, splitters and other objects.

    Examples
    --------
    >>> Matches(callable, "a function").allows(len)
    True
    """

    predicate: Callable[[Any], bool]
    phrase: str

    def allows(self, value: Any) -> bool:
        """Tell whether the predicate accepts `value`."""
        return bool(self.predicate(value))


def optional(rule: Rule) -> Rule:
    """Return `rule` or None."""
    return Either(rule, Nothing())


def choices(rule: Rule) -> list[Any]:
    """Return the values that a rule lists: words, truth values, None; a range of numbers lists none.

    Examples
    --------
    >>> choices(optional(Options("l1", "l2")))
    ['l1', 'l2', None]
    """
    if isinstance(rule, Either):
        return [*choices(rule.first), *choices(rule.second)]
    if isinstance(rule, Options):
        return list(rule.words)
    if isinstance(rule, Boolean):
        return [False, True]
    return [None] if isinstance(rule, Nothing) else []


#: Shared by every iterative model and every model with randomness or threads.
MAX_ITER = Number(low=1, integer=True)
MAX_SECONDS = optional(Number(low=0.0, low_open=True))
TOLERANCE = Number(low=0.0)
N_JOBS = optional(Number(low=1, integer=True) | Number(high=-1, integer=True))
RANDOM_STATE = optional(
    Number(low=0, integer=True)
    | Matches(lambda v: isinstance(v, (np.random.RandomState, np.random.Generator)), "a NumPy Generator or RandomState")
)


def check_parameters(owner: str, values: Mapping[str, Any], rules: Mapping[str, Rule]) -> None:
    """Check `values` against `rules`.

    Raises
    ------
    ParameterError
        Naming the owner, the parameter, the rule and the value received.
    """
    for name, rule in rules.items():
        if not rule.allows(values[name]):
            received = repr(values[name])
            shown = received if len(received) <= 80 else received[:77] + "..."
            finite = " and finite" if isinstance(values[name], float) and math.isinf(values[name]) else ""
            raise ParameterError(f"{owner}: {name} must be {rule.phrase}{finite}; got {shown}.")


#: In place of a default: the argument must be given.
REQUIRED: Any = inspect.Parameter.empty


@dataclass(frozen=True)
class Parameter:
    """One argument of a constructor."""

    rule: Rule
    meaning: str
    default: Any
    kw_only: bool = True


@dataclass(frozen=True)
class FittedAttribute:
    """One attribute that `fit` sets.

    Attributes
    ----------
    shape : str
        `"(n_classes, n_features)"`, alternatives joined by " or ", `"()"` for a number; anything else, such as
        `"Trees"`, is a type in words and is not checked here. `n_features` and `n_classes` are those of the model;
        other names stand for one length each, the same in all attributes; those in the class's `_sizes` are
        parameters.
    meaning : str
        For the docstring.
    kind : str
        NumPy's kinds of dtypes that are allowed; "f" for real numbers, "f8" for float64 alone.
    finite : bool
        Whether NaN and infinities are refused.
    low, high : float
        Range of the numbers.
    optional : bool
        Whether only some fits set it.
    infinite : bool
        Whether infinities are allowed although `finite` refuses NaN.
    below : str
        A length, such as `n_features`, that all numbers lie below: they name columns, or classes.
    """

    shape: str
    meaning: str
    kind: str = "f"
    finite: bool = True
    low: float = -np.inf
    high: float = np.inf
    optional: bool = False
    infinite: bool = False
    below: str = ""


def param(rule: Rule, meaning: str, *, default: Any = REQUIRED, kw_only: bool = True) -> Any:
    """Declare a parameter: what it may be, what it means, its default.

    Parameters
    ----------
    rule : Rule
        What `fit` accepts.
    meaning : str
        For the docstring.
    default : object
        The default, shared by all instances; without one the argument must be given. Type checkers want it by name
        (PEP 681).
    kw_only : bool
        Whether it must be given by name.

    Examples
    --------
    >>> from learnable.core.estimator import Estimator
    >>> from learnable.core.declare import Number
    >>> class Shrunken(Estimator):
    ...     alpha: float = param(Number(low=0.0), "Strength of the penalty.", default=1.0, kw_only=False)
    >>> Shrunken(2.0).alpha, Shrunken().alpha
    (2.0, 1.0)
    """
    return Parameter(rule, meaning, default, kw_only)


def fitted(
    shape: str,
    meaning: str,
    *,
    kind: str = "f",
    finite: bool = True,
    low: float = -np.inf,
    high: float = np.inf,
    optional: bool = False,
    infinite: bool = False,
    below: str = "",
    init: Literal[False] = False,
) -> Any:
    """Declare a fitted attribute; see `FittedAttribute`. `init` tells type checkers that the constructor lacks it."""
    return FittedAttribute(shape, meaning, kind, finite, low, high, optional, infinite, below)


class _Hook:
    """A method that a class leaves to its subclasses."""

    def __init__(self, meaning: str) -> None:
        self.__doc__ = meaning

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: type) -> Any:
        def missing(*args: Any, **kwargs: Any) -> Any:
            raise TypeError(f"{owner.__name__} does not define {self.name}")

        return missing


def hook(meaning: str) -> Any:
    """Declare a method that subclasses define: `_target = hook("(table) → array: what the trees predict.")`.

    Examples
    --------
    >>> class Shape:
    ...     area = hook("() → float: its area.")
    >>> Shape().area()
    Traceback (most recent call last):
        ...
    TypeError: Shape does not define area
    """
    return _Hook(meaning)


#: The types that a transformer's numbers keep, where single precision stays single.
FLOATS = ("float64", "float32")
#: Where scikit-learn keeps each tag; "" is the record itself.
_TAG_PLACES = {
    **dict.fromkeys(("sparse", "allow_nan", "categorical", "string", "pairwise", "two_d_array"), "input_tags"),
    "positive_only": "input_tags",
    **dict.fromkeys(("required", "multi_output", "single_output", "positive_target"), "target_tags"),
    **dict.fromkeys(("multi_class", "multi_label", "poor_score"), "classifier_tags"),
    "preserves_dtype": "transformer_tags",
    **dict.fromkeys(("requires_fit", "role", "inner"), ""),
}


def tags(**values: Any) -> dict[str, Any]:
    """Declare scikit-learn's tags that differ from those of the bases: `_tags = tags(sparse=True, allow_nan=True)`.

    A value may be a function of the model, where it depends on a parameter. `positive_only` is about X,
    `positive_target` about y; `role` is "classifier" or "regressor" where no mixin says it, `inner` the model whose
    rows this one takes, sparse or with NaN. Tags of a classifier are left out where the role is another.

    Examples
    --------
    >>> from sklearn.utils import get_tags
    >>> class Halved(Declared):
    ...     metric: str = param(Options("euclidean", "precomputed"), "Metric.", default="precomputed")
    ...     _tags = tags(sparse=True, pairwise=lambda model: model.metric == "precomputed")
    >>> get_tags(Halved()).input_tags.sparse, get_tags(Halved(metric="euclidean")).input_tags.pairwise
    (True, False)
    """
    for name in values:
        if name not in _TAG_PLACES:
            raise TypeError(f"tags: {name!r} is none of {', '.join(_TAG_PLACES)}")
    return values


@dataclass_transform(kw_only_default=True, eq_default=False, field_specifiers=(param, fitted))
class Declared(Loadable, BaseEstimator):
    """An estimator in scikit-learn's sense, made of its declarations.

    Examples
    --------
    >>> class Shifted(Declared):
    ...     by: float = param(Number(), "The shift.", default=0.5)
    >>> Shifted(by=2.0).get_params()
    {'by': 2.0}
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        declare(cls)


def declare(cls: type) -> None:
    """Give a class the constructor, the rules and the docstring that its declarations say.

    A class that declares nothing, and whose bases declare nothing, is left as it is.
    """
    own = dict(vars(cls))
    if "_tags" in own:
        cls.__sklearn_tags__ = _tagger(cls, own["_tags"])  # type: ignore[attr-defined]
    cls._own_parameters = {k: v for k, v in own.items() if isinstance(v, Parameter)}  # type: ignore[attr-defined]
    cls._own_attributes = {k: v for k, v in own.items() if isinstance(v, FittedAttribute)}  # type: ignore[attr-defined]
    for name, parameter in cls._own_parameters.items():  # type: ignore[attr-defined]
        delattr(cls, name)
        if not isinstance(getattr(cls, name, None), property):  # a property of a base stores the argument itself
            setattr(cls, name, parameter.default)
    for name in cls._own_attributes:  # type: ignore[attr-defined]
        delattr(cls, name)
    parameters = _by_place(_inherited(cls, "_own_parameters"), getattr(cls, "_positional", None))
    attributes = _inherited(cls, "_own_attributes")
    if not parameters and not attributes:
        return
    cls._declared_attributes = attributes  # type: ignore[attr-defined]
    if parameters:
        cls._parameters = {name: parameter.rule for name, parameter in parameters.items()}  # type: ignore[attr-defined]
        if "__init__" not in own:
            cls.__init__ = _constructor(cls, parameters)  # type: ignore[misc]
    cls.__doc__ = with_sections(cls, parameters, attributes)
    for name, parameter in cls._own_parameters.items():  # type: ignore[attr-defined]
        if parameter.default is REQUIRED:
            delattr(cls, name)


def _tagger(cls: type, declared: Mapping[str, Any]) -> Any:
    """Return a `__sklearn_tags__` that changes what a class declares in the tags of its bases."""

    def __sklearn_tags__(self: Any) -> Any:  # noqa: N807
        found = super(cls, self).__sklearn_tags__()  # type: ignore[arg-type]
        for name, value in declared.items():
            chosen = value(self) if callable(value) else value
            if name == "role":
                found.estimator_type = chosen
                kind = ClassifierTags if chosen == "classifier" else RegressorTags
                setattr(found, f"{chosen}_tags", kind())
                continue
            if name == "inner":
                rows = get_tags(chosen).input_tags
                found.input_tags.sparse = rows.sparse
                found.input_tags.allow_nan = rows.allow_nan
                continue
            place = _TAG_PLACES[name]
            part = getattr(found, place) if place else found
            if part is not None:
                field = "positive_only" if name == "positive_target" else name
                setattr(part, field, list(chosen) if isinstance(chosen, tuple) else chosen)
        return found

    return __sklearn_tags__


def _inherited(cls: type, key: str) -> dict[str, Any]:
    """Return the declarations of a class and its bases; a plain value in a class takes a declaration back."""
    found: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        own = vars(base).get(key, {})
        for name in found.keys() & vars(base).keys() - own.keys():
            del found[name]
        found.update(own)
    return found


def _by_place(parameters: dict[str, Parameter], names: tuple[str, ...] | None) -> dict[str, Parameter]:
    """Return the parameters with those named first, in that order, and only those given by place."""
    if names is None:
        return parameters
    ordered = {name: parameters[name] for name in names} | parameters
    return {name: replace(parameter, kw_only=name not in names) for name, parameter in ordered.items()}


def _constructor(cls: type, parameters: Mapping[str, Parameter]) -> Any:
    """Return an `__init__` that stores its arguments and does nothing else."""
    ordered = sorted(parameters.items(), key=lambda item: item[1].kw_only)
    defaults = {name: parameter.default for name, parameter in ordered}
    finish = getattr(cls, "__post_init__", None)
    properties = [name for name in defaults if isinstance(getattr(cls, name, None), property)]
    kinds = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    signature = inspect.Signature(
        [
            inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD),
            *(inspect.Parameter(name, kinds[not p.kw_only], default=p.default) for name, p in ordered),
        ]
    )

    needed = {name for name, default in defaults.items() if default is REQUIRED}

    def __init__(self: Any, *args: Any, **given: Any) -> None:  # noqa: N807
        if args or not needed <= given.keys() <= defaults.keys():
            try:
                bound = signature.bind(self, *args, **given).arguments
            except TypeError as error:
                raise TypeError(f"{cls.__name__}: {error}") from None
            given = {name: value for name, value in bound.items() if name != "self"}
        vars(self).update(defaults | given)
        for name in properties:
            setattr(self, name, vars(self).pop(name))
        if finish is not None:
            finish(self)

    __init__.__signature__ = signature  # type: ignore[attr-defined]
    __init__.__qualname__ = f"{cls.__qualname__}.__init__"
    __init__.__module__ = cls.__module__
    return __init__
