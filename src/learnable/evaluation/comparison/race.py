"""One job, one process: started fresh in milliseconds, killed at its deadline, its failure a sentence.

Processes are forked from a *forkserver*: a clean process that holds no data and no threads of the caller, and that has
imported the models once. A job reports through a pipe; what it prints is dropped. It ends for one of five reasons:
it is done, it raised, its process died, its time was up, or the caller was interrupted.
"""

from __future__ import annotations

import contextlib
import hashlib
import multiprocessing
import os
import pickle
import shutil
import signal
import sys
import tempfile
import threading
import time
import types
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import connection, process
from multiprocessing import connection as pipes
from pathlib import Path
from typing import Any, Final, Literal

from ...core.registry import resolve
from ...core.threads import Background
from .preload import NAMES, registered_among

_STARTING = threading.Lock()  # processes are started one at a time: each start hides the caller's script
_PRELOAD: Final = ("learnable.evaluation.comparison.preload",)
_METHOD: Final = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
_SIGNAL_WORDS: Final = {"SIGKILL": "killed (SIGKILL), perhaps because memory ran out", "SIGSEGV": "crashed (SIGSEGV)"}

Ending = Literal["ok", "failed", "timeout", "interrupted"]


@dataclass(frozen=True)
class Outcome:
    """How a job ended.

    Attributes
    ----------
    status : {"ok", "failed", "timeout", "interrupted"}
        How.
    reason : str or None
        Why not "ok", in one line.
    messages : list
        Everything the job reported before it ended.
    seconds : float
        From start to end, starting the process included; without `preparing`.
    preparing : float
        What the job spent on getting ready, such as compiling kernels, which is not its own time.
    """

    status: Ending
    reason: str | None
    messages: list[Any] = field(default_factory=list)
    seconds: float = 0.0
    preparing: float = 0.0


class Server:
    """Starts jobs; the clean process behind it comes up in the background.

    There is one such process, started by the first server; models of later ones are loaded by their own jobs.

    Parameters
    ----------
    models : iterable, optional
        What will be compared; our models among them are loaded beforehand. Default: all that a comparison has.

    Examples
    --------
    >>> from learnable.evaluation.comparison.race import Server
    >>> server = Server(["Ridge"])
    >>> server.wait_until_ready(timeout=60)
    True
    """

    def __init__(self, models: Iterable[Any] | None = None) -> None:
        self._context: Any = multiprocessing.get_context(_METHOD)
        self._ready = threading.Event()
        asked = threading.Event()
        with _ignoring_interrupts(), _hidden_main():
            if _METHOD == "forkserver":
                from multiprocessing import forkserver

                self._context.set_forkserver_preload(list(_PRELOAD))
                os.environ[NAMES] = " ".join(registered_among(models))
                try:
                    forkserver.ensure_running()
                finally:
                    del os.environ[NAMES]
            Background(lambda: self._knock(asked), daemon=True)
            asked.wait(10)

    def _knock(self, asked: threading.Event) -> None:
        """Start a process that does nothing: it is up once the server has imported everything."""
        with contextlib.suppress(OSError, EOFError, RuntimeError):  # running a job meets the same error, and reports it
            process = self._context.Process(target=stand_by, args=(_Signal(asked),))
            process.start()
            process.join()
        asked.set()
        self._ready.set()

    def wait_until_ready(self, timeout: float | None = None) -> bool:
        """Wait until jobs start at once; False if that takes longer than `timeout` seconds."""
        end = None if timeout is None else time.monotonic() + timeout
        while not self._ready.wait(0.1 if end is None else max(0.0, min(0.1, end - time.monotonic()))):
            if end is not None and time.monotonic() >= end:
                return False
        return True

    def run(
        self,
        job: dict[str, Any],
        *,
        seconds: float | None = None,
        preparing: float = 0.0,
        on_message: Callable[[Any], None] | None = None,
    ) -> Outcome:
        """Run one job to its end; it never raises for what the job does.

        Parameters
        ----------
        job : dict
            `"function"` as `"module:name"`; the rest are its keyword arguments. Everything must be picklable.
        seconds : float or None
            After this time the process and all its children are killed. It counts from when the job says that it is
            ready; one that never says so has it from its start.
        preparing : float
            How many seconds more the job may take to get ready.
        on_message : callable, optional
            Called in this process with everything that the job reports.
        """
        began = time.monotonic()
        timer = _Timer(seconds, preparing)
        if not self.wait_until_ready(seconds):
            return Outcome("timeout", "the process for models did not start in time", [], time.monotonic() - began)
        ours, theirs = self._context.Pipe(duplex=False)
        messages: list[Any] = []
        process = self._context.Process(target=serve, args=(theirs, pickle.dumps(job)))
        try:
            try:
                with _STARTING, contextlib.nullcontext() if _needs_main(job) else _hidden_main():
                    process.start()
            except (OSError, EOFError, RuntimeError) as error:
                return Outcome("failed", f"no process could be started: {error}", [], time.monotonic() - began)
            theirs.close()
            status, reason = self._follow(process, ours, timer, messages, on_message)
        except KeyboardInterrupt:
            status = "interrupted"
            reason = "stopped by the user"
        finally:
            _end(process)
            ours.close()
            theirs.close()
        if status == "timeout" and seconds is not None:
            reason = f"stopped at its limit of {seconds:.3g} s"
        return Outcome(status, reason, messages, time.monotonic() - began - timer.prepared, timer.prepared)

    def _follow(
        self, process: Any, pipe: Any, timer: _Timer, messages: list[Any], on_message: Callable[[Any], None] | None
    ) -> tuple[Ending, str | None]:
        """Collect what the job says until it is done, dead or out of time."""
        while True:
            left = timer.left()
            if left is not None and left <= 0:
                return "timeout", None
            heard = pipes.wait([pipe, process.sentinel], 0.5 if left is None else min(0.5, left))
            if pipe in heard:
                try:
                    kind, content = pipe.recv()
                except (EOFError, OSError, pickle.UnpicklingError):
                    process.join(5)
                    return "failed", _describe_exit(process.exitcode)
                if kind == "ready":
                    timer.restart(content)
                    continue
                if kind == "done":
                    return "ok", None
                if kind == "error":
                    return "failed", content
                messages.append(content)
                if on_message is not None:
                    on_message(content)
            elif process.sentinel in heard:
                return "failed", _describe_exit(process.exitcode)


