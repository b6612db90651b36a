"""Figures of this package as files and on matplotlib axes.

A figure is SVG markup made by our own functions: lines, boxes, dots and words, with colours of the page around it.
`standalone` makes a file of it that looks the same everywhere; `paint` draws it with matplotlib, which also makes PNGs.
Only what our figures use is understood; it is no reader of other people's SVG.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from io import BytesIO
from typing import Any, Final, NamedTuple

import numpy as np

from ..core import Array, DataError
from .markup import compact

INK: Final = "#1f2328"  #: text and lines on white
_VARIABLE: Final = re.compile(r"var\(--[\w-]+,\s*([^)]+)\)")
_SIZE: Final = re.compile(r'viewBox="0 0 ([\d.]+) ([\d.]+)"')
_COMMAND: Final = re.compile(r"([MmLlHhVvCcZz])([^MmLlHhVvCcZz]*)")
_NUMBER: Final = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?")
_MOTION: Final = re.compile(r"(\w+)\(([^)]*)\)")
_UNSEEN: Final = dict.fromkeys(map(ord, "\u2066\u2067\u2068\u2069\u200e\u200f"))
_INHERITED: Final = (
    "fill", "stroke", "stroke-width", "fill-opacity", "stroke-opacity", "stroke-dasharray", "stroke-linecap",
    "font-size", "font-weight", "text-anchor",
)  # fmt: skip
_DOTS_PER_INCH: Final = 192  # of a PNG: two pixels for each unit of a figure
_UNITS_PER_INCH: Final = 96.0
_POINTS_PER_INCH: Final = 72.0
_MARGIN: Final = 12.0  # around a figure in a file
_KAPPA: Final = 0.5522847498  # of the four curves that make a circle


def standalone(figure: str) -> str:
    """Return the figure as a file of its own: colours are fixed, on white, and it has a size."""
    text = _VARIABLE.sub(r"\1", str(figure)).replace("currentColor", INK)
    text = text.replace('font-family="inherit"', 'font-family="system-ui, sans-serif"')
    width, height = (compact(size + 2 * _MARGIN) for size in size_of(figure))
    corner = compact(-_MARGIN)
    text = _SIZE.sub(f'viewBox="{corner} {corner} {width} {height}" width="{width}" height="{height}"', text, count=1)
    box = f'<rect x="{corner}" y="{corner}" width="{width}" height="{height}" fill="white"/>'
    head, _, rest = text.partition(">")
    return f"{head}>{box}{rest}\n"


def size_of(figure: str) -> tuple[float, float]:
    """Return width and height of a figure in its own units."""
    found = _SIZE.search(str(figure))
    if found is None:
        raise DataError("a figure must be what a function of learnable.plots returned.")
    return float(found[1]), float(found[2])


def as_png(figure: str) -> bytes:
    """Return the figure as a PNG image, by matplotlib or else by cairosvg."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        return _by_cairo(figure)
    width, height = (size + 2 * _MARGIN for size in size_of(figure))
    sheet = Figure(figsize=(width / _UNITS_PER_INCH, height / _UNITS_PER_INCH), dpi=_DOTS_PER_INCH)
    FigureCanvasAgg(sheet)
    inner = (1.0 - 2 * _MARGIN / width, 1.0 - 2 * _MARGIN / height)
    paint(figure, sheet.add_axes((_MARGIN / width, _MARGIN / height, *inner)))
    written = BytesIO()
    sheet.savefig(written, format="png", facecolor="white")
    return written.getvalue()


def _by_cairo(figure: str) -> bytes:
    try:
        import cairosvg
    except ImportError as error:
        raise ImportError(
            "A PNG needs matplotlib or cairosvg, and neither is installed: `pip install matplotlib`, or save the "
            "figure as .svg, which needs nothing."
        ) from error
    return bytes(cairosvg.svg2png(bytestring=standalone(figure).encode(), scale=_DOTS_PER_INCH / _UNITS_PER_INCH))


def paint(figure: str, ax: Any) -> Any:
    """Draw a figure on a matplotlib axis, which is cleared of its ticks; return the axis.

    Parameters
    ----------
    figure : Markup
        What a function of this package returned.
    ax : matplotlib.axes.Axes
        The figure fills it, in its own proportions.

    Returns
    -------
    matplotlib.axes.Axes
        The axis.

    Examples
    --------
    >>> from learnable.plots import histogram
    >>> from learnable.plots.paint import paint
    >>> figure = histogram([0, 1, 2], [3, 5])
    >>> paint(figure, ax)  # doctest: +SKIP
    """
    width, height = size_of(figure)
    ax.set_xlim(0.0, width)
    ax.set_ylim(height, 0.0)
    ax.set_aspect("equal")
    ax.axis("off")
    box = ax.get_window_extent()
    unit = min(box.width / width, box.height / height) * _POINTS_PER_INCH / ax.figure.dpi
    style = {"fill": INK, "font-size": "12", "stroke-width": "1"}
    _Painter(ax, unit).draw(ElementTree.fromstring(str(figure)), _Place(), style, 1.0)
    return ax


