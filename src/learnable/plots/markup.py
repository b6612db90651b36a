"""Elements of HTML and SVG, escaped by construction: text becomes markup only through `tag`."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from html import escape
from typing import Any, Final

from ..core.errors import DataError, ParameterError

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


# --------------------------------------------------------------------------------------------------------------------
# Figures side by side, as one figure.


_HEAD: Final = re.compile(
    r'<svg xmlns="[^"]*" role="img" viewBox="0 0 ([\d.]+) ([\d.]+)"(?=[^>]*><title>([^<]*)</title>)'
)
_GAP: Final = 16.0
_TITLE: Final = 26.0  # height of the line of titles


def side_by_side(*figures: Markup, title: str) -> Markup:
    """Put figures of this package next to each other, from left to right, at one scale, each under its title.

    Parameters
    ----------
    *figures : Markup
        What the functions of `learnable.plots` return.
    title : str
        Words for all of them, which screen readers read and which are shown on hover.

    Returns
    -------
    Markup
        An `<svg>` element, also a str.

    Examples
    --------
    >>> from learnable.plots import labelled_lines, side_by_side
    >>> line = labelled_lines({"line": ([0, 1], [0, 1])})
    >>> side_by_side(line, line, title="Twice").count("<svg")
    3
    """
    placed = []
    left = 0.0
    tallest = 0.0
    for figure, head in zip(figures, _heads("side_by_side", figures), strict=True):
        placed.append(tag("text", Markup(head[3]), x=left, y=14.0, fill="currentColor", font_weight="bold"))
        placed.append(_placed(figure, head, left, _TITLE))
        left += float(head[1]) + _GAP
        tallest = max(tallest, float(head[2]))
    return svg(left - _GAP, tallest + _TITLE, title, *placed, font_size="12", font_family="inherit")


def stacked(*figures: Markup, title: str) -> Markup:
    """Put figures of this package below each other, at one scale, from the left border.

    Parameters
    ----------
    *figures : Markup
        What the functions of `learnable.plots` return, `side_by_side` among them.
    title : str
        Words for all of them, which screen readers read and which are shown on hover.

    Returns
    -------
    Markup
        An `<svg>` element, also a str.

    Examples
    --------
    >>> from learnable.plots import labelled_lines, stacked
    >>> line = labelled_lines({"line": ([0, 1], [0, 1])})
    >>> stacked(line, line, title="Twice").count("<svg")
    3
    """
    placed = []
    top = 0.0
    widest = 0.0
    for figure, head in zip(figures, _heads("stacked", figures), strict=True):
        placed.append(_placed(figure, head, 0.0, top))
        top += float(head[2]) + _GAP
        widest = max(widest, float(head[1]))
    return svg(widest, top - _GAP, title, *placed, font_size="12", font_family="inherit")


def _heads(owner: str, figures: tuple[Markup, ...]) -> list[re.Match[str]]:
    """Return the beginning of each figure: its width, height and title."""
    if not figures:
        raise DataError(f"{owner}: there is nothing to draw; pass at least one figure.")
    heads = [_HEAD.match(figure) if isinstance(figure, Markup) else None for figure in figures]
    found = [head for head in heads if head is not None]
    if len(found) < len(figures):
        raise DataError(f"{owner}: a figure must be what a function of learnable.plots returned.")
    return found


def _placed(figure: Markup, head: re.Match[str], left: float, top: float) -> Markup:
    """Return a figure whose upper left corner lies there."""
    size = f'width="{head[1]}" height="{head[2]}" viewBox="0 0 {head[1]} {head[2]}"'
    return Markup(f'<svg x="{compact(left)}" y="{compact(top)}" {size}{figure[head.end() :]}')


# --------------------------------------------------------------------------------------------------------------------
# Figures one after the other, as one figure that moves, without a script: in a page, a notebook or a file.


_MOVING_HEAD: Final = re.compile(r'<svg xmlns="[^"]*" role="img" viewBox="0 0 ([\d.]+) ([\d.]+)"')


def animate(frames: Sequence[Markup], *, seconds: float = 0.8, title: str) -> Markup:
    """Show figures of this package in turn, in one place, over and over.

    Without animation, in print for example, the last frame is shown.

    Parameters
    ----------
    frames : sequence of Markup
        What the functions of `learnable.plots` return.
    seconds : float
        How long each frame stays.
    title : str
        Words for all of them, which screen readers read and which are shown on hover.

    Returns
    -------
    Markup
        An `<svg>` element, also a str.

    Examples
    --------
    >>> from learnable.plots import animate, labelled_lines
    >>> figure = animate([labelled_lines({"line": ([0, 1], [0, k])}) for k in (1, 2)], title="Steeper")
    >>> figure.count("<animate")
    2
    """
    if not frames:
        raise DataError("animate: there is nothing to draw; pass at least one frame.")
    if not seconds > 0:
        raise ParameterError(f"animate: seconds must be > 0; got {seconds}.")
    placed, widest, tallest = [], 0.0, 0.0
    n = len(frames)
    for k, frame in enumerate(frames):
        head = _MOVING_HEAD.match(frame)
        if head is None or not isinstance(frame, Markup):
            raise DataError("animate: a frame must be what a function of learnable.plots returned.")
        size = f'width="{head[1]}" height="{head[2]}" viewBox="0 0 {head[1]} {head[2]}"'
        inner = Markup(f"<svg {size}{frame[head.end() :]}")
        values = ";".join("visible" if j == k else "hidden" for j in range(n))
        times = ";".join(compact(j / n) if j / n == round(j / n, 2) else f"{j / n:.6f}" for j in range(n))
        motion = tag(
            "animate",
            attributeName="visibility",
            values=values,
            keyTimes=times,
            dur=f"{compact(n * seconds)}s",
            calcMode="discrete",
            repeatCount="indefinite",
        )
        placed.append(tag("g", inner, motion, visibility="visible" if k == n - 1 else "hidden"))
        widest = max(widest, float(head[1]))
        tallest = max(tallest, float(head[2]))
    return svg(widest, tallest, title, *placed)
