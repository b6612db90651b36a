"""What a worker does in a fit on a cluster: it holds the codes of some rows and runs the boosting loop on them.

All workers run the same loop (`driver.boost`) on rows of their own and come to the same trees, because whatever they
decide by is a sum over all parts. A task runs rounds for a second or two and returns them; what it holds stays in the
worker until the next task comes. Whatever a worker holds can be made again from its codes and the trees so far.
"""

from __future__ import annotations

import threading
import time
from typing import Any, NamedTuple

import numpy as np

from ...core import Array, DataError, NDArray, Run
from ...data.any_order import World
from ...data.arrays import bound_infinity
from ...data.dask_blocks import Reader
from ...data.sockets import PartLostError, SocketWorld, listen
from ...trees.histogram.bins import BinnedTable, Bins
from ...trees.histogram.walker import CodeWalker
from ...trees.layout import Trees
from .driver import Rounds, boost
from .settings import Part, Stopping, Watch
from .streams import Encoded

Rows = NDArray[np.int64]


class Coded(NamedTuple):
    """The rows of a partition: those to fit, or those held out."""

    rows: NDArray[np.uint8]
    columns: NDArray[np.uint8]
    y: NDArray[Any]
    w: Array | None


class Job(NamedTuple):
    """What all parts of a fit have to know."""

    model: Any  #: parameters, and what the client has found out about the table
    bins: Bins
    n_classes: int
    stopping: Stopping | None
    has_held: bool


class Kept(NamedTuple):
    """The rounds so far."""

    baseline: Array | None
    trees: list[Trees]
    steps: list[float]
    losses: list[float]
    outside: list[tuple[float, float]]
    scores: list[float]  #: of the rows held out
    train_scores: list[float]


NOTHING = Kept(None, [], [], [], [], [], [])


class Place(NamedTuple):
    """Where a part stands among the others."""

    fit: str  #: names the fit and the attempt
    rank: int
    size: int
    address: tuple[str, int]
    secret: bytes


class Slice(NamedTuple):
    """What a task returns: the rounds that it has added, and whether there is nothing more to do."""

    kept: Kept
    finished: bool
    claim: float  #: of the certificate
    bytes_sent: int


def encode_partition(
    read: Reader, bins: Bins, of_class: Array | None, split: tuple[Rows | None, Rows | None], raw: Any, number: int
) -> tuple[Coded, Coded]:
    """Return the codes of the rows of a partition that are fitted, and of those that are held out."""
    X, y, w = read(raw, number)
    if of_class is not None:
        w = of_class[y] if w is None else of_class[y] * w
    found = []
    for rows in split:
        own = slice(None) if rows is None else rows
        codes = bins.encode(bound_infinity(np.ascontiguousarray(X[own])))
        found.append(Coded(codes.rows, codes.columns, np.asarray(y)[own], None if w is None else w[own]))
    return found[0], found[1]


# --------------------------------------------------------------------------------------------------------------------
# What a worker holds between two tasks. Workers of one process share these tables.


_LOCK = threading.Lock()
_SERVERS: dict[str, Any] = {}
_PARTS: dict[tuple[str, int], RankFit] = {}
_WORLDS: dict[str, list[SocketWorld]] = {}


def open_server(fit: str, host: str) -> tuple[str, int]:
    """Let the parts of a fit connect to this worker."""
    server = listen(host)
    with _LOCK:
        _SERVERS[fit] = server
    return host, int(server.getsockname()[1])


def forget(fit: str) -> None:
    """End the parts of a fit that are here: those that wait for others stop waiting."""
    with _LOCK:
        server = _SERVERS.pop(fit, None)
        worlds = _WORLDS.pop(fit, [])
        for key in [key for key in _PARTS if key[0] == fit]:
            del _PARTS[key]
    for world in worlds:
        world.close()
    if server is not None:
        server.close()


def run_rounds(
    job: Job | None, place: Place, kept: Kept | None, pieces: list[Any], given: Coded | None, seconds: float
) -> Slice:
    """Run rounds for some seconds; the first task of a part, which has a job, makes what the part holds."""
    key = (place.fit, place.rank)
    _step_aside()
    if job is not None and kept is not None:
        part = RankFit(job, place, kept, pieces, given)
        with _LOCK:
            _PARTS[key] = part
    with _LOCK:
        found = _PARTS.get(key)
    if found is None:
        raise PartLostError("the worker has been started again")
    return found.run(seconds)


def _step_aside() -> None:
    """Leave the worker's pool of threads: parts wait for each other, and must not keep others from being started."""
    from distributed import secede

    secede()


