"""Every registered estimator, built: those that wrap a model get one that suits them."""

import inspect

from learnable.core.registry import registered_class
from learnable.linear import LogisticRegression, Ridge


def build(name):
    """Return an unfitted estimator of the registry."""
    cls = registered_class(name)
    first = next(iter(inspect.signature(cls).parameters.values()), None)
    if first is None or first.default is not inspect.Parameter.empty:
        return cls()
    return cls(LogisticRegression() if "Classifier" in name else Ridge())
