"""Processes over things that are no rows of numbers: texts, sequences, graphs, whatever a kernel can compare.

Only kernels with scikit-learn's interface say that they take them (`requires_vector_input` is false). Such points stay
in memory as an array of one dimension, and have no columns.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core import (
    MAX_ITER,
    MAX_SECONDS,
    N_JOBS,
    RANDOM_STATE,
    TOLERANCE,
    Boolean,
    DataError,
    Estimator,
    Matches,
    Number,
    Options,
    fitted,
    optional,
    param,
)
from ...data.door import Table, check_two_classes, door, is_frame, read_target
from ...risk.kernels.adopted import ForeignKernel, as_structures, is_foreign, is_matrix
from ...risk.kernels.base import Kernel
from .likelihood import refuse_huge
from .posterior import chosen_kernel

KERNEL = optional(
    Matches(
        lambda v: isinstance(v, Kernel) or callable(v),
        "a kernel of learnable.risk.kernels or of scikit-learn, or a function",
    )
)


class GaussianProcess(Estimator):
    """What regression and classification by a Gaussian process declare alike."""

    kernel: Any = param(
        KERNEL,
        "k: of `learnable.risk.kernels`, of `sklearn.gaussian_process.kernels`, or a function (X, Z) → "
        "matrix. None is `Constant(1.0) * Gaussian(1.0)`. A `White` part is noise of unknown variance; held "
        "parts are not learned.",
        default=None,
        kw_only=False,
    )
    optimizer: Any = param(
        optional(Options("fmin_l_bfgs_b") | Matches(callable, "a function")),
        "None keeps the kernel's hyperparameters. The name stands for bounded quasi-Newton steps, here dense "
        "ones. A callable is scikit-learn's: (function, theta, bounds) → theta, value.",
        default="fmin_l_bfgs_b",
    )
    n_restarts_optimizer: int = param(
        Number(low=0, integer=True),
        "Further searches, from random hyperparameters in their bounds: those of a scikit-learn kernel, else "
        "1e-5 to 1e5.",
        default=0,
    )
    copy_X_train: bool = param(Boolean(), "Whether `X_train_` is a copy.", default=True)
    random_state: Any = param(RANDOM_STATE, "Seed of the restarts.", default=None)
    tol: float = param(
        TOLERANCE,
        "Largest derivative of the log marginal likelihood by a log hyperparameter, relative to n + yᵀK⁻¹y.",
        default=1e-6,
    )
    max_iter: int = param(MAX_ITER, "Steps of one search.", default=200)
    max_seconds: float | None = param(MAX_SECONDS, "Time after which the best so far is returned.", default=None)
    n_jobs: int | None = param(
        N_JOBS, "Threads of predictions and of passes over rows; the result does not depend on it.", default=None
    )

    X_train_: Any = fitted("array of shape (n, n_features)", "The rows.")
    n_iter_: int = fitted("int", "Steps of all searches.")
    log_marginal_likelihood_value_: float = fitted("float", "log p(y).")


def process_door(*, target: Any, multi_output: bool = False) -> Callable[..., Table]:
    """Return the door of a Gaussian process: that of every model, or a narrow one for what is no row of numbers."""
    plain = door(target=target, sparse=False, multi_output=multi_output)

    def read(estimator: Any, X: Any, y: Any = None, sample_weight: Any = None, run: Any = None) -> Table:
        if not takes_structures(estimator.kernel, X):
            return plain(estimator, X, y, sample_weight, run)
        owner = type(estimator).__name__
        things = as_structures(X)
        targets, classes = read_target(owner, y, target, multi_output)
        if len(targets) != len(things) or not len(things):
            raise DataError(
                f"{owner}: X and y have inconsistent numbers of samples: X has {len(things)}, y has {len(targets)}."
            )
        if classes is not None:
            check_two_classes(owner, classes)
        blocks = SimpleNamespace(in_memory=True, n_rows=len(things), n_columns=0)
        return Table(blocks, classes, things, targets, checksum=checksum_of(things, targets, classes))

    return read


def takes_structures(kernel: Any, X: Any) -> bool:
    """Tell whether a kernel compares things, and these are no matrix of numbers."""
    if not is_foreign(kernel) or not isinstance(X, (list, tuple, np.ndarray)) or is_frame(X):
        return False
    own = chosen_kernel(kernel)
    if not isinstance(own, ForeignKernel) or own.requires_vector_input:
        return False
    return not is_matrix(X) and not all(isinstance(row, (list, tuple)) and _are_numbers(row) for row in X)


def checksum_of(things: Any, targets: NDArray[Any], classes: Any) -> int:
    """Return a checksum of things by what they print, with their targets and labels."""
    text = "\x00".join([repr(one) for one in things] + [repr(np.asarray(targets).tolist()), repr(_listed(classes))])
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")


def own_points(model: Any, X: Any) -> Any:
    """Return training points as an array of the model's own, or as it is with `copy_X_train=False`."""
    if X.ndim == 1 or X.dtype.kind not in "fiub":
        return np.array(X, copy=True)
    points = np.array(X, dtype=np.float64, copy=model.copy_X_train or None)
    refuse_huge(type(model).__name__, X=points)
    return points


def _are_numbers(row: Any) -> bool:
    return all(isinstance(value, (int, float, np.number)) for value in row)


def _listed(classes: Any) -> Any:
    return None if classes is None else np.asarray(classes).tolist()
