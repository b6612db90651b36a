"""Scales, ticks and the frame of a figure.

Ticks stand at multiples of 1, 2 or 5 times a power of ten (Wilkinson, *The Grammar of Graphics*, 2005, 6.2.3).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ..core.errors import DataError
from .markup import Markup, compact, join, svg, tag

Array = NDArray[np.float64]

ACCENT: Final = "var(--ln-accent, #00695c)"
MUTED: Final = "var(--ln-muted, #6b7075)"
RULE: Final = "var(--ln-rule, #d9d9d4)"
#: Beyond this, differences of two numbers could overflow.
_LARGEST: Final = 1e300
#: Below this, quotients of two differences could.
_SMALLEST: Final = 1e-290
_SUPERSCRIPTS: Final = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True)
class Scale:
    """A linear map of [low, high] onto [start, end].

    Examples
    --------
    >>> from learnable.plots.axes import Scale
    >>> Scale(0.0, 10.0, 100.0, 200.0)(2.5)
    125.0
    """

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: Any) -> Any:
        """Return the coordinate of a value, or of each value of an array."""
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)


def numbers(owner: str, **columns: Any) -> list[Array]:
    """Return the columns as float arrays, None and infinities as NaN; raise unless they are numbers of one length."""
    arrays = []
    for name, values in columns.items():
        try:
            array = np.asarray([math.nan if v is None else v for v in values], dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise DataError(f"{owner}: {name} must be a list of numbers; {error}.") from error
        if array.ndim != 1:
            raise DataError(f"{owner}: {name} must have one dimension, got {array.ndim}. Pass it column by column.")
        arrays.append(np.clip(np.where(np.isinf(array), np.nan, array), -_LARGEST, _LARGEST))
    lengths = {name: len(array) for name, array in zip(columns, arrays, strict=True)}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{name} has {length}" for name, length in lengths.items())
        raise DataError(f"{owner}: the columns must be of one length; {listed}.")
    return arrays


def extent(*columns: Any, pad: float = 0.04) -> tuple[float, float]:
    """Return a range that holds all finite values, with some room; never empty."""
    values = np.concatenate([np.ravel(np.asarray(column, dtype=np.float64)) for column in columns])
    values = values[np.isfinite(values)]
    if not values.size:
        return 0.0, 1.0
    low = float(values.min())
    high = float(values.max())
    if high - low <= max(1e-12 * max(abs(low), abs(high)), _SMALLEST):
        room = abs(low) / 2 if abs(low) > _SMALLEST else 0.5
        return low - room, high + room
    return low - pad * (high - low), high + pad * (high - low)


def ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Return at most `most` + 1 round numbers in [low, high].

    Examples
    --------
    >>> from learnable.plots.axes import ticks
    >>> ticks(0.0, 1.0)
    [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    >>> ticks(-130.0, 480.0, most=4)
    [0.0, 200.0, 400.0]
    """
    span = high - low
    if not (math.isfinite(span) and span > _SMALLEST):
        return [low] if math.isfinite(low) else []
    power = math.floor(math.log10(span / most))
    step = next(m * 10.0**power for m in (1, 2, 5, 10) if span / (m * 10.0**power) <= most * (1 + 1e-9))
    slack = 1e-9 * span
    first = math.ceil((low - slack) / step)
    last = math.floor((high + slack) / step)
    digits = max(0, 1 - math.floor(math.log10(step)))
    found = [round(k * step, digits) if digits < 300 else k * step for k in range(first, last + 1)]
    return [0.0 if value == 0 else value for value in found]


def tick_labels(values: Sequence[float]) -> list[str]:
    """Return labels of equal precision: 0.25, 1,500, 20k, 3 × 10⁻⁷.

    Examples
    --------
    >>> from learnable.plots.axes import tick_labels
    >>> tick_labels([0.0, 0.5, 1.0]), tick_labels([0.0, 20000.0, 40000.0]), tick_labels([0.0, 2e-7])
    (['0', '0.5', '1'], ['0', '20k', '40k'], ['0', '2 × 10⁻⁷'])
    """
    largest = max((abs(value) for value in values), default=0.0)
    if largest <= _SMALLEST:
        return ["0" for _ in values]
    if largest >= 1e15 or largest < 1e-4:
        power = math.floor(math.log10(largest))
        return ["0" if v == 0 else f"{_plain(v / 10.0**power)} × {power_of_ten(power)}" for v in values]
    for unit, suffix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e4, "k")):
        if largest >= unit:
            unit = 1e3 if suffix == "k" else unit
            return ["0" if v == 0 else _plain(v / unit) + suffix for v in values]
    return [_plain(value) for value in values]


