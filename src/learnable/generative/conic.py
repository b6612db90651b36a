r"""The boundary between two classes with normal densities: its equation, and what kind of surface it is.

    log π_a N(x; μ_a, Σ_a) − log π_b N(x; μ_b, Σ_b)  =  xᵀAx + bᵀx + c  =  0
    A = ½(Σ_b⁻¹ − Σ_a⁻¹),   b = Σ_a⁻¹μ_a − Σ_b⁻¹μ_b,
    c = ½(μ_bᵀΣ_b⁻¹μ_b − μ_aᵀΣ_a⁻¹μ_a) + ½ log(|Σ_b|/|Σ_a|) + log(π_a/π_b)

With one covariance A is zero and the boundary a hyperplane; otherwise it is a quadric, in the plane a conic section.
Its kind follows from the signs of A's eigenvalues, and, after the square is completed, of the constant.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import ParameterError

Array = NDArray[np.float64]

_ZERO = 1e-9  # of the sizes of the terms that a number was made of


@dataclass(frozen=True)
class Boundary:
    """The surface xᵀAx + bᵀx + c = 0 on which two classes are equally probable; the first is so where it is positive.

    Attributes
    ----------
    matrix : array of shape (d, d)
        A, symmetric.
    vector : array of shape (d,)
        b.
    constant : float
        c.
    kind : str
        In the plane "line", "ellipse", "circle", "hyperbola", "parabola", "two intersecting lines", "two parallel
        lines", "one line", "one point", "none" or "everywhere"; on the line "one point", "two points", …; in more
        dimensions "hyperplane", "ellipsoid", "hyperboloid", "paraboloid", "cone", "cylinder", "two hyperplanes", ….
    classes : tuple
        The two labels.
    """

    matrix: Array
    vector: Array
    constant: float
    kind: str
    classes: tuple[Any, Any] = ("a", "b")

    def evaluate(self, X: Any) -> Array:
        """Return xᵀAx + bᵀx + c of every row: the log of the ratio of the two classes' probabilities."""
        X = np.atleast_2d(np.asarray(X, dtype=np.float64))
        return np.einsum("ij,ij->i", X @ self.matrix, X) + X @ self.vector + self.constant

    def equation(self, names: Any = None, digits: int = 4) -> str:
        """Return the equation in words, such as "0.5 x0² − x0 x1 + 2 x1 − 1 = 0"."""
        d = len(self.vector)
        names = [f"x{j}" for j in range(d)] if names is None else list(names)
        terms = [(self.matrix[i, i], f"{names[i]}²") for i in range(d)]
        terms += [(2 * self.matrix[i, j], f"{names[i]} {names[j]}") for i in range(d) for j in range(i + 1, d)]
        terms += [*zip(self.vector.tolist(), names, strict=True), (self.constant, "")]
        words = ""
        for value, name in terms:
            if value != 0.0:
                sign = ("−" if value < 0 else "") if not words else (" − " if value < 0 else " + ")
                words += f"{sign}{abs(value):.{digits}g}{' ' + name if name else ''}"
        return f"{words or '0'} = 0"

    def __str__(self) -> str:
        return f"{self.kind}: {self.equation()}"


def boundary_between(
    classes: tuple[Any, Any], priors: tuple[float, float], means: tuple[Array, Array], precisions: Any, log_dets: Any
) -> Boundary:
    """Return the boundary between two normal classes, from their precision matrices Σ⁻¹ and log|Σ|."""
    P, Q = precisions
    centre = 0.5 * (means[0] + means[1])  # about which nothing cancels
    m, k = means[0] - centre, means[1] - centre
    A = 0.5 * (Q - P)
    b = P @ m - Q @ k
    c = 0.5 * (k @ Q @ k - m @ P @ m) + 0.5 * (log_dets[1] - log_dets[0]) + float(np.log(priors[0]) - np.log(priors[1]))
    scale = 1.0 / np.sqrt(np.maximum(np.diag(P), np.diag(Q)))
    size = float(max(np.abs(P * np.outer(scale, scale)).max(), np.abs(Q * np.outer(scale, scale)).max()))
    kind = kind_of(A * np.outer(scale, scale), b * scale, c, size)
    if np.abs(A * np.outer(scale, scale)).max() <= _ZERO * size:
        A = np.zeros_like(A)
    if kind == "ellipse" and len(b) == 2 and is_multiple_of_identity(A):
        kind = "circle"
    if kind == "ellipsoid" and is_multiple_of_identity(A):
        kind = "sphere"
    return Boundary(A, b - 2 * A @ centre, float(c - b @ centre + centre @ A @ centre), kind, classes)


