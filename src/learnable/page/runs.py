"""Runs: what was asked, the process that works on it, what it tells, and how it ended.

A run is a folder. What its process tells is kept in memory for open connections, and in events.jsonl for those that
come later. A process that dies leaves what it told: the lines of the leaderboard that were finished stay.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import secrets
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

from ..core.errors import LearnableError
from .commands import FORMS, OUTPUTS, arguments, check_settings, command_line, python_code
from .store import RefusedError, Store, Table, plain_name, read_json, write_json

_LINE: Final = 2**25  # bytes of an event
_GRACE: Final = 30.0  # seconds beyond its limit after which a run's process is asked to stop
_LAST: Final = 30.0  # seconds after that in which a comparison may keep what is finished
_HEARTBEAT: Final = 15  # seconds between signs of life for a listener
_LOOK: Final = 1.0  # seconds between looks whether the server is about to end
_SIGNALS: Final = {9: "its process was killed, perhaps because memory ran out", 11: "its process crashed"}
#: What a run may leave for its owner, and the name under which it is kept.
FILES: Final = {
    "model.safetensors": "application/octet-stream",
    "report.html": "text/html; charset=utf-8",
    "rows.csv": "text/csv; charset=utf-8",
    "record.json": "application/json",
    "predictions.csv": "text/csv; charset=utf-8",
}


class Run:
    """One run.

    Attributes
    ----------
    status : str
        "running", "stopping", "done", "stopped" or "failed".
    events : list of dict
        Everything that its process has told.
    """

    def __init__(self, folder: Path, request: dict[str, Any]) -> None:
        self.folder = folder
        self.request = request
        self.id = folder.name
        self.events: list[dict[str, Any]] = []
        self.status = "running"
        self.reason: str | None = None
        self.process: asyncio.subprocess.Process | None = None
        self.temporary: str | None = None
        self.closing = False
        self._news = asyncio.Condition()
        self._log: Any = None

    @property
    def is_over(self) -> bool:
        """Whether nothing more will happen."""
        return self.status in ("done", "stopped", "failed")

    def public(self) -> dict[str, Any]:
        """Return what the browser is told."""
        files = {name: (self.folder / name).stat().st_size for name in FILES if (self.folder / name).is_file()}
        keys = ("kind", "table", "name", "source", "settings", "created", "command", "python", "seconds")
        return {
            "id": self.id,
            "status": self.status,
            "reason": self.reason,
            "files": files,
            "title": FORMS[self.request["kind"]].title,
            **{key: self.request.get(key) for key in keys},
        }

    async def tell(self, event: dict[str, Any]) -> None:
        """Keep an event and wake the open connections; if the disk is full, only the file lacks it."""
        async with self._news:
            self.events.append(event)
            with contextlib.suppress(OSError):
                if self._log is None:
                    self._log = (self.folder / "events.jsonl").open("a", encoding="utf-8")
                self._log.write(json.dumps(event, allow_nan=False) + "\n")
                self._log.flush()
            self._news.notify_all()

    async def follow(self, start: int = 0) -> AsyncIterator[tuple[int, dict[str, Any] | None]]:
        """Yield numbered events from `start` on, and those to come, until the run is over; None as a sign of life."""
        number = max(0, start)
        while True:
            while number < len(self.events):
                yield number, self.events[number]
                number += 1
            silent = 0
            while number >= len(self.events) and silent < _HEARTBEAT:
                if self.is_over or self.closing:
                    return
                async with self._news:
                    if number >= len(self.events) and not self.is_over:
                        with contextlib.suppress(TimeoutError):
                            await asyncio.wait_for(self._news.wait(), _LOOK)
                silent += 1
            if number >= len(self.events):
                yield number, None

    async def end(self, status: str, reason: str | None) -> None:
        """Say how it ended."""
        if self.is_over:
            return
        self.status = status
        self.reason = reason
        with contextlib.suppress(OSError, LearnableError):
            write_json(self.folder / "end.json", {"status": status, "reason": reason})
        await self.tell({"kind": "end", "status": status, "reason": reason})
        with contextlib.suppress(OSError):
            if self._log is not None:
                self._log.close()


class Runs:
    """All runs of the session; one works at a time.

    Parameters
    ----------
    store : Store
        Where they are kept.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self.runs: dict[str, Run] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        for file in sorted((store.folder / "runs").glob("*/run.json"), key=lambda path: path.stat().st_mtime):
            request = read_json(file)
            if isinstance(request, dict) and request.get("kind") in FORMS:
                self.runs[file.parent.name] = _restored(file.parent, request)

    def get(self, number: Any) -> Run:
        """Return a run by its id."""
        found = self.runs.get(number) if isinstance(number, str) else None
        if found is None:
            raise RefusedError("There is no such run in this session.", 404)
        return found

    def working(self) -> Run | None:
        """Return the run that is not over."""
        return next((run for run in self.runs.values() if not run.is_over), None)

    async def start(self, kind: Any, table: Table, given: Any) -> Run:
        """Start a run; one at a time, because each takes all the cores it gets."""
        settings = check_settings(kind, given)
        busy = self.working()
        if busy is not None:
            raise RefusedError(f"{FORMS[busy.request['kind']].title} is still running. Stop it first, or wait.", 409)
        if len(self.runs) >= self.store.limits.runs:
            raise RefusedError(f"This session has {len(self.runs)} runs, the most it takes. Start another.", 507)
        folder = self.store.folder / "runs" / secrets.token_hex(6)
        try:
            folder.mkdir(mode=0o700)
            request = self._request(kind, table, settings, folder)
            write_json(folder / "run.json", request)
        except OSError as error:
            shutil.rmtree(folder, ignore_errors=True)
            raise RefusedError(f"The run cannot be started: {error.strerror or error}.", 507) from error
        except RefusedError:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        run = Run(folder, request)
        self.runs[run.id] = run
        # Goes with the run, however that ends; not in its folder, because the path of a socket must be short.
        run.temporary = tempfile.mkdtemp(prefix="ln-")
        run.process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "learnable.page.worker", str(folder),
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
            limit=_LINE, start_new_session=True, env=os.environ | {"TMPDIR": run.temporary},
        )  # fmt: skip
        task = asyncio.create_task(self._watch(run))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return run

    def _request(self, kind: str, table: Table, settings: dict[str, Any], folder: Path) -> dict[str, Any]:
        """Return what run.json holds."""
        limits = self.store.limits
        seconds = settings.get("seconds", FORMS["compare"].fields[1].default) if kind == "compare" else limits.run
        request = {
            "kind": kind,
            "table": table.id,
            "name": table.name,
            "source": table.source,
            "path": table.path,
            "settings": settings,
            "seconds": min(float(seconds), limits.run),
            "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "command": command_line(kind, table.source, settings),
            "python": python_code(kind, table, settings),
        }
        if kind != "compare":
            words = [word for pair in OUTPUTS for word in pair]
            request["arguments"] = [*arguments(kind, _linked(table, folder), settings), *words]
        return request

    async def stop(self, run: Run) -> None:
        """Ask a run to stop; a comparison then judges and keeps its best model, and a second time ends that too."""
        if run.is_over or run.process is None or run.process.stdin is None:
            return
        again = run.status == "stopping"
        run.status = "stopping"
        with contextlib.suppress(OSError):
            run.process.stdin.write(b"stop\n")
            await run.process.stdin.drain()
        text = "ending at once" if again else "stopping: the best model so far is judged and kept"
        await run.tell({"kind": "stage", "text": text})

    def hush(self) -> None:
        """Release the open connections: the server is about to end."""
        for run in self.runs.values():
            run.closing = True

    async def close(self) -> None:
        """End all processes."""
        for run in self.runs.values():
            if run.process is not None and not run.is_over:
                _kill(run.process)
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(run.process.wait(), 3.0)
            if run.temporary is not None:
                shutil.rmtree(run.temporary, ignore_errors=True)
        for task in list(self._tasks):
            task.cancel()

    async def _watch(self, run: Run) -> None:
        """Pass on what a run's process tells until it ends, by itself or because its time is up."""
        process = run.process
        if process is None or process.stdout is None:
            return
        ending: dict[str, Any] | None = None
        limit = run.request["seconds"] + _GRACE
        try:
            ending = await _told(run, process.stdout, limit)
        except TimeoutError:
            ending = {"status": "failed", "reason": f"It took longer than {limit:g} s and was ended."}
            if run.request["kind"] == "compare":  # on a busy machine; what is finished can still be kept
                await self.stop(run)
                with contextlib.suppress(TimeoutError):
                    ending = await _told(run, process.stdout, _LAST)
        if ending is None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(process.wait(), 5.0)
        code = process.returncode
        _kill(process)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), 5.0)
        if run.temporary is not None:
            shutil.rmtree(run.temporary, ignore_errors=True)
        if ending is None:
            ending = {"status": "failed", "reason": _why(code)}
        await run.end(str(ending["status"]), ending["reason"])


