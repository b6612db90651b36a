"""Laws of large numbers, the central limit theorem and consistency, as numbers and as figures that move.

    law of large numbers      running means X̄ₙ of several runs, in the band that Chebyshev's inequality allows
    central limit theorem     sup_x |P(√n(X̄ − μ)/σ ≤ x) − Φ(x)|, below Berry and Esseen's 0.4748 E|X − μ|³/(σ³√n)
    consistency               the distribution of |estimate − truth| as n grows

References: A. Berry, 1941; C.-G. Esseen, 1942; I. Shevtsova, On the absolute constants in the Berry–Esseen type
inequalities for identically distributed summands, 2011 (0.4748).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtr

from ..core import DataError, Number, ParameterError, check_parameters
from ..plots import Markup, animate, labelled_lines
from .concentration.base import COUNT, Array

#: The constant of Berry and Esseen's theorem for identically distributed summands (Shevtsova, 2011).
BERRY_ESSEEN = 0.4748


class Law(NamedTuple):
    """A distribution to draw from, with the moments that theorems ask for."""

    draw: Callable[[np.random.Generator, tuple[int, ...]], Array]  #: (generator, shape) to values
    mean: float  #: μ
    variance: float  #: σ²; infinite if there is none
    third: float  #: E|X − μ|³; infinite if there is none


#: Distributions by name.
LAWS: dict[str, Law] = {
    "coin": Law(lambda rng, shape: (rng.random(shape) < 0.5).astype(np.float64), 0.5, 0.25, 0.125),
    "rare": Law(
        lambda rng, shape: (rng.random(shape) < 0.05).astype(np.float64),
        0.05,
        0.0475,
        0.05 * 0.95**3 + 0.95 * 0.05**3,
    ),
    "uniform": Law(lambda rng, shape: rng.random(shape), 0.5, 1.0 / 12.0, 1.0 / 32.0),
    # E|X − 1|³ of an exponential is 12/e − 2.
    "exponential": Law(lambda rng, shape: rng.exponential(size=shape), 1.0, 1.0, 12.0 / math.e - 2.0),
    # The mean exists for no n: the law of large numbers fails.
    "cauchy": Law(lambda rng, shape: rng.standard_cauchy(shape), math.nan, math.inf, math.inf),
}


@dataclass(frozen=True)
class Demonstration:
    """What was simulated: numbers, and a figure.

    Attributes
    ----------
    sizes : array of shape (k,)
        Values of n.
    values : array
        One row per run, or per n.
    bound : array of shape (k,)
        What the theorem says of them.
    statement : str
        The theorem.
    figure : Markup
        An `<svg>` element that moves from small n to large.
    """

    sizes: Array
    values: Array
    bound: Array
    statement: str
    figure: Markup


def law_of_large_numbers(
    law: str | Law = "coin", n: int = 2000, runs: int = 8, delta: float = 0.05, random_state: int = 0
) -> Demonstration:
    """Show running means, and the band around μ that Chebyshev's inequality gives at each n.

    Examples
    --------
    >>> from learnable.theory.demonstrate import law_of_large_numbers
    >>> shown = law_of_large_numbers("exponential")
    >>> bool((abs(shown.values[:, -1] - 1.0) < shown.bound[-1]).all())
    True
    """
    check_parameters("law_of_large_numbers", {"n": n, "runs": runs}, {"n": COUNT, "runs": COUNT})
    check_parameters("law_of_large_numbers", {"delta": delta}, {"delta": Number(low=0.0, high=1.0, low_open=True)})
    chosen = _law("law_of_large_numbers", law)
    rng = np.random.default_rng(random_state)
    x = chosen.draw(rng, (runs, n))
    steps = np.unique(np.geomspace(1, n, min(n, 60)).astype(np.int64))
    means = np.cumsum(x, axis=1)[:, steps - 1] / steps
    width = np.sqrt(chosen.variance / (delta * steps))
    centre = chosen.mean if math.isfinite(chosen.mean) else 0.0
    spread = float(np.quantile(np.abs(means - centre), 0.97)) or 1.0
    frames = []
    for k in _frames(len(steps)):
        lines: dict[str, tuple[Any, Any]] = {f"run {i + 1}": (steps[:k], means[i, :k]) for i in range(min(runs, 4))}
        if math.isfinite(chosen.variance):
            # The two borders are one line, broken between them.
            borders = np.r_[centre + width, np.nan, centre - width]
            lines["μ ± σ/√(δn)"] = (np.r_[steps, np.nan, steps], borders)
        frames.append(
            labelled_lines(
                lines,
                x_log=True,
                x_range=(1.0, float(n)),
                y_range=(centre - spread, centre + spread),
                title=f"Running means up to n = {steps[k - 1]}",
                x_label="n",
                y_label="mean",
            )
        )
    statement = "P(|X̄ₙ − μ| ≥ σ/√(δn)) ≤ δ, so X̄ₙ → μ in probability; almost surely whenever E|X| is finite"
    return Demonstration(
        steps.astype(np.float64), means, np.asarray(width), statement, animate(frames, title="Law of large numbers")
    )


def central_limit(
    law: str | Law = "exponential",
    sizes: tuple[int, ...] = (1, 2, 4, 8, 16, 32, 64),
    draws: int = 20_000,
    random_state: int = 0,
) -> Demonstration:
    """Show the distance of standardised means from the normal law, and Berry and Esseen's bound on it.

    The distance is that of the empirical distribution of `draws` means, which is itself off by about 1/√draws.

    Examples
    --------
    >>> from learnable.theory.demonstrate import central_limit
    >>> shown = central_limit("coin", sizes=(1, 4, 16))
    >>> bool((shown.values < shown.bound + 0.015).all())
    True
    """
    check_parameters("central_limit", {"draws": draws}, {"draws": COUNT})
    chosen = _law("central_limit", law)
    if not math.isfinite(chosen.third):
        raise ParameterError("central_limit: the law has no third moment, which Berry and Esseen's theorem asks for.")
    ns = _sizes("central_limit", sizes)
    rng = np.random.default_rng(random_state)
    sigma = math.sqrt(chosen.variance)
    grid = np.linspace(-3.5, 3.5, 141)
    distances = []
    frames = []
    for n in ns:
        sums = np.zeros(draws)
        for start in range(0, int(n), 64):
            sums += chosen.draw(rng, (draws, min(64, int(n) - start))).sum(axis=1)
        z = np.sort((sums / n - chosen.mean) * math.sqrt(n) / sigma)
        distances.append(distance_to_normal(z))
        share = np.searchsorted(z, grid, side="right") / draws
        frames.append(
            labelled_lines(
                {"Φ": (grid, ndtr(grid)), f"n = {n}": (grid, share)},
                reference="Φ",
                y_range=(0.0, 1.0),
                title=f"Distribution of the standardised mean, n = {n}",
                x_label="√n (mean − μ)/σ",
                y_label="probability",
            )
        )
    bound = np.minimum(1.0, BERRY_ESSEEN * chosen.third / (sigma**3 * np.sqrt(ns)))
    statement = f"sup |P(√n(X̄ − μ)/σ ≤ x) − Φ(x)| ≤ {BERRY_ESSEEN} E|X − μ|³/(σ³√n)"
    return Demonstration(
        ns.astype(np.float64), np.array(distances), bound, statement, animate(frames, title="Central limit theorem")
    )


def consistency(
    estimator: Callable[[Array], Array],
    truth: float,
    law: str | Law = "exponential",
    sizes: tuple[int, ...] = (10, 30, 100, 300, 1000, 3000),
    runs: int = 400,
    random_state: int = 0,
) -> Demonstration:
    """Show quantiles of |estimate − truth| as n grows: they tend to 0 if and only if the estimator is consistent.

    Parameters
    ----------
    estimator : callable
        From samples of shape (runs, n) to estimates of shape (runs,).
    truth : float
        What is estimated.
    law : str or Law
        Where the samples come from.
    sizes : tuple of int
        Values of n.
    runs : int
        Samples for each n.
    random_state : int
        Seed.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.theory.demonstrate import consistency
    >>> median = consistency(lambda x: np.median(x, axis=1), np.log(2.0))
    >>> first = consistency(lambda x: x[:, 0], 1.0)
    >>> bool(median.values[-1, 1] < 0.05), bool(first.values[-1, 1] > 0.3)
    (True, True)
    """
    check_parameters("consistency", {"truth": truth, "runs": runs}, {"truth": Number(), "runs": COUNT})
    chosen = _law("consistency", law)
    ns = _sizes("consistency", sizes)
    rng = np.random.default_rng(random_state)
    levels = np.array([0.1, 0.5, 0.9])
    rows = []
    for n in ns:
        estimates = np.asarray(estimator(chosen.draw(rng, (runs, int(n)))), dtype=np.float64)
        if estimates.shape != (runs,):
            raise DataError(f"consistency: estimator must give {runs} numbers; got shape {estimates.shape}.")
        rows.append(np.quantile(np.abs(estimates - truth), levels))
    values = np.array(rows)
    reference = values[0, 1] * np.sqrt(ns[0] / ns)
    top = float(np.nanmax(values)) or 1.0
    bottom = max(float(values[values > 0].min()) / 2.0 if (values > 0).any() else 1e-3, top * 1e-6)
    frames = []
    for k in range(2, len(ns) + 1):
        lines = {f"{level:.0%} of runs": (ns[:k], values[:k, j]) for j, level in enumerate(levels)}
        frames.append(
            labelled_lines(
                {"1/√n": (ns, reference), **lines},
                reference="1/√n",
                x_log=True,
                y_log=True,
                x_range=(float(ns[0]), float(ns[-1])),
                y_range=(bottom, top * 1.2),
                title=f"Distance from the truth up to n = {ns[k - 1]}",
                x_label="n",
                y_label="|estimate − truth|",
            )
        )
    statement = "an estimator is consistent if P(|estimate − truth| > ε) → 0 for every ε > 0"
    return Demonstration(ns.astype(np.float64), values, reference, statement, animate(frames, title="Consistency"))


def distance_to_normal(z: Any) -> float:
    """Return Kolmogorov's distance of sorted values from the standard normal law, from both sides of every jump."""
    x = np.asarray(z, dtype=np.float64)
    n = len(x)
    normal = ndtr(x)
    above = np.searchsorted(x, x, side="right") / n
    below = np.searchsorted(x, x, side="left") / n
    return float(max(np.abs(above - normal).max(), np.abs(below - normal).max()))


def _law(owner: str, law: str | Law) -> Law:
    if isinstance(law, Law):
        return law
    if law not in LAWS:
        raise ParameterError(f"{owner}: law must be one of {', '.join(LAWS)}, or a Law; got {law!r}.")
    return LAWS[law]


def _sizes(owner: str, sizes: tuple[int, ...]) -> Any:
    ns = np.asarray(sizes, dtype=np.int64)
    if ns.ndim != 1 or len(ns) < 2 or ns.min() < 1 or bool((np.diff(ns) <= 0).any()):
        raise ParameterError(f"{owner}: sizes must be two or more increasing integers >= 1; got {sizes!r}.")
    return ns


def _frames(n: int, most: int = 12) -> list[int]:
    return sorted(set(np.linspace(min(2, n), n, min(n, most)).astype(int).tolist()))