class _Timer:
    """Counts down a job's time, which begins again when the job is ready; getting ready has a time of its own."""

    def __init__(self, seconds: float | None, preparing: float) -> None:
        self.seconds = seconds
        self.prepared = 0.0
        self._end = None if seconds is None else time.monotonic() + seconds + preparing

    def left(self) -> float | None:
        """Return how many seconds are left; None without a limit."""
        return None if self._end is None else self._end - time.monotonic()

    def restart(self, prepared: float) -> None:
        """Begin the job's own time, after it took `prepared` seconds to get ready."""
        self.prepared += prepared
        if self._end is not None and self.seconds is not None:
            self._end = min(self._end, time.monotonic() + self.seconds)


class _Signal:
    """Sets an event when it is pickled: what the new process is told of the caller's script is then settled."""

    def __init__(self, event: threading.Event) -> None:
        self._event = event

    def __reduce__(self) -> tuple[Any, ...]:
        self._event.set()
        return (bool, ())


def _describe_exit(code: int | None) -> str:
    """Say why a process ended without a word."""
    if code is not None and code < 0:
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = f"signal {-code}"
        return f"its process was {_SIGNAL_WORDS.get(name, f'ended by {name}')}"
    return f"its process ended without a result (exit code {code})"


def _end(process: Any) -> None:
    """Make sure that the process and its children are gone."""
    if process.pid is None:
        return
    with contextlib.suppress(ProcessLookupError, PermissionError, AttributeError):
        os.killpg(process.pid, signal.SIGKILL)  # the job leads a session of its own, children included
    if process.is_alive():
        with contextlib.suppress(OSError, ValueError):
            process.kill()
    process.join(5)


def _needs_main(job: dict[str, Any]) -> bool:
    """Tell whether the job holds an estimator of the caller's own script, which the process then has to import."""
    candidate = job.get("candidate")
    involved = [candidate, *getattr(candidate, "members", ())]
    return any(type(getattr(one, "estimator", None)).__module__ == "__main__" for one in involved)


@contextlib.contextmanager
def _hidden_main() -> Iterator[None]:
    """Let the new process not import the caller's script: it needs nothing of it, and without a guard it would loop."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = types.ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


@contextlib.contextmanager
def _ignoring_interrupts() -> Iterator[None]:
    """Let a process that starts inside ignore SIGINT: the caller decides what ends."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


# --------------------------------------------------------------------------------------------------------------------
# The inside of a job's process: ignores SIGINT, discards output, has limited memory, exits with its parent.
#
# `serve` runs one function and says through the pipe what it reports, and at the end that it is done or, in one line,
# what it raised.


def stand_by(nothing: Any = None) -> None:
    """Do nothing: a process that could start this can start a job."""


