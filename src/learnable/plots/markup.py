"""Elements of HTML and SVG, escaped by construction: text becomes markup only through `tag`."""

from __future__ import annotations

import math
from html import escape
from typing import Any, Final

#: Control characters, and halves of surrogate pairs, which no file can hold.
_UNSEEN: Final = dict.fromkeys(
    (*range(9), 11, 12, *range(14, 32), *range(127, 160), *range(0xD800, 0xE000)), "\N{REPLACEMENT CHARACTER}"
)
#: Isolate a name, so that one written from right to left does not reorder the text around it.
_OPEN, _CLOSE = "\N{FIRST STRONG ISOLATE}", "\N{POP DIRECTIONAL ISOLATE}"


class Markup(str):
    """A string that is markup already; Jinja2 and `tag` insert it as it is.

    Examples
    --------
    >>> from learnable.plots.markup import Markup, tag
    >>> tag("b", "1 < 2", Markup("<i>!</i>"))
    '<b>1 &lt; 2<i>!</i></b>'
    """

    __slots__ = ()

    def __html__(self) -> str:
        """Return the markup itself; the convention that template engines know."""
        return self


def tag(name: str, *children: Any, **attributes: Any) -> Markup:
    """Return an element; children and attributes are escaped, None is left out, numbers are rounded to 0.01.

    A trailing underscore is dropped from an attribute's name (`class_`), an inner one becomes a hyphen.
    """
    inside = "".join(
        child if isinstance(child, Markup) else escape(clean(child)) for child in children if child is not None
    )
    shown = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(_value(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Markup(f"<{name}{shown}>{inside}</{name}>")


def join(pieces: Any, between: str = "") -> Markup:
    """Join markup and text, the text escaped."""
    return Markup(
        escape(between).join(piece if isinstance(piece, Markup) else escape(clean(piece)) for piece in pieces)
    )


def clean(text: Any, most: int | None = None) -> str:
    """Return the text without characters that cannot be shown, cut after `most` characters."""
    shown = str(text).translate(_UNSEEN)
    return shown if most is None or len(shown) <= most else shown[: max(most - 1, 1)].rstrip() + "…"


def isolated(text: Any, most: int | None = None) -> str:
    """Return a name for plain text, isolated from the writing direction of its surroundings."""
    return _OPEN + clean(text, most) + _CLOSE


def svg(
    width: float, height: float, title: str, /, *children: Any, desc: str | None = None, **attributes: Any
) -> Markup:
    """Return a figure that scales to the width it is given and tells screen readers its title."""
    attributes = {"viewBox": f"0 0 {compact(width)} {compact(height)}"} | attributes
    return tag(
        "svg",
        tag("title", title),
        tag("desc", desc) if desc else None,
        *children,
        xmlns="http://www.w3.org/2000/svg",
        role="img",
        **attributes,
    )


def compact(value: float) -> str:
    """Return a coordinate to 0.01, without needless zeros; what is not finite becomes 0."""
    text = f"{value:.2f}".rstrip("0").rstrip(".") if math.isfinite(value) else "0"
    return "0" if text == "-0" else text


def _value(value: Any) -> str:
    return compact(value) if isinstance(value, float) else clean(value)
