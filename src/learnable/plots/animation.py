"""Figures one after the other, as one figure that moves, without a script: in a page, a notebook or a file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from ..core.errors import DataError, ParameterError
from .markup import Markup, compact, svg, tag

_HEAD: Final = re.compile(r'<svg xmlns="[^"]*" role="img" viewBox="0 0 ([\d.]+) ([\d.]+)"')


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
        head = _HEAD.match(frame)
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
