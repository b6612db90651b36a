"""Least squares in rational arithmetic: the answer itself, for tables small enough to wait for it.

    min_{b, β}  Σᵢ wᵢ (yᵢ − b − xᵢᵀβ)² + α‖β‖²,   of all minimisers the one with the smallest ‖β‖.

Every float64 is a fraction, so that nothing is rounded before the final conversion.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

import mpmath
import numpy as np

_DIGITS = 60  # of the square roots, which alone are not rational


class ExactFit(NamedTuple):
    """The solution, each number rounded once."""

    coef: np.ndarray  #: (d, k)
    intercept: np.ndarray  #: (k,)
    rank: int  #: of the centred X
    residual_norm: np.ndarray  #: (k,), √Σ w r²


def exact_least_squares(X, y, weight=None, alpha=0.0, *, intercept=True) -> ExactFit:
    """Solve the problem of the module's docstring for X (n, d) and y (n, k)."""
    rows, targets = _fractions(X), _fractions(y)
    w = [Fraction(1)] * len(rows) if weight is None else [Fraction(float(v)) for v in weight]
    x_mean, y_mean = _means(rows, w, intercept), _means(targets, w, intercept)
    Z, T = _moved(rows, x_mean), _moved(targets, y_mean)
    gram, cross = _products(Z, Z, w), _products(Z, T, w)
    rank = _echelon(gram)[1]
    for j in range(len(gram)):
        gram[j][j] += Fraction(float(alpha))
    coef = _minimum_norm_solution(gram, cross)
    fitted = _product(Z, coef)
    level = [m - s for m, s in zip(y_mean, _product([x_mean], coef)[0], strict=True)]
    squares = [sum(w[i] * (T[i][t] - fitted[i][t]) ** 2 for i in range(len(rows))) for t in range(len(y_mean))]
    return ExactFit(
        _floats(coef, (len(x_mean), len(y_mean))),
        np.array([float(v) for v in level]) if intercept else np.zeros(len(y_mean)),
        rank,
        np.array([_root(square) for square in squares]),
    )


def exact_unit_errors(X, weight=None, *, intercept=True) -> np.ndarray:
    """Return √diag((DᵀWD)⁻¹) of the design D = [1, X], the intercept first: the standard errors for σ = 1."""
    rows = _fractions(X)
    w = [Fraction(1)] * len(rows) if weight is None else [Fraction(float(v)) for v in weight]
    D = [[Fraction(1), *row] if intercept else row for row in rows]
    p = len(D[0])
    identity = [[Fraction(int(i == j)) for j in range(p)] for i in range(p)]
    inverse = _solve(_products(D, D, w), identity)
    return np.array([_root(inverse[j][j]) for j in range(p)])


def _fractions(array) -> list[list[Fraction]]:
    array = np.asarray(array, dtype=np.float64)
    return [[Fraction(float(v)) for v in row] for row in array.reshape(len(array), -1)]


def _means(rows, w, wanted):
    total = sum(w)
    return [sum(wi * row[j] for wi, row in zip(w, rows, strict=True)) / total * wanted for j in range(len(rows[0]))]


def _moved(rows, mean):
    return [[v - m for v, m in zip(row, mean, strict=True)] for row in rows]


def _products(A, B, w):
    """Return AᵀWB."""
    weighted = [[wi * v for v in row] for wi, row in zip(w, B, strict=True)]
    return _product([list(column) for column in zip(*A, strict=True)], weighted)


def _product(A, B):
    columns = list(zip(*B, strict=True))
    return [[sum(a * b for a, b in zip(row, column, strict=True)) for column in columns] for row in A]


def _echelon(A):
    """Return the reduced row echelon form and the rank (= number of pivots)."""
    A = [list(row) for row in A]
    rank = 0
    for column in range(len(A[0])):
        pivot = next((i for i in range(rank, len(A)) if A[i][column] != 0), None)
        if pivot is None:
            continue
        A[rank], A[pivot] = A[pivot], A[rank]
        A[rank] = [v / A[rank][column] for v in A[rank]]
        for i in range(len(A)):
            if i != rank and A[i][column] != 0:
                factor = A[i][column]
                A[i] = [v - factor * u for v, u in zip(A[i], A[rank], strict=True)]
        rank += 1
    return A, rank


def _solve(A, B):
    """Return one solution of a consistent system AX = B, with zeros where it is free."""
    p = len(A)
    reduced, _ = _echelon([[*a, *b] for a, b in zip(A, B, strict=True)])
    X = [[Fraction(0)] * len(B[0]) for _ in range(p)]
    for row in reduced:
        pivot = next((j for j, v in enumerate(row) if v != 0), None)
        if pivot is not None and pivot < p:
            X[pivot] = row[p:]
    return X


def _minimum_norm_solution(gram, cross):
    """Return the solution in the range of the symmetric matrix G: β = Gz with G²z = c."""
    return _product(gram, _solve(_product(gram, gram), cross))


def _floats(rows, shape) -> np.ndarray:
    return np.array([[float(v) for v in row] for row in rows]).reshape(shape)


def _root(square: Fraction) -> float:
    with mpmath.workdps(_DIGITS):
        return float(mpmath.sqrt(mpmath.mpf(square.numerator) / square.denominator))
