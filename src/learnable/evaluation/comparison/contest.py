"""Compare models on a table, honestly.

One part of the rows is set aside at once. The models are cross-validated on the rest, each in a process of its own that
is killed at its deadline; every fold is encoded once, by an encoder that has seen its training rows alone, and shared,
memory-mapped. The best model is then judged on the rows set aside, because the best of several scores is optimistic,
and refitted on all rows to be kept. (S. Bates, T. Hastie and R. Tibshirani, Cross-validation: what does it estimate and
how well does it do it?, JASA 119, 2024.)
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from time import monotonic, process_time
from typing import Any, Final

import numpy as np

from ...core.declare import Number, check_parameters, optional
from ...core.errors import DataError, ParameterError
from .ahead import CompileAhead, usable_cores
from .candidates import Candidate, candidates_for, one_of_each_first, short_names, wants_dense, with_probabilities
from .clock import NOT_STARTED, Clock, OutOfTimeError, cut_notes
from .cluster import folds_on
from .columns import periods
from .finish import Finish
from .leaderboard import fill_row, rank_rows
from .measures import OF_PROBABILITIES, Cost, Measure, lopsided_note, measures_for, ranking_measure, read_cost
from .problem import Problem, read_problem
from .race import Outcome, Server, checksum, free_memory, temporary_folder
from .record import (
    FORMAT,
    VERSION,
    ComparisonRecord,
    ProtocolRecord,
    Row,
    TimingRecord,
    new_row,
    python_lines,
    shown,
    timestamp,
    versions,
)
from .screening import LEAST_SHARE, Screening
from .second_tries import SecondTries
from .series import about_past, past_rows
from .splitting import WORDS, cut, cut_as_given
from .tuning import Blended, Tuning, settle
from .workspace import FINAL, GIVEN, write_problem

Event = dict[str, Any]
_SHARE_OF_MEMORY: Final = 0.8
_SHARE_OF_ENCODING: Final = 0.4
_LEVEL: Final = 0.95
_FEW_COPIES: Final = 0.01  # share of the rows below which copies hardly change a score
_SHARE_OF_TUNING: Final = 0.45  # of the time for models: what better settings bring is worth as much as more families
_JOBS_TO_FINISH: Final = 4  # hold-out, model file, coverage of the intervals, importances
_RULES: Final = {
    "seconds": optional(Number(low=0.0, low_open=True)),
    "folds": Number(low=2, integer=True),
    "seed": Number(low=0, integer=True),
    "memory": optional(Number(low=1)),
}


def compare(
    data: Any,
    target: str,
    *,
    groups: str | None = None,
    time: str | None = None,
    seconds: float | None = None,
    models: Iterable[Any] | None = None,
    folds: int = 5,
    seed: int = 0,
    task: str | None = None,
    metric: str | None = None,
    drop: Sequence[str] = (),
    keep: Sequence[str] = (),
    dayfirst: bool | None = None,
    kinds: Mapping[str, str] | None = None,
    copies: str = "together",
    memory: float | None = None,
    tune: bool | None = None,
    cost: Any = None,
    model_file: str | os.PathLike[str] | None = None,
    source: str | None = None,
    command: str = "",
    clock: Clock | None = None,
    server: Server | None = None,
    on_event: Callable[[Event], None] | None = None,
    client: Any = None,
) -> ComparisonRecord:
    """Compare models on a table.

    Parameters
    ----------
    data : path, dataframe or pyarrow.Table
        The table; columns may be numbers, text, dates and have gaps.
    target : str
        The column to predict. Rows where it is missing are left out.
    groups : str, optional
        A column whose equal values stay together in every split.
    time : str, optional
        A column of dates or numbers by which the rows are ordered: training rows come before test rows, and the last
        value and the value one season ago take part as baselines, within `groups` if these are given too.
    seconds : float, optional
        A limit for everything, shared out among the models; a tenth of it (at most 3 s, or 3 %) is left to the caller.
    models : iterable, optional
        Registered names, `"module:Class"`, estimators or (name, estimator) pairs; default: all registered for the task.
    folds : int
        Folds of the cross-validation.
    seed : int
        Where randomness comes from.
    task : {"regression", "classification"}, optional
        What the target is; by default its values decide.
    metric : str, optional
        What ranks: r2, rmse, mae, or accuracy, balanced_accuracy, log_loss, auc,
        average_precision (of the rarer class).
    drop, keep : sequences of str
        Columns to leave out; columns to learn from although they look like identifiers.
    dayfirst : bool, optional
        Whether 03/04/2024 is in April; needed where no row of a column of dates tells.
    kinds : mapping, optional
        What columns of text hold, by name: "text", "date", "number" or one of `learnable.data.readings.READINGS`.
    copies : {"together", "apart"}
        Whether rows that are copies of each other stay on one side of every split.
    memory : float, optional
        Bytes that a model may take; default: 80 % of what is free.
    tune : bool, optional
        Whether to tune the best families on the folds and to blend the best models, as time allows; by default where
        there is a limit and no models are named.
    cost : str or mapping, optional
        What the wrong decisions of two classes cost, as `"FP=1,FN=20"`; the rarer class is the positive one. The kept
        model decides by the threshold of the least cost. Without costs, where a class has 90 % of the rows, by that of
        the greatest F1.
    model_file : path, optional
        Where to save the best model, refitted on all rows.
    source, command : str
        The table's name and the command, for the record.
    clock : Clock, optional
        A limit that began before the call, instead of `seconds`.
    server : Server, optional
        One that was started before, while the table was read.
    on_event : callable, optional
        Called with a dict for everything that happens: `"kind"` is "data", "plan", "stage", "compiling", "start",
        "fold", "finish", "ranked" or "aside" (what the winner says of every row set aside).
    client : distributed.Client or True, optional
        A Dask cluster, or the one in use, on which the folds of each model run side by side; the scores are the same.

    Returns
    -------
    dict
        The record (`learnable.evaluation.comparison.record`): plain JSON types, in a dict that notebooks and the
        prompt show as a table. After Ctrl-C, its "status" is "interrupted" and it holds what was finished.

    Examples
    --------
    >>> import numpy as np
    >>> import pyarrow as pa
    >>> from learnable.evaluation import compare
    >>> x = np.linspace(0.0, 1.0, 60)
    >>> record = compare(pa.table({"x": x, "y": 2.0 * x + np.sin(40 * x)}), "y", models=["LinearRegression"])
    >>> [row["name"] for row in record["leaderboard"]]
    ['LinearRegression', 'baseline: the mean']
    """
    given = {"seconds": seconds, "folds": folds, "seed": seed, "memory": memory}
    check_parameters("compare", given, _RULES)
    clock = clock or Clock(seconds)
    if models is not None:
        models = [models] if isinstance(models, str) else list(models)
    server = server or Server(models)
    given_tune = tune
    given_metric = metric
    tune = models is None and clock.seconds is not None if tune is None else bool(tune)
    began = (monotonic(), process_time())
    problem = read_problem(
        "compare", data, target, groups=groups, time=time, task=task, drop=drop, keep=keep, source=source,
        dayfirst=dayfirst, kinds=kinds, copies=copies,
    )  # fmt: skip
    clock = clock.paced(monotonic() - began[0], process_time() - began[1])
    prices = read_cost(cost)
    if prices is not None and problem.task != "binary":
        raise ParameterError(f"compare: cost is for a target of two classes; {target!r} is for {problem.task}.")
    lopsided = None
    if problem.labels is not None:
        lopsided = lopsided_note(problem.data["class_counts"] or [], problem.classes or [])
    if lopsided is not None and metric is None:
        metric = "log_loss"
        problem.notes.append(lopsided)
    if task is None and problem.task == "multiclass" and problem.data["task_reason"].endswith("whole numbers"):
        problem.notes.append(
            f"{target!r} has {problem.data['task_reason']} and is taken for classes; if they are ratings or amounts, "
            "--task regression predicts them as numbers"
        )
    measure = ranking_measure(problem.task, metric)
    candidates = candidates_for(problem.task, models, problem.y)
    if models is None and measure.name in OF_PROBABILITIES:
        candidates, left_out = with_probabilities(candidates, measure.label)
        if left_out is not None:
            problem.notes.append(left_out)
    emit = on_event or (lambda event: None)
    path = os.fspath(data) if isinstance(data, (str, os.PathLike)) else None
    lines = python_lines(
        path, target,
        {
            "groups": groups, "time": time, "seconds": clock.seconds, "models": models, "folds": folds, "seed": seed,
            "task": task, "metric": given_metric, "drop": list(drop), "keep": list(keep), "dayfirst": dayfirst,
            "kinds": dict(kinds or {}), "copies": copies, "memory": memory, "tune": given_tune, "cost": cost,
            "model_file": None if model_file is None else os.fspath(model_file),
        },
    )  # fmt: skip
    ahead = CompileAhead(server, [candidate.model for candidate in candidates if candidate.path], problem.task)
    problem.notes.extend(about_past(problem, groups))
    emit({"kind": "data", "data": problem.data, "notes": problem.notes})
    with temporary_folder() as folder:
        race = _Comparison(
            folder, folds_on(client, server), problem, candidates, measure, folds, seed, memory, clock, emit, ahead,
            tune=tune, cost=prices, lopsided=lopsided,
        )  # fmt: skip
        return shown(race.run(model_file, command, lines))


class _Comparison(SecondTries):
    """One comparison in progress: the state that outlives an interruption."""

    def __init__(
        self,
        folder: Path,
        server: Server,
        problem: Problem,
        candidates: list[Candidate],
        measure: Measure,
        folds: int,
        seed: int,
        memory: float | None,
        clock: Clock,
        emit: Callable[[Event], None],
        ahead: CompileAhead,
        *,
        tune: bool,
        cost: Cost | None,
        lopsided: str | None,
    ) -> None:
        self.ahead = ahead
        self.folder = folder
        self.server = server
        self.problem = problem
        self.candidates = candidates
        self.measure = measure
        self.seed = seed
        self.clock = clock
        self.emit = emit
        room = free_memory()
        self.memory = int(memory) if memory is not None else room and int(_SHARE_OF_MEMORY * room)
        self.rows: list[Row] = [new_row(c.name, c.model, c.parameters, baseline=c.baseline) for c in candidates]
        self.folds = folds
        self.repeats = 1
        self.scheme, self.final, self.splits = cut(problem, folds, seed)
        self.messages: dict[str, list[Any]] = {}
        self.past: list[Row] = []
        self.given = problem.grouping == "copies" and problem.data["copies"]["rows"] >= _FEW_COPIES * len(problem.y)
        self.seconds_of = {"models": 0.0, "encoding": 0.0, "finish": 0.0}
        self.encode_seconds = 0.0
        self.interrupted = False
        self.tune = tune
        self.cost = cost
        self.lopsided = lopsided
        self.level = _LEVEL
        self.given_seconds: dict[str, float | None] = {}
        self.around_jobs: list[float] = []  # seconds that jobs took besides their fits and predictions
        self.tuning_seconds = 0.0
        self.blended: Blended | None = None
        self.screening = Screening(self)

    def run(self, model_file: Any, command: str, python: str) -> ComparisonRecord:
        """Encode, race, rank, finish; after Ctrl-C rank what there is."""
        finish = Finish(self, model_file)
        try:
            self.encode()
            self.emit({"kind": "plan", "models": [row["name"] for row in self.rows], "protocol": self.protocol()})
            self.race()
            if self.tune:
                Tuning(self).run()
            settle(self)
        except KeyboardInterrupt:
            self.interrupted = True
            self.clock = self.clock.stopped()
        if self.interrupted and not any(row["status"] == "ok" for row in self.rows):
            raise KeyboardInterrupt
        ranked = self.ranked()
        self.emit({"kind": "ranked", "leaderboard": ranked})
        finish.announce(ranked)
        try:
            if not self.interrupted or self.clock.stop_at is not None:
                finish.run(ranked)
        except KeyboardInterrupt:
            self.interrupted = True
        return self.record(ranked, finish, command, python)

    def encode(self) -> None:
        """Write the problem and encode its splits; with little time, as many as can be."""
        names = [FINAL, *(str(number) for number in range(len(self.splits)))]
        write_problem(
            self.folder,
            self.problem.features,
            self.problem.y,
            dict(zip(names, [self.final, *self.splits], strict=True))
            | ({GIVEN: cut_as_given(self.problem, self.seed)} if self.given else {}),
            self.problem.readings,
        )
        self.problem.data["fingerprint"] = checksum(self.folder)
        self.wait_for_server()
        self.emit({"kind": "stage", "text": "encoding the columns"})
        limit = self.clock.left(self.clock.reserve_for_end())
        outcome = self.do(
            "workspace:encode_splits",
            seconds=None if limit is None else _SHARE_OF_ENCODING * limit,
            on_message=lambda m: self.emit({"kind": "stage", "text": f"encoded {m['columns']} columns"}),
            splits=names,
            task=self.problem.task,
            dense=any(wants_dense(candidate) for candidate in self.candidates),
        )
        self.seconds_of["encoding"] = outcome.seconds
        ready = [message["split"] for message in outcome.messages]
        self.encode_seconds = float(np.mean([message["seconds"] for message in outcome.messages] or [0.0]))
        if outcome.status == "interrupted":
            raise KeyboardInterrupt
        if outcome.status == "failed":
            raise DataError(f"compare: the columns could not be encoded: {outcome.reason}")
        if len(ready) < 2:
            raise OutOfTimeError(
                f"compare: {self.clock.seconds:g} s are too few for this table: encoding its columns takes longer. "
                "Give more seconds, or fewer rows."
            )
        self.splits = self.splits[: len(ready) - 1]
        self.past = past_rows(self.problem, self.splits, self.measure, _LEVEL)

    def wait_for_server(self) -> None:
        """Wait until jobs start at once; in the first comparison ever, kernels are being compiled."""
        self.emit({"kind": "stage", "text": "starting the models (compiles on the first run)"})
        if not self.server.wait_until_ready(self.clock.left(self.clock.reserve_for_end())):
            raise OutOfTimeError(
                f"compare: {self.clock.seconds:g} s were too few to start the processes of the models. Give more "
                "seconds; if this is the first run, `learnable warmup` compiles the kernels once and for all."
            )

    def race(self) -> None:
        """Cross-validate the candidates, one after the other; long tables are screened first."""
        self.clock = self.clock.at_the_start()
        self.set_tuning_aside()
        screening = self.screening = Screening(self)
        if screening.is_needed():
            screening.run(self.reserve_for_later())
        racing = []
        pairs = list(zip(self.candidates, self.rows, strict=True))
        for candidate, row in one_of_each_first(pairs, lambda pair: pair[0]):
            if candidate.name in screening.left_behind:
                row["reason"] = screening.left_behind[candidate.name]
                self.emit({"kind": "finish", "row": row})
            else:
                racing.append((candidate, row))
        waiting = [candidate for candidate, _ in racing]
        ready_first = self.ahead.in_order(racing, lambda pair: pair[0], self.emit, self.clock)
        for position, (candidate, row) in enumerate(ready_first):
            left = self.clock.left(self.reserve_for_later())
            limit = None if left is None else screening.limit(candidate, waiting, left)
            waiting.remove(candidate)
            self.enter(candidate, row, position, limit)
        self.try_again()

    def enter(self, candidate: Candidate, row: Row, position: int, limit: float | None) -> None:
        """Cross-validate one candidate and fill its line."""
        event = {"name": candidate.name, "position": position, "of": len(self.candidates), "seconds": limit}
        if limit is not None and limit < 0.02:
            row["status"] = "timeout"
            row["reason"] = NOT_STARTED
            self.emit({"kind": "finish", "row": row})
            return
        self.emit({"kind": "start"} | event)
        names = [str(number) for number in range(len(self.splits))]
        outcome = self.score(candidate, names, limit, on_message=self.teller(event), keep=self.keeps_predictions)
        train, test = self.mean_sizes()
        fill_row(row, outcome, self.measure, len(names), test / (train + test), _LEVEL)
        self.messages[candidate.name] = outcome.messages
        self.given_seconds[candidate.name] = limit
        self.emit({"kind": "finish", "row": row})
        if outcome.status == "interrupted":
            raise KeyboardInterrupt

    def score(
        self,
        candidate: Candidate,
        splits: list[str],
        seconds: float | None,
        *,
        rows: int | None = None,
        keep: bool = False,
        on_message: Callable[[Any], None] | None = None,
    ) -> Outcome:
        """Fit and measure a candidate on some splits, in a process of its own; compiling is not its time."""
        left = self.clock.left(self.clock.reserve_for_end())
        outcome = self.do(
            "leaderboard:score_candidate",
            seconds=seconds,
            preparing=0.0 if left is None or seconds is None else max(0.0, left - seconds),
            on_message=on_message,
            splits=splits,
            candidate=candidate,
            task=self.problem.task,
            n_classes=self.n_classes,
            seed=self.seed,
            budget=seconds,
            rows=rows,
            keep=keep,
        )
        self.seconds_of["models"] += outcome.seconds
        if outcome.status == "ok":
            inside = sum(message["fit_seconds"] + message["predict_seconds"] for message in outcome.messages)
            self.around_jobs.append(max(0.0, outcome.seconds + outcome.preparing - inside))
        return outcome

    @property
    def keeps_predictions(self) -> bool:
        """Whether predictions of the folds are needed later: for a blend, or to choose a threshold."""
        return self.tune or (self.problem.task == "binary" and (self.cost or self.lopsided) is not None)

    def reserve_for_later(self) -> float:
        """Return the seconds that are not for the race: for the finish, and for tuning if there is any."""
        reserve = self.clock.reserve_for_finish(self.seconds_to_finish())
        return reserve + self.tuning_seconds

    def set_tuning_aside(self) -> None:
        """Set a share of the time that is left now aside for tuning; what came before the race costs both alike.

        Every model has its least share first: where time is that short, to see a model at all is worth more than to
        tune another.
        """
        left = self.clock.left(self.clock.reserve_for_finish(self.seconds_to_finish()))
        self.tuning_seconds = 0.0
        if self.tune and left is not None:
            models = sum(not candidate.baseline for candidate in self.candidates)
            self.tuning_seconds = min(_SHARE_OF_TUNING * left, max(0.0, left - LEAST_SHARE * models))

    def candidate(self, name: str) -> Candidate:
        """Return the candidate of a line."""
        return next(candidate for candidate in self.candidates if candidate.name == name)

    def add(self, candidate: Candidate, row: Row, messages: list[Any]) -> None:
        """Let one more candidate take part, whose line is filled already with what was told of its folds."""
        self.candidates.append(candidate)
        self.rows.append(row)
        self.messages[candidate.name] = messages

    def ranked(self) -> list[Row]:
        """Return all lines, the best first."""
        return rank_rows([*self.rows, *self.past], self.measure, *self.mean_sizes())

    def seconds_to_finish(self) -> float:
        """Estimate what judging and keeping the slowest of the best would take; intervals of numbers take six fits.

        To start a job and to load its kernels takes longer than a small fit, and several times as long where others use
        the machine: what it took in the race is counted for every job to come.
        """
        encodings, fits = (13, 14) if self.problem.labels is None else (2, 3)
        sign = -1.0 if self.measure.greater_is_better else 1.0
        complete = [row for row in self.rows if row["status"] == "ok" and not row["baseline"]]
        leading = sorted(complete, key=lambda row: sign * (row["mean"] or 0.0))[:3]
        slowest = max((row["fit_seconds"] or 0.0 for row in leading), default=0.0)
        around = _JOBS_TO_FINISH * float(np.median(self.around_jobs or [0.0]))
        return 1.3 * (encodings * self.encode_seconds + fits * slowest) + around

    def teller(self, event: Event) -> Callable[[Any], None]:
        """Return what turns the message about a fold into an event."""
        return lambda message: self.emit({"kind": "fold", "score": message["test"][self.measure.name]} | event)

    def do(
        self, function: str, *, seconds: float | None, on_message: Callable[[Any], None] | None = None,
        budget: float | None = None, preparing: float = 0.0, **arguments: Any,
    ) -> Outcome:  # fmt: skip
        """Run a job of this package on the shared folder; `budget` tells the job itself how long it may take."""
        job: dict[str, Any] = {
            "function": f"learnable.evaluation.comparison.{function}",
            "memory": self.memory,
            "folder": str(self.folder),
        }
        if budget is not None:
            job["seconds"] = budget
        return self.server.run(job | arguments, seconds=seconds, preparing=preparing, on_message=on_message)

    @property
    def n_classes(self) -> int | None:
        """How many classes the target has."""
        return None if self.problem.labels is None else len(self.problem.labels)

    def mean_sizes(self) -> tuple[float, float]:
        """Return the mean numbers of training and test rows of a fold."""
        sizes = np.array([[len(train), len(test)] for train, test in self.splits], dtype=np.float64)
        return float(sizes[:, 0].mean()), float(sizes[:, 1].mean())

    def protocol(self) -> ProtocolRecord:
        """Return how the models are judged."""
        return ProtocolRecord(
            scheme=f"{WORDS[self.scheme]}{len(self.splits)}-fold cross-validation"
            + (" (copies of a row together)" if self.problem.grouping == "copies" else ""),
            folds=len(self.splits),
            repeats=self.repeats,
            train_rows=len(self.final[0]),
            holdout_rows=len(self.final[1]),
            metric=self.measure.to_record(),
            also=[other.name for other in measures_for(self.problem.task) if other is not self.measure],
            level=_LEVEL,
            seconds_limit=self.clock.seconds,
            margin=self.margin(),
            time=periods(self.problem.times, self.final),
        )

    def margin(self) -> float | None:
        """Return the difference to the best score below which models are called equal."""
        best = next((row["mean"] for row in [*self.rows, *self.past] if row["rank"] == 1), None)
        return None if best is None else self.measure.margin(best)

    def record(self, ranked: list[Row], finish: Finish, command: str, python: str) -> ComparisonRecord:
        """Return everything that was found."""
        for row, short in zip(ranked, short_names(ranked), strict=True):
            row["short"] = short
        finish.notes += cut_notes(ranked, self.clock.seconds)
        if self.problem.times is not None and finish.winner is not None and finish.winner["intervals"]:
            finish.notes.append(
                "Prediction intervals assume that new rows are like the old ones; with time that is a hope, and their "
                "coverage of the hold-out, which came last, is the evidence for it."
            )
        total = self.clock.spent
        models, encoding, finishing = (round(self.seconds_of[name], 4) for name in ("models", "encoding", "finish"))
        return ComparisonRecord(
            format=FORMAT,
            version=VERSION,
            created=timestamp(),
            seed=self.seed,
            versions=versions(),
            command=command,
            python=python,
            machine={"cores": usable_cores()},
            status="interrupted" if self.interrupted else "complete",
            data=self.problem.data,
            protocol=self.protocol(),
            leaderboard=ranked,
            winner=finish.winner,
            details=finish.details,
            advice=finish.notes,
            timing=TimingRecord(
                total=round(total, 4),
                models=models,
                encoding=encoding,
                finish=finishing,
                overhead=round(max(0.0, total - models - encoding - finishing), 4),
            ),
        )
