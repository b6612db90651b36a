"""Settings of the whole library: what is not a parameter of one model.

There is one of our own, `progress`; scikit-learn's settings are passed on to it. Ours belongs to the current context (a
thread, an asyncio task), so that two of them do not disturb each other; a thread that starts later begins with the
default.
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
    """Return the settings in force: `progress`, and those of scikit-learn.

    Returns
    -------
    dict
        `progress`: whether a long fit in a terminal or notebook shows how far it is. The environment variable
        `LEARNABLE_PROGRESS=0` turns it off where `set_config` says nothing. The others are as in scikit-learn.

    Examples
    --------
    >>> import learnable as ln
    >>> with ln.config_context(progress=False, transform_output="pandas"):
    ...     settings = ln.get_config()
    >>> settings["progress"], settings["transform_output"]
    (False, 'pandas')
    """
    import sklearn

    return {"progress": wants_progress(), **sklearn.get_config()}


def set_config(*, progress: bool | None = None, **others: Any) -> None:
    """Set what holds from now on, for all models.

    Parameters
    ----------
    progress : bool, optional
        Whether fits that take more than two seconds show how far they are, on stderr, if it is a terminal or a
        notebook. Left out, the setting stays as it is.
    **others
        Settings of scikit-learn, such as `transform_output`; they hold there, too.

    Examples
    --------
    >>> import learnable as ln
    >>> before = ln.get_config()
    >>> ln.set_config(progress=False)
    >>> ln.get_config()["progress"]
    False
    >>> ln.set_config(**before)
    """
    chosen = None if progress is None else _truth(progress)
    if others:
        import sklearn

        sklearn.set_config(**others)
    if chosen is not None:
        _progress.set(chosen)


@contextmanager
def config_context(*, progress: bool | None = None, **others: Any) -> Iterator[None]:
    """Set what holds inside a `with` block; afterwards the settings are what they were.

    Parameters
    ----------
    progress : bool, optional
        As in `set_config`.
    **others
        Settings of scikit-learn.

    Examples
    --------
    >>> import learnable as ln
    >>> with ln.config_context(progress=False):
    ...     model = ln.Ridge().fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.5])
    """
    import sklearn

    token = _progress.set(_progress.get() if progress is None else _truth(progress))
    try:
        with sklearn.config_context(**others):
            yield
    finally:
        _progress.reset(token)


def wants_progress() -> bool:
    """Tell whether progress may be shown in this context."""
    chosen = _progress.get()
    if chosen is None:
        return os.environ.get("LEARNABLE_PROGRESS", "").strip().lower() not in {"0", "false", "no", "off"}
    return chosen


def _truth(progress: Any) -> bool:
    if progress is not True and progress is not False:
        raise ParameterError(f"set_config: progress must be True or False; got {progress!r}.")
    return bool(progress)