async def _told(run: Run, stream: asyncio.StreamReader, seconds: float) -> dict[str, Any] | None:
    """Pass on events until the one of the end, which is returned, or until the stream ends.

    The seconds are counted from the first event on: a process takes its time to start.
    """
    try:
        async with asyncio.timeout(seconds) as clock:
            heard = False
            while line := await stream.readline():
                if not heard:
                    heard = True
                    clock.reschedule(asyncio.get_running_loop().time() + seconds)
                event = _event(line)
                if event is not None and event["kind"] == "end":
                    return event
                if event is not None:
                    await run.tell(event)
    except ValueError:  # a line longer than the limit
        return {"status": "failed", "reason": "It told more than the page can take."}
    return None


def _restored(folder: Path, request: dict[str, Any]) -> Run:
    """Return a run of an earlier server; one that was not over is lost, but for what it told."""
    run = Run(folder, request)
    end = read_json(folder / "end.json") or {"status": "failed", "reason": "The page ended before the run did."}
    run.status = str(end.get("status"))
    run.reason = end.get("reason")
    with contextlib.suppress(OSError):
        for line in (folder / "events.jsonl").read_bytes().splitlines():
            event = _event(line)
            if event is not None:
                run.events.append(event)
    return run


def _event(line: bytes) -> dict[str, Any] | None:
    try:
        event = json.loads(line)
    except ValueError:
        return None
    return event if isinstance(event, dict) and isinstance(event.get("kind"), str) else None


def _linked(table: Table, folder: Path) -> str:
    """Return a name of the table within the run's folder, so that what a command prints has no private path in it."""
    if table.kind == "demo" or not os.path.isfile(table.path):
        return table.path
    name = plain_name(table.name, "table.csv")
    if name in FILES or name in ("run.json", "events.jsonl", "end.json"):
        name = f"table-{name}"
    place = folder / name
    try:
        place.symlink_to(table.path)
    except OSError:
        shutil.copyfile(table.path, place)
    return name


def _kill(process: asyncio.subprocess.Process) -> None:
    """End a process and all that it started."""
    with contextlib.suppress(ProcessLookupError, PermissionError, OSError):
        if os.name == "posix":
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()


def _why(code: int | None) -> str:
    """Say why a process ended without a word."""
    if code is not None and code < 0:
        cause = _SIGNALS.get(-code, f"its process was ended by signal {-code}")
        return f"The run ended: {cause}. What was finished stays."
    return "The run ended without a result. What was finished stays."
