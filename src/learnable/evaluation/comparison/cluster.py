"""Folds of a comparison on a Dask cluster: the files of a fold travel once, its scores come back.

`ClusterServer` stands where `race.Server` stands. It sends the folds of a candidate side by side to the workers; every
other job, and a fold that the cluster loses, runs here, in a process of its own. A worker runs a fold in a thread of
its own process: a model that does not stop when its time is up is left behind, its thread stays busy until it ends, and
the limit of memory is the worker's own.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ...core.registry import resolve
from ...data.dask_tasks import client_of
from .race import Outcome, Server, one_line

_FOLDS = "learnable.evaluation.comparison.leaderboard:score_candidate"
_POLL = 0.25

Files = dict[str, bytes]


def folds_on(client: Any, server: Any) -> Any:
    """Return what runs the jobs of a comparison: the server, or a cluster beside it if the caller names one."""
    found = client_of("compare", client)
    return server if found is None else ClusterServer(server, found)


class ClusterServer:
    """Runs folds on a cluster, and other jobs by a server of this machine.

    Parameters
    ----------
    server : Server
        For the other jobs.
    client : distributed.Client
        Of the cluster.
    """

    def __init__(self, server: Server, client: Any) -> None:
        self.server = server
        self.client = client
        self._sent: dict[tuple[str, str], Any] = {}  # files of each fold, on the workers

    def wait_until_ready(self, timeout: float | None = None) -> bool:
        """Wait until jobs start at once; see `Server`."""
        return self.server.wait_until_ready(timeout)

    def run(
        self,
        job: dict[str, Any],
        *,
        seconds: float | None = None,
        preparing: float = 0.0,
        on_message: Callable[[Any], None] | None = None,
    ) -> Outcome:
        """Run one job to its end; see `Server.run`."""
        if job.get("function") != _FOLDS or len(job["splits"]) < 2:
            return self.server.run(job, seconds=seconds, preparing=preparing, on_message=on_message)
        began = time.monotonic()
        try:
            return self._run_folds(job, seconds, preparing, on_message)
        except KeyboardInterrupt:
            return Outcome("interrupted", "stopped by the user", [], time.monotonic() - began)

    def _run_folds(
        self,
        job: dict[str, Any],
        seconds: float | None,
        preparing: float,
        on_message: Callable[[Any], None] | None,
    ) -> Outcome:
        began = time.monotonic()
        end = None if seconds is None else began + seconds + preparing
        splits: list[str] = job["splits"]
        threads = max(1, sum(self.client.nthreads().values()))
        own = {name: value for name, value in job.items() if name not in ("function", "memory", "folder", "splits")}
        if "seconds" in own:  # of all folds, one after the other; here some run at the same time
            own["seconds"] = own["seconds"] * min(1.0, threads / len(splits))
        futures = [
            self.client.submit(run_fold, self._files(job["folder"], split), split, own, pure=False, retries=2)
            for split in splits
        ]
        messages: list[Any] = []
        try:
            for split, future in zip(splits, futures, strict=True):
                if not _wait(future, end):
                    limit = seconds or 0.0
                    reason = f"stopped at its limit of {limit:.3g} s"
                    return Outcome("timeout", reason, messages, time.monotonic() - began)
                found = self._result(job, split, future, end)
                if isinstance(found, Outcome):
                    if found.status != "ok":
                        return Outcome(found.status, found.reason, messages, time.monotonic() - began)
                    own_messages = found.messages
                else:
                    reason, own_messages, files = found
                    if reason is not None:
                        return Outcome("failed", reason, messages, time.monotonic() - began)
                    for name, content in files.items():
                        (Path(job["folder"]) / name).write_bytes(content)
                for message in own_messages:
                    messages.append(message)
                    if on_message is not None:
                        on_message(message)
        finally:
            self.client.cancel(futures, force=True)
        return Outcome("ok", None, messages, time.monotonic() - began)

    def _result(self, job: dict[str, Any], split: str, future: Any, end: float | None) -> Any:
        """Return what a fold gave; one that the cluster has lost is done here."""
        try:
            return future.result()
        except KeyboardInterrupt:
            raise
        except Exception:  # a worker died, the files went with it, or the model does not pickle
            self._sent = {}
            left = None if end is None else max(0.1, end - time.monotonic())
            return self.server.run(job | {"splits": [split]}, seconds=left)

    def _files(self, folder: str, split: str) -> Any:
        """Return the files of a fold, sent to a worker once."""
        key = (folder, split)
        if key not in self._sent:
            where = Path(folder)
            files = {path.name: path.read_bytes() for path in (where / "y.npy", *where.glob(f"{split}.*"))}
            # In a list, so that it has a key of its own: a dictionary's names would be keys of the whole cluster.
            self._sent[key] = self.client.scatter([files], hash=False)[0]
        return self._sent[key]


def _wait(future: Any, end: float | None) -> bool:
    """Wait for a task; return False if the time is up before."""
    while not future.done():
        if end is not None and time.monotonic() > end:
            return False
        time.sleep(_POLL if end is None else max(0.0, min(_POLL, end - time.monotonic())))
    return True


def run_fold(files: Files, split: str, job: dict[str, Any]) -> tuple[str | None, list[Any], Files]:
    """Fit and measure a candidate on one fold; return what went wrong, what it reported, and new files. On a worker."""
    messages: list[Any] = []
    with tempfile.TemporaryDirectory(prefix="learnable-fold-") as folder:
        for name, content in files.items():
            (Path(folder) / name).write_bytes(content)
        try:
            resolve(_FOLDS)(messages.append, folder=folder, splits=[split], **job)
        except Exception as error:  # whatever a model raises is its line of the leaderboard
            return one_line(error), messages, {}
        new = {path.name: path.read_bytes() for path in Path(folder).iterdir() if path.name not in files}
    return None, messages, new
