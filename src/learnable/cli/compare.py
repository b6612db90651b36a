"""`learnable compare`: a table in; a leaderboard, a report and a model file out."""

from __future__ import annotations

import contextlib
import os
import sys
import time as time_module
from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import typer

from . import completion, options
from .tables import DEMO, DEMO_TARGETS, load_table, output_file

_SECONDS = 600.0
_NO_REPORT = "No time was left to write the report: give more --seconds."
_TO_PRINT = 2.0  # seconds beyond the limit in which what is being printed may end
NARROW = 80  # columns of a terminal that is not widened

#: Shown by --help.
EXAMPLES = (
    "learnable compare",
    "learnable compare houses.csv --target price",
    "learnable compare visits.parquet --target stay --groups patient --seconds 120",
    "learnable compare sales.csv -t amount --time date --json --no-save > comparison.json",
    "learnable compare demo:tumours -t diagnosis -m LogisticRegression -m sklearn.naive_bayes:GaussianNB",
)


def compare(
    data: Annotated[
        str | None,
        typer.Argument(
            metavar="DATA",
            help="A CSV, Parquet or Arrow file, a glob in quotes, a folder of them, or demo:houses, demo:tumours. "
            "Without it, demo:houses.",
        ),
    ] = None,
    target: options.Target = None,
    groups: options.Groups = None,
    time: options.Time = None,
    seconds: Annotated[
        float,
        typer.Option(min=0.0, metavar="S", help="Hard limit for everything, shared out among the models; 0 for none."),
    ] = _SECONDS,
    model: Annotated[
        list[str] | None,
        typer.Option(
            "--model",
            "-m",
            metavar="NAME",
            autocompletion=completion.model_names,
            help="Compare only this one (may be repeated): a name of `learnable models`, or any scikit-learn estimator "
            "as module:Class.",
        ),
    ] = None,
    metric: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="What ranks: r2, rmse, mae for numbers; accuracy, balanced_accuracy, log_loss, auc, "
            "average_precision (of the rarer class) for classes.",
        ),
    ] = None,
    cost: Annotated[
        str | None,
        typer.Option(
            metavar="FP=…,FN=…",
            help="What wrong decisions of two classes cost, as in FP=1,FN=20 (the rarer class is the positive one): "
            "the model decides by the threshold of the least cost.",
        ),
    ] = None,
    tune: Annotated[
        bool | None,
        typer.Option(
            "--tune/--no-tune",
            help="Tune the best models and blend them, as time allows; by default unless models are named.",
        ),
    ] = None,
    task: options.Task = None,
    folds: Annotated[int, typer.Option(min=2, max=100, metavar="K", help="Folds of the cross-validation.")] = 5,
    seed: options.Seed = 0,
    drop: options.Drop = None,
    keep: options.Keep = None,
    dayfirst: options.DayFirst = None,
    as_: options.As = None,
    copies: Annotated[
        str,
        typer.Option(
            metavar="WHERE",
            help="together: rows that are copies of each other stay on one side of every split; apart: they are split "
            "like others.",
        ),
    ] = "together",
    memory: Annotated[
        float | None,
        typer.Option(min=0.001, metavar="GIB", help="GiB that a model may take; by default 80 % of what is free."),
    ] = None,
    report: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Where the HTML report goes; by default report.html, if it is free."),
    ] = None,
    no_report: Annotated[bool, typer.Option("--no-report", help="Write no report.")] = False,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Where the best model goes; by default model.safetensors, if it is free.",
        ),
    ] = None,
    no_save: Annotated[bool, typer.Option("--no-save", help="Save no model.")] = False,
    force: options.Force = False,
    details: Annotated[
        bool,
        typer.Option("--details", help="Show the wide leaderboard: full names, training scores, times, optimisation."),
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print only what the best model scored and where the files are.")
    ] = False,
    json: options.Json = False,
    delimiter: options.Delimiter = None,
    encoding: options.Encoding = None,
    debug: options.Debug = False,
) -> int:
    """Compare models on a table: honest scores with intervals, how well each fit was solved, a report, a model file.

    One fifth of the rows is set aside and scored once, by the winner and a baseline. Every model runs in a process of
    its own. Ctrl-C keeps what is done.
    """
    from ..evaluation.comparison.clock import Clock
    from ..evaluation.comparison.race import Server

    clock = Clock(seconds or None, options.started)
    arguments = options.arguments
    with muted():
        server = Server(model or None)
    ending = _Ending(quiet=quiet, details=details, json=json)
    with hard_limit(clock, ending):
        from .display import console, display_for

        source = DEMO if data is None else data
        report, *said = output_file(report, "report.html", force=force, reads=[source])
        output, *more = output_file(output, "model.safetensors", force=force, reads=[source])
        said = [*([] if no_report else said), *([] if no_save else more)]
        out = console()
        with display_for(out, clock.seconds, clock.started, quiet=json or quiet) as display:
            record = _compare(
                source,
                target,
                clock,
                server,
                _preparing(display.on_event, no_report),
                groups=groups,
                time=time,
                models=model or None,
                metric=metric,
                cost=cost,
                tune=tune,
                task=task,
                folds=folds,
                seed=seed,
                drop=drop or [],
                keep=keep or [],
                dayfirst=dayfirst,
                kinds=options.kinds_of(as_),
                copies=copies,
                memory=None if memory is None else memory * 2**30,
                model_file=None if no_save else output,
                reading={"delimiter": delimiter, "encoding": encoding},
                command=" ".join(["learnable", *map(_quoted, arguments)]),
            )
        _complete(record, source, clock)
        ending.out = out
        ending.record = record
        where, trouble = _try_report(record, None if no_report else report)
        ending.show(where, [note for note in said if note])
        if trouble is not None:
            raise trouble  # what was found out is on the screen already
    if record["status"] == "interrupted":
        options.reported = True
        return 130
    return 0 if record["winner"] is not None else 1


