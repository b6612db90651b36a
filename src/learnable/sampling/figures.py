"""Pictures of chains as SVG: traces, ranks, autocorrelations, pairs with divergences, energies, posteriors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import DataError, ParameterError
from ..plots.axes import ACCENT, Frame, extent
from ..plots.distributions import histogram
from ..plots.lines import labelled_lines
from ..plots.markup import Markup, compact, side_by_side, tag
from . import diagnostics

if TYPE_CHECKING:
    from .chains import Chains

Array = NDArray[np.float64]

KINDS = ("trace", "rank", "autocorrelation", "pair", "energy", "posterior")
_WARN = "var(--ln-warn, #b3541e)"
#: Points of a line or a cloud; more would not be seen.
_MOST_POINTS = 1500
_RANK_BINS = 20


def draw_chains(chains: Chains, kind: str, name: str | None, other: str | None) -> Markup:
    """Return the figure of a kind; `name` and `other` are labels of numbers."""
    if kind not in KINDS:
        raise ParameterError(f"Chains.plot: kind must be one of {', '.join(KINDS)}; got {kind!r}.")
    if kind == "energy":
        return _energy(chains)
    place = _place(chains, name, 0)
    if kind == "pair":
        return _pair(chains, place, _place(chains, other, min(1, len(chains.labels) - 1)))
    x = chains.draws[:, :, place]
    label = chains.labels[place]
    if kind == "trace":
        return _trace(chains, place, label)
    if kind == "rank":
        return _ranks(x, label)
    if kind == "autocorrelation":
        return _autocorrelation(x, label)
    return _posterior(x, label)


def _place(chains: Chains, label: str | None, default: int) -> int:
    if label is None:
        return default
    if label not in chains.labels:
        known = ", ".join(chains.labels[:10])
        raise DataError(
            f"Chains.plot: there is no number {label!r}; there are {known}{' …' * (len(chains.labels) > 10)}."
        )
    return chains.labels.index(label)


def _trace(chains: Chains, place: int, label: str) -> Markup:
    """Draw the path of each chain; the warm-up, if it was kept, lies left of zero."""
    series = {}
    w = chains.warmup.shape[1]
    for c in range(chains.n_chains):
        path = np.concatenate([chains.warmup[c, :, place], chains.draws[c, :, place]])
        times = np.arange(len(path)) - w
        kept = _thinned(len(path))
        series[f"chain {c}"] = (times[kept], path[kept])
    return labelled_lines(series, title=f"Trace of {label}", x_label="draw", y_label=label)


def _ranks(x: Array, label: str) -> Markup:
    """Draw the histogram of each chain's ranks among all draws: flat where the chains agree."""
    m, n = x.shape
    order = np.argsort(x, axis=None, kind="stable")
    ranks = np.empty(m * n)
    ranks[order] = np.arange(m * n)
    ranks = ranks.reshape(m, n)
    edges = np.linspace(0, m * n, _RANK_BINS + 1)
    figures = []
    for c in range(m):
        counts = np.histogram(ranks[c], bins=edges)[0]
        figures.append(histogram(edges, counts, title=f"chain {c}", x_label=f"rank of {label}", y_label="draws"))
    return side_by_side(*figures, title=f"Ranks of {label} by chain")


def _autocorrelation(x: Array, label: str) -> Markup:
    lags = min(60, x.shape[1] - 1)
    found = diagnostics.autocorrelation(x, lags)
    series = {f"chain {c}": (np.arange(lags + 1), rho) for c, rho in enumerate(found)}
    return labelled_lines(series, title=f"Autocorrelation of {label}", x_label="lag", y_label="correlation")


def _pair(chains: Chains, a: int, b: int) -> Markup:
    """Draw one number against another, draws that diverged on top."""
    x = chains.draws[:, :, a].ravel()
    y = chains.draws[:, :, b].ravel()
    bad = chains.stats["diverging"].ravel() > 0 if "diverging" in chains.stats else np.zeros(len(x), dtype=bool)
    frame = Frame.around(extent(x), extent(y), width=420.0, height=320.0)
    kept = np.flatnonzero(~bad)[_thinned(int((~bad).sum()))]
    marks = [_cloud(frame, x[kept], y[kept], ACCENT, 1.6, 0.45)]
    if bad.any():
        marks.append(_cloud(frame, x[bad][:_MOST_POINTS], y[bad][:_MOST_POINTS], _WARN, 2.4, 0.95))
    labels = chains.labels
    said = f"; {int(bad.sum())} diverged" if bad.any() else ""
    return frame.draw(f"{labels[b]} against {labels[a]}{said}", *marks, x_label=labels[a], y_label=labels[b])


def _energy(chains: Chains) -> Markup:
    """Draw the spread of the energy and of its changes: alike where momentum draws bridge it."""
    if "energy" not in chains.stats:
        raise DataError(f"Chains.plot: {chains.sampler} has no energy; hmc and nuts have.")
    E = chains.stats["energy"]
    centred = (E - E.mean()).ravel()
    change = np.diff(E, axis=1).ravel()
    low, high = extent(centred, change)
    edges = np.linspace(low, high, 41)
    middles = (edges[1:] + edges[:-1]) / 2
    series = {
        "energy": (middles, np.histogram(centred, edges, density=True)[0]),
        "its changes": (middles, np.histogram(change, edges, density=True)[0]),
    }
    return labelled_lines(series, title="Energy", x_label="energy − mean", y_label="density")


def _posterior(x: Array, label: str) -> Markup:
    values = x.ravel()
    low, high = np.quantile(values, [0.05, 0.95])
    counts, edges = np.histogram(values, bins=40)
    title = f"{label}: mean {values.mean():.4g}, 90 % between {low:.4g} and {high:.4g}"
    return histogram(edges, counts, title=title, x_label=label, y_label="draws")


def _cloud(frame: Frame, x: Array, y: Array, colour: str, size: float, opacity: float) -> Markup:
    """Return points as one path of round dots."""
    d = "".join(f"M{compact(float(a))} {compact(float(b))}h0" for a, b in zip(frame.x(x), frame.y(y), strict=True))
    return tag("path", d=d, fill="none", stroke=colour, stroke_width=2 * size, stroke_linecap="round", opacity=opacity)


def _thinned(n: int) -> Any:
    return np.unique(np.linspace(0, n - 1, min(n, _MOST_POINTS)).astype(np.int64)) if n else np.zeros(0, dtype=np.int64)
