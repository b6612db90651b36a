"""The inside of a run's process: compare models, or run one of the tool's other commands, and tell what happens.

It is started as `python -m learnable.page.worker FOLDER` with the request in FOLDER/run.json. Every line that it
prints is an event. A line "stop" on its input is Ctrl-C: a comparison then judges and keeps the best model so far.
When its input ends, the server is gone, and so is this process.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NoReturn

from ..core.threads import Background

Tell = Callable[[dict[str, Any]], None]

#: Seconds in which the best model so far is judged and kept after the stop button; a second "stop" ends that too.
AFTER_STOP: Final = 60.0
_SHARE_OF_MEMORY: Final = 0.8
#: Parts of a table's description that grow with its columns: more than this many are not sent with an event.
_MOST_COLUMNS: Final = 300


def main(folder: str) -> int:
    """Do what run.json asks."""
    place = Path(folder)
    request = json.loads((place / "run.json").read_text(encoding="utf-8"))
    tell = _teller()
    _listen()
    from ..evaluation.comparison.race import one_line

    try:
        if request["kind"] == "compare":
            _compare(place, request, tell)
        else:
            _command(place, request, tell)
    except KeyboardInterrupt:
        tell({"kind": "end", "status": "stopped", "reason": "Stopped before anything was finished."})
        return 130
    except MemoryError:
        tell({"kind": "end", "status": "failed", "reason": "Out of memory: use fewer rows or columns."})
        return 1
    except Exception as error:
        tell({"kind": "end", "status": "failed", "reason": one_line(error)})
        return 1
    return 0


def _compare(place: Path, request: dict[str, Any], tell: Tell) -> None:
    """Run a comparison and leave its record, its report and its model."""
    from ..core.model_file import writing
    from ..evaluation.comparison.aside import write_aside
    from ..evaluation.comparison.clock import Clock
    from ..evaluation.comparison.contest import compare
    from ..evaluation.comparison.race import Server
    from ..report import advise, render
    from .shelf import load_table
    from .store import write_json

    settings = dict(request["settings"])
    target = settings.pop("target")
    seconds = settings.pop("seconds", request["seconds"])
    clock = Clock(seconds, after_stop=AFTER_STOP)
    server = Server(settings.get("models"))
    tell({"kind": "stage", "text": "reading the table"})
    table = load_table(request["path"])

    def on_event(event: dict[str, Any]) -> None:
        if event["kind"] == "aside":
            write_aside(event["aside"], place / "aside.npz")
        else:
            tell(_shortened(event))

    record = compare(
        table,
        target,
        clock=clock,
        server=server,
        model_file=place / "model.safetensors",
        source=request["name"],
        command=request["command"],
        on_event=on_event,
        **settings,
    )
    record["python"] = request["python"]
    winner = record["winner"]
    if winner is not None and winner["model_file"] is not None:
        winner["model_file"] = "model.safetensors"
        winner["predict_command"] = "learnable predict model.safetensors new.csv"
    record["advice"] = [*advise(dict(record)), *record["advice"]]
    write_json(place / "record.json", record)
    tell({"kind": "stage", "text": "writing the report"})
    with writing(place / "report.html") as page:
        page.write(render(dict(record)).encode("utf-8"))
    stopped = record["status"] == "interrupted"
    tell({"kind": "end", "status": "stopped" if stopped else "done", "reason": None})


def _shortened(event: dict[str, Any]) -> dict[str, Any]:
    """Return an event without what is too long for a line: the page asks for the profile of a table itself."""
    if event["kind"] != "data":
        return event
    data = {name: value for name, value in event["data"].items() if name not in ("preview", "correlations")}
    data["profile"] = data["profile"][:_MOST_COLUMNS]
    return event | {"data": data}


def _command(place: Path, request: dict[str, Any], tell: Tell) -> None:
    """Run another command of the tool in the run's folder, as a user would in theirs."""
    import runpy

    from ..evaluation.comparison.race import free_memory, limit_memory

    room = free_memory()
    limit_memory(None if room is None else int(_SHARE_OF_MEMORY * room))
    os.chdir(place)
    lines = _Lines(tell)
    sys.stdout = lines
    sys.stderr = lines
    sys.argv = ["learnable", *request["arguments"]]
    tell({"kind": "stage", "text": "running"})

    def leave(code: int) -> NoReturn:
        raise SystemExit(code)

    ending = os._exit
    os._exit = leave  # type: ignore[assignment]  # the tool ends its process at once; here the end is still to be told
    try:
        runpy.run_module("learnable", run_name="__main__")
        code: Any = 0
    except SystemExit as left:
        code = left.code
    finally:
        os._exit = ending
        lines.flush()
    if code == 130:
        raise KeyboardInterrupt
    failed = code not in (0, None)
    reason = (lines.last.removeprefix("learnable: ") or "The command failed.") if failed else None
    tell({"kind": "end", "status": "failed" if failed else "done", "reason": reason})


class _Lines:
    """A stream that tells every line."""

    encoding = "utf-8"

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._part = ""
        self.last = ""

    def write(self, text: str) -> int:
        """Tell the lines that are complete."""
        *whole, self._part = (self._part + text).split("\n")
        for line in whole:
            if line.strip():
                self.last = line.strip()
                self._tell({"kind": "line", "text": line.rstrip()[:2000]})
        return len(text)

    def flush(self) -> None:
        """Tell what is left."""
        if self._part:
            self.write("\n")

    def isatty(self) -> bool:
        """Return False: the output is not a terminal."""
        return False

    def reconfigure(self, **settings: Any) -> None:
        """Leave everything as it is."""

    def fileno(self) -> int:
        """Refuse: there is no file."""
        raise OSError("no file")


def _teller() -> Tell:
    """Return what prints an event; processes that start later do not hold the stream."""
    from ..evaluation.comparison.record import plain

    descriptor = os.dup(1)
    os.set_inheritable(descriptor, False)
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 1)
    out = os.fdopen(descriptor, "w", encoding="utf-8", errors="replace")
    lock = threading.Lock()

    def tell(event: dict[str, Any]) -> None:
        line = json.dumps(plain(event), allow_nan=False)
        with lock, contextlib.suppress(OSError, ValueError):
            out.write(line + "\n")
            out.flush()

    return tell


def _listen() -> None:
    """Wait for "stop", or for the end of the server, in the background."""

    def listen() -> None:
        for line in sys.stdin:
            if line.strip() == "stop":
                if os.name == "posix":
                    os.kill(os.getpid(), signal.SIGINT)
                else:
                    import _thread

                    _thread.interrupt_main()
        from ..evaluation.comparison.race import remove_all

        remove_all()
        os._exit(1)

    signal.signal(signal.SIGINT, signal.default_int_handler)
    Background(listen, daemon=True)


if __name__ == "__main__":
    code = main(sys.argv[1])
    os._exit(code)
