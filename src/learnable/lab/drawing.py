"""What the pictures of several scenes share: regions, rows in the plane, and the curve of a number up to now."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any, Final

import numpy as np

from ..core import Array, NDArray
from ..plots.axes import ACCENT, MUTED, RULE, Frame, Scale, extent
from ..plots.markup import Markup, compact, isolated, svg, tag
from ..plots.optimization import COLOURS, legend_marks, pieces_within

WIDTH: Final = 400.0
HEIGHT: Final = 300.0
LEGEND: Final = 104.0
#: Fields of a picture across and down that are shaded by what is predicted in their middle.
_FIELDS: Final = 80
_TURN: Final = np.linspace(0, 2 * np.pi, 61)


@contextmanager
def quietly() -> Iterator[None]:
    """Fit models that get too few steps on purpose, which each of them says in a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def plane(X: Array, *, legend: bool = False, pad: float = 0.08, height: float = HEIGHT) -> Frame:
    """Return a frame around points (n, 2)."""
    right = LEGEND if legend else 12.0
    x_ends = extent(X[:, 0], pad=pad)
    y_ends = extent(X[:, 1], pad=pad)
    return Frame.around(x_ends, y_ends, width=WIDTH, height=height, right=right)


def regions(frame: Frame, predict: Callable[[Array], Any], *, fields: int = _FIELDS) -> list[Markup]:
    """Shade the plane by what is predicted there, a number from 0 on."""
    across = np.linspace(frame.x.low, frame.x.high, fields + 1)
    down = np.linspace(frame.y.low, frame.y.high, fields + 1)
    middles = np.stack(np.meshgrid(across[:-1] + np.diff(across) / 2, down[:-1] + np.diff(down) / 2), axis=-1)
    found = np.asarray(predict(middles.reshape(-1, 2)), dtype=np.int64).reshape(fields, fields)
    pieces: dict[int, list[str]] = {}
    top = frame.y(down[1:])
    tall = float(frame.y(down[0]) - frame.y(down[1]))
    left = frame.x(across)
    for row, at in zip(found, top, strict=True):
        for start, stop in pairwise(np.flatnonzero(np.r_[True, row[1:] != row[:-1], True])):
            wide = compact(float(left[stop] - left[start]))
            field = f"M{compact(float(left[start]))} {compact(float(at))}h{wide}v{compact(tall)}h-{wide}z"
            pieces.setdefault(int(row[start]), []).append(field)
    return [
        tag("path", d="".join(d), fill=COLOURS[k % len(COLOURS)], opacity=0.14, shape_rendering="crispEdges")
        for k, d in sorted(pieces.items())
    ]


def dots(frame: Frame, X: Array, colour: str, *, size: float = 5.0, opacity: float = 0.8) -> Markup:
    """Draw points of one colour, as one path."""
    places = zip(frame.x(X[:, 0]), frame.y(X[:, 1]), strict=True)
    d = "".join(f"M{compact(round(float(a), 1))} {compact(round(float(b), 1))}h0" for a, b in places)
    style = {"stroke": colour, "stroke_width": size, "stroke_linecap": "round", "opacity": opacity}
    return tag("path", d=d, fill="none", **style)


def classes(frame: Frame, X: Array, of: NDArray[Any], *, size: float = 6.0) -> list[Markup]:
    """Draw points in the colours of their classes, numbers from 0 on."""
    return [dots(frame, X[of == k], COLOURS[k % len(COLOURS)], size=size) for k in np.unique(of)]


def shares(frame: Frame, X: Array, share: Array, *, size: float = 5.0) -> list[Markup]:
    """Draw points that belong to several clusters, in each one's colour, as strong as the share (n, K)."""
    marks = []
    for k in range(share.shape[1]):
        for level in (0.2, 0.4, 0.6, 0.8, 1.0):
            some = X[np.abs(share[:, k] - level) <= 0.1]
            if len(some):
                marks.append(dots(frame, some, COLOURS[k % len(COLOURS)], size=size, opacity=0.8 * level))
    return marks


def cross(frame: Frame, point: Array) -> Markup:
    """Mark a centre."""
    at = f"M{compact(float(frame.x(point[0])))} {compact(float(frame.y(point[1])))}"
    d = f"{at}m-6 -6l12 12m-12 0l12 -12"
    return tag("path", d=d, stroke="currentColor", stroke_width=2.4, stroke_linecap="round", fill="none")


