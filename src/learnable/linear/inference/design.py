r"""One pass over the rows gives what inference needs: the triangle R with RᵀR = X̃ᵀHX̃, leverages, and outer products.

X̃ has a first column of ones where there is an intercept. R comes from the products of the columns where these are far
from dependent, else from QR decompositions of blocks, stacked and decomposed again: products lose twice the digits that
the condition costs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from ...core.errors import DataError
from ...data.blocks import Blocks, Part, map_reduce

Array = NDArray[np.float64]

#: |R_jj| over the norm of column j, below which the column depends on those before it: a hundred roundings of 1e-12.
DEPENDENT = 1e-10
#: Reciprocal condition of unit-norm columns from which on products are decomposed: they lose six digits of sixteen. On
#: 100,000×41 that takes a third of the time of the QR.
WELL_CONDITIONED = 1e-3


class Design(NamedTuple):
    """The rows of a fit with the columns whose coefficients are free."""

    blocks: Any  #: X of the rows
    columns: NDArray[np.int64]  #: those of X that are free
    intercept: bool
    centre: Array | None = None  #: taken from the free columns: far from zero, rows have more digits about their mean

    @property
    def width(self) -> int:
        """Number of free coefficients of one score."""
        return len(self.columns) + self.intercept

    def rows(self, block: Any) -> Array:
        """Return X̃ of a block, dense."""
        X = self._free(block)
        return np.column_stack([np.ones(len(X)), X]) if self.intercept else X

    def scaled(self, block: Any, factor: Array) -> Array:
        """Return X̃ of a block, each row times its factor, in one pass."""
        X = self._free(block)
        if not self.intercept:
            return np.asarray(X * factor[:, None])
        out = np.empty((len(X), self.width))
        out[:, 0] = factor
        np.multiply(X, factor[:, None], out=out[:, 1:])
        return out

    def product(self, block: Any, B: Array) -> Array:
        """Return X̃B of a block."""
        X = self._free(block)
        return np.asarray(X @ B[1:] + B[0] if self.intercept else X @ B)

    def back(self, block: Any, V: Array) -> Array:
        """Return VᵀX̃ of a block."""
        products = V.T @ self._free(block)
        return np.column_stack([V.sum(axis=0), products]) if self.intercept else np.asarray(products)

    def _free(self, block: Any) -> Array:
        X = block.X.toarray() if sp.issparse(block.X) else np.asarray(block.X)
        X = X[:, self.columns] if len(self.columns) < X.shape[1] else X
        return X if self.centre is None else X - self.centre

    def cut(self, values: NDArray[Any], block: Any) -> NDArray[Any]:
        """Return those of values, one per row, that belong to a block."""
        return values[block.start : block.start + block.X.shape[0]]


def design_of(X: Any, columns: Sequence[int] | None, intercept: bool) -> Design:
    """Return the design of rows in memory."""
    free = np.arange(X.shape[1]) if columns is None else np.asarray(columns, dtype=np.int64)
    return Design(Blocks([Part(X)]), free, intercept)


def centred(design: Design, weight: Array, n_jobs: int | None = None) -> Design:
    """Return the design with its columns about their weighted means; without an intercept, as it is."""
    if not design.intercept:
        return design

    def part(block: Any) -> Array:
        share = design.cut(weight, block) / weight.sum()
        return np.asarray(share @ design.rows(block)[:, 1:])

    return design._replace(centre=map_reduce(design.blocks, part, np.add, n_jobs=n_jobs))


def triangle(design: Design, weight: Array, n_jobs: int | None = None) -> Array:
    """Return upper triangular R with RᵀR = X̃ᵀ diag(weight) X̃, weight ≥ 0 of shape (n,)."""
    root = np.sqrt(weight)
    quick = _triangle_of_products(design, root, n_jobs)
    if quick is not None:
        return quick

    def reduced(block: Any) -> Array:
        return np.asarray(np.linalg.qr(design.scaled(block, design.cut(root, block)), mode="r"))

    def merge(a: Array, b: Array) -> Array:
        return np.asarray(np.linalg.qr(np.vstack([a, b]), mode="r"))

    R = map_reduce(design.blocks, reduced, merge, n_jobs=n_jobs)
    if len(R) < design.width:
        R = np.vstack([R, np.zeros((design.width - len(R), design.width))])
    return R


def _triangle_of_products(design: Design, root: Array, n_jobs: int | None) -> Array | None:
    """Return R by Cholesky's method; None where columns are too near to dependent for it."""

    def products(block: Any) -> Array:
        Z = design.scaled(block, design.cut(root, block))
        return np.asarray(Z.T @ Z)

    G = map_reduce(design.blocks, products, lambda a, b: a + b, n_jobs=n_jobs)
    scale = np.sqrt(np.diag(G))
    if not (np.isfinite(G).all() and (scale > 0.0).all() and len(G)):
        return None
    try:
        L = np.linalg.cholesky(G / np.outer(scale, scale))
    except np.linalg.LinAlgError:
        return None
    sizes = np.linalg.svd(L, compute_uv=False)
    if sizes[-1] < WELL_CONDITIONED * sizes[0]:
        return None
    return np.asarray(L.T * scale)


