"""Rows in the plane, coloured by cluster, with centres and ellipses of equal density."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ..core.errors import DataError
from .axes import Frame, extent, numbers
from .markup import Markup, compact, tag
from .optimization import COLOURS, legend_marks

_MOST: Final = 3000
_LEGEND: Final = 104.0
_MOST_NAMED: Final = 11  # clusters that the legend has room for
_TURN: Final = np.linspace(0, 2 * np.pi, 73)


def cluster_scatter(
    x: Any,
    y: Any,
    labels: Any,
    *,
    centres: Any = None,
    covariances: Any = None,
    names: Sequence[str] | None = None,
    title: str = "Clusters",
    x_label: str = "x",
    y_label: str = "y",
) -> Markup:
    """Draw points coloured by cluster, at most 3,000 of them (evenly thinned beyond).

    Parameters
    ----------
    x, y : arrays of shape (n,)
        Coordinates; pairs that are not finite are left out.
    labels : array of shape (n,)
        Cluster of each point, from 0 on.
    centres : array of shape (K, 2), optional
        Drawn as crosses.
    covariances : array of shape (K, 2, 2), optional
        Drawn as ellipses about the centres, at one and two standard deviations.
    names : sequence of str, optional
        What the legend calls the clusters; their numbers by default.
    title, x_label, y_label : str
        Words; the title is read by screen readers and shown on hover.

    Returns
    -------
    Markup
        An `<svg>` element, also a str.

    Examples
    --------
    >>> from learnable.plots import cluster_scatter
    >>> figure = cluster_scatter([0, 1, 5], [0, 1, 5], [0, 0, 1], centres=[[0.5, 0.5], [5, 5]])
    >>> figure.startswith("<svg"), figure.count("stroke-linecap")
    (True, 4)
    """
    xs, ys, of = numbers("cluster_scatter", x=x, y=y, labels=labels)
    known = np.isfinite(xs) & np.isfinite(ys) & (of >= 0)
    xs, ys, of = xs[known], ys[known], of[known]
    if len(xs) > _MOST:
        kept = np.linspace(0, len(xs) - 1, _MOST).round().astype(int)
        xs, ys, of = xs[kept], ys[kept], of[kept]
    middle = np.empty((0, 2)) if centres is None else np.asarray(centres, dtype=np.float64)
    if middle.ndim != 2 or middle.shape[1] != 2:
        raise DataError(f"cluster_scatter: centres must be points of the plane, (K, 2); got {middle.shape}.")
    K = max(int(of.max(initial=-1)) + 1, len(middle))
    frame = Frame.around(
        extent(xs, middle[:, 0]), extent(ys, middle[:, 1]), width=380.0 + _LEGEND, height=300.0, right=_LEGEND
    )
    colours = [COLOURS[k % len(COLOURS)] for k in range(K)]
    size, opacity = (5.0, 0.8) if len(xs) <= 60 else (4.0, 0.55) if len(xs) <= 400 else (3.0, 0.4)
    marks = []
    for k in range(K):
        own = of == k
        places = zip(frame.x(xs[own]).round(1), frame.y(ys[own]).round(1), strict=True)
        d = "".join(f"M{compact(a)} {compact(b)}h0" for a, b in places)
        marks.append(_stroke(d, colours[k], size, opacity))
    for k, centre in enumerate(middle):
        if covariances is not None:
            for level in (1.0, 2.0):
                ring = centre + level * _ellipse(np.asarray(covariances, dtype=np.float64)[k])
                marks.append(frame.line(ring[:, 0], ring[:, 1], stroke=colours[k], stroke_width=1.6))
        a, b = (compact(float(at)) for at in (frame.x(centre[0]), frame.y(centre[1])))
        marks.append(_stroke(f"M{a} {b}m-5 -5l10 10m-10 0l10 -10", "currentColor", 1.8, 1.0))
    words = [str(k) for k in range(K)] if names is None else [str(name) for name in names]
    marks += legend_marks(frame, words[:_MOST_NAMED], colours[:_MOST_NAMED])
    return frame.draw(title, *marks, x_label=x_label, y_label=y_label)


def _stroke(d: str, colour: str, width: float, opacity: float) -> Markup:
    return tag("path", d=d, stroke=colour, stroke_width=width, stroke_linecap="round", fill="none", opacity=opacity)


def _ellipse(covariance: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return points z with zᵀΣ⁻¹z = 1."""
    values, vectors = np.linalg.eigh(covariance)
    radii = np.sqrt(np.maximum(values, 0.0))
    return np.asarray(np.column_stack([np.cos(_TURN), np.sin(_TURN)]) * radii @ vectors.T)