class _Ending:
    """Shows what was found, once: in the end, or when the limit is over before the report is written.

    Attributes
    ----------
    record : ComparisonRecord or None
        What was found; None until then.
    out : Console
        Where it is shown.
    """

    def __init__(self, *, quiet: bool, details: bool, json: bool) -> None:
        self.quiet = quiet
        self.details = details
        self.json = json
        self.record: Any = None
        self.out: Any = None
        self._turn = [True]  # the thread that takes it out prints

    def show(self, report: str | None = None, notes: Sequence[str] = (), advice: Sequence[str] = ()) -> bool:
        """Print everything; tell whether it was done here, and not elsewhere before."""
        try:
            self._turn.pop()
        except IndexError:
            return False
        record = {**self.record, "advice": [*self.record["advice"], *advice]}
        if self.json:
            import json as json_module

            print(json_module.dumps(record, allow_nan=False), flush=True)
        else:
            _show(self.out, record, report, notes, details=self.details, quiet=self.quiet)
        return True

    def at_the_limit(self) -> int | None:
        """Show what there is because the time is up; return the exit code, None if there is nothing to show."""
        if self.record is None:
            return None
        if not self.show(advice=[_NO_REPORT]):
            time_module.sleep(_TO_PRINT)  # it is being printed; a pipe that is never read would block for ever
        return 0 if self.record["winner"] is not None else 1


def _compare(
    source: str,
    target: str | None,
    clock: Any,
    server: Any,
    on_event: Any,
    *,
    reading: dict[str, str | None],
    **arguments: Any,
) -> Any:
    """Read the table and run the comparison."""
    from pathlib import Path

    from ..data.frames import listed

    table = load_table(source, **reading)
    target = target or DEMO_TARGETS.get(source)
    if target is None:
        raise options.WrongUsageError(
            f"name the column to predict with --target; {Path(source).name} has {listed(table.column_names)}"
        )
    shape = f"{table.num_rows:,} rows and {table.num_columns:,} columns"
    on_event({"kind": "stage", "text": f"looking at {shape}"})
    from ..evaluation.comparison.contest import compare as run

    record = run(table, target, clock=clock, server=server, on_event=on_event, source=Path(source).name, **arguments)
    from ..evaluation.comparison.record import python_lines

    by_tool = source in DEMO_TARGETS or any(reading.values())
    asked = {**arguments, "seconds": clock.seconds}
    record["python"] = python_lines(None if source == "-" else source, target, asked, reading if by_tool else None)
    return record


def _preparing(on_event: Any, no_report: bool) -> Any:
    """Load what renders the report while another process encodes the columns, so that it costs no time at the end."""

    def tell(event: dict[str, Any]) -> None:
        on_event(event)
        if event["kind"] == "stage" and event["text"].startswith("encoding") and not no_report:
            from ..report.render import template

            template()

    return tell


def _complete(record: Any, source: str, clock: Any) -> None:
    """Add what only the tool knows: how to predict, what to do next, and its own time."""
    winner = record["winner"]
    if winner is not None and winner["model_file"] is not None:
        winner["predict_command"] = f"learnable predict {_quoted(winner['model_file'])} {_quoted(source)}"
    from ..report import advise

    record["advice"] = [*advise(record), *record["advice"]]
    timing = record["timing"]
    timing["overhead"] = round(timing["overhead"] + clock.spent - timing["total"], 4)
    timing["total"] = round(clock.spent, 4)


