"""Independent tasks on a Dask cluster that all read one object: folds of a table, members of an ensemble."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..core.errors import DataError, LearnableError, ParameterError
from .dask_blocks import current_client

RETRIES = 3  #: of a task whose worker died


def client_of(owner: str, client: Any) -> Any:
    """Return the client that a caller names: none, one of Dask's, or True for the one that is in use."""
    if client is None or client is False:
        return None
    found = current_client() if client is True else client
    if not hasattr(found, "submit") or not hasattr(found, "scatter"):
        raise ParameterError(
            f"{owner}: client must be a distributed.Client, or True for the one in use; got {client!r}."
        )
    return found


def run_on_cluster(owner: str, client: Any, work: Callable[..., Any], shared: Any, items: Sequence[Any]) -> list[Any]:
    """Return work(shared, item) of all items, in order, computed by workers that each have a copy of `shared`."""
    # In a list: of a dictionary or a list, Dask would send the parts, under names that others may use too.
    (copies,) = client.scatter([shared], broadcast=True, hash=False)
    futures = [client.submit(work, copies, item, pure=False, retries=RETRIES) for item in items]
    try:
        return [result_of(owner, future) for future in futures]
    finally:
        client.cancel([copies, *futures], force=True)


def result_of(owner: str, future: Any) -> Any:
    """Return what a task has found; raise what went wrong in words."""
    try:
        return future.result()
    except (LearnableError, KeyboardInterrupt):
        raise
    except Exception as error:
        if type(error).__name__ == "KilledWorker":
            why = "workers died again and again, most likely for want of memory; use larger ones, or fewer rows"
        else:
            why = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise DataError(f"{owner}: the work on the cluster failed: {why}. Nothing is kept.") from error
