r"""A network on data as a function of its parameters.

    f(θ) = Σᵢ wᵢ V(yᵢ, z(xᵢ; θ)) / Σ w + ½ α ‖W‖² / Σ w,

with the weights W and not the biases in the penalty; scikit-learn's objective. Dropout is off and batch normalisation
uses its running moments, unless `training=True`. Everything that `solvers` offers works on it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..solvers.lab.objective import relative_gradient
from ..solvers.problem import Evaluation
from .heads import head_of
from .network import Network, Tape, row_blocks

Array = NDArray[Any]

_BLOCK_ROWS = 4096  # rows of one pass; the sums over blocks are added in their order


class NetworkObjective:
    """f(θ), ∇f(θ), v ↦ ∇²f(θ)v.

    Parameters
    ----------
    network : Network
        In float64 the gradient is exact to rounding.
    X : (n, d) array
        Rows.
    y : array
        Targets, as the loss wants them.
    loss : loss of `risk.losses`, or head
        V.
    weight : (n,) array, optional
        w.
    alpha : float, default=0.0
        α.
    buffers : array, optional
        Running moments of batch normalisation.
    training : bool, default=False
        Whether the moments are those of X itself; then X is one batch.
    per_row : bool, default=True
        Whether the penalty is divided by Σw, as in scikit-learn; otherwise it is ½α‖W‖².
    """

    def __init__(
        self,
        network: Network,
        X: Array,
        y: Array,
        loss: Any,
        *,
        weight: Array | None = None,
        alpha: float = 0.0,
        buffers: Array | None = None,
        training: bool = False,
        per_row: bool = True,
        lengths: Array | None = None,
    ) -> None:
        self.network = network
        self.head = head_of(loss)
        self.alpha = float(alpha)
        self.X = X
        self.y = np.asarray(y)
        self.sequences = getattr(X, "ndim", 2) == 3
        self.n_rows = X.shape[1] if self.sequences else X.shape[0]
        if self.y.ndim == 1 and self.y.dtype.kind == "f" and not self.sequences:
            self.y = self.y[:, None]
        self.weight = np.ones(self.n_rows) if weight is None else np.asarray(weight, dtype=np.float64)
        self.buffers = buffers
        self.training = training
        self.per_row = per_row
        self.lengths = lengths
        self._theta = np.empty(network.n_parameters, dtype=network.dtype)
        self._tapes: dict[int, Tape] = {}

    def evaluate(self, theta: Array) -> Evaluation:
        """Return value, gradient and the relative gradient."""
        value, gradient = self._sums(theta, slice(None), wants_gradient=True)
        return Evaluation(value, gradient, relative_gradient(np.asarray(theta, float), value, gradient))

    def value(self, theta: Array, rows: Any = slice(None)) -> float:
        """Return f(θ), over some rows."""
        return self._sums(theta, rows, wants_gradient=False)[0]

    def gradient(self, theta: Array, rows: Any = slice(None)) -> Array:
        """Return ∇f(θ), over some rows."""
        return self._sums(theta, rows, wants_gradient=True)[1]

    def hessian(self, theta: Array) -> Callable[[Array], Array]:
        """Return v ↦ ∇²f(θ)v by central differences of the exact gradient: about ten digits in float64."""
        theta = np.asarray(theta, dtype=np.float64)
        epsilon = float(np.finfo(self.network.dtype).eps) ** (1.0 / 3.0)

        def product(v: Array) -> Array:
            size = float(np.linalg.norm(v))
            if size == 0.0:
                return np.zeros_like(theta)
            h = epsilon * max(1.0, float(np.linalg.norm(theta))) / size
            return np.asarray((self.gradient(theta + h * v) - self.gradient(theta - h * v)) / (2.0 * h))

        return product

    def _sums(self, theta: Array, rows: Any, *, wants_gradient: bool) -> tuple[float, Array]:
        np.copyto(self._theta, theta, casting="same_kind")
        X, y, weight = self._rows(rows)
        total = float(weight.sum())
        n = len(weight)
        value = 0.0
        gradient = np.zeros(self.network.n_parameters)
        size = n if self.training or self.sequences else min(n, _BLOCK_ROWS)
        for block in row_blocks(n, size):
            tape = self._tape(block.stop - block.start, X)
            part = X[:, block] if self.sequences else X[block]
            if self.sequences and self.lengths is not None:
                tape.set_lengths(self.lengths[rows][block])
            z = tape.forward(_dense(part, self.network.dtype))
            grad = np.empty_like(z)
            w = weight[block].astype(self.network.dtype)
            value += self.head.evaluate(z, y[block], w, 1.0 / total, grad)
            if wants_gradient:
                gradient += tape.backward(grad)
        if self.alpha > 0.0:
            scale = self.alpha / total if self.per_row else self.alpha
            W = np.asarray(theta[: self.network.n_decayed], dtype=np.float64)
            value += 0.5 * scale * float(W @ W)
            gradient[: self.network.n_decayed] += scale * W
        return value, gradient

    def _rows(self, rows: Any) -> tuple[Any, Array, Array]:
        if isinstance(rows, slice) and rows == slice(None):
            return self.X, self.y, self.weight
        X = self.X[:, rows] if self.sequences else self.X[rows]
        return X, self.y[rows], self.weight[rows]

    def _tape(self, n: int, X: Any) -> Tape:
        if n not in self._tapes:
            lead = (X.shape[0], n) if self.sequences else n
            buffers = None if self.buffers is None else self.buffers.copy()
            self._tapes[n] = self.network.open(self._theta, lead, training=self.training, buffers=buffers)
        return self._tapes[n]


def _dense(X: Any, dtype: np.dtype[Any]) -> Array:
    rows = X.toarray() if hasattr(X, "toarray") else X
    return np.ascontiguousarray(rows, dtype=dtype)
