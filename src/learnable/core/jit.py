"""The one way to compile a kernel: `kernel` is Numba's `njit` with our options, an honest type and our own cache.

A kernel releases the GIL and is cached on disk. It holds plain loops over C-contiguous arrays, writes its outputs in
place, and checks nothing: the caller validates, cuts the work into chunks, and runs them on threads.

A decorated function is a `Kernel`. It imports Numba when it is first called, so that a process that needs no kernel
never waits for it. Where its compiled code comes from is told in `core.kernel_cache`.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any, Final, ParamSpec, TypeVar, cast

P = ParamSpec("P")
R = TypeVar("R")

_RELAXED: Final = frozenset({"reassoc", "contract", "nsz", "arcp"})
_MAKING = threading.Lock()


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
    return _declare(function, {})


def lean_kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a kernel that allocates nothing, and calls none that does, without counting references to arrays.

    Counting costs two atomic operations each time an array is passed or sliced: half a microsecond in a kernel that
    takes bundles of arrays, and two thirds of its compile time. Such a kernel is for small calls in great number.
    """
    return _declare(function, {"_nrt": False})


def inline_kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a part of lean kernels that becomes part of its callers: a few operations on vectors of `core.simd`."""
    return _declare(function, {"_nrt": False, "forceinline": True})


def ieee_kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a lean kernel in which x/0 is infinite or NaN, as in NumPy: without the test, divisions vectorise."""
    return _declare(function, {"_nrt": False, "error_model": "numpy"})


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
    return _declare(function, {"fastmath": frozenset({"contract"}), "error_model": "numpy"})


def lean_strict_kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a strict kernel that allocates nothing, to be called by lean ones."""
    return _declare(function, {"_nrt": False, "fastmath": frozenset({"contract"}), "error_model": "numpy"})


def intrinsic(name: str, module: str = "intrinsics") -> Any:
    """Return a name that kernels may call and that stands for `core.<module>.<name>`, without importing Numba."""
    return Intrinsic(name, module)


def numba_is_loaded() -> bool:
    """Tell whether a kernel can be called without waiting for Numba's import (0.2 s)."""
    return "numba" in sys.modules


class Kernel:
    """A function that is compiled, or loaded, when it is first called.

    Attributes
    ----------
    py_func : function
        The function as it is written.
    options : dict
        Numba's options.
    """

    def __init__(self, function: Callable[..., Any], options: Mapping[str, Any]) -> None:
        functools.update_wrapper(self, function)
        self.py_func = function
        self.options = options
        self._dispatcher: Any = None
        self._part: Any = None

    @property
    def dispatcher(self) -> Any:
        """Numba's dispatcher, made when it is first asked for."""
        if self._dispatcher is None:
            with _MAKING:
                if self._dispatcher is None:
                    self._dispatcher = _make_dispatcher(self.py_func, self.options)
        return self._dispatcher

    @property
    def _numba_type_(self) -> Any:
        """The type that Numba gives this kernel inside another, of which it becomes a part."""
        if self._dispatcher is not None and self._dispatcher.is_compiling:  # it calls itself
            return self._dispatcher._numba_type_
        if self._part is None:
            with _MAKING:
                if self._part is None:
                    self._part = _make_part(self.py_func, self.options)
        return self._part._numba_type_

    def __call__(self, *args: Any) -> Any:
        """Run the compiled function."""
        return (self._dispatcher or self.dispatcher)(*args)

    def __reduce__(self) -> str:
        return self.py_func.__qualname__

    def __repr__(self) -> str:
        return f"<kernel {self.py_func.__module__}.{self.py_func.__qualname__}>"


class Intrinsic:
    """A name of a file of `core` that is looked up when a kernel that uses it is compiled."""

    def __init__(self, name: str, module: str) -> None:
        self.name = name
        self.module = module

    @property
    def _numba_type_(self) -> Any:
        from importlib import import_module

        from numba.core.registry import cpu_target

        found = getattr(import_module(f".{self.module}", __package__), self.name)
        return cpu_target.typing_context.resolve_value_type(found)

    def __call__(self, *args: Any) -> Any:
        """Refuse: there is no such function in Python."""
        raise TypeError(f"{self.name} is a part of kernels and cannot be called from Python")

    def __repr__(self) -> str:
        return f"<intrinsic {self.name}>"


def _declare(function: Callable[P, R], options: Mapping[str, Any]) -> Callable[P, R]:
    return cast(Callable[P, R], Kernel(function, {"nogil": True, "fastmath": _RELAXED, **options}))


def _make_dispatcher(function: Callable[..., Any], options: Mapping[str, Any]) -> Any:
    import numba

    from .kernel_cache import KernelCache, make_whole

    dispatcher = make_whole(function, options)
    if not numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
        dispatcher._cache = KernelCache(function, options)
    return dispatcher


def _make_part(function: Callable[..., Any], options: Mapping[str, Any]) -> Any:
    from .kernel_cache import make_part

    return make_part(function, options)
