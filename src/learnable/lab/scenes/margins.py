"""The margin of a support vector machine while one of its points is moved."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ...core import Array, NDArray, ParameterError
from ...plots.axes import MUTED, Frame
from ...plots.markup import Markup, clean, compact, tag
from ...plots.optimization import COLOURS, contour_lines
from ..drawing import HEIGHT, WIDTH, plane, regions
from ..scene import Scene, Step
from ..tables import labelled_points, standardised

#: Places of a moving point: columns and rows of a lattice over the picture.
_PLACES: Final = (7, 5)
_GRID: Final = 33
_MOST_ROWS: Final = 60
#: Standard deviation beyond which columns are divided by it: C would mean something else on every table.
_WIDEST: Final = 10.0
_KINDS: Final = {
    "non-support": "lies beyond the margin: it is no support vector, and the boundary does not know of it",
    "margin": "lies on the margin and holds the boundary in place",
    "bound": "lies inside the margin or on the wrong side: its dual weight is as large as it may be, C",
}


def read_svm(table: Any = None) -> tuple[Array, NDArray[Any], list[str], list[int]]:
    """Return points, their classes, the names of the columns, and the rows that move: the last one of each class."""
    if table is None:
        rng = np.random.default_rng(7)
        left = rng.normal((-1.3, 0.6), (0.7, 0.8), (14, 2))
        right = rng.normal((1.3, -0.6), (0.7, 0.8), (14, 2))
        X = np.vstack([left, right]).round(2)
        return X, np.repeat(["left", "right"], 14), ["x₁", "x₂"], [27, 13]
    X, labels, names = labelled_points("svm", table, two=True)
    some = np.unique(np.linspace(0, len(X) - 1, min(len(X), _MOST_ROWS)).round().astype(int))
    if len(np.unique(labels[some])) == 2:
        X = X[some]
        labels = labels[some]
    scale = X.std(axis=0)
    if scale.max() > _WIDEST or scale.min() < 1 / _WIDEST:  # kept as they are if they can be: dragged points come back
        X = standardised(X)
        names = [f"{name}, standardised" for name in names]
    return X, labels, names, [int(np.flatnonzero(labels == label)[-1]) for label in np.unique(labels)[::-1]]


def build_svm(
    X: Array, y: NDArray[Any], names: list[str], moved: list[int], *, C: float = 1.0, walk: bool = True
) -> list[Step]:
    """Return a step for each place of each moving point; only the table as it is if they do not walk."""
    from ...kernel import SVC

    frame = plane(X, pad=0.12)
    places = [(moved[0], float(X[moved[0], 0]), float(X[moved[0], 1]))]
    if walk:
        places += [(row, *place) for row in moved for place in _walk(frame)]
    made = []
    for number, (row, a, b) in enumerate(places):
        rows = X.copy()
        rows[row] = (a, b)
        model = SVC(kernel="linear", C=C, tol=1e-6).fit(rows, y)
        report = model.kkt_report(rows, y)
        counts = {kind: int((report.case == kind).sum()) for kind in _KINDS}
        where = f"A point of class {clean(y[row], 24)} at ({a:.2f}, {b:.2f})".replace("-", "−")
        made.append(
            Step(
                title="The points as they stand" if number == 0 else where,
                pictures=(_margin(frame, model, rows, report, row, moved, names), _duals(report, C, row)),
                text=f"The filled ring {_KINDS[str(report.case[row])]}. {counts['margin']} rows hold the margin, "
                f"{counts['bound']} violate it, and {counts['non-support']} could be removed without changing "
                "anything.",
                formula=r"\min_{w, b} \frac{1}{2}‖w‖^2 + C \sum_i (1 − y_i(w·x_i + b))_+",
                code=f'X[{row}] = ({a!r}, {b!r})\nmodel = SVC(kernel="linear", C={C!r},\n    tol=1e-6).fit(X, y)',
                certificates={"model": model.certificate_},
                numbers={
                    "width of the margin": float(report.margin_width),
                    "support vectors": counts["margin"] + counts["bound"],
                    "α of the point": float(report.alpha[row]),
                },
                handle=(row, float(frame.x(a)), float(frame.y(b))),
            )
        )
    return made


def move_point(table: Any, row: int, x: float, y: float) -> dict[str, NDArray[Any]]:
    """Return the table of the scene `svm` with one of its points elsewhere.

    A page that is told where a point was dropped (`lab:drag`) shows `SCENES["svm"].page(moved, live=True, walk=False)`.

    Parameters
    ----------
    table : table, or None
        What the scene shows now; None for the built-in table, or what this function returned before.
    row : int
        Number of the point.
    x, y : float
        Where it is now, in units of the picture.

    Returns
    -------
    dict
        Two columns and the classes, as `Scene.steps` takes them.

    Examples
    --------
    >>> from learnable.lab import SCENES, move_point
    >>> moved = move_point(None, 3, 0.5, 1.0)
    >>> len(SCENES["svm"].steps(moved, walk=False))
    1
    """
    X, labels, names, _ = read_svm(table)
    if not 0 <= row < len(X):
        raise ParameterError(f"move_point: row must be between 0 and {len(X) - 1}; got {row}.")
    if not (np.isfinite(x) and np.isfinite(y)):
        raise ParameterError(f"move_point: x and y must be finite; got {x} and {y}.")
    X[row] = (x, y)
    return {names[0]: X[:, 0], names[1]: X[:, 1], "class": labels}


def _walk(frame: Frame) -> list[tuple[float, float]]:
    """Return places of a lattice, row by row and back again, so that neighbours follow each other."""
    across = np.linspace(frame.x.low, frame.x.high, _PLACES[0] + 2)[1:-1].round(2)
    down = np.linspace(frame.y.low, frame.y.high, _PLACES[1] + 2)[1:-1].round(2)
    found = []
    for number, b in enumerate(down):
        row = across[::-1] if number % 2 == 0 else across
        found += [(float(a), float(b)) for a in row]
    return found


def _margin(frame: Frame, model: Any, X: Array, report: Any, row: int, moved: list[int], names: list[str]) -> Markup:
    x = np.linspace(frame.x.low, frame.x.high, _GRID)
    y = np.linspace(frame.y.low, frame.y.high, _GRID)
    grid = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    score = model.decision_function(grid).reshape(_GRID, _GRID)
    marks = regions(frame, lambda rows: (model.decision_function(rows) < 0).astype(int), fields=40)
    for level in (-1.0, 0.0, 1.0):
        style = (
            {"stroke": "currentColor", "stroke_width": 2.0} if level == 0 else {"stroke": MUTED, "stroke_width": 1.3}
        )
        dashes = {} if level == 0 else {"stroke_dasharray": "5 4"}
        d = "".join(frame.path(line[:, 0], line[:, 1]) for line in contour_lines(x, y, score, level))
        marks.append(tag("path", d=d, fill="none", **style, **dashes))
    on_top = [*moved, row]
    for number in sorted(range(len(X)), key=lambda number: (number in on_top, number == row)):
        marks.append(
            _point(
                frame,
                X[number],
                float(report.y[number]),
                str(report.case[number]),
                number,
                ring=_ring(number, row, moved),
            )
        )
    ends = (
        frame.x.low,
        frame.x.high,
        frame.x.start,
        frame.x.end,
        frame.y.low,
        frame.y.high,
        frame.y.start,
        frame.y.end,
    )
    axes = " ".join(f"{value:.6g}" for value in ends)
    return frame.draw(
        "Margin of a support vector machine",
        tag("g", *marks, data_axes=axes),
        x_label=names[0],
        y_label=names[1],
        desc="Solid: the boundary. Dashed: the margins. Ringed rows hold the margin, diamonds violate it.",
    )


def _ring(number: int, row: int, moved: list[int]) -> float | None:
    """Return how much the ring of a point that can be dragged is filled; None for the others."""
    if number == row:
        return 0.3
    return 0.0 if number in moved else None


def _point(frame: Frame, place: Array, sign: float, case: str, row: int, ring: float | None) -> Markup:
    x = float(frame.x(place[0]))
    y = float(frame.y(place[1]))
    colour = COLOURS[0] if sign > 0 else COLOURS[1]
    parts = []
    if case == "bound":
        parts.append(tag("path", d=f"M{compact(x)} {compact(y - 5.5)}l5.5 5.5l-5.5 5.5l-5.5 -5.5z", fill=colour))
    else:
        parts.append(tag("circle", cx=x, cy=y, r=4.0, fill=colour, opacity=0.9 if case == "margin" else 0.5))
    if case == "margin":
        parts.append(tag("circle", cx=x, cy=y, r=7.0, fill="none", stroke="currentColor", stroke_width=1.3))
    if ring is not None:
        parts.append(tag("circle", cx=x, cy=y, r=11.0, fill=colour, fill_opacity=ring, stroke=colour, stroke_width=2.4))
    drag = {} if ring is None else {"data_drag": ""}
    return tag("g", *parts, data_row=row, **drag)


def _duals(report: Any, C: float, moved: int) -> Markup:
    """Draw the dual weight of every row, from 0 to C."""
    frame = Frame.around((-1.0, float(len(report.alpha))), (0.0, 1.08 * C), width=WIDTH, height=HEIGHT)
    marks = [frame.line([frame.x.low, frame.x.high], [C, C], stroke=MUTED, stroke_dasharray="5 4")]
    for row, value in enumerate(report.alpha):
        colour = COLOURS[0] if report.y[row] > 0 else COLOURS[1]
        marks.append(frame.line([row, row], [0.0, float(value)], stroke=colour, stroke_width=3.0))
        radius = 6.0 if row == moved else 3.0
        marks.append(tag("circle", cx=float(frame.x(row)), cy=float(frame.y(float(value))), r=radius, fill=colour))
    return frame.draw("Dual weight of every row", *marks, x_label="row", y_label="α, at most C")


SVM = Scene(
    name="svm",
    title="The margin, while points are moved",
    text="Drag one of the two ringed points (in `learnable page`, any point), or play their walks. As long as a point "
    "stays beyond the margin the boundary does not move at all; inside, it pulls with a force of at most C.",
    setup="from learnable import SVC\nfrom learnable.lab import SCENES\n\n"
    'X, y, names, moved = SCENES["svm"].read(None)  # or a table of your own',
    takes="two columns of numbers and one of classes; of more than two, the most frequent two are kept; the last row "
    "is the one that moves.",
    read=read_svm,
    build=build_svm,
    cover=0,
)
