"""What the clean process behind a comparison imports once: the jobs, and every model with its kernels loaded.

In that process, importing this module fits each registered model to a few rows, so that the first timed fit is a fit,
and neither an import nor a compilation. Anywhere else it does nothing.
"""

from __future__ import annotations

import contextlib
import os
import sys
import warnings
from multiprocessing import forkserver


def prepare() -> None:
    """Import the jobs and warm the models; say nothing, and hold on to nobody's output."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):  # a pipe that the caller writes to must end with the caller
        os.dup2(nowhere, descriptor)
    os.close(nowhere)

    import scipy.stats  # noqa: F401
    import sklearn.dummy
    import sklearn.metrics  # noqa: F401

    from . import explain, judge, keep, scoring, workspace  # noqa: F401
    from .warm import warm_models

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in warm_models(sparse=False, single=False):  # encoded tables are float64
            pass


if getattr(sys.modules.get("__main__"), "main", None) is forkserver.main:
    with contextlib.suppress(Exception):  # a model that fails here fails in its own job, and says so
        prepare()
