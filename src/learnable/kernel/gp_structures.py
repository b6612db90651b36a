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

from ..core.errors import DataError
from ..data.door import Table, door
from ..data.frames import is_frame
from ..data.targets import check_two_classes, read_target
from ..risk.kernels.adopted import is_foreign
from ..risk.kernels.base import Kernel
from ..risk.kernels.foreign import ForeignKernel, as_structures, is_matrix
from .gp_likelihood import refuse_huge
from .gp_posterior import chosen_kernel


def process_door(*, target: Any, multi_output: bool = False) -> Callable[..., Table]:
    """Return the door of a Gaussian process: that of every model, or a narrow one for what is no row of numbers."""
    plain = door(target=target, sparse=False, multi_output=multi_output)

    def read(estimator: Any, X: Any, y: Any = None, sample_weight: Any = None, run: Any = None) -> Table:
        if not takes_structures(estimator.kernel, X):
            return plain(estimator, X, y, sample_weight, run)
        owner, things = type(estimator).__name__, as_structures(X)
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


def read_structures(kernel: Kernel, X: Any) -> Any:
    """Return things as the kernel takes them."""
    return kernel._read(X)


def _are_numbers(row: Any) -> bool:
    return all(isinstance(value, (int, float, np.number)) for value in row)


def _listed(classes: Any) -> Any:
    return None if classes is None else np.asarray(classes).tolist()
