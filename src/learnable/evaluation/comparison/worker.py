"""The inside of a job's process: deaf to Ctrl-C, mute, limited in memory, gone with its parent.

`serve` runs one function and says through the pipe what it reports, and at the end that it is done or, in one line,
what it raised.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import sys
from multiprocessing import connection, process
from typing import Any

from ...core.registry import resolve
from ...core.threads import Background


def stand_by(nothing: Any = None) -> None:
    """Do nothing: whoever could start this can start a job."""


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
    >>> from learnable.evaluation.comparison.worker import one_line
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
        most = _data_size() + n_bytes
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


def _data_size() -> int:
    return _number_in("/proc/self/status", "VmData:") or 0


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
