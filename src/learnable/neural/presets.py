"""Presets: settings that suit a kind of data. They replace arguments that were left at their defaults.

`"table"` is for tables of numbers (categories encoded), in the manner of RealMLP and TabM: columns are centred at the
median, scaled by the quartiles, bent to ±3 and encoded by bins at their quantiles (`layers.piecewise`); targets of a
regression are standardised; a wide network with a smooth unit and dropout is trained by Adam with decoupled decay, the
rate rising and falling once, and a few networks are averaged.

References: D. Holzmüller et al., Better by default: strong pre-tuned MLPs and boosted trees on tabular data, 2024; Y.
Gorishniy et al., TabM, 2024.
"""

from __future__ import annotations

import inspect
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

TABLE: dict[str, Any] = {
    "hidden_layer_sizes": (256, 256, 256),
    "activation": "silu",
    "learning_rate": "one_cycle",
    "learning_rate_init": 0.002,
    "batch_size": 256,
    "max_iter": 30,
    "n_iter_no_change": float("inf"),
    "weight_decay": 0.05,
    "alpha": 0.0,
    "dropout": 0.1,
    "ensemble_size": 2,
    "init": "he",
}
#: Steps that a small table gets at least, if they do not take more than so many epochs: thirty epochs of four batches
#: would end before the network has learned anything.
_LEAST_STEPS = 1500
_MOST_EPOCHS = 200
PRESETS: dict[str, dict[str, Any]] = {"table": TABLE}


def effective(model: Any) -> SimpleNamespace:
    """Return a model's settings: its arguments, with those at their defaults replaced by the preset's."""
    given = model.get_params(deep=False)
    given = {"preset": None, "activation": "relu", "dropout": 0.1, "polish": False} | given
    preset = PRESETS.get(given["preset"] or "", {})
    if preset:
        signature = inspect.signature(type(model))
        for name, value in preset.items():
            if name in given and _same(given[name], signature.parameters[name].default):
                given[name] = value
    return SimpleNamespace(**given)


def suit_rows(settings: SimpleNamespace, n: int) -> None:
    """Give a small table smaller batches and more epochs, where the preset decides them. OUT settings."""
    if settings.preset is None:
        return
    if settings.batch_size == TABLE["batch_size"]:
        settings.batch_size = int(np.clip(n // 32, 32, TABLE["batch_size"]))
    if settings.max_iter == TABLE["max_iter"]:
        batches = -(-n // settings.batch_size)
        settings.max_iter = int(np.clip(-(-_LEAST_STEPS // batches), TABLE["max_iter"], _MOST_EPOCHS))


def _same(a: Any, b: Any) -> bool:
    return type(a) is type(b) and bool(np.all(a == b))


def measure_columns(X: Array) -> tuple[Array, Array]:
    """Return centre and scale of every column: the median, and 1/(difference of the quartiles).

    A column whose quartiles agree uses half its range instead; a constant column gets the scale 0.
    """
    low, centre, high = np.quantile(X, [0.25, 0.5, 0.75], axis=0)
    width = high - low
    narrow = width <= 0
    if narrow.any():
        spread = X.max(axis=0) - X.min(axis=0)
        width = np.where(narrow, 0.5 * spread, width)
    with np.errstate(divide="ignore"):
        scale = np.where(width > 0, 1.0 / np.where(width > 0, width, 1.0), 0.0)
    return centre, scale


#: Numbers that one row is encoded into, at most; fewer bins where there are many columns.
_MOST_INPUTS = 1024
_MOST_BINS = 48


def edges_of_bins(X: Array) -> Array:
    """Return edges (d, B + 1) of B bins with about the same number of rows each; equal quantiles make empty bins."""
    d = X.shape[1]
    bins = int(np.clip(_MOST_INPUTS // max(d, 1), 4, _MOST_BINS))
    return np.ascontiguousarray(np.quantile(X, np.linspace(0.0, 1.0, bins + 1), axis=0).T)


def bend(X: Array, centre: Array, scale: Array) -> Array:
    """Return z/√(1 + (z/3)²), z = (x − centre)·scale: like z near 0, never beyond ±3."""
    z = (X - centre) * scale
    return np.asarray(z / np.sqrt(1.0 + (z / 3.0) ** 2))
