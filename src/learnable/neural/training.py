r"""Training: epochs of mini-batches over one flat vector, and what ends them.

Every epoch shuffles the rows, cuts them into batches (the last one may be shorter) and makes one step of the optimiser
for each. The order of the rows and the keys of dropout follow from (seed, member, epoch) alone, so that a run that is
stopped, saved, loaded and resumed makes the same steps as one that was not, to the bit.

A loss that is not finite ends the run at that batch: the parameters go back to the last start of an epoch whose first
batch had a finite loss, and the warning names the first layer whose output was not finite.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from ..core.estimator import never
from ..core.threads import TaskTeam, one_thread_blas, resolve_n_jobs
from ..solvers.lab.steps import Now, StepRule
from ._kernels import add
from ._optimiser_kernels import norm_of
from .heads import Head
from .layers.base import Keys, Layer
from .layers.regularise import BatchNorm
from .network import Network, Tape
from .optimisers import SHARED_NUMBERS, Optimiser, halves_of

Array = NDArray[Any]

#: Entries of rows that are gathered at a time: one megabyte of float32, whose copy costs less than one gather a batch.
_GATHERED_ENTRIES = 2**18
#: Parts that a batch of a large network is cut into, one thread each; always the same, so that the sums are.
_SHARDS = 2
#: Parameters times rows of a batch, or steps of its sequences, from which that pays: below, handing a part over costs
#: more than it saves.
_SHARDED_WORK = 2**22
#: Rows, or steps of sequences, times parameters of a batch that takes about a millisecond.
_LONG_BATCH = 2**21
#: Batches between two looks at the clock.
_BATCHES_PER_LOOK = 16


class Source(Protocol):
    """Rows to train on."""

    n_rows: int

    def take(self, rows: Array) -> tuple[Array, Array, Array | None, Array | None]:
        """Return inputs, targets, weights (None: one each) and lengths (None: no sequences) of some rows."""
        ...

    def cut(self, taken: Any, start: int, stop: int) -> Any:
        """Return a batch of rows that were taken together."""
        ...

    def total_weight(self, rows: Array) -> float:
        """Return Σw of some rows, or of their steps where each has a target."""
        ...

    def lead(self, n: int) -> int | tuple[int, ...]:
        """Return the leading shape of a batch of n rows."""
        ...

    @property
    def width(self) -> int:
        """Numbers of one row."""
        ...


@dataclass
class TableRows:
    """Rows of a table: X (n, d) dense or CSR, y (n, k) numbers or (n,) codes, weight (n,) or None."""

    X: Any
    y: Array
    weight: Array | None
    dtype: Any

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.X.shape[0])

    @property
    def width(self) -> int:
        """Columns."""
        return int(self.X.shape[1])

    def take(self, rows: Array) -> tuple[Array, Array, Array | None, Array | None]:
        """Return some rows, dense."""
        X = self.X[rows].toarray() if sp.issparse(self.X) else np.take(self.X, rows, axis=0)
        weight = None if self.weight is None else self.weight[rows]
        return np.ascontiguousarray(X, dtype=self.dtype), self.y[rows], weight, None

    def cut(self, taken: Any, start: int, stop: int) -> Any:
        """Return a batch."""
        X, y, weight, _ = taken
        return X[start:stop], y[start:stop], None if weight is None else weight[start:stop], None

    def total_weight(self, rows: Array) -> float:
        """Return Σw."""
        return float(len(rows)) if self.weight is None else float(self.weight[rows].sum(dtype=np.float64))

    def lead(self, n: int) -> int:
        """Return n."""
        return n


@dataclass
class SequenceRows:
    """Sequences: X (n, T, d), padded; y (n, k) or (n,) for each sequence, or (n, T, k) or (n, T) for each step."""

    X: Array
    y: Array
    weight: Array | None
    lengths: Array
    dtype: Any
    every_step: bool

    @property
    def n_rows(self) -> int:
        """Number of sequences."""
        return len(self.X)

    @property
    def width(self) -> int:
        """Numbers of one sequence."""
        return int(np.prod(self.X.shape[1:]))

    def take(self, rows: Array) -> tuple[Array, Array, Array | None, Array | None]:
        """Return the numbers of the rows; batches are gathered one by one, time first."""
        return rows, rows, None, None

    def cut(self, taken: Any, start: int, stop: int) -> Any:
        """Return a batch (T, b, d) with targets and weights for each sequence, or for each step time first."""
        rows = taken[0][start:stop]
        x = np.ascontiguousarray(self.X[rows].transpose(1, 0, 2), dtype=self.dtype)
        lengths = self.lengths[rows]
        weight = None if self.weight is None else self.weight[rows]
        y = self.y[rows]
        if not self.every_step:
            return x, y, weight, lengths
        T, b = x.shape[:2]
        y = np.ascontiguousarray(np.moveaxis(y, 1, 0)).reshape(T * b, *y.shape[2:])
        mask = (np.arange(T)[:, None] < lengths).astype(self.dtype)
        mask = mask if weight is None else mask * weight
        return x, y, np.ascontiguousarray(mask.reshape(-1), dtype=self.dtype), lengths

    def total_weight(self, rows: Array) -> float:
        """Return Σw of sequences, or of their steps."""
        counts = self.lengths[rows].astype(np.float64) if self.every_step else np.ones(len(rows))
        return float(counts.sum() if self.weight is None else counts @ self.weight[rows])

    def lead(self, n: int) -> tuple[int, int]:
        """Return (T, n)."""
        return self.X.shape[1], n


@dataclass
class State:
    """All that a run needs to go on: parameters, running moments, the optimiser's memory and the counts."""

    theta: Array
    buffers: Array
    v: Array
    r: Array
    t: int = 0  #: updates made
    epoch: int = 0  #: epochs made
    losses: list[float] = field(default_factory=list)  #: of all epochs
    scores: list[float] = field(default_factory=list)  #: on the validation rows


