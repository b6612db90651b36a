"""Boosting on a Dask cluster: rows stay on the workers as codes, histograms travel, faults cost a repetition.

    edges      one sample of rows, chosen by their number in the whole table, comes to the client
    codes      every partition is encoded by a worker: two bytes per cell, kept there
    rounds     one task per thread of the workers runs the loop of `driver` on its rows (`rank`); the tasks talk to
               each other over sockets, and after a second or two return the rounds that they have added

The client keeps the rounds so far. When a worker is gone, the tasks of the others end, the lost partitions are encoded
again from their source, scores are brought back by the trees so far, and the rounds go on; workers that have joined
meanwhile take part from then on. The trees are those of the table in memory, to the bit, for any number of workers and
partitions and whatever happens to them (float64 histograms: up to the order of their sums).

Memory: 4 bytes per cell and 60 per row on the workers; on the client the sample (at most 200,000 rows), the trees, and
the histograms of part 0 on its worker. Early stopping with rows held out needs 8 bytes per row and class code there.
"""

from __future__ import annotations

import errno
import secrets
import time
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...core.errors import DataError, LearnableError, LostRowsError
from ...core.estimator import Run
from ...data.any_order import ledgers_by_group
from ...data.arrays import bound_infinity
from ...data.blocks import Block, joined_lists, map_reduce
from ...data.dask_blocks import current_client
from ...data.dask_posts import host_of
from ...data.door import Table
from ...data.sockets import PartLostError
from ...trees.histogram.bins import Bins, sample_rows
from .checkpoint import Checkpoint
from .driver import Rounds
from .losses import BoostingLoss
from .rank import NOTHING, Coded, Job, Kept, Place, Slice, encode_partition, forget, open_server, run_rounds
from .settings import Part, Stopping, hold_out
from .streams import BinSettings, bins_of_sample

Array = NDArray[np.float64]
Rows = NDArray[np.int64]

_SLICE = 2.0  # seconds of rounds in a task: handing one over takes about 30 ms
_POLL = 0.25  # seconds between two looks at the workers
_PATIENCE = 60.0  # seconds without any worker after which a cluster counts as gone
_TRIES = 5  # attempts without a new round after which the fit gives up
_RETRIES = 3  # of a partition whose worker died or whose file could not be read


class ClusterLostError(Exception):
    """The workers of an attempt are not all there any more."""


class HopelessError(ClusterLostError):
    """Another attempt would end the same way; the words say why, and what to do.

    Parameters
    ----------
    words : str
        The end of a message.
    kind : class
        What the caller of `fit` gets.
    """

    def __init__(self, words: str, kind: type[DataError] = DataError) -> None:
        super().__init__(words)
        self.kind = kind


class Sample(NamedTuple):
    """Some rows, with their weights."""

    X: Array
    w: Array | None


class Seen:
    """What early stopping has seen on the workers, as `settings.Watch` has it."""

    def __init__(self, held: bool, kept: Kept) -> None:
        self.held = True if held else None
        self.scores, self.train_scores = kept.scores, kept.train_scores

    def best_round(self, n_rounds: int) -> int:
        """Return the round with the best score on the rows held out, at least one; else all rounds."""
        return n_rounds if self.held is None or not self.scores else max(1, int(np.argmax(self.scores)))


class Fitted(NamedTuple):
    """What a fit on a cluster leaves behind."""

    rounds: Rounds
    seen: Seen | None
    loss: BoostingLoss
    claim: float


