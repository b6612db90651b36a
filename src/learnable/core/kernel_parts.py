"""How kernels are compiled: those that other kernels call become parts of them, which are optimised with the whole.

Numba makes a library of its own of every function: a wrapper for calls from Python, one for calls from C, a full
optimisation, machine code, a file in the cache. A part needs none of these. Its caller takes its code in, optimises all
of it, and is what runs. So the deeper kernels call each other, the more is saved: half of the time of trees' kernels.

Python's garbage collector rests meanwhile: it would walk through all objects of all libraries time and again, for an
eighth of the time.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping
from typing import Any

import numba
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder

#: Versions of Numba whose insides are known; with others every kernel is compiled on its own, which takes longer.
_FIRST_TESTED = (0, 62)
_LAST_TESTED = (0, 68)
_JITCodeLibrary: Any = JITCodeLibrary
_CompilerBase: Any = CompilerBase
_passes: Any = DefaultPassBuilder
_njit: Any = numba.njit


def make_whole(function: Callable[..., Any], options: Mapping[str, Any]) -> Any:
    """Return a dispatcher that Python may call."""
    wanted = {**options, "fastmath": set(options["fastmath"])}
    return _njit(pipeline_class=WholeCompiler, no_cfunc_wrapper=True, **wanted)(function)


def make_part(function: Callable[..., Any], options: Mapping[str, Any]) -> Any:
    """Return a dispatcher that other kernels may call, and nobody else."""
    if not _FIRST_TESTED <= numba.version_info.short <= _LAST_TESTED:
        return make_whole(function, options)
    wanted = {**options, "fastmath": set(options["fastmath"])}
    return _njit(pipeline_class=PartCompiler, no_cpython_wrapper=True, no_cfunc_wrapper=True, **wanted)(function)


class WholeCompiler(_CompilerBase):  # type: ignore[misc]
    """Numba's compiler, without the garbage collector."""

    def compile_extra(self, func: Any) -> Any:
        """Compile a function; Numba's lock is held, so that one thread at a time is here."""
        if not gc.isenabled():
            return super().compile_extra(func)
        gc.disable()
        try:
            return super().compile_extra(func)
        finally:
            gc.enable()

    def define_pipelines(self) -> list[Any]:
        """Return Numba's passes."""
        return [_passes.define_nopython_pipeline(self.state)]


class PartLibrary(_JITCodeLibrary):  # type: ignore[misc]
    """Code to be linked into other code: neither optimised nor translated."""

    @property
    def codegen(self) -> Any:
        """What `CPUContext.get_executable` tells the address of the environment, which no part has."""
        return _NoEnvironment()

    def finalize(self) -> None:
        """Take in the code of the parts of this part."""
        self._raise_if_finalized()
        for library in dict.fromkeys(self._linking_libraries):
            if hasattr(library, "_reload_init"):  # since Numba 0.63
                self._reload_init.update(library._reload_init)
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """Return 0: nothing here can be called."""
        self._ensure_finalized()
        return 0


class _NoEnvironment:
    def set_env(self, env_name: str, env: Any) -> None:
        """Do nothing."""


class PartCompiler(WholeCompiler):
    """Numba's compiler, writing into a `PartLibrary`."""

    def define_pipelines(self) -> list[Any]:
        """Choose the library; return Numba's passes."""
        self.state.library = PartLibrary(self.state.targetctx.codegen(), self.state.func_id.func_qualname)
        return [_passes.define_nopython_pipeline(self.state)]
