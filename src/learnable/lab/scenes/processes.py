"""A Gaussian process, from its prior to its posterior, as observations are added."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ...core import Array
from ...plots import function_bands
from ..drawing import progress, quietly
from ..scene import Scene, Step
from ..tables import points, standardised

_GRID: Final = 121
_NOISE: Final = 0.15
_MOST_POINTS: Final = 20


def read_gp(table: Any = None) -> tuple[Array, Array, Array, Any, list[str]]:
    """Return x as a column, y, a grid of x, the kernel, and the names of both columns, which are standardised."""
    from ...risk.kernels import Gaussian, White

    kernel = 1.0 * Gaussian(0.6) + White(_NOISE**2)
    if table is None:
        rng = np.random.default_rng(4)
        x = np.array([-1.0, 1.2, 0.1, -1.7, 0.7, 1.8, -0.4, -1.3, 1.5, 0.4, -0.7, -2.0, 0.2, 1.1])
        y = np.sin(2.2 * x) + 0.4 * x + _NOISE * rng.standard_normal(len(x))
        return x[:, None], y, _grid(x), kernel, ["x", "y"]
    rows, names = points("gp", table)
    rows = standardised(rows[:, :2])
    order = np.random.default_rng(0).permutation(len(rows))[:_MOST_POINTS]
    return rows[order, :1], rows[order, 1], _grid(rows[order, 0]), kernel, names


def _grid(x: Array) -> Array:
    room = 0.25 * float(np.ptp(x)) + 0.1
    return np.linspace(float(x.min()) - room, float(x.max()) + room, _GRID)[:, None]


def build_gp(x: Array, y: Array, grid: Array, kernel: Any, names: list[str], *, n_points: int = 14) -> list[Step]:
    """Return the prior, a step for every observation, and one that lets the data choose the kernel's parameters."""
    from ...kernel import GaussianProcessRegressor

    n_points = min(max(n_points, 2), len(y))
    reach = max(3.0, 1.3 * float(np.abs(y).max()))
    fixed = GaussianProcessRegressor(kernel, optimizer=None)
    sd = np.sqrt(max(float(kernel(grid[:1])[0, 0]) - _NOISE**2, 0.0))
    spreads = [np.full(_GRID, sd)]
    shown: list[tuple[str, Array, Array, int, str, str, Any]] = [
        (
            "The prior: nothing has been seen",
            np.zeros(_GRID),
            fixed.sample_prior(grid, 5, random_state=1).T,
            0,
            "Before any observation every function of this smoothness is possible. Five of them are drawn; 95 % lie "
            "in the band at each x.",
            "prior = GaussianProcessRegressor(kernel)\ndraws = prior.sample_prior(grid, 5, random_state=1)",
            None,
        )
    ]
    for n in range(1, n_points + 1):
        model = GaussianProcessRegressor(kernel, optimizer=None).fit(x[:n], y[:n])
        spreads.append(_spread(model, grid))
        code = f"model = GaussianProcessRegressor(\n    kernel, optimizer=None\n).fit(x[:{n}], y[:{n}])"
        text = (
            "The functions that miss the observations are gone; what is left are those that pass near them. Far from "
            "all of them the band is as wide as before."
        )
        title = "1 observation" if n == 1 else f"{n} observations"
        shown.append((title, *_curves(model, grid), n, text, code, model))
    with quietly():
        chosen = GaussianProcessRegressor(kernel).fit(x[:n_points], y[:n_points])
    spreads.append(_spread(chosen, grid))
    text = f"Size, length and noise of the kernel are those of greatest marginal likelihood: {chosen.kernel_.formula}."
    code = f"model = GaussianProcessRegressor(\n    kernel).fit(x[:{n_points}], y[:{n_points}])"
    shown.append(("The data choose the kernel", *_curves(chosen, grid), n_points, text, code, chosen))
    width = [float(np.mean(spread)) for spread in spreads]
    made = []
    for number, (title, mean, draws, n, text, code, model) in enumerate(shown):
        band = {"95 % of the function": (mean - 1.96 * spreads[number], mean + 1.96 * spreads[number])}
        main = function_bands(
            grid[:, 0], mean, band, points=(x[:n, 0], y[:n]), draws=draws, y_range=(-reach, reach), title=title,
            x_label=names[0], y_label=names[1],
        )  # fmt: skip
        chart = progress(
            {"sd": (np.arange(len(width)), width)}, number, title="Mean standard deviation", x_label="step",
            y_label="mean standard deviation of the function", y_range=(0.0, 1.1 * max(width)),
        )  # fmt: skip
        certificates: dict[str, Any] = {} if model is None else {"model": model.certificate_}
        numbers = {"observations": n, "mean sd": width[number]}
        if model is not None:
            numbers["log p(y)"] = float(model.log_marginal_likelihood_value_)
        made.append(
            Step(
                title=title,
                pictures=(main, chart),
                text=text,
                formula=r"m(x) = k(x, X)(K + σ^2 I)^{−1} y"
                "\n"
                r"v(x) = k(x, x) − k(x, X)(K + σ^2 I)^{−1} k(X, x)",
                code=code,
                certificates=certificates,
                numbers=numbers,
                note="" if certificates else "There is no fit to prove anything about yet.",
            )
        )
    return made


def _spread(model: Any, grid: Array) -> Array:
    return np.asarray(model.predict_function(grid).std, dtype=np.float64).reshape(-1)


def _curves(model: Any, grid: Array) -> tuple[Array, Array]:
    mean = np.asarray(model.predict(grid), dtype=np.float64)
    return mean, model.sample_y(grid, 5, random_state=1, latent=True).T


GP = Scene(
    name="gp",
    title="A Gaussian process learns from one point after the other",
    text="A Gaussian process is a distribution over functions. Each observation takes away the functions that do "
    "not pass near it; the posterior is a closed form, and so is its certificate.",
    setup="from learnable import GaussianProcessRegressor\nfrom learnable.lab import SCENES\n\n"
    'x, y, grid, kernel, names = SCENES["gp"].read(None)  # or a table of your own',
    takes="two columns of numbers, x and y; twenty rows are drawn from it.",
    read=read_gp,
    build=build_gp,
    cover=5,
)
