"""Small figures inside the nodes of a drawn tree: the rows that a question looks at, and where it cuts them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import DataError
from ..plots.axes import ACCENT, MUTED
from ..plots.markup import Markup, compact, tag
from ..plots.optimization import COLOURS
from .view import TreeView

_BINS = 18
_POINTS = 150  # of a scatter, evenly spaced in the order of the rows


def class_colour(k: int) -> str:
    """Return the colour of a class; they repeat after eight."""
    return COLOURS[k % len(COLOURS)]


class NodeFigures:
    """Figures for the nodes that compare numbers, if there are rows to show."""

    HEIGHT = 52.0

    def __init__(self, owner: str, model: Any, view: TreeView, X: Any, y: Any) -> None:
        self.view = view
        self.rows: dict[int, NDArray[np.int64]] = {}
        if (X is None) != (y is None):
            raise DataError(f"{owner}: X and y go together; pass both or none.")
        if X is None or all(
            group is not None for group, below in zip(view.groups, view.children, strict=True) if below
        ):
            return
        self.columns = X
        table = X.to_numpy() if hasattr(X, "to_numpy") else np.asarray(X)
        target = np.asarray(y.to_numpy() if hasattr(y, "to_numpy") else y)
        if table.ndim != 2 or table.shape[1] != model.n_features_in_ or target.shape != (len(table),):
            raise DataError(
                f"{owner}: X must have {model.n_features_in_} columns and y one value a row; got shapes {table.shape} "
                f"and {target.shape}."
            )
        self.X, self.y = table, target
        if view.is_classifier:
            self.y = np.searchsorted(model.classes_, target).clip(0, len(model.classes_) - 1)
        else:
            self.low, self.high = float(self.y.min()), float(self.y.max())
        self._fill(np.asarray(model.apply(X)))

    def has(self, node: int) -> bool:
        """Tell whether a node has a figure."""
        if not self.view.children[node] or self.view.groups[node] is not None:
            return False
        return len(self.rows.get(node, ())) > 1 and self._has_numbers(node)

    def draw(self, node: int, x: float, y: float, width: float, value: Any = None) -> Markup:
        """Draw the rows of a node along the column that it tests; `value` is marked."""
        column = self._column(node)
        low, high = float(column.min()), float(column.max())
        room = (high - low) or 1.0
        height = self.HEIGHT - 12.0
        bottom, threshold = y + height, float(self.view.threshold[node])

        def place(values: Any) -> Any:
            return x + (np.clip(values, low, high) - low) / room * width

        marks = self._histogram(node, column, (low, low + room), x, bottom, width, height)
        if not self.view.is_classifier:
            marks = self._scatter(node, column, place, bottom, height)
        at = float(place(threshold))
        marks.append(tag("path", d=f"M{compact(x)} {compact(bottom)}h{compact(width)}", stroke=MUTED, opacity=0.6))
        marks.append(
            tag(
                "path",
                d=f"M{compact(at)} {compact(y)}V{compact(bottom)}",
                stroke="currentColor",
                stroke_dasharray="2 2",
            )
        )
        wedge = f"M{compact(at)} {compact(bottom)}l-4 7h8z"
        marks.append(tag("path", d=wedge, fill="currentColor"))
        if value is not None and isinstance(value, float | int | np.number) and np.isfinite(value):
            spot = float(place(float(value)))
            marks.append(tag("circle", cx=spot, cy=bottom, r="4.5", fill=ACCENT))
        return tag("g", *marks)

    def _histogram(
        self, node: int, column: Any, ends: tuple[float, float], x: float, bottom: float, width: float, height: float
    ) -> list[Markup]:
        """Return bars of the classes, one upon the other."""
        if not self.view.is_classifier:
            return []
        n_classes = self.view.value.shape[2]
        bins = np.minimum(((column - ends[0]) / (ends[1] - ends[0]) * _BINS).astype(int), _BINS - 1)
        counts = np.zeros((_BINS, n_classes))
        np.add.at(counts, (bins, self.y[self.rows[node]][self._known]), 1)
        unit, step = height / counts.sum(axis=1).max(), width / _BINS
        bars = []
        for b, k in zip(*np.nonzero(counts), strict=True):
            base = float(counts[b, :k].sum() * unit)
            tall = float(counts[b, k] * unit)
            bars.append(
                tag(
                    "rect",
                    x=x + b * step + 0.4,
                    y=bottom - base - tall,
                    width=step - 0.8,
                    height=tall,
                    fill=class_colour(k),
                )
            )
        return bars

    def _scatter(self, node: int, column: Any, place: Any, bottom: float, height: float) -> list[Markup]:
        """Return the targets against the column, and the mean on either side of the threshold."""
        target = self.y[self.rows[node]][self._known].astype(float)
        room = (self.high - self.low) or 1.0

        def level(values: Any) -> Any:
            return bottom - 2.0 - (values - self.low) / room * (height - 4.0)

        some = np.unique(np.linspace(0, len(column) - 1, min(len(column), _POINTS)).astype(int))
        dots = [
            tag("circle", cx=a, cy=b, r="1.6", fill=COLOURS[0], fill_opacity="0.6")
            for a, b in zip(place(column[some]).tolist(), level(target[some]).tolist(), strict=True)
        ]
        ends = [float(place(v)) for v in (column.min(), self.view.threshold[node], column.max())]
        for child, a, b in zip(self.view.children[node], ends[:-1], ends[1:], strict=True):
            at = compact(float(level(self.view.value[child, 0, 0])))
            dots.append(tag("path", d=f"M{compact(a)} {at}H{compact(b)}", stroke=COLOURS[1], stroke_width="2"))
        return dots

    def _column(self, node: int) -> Any:
        values = np.asarray(self.X[self.rows[node], int(self.view.feature[node])], dtype=np.float64)
        self._known = np.isfinite(values)
        return values[self._known]

    def _has_numbers(self, node: int) -> bool:
        try:
            return len(self._column(node)) > 1
        except (TypeError, ValueError):
            return False

    def _fill(self, leaves: NDArray[Any]) -> None:
        """Note which rows pass each node."""
        for node in range(len(self.view.children) - 1, -1, -1):
            below = self.view.children[node]
            parts = [self.rows[child] for child in below] or [np.flatnonzero(leaves == node)]
            self.rows[node] = np.sort(np.concatenate(parts))