def fit_on_cluster(
    model: Any, table: Table, run: Run, checkpoint: Checkpoint, given: Part | None, lines: Any
) -> Fitted:
    """Fit a model on a Dask collection; `given` are the rows of the caller that decide when to stop."""
    owner, classes = type(model).__name__, table.classes
    n_classes = 0 if classes is None else len(classes)
    if classes is not None:
        model.classes_ = np.asarray(classes)
    loss = model._loss(n_classes)
    model.n_trees_per_iteration_ = loss.n_outputs
    model._plan(loss)  # raises where constraints do not fit the table
    of_class = None
    if classes is not None and model.class_weight is not None:
        of_class = model._class_factors(classes, map_reduce(table.blocks, partial(_ledgers_of, K=n_classes), np.add))
    fit = ClusterFit(model, table, run, of_class)
    n_rows = fit.count_rows()
    stopping = model._stopping(n_rows, given is not None)
    _refuse(owner, model, stopping)
    chosen, out = None, None
    if given is None and stopping is not None and stopping.fraction is not None:
        y = np.broadcast_to(0.0, n_rows) if classes is None else fit.labels()
        chosen, out = hold_out(owner, y, classes is not None, stopping.fraction, model.seed_)
    model.n_held_out_ = 0 if out is None else len(out)
    bins = fit.find_bins(n_rows, chosen)
    checkpoint.name(model, bins, (n_rows, bins.n_columns))
    fit.encode(bins, chosen, out)
    held = None if given is None else _coded(bins, given)
    job = Job(_twin(model), bins, n_classes, stopping, given is not None or out is not None)

    def observe(kept: Kept, n_new: int) -> bool:
        stop = False
        for m in range(len(kept.steps) - n_new, len(kept.steps)):
            if lines is not None:
                trees = kept.trees[m * loss.n_outputs : (m + 1) * loss.n_outputs]
                lines(Rounds(np.empty((0, 0)), [], kept.steps[: m + 1], kept.losses[: m + 2]), trees)
            stop = run.progress(m + 1, kept.losses[m + 1])
        return stop

    kept = fit.boost(job, held, checkpoint, observe)
    model.baseline_ = np.asarray(kept.baseline)
    rounds = Rounds(np.empty((0, 0)), kept.trees, kept.steps, kept.losses, kept.outside)
    return Fitted(rounds, None if stopping is None else Seen(job.has_held, kept), loss, fit.claim)


def _refuse(owner: str, model: Any, stopping: Stopping | None) -> None:
    """Raise DataError for what needs all rows in one place."""
    if model.sampling == "gradient" and model.subsample < 1.0:
        raise DataError(f"{owner}: sampling='gradient' sorts all rows, which lie on several workers; use 'uniform'.")
    if stopping is not None and not (isinstance(stopping.scoring, str) and stopping.scoring == "loss"):
        raise DataError(
            f"{owner}: on a Dask cluster rounds stop early by the loss; got scoring={stopping.scoring!r}. Set "
            "scoring='loss'."
        )


def _twin(model: Any) -> Any:
    """Return a model of the same parameters that knows the columns, classes and the seed, and nothing else."""
    twin = type(model)(**{**model.get_params(deep=False), "random_state": None, "checkpoint": None})
    for name in ("n_features_in_", "feature_names_in_", "is_categorical_", "levels_", "classes_", "seed_"):
        if hasattr(model, name):
            setattr(twin, name, getattr(model, name))
    twin.n_trees_per_iteration_ = model.n_trees_per_iteration_
    return twin


def _coded(bins: Bins, part: Part) -> Coded:
    codes = bins.encode(bound_infinity(part.X.toarray() if hasattr(part.X, "toarray") else part.X))
    return Coded(codes.rows, codes.columns, part.y, part.w)


