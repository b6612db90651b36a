"""Our names over those of another package; copied beside the rewritten tests, which import it as `_overlay`."""

import inspect
import json
import pathlib
import types

import learnable

OURS = json.loads(pathlib.Path(__file__).with_name("ours.json").read_text())


def get(name):
    """Return what is ours under a name."""
    found = learnable
    for part in OURS[name].split("."):
        found = getattr(found, part)
    return found


def module(inner):
    """Return a module with our names over its own; anything else as it is."""
    return _Overlaid(inner) if inspect.ismodule(inner) else inner


class _Overlaid(types.ModuleType):
    def __init__(self, inner):
        object.__setattr__(self, "_inner", inner)

    def __getattribute__(self, name):
        inner = object.__getattribute__(self, "_inner")
        if name == "_inner":
            return inner
        if name in OURS and hasattr(inner, name):
            return get(name)
        value = getattr(inner, name)
        is_theirs = inspect.ismodule(value) and value.__name__.startswith(("sklearn.", "hmmlearn."))
        return _Overlaid(value) if is_theirs else value

    def __setattr__(self, name, value):
        setattr(object.__getattribute__(self, "_inner"), name, value)

    def __delattr__(self, name):
        delattr(object.__getattribute__(self, "_inner"), name)
