"""What a mixture of an exponential family needs to know of a table before it starts.

One pass finds the total weight, the mean of t(x), its spread and its largest entries, and refuses rows that no member
of the family can produce. The mean gives the member of greatest likelihood of the whole table, about which the prior is
centred and from which components start. Normal families need the mean and the covariance instead.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import DataError, ParameterError
from ..core.parameters import Number
from ..data.blocks import map_reduce
from ..probability.base import ExponentialFamily
from ..probability.multivariate_normal import MultivariateNormal
from ..probability.normal import Normal
from .families import FamilyMixture, NormalFamily, as_events, chunks
from .gaussian_starts import table_moments

Array = NDArray[Any]

_MOST_CATEGORIES = 100_000


def family_problem(
    owner: str, family: type[Any], K: int, blocks: Any, given: dict[str, Any], rows: float, alpha: float, n_jobs: Any
) -> FamilyMixture:
    """Return the two steps for a table; raise DataError where the family does not fit its rows.

    Parameters
    ----------
    given : dict
        Parameters that are known: the n of Binomial and Multinomial, the n_categories of Categorical.
    """
    d = int(blocks.n_columns)
    if family in (Normal, MultivariateNormal):
        mean, cov = table_moments(blocks, n_jobs)
        if not np.isfinite(cov).all():
            raise DataError(f"{owner}: X has numbers whose squares overflow. Divide the columns by their spread.")
        flat = np.flatnonzero(~(np.diag(cov) > 0))
        if flat.size:
            raise DataError(
                f"{owner}: column {flat[0]} is constant, or its squares underflow, and a normal density of it is "
                "unbounded; leave it out, or rescale it."
            )
        vector, spread = family is MultivariateNormal, np.sqrt(np.diag(cov))
        if vector and not np.linalg.eigvalsh(cov / np.outer(spread, spread))[0] > 1e-13 * d:
            raise DataError(f"{owner}: columns of X depend on each other, or are more than its rows; leave some out.")
        example = MultivariateNormal(np.zeros(d), np.eye(d)) if vector else Normal()
        return NormalFamily(example, K, mean, cov, rows, alpha)
    example, known = _example(owner, family, d, blocks, given, n_jobs)
    weight, total, squares, reach = map_reduce(blocks, _Statistics(owner, example), _merge, n_jobs=n_jobs)
    try:
        centre = family.from_mean_statistic(total / weight, **known)
    except (DataError, ParameterError) as error:
        raise DataError(
            f"{owner}: the rows have no {family.__name__} distribution of greatest likelihood: {error}"
        ) from None
    problem = FamilyMixture(example, K, known, centre, rows, alpha)
    problem.reach = reach
    spread = np.sqrt(np.maximum(squares / weight - np.square(total / weight), 0.0))
    problem.spread = np.where((spread > 0) & np.isfinite(spread), spread, 1.0)
    return problem


def _example(
    owner: str, family: type[Any], d: int, blocks: Any, given: dict[str, Any], n_jobs: Any
) -> tuple[Any, dict[str, Any]]:
    """Return a member that lends t(x), and what `from_mean_statistic` takes besides the means."""
    name = family.__name__
    allowed = {"Binomial": {"n"}, "Multinomial": {"n"}, "Categorical": {"n_categories"}}.get(name, set())
    if set(given) - allowed:
        raise ParameterError(f"{owner}: known has {sorted(set(given) - allowed)[0]!r}, which {name} does not know.")
    for key, value in given.items():
        if not Number(low=1, integer=True).allows(value):
            raise ParameterError(f"{owner}: known[{key!r}] must be an integer >= 1; got {value!r}.")
    if name == "Categorical":
        C = int(given.get("n_categories", map_reduce(blocks, _largest, max, n_jobs=n_jobs) + 1))
        if C > _MOST_CATEGORIES:
            raise DataError(f"{owner}: codes of categories reach {C - 1}; number the categories from 0 on.")
        return family(np.full(max(C, 1), 1 / max(C, 1))), {}
    if name == "Binomial":
        if "n" not in given:
            raise ParameterError(f"{owner}: a Binomial needs its number of trials: known={{'n': 10}}, say.")
        return family(given["n"], 0.5), {"n": float(given["n"])}
    if name == "Multinomial":
        n = float(given.get("n", np.asarray(blocks.head().X[0]).sum()))
        return family(n, np.full(d, 1 / d)), {"n": n}
    if family._event_rank == 2:
        size = round(float(np.sqrt(d)))
        if size * size != d:
            raise DataError(f"{owner}: a {name} needs rows that are square matrices, row by row; got {d} columns.")
        return family(size + 1.0, np.eye(size)), {}
    if name == "Dirichlet":
        return family(np.ones(d)), {}
    return family(*([0.5] if name == "Bernoulli" else [1.0])), {}


def is_family(value: Any) -> bool:
    """Tell whether a class is an exponential family that mixtures can have."""
    return isinstance(value, type) and issubclass(value, ExponentialFamily)


class _Statistics:
    """Weight, sum of t(x), of its squares, and its largest entries; rows outside the support are refused."""

    def __init__(self, owner: str, example: Any) -> None:
        self.owner, self.example = owner, example

    @np.errstate(over="ignore")
    def __call__(self, block: Any) -> tuple[float, Array, Array, Array]:
        weight = 0.0
        total: Any = 0.0
        squares: Any = 0.0
        reach: Any = 0.0
        for X, w, _ in chunks(block):
            events = as_events(type(self.example), X)
            t = np.asarray(self.example.sufficient_statistic(events))
            if np.isneginf(self.example.log_base_measure(events)).any() or not np.isfinite(t).all():
                name, support = type(self.example).__name__, self.example._support
                raise DataError(f"{self.owner}: {name} needs rows that are {support}; X has others.")
            weight, total = weight + float(w.sum()), total + np.tensordot(w, t, axes=1)
            squares = squares + np.tensordot(w, np.square(t), axes=1)
            reach = np.maximum(reach, np.abs(t).max(axis=0))
        return weight, np.asarray(total), np.asarray(squares), np.asarray(reach)


def _largest(block: Any) -> float:
    return float(np.max(block.X))


def _merge(a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, ...]:
    return a[0] + b[0], a[1] + b[1], a[2] + b[2], np.maximum(a[3], b[3])
