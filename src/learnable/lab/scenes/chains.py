"""Markov chains that sample: Metropolis suggests and decides, NUTS follows the slope until it turns back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np

from ...core import Array
from ...plots.axes import ACCENT, MUTED, Frame
from ...plots.markup import Markup, tag
from ...plots.optimization import COLOURS, contour_lines, pieces_within
from ..drawing import HEIGHT, WIDTH, dots, progress
from ..scene import Scene, Step
from ..tables import as_floats, columns_of, take_numbers, thin

_GRID: Final = 61
_LEVELS: Final = (0.02, 0.1, 0.3, 0.6, 0.9)
#: The first draws are shown one by one, then longer and longer stretches.
_FIRST: Final = 12
_MOST_DOTS: Final = 1500


class Visit(NamedTuple):
    """One step of a chain."""

    before: Array  #: (2,), where it stood
    draw: Array  #: (2,), where it stands now
    asked: Array  #: (k, 2), where the density was asked on the way
    value_before: float
    value_there: float  #: log density at the last place that was asked

    @property
    def moved(self) -> bool:
        """Whether the chain stands elsewhere now."""
        return not np.array_equal(self.before, self.draw)


class Density:
    """A log density of two variables that remembers where it was asked."""

    def __init__(self, function: Callable[[Array], tuple[float, Array]]) -> None:
        self.function = function
        self.asked: list[Array] = []

    def __call__(self, x: Array) -> tuple[float, Array]:
        """Return the log density at x and its gradient."""
        self.asked.append(np.array(x, dtype=np.float64))
        return self.function(x)

    def value(self, x: Array) -> float:
        """Return the log density alone."""
        return self(x)[0]


def banana(x: Array) -> tuple[float, Array]:
    """Return the log density of a bent ridge, x₁ normal and x₂ normal around x₁², and its gradient."""
    miss = x[1] - x[0] ** 2
    return float(-0.5 * (x[0] ** 2 + miss**2)), np.array([-x[0] + 2 * miss * x[0], -miss])


def posterior_of(values: Array) -> Callable[[Array], tuple[float, Array]]:
    """Return the log posterior of mean and log standard deviation of a normal column, and its gradient."""
    n = len(values)

    def log_posterior(x: Array) -> tuple[float, Array]:
        precision = float(np.exp(-2 * min(max(x[1], -30.0), 30.0)))
        r = values - x[0]
        square = float(r @ r)
        return -n * float(x[1]) - 0.5 * square * precision, np.array([r.sum() * precision, square * precision - n])

    return log_posterior


def _read(owner: str, table: Any, start: list[float]) -> tuple[Density, Array, Array, list[str]]:
    """Return the density, the start, the corners of the picture, and the names of the variables."""
    if table is None:
        return Density(banana), np.array(start), np.array([[-3.0, -2.5], [3.0, 8.0]]), ["x₁", "x₂"]
    columns = columns_of(owner, table)
    (name,) = take_numbers(owner, columns, 1)
    values = thin(as_floats(columns[name])[:, None])[:, 0]
    scale = float(values.std())
    standard = (values - values.mean()) / scale
    wide = 4.5 / np.sqrt(len(values))
    corners = np.array([[-wide, -0.8 * wide], [wide, wide]])
    return Density(posterior_of(standard)), 0.9 * corners[0], corners, [f"mean of {name}, standardised", "log sd"]


def read_metropolis(table: Any = None) -> tuple[Density, Array, Array, list[str], float]:
    """Return the density, start, corners and names, and the length of the random steps."""
    density, start, corners, names = _read("metropolis", table, [-2.0, 6.0])
    return density, start, corners, names, 0.12 * float(np.ptp(corners[:, 0]))


def read_nuts(table: Any = None) -> tuple[Density, Array, Array, list[str], float]:
    """Return the density, start, corners and names, and the step size of the leapfrog integrator."""
    density, start, corners, names = _read("nuts", table, [0.0, 0.0])
    return density, start, corners, names, 0.035 * float(np.ptp(corners[:, 0]))


# --------------------------------------------------------------------------------------------------------------------
# What both scenes share: the run of one chain, and its pictures.


def _run(
    sampler: Any,
    density: Density,
    start: Array,
    corners: Array,
    names: list[str],
    n_draws: int,
    words: Callable[[Visit], str],
    formula: str,
) -> list[Step]:
    """Take `n_draws` steps of one chain; show the first ones each, later ones in stretches."""
    from ...sampling import Chains

    n_draws = min(max(n_draws, 2 * _FIRST), 50_000)
    rng = np.random.default_rng(3)
    state = sampler.init(start, rng)
    draws = np.empty((n_draws, 2))
    visits = []
    here = start
    for number in range(n_draws):
        density.asked.clear()
        state, _ = sampler.step(state, rng)
        draws[number] = sampler.draw(state)
        if number < _FIRST:
            asked = np.array(density.asked)
            ends = density.function(here)[0], density.function(asked[-1])[0]
            visits.append(Visit(here, draws[number].copy(), asked, *ends))
            here = visits[-1].draw
    stretches = [n for n in (30, 100, 300, 1000, 3000, 10_000, 30_000) if n < n_draws]
    counts = [*range(1, _FIRST + 1), *stretches, n_draws]
    chains = [Chains.from_arrays({"x": draws[None, :n]}) for n in counts]
    worst = [float(found.certificate_.value) for found in chains]
    backdrop = _Backdrop(density, corners, names)
    made = []
    for number, n in enumerate(counts):
        chart = progress(
            {"value": (counts, np.where(np.isfinite(worst), worst, np.nan))}, n, x_log=True, y_log=True,
            title="How far the chain is from its certificate", x_label="draws", y_label="(R-hat − 1)/0.01 or 400/ESS",
        )  # fmt: skip
        if n <= _FIRST:
            visit = visits[n - 1]
            main = backdrop.draw_visit(draws[:n], visit, start)
            text = words(visit)
            title = f"Draw {n}"
        else:
            main = backdrop.draw_cloud(draws[:n])
            text = (
                "The draws so far, and the way of the last ones. The chain stays near where it was, so that a draw "
                "tells less than an independent one would: the effective number is smaller."
            )
            title = f"{n:,} draws"
        effective = min(chains[number].ess.values()) if n > _FIRST else float("nan")
        numbers = {"draws": n, "mean of the first": float(draws[:n, 0].mean())}
        if np.isfinite(effective):
            numbers["effective draws"] = float(effective)
        made.append(
            Step(
                title=title,
                pictures=(main, chart),
                text=text,
                formula=formula,
                code=f"draws = []\nfor _ in range({n}):\n    state, info = sampler.step(state, rng)\n"
                '    draws.append(sampler.draw(state))\nchains = Chains.from_arrays({"x": [draws]})',
                certificates={"chains": chains[number].certificate_},
                numbers=numbers,
            )
        )
    return made


class _Backdrop:
    """The density as contours, and what is drawn on it."""

    def __init__(self, density: Density, corners: Array, names: list[str]) -> None:
        self.names = names
        x_ends = float(corners[0, 0]), float(corners[1, 0])
        y_ends = float(corners[0, 1]), float(corners[1, 1])
        self.frame = Frame.around(x_ends, y_ends, width=WIDTH, height=HEIGHT)
        x = np.linspace(*x_ends, _GRID)
        y = np.linspace(*y_ends, _GRID)
        log_density = np.array([[density.function(np.array([a, b]))[0] for a in x] for b in y])
        share = np.exp(log_density - log_density.max())
        d = ""
        for level in _LEVELS:
            lines = contour_lines(x, y, share, level)
            d += "".join(self.frame.path(line[:, 0], line[:, 1]) for line in lines)
        self.contours = tag("path", d=d, fill="none", stroke=MUTED, stroke_width=0.9, opacity=0.7)

    def draw_visit(self, draws: Array, visit: Visit, start: Array) -> Markup:
        """Draw the chain so far, and where the density was asked in its last step."""
        path = np.vstack([start, draws])
        marks: list[Markup | None] = [self.contours, self._line(path, ACCENT, 1.4), self._dots(path, ACCENT, 5.0)]
        reached = [visit.before]
        at = 0
        block = 1
        while at < len(visit.asked):  # NUTS doubles its trajectory, forwards or backwards: 1, 2, 4, … points
            some = visit.asked[at : at + block]
            nearest = min(reached, key=lambda point: float(np.sum((point - some[0]) ** 2)))
            marks.append(self._line(np.vstack([nearest, some]), COLOURS[1], 1.2))
            reached += list(some)
            at += block
            block *= 2
        for point in visit.asked:
            marks.append(self._ring(point, 3.6))
        marks.append(self._dots(visit.draw[None], COLOURS[0], 11.0))
        return self.frame.draw("The last step of the chain", *marks, x_label=self.names[0], y_label=self.names[1])

    def draw_cloud(self, draws: Array) -> Markup:
        """Draw all draws, thinned, and the way of the last thirty."""
        kept = np.unique(np.linspace(0, len(draws) - 1, min(len(draws), _MOST_DOTS)).round().astype(int))
        marks = [self.contours, self._dots(draws[kept], ACCENT, 3.0 if len(kept) > 400 else 4.5, 0.45)]
        marks += [self._line(draws[-30:], COLOURS[1], 1.3), self._dots(draws[-1:], COLOURS[0], 10.0)]
        return self.frame.draw(f"{len(draws)} draws", *marks, x_label=self.names[0], y_label=self.names[1])

    def _line(self, path: Array, colour: str, width: float) -> Markup:
        within = (self.frame.x.low, self.frame.x.high), (self.frame.y.low, self.frame.y.high)
        d = "".join(self.frame.path(piece[:, 0], piece[:, 1]) for piece in pieces_within(path, *within))
        return tag("path", d=d, fill="none", stroke=colour, stroke_width=width, stroke_linejoin="round", opacity=0.8)

    def _dots(self, rows: Array, colour: str, size: float, opacity: float = 0.85) -> Markup:
        return dots(self.frame, self._seen(rows), colour, size=size, opacity=opacity)

    def _ring(self, point: Array, radius: float) -> Markup | None:
        if not len(self._seen(point[None])):
            return None
        place = {"cx": float(self.frame.x(point[0])), "cy": float(self.frame.y(point[1]))}
        return tag("circle", r=radius, fill="none", stroke=COLOURS[1], stroke_width=1.5, **place)

    def _seen(self, rows: Array) -> Array:
        x = self.frame.x
        y = self.frame.y
        return rows[(rows[:, 0] >= x.low) & (rows[:, 0] <= x.high) & (rows[:, 1] >= y.low) & (rows[:, 1] <= y.high)]


# --------------------------------------------------------------------------------------------------------------------
# Metropolis.


def build_metropolis(
    density: Density, start: Array, corners: Array, names: list[str], scale: float, *, n_draws: int = 20_000
) -> list[Step]:
    """Return a step for each of the first proposals, then steps for stretches of the chain."""
    from ...sampling import MetropolisHastings, RandomWalk
    from ...sampling.targets import Target

    target = Target("metropolis", density.value, None, 2, needs_gradient=False)
    sampler = MetropolisHastings(target, RandomWalk(scale, adapt=False), 0)
    return _run(sampler, density, start, corners, names, n_draws, _metropolis_words, _METROPOLIS_FORMULA)


def _metropolis_words(visit: Visit) -> str:
    ratio = float(np.exp(min(visit.value_there - visit.value_before, 700.0)))
    verb = "takes" if visit.moved else "refuses"
    return (
        f"The chain {verb} the proposal (the open circle), whose density is {ratio:.2g} times that of the place "
        "where it stood."
    )


_METROPOLIS_FORMULA = (
    r"x′ = x + σz, \; z ∼ N(0, I)"
    "\n"
    r"P(\text{accept}) = \min(1, \frac{p(x′)}{p(x)})"
)


METROPOLIS = Scene(
    name="metropolis",
    title="Metropolis: suggest, then accept or stay",
    text="A chain takes random steps. Uphill proposals are always accepted, downhill ones with the ratio of the "
    "densities; the share of time that the chain spends anywhere tends to the density itself.",
    built_in="The built-in density is a bent ridge.",
    setup="import numpy as np\nfrom learnable.lab import SCENES\nfrom learnable.sampling import Chains, "
    "MetropolisHastings, RandomWalk\nfrom learnable.sampling.targets import Target\n\n"
    'density, start, corners, names, scale = SCENES["metropolis"].read(None)  # or a table\n'
    'target = Target("metropolis", density.value, None, 2, needs_gradient=False)\n'
    "sampler = MetropolisHastings(target, RandomWalk(scale, adapt=False), 0)\n"
    "rng = np.random.default_rng(3)\nstate = sampler.init(start, rng)",
    takes="a column of numbers; the chain samples the posterior of its mean and standard deviation.",
    read=read_metropolis,
    build=build_metropolis,
    cover=13,
)


# --------------------------------------------------------------------------------------------------------------------
# The No-U-Turn sampler.


def build_nuts(
    density: Density, start: Array, corners: Array, names: list[str], size: float, *, n_draws: int = 4000
) -> list[Step]:
    """Return a step for each of the first trajectories, then steps for stretches of the chain."""
    from ...sampling import Hamiltonian
    from ...sampling.targets import Target

    target = Target("nuts", density, None, 2, needs_gradient=True)
    sampler = Hamiltonian(target, n_warmup=0, metric=np.ones(2), step_size=size)
    return _run(sampler, density, start, corners, names, n_draws, _nuts_words, _NUTS_FORMULA)


def _nuts_words(visit: Visit) -> str:
    steps = "1 step" if len(visit.asked) == 1 else f"{len(visit.asked)} steps"
    return (
        f"The trajectory (the small circles) took {steps} along the slope, in both directions of time, before it "
        "turned back. The next draw is one of its points."
    )


_NUTS_FORMULA = (
    r"H(x, r) = −\log p(x) + \frac{1}{2} r·r"
    "\n"
    r"\frac{dx}{dt} = r, \; \frac{dr}{dt} = ∇\log p(x)"
)


NUTS = Scene(
    name="nuts",
    title="NUTS: follow the slope until it turns back",
    text="The chain gets a push in a random direction and glides along the density, doubling its trajectory until "
    "it would turn back; a draw far away costs a few gradients instead of many random steps.",
    built_in="The built-in density is a bent ridge.",
    setup="import numpy as np\nfrom learnable.lab import SCENES\nfrom learnable.sampling import Chains, Hamiltonian\n"
    "from learnable.sampling.targets import Target\n\n"
    'density, start, corners, names, size = SCENES["nuts"].read(None)  # or a table\n'
    'target = Target("nuts", density, None, 2, needs_gradient=True)\n'
    "sampler = Hamiltonian(target, n_warmup=0, metric=np.ones(2), step_size=size)\n"
    "rng = np.random.default_rng(3)\nstate = sampler.init(start, rng)",
    takes="a column of numbers; the chain samples the posterior of its mean and standard deviation.",
    read=read_nuts,
    build=build_nuts,
    cover=1,
)
