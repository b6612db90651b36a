"""The reference: public functions and classes of a package, each written out once; models have pages of their own."""

from __future__ import annotations

import importlib
import inspect
import re
from html import escape
from typing import Any

from learnable.core.registry import REGISTRY, registered_name

from . import docstrings as ds
from .pages import Page, links_from, summary_of

ASKED = re.compile(r"^::: ([\w.]+)\n((?:    .*\n?)*)", re.MULTILINE)


def expand(markdown: str) -> Page:
    """Return a page with every `::: module` written out."""
    parts: list[str] = []

    def part(html: str) -> str:
        parts.append(html)
        return f"<!-- part: {len(parts) - 1} -->"

    def written(match: re.Match[str]) -> str:
        return "\n\n".join(module_lines(match[1], part)) + "\n"

    return Page(ASKED.sub(written, markdown + "\n"), parts)


def module_lines(path: str, part: Any) -> list[str]:
    """Return the lines of one module: a table of its models, then its functions, classes and constants."""
    module = importlib.import_module(path)
    links = links_from("reference")
    names = [name for name in public_names(module) if not inspect.ismodule(getattr(module, name))]
    models = [name for name in names if is_model(getattr(module, name))]
    lines = []
    if models:
        rows = [
            f"| [`{name}`](../models/{name}.md) | {summary_of(name).replace('|', chr(92) + '|')} |" for name in models
        ]
        lines += ["### Models", "\n".join(["| model | what |", "|---|---|", *rows])]
    for name in names:
        if name in models:
            continue
        value = getattr(module, name)
        lines.append(f"### {name} {{ #{path}.{name} }}")
        if inspect.isclass(value):
            lines.append(part(class_html(value, name, links)))
        elif callable(value):
            lines.append(part(ds.described(value, name, links)))
        else:
            lines.append(part(f"<pre><code>{escape(repr(value)[:400])}</code></pre>"))
    return lines


def public_names(module: Any) -> list[str]:
    """Return what a module shows: its `__all__`, or what it defines itself."""
    if hasattr(module, "__all__"):
        return [name for name in module.__all__ if not name.startswith("_")]
    own = module.__name__
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and callable(value) and getattr(value, "__module__", "").startswith(own)
    ]


def is_model(value: Any) -> bool:
    """Tell whether something has a page of its own."""
    if not inspect.isclass(value):
        return False
    name = registered_name(value)
    return name is not None and REGISTRY[name].estimator


def class_html(cls: Any, name: str, links: dict[str, str]) -> str:
    """Return a class as HTML: its constructor, its text, and its methods, folded."""
    body = [ds.described(cls, name, links)]
    own = [method for method in ds.methods(cls) if not issubclass(cls, (tuple, Exception)) or method in vars(cls)]
    for method in own:
        shown = ds.described(getattr(cls, method), method, links)
        first = ds._joined((inspect.getdoc(getattr(cls, method)) or "").partition("\n\n")[0])
        head = f"<summary><code>{escape(method)}</code> {ds.inline(first)}</summary>"
        body.append(f'<details class="method">{head}{shown}</details>')
    return "".join(body)