class _Place(NamedTuple):
    """An affine map x ↦ Ax + b of coordinates, and the angle by which words are turned."""

    a: Any = ((1.0, 0.0), (0.0, 1.0))
    b: Any = (0.0, 0.0)

    def __call__(self, points: Any) -> Array:
        return np.asarray(np.asarray(points, dtype=np.float64) @ np.asarray(self.a).T + np.asarray(self.b))

    def then(self, a: Any, b: Any) -> _Place:
        """Return the map that applies x ↦ ax + b before this one."""
        return _Place(np.asarray(self.a) @ np.asarray(a), self(np.asarray(b)))

    @property
    def scale(self) -> float:
        """How much lengths grow."""
        return float(np.sqrt(abs(np.linalg.det(np.asarray(self.a)))))

    @property
    def turn(self) -> float:
        """Degrees, counter-clockwise on the screen."""
        across = np.asarray(self.a)[:, 0]
        return float(-np.degrees(np.arctan2(across[1], across[0])))


class _Painter:
    """Draws elements, the later ones on top."""

    def __init__(self, ax: Any, unit: float) -> None:
        self.ax = ax
        self.unit = unit  # points for each unit of the figure
        self.order = 2.0

    def draw(self, element: Any, place: _Place, above: dict[str, str], opacity: float) -> None:
        """Draw an element and what it holds, in the style of what is above it."""
        name = element.tag.rpartition("}")[2]
        style = above | {key: value for key, value in element.attrib.items() if key in _INHERITED}
        opacity *= float(element.get("opacity", 1.0))
        place = _moved(place, element, name)
        shape = _SHAPES.get(name)
        if shape is not None:
            self._shape(shape(element), place, style, opacity)
        elif name == "text":
            self._words(element, place, style, opacity)
        if name in ("svg", "g"):
            for child in element:
                self.draw(child, place, style, opacity)

    def _shape(
        self, pieces: list[tuple[Array, bool, bool]], place: _Place, style: dict[str, str], opacity: float
    ) -> None:
        """Draw pieces (points, whether they are a curve, whether they are closed) as one path; points alone as dots."""
        from matplotlib.lines import Line2D
        from matplotlib.patches import PathPatch
        from matplotlib.path import Path

        fill = _colour(style.get("fill", "none"))
        stroke = _colour(style.get("stroke", "none"))
        width = _length(style.get("stroke-width", "1")) * place.scale * self.unit
        self.order += 0.001
        dots = [place(points[0]) for points, _, closed in pieces if not closed and np.ptp(points, axis=0).max() == 0]
        if dots and stroke is not None:
            at = np.array(dots)
            alpha = opacity * float(style.get("stroke-opacity", 1.0))
            look: dict[str, Any] = {"color": stroke, "alpha": alpha, "markersize": width, "markeredgewidth": 0.0}
            self.ax.add_line(Line2D(at[:, 0], at[:, 1], linestyle="", marker="o", zorder=self.order, **look))
        lines = [piece for piece in pieces if piece[2] or np.ptp(piece[0], axis=0).max() > 0]
        if not lines:
            return
        vertices: list[Array] = []
        codes: list[Any] = []
        for points, curved, closed in lines:
            vertices += list(place(points))
            codes += [Path.MOVETO] + [Path.CURVE4 if curved else Path.LINETO] * (len(points) - 1)
            if closed:
                vertices.append(place(points[0]))
                codes.append(Path.CLOSEPOLY)
        dashes = [float(d) for d in _NUMBER.findall(style.get("stroke-dasharray", ""))]
        for paint_fill in (True, False):
            colour = fill if paint_fill else stroke
            if colour is None:
                continue
            part = "fill-opacity" if paint_fill else "stroke-opacity"
            look = {"alpha": opacity * float(style.get(part, 1.0)), "zorder": self.order}
            if paint_fill:
                look |= {"facecolor": colour, "edgecolor": "none", "linewidth": 0.0}
            else:
                look |= {"facecolor": "none", "edgecolor": colour, "linewidth": width}
                if dashes and width > 0:
                    look["linestyle"] = (0, [d * place.scale * self.unit / width for d in dashes])
            self.ax.add_patch(PathPatch(Path(np.array(vertices), codes), **look))

    def _words(self, element: Any, place: _Place, style: dict[str, str], opacity: float) -> None:
        text = "".join(element.itertext()).translate(_UNSEEN)
        colour = _colour(style.get("fill", INK))
        if not text.strip() or colour is None:
            return
        at = place((_length(element.get("x", "0")), _length(element.get("y", "0"))))
        side = {"middle": "center", "end": "right"}.get(style.get("text-anchor", ""), "left")
        heavy = style.get("font-weight", "") in ("bold", "600", "650", "700")
        self.order += 0.001
        self.ax.text(
            at[0], at[1], text.replace("$", r"\$"), ha=side, va="baseline", color=colour, alpha=opacity,
            fontsize=_length(style["font-size"]) * place.scale * self.unit, rotation=place.turn,
            rotation_mode="anchor", fontweight="bold" if heavy else "normal", zorder=self.order,
        )  # fmt: skip


