"""Rademacher averages R(F) = E sup_f n⁻¹ Σ σᵢ f(xᵢ), for signs σᵢ = ±1 and given points.

    any class with a linear maximiser   by simulation, with its error bar (`simulate`)
    finite class                        exact by all signs (n ≤ 20), at most max‖f‖ √(2 ln N)/n (Massart)
    ball of radius B in an RKHS         sup = (B/n)√(σᵀKσ); between B√(tr K/2)/n and B√(tr K)/n, exact by all signs
    convex hull                         that of its corners
    ℓ₁ ball of linear functions         B max |Σ σᵢ xᵢⱼ|/n, at most B maxⱼ‖xⱼ‖ √(2 ln 2d)/n
    ReLU network by Frobenius norms     at most B ∏‖Wⱼ‖_F (√(2 ln 2 · depth) + 1)/√n, B² = n⁻¹ Σ‖xᵢ‖²

and the rules R(cF) = |c| R(F), R(φ∘F) ≤ L R(F) for L-Lipschitz φ, and E sup_f (E f − n⁻¹ Σ f(xᵢ)) ≤ 2 E R(F).

References: P. Bartlett and S. Mendelson, JMLR 3, 2002. M. Ledoux and M. Talagrand, Probability in Banach Spaces,
1991. N. Golowich, A. Rakhlin and O. Shamir, Size-independent sample complexity of neural networks, COLT 2018,
theorem 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from ..core import DataError, Number, ParameterError, check_parameters
from .concentration.base import COUNT, LEVEL, Array
from .covering import function_table

_NON_NEGATIVE = Number(low=0.0)
#: All signs of this many points are enumerated: a million rows of signs, in blocks.
MOST_POINTS = 20
_BLOCK = 1 << 14
_SIGNS: Array = np.array([-1.0, 1.0])


class Average(NamedTuple):
    """A Rademacher average, known exactly or by simulation."""

    value: float  #: the average
    error: float  #: its standard error; 0 if it is exact
    draws: int  #: how many rows of signs went into it

    def interval(self) -> tuple[float, float]:
        """Return four standard errors either way."""
        return self.value - 4.0 * self.error, self.value + 4.0 * self.error


def simulate(maximise: Callable[[Array], Array], n: int, draws: int = 2000, random_state: int = 0) -> Average:
    """Return the Rademacher average of a class by simulation.

    Parameters
    ----------
    maximise : callable
        From signs of shape (m, n) to sup_f n⁻¹ Σ σᵢ f(xᵢ) of each row, shape (m,).
    n : int
        Points.
    draws : int
        Rows of signs.
    random_state : int
        Seed.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.theory.rademacher import kernel_ball_maximiser, simulate
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> found = simulate(kernel_ball_maximiser(X @ X.T), 100)
    >>> bool(found.value < np.sqrt(np.trace(X @ X.T)) / 100)
    True
    """
    check_parameters("simulate", {"n": n, "draws": draws}, {"n": COUNT, "draws": Number(low=2, integer=True)})
    rng = np.random.default_rng(random_state)
    found = []
    for start in range(0, draws, 512):
        signs = rng.choice(_SIGNS, size=(min(512, draws - start), n))
        found.append(np.asarray(maximise(signs), dtype=np.float64))
    values = np.concatenate(found)
    return Average(float(values.mean()), float(values.std(ddof=1)) / math.sqrt(draws), draws)


def exact(maximise: Callable[[Array], Array], n: int) -> Average:
    """Return the Rademacher average over all 2ⁿ rows of signs; n is at most 20.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.theory.rademacher import exact, finite_maximiser
    >>> exact(finite_maximiser([[1.0, 1.0], [-1.0, -1.0]]), 2).value
    0.5
    """
    check_parameters("exact", {"n": n}, {"n": COUNT})
    if n > MOST_POINTS:
        raise ParameterError(f"exact: n must be at most {MOST_POINTS}, for all 2^n signs; got {n}. Use simulate.")
    total = sum(float(np.asarray(maximise(signs)).sum()) for signs in _all_signs(n))
    return Average(total / 2**n, 0.0, 2**n)


def finite_maximiser(values: Any) -> Callable[[Array], Array]:
    """Return the maximiser of a finite class, or of its convex hull, from its values (n_functions, n_points)."""
    f = function_table("finite_maximiser", values)
    return lambda signs: np.asarray((signs @ f.T).max(axis=1) / f.shape[1])


def kernel_ball_maximiser(K: Any, radius: float = 1.0) -> Callable[[Array], Array]:
    """Return the maximiser of a ball in an RKHS: (B/n)√(σᵀKσ), by ⟨f, Σ σᵢK(xᵢ, ·)⟩ ≤ B ‖Σ σᵢK(xᵢ, ·)‖."""
    G = function_table("kernel_ball_maximiser", K)
    check_parameters("kernel_ball_maximiser", {"radius": radius}, {"radius": _NON_NEGATIVE})
    if G.shape[0] != G.shape[1]:
        raise DataError(f"kernel_ball_maximiser: K must be square; got shape {G.shape}.")
    return lambda signs: np.asarray(radius / len(G) * np.sqrt(np.maximum(0.0, ((signs @ G) * signs).sum(axis=1))))


def l1_ball_maximiser(X: Any, radius: float = 1.0) -> Callable[[Array], Array]:
    """Return the maximiser of {x ↦ w·x: ‖w‖₁ ≤ B}, the convex hull of ± the columns."""
    rows = function_table("l1_ball_maximiser", X)
    check_parameters("l1_ball_maximiser", {"radius": radius}, {"radius": _NON_NEGATIVE})
    return lambda signs: np.asarray(radius / len(rows) * np.abs(signs @ rows).max(axis=1))


def massart(values: Any) -> float:
    """Return Massart's bound for a finite class: max‖f‖₂ √(2 ln N)/n.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.theory.rademacher import massart
    >>> round(massart(np.eye(8)), 4)
    0.2549
    """
    f = function_table("massart", values)
    longest = float(np.linalg.norm(f, axis=1).max())
    return float(longest * math.sqrt(2.0 * math.log(len(f))) / f.shape[1])


def kernel_ball(trace: float, n: int, radius: float = 1.0) -> tuple[float, float]:
    """Return bounds of the average of a ball in an RKHS: B√(tr K/2)/n (Khinchin) and B√(tr K)/n (Jensen).

    Examples
    --------
    >>> from learnable.theory.rademacher import kernel_ball
    >>> [round(bound, 4) for bound in kernel_ball(100.0, 100)]
    [0.0707, 0.1]
    """
    given = {"trace": trace, "n": n, "radius": radius}
    check_parameters("kernel_ball", given, {"trace": _NON_NEGATIVE, "n": COUNT, "radius": _NON_NEGATIVE})
    top = radius * math.sqrt(trace) / n
    return top / math.sqrt(2.0), top


def l1_ball(largest_norm: float, d: int, n: int, radius: float = 1.0) -> float:
    """Return the bound of linear functions with ‖w‖₁ ≤ B: B maxⱼ‖column j‖ √(2 ln 2d)/n."""
    given = {"largest_norm": largest_norm, "d": d, "n": n, "radius": radius}
    rules = {"largest_norm": _NON_NEGATIVE, "d": COUNT, "n": COUNT, "radius": _NON_NEGATIVE}
    check_parameters("l1_ball", given, rules)
    return radius * largest_norm * math.sqrt(2.0 * math.log(2.0 * d)) / n


def network(frobenius_norms: Any, sum_of_squares: float, n: int) -> float:
    """Return the bound of ReLU networks with given Frobenius norms of their layers: ∏‖W‖ √(Σ‖x‖²)(√(2 ln 2·L) + 1)/n.

    Biases are not covered, except as the weights of a constant input.

    Examples
    --------
    >>> from learnable.theory.rademacher import network
    >>> round(network([1.0, 2.0, 1.0], 1000.0, 1000), 4)
    0.1922
    """
    norms = np.asarray(frobenius_norms, dtype=np.float64)
    if norms.ndim != 1 or len(norms) == 0 or not np.isfinite(norms).all() or norms.min() < 0.0:
        raise DataError("network: frobenius_norms must be one non-negative number per layer.")
    check_parameters("network", {"s": sum_of_squares, "n": n}, {"s": _NON_NEGATIVE, "n": COUNT})
    depth = math.sqrt(2.0 * math.log(2.0) * len(norms)) + 1.0
    return float(np.prod(norms)) * math.sqrt(sum_of_squares) * depth / n


def deviation_bound(average: float, n: int, delta: float, *, on_sample: bool = True) -> float:
    """Return the bound on sup_f (E f − n⁻¹ Σ f(xᵢ)) of functions in [0, 1] from their Rademacher average.

    2R + 3√(ln(2/δ)/(2n)) with the average on the sample, 2R + √(ln(1/δ)/(2n)) with its expectation.

    Examples
    --------
    >>> from learnable.theory.rademacher import deviation_bound
    >>> round(deviation_bound(0.01, 1000, 0.05), 4)
    0.1488
    """
    given = {"average": average, "n": n, "delta": delta}
    check_parameters("deviation_bound", given, {"average": _NON_NEGATIVE, "n": COUNT, "delta": LEVEL})
    if on_sample:
        return 2.0 * average + 3.0 * math.sqrt(math.log(2.0 / delta) / (2.0 * n))
    return 2.0 * average + math.sqrt(math.log(1.0 / delta) / (2.0 * n))


class Rule(NamedTuple):
    """One rule of Rademacher averages, shown on numbers."""

    name: str  #: in words
    left: Average  #: what is bounded
    right: float  #: by what
    holds: bool  #: up to four standard errors


def show_rules(values: Any, *, scale: float = -2.0, draws: int = 4000, random_state: int = 0) -> list[Rule]:
    """Show the rules on a finite class of functions in [−1, 1]: scaling, convex hull, contraction, symmetrisation.

    For symmetrisation rows are drawn with replacement from the given points, as often as there are points.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.theory.rademacher import show_rules
    >>> values = np.random.default_rng(0).uniform(-1, 1, (20, 12))
    >>> [rule.holds for rule in show_rules(values)]
    [True, True, True, True]
    """
    f = function_table("show_rules", values)
    if np.abs(f).max() > 1.0:
        raise DataError("show_rules: values must lie in [-1, 1]; scale them.")
    n = f.shape[1]
    rng = np.random.default_rng(random_state)

    def average(table: Array) -> Average:
        if n <= 12:
            return exact(finite_maximiser(table), n)
        return simulate(finite_maximiser(table), n, draws, random_state)

    plain = average(f)
    scaled = average(scale * f)
    mixtures = rng.dirichlet(np.ones(len(f)), 200) @ f
    hull = average(np.vstack([f, mixtures]))
    contracted = average(np.tanh(2.0 * f) / 2.0)  # slope at most 1, and 0 at 0
    rows = rng.integers(0, n, (draws, n))
    counts = np.stack([np.bincount(row, minlength=n) for row in rows])
    gaps = (f.mean(axis=1) - counts @ f.T / n).max(axis=1)
    signs = 2.0 * rng.integers(0, 2, (draws, n)) - 1.0
    signed = np.zeros((draws, n))
    np.add.at(signed, (np.arange(draws)[:, None], rows), signs)
    ghosts = (signed @ f.T / n).max(axis=1)
    left = Average(float(gaps.mean()), float(gaps.std()) / math.sqrt(draws), draws)
    right = 2.0 * float(ghosts.mean())
    slack = 4.0 * (left.error + 2.0 * float(ghosts.std()) / math.sqrt(draws))
    noise = 8.0 * plain.error + 1e-12
    return [
        Rule("R(cF) = |c| R(F)", scaled, abs(scale) * plain.value, _close(scaled, abs(scale) * plain.value, noise)),
        Rule("R(hull F) = R(F)", hull, plain.value, abs(hull.value - plain.value) <= noise),
        Rule("R(φ∘F) ≤ L R(F)", contracted, plain.value, contracted.value <= plain.value + noise),
        Rule("E sup (Ef − n⁻¹Σf) ≤ 2 E R(F)", left, right, left.value <= right + slack),
    ]


def _close(average: Average, value: float, noise: float) -> bool:
    """Tell whether two averages agree; σ and −σ are equally likely, so that F and −F have one average."""
    return abs(average.value - value) <= 8.0 * average.error + 2.0 * noise


def _all_signs(n: int) -> Iterator[Array]:
    for start in range(0, 2**n, _BLOCK):
        codes = np.arange(start, min(start + _BLOCK, 2**n))
        yield _SIGNS[codes[:, None] >> np.arange(n) & 1]