def _try_report(record: Any, file: str | None) -> tuple[str | None, Exception | None]:
    """Write the report, if wanted; return where it is, and what went wrong."""
    from ..core.errors import LearnableError

    try:
        return None if file is None else _write_report(record, file), None
    except LearnableError as error:
        return None, error


def _write_report(record: Any, file: str) -> str:
    """Write the HTML report, in one step."""
    from ..core.errors import LearnableError
    from ..core.model_file import writing
    from ..report import render

    html = render(record)
    try:
        with writing(file) as page:
            page.write(html.encode("utf-8"))
    except OSError as error:
        raise LearnableError(f"compare: cannot write the report {file}: {error.strerror or error}.") from error
    return file


def _show(
    out: Any, record: Any, report: str | None, notes: Sequence[str], *, details: bool = False, quiet: bool = False
) -> None:
    """Print the leaderboard and what follows from it; `quiet`, only the best model's score and the files."""
    from .display import headline, leaderboard, legend, one_line, unfinished, wide_leaderboard

    winner = record["winner"]
    lines = []
    if not quiet:
        out.print()
        out.print(wide_leaderboard(record) if details else leaderboard(record, min(out.width, NARROW)))
        lines += [*legend(record, details=details), *([] if details else unfinished(record)), ""]
    if record["status"] == "interrupted":
        lines.append("Interrupted: this is what was finished.")
    elif winner is None:
        lines.append("No model was finished: the reasons stand above.")
    lines += headline(record)[: 1 if quiet else None]
    if not quiet:
        lines += _more(record)
    if report is not None:
        lines.append(f"report: {report}")
    if winner is not None and winner["model_file"] is not None:
        refitted = "" if quiet else f" (refitted on {winner['refitted_on']})"
        lines.append(f"model:  {winner['model_file']}{refitted}")
        if not quiet:
            lines.append(f"predict with:  {winner['predict_command']}")
    lines += [f"note: {note}" for note in notes]
    for line in lines:
        out.print(one_line(line, 1000), soft_wrap=True)


def _more(record: Any) -> list[str]:
    """Return what is said after the headline: intervals, advice, versions."""
    winner = record["winner"]
    lines = []
    if winner is not None and winner["intervals"]:
        found = winner["intervals"]
        chance = found["chance"]
        lines.append(
            f"Its {100 * found['level']:g} % prediction intervals ({found['method']}) hold "
            f"{100 * found['holdout_coverage']:.1f} % of the rows set aside (chance gives "
            f"{100 * chance['low']:.1f} to {100 * chance['high']:.1f} % of so few)"
        )
    lines += [f"- {text}" for text in record["advice"] if not text.startswith("Predict new rows")]
    versions = record["versions"]
    return [*lines, f"seed {record['seed']}; learnable {versions['learnable']}, numpy {versions['numpy']}"]


def _quoted(text: str) -> str:
    import shlex

    return shlex.quote(text)


# --------------------------------------------------------------------------------------------------------------------
# The hard end of a time limit: if everything else fails to be in time, the process ends, and all that hangs on it.


_GRACE = 0.1


@contextlib.contextmanager
def hard_limit(clock: Any, ending: _Ending | None = None) -> Iterator[None]:
    """End the process, temporary files removed, if the block is still running when the clock has run out.

    Everything that takes long runs in processes with deadlines of their own. This is for the rest: a file that takes
    longer to read than the limit allows, for example. What `ending` has to show by then is shown.
    """
    from ..core.threads import call_later

    left = clock.left()
    if left is None:
        yield
        return
    cancel = call_later(left + _GRACE, lambda: _give_up(clock.seconds, ending))
    try:
        yield
    finally:
        cancel()


@contextlib.contextmanager
def muted() -> Iterator[None]:
    """Let processes that start inside hold none of this process's streams: a pipe must end when this process does."""
    sys.stdout.flush()
    saved = {descriptor: os.dup(descriptor) for descriptor in (0, 1, 2) if _is_open(descriptor)}
    nowhere = os.open(os.devnull, os.O_RDWR)
    try:
        for descriptor in saved:
            os.dup2(nowhere, descriptor)
        yield
    finally:
        os.close(nowhere)
        for descriptor, original in saved.items():
            os.dup2(original, descriptor)
            os.close(original)


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def _give_up(seconds: float, ending: _Ending | None) -> None:
    from ..evaluation.comparison.race import remove_all

    remove_all()
    code = None if ending is None else ending.at_the_limit()
    if code is not None:
        os._exit(code)
    with contextlib.suppress(OSError, ValueError):
        told = f"learnable: the limit of {seconds:g} s was over before there was a result to show; give more --seconds."
        print(told, file=sys.stderr, flush=True)
    os._exit(1)
