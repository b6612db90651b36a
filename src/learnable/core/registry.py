"""Every model this library can build, by name, without importing one.

A class is named as `"module:Class"`, its independent checker as `"module:function"`. The registry is the only list
of classes that a model file may name, and the list that `learnable models`, the coverage table and the contract
tests read.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final

from .errors import ModelFileError


@dataclass(frozen=True)
class Entry:
    """Where a class lives and who checks its certificate.

    Attributes
    ----------
    path : str
        `"module:Class"`.
    checker : str or None
        `"module:function"`; called as `function(model, X, y, sample_weight)`, returns a fresh certificate value.
    estimator : bool
        False for parts that are stored inside models, such as distributions.
    """

    path: str
    checker: str | None = None
    estimator: bool = True


REGISTRY: Final[dict[str, Entry]] = {
    "LinearRegression": Entry(
        "learnable.linear.least_squares:LinearRegression", "learnable.linear.verify:least_squares"
    ),
    "Ridge": Entry("learnable.linear.ridge:Ridge", "learnable.linear.verify:ridge"),
    "RidgeCV": Entry("learnable.linear.ridge_cv:RidgeCV", "learnable.linear.verify:ridge"),
    "LogisticRegression": Entry("learnable.linear.logistic:LogisticRegression", "learnable.linear.verify:logistic"),
    "Certificate": Entry("learnable.core.certificate:Certificate", estimator=False),
}


def resolve(path: str) -> Any:
    """Import `"module:name"` and return the object."""
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)


def registered_class(name: str) -> type:
    """Return the class called `name`; a name that is not in the registry is refused, never looked up elsewhere."""
    if name not in REGISTRY:
        raise ModelFileError(f"load: the file names the class {name!r}, which this version of learnable does not know.")
    return resolve(REGISTRY[name].path)  # type: ignore[no-any-return]


def registered_name(cls: type) -> str | None:
    """Return the name under which `cls` itself (not a subclass) is registered, or None."""
    entry = REGISTRY.get(cls.__name__)
    return cls.__name__ if entry and entry.path == f"{cls.__module__}:{cls.__qualname__}" else None


def estimator_names() -> list[str]:
    """Return the names of all registered estimators, in the registry's order."""
    return [name for name, entry in REGISTRY.items() if entry.estimator]