class RankFit:
    """One part of a fit."""

    def __init__(
        self, job: Job, place: Place, kept: Kept, pieces: list[tuple[Coded, Coded]], given: Coded | None
    ) -> None:
        from .hist import HistLearner  # which is built on the client's side of this

        self.job, self.model = job, job.model
        self.world: World = self._join(place)
        part = self._joined([piece[0] for piece in pieces])
        held = None
        if job.has_held:
            held = self._joined([piece[1] for piece in pieces] if given is None else [given])
        model, world = self.model, self.world
        self.loss = model._loss(job.n_classes)
        if not job.n_classes:
            self.loss.targets.check(type(model).__name__, part.y, world)
        self.y, self.w = self.loss.targets.truth(part.y), part.w
        start = self.loss.targets.start(self.loss, self.y, part.w, world) if kept.baseline is None else kept.baseline
        model.baseline_ = start
        F = np.repeat(start[:, None], len(self.y), axis=1)
        self.rounds = Rounds(F, [], list(kept.steps), list(kept.losses), list(kept.outside))
        self.watch = None
        if job.stopping is not None:
            self.watch = Watch(model, self.loss, part, self.y, held, job.stopping, self.rounds, None, world)
            if kept.steps:
                self.watch.scores, self.watch.train_scores = list(kept.scores), list(kept.train_scores)
        self._replay(part, kept.trees)
        rule = model._rule(self.loss.n_outputs, part, world)
        stop = np.zeros(1, np.int64)
        self.learner = HistLearner(part.X, part.X.binned, rule, model.max_bins, 1, stop, np.empty, world)
        self.plan = model._plan(self.loss)
        self.claim = model._claim(part, world)

    def _join(self, place: Place) -> SocketWorld:
        with _LOCK:
            server = _SERVERS.pop(place.fit, None) if place.rank == 0 else None
        if place.rank == 0 and server is None:
            raise PartLostError("the worker has been started again")
        world = SocketWorld(place.rank, place.size, place.secret, server, place.address)
        with _LOCK:
            _WORLDS.setdefault(place.fit, []).append(world)
        return world

    def _joined(self, pieces: list[Coded]) -> Part:
        """Return the rows of several partitions as one part."""
        one = len(pieces) == 1
        rows = pieces[0].rows if one else np.concatenate([piece.rows for piece in pieces])
        columns = pieces[0].columns if one else np.concatenate([piece.columns for piece in pieces], axis=1)
        y = np.concatenate([piece.y for piece in pieces])
        w = None if pieces[0].w is None else np.concatenate([piece.w for piece in pieces])
        binned = BinnedTable(self.job.bins, rows, columns)
        return Part(Encoded(binned, (len(y), binned.n_columns)), y, w)

    def _replay(self, part: Part, trees: list[Trees]) -> None:
        """Bring the scores to where the rounds so far have brought them."""
        K = self.loss.n_outputs
        walker = CodeWalker(part.X.binned)
        for number, tree in enumerate(trees):
            walker.add(tree, self.rounds.F[number % K])
            if self.watch is not None and self.watch.walker is not None:
                self.watch.walker.add(tree, self.watch.F[number % K])

    def run(self, seconds: float) -> Slice:
        """Add rounds until part 0 finds that the time is up."""
        rounds, world, watch = self.rounds, self.world, self.watch
        before = len(rounds.steps)
        deadline = time.monotonic() + seconds
        paused = np.zeros(1, np.int64)
        enough = False

        def look(rounds: Rounds, trees: list[Trees]) -> bool:
            nonlocal enough
            enough = watch is not None and watch(rounds, trees)
            paused[0] = time.monotonic() > deadline
            paused[:] = world.from_root(paused)
            return bool(enough or paused[0])

        boost(self.loss, self.y, self.w, self.learner, self.plan, Run(n_jobs=1), rounds, look, world)
        if not np.isfinite(rounds.losses[0]):
            raise DataError(f"{type(self.model).__name__}: the loss of the first scores is not a number; rescale y.")
        done = len(rounds.steps)
        finished = enough or not paused[0] or done >= self.plan.n_rounds
        added = Kept(
            self.model.baseline_,
            rounds.trees,
            rounds.steps[before:],
            rounds.losses[before + 1 if before else 0 :],
            rounds.outside[before:],
            [] if watch is None else watch.scores[before + 1 if before else 0 :],
            [] if watch is None else watch.train_scores[before + 1 if before else 0 :],
        )
        rounds.trees = []
        return Slice(added, finished, self.claim, getattr(world, "bytes_sent", 0))
