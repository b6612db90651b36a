r"""Simulation-based calibration: whether a posterior is the posterior.

Draw θ from the prior, data from the model given θ, and L draws from what claims to be the posterior of the data. If the
claim is true, the rank of θ among the draws is uniform on 0 … L, for every number θ holds (Talts et al., arXiv
1804.06788; Cook, Gelman and Rubin 2006). A posterior that is too narrow gives ranks at both ends, one that is too wide
ranks in the middle, one that is shifted a slope.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2

from ..core.errors import DataError, ParameterError
from ..plots.distributions import histogram
from ..plots.markup import Markup
from ..plots.panels import side_by_side

Array = NDArray[np.float64]


@dataclass(frozen=True)
class CalibrationCheck:
    """Ranks of true parameters among draws that claim to be from their posterior.

    Attributes
    ----------
    ranks : dict of str to array of shape (n_simulations,)
        From 0 to `n_draws`.
    n_draws : int
        Draws that each truth is ranked among.
    p_values : dict of str to float
        Of the χ² test that the ranks are uniform.
    level : float
        Probability of a false alarm over all parameters together (Bonferroni).
    """

    ranks: dict[str, NDArray[np.int64]]
    n_draws: int
    p_values: dict[str, float]
    level: float = 0.01

    @property
    def holds(self) -> bool:
        """Whether no parameter's ranks are far from uniform."""
        return min(self.p_values.values()) >= self.level / len(self.p_values)

    def shape(self, name: str) -> str:
        """Say what the ranks of a parameter look like, in words."""
        u = (self.ranks[name] + 0.5) / (self.n_draws + 1)
        n = len(u)
        tilt = (u.mean() - 0.5) * np.sqrt(12 * n)
        bend = (((u - 0.5) ** 2).mean() - 1 / 12) * np.sqrt(180 * n)
        if abs(tilt) > max(3.0, abs(bend)):
            return "draws are too small" if tilt > 0 else "draws are too large"
        if abs(bend) > 3:
            return "draws are too narrow" if bend > 0 else "draws are too wide"
        return "uniform"

    def __str__(self) -> str:
        lines = [f"{name}: p = {p:.3g}, {self.shape(name)}" for name, p in self.p_values.items()]
        verdict = "calibrated" if self.holds else "NOT calibrated"
        n = len(next(iter(self.ranks.values())))
        return "\n".join([f"{verdict} ({n} simulations, ranks among {self.n_draws} draws)", *lines])

    def plot(self) -> Markup:
        """Return the rank histograms as SVG."""
        figures = []
        for name, ranks in self.ranks.items():
            edges = np.linspace(0, self.n_draws + 1, _n_bins(len(ranks), self.n_draws) + 1)
            counts = np.histogram(ranks + 0.5, edges)[0]
            figures.append(histogram(edges, counts, title=name, x_label=f"rank of {name}", y_label="simulations"))
        return side_by_side(*figures, title="Ranks of the truth")


