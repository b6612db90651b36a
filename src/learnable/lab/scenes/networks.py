"""Back-propagation: a small network, its weights, and the gradient that flows back through it."""

from __future__ import annotations

import copy
from functools import partial
from typing import Any, Final

import numpy as np

from ...core import Array, NDArray
from ...plots.axes import MUTED
from ...plots.markup import Markup, isolated, svg, tag
from ...plots.optimization import COLOURS, legend_marks
from ..drawing import HEIGHT, WIDTH, classes, plane, progress, quietly, regions
from ..scene import Scene, Step
from ..tables import labelled_points, standardised

#: Iterations that are shown: each at first, then longer stretches.
_SHOWN: Final = (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 30, 50, 100, 200, 400)
_UNITS: Final = 5


def read_backprop(table: Any = None) -> tuple[Array, NDArray[Any], list[str]]:
    """Return points, their two classes, and the names of the columns; columns are standardised."""
    if table is None:
        rng = np.random.default_rng(1)
        X = rng.normal(size=(90, 2))
        y = np.where(np.linalg.norm(X, axis=1) < 1.1, "inside", "outside")
        return X, y, ["x₁", "x₂"]
    X, labels, names = labelled_points("backprop", table, two=True)
    return standardised(X), labels, names


def build_backprop(X: Array, y: NDArray[Any], names: list[str], *, n_units: int = _UNITS) -> list[Step]:
    """Return a step for each of some numbers of iterations."""
    from ...neural import MLPClassifier

    n_units = min(max(n_units, 1), 8)
    models: dict[int, Any] = {}
    for steps in _SHOWN:
        with quietly():
            models[steps] = MLPClassifier(
                (n_units,), activation="tanh", solver="lbfgs", alpha=0.01, max_iter=steps, random_state=0
            ).fit(X, y)
        if models[steps].certificate_.holds or models[steps].n_iter_ < steps:
            break
    counts = np.array(list(models))
    loss = [float(model.loss_) for model in models.values()]
    size = [float(np.abs(model.gradient_).max()) for model in models.values()]
    made = []
    for number, (steps, model) in enumerate(models.items()):
        slope = copy.copy(model)
        slope.theta_ = model.gradient_  # seen through the same layers as the weights
        frame = plane(X, legend=True)
        marks = regions(frame, partial(_second_class, model))
        marks += classes(frame, X, (y == model.classes_[1]).astype(int), size=5.0)
        marks += legend_marks(frame, [str(label) for label in model.classes_], list(COLOURS[:2]))
        wrong = int((model.predict(X) != y).sum())
        title = "1 iteration" if steps == 1 else f"{steps} iterations"
        made.append(
            Step(
                title=title,
                pictures=(
                    _network(model.coefs_, slope.coefs_, names, str(model.classes_[1])),
                    frame.draw("What the network says", *marks, x_label=names[0], y_label=names[1]),
                    progress(
                        {"loss": (counts, loss), "gradient": (counts, size)},
                        float(steps),
                        x_log=True,
                        y_log=True,
                        title="Loss and largest entry of the gradient",
                        x_label="iterations",
                        y_label="loss, gradient",
                    ),
                ),
                text="First: a line is a weight, as wide as it is large (blue positive, orange negative); the red "
                "dots on it are as large as the gradient that has flowed back to it, by which the next step will "
                "change it. "
                f"{wrong} of {len(y)} rows are on the wrong side.",
                formula=r"δ^{(l)} = (W^{(l+1)} δ^{(l+1)}) ⊙ σ′(z^{(l)})"
                "\n"
                r"\frac{∂L}{∂W^{(l)}} = a^{(l−1)} δ^{(l)}",
                code=f'model = MLPClassifier(\n    ({n_units},), activation="tanh",\n    solver="lbfgs", alpha=0.01,\n'
                f"    max_iter={steps}, random_state=0\n).fit(X, y)",
                certificates={"model": model.certificate_},
                numbers={"loss": loss[number], "largest gradient": size[number]},
            )
        )
    return made


def _second_class(model: Any, rows: Array) -> Any:
    return (model.predict(rows) == model.classes_[1]).astype(int)


def _network(weights: list[Array], gradients: list[Array], names: list[str], output: str) -> Markup:
    """Draw inputs, units and output, a line for each weight and a dot on it for its gradient."""
    columns = [70.0, WIDTH / 2, WIDTH - 70.0]
    sizes = [weights[0].shape[0], weights[0].shape[1], weights[1].shape[1]]
    places = [[(x, HEIGHT * (k + 1) / (n + 1)) for k in range(n)] for x, n in zip(columns, sizes, strict=True)]
    largest = max(float(np.abs(W).max()) for W in weights) or 1.0
    steepest = max(float(np.abs(G).max()) for G in gradients) or 1.0
    lines = []
    beads = []
    for layer, (W, G) in enumerate(zip(weights, gradients, strict=True)):
        for i, start in enumerate(places[layer]):
            for j, end in enumerate(places[layer + 1]):
                colour = COLOURS[0] if W[i, j] > 0 else COLOURS[1]
                width = 0.4 + 7.0 * abs(float(W[i, j])) / largest
                ends = {"x1": start[0], "y1": start[1], "x2": end[0], "y2": end[1]}
                lines.append(tag("line", stroke=colour, stroke_width=width, opacity=0.55, **ends))
                share = 0.36 if (i + j) % 2 else 0.5  # not all beads in one column
                at = {"cx": start[0] + share * (end[0] - start[0]), "cy": start[1] + share * (end[1] - start[1])}
                radius = 6.0 * float(np.sqrt(abs(float(G[i, j])) / steepest))
                beads.append(tag("circle", r=radius, fill="var(--ln-gradient, #c62828)", opacity=0.9, **at))
    units = []
    for column in places:
        for x, y in column:
            style = {"fill": "var(--ln-page, #fff)", "stroke": "currentColor", "stroke_width": 1.6}
            units.append(tag("circle", cx=x, cy=y, r=11.0, **style))
    for (x, y), name in zip(places[0], names, strict=True):
        units.append(tag("text", isolated(name, 9), x=x - 18.0, y=y + 4.0, text_anchor="end", fill="currentColor"))
    x, y = places[2][0]
    units.append(tag("text", isolated(output, 9), x=x + 17.0, y=y + 4.0, fill="currentColor"))
    heads = [
        tag("text", word, x=x, y=12.0, text_anchor="middle", fill=MUTED)
        for x, word in zip(columns, ("columns", "tanh units", "output"), strict=True)
    ]
    title = "The network: weights and the gradient that flows back"
    return svg(WIDTH, HEIGHT, title, *heads, *lines, *beads, *units, font_size="11", font_family="inherit")


BACKPROP = Scene(
    name="backprop",
    title="Back-propagation in a small network",
    text="The error of the output flows back through the weights of a few units; every weight learns how much it "
    "is to blame, and the certificate says how much blame is left.",
    built_in="The inside of a ring is to be told from its outside.",
    setup="from learnable import MLPClassifier\nfrom learnable.lab import SCENES\n\n"
    'X, y, names = SCENES["backprop"].read(None)  # or a table of your own',
    takes="two columns of numbers and one of classes; of more than two, the most frequent two are kept.",
    read=read_backprop,
    build=build_backprop,
    cover=9,
)
