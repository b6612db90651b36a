"""A tree as a drawing: what is in each node, how many rows take each branch, and the way of one row.

The nodes are placed as close as their subtrees allow, parents over the middle of their children (E. Reingold and
J. Tilford, Tidier drawings of trees, IEEE Transactions on Software Engineering 7, 1981). Colours and text follow the
page, light or dark.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ...core import DataError, NDArray, Number, check_parameters, optional
from ...plots.axes import ACCENT, MUTED
from ...plots.markup import Markup, clean, compact, svg, tag
from ...plots.optimization import COLOURS
from .view import TreeView, path_of, view_tree

# --------------------------------------------------------------------------------------------------------------------
# Small figures inside the nodes of a drawn tree: the rows that a question looks at, and where it cuts them.


_BINS = 18  # bars of the histogram of a node
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
                f"{owner}: X must have {model.n_features_in_} columns and y one value per row; got shapes "
                f"{table.shape} and {target.shape}."
            )
        self.X = table
        self.y = target
        if view.is_classifier:
            self.y = np.searchsorted(model.classes_, target).clip(0, len(model.classes_) - 1)
        else:
            self.low = float(self.y.min())
            self.high = float(self.y.max())
        self._fill(np.asarray(model.apply(X)))

    def has(self, node: int) -> bool:
        """Tell whether a node has a figure."""
        if not self.view.children[node] or self.view.groups[node] is not None:
            return False
        return len(self.rows.get(node, ())) > 1 and self._has_numbers(node)

    def draw(self, node: int, x: float, y: float, width: float, value: Any = None) -> Markup:
        """Draw the rows of a node along the column that it tests; `value` is marked."""
        column = self._column(node)
        low = float(column.min())
        high = float(column.max())
        room = (high - low) or 1.0
        height = self.HEIGHT - 12.0
        bottom = y + height
        threshold = float(self.view.threshold[node])

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
        unit = height / counts.sum(axis=1).max()
        step = width / _BINS
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


# mean widths of a letter at 12 units; estimates from above for most fonts
_LETTER = 6.6
_BOLD = 7.5
_GAP = 16.0
_LEVEL_GAP = 52.0
_MARGIN = 14.0
_LEGEND = 30.0
_LABEL = 17.0
_LINE = 16.0
_BAR = 9.0
_PAD = 9.0
_MOST_LETTERS = 26
_THICKEST = 13.0
_FADED = 0.32


def plot_tree(
    decision_tree: Any,
    *,
    X: Any = None,
    y: Any = None,
    sample: Any = None,
    max_depth: int | None = None,
    feature_names: Any = None,
    class_names: Any = None,
    precision: int = 4,
    title: str = "Decision tree",
) -> Markup:
    """Draw a fitted tree as an SVG figure.

    Every node shows its question, how its rows are spread over the classes (or the mean and the spread of its numbers),
    and how many they are; the width of a branch is its share of the rows. Where scikit-learn's function of this name
    draws on a matplotlib axis, this one returns markup, which a notebook shows and a browser opens.

    Parameters
    ----------
    decision_tree : estimator
        A fitted decision tree or `ID3Classifier`; scikit-learn's own trees can be drawn, too.
    X, y : arrays, optional
        Rows to look at, usually those of the fit. Questions about numbers then show them: how each class is spread over
        the column, or the target against it, with the threshold.
    sample : sequence of values, or dataframe of one row, optional
        A row whose way through the tree is drawn in colour; the rest steps back.
    max_depth : int or None
        Levels to draw; what is below is counted. None draws the whole tree.
    feature_names, class_names : sequence of str, optional
        Names; by default those of the fit.
    precision : int
        Significant digits of numbers.
    title : str
        Read by screen readers and shown on hover.

    Returns
    -------
    Markup
        An `<svg>` element, also a str.

    Examples
    --------
    >>> from learnable import ID3Classifier
    >>> from learnable.trees import plot_tree
    >>> model = ID3Classifier().fit([["sunny"], ["rain"], ["rain"]], ["no", "yes", "yes"])
    >>> figure = plot_tree(model, feature_names=["outlook"], sample=["rain"])
    >>> figure.startswith("<svg"), "outlook" in figure
    (True, True)
    """
    owner = "plot_tree"
    given = {"max_depth": max_depth, "precision": precision}
    rules = {"max_depth": optional(Number(low=0, integer=True)), "precision": Number(low=1, integer=True)}
    check_parameters(owner, given, rules)
    view = view_tree(owner, decision_tree, feature_names, class_names)
    if view.value.shape[1] > 1:
        raise DataError(f"{owner}: draws one target; this tree has {view.value.shape[1]}. Fit one tree per target.")
    passed = path_of(owner, decision_tree, view, sample) if sample is not None else None
    figures = NodeFigures(owner, decision_tree, view, X, y)
    return _Drawing(view, figures, passed, _values_of(sample), max_depth, precision).draw(title)


class Card(NamedTuple):
    """What a node shows: lines of text with their style, a bar or a figure between them, and its size."""

    above: list[tuple[str, dict[str, Any]]]
    below: list[tuple[str, dict[str, Any]]]
    figure: float  #: height of the figure, 0 for none
    width: float
    height: float


class _Drawing:
    """Cards, their places, and the lines between them."""

    def __init__(
        self,
        view: TreeView,
        figures: NodeFigures,
        passed: set[int] | None,
        values: list[Any] | None,
        max_depth: int | None,
        precision: int,
    ) -> None:
        self.view = view
        self.figures = figures
        self.passed = passed
        self.values = values
        self.precision = precision
        self.depth = view.depths()
        limit = max(self.depth) if max_depth is None else max_depth
        self.shown = [node for node in range(len(view.children)) if self.depth[node] <= limit]
        self.below = {
            node: [child for child in view.children[node] if self.depth[child] <= limit] for node in self.shown
        }
        self.cards = {node: self._card(node) for node in self.shown}
        self.room = {node: card.width for node, card in self.cards.items()}  # of the card and the label over it
        for node, below in self.below.items():
            for at, child in enumerate(below):
                self.room[child] = max(self.room[child], len(self._branch_words(node, at)) * _LETTER)
        self.centre = tidy_positions(self.below, self.room, _GAP)
        least = min(x - self.room[node] / 2 for node, x in self.centre.items())
        self.centre = {node: x - least + _MARGIN for node, x in self.centre.items()}
        self.top = self._tops()

    def draw(self, title: str) -> Markup:
        right = max(x + self.room[node] / 2 for node, x in self.centre.items()) + _MARGIN
        legend, legend_width = self._legend()
        width = max(right, legend_width)
        shift = (width - right) / 2
        bottom = max(self.top[node] + card.height for node, card in self.cards.items()) + _MARGIN
        found = [self._edge(node, at) for node in self.shown for at in range(len(self.below[node]))]
        edges = [edge for _, edge in sorted(found, key=lambda pair: pair[0])]  # the row's way on top
        cards = [self._draw_card(node) for node in self.shown]
        body = tag("g", *edges, *cards, transform=f"translate({compact(shift)} 0)" if shift else None)
        leaves = sum(not below for below in self.view.children)
        return svg(
            width, bottom, title, legend, body,
            desc=f"A tree of {len(self.view.children)} nodes, {leaves} of them leaves, and {max(self.depth)} levels of "
            f"questions.",
            font_size="12", font_family="system-ui, sans-serif", fill="currentColor",
            style=f"max-width:{compact(width)}px;width:100%;height:auto",
        )  # fmt: skip

    def _card(self, node: int) -> Card:
        view = self.view
        bold = {"font_weight": "600"}
        quiet = {"fill": MUTED, "font_size": "11"}
        above: list[tuple[str, dict[str, Any]]] = []
        below: list[tuple[str, dict[str, Any]]] = []
        rows = f"{view.n_rows[node]:,} row{'s' if view.n_rows[node] != 1 else ''}"
        figure = 0.0
        if view.children[node]:
            above.append((self._question(node), bold))
            if not self.below[node]:
                hidden = self._leaves_under(node)
                below.append((f"… {hidden} leaves below", quiet))
            elif self.figures.has(node):
                figure = NodeFigures.HEIGHT
            if self.passed is not None and node in self.passed and self.values is not None:
                value = self.values[int(view.feature[node])]
                below.append((f"this row: {_number(value, self.precision)}", {"fill": ACCENT, "font_weight": "600"}))
        else:
            above.append((self._answer(node), bold))
        below.insert(0, (rows, quiet))
        widest = max(len(text) * (_BOLD if "font_weight" in style else _LETTER) for text, style in above + below)
        width = max(74.0, widest + 2 * _PAD, 138.0 if figure else 0.0)
        height = 2 * _PAD + _LINE * (len(above) + len(below)) + (figure or _BAR) + 4.0
        return Card(above, below, figure, width, height)

    def _question(self, node: int) -> str:
        view = self.view
        groups = self.view.groups[node]
        name = view.column(node, "x{}")
        if groups is None:
            bound = f" ≤ {_number(float(view.threshold[node]), self.precision)}"
            if math.isinf(view.threshold[node]):
                return clean(f"{name} is there", _MOST_LETTERS)
            return clean(name, _MOST_LETTERS - len(bound)) + bound
        if not view.named[node]:
            words = f" = {groups[0][0]}" if len(groups[0]) == 1 else f" in {', '.join(groups[0])}"
            return clean(clean(name, 16) + words, _MOST_LETTERS)
        return clean(name, _MOST_LETTERS)

    def _answer(self, node: int) -> str:
        view = self.view
        if not view.is_classifier:
            return _number(float(view.value[node, 0, 0]), self.precision)
        k = int(np.argmax(view.value[node, 0]))
        return clean(view.classes[k] if view.classes is not None else k, _MOST_LETTERS)

    def _leaves_under(self, node: int) -> int:
        waiting = [node]
        found = 0
        while waiting:
            below = self.view.children[waiting.pop()]
            found += not below
            waiting += below
        return max(found, 1)

    def _tops(self) -> dict[int, float]:
        deepest = max(self.depth[node] for node in self.shown)
        tall = [0.0] * (deepest + 1)
        for node in self.shown:
            tall[self.depth[node]] = max(tall[self.depth[node]], self.cards[node].height)
        tops = np.cumsum([_MARGIN + _LEGEND] + [height + _LEVEL_GAP for height in tall])
        return {node: float(tops[self.depth[node]]) for node in self.shown}

    def _edge(self, node: int, at: int) -> tuple[bool, Markup]:
        child = self.below[node][at]
        on_path = self.passed is not None and child in self.passed
        share = float(self.view.weight[child] / self.view.weight[0])
        siblings = self.below[node]
        # Branches leave side by side, in the order of their children.
        spread = min(16.0, (self.cards[node].width - 30.0) / max(len(siblings), 1))
        x0 = self.centre[node] + (at - (len(siblings) - 1) / 2) * spread
        y0 = self.top[node] + self.cards[node].height
        x1 = self.centre[child]
        y1 = self.top[child]
        end = y1 - _LABEL  # the label stands between the line and the card
        middle = (y0 + end) / 2
        faint = 0.22 if self.passed is None else 0.12
        line = tag(
            "path",
            d=f"M{compact(x0)} {compact(y0)}C{compact(x0)} {compact(middle)} {compact(x1)} {compact(middle)} "
            f"{compact(x1)} {compact(end)}",
            fill="none",
            stroke=ACCENT if on_path else "currentColor",
            stroke_width=max(1.0, _THICKEST * share) if not on_path else max(2.5, _THICKEST * share),
            stroke_opacity=None if on_path else faint,
        )
        label = tag(
            "text", self._branch_words(node, at), x=x1, y=y1 - 5.0, text_anchor="middle", font_size="11",
            fill=ACCENT if on_path else MUTED, font_weight="600" if on_path else None,
        )  # fmt: skip
        return on_path, tag("g", line, label)

    def _branch_words(self, node: int, at: int) -> str:
        groups = self.view.groups[node]
        if groups is not None and self.view.named[node]:
            return clean(groups[at][0], _MOST_LETTERS)
        return ("yes", "no")[at]

    def _draw_card(self, node: int) -> Markup:
        view = self.view
        card = self.cards[node]
        on_path = self.passed is not None and node in self.passed
        x = self.centre[node] - card.width / 2
        y = self.top[node]
        tint = self._tint(node)
        frame = tag(
            "rect", x=x, y=y, width=card.width, height=card.height, rx="9", fill=tint[0], fill_opacity=tint[1],
            stroke=ACCENT if on_path else tint[0], stroke_opacity=1.0 if on_path else 0.45,
            stroke_width=2.2 if on_path else 1.0,
        )  # fmt: skip
        parts: list[Any] = [frame]
        at = y + _PAD + 11.0
        for text, style in card.above:
            parts.append(tag("text", text, x=self.centre[node], y=at, text_anchor="middle", **style))
            at += _LINE
        inner = card.width - 2 * _PAD
        left = x + _PAD
        if card.figure:
            value = self.values[int(view.feature[node])] if on_path and self.values is not None else None
            parts.append(self.figures.draw(node, left, at - 8.0, inner, value))
            at += card.figure
        else:
            parts.append(self._bar(node, left, at - 8.0, inner))
            at += _BAR
        at += 4.0
        for text, style in card.below:
            parts.append(tag("text", text, x=self.centre[node], y=at, text_anchor="middle", **style))
            at += _LINE
        hover = tag("title", self._hover(node))
        faded = self.passed is not None and not on_path
        return tag("g", hover, *parts, opacity=_FADED + 0.2 if faded else None)

    def _tint(self, node: int) -> tuple[str, float]:
        view = self.view
        if view.children[node]:
            return "currentColor", 0.025
        if view.is_classifier:
            shares = view.value[node, 0]
            return class_colour(int(np.argmax(shares))), 0.08 + 0.16 * float(shares.max())
        values = view.value[:, 0, 0]
        spread = float(values.max() - values.min())
        height = float(values[node] - values.min()) / spread if spread > 0 else 0.0
        return COLOURS[0], 0.05 + 0.35 * height

    def _bar(self, node: int, x: float, y: float, width: float) -> Markup:
        """Draw the shares of the classes side by side, or the mean and the spread of the numbers on one scale."""
        view = self.view
        if view.is_classifier:
            shares = view.value[node, 0]
            ends = np.r_[0.0, np.cumsum(shares / shares.sum())] * width
            pieces = [
                tag("rect", x=x + a, y=y, width=max(b - a, 0.0), height=_BAR, fill=class_colour(k))
                for k, (a, b) in enumerate(zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True))
                if b > a
            ]
            return tag("g", *pieces)
        values = view.value[:, 0, 0]
        low = float(values.min())
        high = float(values.max())
        scale = width / (high - low) if high > low else 0.0
        place = x + (float(values[node]) - low) * scale if scale else x + width / 2
        line = tag("path", d=f"M{compact(x)} {compact(y + _BAR / 2)}h{compact(width)}", stroke=MUTED, opacity=0.5)
        dot = tag("circle", cx=place, cy=y + _BAR / 2, r="4", fill=COLOURS[0])
        if view.criterion not in ("squared_error", "friedman_mse"):
            return tag("g", line, dot)
        deviation = math.sqrt(max(0.0, float(view.impurity[node]))) * scale
        a = max(x, place - deviation)
        b = min(x + width, place + deviation)
        spread = tag(
            "path", d=f"M{compact(a)} {compact(y + _BAR / 2)}H{compact(b)}", stroke=COLOURS[0], stroke_width="4",
            stroke_opacity="0.4",
        )  # fmt: skip
        return tag("g", line, spread, dot)

    def _hover(self, node: int) -> str:
        view = self.view
        words = f"node {node}: {view.n_rows[node]} rows, {view.criterion} {view.impurity[node]:.4g}"
        if view.is_classifier:
            names = view.classes if view.classes is not None else np.arange(view.value.shape[2])
            shares = (f"{clean(n, 24)} {100 * p:.1f} %" for n, p in zip(names, view.value[node, 0], strict=True) if p)
            return f"{words}; {', '.join(list(shares)[:12])}"
        return f"{words}; mean {view.value[node, 0, 0]:.6g}"

    def _legend(self) -> tuple[Markup, float]:
        """Return the colours of the classes, or what the bar means, and the width they take."""
        x = _MARGIN
        parts = []
        names = list(self.view.classes) if self.view.is_classifier and self.view.classes is not None else []
        for k, name in enumerate(names[:12]):
            text = clean(name, 20)
            parts.append(tag("rect", x=x, y=11.0, width=11.0, height=11.0, rx="2", fill=class_colour(k)))
            parts.append(tag("text", text, x=x + 16.0, y=21.0))
            x += 30.0 + len(text) * _LETTER
        if not self.view.is_classifier:
            deviation = self.view.criterion in ("squared_error", "friedman_mse")
            text = "● mean of a node" + (" ± one standard deviation" if deviation else "") + ", on one scale for all"
            if any(card.figure for card in self.cards.values()):
                text += "; dots: rows, with the mean on either side of the question"
            parts.append(tag("text", text, x=x, y=21.0, fill=MUTED))
            x += len(text) * _LETTER
        if len(names) > 12:
            parts.append(tag("text", f"and {len(names) - 12} more", x=x, y=21.0, fill=MUTED))
            x += 80.0
        return tag("g", *parts), x + _MARGIN


def tidy_positions(children: dict[int, list[int]], width: dict[int, float], gap: float) -> dict[int, float]:
    """Return the centre of each node: subtrees as close as `gap`, a parent over the middle of its children.

    Examples
    --------
    >>> tidy_positions({0: [1, 2], 1: [3, 4], 2: [], 3: [], 4: []}, dict.fromkeys(range(5), 9.0), 1.0)
    {0: 0.0, 1: -5.0, 2: 5.0, 3: -10.0, 4: 0.0}
    """
    shift: dict[int, float] = {}  # of each node against its parent
    contour: dict[int, tuple[list[float], list[float]]] = {}  # leftmost and rightmost place on each level
    for node in sorted(children, reverse=True):  # children come after their parents
        places: list[float] = []
        left: list[float] = []
        right: list[float] = []
        for child in children[node]:
            lefts, rights = contour.pop(child)
            place = max((r - a + gap for r, a in zip(right, lefts, strict=False)), default=0.0)
            places.append(place)
            left = left + [a + place for a in lefts[len(left) :]]
            right = [b + place for b in rights] + right[len(rights) :]
        middle = (places[0] + places[-1]) / 2 if places else 0.0
        for child, place in zip(children[node], places, strict=True):
            shift[child] = place - middle
        half = width[node] / 2
        contour[node] = ([-half, *(a - middle for a in left)], [half, *(b - middle for b in right)])
    centre = {min(children): 0.0}
    for node in sorted(children):
        for child in children[node]:
            centre[child] = centre[node] + shift[child]
    return dict(sorted(centre.items()))


def _number(value: Any, digits: int) -> str:
    if isinstance(value, float | int | np.floating | np.integer) and not isinstance(value, bool):
        return (
            f"{float(value):,.{digits}g}".replace("-", "−") if abs(float(value)) < 1e6 else f"{float(value):.{digits}g}"
        )
    return clean(value, 18)


def _values_of(sample: Any) -> list[Any] | None:
    if sample is None:
        return None
    if hasattr(sample, "columns"):
        return list(np.asarray(sample.to_numpy(), dtype=object)[0])
    return list(sample)
