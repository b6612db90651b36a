"""The program: its subcommands, and what becomes of errors.

An error is one line on stderr. Exit codes: 0 fine, 1 it failed (or a certificate does not hold), 2 it was asked in a
wrong way, 130 it was interrupted. `--debug` shows the traceback.

Help is plain text: with rich formatting it would take twice as long to appear.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
import warnings
from collections.abc import Sequence
from types import FrameType
from typing import Annotated, Any, NoReturn

import typer

from ..cli import (
    bandit,
    cluster,
    compare,
    doctor,
    embed,
    fit,
    hmm,
    lab,
    models,
    options,
    page,
    plan,
    predict,
    structure,
    topics,
    verify,
    warmup,
)

INTERRUPTED = 130
#: Shown by --help.
EXAMPLES = (
    "learnable compare                                       a comparison on a built-in table",
    "learnable compare houses.csv --target price             leaderboard, report.html, model.safetensors",
    "learnable fit houses.csv --target price --model Ridge   one model",
    "learnable predict model.safetensors new.csv             predictions with intervals or probabilities",
    "learnable verify model.safetensors houses.csv           re-derive what the fit proves",
    "learnable plan --error .05 --margin .01                 how many rows to label and to test",
    "learnable cluster iris.csv --report clusters.html       clusters, how many, and what they look like",
    "learnable embed iris.csv --report map.html              a picture of the rows, and how far to trust it",
    "learnable hmm quakes.csv -c count --emission poisson    hidden states over time",
    "learnable bandit clicks.csv --arm ad --reward clicked   what other choices would have earned",
    "learnable topics papers.csv --text abstract -k 20       topics of texts, their words and documents",
    "learnable structure cats.str -k 2..5                    populations from genotypes",
    "learnable lab em                                        a method step by step, as a page",
    "learnable page                                          all of this in a browser",
    "learnable models                                        what there is to choose from",
    "learnable warmup                                        compile everything now",
    "learnable doctor                                        what this machine has, where kernels come from",
)

app = typer.Typer(
    name="learnable",
    add_completion=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(version("learnable"))
        raise typer.Exit()


@app.callback(epilog=options.shown(EXAMPLES))
def learnable(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and leave.")
    ] = False,
) -> None:
    """Machine learning you can check: a table in, an honest comparison, a report and a model file out."""


app.command(
    short_help="Compare models on a table: leaderboard, report, model file.", epilog=options.shown(compare.EXAMPLES)
)(compare.compare)
app.command(short_help="Fit one model and save it.", epilog=options.shown(fit.EXAMPLES))(fit.fit)
app.command(
    short_help="Predict the rows of a table, with intervals or probabilities.", epilog=options.shown(predict.EXAMPLES)
)(predict.predict)
app.command(short_help="Re-derive what a fit proves.", epilog=options.shown(verify.EXAMPLES))(verify.verify)
app.command(short_help="Say how many rows a proof needs.", epilog=options.shown(plan.EXAMPLES))(plan.plan)
app.command(short_help="Find clusters of similar rows.", epilog=options.shown(cluster.EXAMPLES))(cluster.cluster)
app.command(short_help="Show the rows of a table as a picture.", epilog=options.shown(embed.EXAMPLES))(embed.embed)
app.command(short_help="Hidden states of a table in time.", epilog=options.shown(hmm.EXAMPLES))(hmm.hmm)
app.command(short_help="Evaluate policies on a log of decisions.", epilog=options.shown(bandit.EXAMPLES))(bandit.bandit)
app.command(short_help="Find topics in a column of text.", epilog=options.shown(topics.EXAMPLES))(topics.topics)
app.command(short_help="Find populations from genotypes.", epilog=options.shown(structure.EXAMPLES))(
    structure.structure
)
app.command(short_help="Step through a method, as a page.", epilog=options.shown(lab.EXAMPLES))(lab.lab)
app.command(short_help="Open the page in a browser.", epilog=options.shown(page.EXAMPLES))(page.page)
app.command(short_help="List the models there are.", epilog=options.shown(models.EXAMPLES))(models.models)
app.command(short_help="Compile everything now.", epilog=options.shown(warmup.EXAMPLES))(warmup.warmup)
app.command(short_help="Say what this machine has.", epilog=options.shown(doctor.EXAMPLES))(doctor.doctor)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the tool and end the process with its exit code, at once: nothing may hold it up when time is up."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, ValueError):
            stream.reconfigure(errors="replace")  # type: ignore[union-attr]  # a terminal may not know R²
    for name in ("SIGTERM", "SIGHUP"):
        with contextlib.suppress(AttributeError, ValueError):
            signal.signal(getattr(signal, name), _leave)
    began = time.monotonic() - options.process_age()  # a user's time runs from the moment the command is entered
    code = run(list(sys.argv[1:] if arguments is None else arguments), began)
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os._exit(code)


def run(arguments: list[str], began: float | None = None) -> int:
    """Run one command and return its exit code; what goes wrong becomes one line on stderr.

    `began` is when its time started to run, by `time.monotonic`; now by default.
    """
    arguments = arguments or ["--help"]
    options.started = time.monotonic() if began is None else began
    options.debug = "--debug" in arguments
    options.arguments = arguments
    warnings.showwarning = _warn
    command = typer.main.get_command(app)
    try:
        code = command.main(args=arguments, prog_name="learnable", standalone_mode=False)
        if code == INTERRUPTED and not options.reported:  # how typer passes Ctrl-C on
            raise KeyboardInterrupt
        return code if isinstance(code, int) else 0
    except BrokenPipeError:
        _drop_stdout()
        return 0
    except SystemExit as leaving:
        if isinstance(leaving.__context__, BrokenPipeError):  # how typer passes it on
            _drop_stdout()
            return 0
        return leaving.code if isinstance(leaving.code, int) else 1
    except KeyboardInterrupt:
        return _explain(typer.Abort())
    except BaseException as error:
        if options.debug:
            import traceback

            traceback.print_exc()
        return _explain(error)


def _explain(error: BaseException) -> int:
    """Print one line about an error and return the exit code it stands for."""
    if isinstance(error, typer.Abort) or getattr(error, "exit_code", None) == INTERRUPTED:
        return _fail("interrupted.", INTERRUPTED)
    if isinstance(error, typer.Exit):
        return int(error.exit_code)
    describe = getattr(error, "format_message", None)
    if isinstance(error, options.WrongUsageError):
        return _fail(f"{error}. Try --help.", 2)
    if describe is not None:  # typer's own complaints about wrong usage
        return _fail(f"{describe().rstrip('.')}. Try --help.", int(getattr(error, "exit_code", 2)))
    from ..core.errors import LearnableError
    from .display import one_line

    if isinstance(error, LearnableError):
        return _fail(one_line(str(error)), 1)
    if isinstance(error, ModuleNotFoundError) and error.name in ("jinja2", "pyarrow", "openpyxl"):
        return _fail(f"this needs {error.name}, which is not installed: pip install 'learnable[cli]'", 1)
    if isinstance(error, MemoryError):
        return _fail("out of memory; use fewer rows or columns, or a larger machine.", 1)
    if isinstance(error, OSError):
        name = f" {error.filename}" if error.filename else ""
        return _fail(one_line(f"{error.strerror or error}{name}."), 1)
    hint = "" if options.debug else " Run it again with --debug to see where."
    return _fail(one_line(f"unexpected {type(error).__name__}: {error}.") + hint, 1)


def _warn(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
    """Show what concerns the user in one line; what concerns programmers not at all."""
    if issubclass(category, UserWarning) or options.debug:
        _fail(f"warning: {message}", 0)


def _fail(message: str, code: int) -> int:
    line = "".join(c if c.isprintable() else "?" for c in " ".join(message.split()))
    with contextlib.suppress(OSError, ValueError):
        print(f"learnable: {line}", file=sys.stderr)
    return code


def _drop_stdout() -> None:
    """Send the rest nowhere, because its reader has gone: leaving then raises nothing."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _leave(number: int, frame: FrameType | None) -> NoReturn:
    """End in order when asked to: temporary files are removed on the way out."""
    raise SystemExit(128 + number)
