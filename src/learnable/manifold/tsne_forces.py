r"""Affinities of t-SNE and the two parts of its gradient: attraction along edges, repulsion between all pairs.

With wᵢⱼ = 1/(1 + ‖yᵢ − yⱼ‖²) and Z = Σᵢ≠ⱼ wᵢⱼ, KL(P‖Q) = Σ pᵢⱼ log pᵢⱼ + Σ pᵢⱼ log(1 + ‖yᵢ − yⱼ‖²) + log Z, and

    ∂KL/∂yᵢ = 4 (Σⱼ pᵢⱼ wᵢⱼ (yᵢ − yⱼ) − Z⁻¹ Σⱼ wᵢⱼ² (yᵢ − yⱼ)).

The second sum is −½ times the gradient of the potential φ(y) = Σⱼ 1/(1 + ‖y − yⱼ‖²) at yᵢ, and Z = Σᵢ φ(yᵢ) − n. So
in a plane one convolution gives all of it: the rows are spread over a grid by cubic B-splines, a Fourier transform
multiplies the grid with the kernel, and value and slope of φ are read from the grid by the same splines. Splines of
values at nodes need a filter, 6/(4 + 2cos ω) for each axis; it is applied twice, for rows and for places, within
the transform of the kernel.

References: L. van der Maaten and G. Hinton, Visualizing data using t-SNE, 2008; G. Linderman and others, Fast
interpolation-based t-SNE, Nature Methods 16 (2019), whose grids carry four sets of charges; M. Unser, Splines, IEEE
Signal Processing Magazine 16 (1999).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy import fft

from ..core.threads import TaskTeam
from ._tsne_kernels import attract, attract_plane, calibrate, gather, repel_all, spread

Array = NDArray[Any]

#: Rows of one task: 10 µs to 1 ms of gathering, 5 ms of all pairs of 20,000 rows.
_ROWS = 4096
_ROWS_OF_PAIRS = 256
#: Distance of two nodes: of 3,000 normal rows of deviation 1 (10) the error of all forces is 0.1 % (1 %) of their norm;
#: with 0.33 it is half, with 0.5 twice as large. A picture that is small has at least so many nodes a side, and
#: the distance of nodes is then one of a few, as far as the least.
_SPACING = 0.4
_LEAST_NODES = 64
_LEAST_SPACING = 0.05
#: Sides of the grid are multiples of this, so that the transform of the kernel is used again.
_SIDE = 32
#: Nodes from which on transforms are in single precision: half the time, and an error of 1e-6.
_MANY_NODES = 128**2
#: Rows below which all pairs are sooner summed than a grid is filled.
FEW_ROWS = 1500


def conditional_affinities(squares: Array, perplexity: float, team: TaskTeam) -> Array:
    """Return pⱼ|ᵢ for rows of squared distances to neighbours, each row with the perplexity asked for."""
    n = len(squares)
    P = np.empty(squares.shape)
    betas = np.empty(n)

    def work(task: int) -> None:
        part = slice(task * _ROWS, (task + 1) * _ROWS)
        calibrate(squares[part], float(np.log(perplexity)), P[part], betas[part])

    team.run(work, -(-n // _ROWS))
    return P


def joint_affinities(P: Array, rows: Array) -> sp.csr_array:
    """Return (pⱼ|ᵢ + pᵢ|ⱼ)/2n as a CSR array; it sums to one."""
    n, k = rows.shape
    given = sp.csr_array((P.ravel(), rows.ravel().astype(np.int32), np.arange(n + 1) * k), shape=(n, n))
    both = sp.csr_array(given + given.T)
    both.data /= both.data.sum()
    return both


class Edges(NamedTuple):
    """The joint affinities as kernels take them."""

    indptr: Array  #: (n + 1,)
    indices: Array  #: (n_edges,)
    P: Array  #: (n_edges,)
    single: Array  #: (n_edges,), P in single precision
    entropy: float  #: −Σ p log p

    @classmethod
    def of(cls, P: sp.csr_array) -> Edges:
        """Return the edges of affinities."""
        numbers = np.asarray(P.data, dtype=np.float64)
        positive = numbers[numbers > 0]
        entropy = -float((positive * np.log(positive)).sum())
        indptr = P.indptr.astype(np.int64)
        return cls(indptr, P.indices.astype(np.int32), numbers, numbers.astype(np.float32), entropy)


def attraction(edges: Edges, Y: Array, team: TaskTeam) -> Array:
    """Return Σⱼ pᵢⱼ wᵢⱼ (yᵢ − yⱼ) for all rows; in a plane with affinities of single precision."""
    if Y.shape[1] != 2:
        return attraction_and_logs(edges, Y, team)[0]
    out = np.empty_like(Y)

    def work(task: int) -> None:
        first = task * _ROWS
        attract_plane(edges.indptr, edges.indices, edges.single, Y, first, out[first : first + _ROWS])

    team.run(work, -(-len(Y) // _ROWS))
    return out


def attraction_and_logs(edges: Edges, Y: Array, team: TaskTeam) -> tuple[Array, float]:
    """Return the same, and Σ pᵢⱼ log(1 + ‖yᵢ − yⱼ‖²)."""
    out = np.empty_like(Y)
    logs = np.empty(len(Y))

    def work(task: int) -> None:
        first = task * _ROWS
        part = slice(first, first + _ROWS)
        attract(edges.indptr, edges.indices, edges.P, Y, first, out[part], logs[part])

    team.run(work, -(-len(Y) // _ROWS))
    return out, float(logs.sum())


def repulsion_of_pairs(Y: Array, team: TaskTeam) -> tuple[Array, float]:
    """Return Σⱼ wᵢⱼ² (yᵢ − yⱼ) for all rows, and Z, by all pairs: time O(n²)."""
    n = len(Y)
    out = np.empty_like(Y)
    sums = np.empty(n)
    columns = np.ascontiguousarray(Y.T)

    def work(task: int) -> None:
        first = task * _ROWS_OF_PAIRS
        part = slice(first, first + _ROWS_OF_PAIRS)
        repel_all(columns, first, np.empty(n), out[part], sums[part])

    team.run(work, -(-n // _ROWS_OF_PAIRS))
    return out, float(sums.sum())


class Grid:
    """Repulsion in a line or a plane through a grid; the transform of the last kernel is kept."""

    def __init__(self, team: TaskTeam) -> None:
        self.team = team
        self.shape = (0, 0)
        self.spacing = 0.0
        self.kernel = np.empty((0, 0))
        self.padded = (0, 0)

    def repulsion(self, Y: Array) -> tuple[Array, float]:
        """Return Σⱼ wᵢⱼ² (yᵢ − yⱼ) for all rows, and Z, nearly: time O(n + area log area)."""
        n, k = Y.shape
        plane = Y if k == 2 else np.column_stack([Y, np.zeros(n)])
        low = [float(plane[:, axis].min()) for axis in range(2)]
        size = [float(plane[:, axis].max()) - low[axis] for axis in range(2)]
        spacing = _spacing_for(max(size))
        shape = (_side_for(size[0], spacing), _side_for(size[1], spacing))
        if shape != self.shape or spacing != self.spacing:
            self._prepare(shape, spacing)
        grid = np.empty(self.shape)
        spread(plane, low[0], low[1], 1.0 / spacing, grid)
        potential = self._convolve(grid)
        out = np.empty((n, 2))
        sums = np.empty(n)

        def work(task: int) -> None:
            first = task * _ROWS
            part = slice(first, first + _ROWS)
            gather(plane, low[0], low[1], 1.0 / spacing, potential, first, out[part], sums[part])

        self.team.run(work, -(-n // _ROWS))
        return np.ascontiguousarray(out[:, :k]), float(sums.sum()) - n

    def _prepare(self, shape: tuple[int, int], spacing: float) -> None:
        """Transform the kernel for a grid, twice as long, so that nothing comes round, and longer for the filter."""
        self.shape = shape
        self.spacing = spacing
        self.padded = (fft.next_fast_len(2 * shape[0] + 16, True), fft.next_fast_len(2 * shape[1] + 16, True))
        squares = []
        filters = []
        for length in self.padded:
            number = np.arange(length)
            squares.append((np.minimum(number, length - number) * spacing) ** 2)
            filters.append(((4.0 + 2.0 * np.cos(2.0 * np.pi * number / length)) / 6.0) ** 2)
        values = 1.0 / (1.0 + squares[0][:, None] + squares[1])
        half = self.padded[1] // 2 + 1
        found = fft.rfft2(values).real / (filters[0][:, None] * filters[1][:half])
        single = shape[0] * shape[1] > _MANY_NODES
        self.kernel = found.astype(np.float32 if single else np.float64)

    def _convolve(self, grid: Array) -> Array:
        """Return the grid convolved with the filtered kernel; lines that are zero are not transformed."""
        workers = self.team.n_threads
        rows, columns = self.shape
        image = fft.rfft(grid.astype(self.kernel.dtype), self.padded[1], axis=1, workers=workers)
        image = fft.fft(image, self.padded[0], axis=0, overwrite_x=True, workers=workers)
        image *= self.kernel
        image = fft.ifft(image, axis=0, overwrite_x=True, workers=workers)[:rows]
        found = fft.irfft(image, self.padded[1], axis=1, workers=workers)[:, :columns]
        return np.ascontiguousarray(found, dtype=np.float64)


def _spacing_for(size: float) -> float:
    """Return the distance of nodes for a picture of some size: 0.4, divided by √2 until there are enough nodes."""
    spacing = _SPACING
    while size < spacing * _LEAST_NODES and spacing > _LEAST_SPACING:
        spacing /= np.sqrt(2.0)
    return spacing


def _side_for(length: float, spacing: float) -> int:
    """Return the nodes of a side: splines reach one node back and two ahead."""
    return -(-(int(length / spacing) + 5) // _SIDE) * _SIDE
