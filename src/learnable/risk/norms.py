r"""Norms as penalties: Euclidean, groups of columns, the largest weight, total variation, the nuclear norm; your own.

A norm Ω is convex and positively homogeneous, Ω(cw) = cΩ(w) for c ≥ 0. Its conjugate is then no number but a set,

$$ \Omega^*(u) = 0 \;\text{ on }\; \Omega^\circ(u) \le 1, \qquad
   \Omega^\circ(u) = \sup_{\Omega(w) \le 1} \langle u, w \rangle, $$

the unit ball of the dual norm, and its proximal operator takes the projection onto that ball away. Weights are a
vector of p numbers or a (p, k) matrix, one column per output. As in `risk.penalties`, the strength λ multiplies the
whole penalty.

Reference: F. Bach, R. Jenatton, J. Mairal and G. Obozinski, Optimization with sparsity-inducing penalties, Foundations
and Trends in Machine Learning 4, 2012.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core.errors import ParameterError
from ._variation_kernels import variation_prox
from .penalties import Array

_MOST_STEPS = 200  # proximal steps to the supremum that a conjugate is
_FARTHEST = 1e8  # weights beyond which there is none
_ROUNDING = 1e-12  # share of Σ|u| up to which a sum that has to vanish counts as zero


class _Norm:
    """A penalty that is λ times a norm (or seminorm) with a known dual norm."""

    strength: float

    def __post_init__(self) -> None:
        if not 0.0 <= self.strength < math.inf:
            raise ParameterError(f"{type(self).__name__}: strength must be >= 0 and finite, got {self.strength!r}.")

    def dual_norm(self, u: Array) -> float:
        """Return Ω°(u) of the norm without its strength."""
        raise NotImplementedError

    def conjugate(self, u: Array) -> float:
        """Return 0 where Ω°(u) <= λ, else inf."""
        return 0.0 if self.dual_norm(u) <= self.strength else math.inf


@dataclass(frozen=True)
class NormPenalty(_Norm):
    r"""The Euclidean norm itself, not squared; with a kernel, the norm of the function.

    $$ \Omega(w) = \lambda \lVert w \rVert_2 $$

    Parameters
    ----------
    strength : float
        λ >= 0.

    Examples
    --------
    >>> penalty = NormPenalty(2.0)
    >>> penalty.value(np.array([3.0, -4.0])), penalty.prox(np.array([3.0, -4.0]), step=0.5)
    (10.0, array([ 2.4, -3.2]))
    """

    strength: float = 1.0

    def value(self, w: Array) -> float:
        """Return λ‖w‖."""
        return self.strength * float(np.linalg.norm(w))

    def prox(self, w: Array, step: float) -> Array:
        """Return w shortened by step λ, and no further than to zero."""
        return _shortened(w, step * self.strength)

    def dual_norm(self, u: Array) -> float:
        """Return ‖u‖."""
        return float(np.linalg.norm(u))


@dataclass(frozen=True)
class GroupPenalty(_Norm):
    r"""The sum of Euclidean norms of groups of columns, which enter a model together or not at all.

    $$ \Omega(w) = \lambda \sum_g \sqrt{p_g} \, \lVert w_g \rVert_2 $$

    With several outputs a group holds its columns' weights for all of them. Columns that each are a group of their
    own, with several outputs, make the penalty of `MultiTaskLasso`.

    Parameters
    ----------
    groups : sequence of int or str
        The group of each column.
    strength : float
        λ >= 0.

    References
    ----------
    M. Yuan and Y. Lin, Model selection and estimation in regression with grouped variables, JRSS B 68, 2006.

    Examples
    --------
    >>> penalty = GroupPenalty(("size", "size", "age"))
    >>> round(penalty.value(np.array([3.0, -4.0, 1.0])), 4), penalty.prox(np.array([0.6, -0.8, 2.0]), step=1.0)
    (8.0711, array([0., 0., 1.]))
    """

    groups: tuple[Any, ...]
    strength: float = 1.0

    def _members(self, w: Array) -> list[Any]:
        names = np.asarray(self.groups)
        if names.shape != (len(w),):
            raise ParameterError(
                f"GroupPenalty: groups must name the group of each of {len(w)} columns; got {names.shape[0]} names."
            )
        return [np.flatnonzero(names == name) for name in dict.fromkeys(names.tolist())]

    def value(self, w: Array) -> float:
        """Return λ Σ √p_g ‖w_g‖."""
        return self.strength * sum(math.sqrt(len(g)) * float(np.linalg.norm(w[g])) for g in self._members(w))

    def prox(self, w: Array, step: float) -> Array:
        """Return each group shortened by step λ √p_g, and no further than to zero."""
        out = np.empty_like(w)
        for g in self._members(w):
            out[g] = _shortened(w[g], step * self.strength * math.sqrt(len(g)))
        return out

    def dual_norm(self, u: Array) -> float:
        """Return the largest ‖u_g‖/√p_g."""
        return max(float(np.linalg.norm(u[g])) / math.sqrt(len(g)) for g in self._members(u))


@dataclass(frozen=True)
class SupNormPenalty(_Norm):
    r"""The largest absolute weight, which makes the large weights equal.

    $$ \Omega(w) = \lambda \max_j |w_j| $$

    Parameters
    ----------
    strength : float
        λ >= 0.

    Examples
    --------
    >>> penalty = SupNormPenalty()
    >>> penalty.value(np.array([3.0, -4.0, 1.0])), penalty.prox(np.array([3.0, -4.0, 1.0]), step=2.0)
    (4.0, array([ 2.5, -2.5,  1. ]))
    """

    strength: float = 1.0

    def value(self, w: Array) -> float:
        """Return λ max|wⱼ|."""
        return self.strength * float(np.abs(w).max(initial=0.0))

    def prox(self, w: Array, step: float) -> Array:
        """Return w clipped at the level that takes away step λ in all."""
        level = step * self.strength
        size = np.sort(np.abs(w), axis=None)[::-1]
        if size.sum() <= level:
            return np.zeros_like(w)
        cut = (np.cumsum(size) - level) / np.arange(1.0, 1.0 + len(size))
        top = float(cut[np.flatnonzero(size > cut)[-1]])
        return np.clip(w, -top, top)

    def dual_norm(self, u: Array) -> float:
        """Return Σ|uⱼ|."""
        return float(np.abs(u).sum())


@dataclass(frozen=True)
class TotalVariationPenalty(_Norm):
    r"""The jumps between neighbouring columns, and their sizes too: the fused lasso.

    $$ \Omega(w) = \lambda \Bigl( \rho \sum_j |w_j| + (1 - \rho) \sum_j |w_{j+1} - w_j| \Bigr) $$

    The columns are taken in their order, as of a signal or a spectrum. With ρ = 0 a common level costs nothing.
    A segment of columns is the atom of this norm: Ω°(u) is the largest |sum of u over a segment|/Ω(segment), which
    takes O(p²) time.

    Parameters
    ----------
    strength : float
        λ >= 0.
    l1_ratio : float
        ρ in [0, 1]: 0 penalises jumps alone.

    References
    ----------
    R. Tibshirani, M. Saunders, S. Rosset, J. Zhu and K. Knight, Sparsity and smoothness via the fused lasso, JRSS B 67,
    2005; for the proximal operator J. Friedman, T. Hastie, H. Höfling and R. Tibshirani, Pathwise coordinate
    optimization, Annals of Applied Statistics 1, 2007, lemma A.1.

    Examples
    --------
    >>> penalty = TotalVariationPenalty()
    >>> penalty.value(np.array([1.0, 3.0, 3.0])), penalty.prox(np.array([1.0, 3.0, 5.0]), step=1.0)
    (2.0, array([2., 3., 4.]))
    """

    strength: float = 1.0
    l1_ratio: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0.0 <= self.l1_ratio <= 1.0:
            raise ParameterError(f"TotalVariationPenalty: l1_ratio must be in [0, 1], got {self.l1_ratio!r}.")

    def value(self, w: Array) -> float:
        """Return λ(ρ Σ|wⱼ| + (1 − ρ) Σ|wⱼ₊₁ − wⱼ|)."""
        jumps = float(np.abs(np.diff(w, axis=0)).sum())
        return self.strength * (self.l1_ratio * float(np.abs(w).sum()) + (1.0 - self.l1_ratio) * jumps)

    def prox(self, w: Array, step: float) -> Array:
        """Return the prox of the jumps, soft-thresholded at step λρ."""
        columns = np.ascontiguousarray(np.asarray(w, dtype=np.float64).reshape(len(w), -1).T)
        out = np.empty_like(columns)
        for column, level in zip(columns, out, strict=True):
            variation_prox(column, step * self.strength * (1.0 - self.l1_ratio), level)
        threshold = step * self.strength * self.l1_ratio
        return (out - np.clip(out, -threshold, threshold)).T.reshape(np.shape(w))

    def free_directions(self, p: int) -> Array | None:
        """Return the directions that cost nothing, (p, 1): a common level; None if every one costs something."""
        return np.ones((p, 1)) if self.l1_ratio == 0.0 else None

    def dual_norm(self, u: Array) -> float:
        """Return the largest |sum over a segment|/(ρ length + (1 − ρ) inner ends), over all outputs."""
        columns = np.asarray(u, dtype=np.float64).reshape(len(u), -1)
        return max(self._dual_norm(column) for column in columns.T)

    def _dual_norm(self, u: Array) -> float:
        p = len(u)
        sums = np.r_[0.0, np.cumsum(u)]
        if self.l1_ratio == 0.0:  # the whole chain costs nothing
            if abs(sums[-1]) > _ROUNDING * float(np.abs(u).sum()):
                return math.inf
            sums = sums - sums[-1] * np.arange(p + 1.0) / p
        first, last = np.triu_indices(p + 1, 1)
        ends = (first > 0).astype(np.float64) + (last < p)
        cost = self.l1_ratio * (last - first) + (1.0 - self.l1_ratio) * ends
        paid = cost > 0.0
        return float(np.max(np.abs(sums[last] - sums[first])[paid] / cost[paid], initial=0.0))


@dataclass(frozen=True)
class NuclearPenalty(_Norm):
    r"""The sum of the singular values of a (p, k) matrix of weights, which lowers its rank.

    $$ \Omega(W) = \lambda \lVert W \rVert_* $$

    Parameters
    ----------
    strength : float
        λ >= 0.

    References
    ----------
    M. Fazel, Matrix Rank Minimization with Applications, 2002.

    Examples
    --------
    >>> penalty = NuclearPenalty()
    >>> penalty.value(np.diag([3.0, 1.0])), penalty.prox(np.diag([3.0, 1.0]), step=2.0).round(12)
    (4.0, array([[1., 0.], [0., 0.]]))
    """

    strength: float = 1.0

    def value(self, w: Array) -> float:
        """Return λ Σ σᵢ."""
        return self.strength * float(np.linalg.svd(_matrix(w), compute_uv=False).sum())

    def prox(self, w: Array, step: float) -> Array:
        """Return the matrix with its singular values lowered by step λ, and no further than to zero."""
        U, sigma, V = np.linalg.svd(_matrix(w), full_matrices=False)
        lowered = np.maximum(sigma - step * self.strength, 0.0)
        kept = lowered > 0.0
        return np.asarray((U[:, kept] * lowered[kept]) @ V[kept]).reshape(np.shape(w))

    def dual_norm(self, u: Array) -> float:
        """Return the largest singular value."""
        return float(np.linalg.norm(_matrix(u), 2))


@dataclass(frozen=True)
class ProximalPenalty:
    r"""A penalty of your own: its value and its proximal operator, as functions of the array of weights.

    Parameters
    ----------
    function : callable
        w ↦ Ω(w), convex.
    operator : callable
        (w, step) ↦ the v that minimises Ω(v) + ‖v − w‖²/(2 step).
    dual : callable or None
        u ↦ sup over w of ⟨u, w⟩ − Ω(w). Without it, the supremum is found by proximal steps, to about 13 digits.

    Examples
    --------
    >>> norm = ProximalPenalty(lambda w: abs(w).sum(), lambda w, step: w - np.clip(w, -step, step))
    >>> norm.value(np.array([3.0, -4.0])), norm.conjugate(np.array([0.5, -1.0])), norm.conjugate(np.array([2.0, 0.0]))
    (7.0, 0.0, inf)
    """

    function: Callable[[Array], float]
    operator: Callable[[Array, float], Array]
    dual: Callable[[Array], float] | None = None

    def value(self, w: Array) -> float:
        """Return Ω(w)."""
        return float(self.function(w))

    def prox(self, w: Array, step: float) -> Array:
        """Return the v that minimises Ω(v) + ‖v − w‖²/(2 step)."""
        return np.asarray(self.operator(w, step), dtype=np.float64)

    def conjugate(self, u: Array) -> float:
        """Return Ω*(u): given, or found by proximal steps, whose points run away where there is no least value."""
        if self.dual is not None:
            return float(self.dual(u))
        w = np.zeros_like(np.asarray(u, dtype=np.float64))
        step = 1.0
        for _ in range(_MOST_STEPS):  # proximal points of Ω(w) − ⟨u, w⟩: u + (w − new)/step is a subgradient at new
            new = self.prox(w + step * u, step)
            off = float(np.abs(new - w).max(initial=0.0)) / step
            w = new
            if off <= 1e-13 * float(np.abs(u).max(initial=0.0)):
                return float(np.vdot(u, w)) - self.value(w)
            if not float(np.abs(w).max()) < _FARTHEST:
                break
            step = min(2.0 * step, 1e6)
        return math.inf


def _shortened(w: Array, length: float) -> Array:
    """Return w shortened by `length`, and no further than to zero."""
    size = float(np.linalg.norm(w))
    return w * (1.0 - length / size) if size > length else np.zeros_like(w)


def _matrix(w: Array) -> Array:
    return np.asarray(w, dtype=np.float64).reshape(len(w), -1)