def calibrate(
    model: Callable[..., Any],
    prior: Callable[[np.random.Generator], Mapping[str, Any]],
    simulate: Callable[..., Any],
    *,
    n_simulations: int = 200,
    n_draws: int = 99,
    level: float = 0.01,
    random_state: Any = None,
) -> CalibrationCheck:
    """Check a sampler, or a conjugate or approximate posterior, against its own model.

    Parameters
    ----------
    model : callable
        (data, rng) ↦ draws from the posterior: `Chains`, a mapping of names to arrays of shape (n_draws, …), or a
        mapping of names to distributions.
    prior : callable
        rng ↦ a mapping of names to values.
    simulate : callable
        (parameters, rng) ↦ data.
    n_simulations : int
        How often.
    n_draws : int
        Draws to rank the truth among; of more, evenly spaced ones are taken, which makes draws of chains nearly
        independent.
    level : float
        Probability of a false alarm.
    random_state : int, Generator or None
        Seed.

    Returns
    -------
    CalibrationCheck
        True to its model if `holds`.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.evaluation import calibrate
    >>> from learnable.probability import Normal
    >>> check = calibrate(
    ...     lambda y, rng: {"mu": Normal(y.sum() / (1 + len(y)), (1 + len(y)) ** -0.5)},
    ...     lambda rng: {"mu": rng.normal()},
    ...     lambda p, rng: p["mu"] + rng.normal(size=5),
    ...     random_state=0,
    ... )
    >>> check.holds
    True
    """
    for name, value, least in (("n_simulations", n_simulations, 20), ("n_draws", n_draws, 4)):
        if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < least:
            raise ParameterError(f"calibrate: {name} must be an integer of at least {least}; got {value!r}.")
    if not 0 < level < 1:
        raise ParameterError(f"calibrate: level must lie between 0 and 1; got {level!r}.")
    seed = random_state if isinstance(random_state, np.random.Generator) else np.random.default_rng(random_state)
    ranks: dict[str, list[int]] = {}
    for rng in seed.spawn(int(n_simulations)):
        truth = {name: np.asarray(value, dtype=np.float64) for name, value in prior(rng).items()}
        draws = model(simulate(dict(truth), rng), rng)
        for variable, true_value in truth.items():
            found = _draws_of(draws, variable, true_value.shape, int(n_draws), rng)
            for label, true, column in _numbers(variable, true_value, found):
                # Ties are broken at random: whole numbers have uniform ranks then, too.
                below = int((column < true).sum())
                ties = int((column == true).sum())
                ranks.setdefault(label, []).append(below + int(rng.integers(ties + 1)))
    arrays = {name: np.array(values, dtype=np.int64) for name, values in ranks.items()}
    p_values = {name: uniform_p_value(values, int(n_draws)) for name, values in arrays.items()}
    return CalibrationCheck(arrays, int(n_draws), p_values, level)


def uniform_p_value(ranks: NDArray[np.int64], n_draws: int) -> float:
    """Return the p-value of the χ² test that ranks are uniform on 0 … n_draws."""
    bins = _n_bins(len(ranks), n_draws)
    edges = np.round(np.linspace(0, n_draws + 1, bins + 1))
    counts = np.histogram(ranks + 0.5, edges)[0]
    expected = len(ranks) * np.diff(edges) / (n_draws + 1)
    return float(chi2.sf(((counts - expected) ** 2 / expected).sum(), bins - 1))


def _n_bins(n: int, n_draws: int) -> int:
    """Return the number of bins: at least ten expected ranks in each."""
    return int(np.clip(n // 10, 2, min(20, n_draws + 1)))


def _draws_of(draws: Any, name: str, shape: tuple[int, ...], n: int, rng: np.random.Generator) -> Array:
    """Return n draws of one parameter, (n, …)."""
    try:
        given = draws.flat(name) if hasattr(draws, "flat") and hasattr(draws, "n_chains") else draws[name]
    except (KeyError, TypeError):
        raise DataError(f"calibrate: model must return draws of {name!r}, which the prior draws.") from None
    if hasattr(given, "sample") and hasattr(given, "logpdf"):
        return np.asarray(given.sample(n, random_state=rng), dtype=np.float64).reshape(n, *shape)
    array = np.asarray(given, dtype=np.float64)
    if array.ndim != len(shape) + 1 or array.shape[1:] != shape or len(array) < n:
        raise DataError(f"calibrate: draws of {name!r} must have shape (at least {n}, *{shape}); got {array.shape}.")
    return array[np.linspace(0, len(array) - 1, n).astype(np.int64)]


def _numbers(name: str, value: Array, draws: Array) -> list[tuple[str, float, Array]]:
    if not value.shape:
        return [(name, float(value), draws)]
    places = list(np.ndindex(*value.shape))
    return [(f"{name}[{','.join(map(str, p))}]", float(value[p]), draws[(slice(None), *p)]) for p in places]