class ClusterFit:
    """One fit on a cluster.

    Parameters
    ----------
    model : estimator
        The model, as far as the client knows it: parameters, classes, seed.
    table : Table
        Whose blocks are those of a Dask collection.
    run : Run
        Clock and callbacks.
    of_class : (K,) or None
        Factors on the weights by class.
    """

    def __init__(self, model: Any, table: Table, run: Run, of_class: Array | None) -> None:
        self.owner, self.model, self.run, self.of_class = type(model).__name__, model, run, of_class
        self.blocks: Any = table.blocks  # of a Dask collection
        self.n_classes = 0 if table.classes is None else len(table.classes)
        self.client = current_client()
        self.name = secrets.token_hex(8)
        self.attempts = 0
        self.bytes_sent = 0
        self.claim = np.inf

    # What is found out before the first round

    def count_rows(self) -> int:
        """Return the number of rows with positive weight, in one sweep that also checks the cells."""
        n = self.blocks.n_rows
        self.starts = [*self.blocks.first_rows, n]
        return n

    def labels(self) -> NDArray[np.int64]:
        """Return the class codes of all rows."""
        pieces = map_reduce(self.blocks, _labels_of, joined_lists)
        return np.concatenate(pieces).astype(np.int64)

    def find_bins(self, n_rows: int, fit: Rows | None) -> Bins:
        """Return the bins that the table in memory would have."""
        model = self.model
        every = n_rows if fit is None else len(fit)
        chosen = sample_rows(every, model.seed_ % 2**32)
        rows = fit if chosen is None else (chosen if fit is None else fit[chosen])
        # Not by `map_reduce`, which would keep all rows as numbers on the workers for passes that do not come.
        pieces = list(self.blocks.each(partial(_sample_of, rows=rows, of_class=self.of_class)))
        w = None if pieces[0].w is None else np.concatenate([piece.w for piece in pieces])
        X = np.concatenate([piece.X for piece in pieces])
        settings = BinSettings(
            self.owner, model.max_bins, model.seed_ % 2**32, None, model.is_categorical_, model.levels_, self.n_classes
        )
        return bins_of_sample(self.blocks, fit, X, w, settings)

    def encode(self, bins: Bins, fit: Rows | None, out: Rows | None) -> None:
        """Plan the encoding of each partition; workers do it when they are asked for the codes."""
        import dask

        call = dask.delayed(_encode, pure=False)
        self.tasks, self.n_fit = [], []
        for number, part in enumerate(self.blocks.parts):
            first, last = self.starts[number], self.starts[number + 1]
            if first == last:
                continue
            split = (_own(fit, first, last), np.zeros(0, np.int64) if out is None else _own(out, first, last))
            work = partial(encode_partition, self.blocks.read, bins, self.of_class, split)
            self.tasks.append(call(work, part, number))
            self.n_fit.append(last - first if split[0] is None else len(split[0]))
        self.codes: list[Any] = []

    # Rounds

    def boost(self, job: Job, held: Coded | None, checkpoint: Checkpoint, observe: Any) -> Kept:
        """Return all rounds."""
        kept = checkpoint.load() or NOTHING
        fruitless = 0
        finished = len(kept.steps) >= self.model._n_rounds()
        while not finished:
            before = len(kept.steps)
            attempt = _Attempt(self, job, held)
            try:
                attempt.begin()
                while not finished and not attempt.outgrown():
                    added = attempt.next_slice(kept, self._seconds())
                    kept = _joined(kept, added.kept)
                    self.bytes_sent, self.claim = added.bytes_sent, added.claim
                    checkpoint.save(kept)
                    finished = added.finished or observe(kept, len(added.kept.steps))
            except (ClusterLostError, PartLostError) as error:
                if isinstance(error, HopelessError):
                    self._release()
                    raise error.kind(f"{self.owner}: {error} {self._so_far(kept, checkpoint)}") from error
                fruitless = 0 if len(kept.steps) > before else fruitless + 1
                if fruitless >= _TRIES or not self._is_alive():
                    raise DataError(self._lost(kept, checkpoint, error)) from error
            except BaseException:
                self._release()
                raise
            finally:
                attempt.end()
        self._release()
        checkpoint.remove()
        return kept

    def _release(self) -> None:
        """Let the workers forget the codes."""
        with suppress(Exception):  # the cluster may be gone; nothing is left to forget then
            self.client.cancel(self.codes, force=True)
        self.codes = []

    def _seconds(self) -> float:
        deadline = self.run.seconds_left
        return _SLICE if deadline is None else max(0.0, min(_SLICE, deadline))

    def _is_alive(self) -> bool:
        """Wait for workers; tell whether there are any."""
        began = time.monotonic()
        while self.client.status in ("running", "connecting") and time.monotonic() - began < _PATIENCE:
            if self.workers():
                return True
            time.sleep(_POLL)
        return False

    def workers(self) -> dict[str, int]:
        """Return the threads of each worker that is there, by address."""
        try:
            return dict(sorted(self.client.nthreads().items()))
        except Exception as error:  # the scheduler is gone
            raise ClusterLostError(str(error)) from error

    def _lost(self, kept: Kept, checkpoint: Checkpoint, error: BaseException) -> str:
        n = len(kept.steps)
        return (
            f"{self.owner}: the Dask cluster was lost after {n} of {self.model._n_rounds()} rounds ({error}). Start "
            f"the cluster again and repeat the call{_remedy(n, checkpoint)}."
        )

    def _so_far(self, kept: Kept, checkpoint: Checkpoint) -> str:
        n = len(kept.steps)
        return f"Then repeat the call, which had done {n} of {self.model._n_rounds()} rounds{_remedy(n, checkpoint)}."


