"""Clusters of points: k-means moves centres, EM moves whole densities."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core import Array
from ...plots.optimization import COLOURS
from ..drawing import cross, ellipse, plane, progress, quietly, regions, shares
from ..scene import Scene, Step
from ..tables import old_faithful, points, standardised

_MOST_STEPS = 60


def _read(owner: str, table: Any, start: Array) -> tuple[Array, list[str], Array]:
    """Return the points, standardised, the names of their columns, and where the centres start."""
    if table is None:
        return (
            standardised(old_faithful()),
            ["eruption lasts (standardised)", "wait until the next (standardised)"],
            start,
        )
    X, names = points(owner, table)
    return standardised(X), names, start


# --------------------------------------------------------------------------------------------------------------------
# k-means.


def read_kmeans(table: Any = None) -> tuple[Array, list[str], Array]:
    """Return points, the names of their columns, and three centres that start close together."""
    return _read("kmeans", table, np.array([[-1.6, 1.9], [-1.1, 1.9], [-0.6, 1.9]]))


def build_kmeans(X: Array, names: list[str], start: Array, *, max_steps: int = 30) -> list[Step]:
    """Return one step for each assignment of the rows, until none changes."""
    from ...mixtures import KMeans

    models = []
    for steps in range(1, min(max_steps, _MOST_STEPS) + 1):
        with quietly():
            models.append(KMeans(3, init=start, n_init=1, max_iter=steps, tol=0.0).fit(X))
        if models[-1].certificate_.holds:
            break
    counts = np.arange(1, len(models) + 1)
    inertia = [float(model.inertia_) for model in models]
    made = []
    for steps, model in enumerate(models, start=1):
        frame = plane(np.vstack([X, start]))
        marks = regions(frame, model.predict)
        marks += shares(frame, X, np.eye(3)[model.labels_])
        marks += [cross(frame, centre) for centre in model.cluster_centers_]
        sizes = np.bincount(model.labels_, minlength=3)
        title = f"k-means after {steps} steps"
        main = frame.draw(title, *marks, x_label=names[0], y_label=names[1])
        chart = progress(
            {"inertia": (counts, inertia)}, steps, title="Inertia by step", x_label="steps", y_label="inertia"
        )
        made.append(
            Step(
                title=f"Assign, then move the centres: step {steps}",
                pictures=(main, chart),
                text="Each row joins its nearest centre (the shaded region); each centre moves to the mean of its "
                "rows. "
                f"The clusters hold {sizes[0]}, {sizes[1]} and {sizes[2]} rows.",
                formula=r"c_i = \argmin_k ‖x_i − μ_k‖^2, \; μ_k = \frac{1}{n_k} \sum_{c_i = k} x_i",
                code=f"model = KMeans(3, init=start, n_init=1,\n    max_iter={steps}, tol=0.0).fit(X)",
                certificates={"model": model.certificate_},
                numbers={"inertia": inertia[steps - 1]},
            )
        )
    return made


KMEANS = Scene(
    name="kmeans",
    title="k-means: assign, move, assign again",
    text="Three centres start side by side in a corner. Neither half of a step can raise the inertia, so the "
    "centres must come to rest; where they do depends on the start.",
    built_in="Eruptions of the geyser Old Faithful: how long each lasted, and the wait until the next.",
    setup="from learnable import KMeans\nfrom learnable.lab import SCENES\n\n"
    'X, names, start = SCENES["kmeans"].read(None)  # or a table of your own',
    takes="two columns of numbers.",
    read=read_kmeans,
    build=build_kmeans,
    cover=2,
)


# --------------------------------------------------------------------------------------------------------------------
# EM for a mixture of normals.


def read_em(table: Any = None) -> tuple[Array, list[str], dict[str, Any]]:
    """Return points, the names of their columns, and a start with both means far from where they belong."""
    X, names, means = _read("em", table, np.array([[-1.5, 1.0], [1.5, -1.0]]))
    start = {"means_init": means, "weights_init": [0.5, 0.5], "precisions_init": np.stack([np.eye(2)] * 2)}
    return X, names, start


def build_em(X: Array, names: list[str], start: dict[str, Any], *, max_steps: int = 30) -> list[Step]:
    """Return one step for each E- and M-step, until one more would change next to nothing."""
    from ...mixtures import GaussianMixture

    models = []
    for steps in range(1, min(max_steps, _MOST_STEPS) + 1):
        with quietly():
            models.append(GaussianMixture(2, tol=1e-6, max_iter=steps, **start).fit(X))
        if models[-1].certificate_.holds:
            break
    counts = np.arange(1, len(models) + 1)
    likelihood = [len(X) * float(model.lower_bound_) for model in models]
    made = []
    for steps, model in enumerate(models, start=1):
        frame = plane(X)
        marks = shares(frame, X, model.predict_proba(X))
        for k in range(2):
            marks.append(ellipse(frame, model.means_[k], model.covariances_[k], COLOURS[k]))
            marks.append(cross(frame, model.means_[k]))
        title = f"EM after {steps} steps"
        main = frame.draw(title, *marks, x_label=names[0], y_label=names[1])
        chart = progress(
            {"log-likelihood": (counts, likelihood)},
            steps,
            title="Log-likelihood by step",
            x_label="steps",
            y_label="log p(x | θ)",
        )
        made.append(
            Step(
                title=f"E, then M: step {steps}",
                pictures=(main, chart),
                text="Each row belongs to both components, by its responsibility (the mixed colours). Each component "
                "takes the weighted mean and covariance of the rows. Ellipses stand at one and two standard "
                "deviations.",
                formula=r"r_{ik} = \frac{π_k N(x_i | μ_k, Σ_k)}{\sum_j π_j N(x_i | μ_j, Σ_j)}, \; "
                r"μ_k = \frac{\sum_i r_{ik} x_i}{\sum_i r_{ik}}",
                code=f"model = GaussianMixture(2, tol=1e-6,\n    max_iter={steps}, **start).fit(X)",
                certificates={"model": model.certificate_},
                numbers={"log-likelihood": likelihood[steps - 1], "weight of the first": float(model.weights_[0])},
            )
        )
    return made


EM = Scene(
    name="em",
    title="EM for a mixture of two normals",
    text="A mixture of two normal densities starts in the wrong corners. Each step makes a lower bound of the "
    "log-likelihood tight and then climbs it: the log-likelihood never falls.",
    built_in="Eruptions of the geyser Old Faithful: how long each lasted, and the wait until the next.",
    setup="from learnable import GaussianMixture\nfrom learnable.lab import SCENES\n\n"
    'X, names, start = SCENES["em"].read(None)  # or a table of your own',
    takes="two columns of numbers.",
    read=read_em,
    build=build_em,
    cover=8,
)