def ellipse(frame: Frame, mean: Array, covariance: Array, colour: str, levels: Sequence[float] = (1.0, 2.0)) -> Markup:
    """Draw where a normal density has so many standard deviations."""
    root = np.linalg.cholesky(covariance)
    ring = np.column_stack([np.cos(_TURN), np.sin(_TURN)]) @ root.T
    within = (frame.x.low, frame.x.high), (frame.y.low, frame.y.high)
    pieces = (piece for level in levels for piece in pieces_within(mean + level * ring, *within))
    d = "".join(frame.path(piece[:, 0], piece[:, 1]) for piece in pieces)
    return tag("path", d=d, fill="none", stroke=colour, stroke_width=1.8)


def progress(
    series: Mapping[str, tuple[Any, Any]],
    now: float,
    *,
    title: str,
    x_label: str,
    y_label: str,
    y_log: bool = False,
    y_range: tuple[float, float] | None = None,
    x_log: bool = False,
) -> Markup:
    """Draw numbers by step: up to now as lines with a dot at their end, what comes later faintly."""
    lines = {}
    for name, (x, y) in series.items():
        xs = np.asarray(x, dtype=np.float64)
        ys = np.asarray(y, dtype=np.float64)
        lines[name] = (_logarithm(xs) if x_log else xs, _logarithm(ys) if y_log else ys)
    at = float(np.log10(now)) if x_log else now
    x_ends = extent(*(xs for xs, _ in lines.values()), pad=0.02)
    y_ends = extent(*(ys for _, ys in lines.values()), pad=0.06) if y_range is None else y_range
    right = LEGEND if len(lines) > 1 else 14.0
    frame = Frame.around(x_ends, y_ends, width=WIDTH, height=HEIGHT, right=right, x_log=x_log, y_log=y_log)
    marks = []
    colours = [ACCENT] if len(lines) == 1 else [COLOURS[k % len(COLOURS)] for k in range(len(lines))]
    for (xs, ys), colour in zip(lines.values(), colours, strict=True):
        past = xs <= at + 1e-9
        marks.append(frame.line(xs, ys, stroke=colour, stroke_width=1.2, opacity=0.3))
        marks.append(frame.line(xs[past], ys[past], stroke=colour, stroke_width=2.2, stroke_linejoin="round"))
        if past.any() and np.isfinite(ys[past][-1]):
            place = {"cx": float(frame.x(xs[past][-1])), "cy": float(frame.y(ys[past][-1]))}
            marks.append(tag("circle", r=4.0, fill=colour, **place))
    if len(lines) > 1:
        marks += legend_marks(frame, list(lines), colours)
    return frame.draw(title, *marks, x_label=x_label, y_label=y_label)


def level_bars(
    names: Sequence[str],
    values: Array,
    *,
    highest: float,
    level: float | None = None,
    marked: Sequence[bool] | None = None,
    title: str,
    x_label: str,
) -> Markup:
    """Draw numbers ≥ 0 as bars on one fixed scale, and a line at a level; marked ones in the accent's colour."""
    room = 16.0 + 6.2 * max(min(max((len(str(name)) for name in names), default=1), 16), 3)
    place = Scale(0.0, 1.06 * highest, room, WIDTH - 12.0)
    top = 14.0
    bottom = HEIGHT - 42.0
    row = (bottom - top) / max(len(names), 1)
    parts = []
    chosen = [False] * len(names) if marked is None else list(marked)
    for number, (name, value) in enumerate(zip(names, values, strict=True)):
        y = top + row * number
        size = {"x": room, "y": y + 0.18 * row, "width": float(place(value)) - room, "height": 0.64 * row}
        parts.append(tag("rect", fill=ACCENT if chosen[number] else MUTED, opacity=0.8, **size))
        words = {"x": room - 8.0, "y": y + 0.5 * row + 4.0, "text_anchor": "end", "fill": "currentColor"}
        parts.append(tag("text", isolated(name, 16), **words))
    parts.append(tag("path", d=f"M{compact(room)} {compact(bottom)}H{compact(place.end)}", stroke=RULE))
    if level is not None:
        at = compact(float(place(level)))
        parts.append(
            tag("path", d=f"M{at} {compact(top - 6)}V{compact(bottom)}", stroke="currentColor", stroke_dasharray="4 3")
        )
    middle = (room + place.end) / 2
    parts.append(tag("text", x_label, x=middle, y=HEIGHT - 12.0, text_anchor="middle", fill="currentColor"))
    return svg(WIDTH, HEIGHT, title, *parts, font_size="11", font_family="inherit")


def _logarithm(values: Array) -> Array:
    return np.asarray(np.log10(np.where(values > 0, values, np.nan)))
