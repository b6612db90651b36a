"""The one way to compile a kernel: `kernel` is Numba's `njit` with our options and an honest type.

A kernel releases the GIL and is cached on disk. It holds plain loops over C-contiguous arrays, writes its outputs in
place, and checks nothing: the caller validates, cuts the work into chunks, and runs them on threads.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

import numba

P = ParamSpec("P")
R = TypeVar("R")


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile `function` with Numba (`nogil`, cached), keeping its type for the checker.

    Sums may be re-associated and multiply–adds fused, which is what makes loops vectorise; NaN and infinity keep their
    meaning, because finding them is one of the kernels' jobs.

    Examples
    --------
    >>> import numpy as np
    >>> @kernel
    ... def total(x):
    ...     s = 0.0
    ...     for i in range(x.size):
    ...         s += x[i]
    ...     return s
    >>> total(np.ones(4))
    4.0
    """
    return cast(Callable[P, R], numba.njit(**_options(function))(function))


def lean_kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a kernel that allocates nothing, and calls none that does, without counting references to arrays.

    Counting costs two atomic operations each time an array is passed or sliced: half a microsecond in a kernel that
    takes bundles of arrays, and two thirds of its compile time. Such a kernel is for small calls in great number.
    """
    options = _options(function) | {"_nrt": False}
    return cast(Callable[P, R], numba.njit(**options)(function))


def inline_kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a part of lean kernels that becomes part of its callers: a few operations on vectors of `core.simd`."""
    options = _options(function) | {"_nrt": False, "forceinline": True}
    return cast(Callable[P, R], numba.njit(**options)(function))


def ieee_kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a lean kernel in which x/0 is infinite or NaN, as in NumPy: without the test, divisions vectorise."""
    options = _options(function) | {"_nrt": False, "error_model": "numpy"}
    return cast(Callable[P, R], numba.njit(**options)(function))


def strict_kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a kernel whose sums keep their order: for formulas that use the rounding of a sum, as (x + c) − c does.

    A division by zero gives infinity, as in NumPy: a test for it would keep loops from vectorising.

    Examples
    --------
    >>> @strict_kernel
    ... def whole(x):
    ...     return (x + 6755399441055744.0) - 6755399441055744.0
    >>> whole(2.3)
    2.0
    """
    options = _options(function) | {"fastmath": {"contract"}, "error_model": "numpy"}
    return cast(Callable[P, R], numba.njit(**options)(function))


def _options(function: Callable[..., Any]) -> dict[str, Any]:
    cacheable = os.path.isfile(function.__code__.co_filename)  # doctests and notebooks have no file to cache beside
    return {"nogil": True, "cache": cacheable, "fastmath": {"reassoc", "contract", "nsz", "arcp"}}