def serve(pipe: Any, payload: bytes) -> None:
    """Run the job in `payload`: `"function"` as `"module:name"`, `"memory"` in bytes or None, and the arguments.

    The function is called with `report`, which sends anything picklable, and with the arguments.
    """
    _detach()
    _end_with_parent()
    try:
        job = pickle.loads(payload)
        limit_memory(job.pop("memory", None))
        function = resolve(job.pop("function"))
        function(Reporter(pipe), **job)
        last: tuple[str, str | None] = ("done", None)
    except MemoryError as error:
        last = ("error", one_line(MemoryError(f"out of memory. {error}".rstrip(". "))).removeprefix("MemoryError: "))
    except BaseException as error:
        last = ("error", one_line(error))
    with contextlib.suppress(OSError):
        pipe.send(last)


class Reporter:
    """What a job calls to report: any message, and once that it is ready for its own work."""

    def __init__(self, pipe: Any) -> None:
        self._pipe = pipe

    def __call__(self, message: Any) -> None:
        """Send a message."""
        self._pipe.send(("message", message))

    def ready(self, seconds: float) -> None:
        """Say that the job begins now, after `seconds` of getting ready: loading or compiling kernels."""
        self._pipe.send(("ready", seconds))


def one_line(error: BaseException, most: int = 300) -> str:
    r"""Return an error as one printable line of bounded length.

    Examples
    --------
    >>> from learnable.evaluation.comparison.race import one_line
    >>> one_line(ValueError("two\nlines")), one_line(KeyError("name"))
    ('two lines', "KeyError: 'name'")
    """
    text = " ".join(str(error).split())
    if not text or isinstance(error, LookupError) or not isinstance(error, (ValueError, RuntimeError, OSError)):
        text = f"{type(error).__name__}: {text}".rstrip(": ")
    text = "".join(c if c.isprintable() else "?" for c in text)
    return text if len(text) <= most else text[: most - 1] + "…"


def limit_memory(n_bytes: int | None) -> None:
    """Let this process take at most `n_bytes` more of memory: beyond it allocation raises MemoryError.

    Read-only memory-mapped files are not counted. Where the system has no such limit, nothing happens.
    """
    if n_bytes is None or not sys.platform.startswith("linux"):
        return
    import resource

    with contextlib.suppress(OSError, ValueError):
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        most = (_number_in("/proc/self/status", "VmData:") or 0) + n_bytes
        resource.setrlimit(resource.RLIMIT_DATA, (most if hard < 0 else min(most, hard), hard))


def free_memory() -> int | None:
    """Return how many bytes this process could still take without swapping or being killed; None if unknown."""
    found = [
        _number_in("/proc/meminfo", "MemAvailable:"),
        _group_room("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    ]
    return min((number for number in found if number is not None), default=None)


def _group_room(limit: str, used: str) -> int | None:
    """Return what is left of a control group's memory; its file cache counts as used, so this is cautious."""
    try:
        with open(limit) as file:
            most = file.read().strip()
        with open(used) as file:
            return max(0, int(most) - int(file.read())) if most.isdigit() else None
    except (OSError, ValueError):
        return None


def _number_in(path: str, key: str) -> int | None:
    """Return a size that /proc gives in kB, in bytes."""
    try:
        with open(path) as file:
            for line in file:
                if line.startswith(key):
                    return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    return None


def _detach() -> None:
    """Leave the terminal: its own session (so that it and its children can be ended at once), no output."""
    with contextlib.suppress(ValueError):
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(os, "setsid"):
        with contextlib.suppress(OSError):
            os.setsid()
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)
    os.close(nowhere)


def _end_with_parent() -> None:
    """End this process as soon as the one that asked for it is gone, whatever it is computing."""
    parent = process.parent_process()
    if parent is None:
        return

    def watch() -> None:
        connection.wait([parent.sentinel])
        if hasattr(os, "killpg"):
            os.killpg(0, signal.SIGKILL)
        os._exit(1)

    Background(watch, daemon=True)


# --------------------------------------------------------------------------------------------------------------------
# A temporary folder that is gone afterwards, whatever happens.


_open: set[Path] = set()


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Provide a new folder, and remove it at the end of the block.

    Examples
    --------
    >>> from learnable.evaluation.comparison.race import temporary_folder
    >>> with temporary_folder() as folder:
    ...     _ = (folder / "file").write_text("text")
    >>> folder.exists()
    False
    """
    folder = Path(tempfile.mkdtemp(prefix="learnable-"))
    _open.add(folder)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        _open.discard(folder)


def remove_all() -> None:
    """Remove all folders in use, when the process ends without leaving its blocks."""
    for folder in list(_open):
        shutil.rmtree(folder, ignore_errors=True)


def checksum(folder: Path) -> str:
    """Return a checksum of the columns learned from and of the targets."""
    digest = hashlib.blake2b(digest_size=8)
    for name in ("features.arrow", "y.npy"):
        with open(folder / name, "rb") as file:
            while chunk := file.read(2**22):
                digest.update(chunk)
    return digest.hexdigest()
