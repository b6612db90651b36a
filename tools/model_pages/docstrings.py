"""Docstrings in NumPy's style as HTML: sections, entries of parameters, signatures.

The text of our docstrings is plain: paragraphs, `code`, indented formulas, lists with dashes. Nothing else is
interpreted, so that a formula with stars or underscores stays what it is.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Mapping
from html import escape
from typing import Any

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonConsoleLexer

SECTION = re.compile(r"^([A-Z][A-Za-z ]+)\n-{3,}\n", re.MULTILINE)
CODE = re.compile(r"`+([^`]+)`+")
#: Methods that scikit-learn gives to every estimator.
EVERYDAY = ("get_params", "set_params", "get_metadata_routing", "set_output", "set_callbacks", "get_feature_names_out")


def sections(doc: str) -> dict[str, str]:
    r"""Return the parts of a docstring by title; what stands before the first one is called "".

    >>> sections("A model.\n\nNotes\n-----\nSlow.")
    {'': 'A model.', 'Notes': 'Slow.'}
    """
    pieces = SECTION.split(doc)
    found = {"": pieces[0].strip()}
    for title, text in zip(pieces[1::2], pieces[2::2], strict=True):
        found[title] = text.strip("\n")
    return found


def entries(text: str) -> list[tuple[str, str, str]]:
    r"""Return (names, type, meaning) of each entry of a section of parameters, attributes or results.

    >>> entries("a, b : int\n    Two numbers.")
    [('a, b', 'int', 'Two numbers.')]
    """
    found: list[tuple[str, str, list[str]]] = []
    for line in text.splitlines():
        if line and not line[0].isspace():
            name, _, kind = line.partition(" : ")
            found.append((name.strip(), kind.strip(), []))
        elif found:
            found[-1][2].append(line)
    return [(name, kind, textwrap.dedent("\n".join(lines)).strip()) for name, kind, lines in found]


def inline(text: str, links: Mapping[str, str] | None = None) -> str:
    """Return a sentence as HTML: escaped, with `code`; names that `links` has become links."""

    def to_code(match: re.Match[str]) -> str:
        name = match[1]
        shown = f"<code>{name}</code>"
        return f'<a href="{links[name]}">{shown}</a>' if links and name in links else shown

    return CODE.sub(to_code, escape(text, quote=False))


def prose(text: str, links: Mapping[str, str] | None = None) -> str:
    """Return paragraphs, indented blocks and lists as HTML."""
    parts = []
    for block in re.split(r"\n\s*\n", inspect.cleandoc(text) if text[:1].isspace() else text):
        lines = block.strip("\n").splitlines()
        if not lines:
            continue
        if all(line.startswith("    ") for line in lines):
            parts.append(f'<pre class="formula">{escape(textwrap.dedent(block), quote=False)}</pre>')
        elif all(line.lstrip().startswith("|") for line in lines):
            parts.append(_table(lines, links))
        elif block.strip().startswith("$$") and block.strip().endswith("$$"):
            parts.append(_formula(block.strip().strip("$")))
        elif re.match(r"(-|\d\.) ", lines[0]):
            items = re.split(r"\n(?=(?:-|\d\.) )", "\n".join(lines))
            shown = "".join(f"<li>{inline(_joined(item[2:]), links)}</li>" for item in items)
            parts.append(f"<ul>{shown}</ul>")
        else:
            parts.append(f"<p>{inline(_joined(block), links)}</p>")
    return "".join(parts)


def remarks(text: str) -> tuple[str, str]:
    r"""Return a section without the sentences that follow its entries, and these.

    >>> remarks("a : int\n    One.\n\nThe others are as usual.")
    ('a : int\n    One.', 'The others are as usual.')
    """
    blocks = re.split(r"\n[ \t]*\n", text.rstrip())
    end = len(blocks)
    while end > 1 and blocks[end - 1].endswith(".") and not re.search(r"^\s", blocks[end - 1], re.MULTILINE):
        end -= 1
    return "\n\n".join(blocks[:end]), "\n\n".join(blocks[end:])


def listed(text: str, links: Mapping[str, str] | None = None) -> str:
    """Return the entries of a section as a list of definitions, and what is said after them."""
    rows = []
    own, after = remarks(text)
    for names, kind, meaning in entries(own):
        typed = f' <span class="kind">{inline(kind)}</span>' if kind else ""
        rows.append(f"<dt><code>{escape(names)}</code>{typed}</dt><dd>{prose(meaning, links)}</dd>")
    return f'<dl class="entries">{"".join(rows)}</dl>{prose(after, links)}'


def signature(function: Any, name: str) -> str:
    """Return `name(arguments)` with defaults and without annotations."""
    try:
        arguments = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return f"{name}(…)"
    shown = []
    starred = False
    for argument in arguments:
        if argument.name == "self":
            continue
        if argument.kind is argument.VAR_POSITIONAL:
            starred = True
        if argument.kind is argument.KEYWORD_ONLY and not starred:
            shown.append("*")
            starred = True
        mark = {argument.VAR_POSITIONAL: "*", argument.VAR_KEYWORD: "**"}.get(argument.kind, "")
        default = "" if argument.default is argument.empty else f"={_default(argument.default)}"
        shown.append(f"{mark}{argument.name}{default}")
    return f"{name}({', '.join(shown)})"


def described(function: Any, name: str, links: Mapping[str, str] | None = None) -> str:
    """Return a function or method as HTML: signature, text, parameters, results, examples."""
    parts = sections(inspect.getdoc(function) or "")
    body = [f'<pre class="signature"><code>{escape(signature(function, name))}</code></pre>', prose(parts[""], links)]
    for title, text in parts.items():
        if title in ("Parameters", "Returns", "Yields", "Attributes", "Raises", "Other Parameters"):
            body.append(f'<p class="part">{title}</p>{listed(text, links)}')
        elif title == "Examples":
            body.append(f'<p class="part">Example</p>{example(text)}')
        elif title:
            body.append(f'<p class="part">{title}</p>{prose(text, links)}')
    return "".join(body)


def example(text: str) -> str:
    """Return a session of Python as HTML."""
    shown = highlight(text.strip(), PythonConsoleLexer(), HtmlFormatter(nowrap=True))
    return f'<div class="highlight"><pre><code>{shown}</code></pre></div>'


def methods(cls: Any) -> list[str]:
    """Return the public methods of a class that are about it, in the order of their definition, `fit` first."""
    names: list[str] = []
    for base in cls.__mro__:
        for name, value in vars(base).items():
            plain = inspect.isfunction(value) or isinstance(value, (staticmethod, classmethod)) or hasattr(value, "fn")
            wanted = plain and not name.startswith(("_", "set_")) and name not in EVERYDAY
            if wanted and name not in names and inspect.getdoc(getattr(cls, name, None)):
                names.append(name)
    names = [name for name in names if callable(getattr(cls, name, None))]
    return sorted(names, key=lambda name: name != "fit")


def _table(lines: list[str], links: Mapping[str, str] | None) -> str:
    """Return a table of Markdown as HTML; the second line only separates the head."""
    rows = [re.split(r"(?<!\\)\|", line.strip().strip("|")) for line in lines]
    tags = ["th"] + ["td"] * (len(rows) - 2)
    shown = [
        "".join(f"<{tag}>{inline(cell.strip(), links)}</{tag}>" for cell in row)
        for tag, row in zip(tags, [rows[0], *rows[2:]], strict=True)
    ]
    return "<table>" + "".join(f"<tr>{row}</tr>" for row in shown) + "</table>"


def _formula(tex: str) -> str:
    """Return a formula as MathML, or as it is written where latex2mathml is not installed."""
    try:
        from latex2mathml.converter import convert
    except ImportError:
        return f'<pre class="formula">{escape(tex, quote=False)}</pre>'
    return str(convert(tex.strip(), display="block"))


def _default(value: Any) -> str:
    if hasattr(value, "item") and not isinstance(value, type):
        value = value.item()
    text = repr(value)
    return text if len(text) <= 40 and " at 0x" not in text else "…"


def _joined(block: str) -> str:
    return " ".join(line.strip() for line in block.splitlines())