def check_independent(owner: str, R: Array, names: Sequence[str]) -> None:
    """Raise DataError that names the columns which depend on those before them."""
    norm = np.linalg.norm(R, axis=0)
    dependent = np.flatnonzero(np.abs(np.diag(R)) <= DEPENDENT * np.where(norm > 0, norm, 1.0))
    if len(dependent):
        shown = ", ".join(str(names[j]) for j in dependent[:5]) + (", …" if len(dependent) > 5 else "")
        raise DataError(
            f"{owner}: {shown} depend{'s' if len(dependent) == 1 else ''} linearly on the columns before, so the "
            "coefficients are not determined and have no standard errors; drop "
            f"{'it' if len(dependent) == 1 else 'them'}."
        )


def independent_columns(R: Array) -> NDArray[np.int64]:
    """Return the columns of R that do not depend on those before them."""
    basis = np.zeros((len(R), 0))
    kept: list[int] = []
    for j in range(R.shape[1]):
        column = R[:, j]
        norm = float(np.linalg.norm(column))
        for _ in range(2):  # the second projection removes what rounding left of the first
            column = column - basis @ (basis.T @ column)
        left = float(np.linalg.norm(column))
        if left > DEPENDENT * norm and len(kept) < len(R):
            kept.append(j)
            basis = np.column_stack([basis, column / left])
    return np.array(kept, dtype=np.int64)


def inverse_of(R: Array) -> Array:
    """Return R⁻¹."""
    return np.asarray(solve_triangular(R, np.eye(len(R)), check_finite=False))


def leverages(design: Design, inverse: Array, weight: Array, n_jobs: int | None = None) -> Array:
    """Return hᵢ = weightᵢ ‖x̃ᵢᵀR⁻¹‖², the weight of a row in its own fit."""

    def part(block: Any) -> list[Array]:
        Z = design.product(block, inverse)
        return [np.einsum("ij,ij->i", Z, Z) * design.cut(weight, block)]

    return np.concatenate(map_reduce(design.blocks, part, lambda a, b: [*a, *b], n_jobs=n_jobs))


def score_products(design: Design, scores: Array, n_jobs: int | None = None) -> Array:
    """Return Σᵢ vᵢvᵢᵀ with vᵢ = uᵢ ⊗ x̃ᵢ, for scores u of shape (n, m)."""

    def part(block: Any) -> Array:
        V = outer_rows(design, block, design.cut(scores, block))
        return np.asarray(V.T @ V)

    return map_reduce(design.blocks, part, lambda a, b: a + b, n_jobs=n_jobs)


def cluster_products(
    design: Design, scores: Array, cluster: NDArray[np.int64], count: int, n_jobs: int | None = None
) -> Array:
    """Return Σ_c V_cV_cᵀ with V_c the sum of vᵢ over the rows of cluster c."""
    width = design.width * scores.shape[1]

    def part(block: Any) -> Array:
        V = outer_rows(design, block, design.cut(scores, block))
        member = design.cut(cluster, block)
        incidence = sp.csr_array((np.ones(len(V)), (member, np.arange(len(V)))), shape=(count, len(V)))
        return np.asarray(incidence @ V).reshape(count, width)

    sums = map_reduce(design.blocks, part, lambda a, b: a + b, n_jobs=n_jobs)
    return np.asarray(sums.T @ sums)


def outer_rows(design: Design, block: Any, scores: Array) -> Array:
    """Return uᵢ ⊗ x̃ᵢ of every row of a block: shape (n, m·p)."""
    if scores.shape[1] == 1:
        return design.scaled(block, scores[:, 0])
    rows = design.rows(block)
    return np.asarray((scores[:, :, None] * rows[:, None, :]).reshape(len(rows), -1))
