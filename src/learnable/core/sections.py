"""The sections "Parameters" and "Attributes" of a docstring, made of what a class declares.

An attribute that is not stored is a property with a name that ends in an underscore. It is listed after the declared
ones, with the type that it returns and its docstring.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from .declare import FittedAttribute, Parameter

#: Sections of a docstring before which those that are made here stand.
_LATER_SECTIONS = ("Attributes", "See Also", "Notes", "References", "Examples")


def with_sections(cls: type, parameters: Mapping[str, Parameter], attributes: Mapping[str, FittedAttribute]) -> str:
    """Return the docstring of a class with both sections; what it says itself stays as it is."""
    text = inspect.cleandoc(cls.__doc__ or "")
    made = []
    if parameters and _section_start(text, "Parameters") is None:
        ordered = sorted(parameters.items(), key=lambda item: item[1].kw_only)
        made.append("Parameters\n----------\n" + "\n".join(_parameter_entry(name, p) for name, p in ordered))
    if attributes and _section_start(text, "Attributes") is None:
        entries = [_attribute_entry(name, attribute) for name, attribute in attributes.items()]
        entries += [_property_entry(name, computed) for name, computed in _computed(cls) if name not in attributes]
        made.append("Attributes\n----------\n" + "\n".join(entries))
    starts = [at for title in _LATER_SECTIONS if (at := _section_start(text, title)) is not None]
    cut = min(starts, default=len(text))
    return "\n\n".join(part for part in (text[:cut].rstrip(), *made, text[cut:]) if part)


def _section_start(text: str, title: str) -> int | None:
    found = re.search(rf"^{title}\n-{{{len(title)}}}$", text, re.MULTILINE)
    return None if found is None else found.start()


def _computed(cls: type) -> Iterator[tuple[str, property]]:
    """Yield the properties of a class that are named as fitted attributes, those of its bases first."""
    names = (name for base in reversed(cls.__mro__) for name in vars(base) if name.endswith("_"))
    for name in dict.fromkeys(names):
        found = inspect.getattr_static(cls, name)
        if isinstance(found, property) and not name.startswith("_"):
            yield name, found


def _parameter_entry(name: str, parameter: Parameter) -> str:
    default = parameter.default
    default = default.item() if isinstance(default, np.generic) else default
    shown = f'"{default}"' if isinstance(default, str) else repr(default)
    shown = "" if default is inspect.Parameter.empty else f", default={shown}"
    return f"{name} : {parameter.rule.phrase}{shown}\n{_indented(parameter.meaning)}"


def _attribute_entry(name: str, attribute: FittedAttribute) -> str:
    what = attribute.shape
    if what.startswith("() or "):
        what = f"number or array of shape {what.removeprefix('() or ')}"
    elif what.startswith("("):
        what = "number" if what == "()" else f"array of shape {what}"
    return f"{name} : {what}\n{_indented(attribute.meaning)}"


def _property_entry(name: str, computed: property) -> str:
    what = str(getattr(computed.fget, "__annotations__", {}).get("return", "Any"))
    what = re.sub(r"NDArray\[[\w.]+\]|\bArray\b", "array", what).replace("[Any]", "")
    meaning = inspect.cleandoc(computed.__doc__ or "").replace("\n\n", "\n")
    return f"{name}{'' if what == 'Any' else f' : {what}'}\n{_indented(meaning)}"


def _indented(text: str) -> str:
    lines = inspect.cleandoc(text).splitlines()
    return "\n".join(textwrap.fill(line, 112, initial_indent="    ", subsequent_indent="    ") for line in lines)
