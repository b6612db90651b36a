"""Shattering found by search, VC-subgraph classes, and symmetrisation shown by simulation."""

from __future__ import annotations

import math
from itertools import combinations, product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...core import DataError, check_parameters
from ..concentration.base import COUNT, POSITIVE, Array
from ..covering import function_table
from .classes import FiniteClass, SetClass


class Shattered(NamedTuple):
    """The largest shattered part of some points."""

    dimension: int  #: its size: a lower bound of the VC dimension, and exact for the class on these points
    points: Array  #: the points themselves


def find_dimension(classes: SetClass, points: Any) -> Shattered:
    """Return the largest subset of given points that a class shatters.

    Parts of a shattered set are shattered, so that sets of size k + 1 are tried only where all their parts of size k
    are.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.theory.vc import Halfspaces, find_dimension
    >>> find_dimension(Halfspaces(2), [[0, 0], [1, 0], [0, 1], [1, 1], [0.5, 0.2]]).dimension
    3
    """
    X = classes._read(points)
    best: tuple[int, ...] = ()
    level: set[tuple[int, ...]] = {()}
    while level:
        best = min(level)
        candidates = {
            (*subset, further)
            for subset in level
            for further in range((subset[-1] + 1) if subset else 0, len(X))
            if all(part in level for part in combinations((*subset, further), len(subset)))
        }
        level = {subset for subset in candidates if classes.shatters(X[list(subset)])}
    return Shattered(len(best), X[list(best)])


def subgraph_labelings(values: Any, thresholds: Any) -> NDArray[np.bool_]:
    """Return the distinct labelings of pairs (xᵢ, tᵢ) by the subgraphs {(x, t): t < f(x)} of a class of functions.

    Parameters
    ----------
    values : array of shape (n_functions, n_points)
        f(xᵢ).
    thresholds : array of shape (n_points,)
        tᵢ.

    Examples
    --------
    >>> from learnable.theory.vc import subgraph_labelings
    >>> subgraph_labelings([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], [0.5, 0.5]).astype(int).tolist()
    [[0, 1], [1, 0], [1, 1]]
    """
    f = function_table("subgraph_labelings", values)
    t = np.asarray(thresholds, dtype=np.float64)
    if t.shape != (f.shape[1],):
        raise DataError(f"subgraph_labelings: thresholds must be {f.shape[1]} numbers; got shape {t.shape}.")
    return np.unique(f > t, axis=0)


def pseudo_dimension(values: Any) -> int:
    """Return the VC-subgraph (pseudo-) dimension of a finite class of functions on given points.

    The largest number of points that, with some thresholds, are labelled in every way by the subgraphs. For a vector
    space of functions it is the dimension of the space; for functions with values 0 and 1, the VC dimension. The
    search is over all thresholds between values: meant for small tables.

    Examples
    --------
    >>> from learnable.theory.vc import pseudo_dimension
    >>> pseudo_dimension([[0, 0], [0, 1], [1, 0], [1, 1]]), pseudo_dimension([[0, 0], [1, 1], [2, 2]])
    (2, 1)
    """
    f = function_table("pseudo_dimension", values)
    n = f.shape[1]
    cuts = []
    for column in f.T:
        distinct = np.unique(column)
        cuts.append((distinct[:-1] + distinct[1:]) / 2.0)
    shattered: set[tuple[int, ...]] = {()}
    size = 0
    while shattered:
        larger = set()
        for points in combinations(range(n), size + 1):
            if not all(part in shattered for part in combinations(points, size)) or len(f) < 2 ** len(points):
                continue
            for thresholds in product(*(cuts[i] for i in points)):
                if len(subgraph_labelings(f[:, points], thresholds)) == 2 ** len(points):
                    larger.add(points)
                    break
        if not larger:
            return size
        shattered = larger
        size += 1
    return size


class Symmetrisation(NamedTuple):
    """Both steps of symmetrisation, as shares of simulated samples."""

    deviation: float  #: P(sup |R̂ − R| > ε)
    ghost: float  #: 2 P(sup |R̂ − R̂′| > ε/2), with a second sample
    signs: float  #: 4 P(sup |n⁻¹ Σ σᵢ 1[error]| > ε/4)
    bound: float  #: 8 Π exp(−nε²/32)
    holds: bool  #: whether each is at most the next, up to four standard errors


def symmetrisation(
    classes: FiniteClass, n: int, eps: float, trials: int = 1000, random_state: int = 0
) -> Symmetrisation:
    """Show symmetrisation: rows are drawn evenly from the points of a finite class, labels are 0.

    For n ≥ 2/ε² the probability that some member's share of errors is ε away from its risk is at most twice that two
    samples differ by ε/2, and that is at most twice the probability for random signs at ε/4.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.theory.vc import FiniteClass, symmetrisation
    >>> thresholds = FiniteClass(np.tril(np.ones((21, 20), dtype=int), -1))
    >>> symmetrisation(thresholds, n=100, eps=0.15).holds
    True
    """
    given = {"n": n, "eps": eps, "trials": trials}
    check_parameters("symmetrisation", given, {"n": COUNT, "eps": POSITIVE, "trials": COUNT})
    table = classes.table.astype(np.float64)  # type: ignore[attr-defined]
    m = table.shape[1]
    risks = table.mean(axis=1)
    rng = np.random.default_rng(random_state)
    share = np.full(m, 1.0 / m)
    first = rng.multinomial(n, share, trials)
    second = rng.multinomial(n, share, trials)
    positive = rng.binomial(first, 0.5)
    deviation = float((np.abs(first @ table.T / n - risks).max(axis=1) > eps).mean())
    ghost = float((np.abs((first - second) @ table.T / n).max(axis=1) > eps / 2.0).mean())
    signs = float((np.abs((2 * positive - first) @ table.T / n).max(axis=1) > eps / 4.0).mean())
    bound = 8.0 * classes.size * math.exp(-n * eps**2 / 32.0)
    slack = 4.0 / math.sqrt(trials)
    holds = deviation <= 2 * ghost + slack and 2 * ghost <= 4 * signs + 2 * slack and 4 * signs <= bound + 4 * slack
    return Symmetrisation(deviation, 2.0 * ghost, 4.0 * signs, bound, holds)
