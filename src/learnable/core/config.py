"""Settings of the whole library: what is not a parameter of one model.

There is one so far, `progress`. Settings belong to the current context (a thread, an asyncio task), so that two of
them do not disturb each other; a thread that starts later begins with the defaults.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from .errors import ParameterError

_progress: ContextVar[bool | None] = ContextVar("learnable_progress", default=None)


def get_config() -> dict[str, Any]:
    """Return the settings in force.

    Returns
    -------
    dict
        `progress`: whether a long fit in a terminal or notebook shows how far it is. The environment variable
        `LEARNABLE_PROGRESS=0` turns it off where `set_config` says nothing.

    Examples
    --------
    >>> import learnable as ln
    >>> with ln.config_context(progress=False):
    ...     ln.get_config()
    {'progress': False}
    """
    chosen = _progress.get()
    if chosen is None:
        chosen = os.environ.get("LEARNABLE_PROGRESS", "").strip().lower() not in {"0", "false", "no", "off"}
    return {"progress": chosen}


def set_config(*, progress: bool | None = None) -> None:
    """Set what holds from now on, for all models.

    Parameters
    ----------
    progress : bool, optional
        Whether fits that take more than two seconds show how far they are, on stderr, if it is a terminal or a
        notebook. Left out, the setting stays as it is.

    Examples
    --------
    >>> import learnable as ln
    >>> before = ln.get_config()
    >>> ln.set_config(progress=False)
    >>> ln.get_config()["progress"]
    False
    >>> ln.set_config(**before)
    """
    if progress is not None:
        _progress.set(_truth(progress))


@contextmanager
def config_context(*, progress: bool | None = None) -> Iterator[None]:
    """Set what holds inside a `with` block; afterwards the settings are what they were.

    Parameters
    ----------
    progress : bool, optional
        As in `set_config`.

    Examples
    --------
    >>> import learnable as ln
    >>> with ln.config_context(progress=False):
    ...     model = ln.Ridge().fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.5])
    """
    token = _progress.set(_progress.get() if progress is None else _truth(progress))
    try:
        yield
    finally:
        _progress.reset(token)


def wants_progress() -> bool:
    """Tell whether progress may be shown in this context."""
    chosen = _progress.get()
    return bool(get_config()["progress"]) if chosen is None else chosen


def _truth(progress: Any) -> bool:
    if progress is not True and progress is not False:
        raise ParameterError(f"set_config: progress must be True or False; got {progress!r}.")
    return bool(progress)