def _remedy(n_rounds: int, checkpoint: Checkpoint) -> str:
    """Return what is kept of the rounds so far, as the end of a sentence."""
    if checkpoint.path is None:
        return "; with checkpoint=path the rounds so far would be kept in a file"
    return f": it goes on after round {n_rounds}, which {str(checkpoint.path)!r} keeps"


class _Attempt:
    """Rounds with one set of workers, until one of them is gone or others have joined."""

    def __init__(self, fit: ClusterFit, job: Job, held: Coded | None) -> None:
        self.fit, self.job, self.client = fit, job, fit.client
        fit.attempts += 1
        self.name = f"{fit.name}-{fit.attempts}"
        self.held = held
        self.futures: list[Any] = []
        self.ranks: list[str] = []  # address of the worker of each part
        self.begun = False

    def begin(self) -> None:
        """Share out the partitions, and let part 0 listen."""
        fit = self.fit
        threads = fit.workers()
        if not threads:
            raise ClusterLostError("there are no workers")
        slots = [address for address, count in threads.items() for _ in range(count)]
        self.groups = share_out(fit.n_fit, len(slots))
        self.ranks = slots[: len(self.groups)]
        self.threads = threads
        fit.codes = [code if _is_there(code) else None for code in fit.codes] or [None] * len(fit.tasks)
        for number, task in enumerate(fit.tasks):
            if fit.codes[number] is None:  # anywhere: a worker that is named would bind the source of the partition too
                fit.codes[number] = self.client.compute(task, retries=_RETRIES)
        host = host_of(self.ranks[0])
        try:
            found = self.client.run(open_server, self.name, host, workers=[self.ranks[0]])
        except Exception as error:  # whatever a worker that is just dying answers
            raise ClusterLostError(str(error)) from error
        self.address = next(iter(found.values()))
        self.secret = secrets.token_bytes(32)

    def outgrown(self) -> bool:
        """Tell whether workers have joined that could take part."""
        now = self.fit.workers()
        more = sum(now.values()) > sum(self.threads.values())
        return self.begun and more and len(self.fit.tasks) > len(self.groups)

    def next_slice(self, kept: Kept, seconds: float) -> Slice:
        """Return the rounds that the parts have added."""
        self.futures = []
        first = not self.begun
        for rank, (group, address) in enumerate(zip(self.groups, self.ranks, strict=True)):
            place = Place(self.name, rank, len(self.ranks), self.address, self.secret)
            pieces = [self.fit.codes[number] for number in group] if first else []
            job = self.job if first else None
            self.futures.append(
                self.client.submit(
                    run_rounds,
                    job,
                    place,
                    kept if first else None,
                    pieces,
                    self._given(rank, first),
                    seconds,
                    workers=[address],
                    allow_other_workers=False,
                    pure=False,
                    retries=0,
                    priority=10,
                )
            )
        self.begun = True
        self._wait()
        return self.futures[0].result()  # type: ignore[no-any-return]

    def _given(self, rank: int, first: bool) -> Coded | None:
        """Return the rows that the caller holds out, which go to part 0; the others have none of them."""
        held = self.held
        if held is None or not first:
            return None
        return held if rank == 0 else Coded(held.rows[:0], held.columns[:, :0], held.y[:0], _head(held.w))

    def _wait(self) -> None:
        """Wait until all parts are done; raise what went wrong."""
        fit = self.fit
        looked = time.monotonic()
        while True:
            for future in self.futures:
                if future.status in ("error", "cancelled", "lost"):
                    self._fail(future)
            if all(future.status == "finished" for future in self.futures):
                return
            _pause(self.futures)
            if time.monotonic() - looked > 2 * _POLL:
                looked = time.monotonic()
                if self.client.status not in ("running", "connecting"):
                    raise ClusterLostError("the scheduler is gone")
                gone = set(self.ranks) - set(fit.workers())
                if gone:
                    raise ClusterLostError(f"worker {min(gone)} is gone")

    def _fail(self, future: Any) -> None:
        """Raise the error of a part: one of the data as it is, else that the attempt has failed."""
        error = future.exception() if future.status == "error" else None
        if isinstance(error, LearnableError):
            raise error
        kind = type(error).__name__
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:
            raise HopelessError("the disk of a worker is full. Free it, or give the workers another local_directory.")
        self._require_source()
        if error is None or isinstance(error, PartLostError) or kind in ("KilledWorker", "CancelledError"):
            raise ClusterLostError(str(error or "a task was lost"))
        if kind.startswith("Future") or isinstance(error, (OSError, TimeoutError)):
            raise ClusterLostError(str(error))
        first_line = (str(error).strip().splitlines() or [kind])[0]
        raise DataError(f"{self.fit.owner}: a part of the fit could not be computed: {first_line}") from error

    def _require_source(self) -> None:
        """Raise HopelessError if rows are lost that Dask cannot load again."""
        for code in self.fit.codes:
            if code is None or code.status != "cancelled":
                continue
            try:
                code.result(timeout=_POLL)
            except Exception as error:  # of a class that Dask has in some versions only
                if "lost dependencies" in str(error):
                    raise HopelessError(
                        "a worker died, and Dask cannot compute again the partitions that it held, because they were "
                        "sent there and have no other source. Load them again, from files for example.",
                        LostRowsError,
                    ) from error

    def end(self) -> None:
        """Let the workers forget what they hold; parts that wait for others are ended."""
        with suppress(Exception):  # the cluster may be gone; nothing is left to end then
            self.client.cancel(self.futures, force=True)
        self.futures = []
        with suppress(Exception):
            here = [address for address in dict.fromkeys(self.ranks) if address in self.fit.workers()]
            if here:
                self.client.run(forget, self.name, workers=here, on_error="ignore")