def is_multiple_of_identity(A: Array) -> bool:
    """Tell whether A is a number times the identity."""
    level = np.trace(A) / len(A)
    return bool(np.abs(A - level * np.eye(len(A))).max() <= _ZERO * abs(level))


def kind_of(A: Array, b: Array, c: float, size: float = 0.0) -> str:
    """Return what xᵀAx + bᵀx + c = 0 is.

    Parameters
    ----------
    A, b, c : array of shape (d, d), array of shape (d,), float
        The equation.
    size : float
        Of the numbers whose differences A's entries are; below 1e-9 of it they count as zero.

    Examples
    --------
    >>> import numpy as np
    >>> kind_of(np.diag([1.0, 2.0]), np.zeros(2), -1.0), kind_of(np.diag([1.0, -1.0]), np.zeros(2), 0.0)
    ('ellipse', 'two intersecting lines')
    """
    A, b = np.asarray(A, dtype=np.float64), np.asarray(b, dtype=np.float64)
    d = len(b)
    if A.shape != (d, d):
        raise ParameterError(f"kind_of: A must have shape ({d}, {d}), got {A.shape}.")
    values, axes = np.linalg.eigh(0.5 * (A + A.T))
    turned = axes.T @ b
    curved = np.abs(values) > _ZERO * max(size, float(np.abs(values).max(initial=0.0)))
    linear = np.abs(turned) > _ZERO * max(float(np.abs(b).max(initial=0.0)), np.finfo(float).tiny)
    squares = turned[curved] ** 2 / (4.0 * values[curved])
    rest = c - squares.sum()
    level = 0 if abs(rest) <= _ZERO * max(abs(c), float(np.abs(squares).sum())) else int(np.sign(rest))
    up, down = int((values[curved] > 0).sum()), int((values[curved] < 0).sum())
    slanted = bool((linear & ~curved).any())
    if up + down == 0:
        flat = {1: "one point", 2: "line"}.get(d, "hyperplane")
        return flat if slanted else ("none" if c != 0.0 else "everywhere")
    if slanted:
        full = up + down == d - 1
        return {1: "none", 2: "parabola"}.get(d, "paraboloid" if full else "parabolic cylinder")
    if min(up, down) == 0:
        outside = level == 0 or (level > 0) == (up > 0)
        return _one_sided(d, up + down, level, empty=outside)
    if d == 2:
        return "two intersecting lines" if level == 0 else "hyperbola"
    if up + down < d:
        return "two hyperplanes" if level == 0 and up + down == 2 else "cylinder"
    return "cone" if level == 0 else "hyperboloid"


def _one_sided(d: int, rank: int, level: int, empty: bool) -> str:
    """Return the kind of Σ λᵢuᵢ² = −level with all λ of one sign."""
    if empty and level != 0:
        return "none"
    if d == 1:
        return "one point" if level == 0 else "two points"
    if rank == 1:
        lines = {2: ("one line", "two parallel lines")}.get(d, ("one hyperplane", "two parallel hyperplanes"))
        return lines[0 if level == 0 else 1]
    if rank == d:
        return "one point" if level == 0 else ("ellipse" if d == 2 else "ellipsoid")
    return "plane of fewer dimensions" if level == 0 else "cylinder"