def power_of_ten(power: int) -> str:
    """Return 10 with a superscript."""
    return "10" + str(power).translate(_SUPERSCRIPTS)


def _plain(value: float) -> str:
    return f"{value:,.10g}".replace("-", "−") if abs(value) >= 1e-4 or value == 0 else f"{value:.6g}".replace("-", "−")


@dataclass(frozen=True)
class Frame:
    """The plotting area, with an axis below and one at the left, its label above; `x` and `y` map data onto it.

    Attributes
    ----------
    width, height : float
        Size of the figure in its own units; about pixels.
    x, y : Scale
        Maps of the two axes.
    x_log, y_log : bool
        Whether an axis holds decimal logarithms, so that its labels are powers of ten.
    """

    width: float
    height: float
    x: Scale
    y: Scale
    x_log: bool = False
    y_log: bool = False

    @classmethod
    def around(
        cls,
        x: tuple[float, float],
        y: tuple[float, float],
        *,
        width: float = 380.0,
        height: float = 260.0,
        right: float = 12.0,
        x_log: bool = False,
        y_log: bool = False,
    ) -> Frame:
        """Return the frame for data in these ranges, with room for labels of the ticks and `right` of the plot."""
        longest = max((len(label) for _, label in _marks(*y, y_log)), default=1)
        left = 8.0 + 6.2 * max(longest, 2)
        return cls(width, height, Scale(*x, left, width - right), Scale(*y, height - 42.0, 26.0), x_log, y_log)

    def draw(self, title: str, *marks: Any, x_label: str, y_label: str, desc: str | None = None) -> Markup:
        """Return the figure with its axes, `marks` on top."""
        return svg(
            self.width,
            self.height,
            title,
            tag("g", self._x_axis(x_label), self._y_axis(y_label), fill="currentColor", aria_hidden="true"),
            tag("g", *marks),
            desc=desc,
            font_size="11",
            font_family="inherit",
        )

    def line(self, xs: Any, ys: Any, **attributes: Any) -> Markup:
        """Return a line through the points; points that are not finite break it."""
        return tag("path", d=self.path(xs, ys), fill="none", **attributes)

    def path(self, xs: Any, ys: Any) -> str:
        """Return the path data of a line through the points."""
        pieces = []
        pen = "M"
        for x, y in zip(np.atleast_1d(self.x(np.asarray(xs))), np.atleast_1d(self.y(np.asarray(ys))), strict=True):
            if math.isfinite(x) and math.isfinite(y):
                pieces.append(f"{pen}{compact(x)} {compact(y)}")
                pen = "L"
            else:
                pen = "M"
        return "".join(pieces)

    def _x_axis(self, label: str) -> Markup:
        bottom = self.y.start
        parts = [tag("path", d=f"M{compact(self.x.start)} {compact(bottom)}H{compact(self.x.end)}", stroke=RULE)]
        for value, text in _marks(self.x.low, self.x.high, self.x_log):
            at = float(self.x(value))
            parts.append(tag("path", d=f"M{compact(at)} {compact(bottom)}v4", stroke=RULE))
            parts.append(tag("text", text, x=at, y=bottom + 16.0, text_anchor="middle", fill=MUTED))
        middle = (self.x.start + self.x.end) / 2
        parts.append(tag("text", label, x=middle, y=self.height - 6.0, text_anchor="middle"))
        return join(parts)

    def _y_axis(self, label: str) -> Markup:
        parts = []
        for value, text in _marks(self.y.low, self.y.high, self.y_log):
            at = float(self.y(value))
            line = f"M{compact(self.x.start)} {compact(at)}H{compact(self.x.end)}"
            parts.append(tag("path", d=line, stroke=RULE, opacity=0.6))
            parts.append(tag("text", text, x=self.x.start - 6.0, y=at + 4.0, text_anchor="end", fill=MUTED))
        parts.append(tag("text", label, x="0", y="11"))
        return join(parts)


def _marks(low: float, high: float, log: bool) -> list[tuple[float, str]]:
    """Return the ticks of an axis and their labels; whole powers of ten where the axis holds logarithms."""
    values = ticks(low, high)
    if not log:
        return list(zip(values, tick_labels(values), strict=True))
    powers = [value for value in values if value == round(value)]
    if len(powers) >= 2:
        return [(value, power_of_ten(round(value))) for value in powers]
    return [(value, f"{10.0**value:.2g}") for value in values]
