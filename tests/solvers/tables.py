"""Small tables, their blocks, and how far a fit is from the exact one, in units that no scaling changes."""

from itertools import pairwise

import numpy as np
import scipy.sparse as sp

from learnable.data import Blocks, Part

EPS = float(np.finfo(np.float64).eps)


def blocks_of(X, y=None, weight=None, *, parts=1, rows=None):
    """Return the rows as blocks, handed over in `parts` pieces of unequal size."""
    cuts = sorted({0, X.shape[0], *(X.shape[0] * k * k // parts**2 for k in range(1, parts))})
    pieces = [
        Part(*(None if column is None else column[start:stop] for column in (X, y, weight)))
        for start, stop in pairwise(cuts)
    ]
    return Blocks(pieces, rows)


def random_table(seed, n, d, k=1, *, weighted=False, mean=0.0):
    """Return X (n, d), y (n, k) that is partly linear in X, and weights or None."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) + mean
    y = (X - mean) @ rng.normal(size=(d, k)) + rng.normal(size=(n, k))
    return X, y, rng.uniform(0.1, 3.0, n) if weighted else None


def nearly_collinear_table(seed, closeness, n=40):
    """Return a table whose last two columns differ by `closeness` of their size."""
    X, y, _ = random_table(seed, n, 4)
    X[:, 3] = X[:, 2] + closeness * X[:, 3]
    return X, y


def random_sparse(seed, n, d, density=0.3):
    rng = np.random.default_rng(seed)
    return sp.random_array((n, d), density=density, rng=rng, data_sampler=rng.standard_normal, format="csr")


def condition_number(X, weight=None, alpha=0.0, *, intercept=True):
    """Return κ₂ of the design [1, X] with weights and penalty, its columns scaled to a largest entry of about one."""
    D = np.column_stack([np.ones(len(X)), X]) if intercept else X
    if weight is not None:
        D = np.sqrt(weight)[:, None] * D
    if alpha > 0:
        D = np.vstack([D, np.sqrt(alpha) * np.eye(D.shape[1])[int(intercept) :]])
    top = np.abs(D).max(axis=0)
    return float(np.linalg.cond(np.ldexp(D, -np.frexp(top)[1])))


def coefficient_error(found, exact, X, y):
    """Return max |Δβ| / max |β| of the worst target, each column and target scaled to a largest entry of about one."""
    exponents = np.frexp(np.abs(X).max(axis=0))[1][:, None] - np.frexp(np.abs(y).max(axis=0))[1]
    found, exact = np.ldexp(found, exponents), np.ldexp(exact, exponents)
    size = np.abs(exact).max(axis=0)
    error = np.abs(found - exact).max(axis=0)
    return float(np.max(error / np.where(size > 0, size, 1.0)))


def own_units_error(found, exact):
    """Return ‖Δβ‖ / ‖β‖ in the columns' own units, free of overflow."""
    exponent = int(np.frexp(np.abs(exact).max())[1])
    return float(np.linalg.norm(np.ldexp(found - exact, -exponent)) / np.linalg.norm(np.ldexp(exact, -exponent)))
