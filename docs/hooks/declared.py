"""Shows the reference what the declarations of a model make when it is imported: docstring sections and constructor.

mkdocstrings reads source files, in which a declared class has neither; see `learnable.core.declare`.
"""

import importlib
import inspect
from typing import Any

import griffe


class Declared(griffe.Extension):
    """Takes the docstring and the signature of declared classes from the classes themselves."""

    def on_class_members(self, *, cls: griffe.Class, **kwargs: Any) -> None:
        """Look at one class of the source."""
        if not isinstance(cls.parent, griffe.Module) or cls.name.startswith("_"):
            return
        live = getattr(importlib.import_module(cls.parent.path), cls.name)
        if not hasattr(live, "_declared_attributes"):
            return
        first = cls.docstring.lineno if cls.docstring else None
        cls.docstring = griffe.Docstring(inspect.getdoc(live) or "", parent=cls, lineno=first)
        if "__init__" in cls.members or "__init__" not in vars(live):  # written out, or that of a base
            return
        arguments = [
            griffe.Parameter(p.name, kind=_KINDS[p.kind], default=None if p.default is p.empty else repr(p.default))
            for p in inspect.signature(live.__init__).parameters.values()
        ]
        cls.set_member("__init__", griffe.Function("__init__", parameters=griffe.Parameters(*arguments), parent=cls))


_KINDS = {
    inspect.Parameter.POSITIONAL_OR_KEYWORD: griffe.ParameterKind.positional_or_keyword,
    inspect.Parameter.KEYWORD_ONLY: griffe.ParameterKind.keyword_only,
}
