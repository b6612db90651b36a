r"""A network: a list of layers over one flat vector of parameters.

    net = Network([Dense(64), ReLU(), Dense(1)], n_inputs=8)
    theta = net.start(random_state=0)                 # (p,), all weights, then all biases and gains
    z = net.predict(theta, X)                         # scores, thread-safe
    tape = net.open(theta, len(X), training=True)     # arrays of one batch size, views of theta
    z = tape.forward(X)
    g = tape.backward(dz)                             # (p,), the gradient of Σ dzᵢ·zᵢ: any loss of one's own
    f = net.objective(X, y, SquaredLoss())            # a function of theta for solvers.minimize, check_gradient …

A tape keeps references to `theta`, so that an optimiser that changes it in place is seen by the next forward pass.
Networks are immutable and hold no parameters: one network serves any number of vectors, tapes and threads.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.errors import DataError, ParameterError
from ..meta.splits import as_generator
from . import initial
from .layers.base import TILE, Bench, Keys, Layer, Weights

Array = NDArray[Any]

#: Entries of the widest activation that prediction holds at a time: half a megabyte in float32 stays in the L2 cache.
_BLOCK_ENTRIES = 2**17


class Span(NamedTuple):
    """Where one array of parameters stands in the flat vector."""

    layer: int  #: number of the layer
    item: Weights
    place: slice


class Network:
    """A list of layers and the shapes that follow from it.

    Parameters
    ----------
    layers : list of Layer
        In the order of the forward pass.
    n_inputs : int
        Width of x.
    dtype : {"float32", "float64"}, default="float32"
        Of parameters, activations and gradients.

    Attributes
    ----------
    n_parameters : int
        p, the length of theta.
    n_decayed : int
        How many of them are weights, which stand first and which decay; biases and gains follow.
    n_outputs : int
        Width of the scores.
    n_buffers : int
        Length of the vector that is kept and not trained (running moments of batch normalisation).

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.neural import Dense, Network, Tanh
    >>> from learnable.risk import SquaredLoss
    >>> from learnable.solvers import check_gradient, minimize
    >>> net = Network([Dense(3), Tanh(), Dense(1)], n_inputs=2, dtype="float64")
    >>> net.n_parameters
    13
    >>> X, y = np.array([[0.0, 0], [0, 1], [1, 0], [1, 1]]), np.array([0.0, 1, 1, 0])
    >>> f, start = net.objective(X, y, SquaredLoss()), net.start(random_state=1)
    >>> bool(check_gradient(f.value, f.gradient, start))
    True
    >>> net.predict(minimize(f, start, method="lbfgs", max_iter=500).x, X).round(3).ravel().tolist()
    [0.0, 1.0, 1.0, 0.0]
    """

    def __init__(self, layers: Iterable[Layer], n_inputs: int, *, dtype: Any = "float32") -> None:
        self.layers = tuple(layers)
        self.n_inputs = int(n_inputs)
        self.dtype = np.dtype(dtype)
        if self.dtype not in (np.dtype(np.float32), np.dtype(np.float64)):
            raise ParameterError(f"Network: dtype must be float32 or float64; got {dtype!r}.")
        for layer in self.layers:
            if not isinstance(layer, Layer):
                raise ParameterError(f"Network: layers must be layers of learnable.neural; got {layer!r}.")
        self.widths = [self.n_inputs]
        found: list[tuple[int, Weights]] = []
        self._buffers: list[tuple[int, Any, slice]] = []
        self.n_buffers = 0
        for k, layer in enumerate(self.layers):
            found += [(k, item) for item in layer.weights(self.widths[-1])]
            for buffer in layer.buffers(self.widths[-1]):
                size = int(np.prod(buffer.shape))
                self._buffers.append((k, buffer, slice(self.n_buffers, self.n_buffers + size)))
                self.n_buffers += size
            self.widths.append(layer.width(self.widths[-1]))
        found.sort(key=lambda pair: pair[1].role != "weight")  # weights first: what decays is one stretch
        self.spans: list[Span] = []
        start = 0
        for k, item in found:
            stop = start + int(np.prod(item.shape))
            self.spans.append(Span(k, item, slice(start, stop)))
            start = stop
        self.n_parameters = start
        self.n_decayed = sum(s.place.stop - s.place.start for s in self.spans if s.item.role == "weight")

    @property
    def n_outputs(self) -> int:
        """Width of the scores."""
        return self.widths[-1]

    def span(self, layer: int, name: str) -> slice | None:
        """Return where an array of a layer stands in theta; None if the layer has no such array."""
        return next((s.place for s in self.spans if s.layer == layer and s.item.name == name), None)

    def views(self, theta: Array, layer: int) -> dict[str, Array]:
        """Return the arrays of one layer, by name, as views of a flat vector."""
        return {s.item.name: theta[s.place].reshape(s.item.shape) for s in self.spans if s.layer == layer}

    def start(self, random_state: Any = None, init: str = "glorot", X: Array | None = None) -> Array:
        """Return parameters to start from; see `neural.initial` for the names.

        Parameters
        ----------
        random_state : int, Generator or None
            Same seed, same start.
        init : str
            How weights are drawn.
        X : (n, d) array, optional
            Rows that `"lsuv"` scales the layers by.
        """
        if init not in initial.RULES:
            raise ParameterError(f"Network: init must be one of {', '.join(initial.RULES)}; got {init!r}.")
        rng = as_generator(random_state)
        theta = np.empty(self.n_parameters, dtype=self.dtype)
        by_layer = sorted(self.spans, key=lambda s: s.layer)  # the draws follow the layers, whatever the layout
        for span in by_layer:
            if span.item.role == "gain":
                theta[span.place] = 1.0
            else:
                theta[span.place] = initial.RULES[init](span.item, rng).ravel()
        for k, layer in enumerate(self.layers):
            adjust = getattr(layer, "adjust_start", None)
            if adjust is not None and init != "zeros":
                adjust(self.views(theta, k), rng)
        if init == "lsuv":
            if X is None:
                raise ParameterError("Network: init='lsuv' scales layers by data; pass rows as X.")
            initial.scale_by_data(self, theta, np.asarray(X, dtype=self.dtype))
        return theta

    def start_buffers(self) -> Array:
        """Return the buffers of an untrained network."""
        buffers = np.empty(self.n_buffers, dtype=self.dtype)
        for _, item, place in self._buffers:
            buffers[place] = item.start
        return buffers

    def open(
        self,
        theta: Array,
        lead: int | tuple[int, ...],
        *,
        training: bool = False,
        gradient: Array | None = None,
        buffers: Array | None = None,
        keys: Keys | None = None,
        input_gradient: bool = False,
        alone: bool = False,
    ) -> Tape:
        """Allocate the arrays of passes over batches of one size.

        Parameters
        ----------
        theta : (p,) array
            Read at every pass; may be changed in place in between.
        lead : int or tuple
            Rows of a batch; (T, n) for sequences.
        training : bool
            Whether dropout drops and batch normalisation uses the batch.
        gradient : (p,) array, optional
            Where `backward` writes.
        buffers : (n_buffers,) array, optional
            Running moments; training changes them in place.
        keys : Keys, optional
            Keys of dropout.
        input_gradient : bool
            Whether `backward` also computes dL/dx, as `tape.dx`.
        alone : bool
            Whether scores must not depend, in their last digit, on how many rows there are.
        """
        return Tape(self, theta, lead, training, gradient, buffers, keys, input_gradient, alone)

    def predict(self, theta: Array, X: Any, *, buffers: Array | None = None, lengths: Array | None = None) -> Array:
        """Return the scores of many rows (n, d), also sparse, or of sequences (T, n, d), in inference mode."""
        theta = np.ascontiguousarray(theta, dtype=self.dtype)
        if X.ndim == 3:
            tape = self.open(theta, X.shape[:2], buffers=buffers, alone=True)
            tape.set_lengths(lengths)
            return tape.forward(np.ascontiguousarray(X, dtype=self.dtype)).copy()
        n = X.shape[0]
        most = max(TILE, _BLOCK_ENTRIES // max(self.widths) // TILE * TILE)
        out = np.empty((n, self.n_outputs), dtype=self.dtype)
        whole = n - n % most
        if whole:
            tape = self.open(theta, most, buffers=buffers)
            for start in range(0, whole, most):
                out[start : start + most] = tape.forward(_plain(X[start : start + most], self.dtype))
        if n > whole:
            padded = np.zeros((-(-(n - whole) // TILE) * TILE, self.n_inputs), dtype=self.dtype)
            padded[: n - whole] = _plain(X[whole:], self.dtype)
            rest = self.open(theta, len(padded), buffers=buffers)
            out[whole:] = rest.forward(padded)[: n - whole]
        return out

    def activations(self, theta: Array, X: Array, *, buffers: Array | None = None) -> list[Array]:
        """Return the output of every layer on some rows, in inference mode."""
        lead = X.shape[:-1]
        tape = self.open(np.asarray(theta, dtype=self.dtype), lead, buffers=buffers)
        tape.forward(np.ascontiguousarray(X, dtype=self.dtype))
        return [out.copy() for out in tape.outs]

    def objective(
        self, X: Array, y: Array, loss: Any, *, weight: Array | None = None, alpha: float = 0.0, **options: Any
    ) -> Any:
        """Return Σ wV/Σw + ½α‖W‖²/Σw as a function of theta; see `NetworkObjective`."""
        from .objective import NetworkObjective

        return NetworkObjective(self, X, y, loss, weight=weight, alpha=alpha, **options)

    def __repr__(self) -> str:
        names = ", ".join(repr(layer) for layer in self.layers)
        return f"Network([{names}], n_inputs={self.n_inputs}, dtype={self.dtype.name!r})"


class Tape:
    """Arrays of one batch size, opened on one vector of parameters.

    Attributes
    ----------
    outs : list of arrays
        Output of every layer in the last forward pass.
    grads : list of arrays
        dL/d(input) of every layer in the last backward pass; of the first only with `input_gradient`.
    gradient : (p,) array
        dL/dθ.
    """

    def __init__(
        self,
        network: Network,
        theta: Array,
        lead: int | tuple[int, ...],
        training: bool,
        gradient: Array | None,
        buffers: Array | None,
        keys: Keys | None,
        input_gradient: bool,
        alone: bool = False,
    ) -> None:
        lead = (int(lead),) if isinstance(lead, (int, np.integer)) else tuple(lead)
        if theta.shape != (network.n_parameters,) or theta.dtype != network.dtype:
            raise DataError(
                f"Network: theta must be a {network.dtype} vector of length {network.n_parameters}; got "
                f"{theta.dtype} of shape {theta.shape}."
            )
        self.network = network
        self.theta = theta
        self.lead = lead
        self.gradient = np.empty_like(theta) if gradient is None else gradient
        self.buffers = network.start_buffers() if buffers is None else buffers
        self.lengths = np.full(lead[-1], lead[0] if len(lead) == 2 else 1, dtype=np.int64)
        self.keys = Keys() if keys is None else keys
        self.caches: list[Any] = []
        self.outs: list[Array] = []
        self.grads: list[Array | None] = []
        for k, layer in enumerate(network.layers):
            n_inputs = network.widths[k]
            kept = {item.name: self.buffers[place].reshape(item.shape) for j, item, place in network._buffers if j == k}
            bench = Bench(
                n_inputs, lead, network.dtype, network.views(theta, k), network.views(self.gradient, k), kept,
                training, self.lengths, self.keys, alone,
            )  # fmt: skip
            self.caches.append(layer.open(bench))
            self.grads.append(bench.empty() if k > 0 or input_gradient else None)
            lead = layer.out_lead(lead)
            self.outs.append(np.empty((*lead, network.widths[k + 1]), dtype=network.dtype))
        self._steps = [
            (layer.forward, o, c) for layer, o, c in zip(network.layers, self.outs, self.caches, strict=True)
        ]
        back = zip(network.layers, self.caches, self.grads, strict=True)
        self._back = [(layer.backward, c, g) for layer, c, g in back][::-1]

    @property
    def dx(self) -> Array | None:
        """dL/dx of the last backward pass, where it was asked for."""
        return self.grads[0] if self.grads else None

    def set_lengths(self, lengths: Array | None) -> None:
        """Say how many steps each sequence of the batch has; None: all of them."""
        self.lengths[:] = self.lead[0] if lengths is None else lengths

    def forward(self, x: Array) -> Array:
        """Return the scores, an array that the next pass overwrites."""
        for forward, out, cache in self._steps:
            forward(x, out, cache)
            x = out
        return x

    def backward(self, grad: Array) -> Array:
        """Return dL/dθ for dL/d(scores) = grad, after a forward pass; the next pass overwrites it."""
        for backward, cache, out in self._back:
            backward(grad, cache, out)
            grad = out  # type: ignore[assignment]
        return self.gradient


def _plain(X: Any, dtype: np.dtype[Any]) -> Array:
    """Return rows as a C-contiguous array; sparse ones dense."""
    rows = X.toarray() if hasattr(X, "toarray") else X
    return np.ascontiguousarray(rows, dtype=dtype)


def row_blocks(n: int, size: int) -> Iterator[slice]:
    """Yield slices of at most `size` rows."""
    for start in range(0, n, size):
        yield slice(start, min(start + size, n))