class Trainer:
    """One network in training.

    Parameters
    ----------
    network, head, state
        What is trained, by which loss, from where.
    update, step
        Optimiser and step rule of `solvers`.
    batch_size : int
        Rows of a batch.
    seed : tuple of int
        Seed and number of the member; with the epoch it decides the order of the rows.
    alpha : float
        α of the penalty ½α‖W‖²/(rows of the batch), whose gradient is part of every step.
    decoupled : float
        λ′: weights shrink by ηλ′ after every step.
    clip, shuffle
        Clipping of gradients; whether rows are shuffled.
    n_steps : int
        Steps of a sequence; 1 for rows of a table.
    n_jobs : int or None
        Threads. Batches of large networks are cut in two, whatever it is: the steps do not depend on it.
    """

    def __init__(
        self,
        network: Network,
        head: Head,
        state: State,
        update: Any,
        step: StepRule,
        *,
        batch_size: int,
        seed: tuple[int, ...] = (0,),
        alpha: float = 0.0,
        decoupled: float = 0.0,
        clip: Any = None,
        shuffle: bool = True,
        n_steps: int = 1,
        n_jobs: int | None = None,
    ) -> None:
        self.n_jobs = n_jobs
        self.network = network
        self.head = head
        self.state = state
        self.batch_size = batch_size
        self.seed = seed
        self.alpha = alpha
        self.shuffle = shuffle
        self.optimiser = Optimiser(update, state.theta, network.n_decayed, clip=clip, decoupled=decoupled)
        self.optimiser.v = state.v
        self.optimiser.r = state.r
        self.optimiser.t = state.t
        self.stepper = step.begin()
        self.rate_scale = 1.0
        self.failed: str | None = None
        self.first_loss: float | None = None  #: of the first batch of a new network, before any step
        self.last_loss = math.nan  #: of the last epoch, without the penalty
        self.keys = Keys()
        self.gradient = np.empty_like(state.theta)
        self._tapes: dict[tuple[int, int], tuple[Tape, Array, Array]] = {}
        self._shards = _SHARDS if _can_be_cut(network, batch_size, n_steps) else 1
        self._shard_gradients = [self.gradient, *(np.empty_like(state.theta) for _ in range(self._shards - 1))]
        self._shard_keys = [self.keys, *(Keys() for _ in range(self._shards - 1))]
        self._team: TaskTeam | None = None
        self._good = state.theta.copy(), state.buffers.copy()
        for epoch, value in enumerate(state.losses[: state.epoch]):  # rules that follow the losses see them again
            self.stepper(Now(0, np.zeros(1), value, epoch + 1, None))

    def run_epoch(self, source: Source, should_stop: Callable[[], bool] = never) -> float:
        """Make one epoch; return its mean loss, with the penalty. `failed` says why it was given up, if it was."""
        state = self.state
        at_start = state.theta.copy(), state.buffers.copy()
        rng = np.random.default_rng([*self.seed, state.epoch])
        for keys in self._shard_keys:
            keys.reseed(int(rng.integers(2**32)))
        order = rng.permutation(source.n_rows) if self.shuffle else np.arange(source.n_rows)
        total = 0.0
        threads = min(self._shards, resolve_n_jobs(self.n_jobs))
        with ExitStack() as stack:
            stack.enter_context(one_thread_blas())
            stack.enter_context(np.errstate(all="ignore"))  # a loss that is not finite is looked for below
            self._team = stack.enter_context(TaskTeam(threads)) if self._shards > 1 else None
            for number, (n_rows, value) in enumerate(self._steps(source, order)):
                if not math.isfinite(value):
                    self._give_up(number)
                    return math.nan
                if number == 0:
                    self._good = at_start  # they have just given a finite loss
                    if self.optimiser.t == 1:
                        self.first_loss = value
                total += value * n_rows
                if number % self._look_every(source) == 0 and should_stop():
                    break
        if not np.isfinite(state.theta).all():
            self._give_up(None)
            return math.nan
        state.epoch += 1
        state.t = self.optimiser.t
        self.last_loss = total / len(order)
        loss = self.last_loss + self._penalty()
        state.losses.append(loss)
        return loss

    def _look_every(self, source: Source) -> int:
        """Return after how many batches to look at the clock: after each, if one takes a millisecond or more."""
        lead = source.lead(self.batch_size)
        rows = lead if isinstance(lead, int) else math.prod(lead)
        return 1 if rows * self.network.n_parameters > _LONG_BATCH else _BATCHES_PER_LOOK

    def _batches(self, source: Source, order: Array) -> Iterator[Any]:
        """Yield batches; rows are gathered for several of them at a time."""
        b = self.batch_size
        together = b * max(1, _GATHERED_ENTRIES // max(1, source.width * b))
        for start in range(0, len(order), together):
            rows = order[start : start + together]
            taken = source.take(rows)
            for first in range(0, len(rows), b):
                yield source.cut(taken, first, min(first + b, len(rows)))

    def _steps(self, source: Source, order: Array) -> Iterator[tuple[int, float]]:
        """Make the steps of an epoch; yield the rows of each batch and its loss before the step."""
        if self._team is None:
            for batch in self._batches(source, order):
                yield batch[0].shape[-2], self._make_step(source, batch)
            return
        for start in range(0, len(order), self.batch_size):
            rows = order[start : start + self.batch_size]
            if len(rows) < 2 * self._shards:
                yield len(rows), self._make_step(source, source.cut(source.take(rows), 0, len(rows)))
            else:
                yield len(rows), self._make_step_together(source, rows, self._team)

    def _make_step(self, source: Source, batch: Any) -> float:
        """Make one step; return the loss before it."""
        _, y, weight, _ = batch
        share = 1.0 / len(y) if weight is None else 1.0 / float(weight.sum(dtype=np.float64))
        value = self._differentiate(source, batch, 0, share)
        self._move(share)
        return value

    def _make_step_together(self, source: Source, rows: Array, team: TaskTeam) -> float:
        """Make one step; every thread gathers and differentiates its part of the batch."""
        share = 1.0 / source.total_weight(rows)
        cuts = [len(rows) * k // self._shards for k in range(self._shards + 1)]

        def differentiate_part(k: int) -> float:
            part = rows[cuts[k] : cuts[k + 1]]
            return self._differentiate(source, source.cut(source.take(part), 0, len(part)), k, share)

        value = sum(team.run(differentiate_part, self._shards))
        self._add_gradients(team)
        self._move(share)
        return value

    def _move(self, share: float) -> None:
        """Make the optimiser's step; share is 1/Σw of the batch."""
        state = self.state
        last = state.losses[-1] if state.losses else math.inf
        rate = self.stepper(Now(self.optimiser.t, self.gradient, last, state.epoch, None))
        self.optimiser.step(self.gradient, self.rate_scale * rate, self.alpha * share, self._team)

    def _add_gradients(self, team: TaskTeam) -> None:
        """Add the gradients of the parts of a batch to the first."""
        p = len(self.gradient)
        pieces = halves_of(p) if p >= SHARED_NUMBERS else (slice(0, p),)

        def add_piece(number: int) -> None:
            piece = pieces[number]
            for more in self._shard_gradients[1:]:
                add(self.gradient[piece], more[piece], self.gradient[piece])

        team.run(add_piece, len(pieces))

    def _differentiate(self, source: Source, batch: Any, shard: int, share: float) -> float:
        """Return the loss of a batch, or of a part of it; its gradient is in the shard's array."""
        x, y, weight, lengths = batch
        if shard > 0:
            np.seterr(all="ignore")  # a setting of the helper's own thread
        tape, ones, dz = self._tape(source, x.shape[-2], shard)
        if lengths is not None:
            tape.set_lengths(lengths)
        z = tape.forward(x)
        if z.ndim == 3:  # one score for every step of every sequence
            z = z.reshape(-1, z.shape[-1])
        value = self.head.evaluate(z, y, ones if weight is None else weight, share, dz.reshape(z.shape))
        tape.backward(dz)
        return value

    def _tape(self, source: Source, n: int, shard: int) -> tuple[Tape, Array, Array]:
        if (n, shard) not in self._tapes:
            tape = self.network.open(
                self.state.theta,
                source.lead(n),
                training=True,
                gradient=self._shard_gradients[shard],
                buffers=self.state.buffers,
                keys=self._shard_keys[shard],
            )
            shape = tape.outs[-1].shape
            ones = np.ones(int(np.prod(shape[:-1])), dtype=self.network.dtype)
            self._tapes[n, shard] = tape, ones, np.empty(shape, dtype=self.network.dtype)
        return self._tapes[n, shard]

    def _penalty(self) -> float:
        if self.alpha == 0.0:
            return 0.0
        return 0.5 * self.alpha * float(norm_of(self.state.theta[: self.network.n_decayed])) ** 2 / self.batch_size

    def _give_up(self, batch: int | None) -> None:
        """Go back to the last good parameters and say what happened where."""
        where = self._faulty_parameters()
        for tape, _, _ in self._tapes.values():
            bad = [k for k, out in enumerate(tape.outs) if not np.isfinite(out).all()]
            if bad:
                where = f"the output of layer {bad[0]}, {self.network.layers[bad[0]]!r},"
                break
        at = f"epoch {self.state.epoch}" if batch is None else f"batch {batch} of epoch {self.state.epoch}"
        self.failed = (
            f"{where} became infinite or NaN in {at}; the last good weights are kept. Lower "
            "learning_rate_init, clip gradients (clip=1.0), or scale the columns of X"
        )
        np.copyto(self.state.theta, self._good[0])
        np.copyto(self.state.buffers, self._good[1])

    def _faulty_parameters(self) -> str:
        """Return in words which parameters are infinite or NaN, those of the first layer that has some."""
        theta = self.state.theta
        for span in sorted(self.network.spans, key=lambda span: span.layer):
            if not np.isfinite(theta[span.place]).all():
                return f"the parameters {span.item.name} of layer {span.layer}, {self.network.layers[span.layer]!r},"
        return "the loss"


@dataclass
class Stopping:
    """When to stop: no progress by more than `tol` for more than `patience` epochs.

    Attributes
    ----------
    tol : float
        What counts as progress.
    patience : float
        Epochs without it.
    maximise : bool
        Whether values are scores.
    """

    tol: float
    patience: float
    maximise: bool = False
    best: float = math.inf
    waited: int = 0

    def sees(self, value: float) -> bool:
        """Take a value; return whether it is the best so far."""
        v = -value if self.maximise else value
        self.waited = self.waited + 1 if v > self.best - self.tol else 0
        better = v < self.best
        self.best = v if better else self.best
        return better

    @property
    def is_over(self) -> bool:
        """Whether it has waited too long."""
        return self.waited > self.patience


def _can_be_cut(network: Network, batch_size: int, n_steps: int) -> bool:
    """Tell whether batches are cut in two, each part on a thread; whether there are threads plays no part in it."""
    layers = list(_all_layers(network.layers))
    if any(isinstance(layer, BatchNorm) for layer in layers):  # its moments are those of the whole batch
        return False
    steps = n_steps if all(layer.in_few_calls for layer in layers) else 1
    return network.n_parameters * batch_size * steps >= _SHARDED_WORK


def _all_layers(layers: Iterable[Layer]) -> Iterator[Layer]:
    """Yield layers and the layers inside them."""
    for layer in layers:
        yield layer
        yield from _all_layers(getattr(layer, "layers", ()))


def warn_of_failure(owner: str, reason: str) -> None:
    """Warn that training ended early because numbers overflowed."""
    warnings.warn(f"{owner}: {reason}.", ConvergenceWarning, stacklevel=4)