def _moved(place: _Place, element: Any, name: str) -> _Place:
    """Return the map inside an element: figures within figures, and `transform`."""
    if name == "svg":
        place = place.then(np.eye(2), (_length(element.get("x", "0")), _length(element.get("y", "0"))))
        box = [float(v) for v in element.get("viewBox", "0 0 1 1").split()]
        if element.get("width") is not None and box[2] > 0:
            grown = _length(element.get("width")) / box[2]
            place = place.then(np.eye(2) * grown, (0.0, 0.0))
    for kind, numbers in _MOTION.findall(element.get("transform", "")):
        values = [float(v) for v in _NUMBER.findall(numbers)]
        if kind == "translate":
            place = place.then(np.eye(2), (values[0], values[1] if len(values) > 1 else 0.0))
        elif kind == "scale":
            place = place.then(np.diag([values[0], values[-1]]), (0.0, 0.0))
        elif kind == "rotate":
            angle = np.radians(values[0])
            turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
            centre = np.array(values[1:3] if len(values) > 2 else (0.0, 0.0))
            place = place.then(turn, centre - turn @ centre)
    return place


def _colour(text: str) -> str | None:
    """Return a colour that matplotlib knows; None for none."""
    shown = _VARIABLE.sub(r"\1", text).strip()
    if shown in ("none", "transparent", ""):
        return None
    return INK if shown in ("currentColor", "inherit") else shown


def _length(text: str) -> float:
    found = _NUMBER.match(str(text).strip())
    return float(found[0]) if found else 0.0


def _path(element: Any) -> list[tuple[Array, bool, bool]]:
    """Return the pieces of path data: lines, curves of third degree, closed or not."""
    pieces: list[tuple[Array, bool, bool]] = []
    points: list[Array] = []
    at = np.zeros(2)

    def end(closed: bool = False) -> None:
        nonlocal points
        if len(points) > 1:
            pieces.append((np.array(points), False, closed))
        points = []

    for command, rest in _COMMAND.findall(element.get("d", "")):
        values = np.array([float(v) for v in _NUMBER.findall(rest)])
        relative = command.islower()
        kind = command.upper()
        if kind == "Z":
            at = points[0].copy() if points else at
            end(closed=True)
        elif kind == "C":
            end()
            for control in values.reshape(-1, 3, 2):
                curve = np.vstack([at, control + at if relative else control])
                pieces.append((curve, True, False))
                at = curve[-1]
        else:
            for k, step in enumerate(_steps(kind, values)):
                move = kind == "M" and k == 0
                if move:
                    end()
                elif not points:
                    points = [at.copy()]
                known = np.isfinite(step)
                at = np.where(known, np.nan_to_num(step) + (at if relative else 0.0), at)
                points.append(at.copy())
    end()
    return pieces


def _steps(kind: str, values: Array) -> Array:
    """Return the points of M, L, H and V, with NaN for the coordinate that stays."""
    if kind == "H":
        return np.column_stack([values, np.full(len(values), np.nan)])
    if kind == "V":
        return np.column_stack([np.full(len(values), np.nan), values])
    return values.reshape(-1, 2)


def _rect(element: Any) -> list[tuple[Array, bool, bool]]:
    x, y, w, h = (_length(element.get(name, "0")) for name in ("x", "y", "width", "height"))
    return [(np.array([(x, y), (x + w, y), (x + w, y + h), (x, y + h)]), False, True)]


def _line(element: Any) -> list[tuple[Array, bool, bool]]:
    ends = [_length(element.get(name, "0")) for name in ("x1", "y1", "x2", "y2")]
    return [(np.array(ends).reshape(2, 2), False, False)]


def _circle(element: Any) -> list[tuple[Array, bool, bool]]:
    r = _length(element.get("r", "0"))
    centre = np.array([_length(element.get("cx", "0")), _length(element.get("cy", "0"))])
    k = _KAPPA
    quarter = np.array([(1, 0), (1, k), (k, 1), (0, 1)])
    turn = np.array([[0, -1], [1, 0]])
    points = [quarter[0]]
    for _ in range(4):
        points += list(quarter[1:])
        quarter = quarter @ turn.T
    return [(centre + r * np.array(points), True, True)]


_SHAPES: Final = {"path": _path, "rect": _rect, "line": _line, "circle": _circle}