def share_out(heights: list[int], n_parts: int) -> list[list[int]]:
    """Return runs of partitions of about equal height, at most `n_parts` and none of them without rows.

    Examples
    --------
    >>> share_out([10, 10, 10, 30], 2), share_out([5, 0], 3)
    ([[0, 1, 2], [3]], [[0, 1]])
    """
    total, groups = sum(heights), [[]]  # type: ignore[var-annotated]
    seen, filled = 0, 0
    for number, height in enumerate(heights):
        middle = seen + height / 2
        wanted = min(n_parts - 1, int(middle * n_parts / max(total, 1)))
        if wanted > filled and sum(heights[k] for k in groups[-1]) and height:
            groups.append([])
            filled = wanted
        groups[-1].append(number)
        seen += height
    return groups


def _head(w: Array | None) -> Array | None:
    return None if w is None else w[:0]


def _encode(work: Any, part: Any, number: int) -> Any:
    return work(part, number)


def _joined(kept: Kept, added: Kept) -> Kept:
    """Return all rounds so far."""
    return Kept(
        added.baseline,
        kept.trees + added.trees,
        kept.steps + added.steps,
        kept.losses + added.losses,
        kept.outside + added.outside,
        kept.scores + added.scores,
        kept.train_scores + added.train_scores,
    )


def _pause(futures: list[Any]) -> None:
    """Wait a little, or until all are done."""
    from distributed import wait

    try:
        wait(futures, timeout=_POLL)
    except Exception:  # time is up, or a task has failed: the caller looks at each
        return


def _is_there(code: Any) -> bool:
    return code is not None and code.status in ("pending", "finished")


def _own(rows: Rows | None, first: int, last: int) -> Rows | None:
    """Return which of the rows are from `first` to `last` − 1, counted from `first`."""
    if rows is None:
        return None
    begin, end = np.searchsorted(rows, [first, last])
    return rows[begin:end] - first


def _ledgers_of(block: Block, K: int) -> NDArray[np.int64]:
    return ledgers_by_group(np.asarray(block.y), block.weight, K)


def _labels_of(block: Block) -> list[Any]:
    return [np.asarray(block.y).astype(np.int32)]


def _sample_of(block: Block, rows: Rows | None, of_class: Array | None) -> Sample:
    own = slice(None)
    if rows is not None:
        own = _own(rows, block.start, block.start + block.X.shape[0])  # type: ignore[assignment]
    w = block.weight
    if of_class is not None:
        w = of_class[block.y] if w is None else of_class[block.y] * w
    return Sample(bound_infinity(block.X[own]), None if w is None else w[own])
