"""What the clean process behind a comparison imports once: the jobs, and its models with their kernels loaded.

In that process, importing this module fits each model of the comparison to a few rows, so that the first timed fit is a
fit, and neither an import nor a compilation. Models with a kernel that must be compiled are left to processes in the
background (`ahead`). Anywhere else it does nothing.
"""

from __future__ import annotations

import contextlib
import os
import sys
import warnings
from collections.abc import Iterable
from multiprocessing import forkserver
from typing import Any, Final

from ...core.registry import REGISTRY, estimator_names

NAMES: Final = "LEARNABLE_RACED_MODELS"  #: the variable that hands the names of the models to that process


def raced_names() -> list[str]:
    """Return the models that a comparison has where none is named."""
    return [name for name in estimator_names() if REGISTRY[name].traits is not None and REGISTRY[name].variants]


def registered_among(models: Iterable[Any] | None) -> list[str]:
    """Return the names of our models among those of a comparison: names, paths, estimators or pairs.

    Examples
    --------
    >>> from learnable import Ridge
    >>> from learnable.evaluation.comparison.preload import registered_among
    >>> registered_among(["Lasso", ("mine", Ridge()), "sklearn.svm:SVC"])
    ['Lasso', 'Ridge']
    """
    if models is None:
        return raced_names()
    found = []
    for model in [models] if isinstance(models, str) else list(models):
        given = model[-1] if isinstance(model, tuple) else model
        name = given if isinstance(given, str) else type(given).__name__
        if name in REGISTRY:
            found.append(name)
    return found


def prepare() -> None:
    """Import the jobs and warm the models; print nothing, and keep no inherited output open."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):  # a pipe that the caller writes to must end with the caller
        os.dup2(nowhere, descriptor)
    os.close(nowhere)

    import scipy.stats  # noqa: F401
    import sklearn.dummy
    import sklearn.metrics  # noqa: F401

    from ...core.kernel_cache import keeps_kernels, loading_only
    from . import explain, judge, keep, leaderboard, workspace  # noqa: F401
    from .warm import warm_models

    with loading_only() if keeps_kernels() else contextlib.nullcontext(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in warm_models(os.environ.get(NAMES, "").split(), sparse=False, single=False):  # tables are float64
            pass


if getattr(sys.modules.get("__main__"), "main", None) is forkserver.main:
    with contextlib.suppress(Exception):  # a model that fails here fails in its own job, and says so
        prepare()
