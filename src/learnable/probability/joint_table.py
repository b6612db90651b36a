r"""Joint distributions of discrete variables as tables.

A table holds P(x₁, …, x_m) for every combination of values. Sums over axes are marginals, quotients are
conditionals, and

$$ P(a \mid b) = \frac{P(b \mid a)\,P(a)}{\sum_{a'} P(b \mid a')\,P(a')} \qquad \text{(Bayes)}. $$
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import entr, rel_entr

from ..core.errors import DataError, ParameterError
from .base import Array, RandomState, Size

Names = str | Sequence[str]


class JointTable:
    """The joint distribution of a few discrete variables.

    Parameters
    ----------
    p : array with one axis per variable
        Non-negative numbers with the sum 1.
    names : sequence of str, optional
        The variables' names; "x0", "x1", … if left out.
    values : dict from names to sequences, optional
        The values behind each axis; 0, 1, … for names that are left out.

    Examples
    --------
    >>> table = JointTable([[0.1, 0.2], [0.3, 0.4]], names=["rain", "traffic"])
    >>> table.marginal("rain").p
    array([0.3, 0.7])
    >>> table.condition(traffic=1).p
    array([0.3333, 0.6667])
    >>> table.is_independent("rain", "traffic")
    False
    """

    def __init__(
        self, p: ArrayLike, names: Sequence[str] | None = None, values: Mapping[str, Sequence[Any]] | None = None
    ) -> None:
        table = np.array(p, dtype=np.float64)
        names = [f"x{i}" for i in range(table.ndim)] if names is None else list(names)
        if table.ndim == 0 or len(names) != table.ndim or len(set(names)) != len(names):
            raise ParameterError(f"JointTable: names must be {table.ndim} different ones, one an axis, got {names!r}.")
        if not (np.all(table >= 0.0) and abs(table.sum() - 1.0) <= 1e-9):
            raise ParameterError(
                f"JointTable: p must be probabilities >= 0 with the sum 1, got the least {table.min(initial=np.inf)} "
                f"and the sum {table.sum()}; divide counts by their sum, or use JointTable.from_data."
            )
        unknown = set(values or {}) - set(names)
        if unknown:
            raise ParameterError(f"JointTable: values must be of variables among {names}, got {sorted(unknown)}.")
        table.flags.writeable = False
        self._p = table
        self._names = tuple(names)
        self._values = {
            name: list((values or {}).get(name, range(k))) for name, k in zip(names, table.shape, strict=True)
        }
        for name, size in zip(names, table.shape, strict=True):
            if len(self._values[name]) != size or len(set(self._values[name])) != size:
                raise ParameterError(
                    f"JointTable: values of {name!r} must be {size} different ones, got {self._values[name]!r}."
                )

    @classmethod
    def from_data(
        cls, data: Mapping[str, ArrayLike], weights: ArrayLike | None = None, pseudocount: float = 0.0
    ) -> Self:
        """Return the table of shares in data: one column per variable.

        Parameters
        ----------
        data : dict from names to arrays of shape (n,)
            Values of any kind that can be sorted.
        weights : array of shape (n,), optional
            Non-negative; a weight of 2 counts as the same row twice.
        pseudocount : float
            Added to every cell's count, before they are divided by their sum.
        """
        columns = {name: np.unique(np.asarray(column), return_inverse=True) for name, column in data.items()}
        lengths = {np.size(codes) for _, codes in columns.values()}
        if len(lengths) != 1 or 0 in lengths:
            raise DataError(f"JointTable: columns must be of one length > 0, got {sorted(lengths)}.")
        counts = np.full([len(levels) for levels, _ in columns.values()], float(pseudocount))
        np.add.at(
            counts, tuple(codes for _, codes in columns.values()), 1.0 if weights is None else np.asarray(weights)
        )
        total = counts.sum()
        if not (np.all(counts >= 0.0) and total > 0.0 and np.isfinite(total)):
            raise DataError("JointTable: weights and pseudocount must be >= 0 and not all zero.")
        return cls(counts / total, list(data), {name: levels.tolist() for name, (levels, _) in columns.items()})

    @classmethod
    def from_conditional(
        cls, prior: JointTable, likelihood: ArrayLike, name: str, values: Sequence[Any] | None = None
    ) -> Self:
        """Return the table P(a) P(b|a) of a prior and a new variable, the last axis of the likelihood."""
        likelihood = np.asarray(likelihood, dtype=np.float64)
        if likelihood.shape[:-1] != prior.p.shape or not np.allclose(likelihood.sum(axis=-1), 1.0, atol=1e-9):
            raise ParameterError(
                f"JointTable: likelihood must have the shape {prior.p.shape} and one axis more, with sums of 1, "
                f"got shape {likelihood.shape}."
            )
        levels = {**prior.values, **({} if values is None else {name: values})}
        return cls(prior.p[..., None] * likelihood, [*prior.names, name], levels)

    @property
    def p(self) -> Array:
        """The probabilities, one axis per variable."""
        return self._p

    @property
    def names(self) -> tuple[str, ...]:
        """The variables' names, in the order of the axes."""
        return self._names

    @property
    def values(self) -> dict[str, list[Any]]:
        """The values of each variable, in the order of its axis."""
        return {name: list(levels) for name, levels in self._values.items()}

    def probability(self, **event: Hashable) -> float:
        """Return the probability that the named variables have the given values."""
        return float(self._slice(event).sum())

    def marginal(self, of: Names) -> Self:
        """Return the joint table of some variables, in the order in which they are named."""
        kept = self._list(of)
        return self._build(self._sum_to(kept), kept)

    def condition(self, **event: Hashable) -> Self:
        """Return the joint table of the other variables, given that the named ones have these values: Bayes' rule."""
        if len(event) == len(self._names):
            raise ParameterError("JointTable: the event must leave at least one variable.")
        part = self._slice(event)
        total = part.sum()
        if total == 0.0:
            raise DataError(f"JointTable: {event} has probability 0, so that nothing is known given it.")
        return self._build(part / total, [name for name in self._names if name not in event])

    def conditional(self, of: Names, given: Names) -> Array:
        """Return P(of | given), with the axes of `given`, then those of `of`; NaN where the condition is impossible."""
        wanted = self._list(of)
        given = self._list(given, but=of)
        of = wanted
        joint = self._sum_to([*given, *of])
        base = joint.sum(axis=tuple(range(len(given), joint.ndim)), keepdims=True)
        return np.where(base > 0.0, joint / np.where(base > 0.0, base, 1.0), np.nan)

    def is_independent(self, a: Names, b: Names, given: Names = (), tolerance: float = 1e-12) -> bool:
        """Return whether P(a, b | c) = P(a | c) P(b | c) wherever P(c) > 0, up to a difference in probability."""
        joint, product = self._split(a, b, given)
        return bool(np.all(np.abs(joint - product) <= tolerance))

    def mutual_information(self, a: Names, b: Names, given: Names = (), base: float = math.e) -> float:
        """Return I(a; b | c) = E log P(a, b | c)/(P(a | c) P(b | c)); base 2 gives bits."""
        joint, product = self._split(a, b, given)
        return max(float(np.sum(rel_entr(joint, product)) / math.log(_as_base(base))), 0.0)

    def entropy(self, of: Names | None = None, given: Names = (), base: float = math.e) -> float:
        """Return H(of | given) = H(of, given) - H(given); of all variables if none are named."""
        given = self._list(given)
        of = [name for name in self._names if name not in given] if of is None else self._list(of, but=given)
        both = np.sum(entr(self._sum_to([*of, *given])))
        return float((both - (np.sum(entr(self._sum_to(given))) if given else 0.0)) / math.log(_as_base(base)))

    def mean(self, of: Names | None = None) -> Array:
        """Return the means of variables whose values are numbers."""
        names = self._list(of or self._names)
        return np.array([self._sum_to([name]) @ self._numbers(name) for name in names])

    def covariance(self, of: Names | None = None) -> Array:
        """Return the covariance matrix of variables whose values are numbers."""
        names = self._list(of or self._names)
        centred = [self._numbers(name) - m for name, m in zip(names, self.mean(names), strict=True)]
        cov = np.empty((len(names), len(names)))
        for i, a in enumerate(names):
            for j, b in enumerate(names):
                joint = self._sum_to([a, b]) if a != b else np.diag(self._sum_to([a]))
                cov[i, j] = centred[i] @ joint @ centred[j]
        return cov

    def sample(self, size: Size = (), random_state: RandomState = None) -> dict[str, NDArray[Any]]:
        """Draw rows: a dict from names to arrays of values of shape `size`."""
        rng = np.random.default_rng(random_state)
        cells = rng.choice(self._p.size, size=size, p=self._p.ravel() / self._p.sum())
        codes = np.unravel_index(cells, self._p.shape)
        return {name: np.asarray(self._values[name])[code] for name, code in zip(self._names, codes, strict=True)}

    def __repr__(self) -> str:
        return f"JointTable({', '.join(f'{name}: {len(v)}' for name, v in self._values.items())})"

    def _build(self, p: Array, names: Sequence[str]) -> Self:
        return type(self)(p / p.sum(), names, {name: self._values[name] for name in names})

    def _list(self, names: Names, but: Sequence[str] = ()) -> list[str]:
        chosen = [names] if isinstance(names, str) else list(names)
        for name in chosen:
            if name not in self._names or name in but or chosen.count(name) > 1:
                raise ParameterError(
                    f"JointTable: variables must be named once each, among {', '.join(self._names)}, got {name!r}."
                )
        return chosen

    def _sum_to(self, names: Sequence[str]) -> Array:
        """Sum out all other variables; the axes are in the order of the names."""
        axes = [self._names.index(name) for name in names]
        rest = tuple(axis for axis in range(self._p.ndim) if axis not in axes)
        summed = self._p.sum(axis=rest)
        return np.transpose(summed, np.argsort(np.argsort(axes)))

    def _slice(self, event: Mapping[str, Hashable]) -> Array:
        """Return the cells in which the named variables have the given values, their axes gone."""
        self._list(list(event))
        index: list[Any] = [slice(None)] * self._p.ndim
        for name, value in event.items():
            if value not in self._values[name]:
                raise ParameterError(f"JointTable: {name} must be one of {self._values[name]!r}, got {value!r}.")
            index[self._names.index(name)] = self._values[name].index(value)
        return np.asarray(self._p[tuple(index)])

    def _split(self, a: Names, b: Names, given: Names) -> tuple[Array, Array]:
        """Return P(a, b, c) and P(a, c) P(b, c)/P(c), with one axis each for a, b and c."""
        first = self._list(a)
        second = self._list(b, but=first)
        third = self._list(given, but=[*first, *second])
        sizes = [math.prod(len(self._values[name]) for name in group) for group in (first, second, third)]
        joint = self._sum_to([*first, *second, *third]).reshape(sizes)
        base = joint.sum(axis=(0, 1), keepdims=True)
        product = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0, keepdims=True)
        return joint, product / np.where(base > 0.0, base, 1.0)

    def _numbers(self, name: str) -> Array:
        try:
            return np.asarray(self._values[name], dtype=np.float64)
        except (TypeError, ValueError):
            raise DataError(f"JointTable: the values of {name!r} must be numbers to have a mean.") from None


def _as_base(base: float) -> float:
    if not base > 1.0:
        raise ParameterError(f"JointTable: base must be > 1, got {base!r}; use e for nats, 2 for bits.")
    return base
