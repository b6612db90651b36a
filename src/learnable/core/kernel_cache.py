"""Where the compiled code of kernels is kept: the user's cache, then the folder that comes with the wheel.

A file's name is made of everything its code depends on: the kernel's own bytecode and that of every kernel it calls,
the constants and intrinsics they use, the options, the types of the arguments, the versions of Python, Numba and
llvmlite, Numba's configuration, and the processor. If any of these differs, the name differs, and the kernel is
compiled. Nothing depends on time stamps or on where the library lies.

In the user's cache the processor is this one; in the shipped folders it is a level of processors (x86-64-v3 has AVX2,
x86-64-v4 AVX-512), and the best level that this processor has is taken.

Code is loaded by unpickling. So nothing is read from a folder or file that other users may write to.
"""

from __future__ import annotations

import contextlib
import gc
import hashlib
import json
import os
import pickle
import stat
import sys
import tempfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any, Final

import llvmlite
import llvmlite.binding as llvm
import numba
import numpy as np
from numba.core import compiler, serialize, types
from numba.core import config as numba_config
from numba.core.caching import _Cache
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.runtime.nrt import rtsys

from . import intrinsics, wide_intrinsics  # noqa: F401  # known to Numba before it compiles anything
from .jit import Intrinsic, Kernel
from .remembered import remembered_answers

# --------------------------------------------------------------------------------------------------------------------
# How kernels are compiled: those that other kernels call become parts of them, which are optimised with the whole.
#
# Numba makes a library of its own of every function: a wrapper for calls from Python, one for calls from C, a full
# optimisation, machine code, a file in the cache. A part needs none of these. Its caller takes its code in, optimises
# all of it, and is what runs. So the deeper kernels call each other, the more is saved: half of the time of trees'
# kernels.
#
# Python's garbage collector rests meanwhile: it would walk through all objects of all libraries time and again, for
# an eighth of the time.


#: Versions of Numba whose insides are known; with others every kernel is compiled on its own, in Numba's own way, which
#: takes longer.
_FIRST_TESTED = (0, 62)
_LAST_TESTED = (0, 68)
_JITCodeLibrary: Any = JITCodeLibrary
_CompilerBase: Any = CompilerBase
_passes: Any = DefaultPassBuilder
_njit: Any = numba.njit
_types: Any = types


def make_whole(function: Callable[..., Any], options: Mapping[str, Any]) -> Any:
    """Return a dispatcher that Python may call."""
    wanted = {**options, "fastmath": set(options["fastmath"])}
    dispatcher = _njit(pipeline_class=WholeCompiler, no_cfunc_wrapper=True, **wanted)(function)
    if _is_known_numba() and not config.DISABLE_JIT:
        dispatcher._compile_for_args = partial(_take_read_only, dispatcher, dispatcher._compile_for_args)
    return dispatcher


def _take_read_only(dispatcher: Any, compile_for_args: Any, *args: Any) -> Any:
    """Return the code for some arguments, whose types the dispatcher meets for the first time.

    Arrays of pandas and memory maps are often read-only, to Numba another type. Kernels write to nothing but their
    outputs, so that the code for arrays that may be written to serves both, and is compiled or shipped once.
    """
    kinds = [dispatcher.typeof_pyval(arg) for arg in args]
    writable = [_writable(kind) for kind in kinds]
    if writable == kinds:
        return compile_for_args(*args)
    code = dispatcher.compile(tuple(writable))
    dispatcher._insert([kind._code for kind in kinds], code, False)  # from now on without asking
    return code


def _writable(kind: Any) -> Any:
    """Return the type of the same array, or of the same bundle of arrays, if it could be written to."""
    if isinstance(kind, _types.Array):
        return kind if kind.mutable else kind.copy(readonly=False)
    if isinstance(kind, _types.BaseTuple):
        named = getattr(kind, "instance_class", None)
        return _types.BaseTuple.from_types([_writable(one) for one in kind.types], named)
    return kind


def make_part(function: Callable[..., Any], options: Mapping[str, Any]) -> Any:
    """Return a dispatcher that only other kernels may call."""
    if not _is_known_numba():
        return make_whole(function, options)
    wanted = {**options, "fastmath": set(options["fastmath"])}
    return _njit(pipeline_class=PartCompiler, no_cpython_wrapper=True, no_cfunc_wrapper=True, **wanted)(function)


def _is_known_numba() -> bool:
    return bool(_FIRST_TESTED <= numba.version_info.short <= _LAST_TESTED)


class WholeCompiler(_CompilerBase):  # type: ignore[misc]
    """Numba's compiler, without the garbage collector and with a memory of what it has worked out."""

    def compile_extra(self, func: Any) -> Any:
        """Compile a function; Numba's lock is held, so that one thread at a time is here."""
        collects = gc.isenabled()
        gc.disable()
        try:
            with remembered_answers() if _is_known_numba() else contextlib.nullcontext():
                return super().compile_extra(func)
        finally:
            if collects:
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


_V3: Final = frozenset({"avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe"})
#: What a processor of each level must have, in LLVM's words; the best level first.
LEVELS: Final[Mapping[str, frozenset[str]]] = {
    "x86-64-v4": _V3 | {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"},
    "x86-64-v3": _V3,
}
#: Settings of Numba that do not change the code it makes, by the beginnings of their names.
_HARMLESS: Final = (
    "_",
    "CACHE_",
    "CHROME_TRACE",
    "COLOR_SCHEME",
    "CPU_",  # part of the processor
    "CUDA_",
    "DEBUG_",
    "DEVELOPER_MODE",
    "DISABLE_CUDA",
    "DISABLE_PERFORMANCE_WARNINGS",
    "DUMP_",
    "FORCE_CUDA_CC",
    "FULL_TRACEBACKS",
    "FUNCTION_CACHE_SIZE",
    "GDB_BINARY",
    "HTML",
    "NUMBA_",
    "RUNNING_UNDER_PROFILER",
    "SHOW_HELP",
    "THREADING_LAYER",
)
_MAGIC: Final = b"learnable kernel 1\n"
_SUFFIX: Final = ".kernel"
#: Lies beside the shipped folders; for people and `learnable doctor`: a kernel's own name decides.
VERSIONS_FILE: Final = "versions.json"
#: What loading may raise where a name in the code is not known here: the kernel is compiled then.
_FAULTS: Final = (
    pickle.UnpicklingError,
    AttributeError,
    ImportError,
    LookupError,
    TypeError,
    ValueError,
    EOFError,
    RuntimeError,
)

config: Any = numba_config
_results: Any = compiler.CompileResult
_dumps: Any = serialize.dumps

#: What this process has done: how often code came "cached", "shipped" or "compiled".
origins: Counter[str] = Counter()
#: The files it loaded, and the names of the kernels that it compiled.
loaded: list[str] = []
compiled: list[str] = []
#: The names of the kernels that Python called in it, or passed to others, whatever they came from.
called: set[str] = set()


class MissingKernelError(RuntimeError):
    """A kernel that would have to be compiled inside `loading_only`."""


_loads_only = False


@contextlib.contextmanager
def loading_only() -> Iterator[None]:
    """Let no kernel be compiled in this process: what is in no cache raises MissingKernelError at once."""
    global _loads_only
    before = _loads_only
    _loads_only = True
    try:
        yield
    finally:
        _loads_only = before


class KernelCache(_Cache):  # type: ignore[misc]
    """The compiled code of one kernel, by the types of its arguments; Numba's dispatcher asks before it compiles."""

    def __init__(self, function: Callable[..., Any], options: Mapping[str, Any]) -> None:
        self._function = function
        self._options = options
        self._name = name_of(function)
        self._content: str | None = None
        self._enabled = True

    @property
    def cache_path(self) -> str:
        """The user's folder."""
        return str(user_folder())

    def enable(self) -> None:
        """Look for compiled code, and keep it."""
        self._enabled = True

    def disable(self) -> None:
        """Compile whatever is asked for."""
        self._enabled = False

    def flush(self) -> None:
        """Do nothing: a file's name is made of its content, so that none is ever out of date."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the code for these types, or None."""
        rtsys.initialize(target_context)  # what compiled code calls; what compiling needs, the compiler loads itself
        called.update((self._name, *(name for kind in _arguments(sig) for name in _kernels_in(kind))))
        if self._is_known():
            for origin, folder, processor in _places(target_context.codegen().magic_tuple()):
                path = folder.joinpath(self._file_name(sig, processor))
                data = _read(path)
                if data is None:
                    continue
                with contextlib.suppress(*_FAULTS):
                    result = _results._rebuild(target_context, *pickle.loads(data))
                    origins[origin] += 1
                    loaded.append(path.name)
                    return result
        if _loads_only:
            raise MissingKernelError(f"{self._name} has not been compiled for these arguments")
        origins["compiled"] += 1
        compiled.append(self._name)
        return None

    def save_overload(self, sig: Any, cres: Any) -> None:
        """Keep the code for these types in the user's cache; a full disk or a read-only home is no error."""
        if not self._is_known() or cres.lifted or cres.library.has_dynamic_globals:
            return
        folder = user_folder()
        with contextlib.suppress(OSError):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            _write(folder / self._file_name(sig, _processor(cres.codegen.magic_tuple())), _dumps(cres._reduce()))

    def _is_known(self) -> bool:
        """Tell whether the kernel may be cached: whether all that it uses has a digest."""
        if self._content is None:
            try:
                self._content = content(self._function, self._options)
            except TypeError:
                self._enabled = False
        return self._enabled

    def _file_name(self, sig: Any, processor: str) -> str:
        types = "; ".join(describe_type(kind) for kind in _arguments(sig))
        key = _digest(str(self._content), types, processor, _environment())
        return f"{self._name}-{key[:32]}{_SUFFIX}"


def _arguments(sig: Any) -> tuple[Any, ...]:
    """Return the types in a signature, however Numba gives it."""
    return sig if isinstance(sig, tuple) else (*sig.args, sig.return_type)


def _kernels_in(kind: Any) -> Iterator[str]:
    """Yield the names of the kernels that an argument of this type is, or holds."""
    if hasattr(kind, "dispatcher"):
        yield name_of(kind.dispatcher.py_func)
    for inner in getattr(kind, "types", ()):
        yield from _kernels_in(inner)


def name_of(function: Callable[..., Any]) -> str:
    """Return the name of a kernel, with which its files begin."""
    return f"{function.__module__}.{function.__qualname__}".replace("<", "").replace(">", "")


def user_folder() -> Path:
    """Return where this user's compiled kernels are kept: NUMBA_CACHE_DIR if that is set."""
    if config.CACHE_DIR:
        return Path(config.CACHE_DIR) / "learnable"
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or "~/AppData/Local"
    elif sys.platform == "darwin":
        base = "~/Library/Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "learnable" / "kernels"


def keeps_kernels() -> bool:
    """Tell whether what is compiled here can be kept, so that other processes find it."""
    folder = user_folder()
    with contextlib.suppress(OSError):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return _is_mine(folder) and os.access(folder, os.W_OK) and not config.DISABLE_JIT


def shipped_folder(level: str) -> Traversable:
    """Return the folder of the kernels that come with the wheel for a level of processors."""
    return files("learnable").joinpath("compiled", level)


def build_versions() -> Mapping[str, str]:
    """Return the versions that code depends on, by name: shipped kernels are for those of the build and no others."""
    python = sys.implementation.cache_tag or sys.implementation.name
    numpy = np.__version__.split(".")[0]
    return {"Python": python, "Numba": numba.__version__, "llvmlite": llvmlite.__version__, "NumPy": numpy}


def shipped_versions() -> Mapping[str, str]:
    """Return `build_versions` as they were when the shipped kernels were built; empty if none are shipped."""
    try:
        return dict(json.loads(files("learnable").joinpath("compiled", VERSIONS_FILE).read_text(encoding="utf-8")))
    except (OSError, KeyError):
        return {}


def count_kernels(folder: Traversable) -> int:
    """Return how many compiled kernels lie in a folder; none if there is no such folder."""
    return sum(path.name.endswith(_SUFFIX) for path in folder.iterdir()) if folder.is_dir() else 0


@cache
def levels_here() -> tuple[str, ...]:
    """Return the levels that this processor has, the best first."""
    available = {name for name, present in llvm.get_host_cpu_features().items() if present}
    return tuple(level for level, needed in LEVELS.items() if needed <= available)


def _places(machine: tuple[str, str, str]) -> Iterator[tuple[str, Traversable, str]]:
    """Yield the places to look, in order: a name, the folder, and the processor that code there is for."""
    folder = user_folder()
    if _is_mine(folder):
        yield "cached", folder, _processor(machine)
    if config.CPU_NAME is None and config.CPU_FEATURES is None:  # otherwise code for another processor is wanted
        for level in levels_here():
            shipped = shipped_folder(level)
            if is_safe(shipped):
                yield "shipped", shipped, _processor((machine[0], level, ""))


def _processor(machine: tuple[str, str, str]) -> str:
    """Return the system and the processor that code is for; the third part are features besides the processor's own."""
    return " ".join(machine)


def is_safe(path: Traversable) -> bool:
    """Tell whether code may be loaded from there; what lies in a zip file is as safe as the library's source in it."""
    return not isinstance(path, Path) or _is_mine(path)


def _is_mine(path: Path) -> bool:
    """Tell whether only this user and the system's administrator can write there."""
    try:
        status = path.stat()
    except OSError:
        return False
    if sys.platform == "win32":
        return True  # access lists protect a profile's folders
    if status.st_mode & stat.S_IWOTH or (status.st_mode & stat.S_IWGRP and not _is_private_group(status.st_gid)):
        return False
    return status.st_uid in (0, os.getuid())


@cache
def _is_private_group(number: int) -> bool:
    """Tell whether the group has this user alone: many systems give each one, and let it write what its user writes."""
    import grp
    import pwd

    try:
        user = pwd.getpwuid(os.getuid())
        group = grp.getgrgid(number)
    except KeyError:
        return False
    others = any(other.pw_gid == number and other.pw_uid != user.pw_uid for other in pwd.getpwall())
    alone = set(group.gr_mem) <= {user.pw_name} and not others
    return alone and number == user.pw_gid and group.gr_name == user.pw_name


def _write(path: Path, data: bytes) -> None:
    """Write the file whole or not at all."""
    packed = zlib.compress(data, 6)
    handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(_MAGIC + hashlib.sha256(packed).digest() + packed)
        os.replace(temporary, path)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def _read(path: Traversable) -> bytes | None:
    """Return what `_write` wrote, if it is there, whole, and nobody else could have changed it."""
    if not is_safe(path):
        return None
    try:
        raw = path.read_bytes()
    except (OSError, KeyError):
        return None
    start = len(_MAGIC) + 32
    packed = raw[start:]
    if not raw.startswith(_MAGIC) or hashlib.sha256(packed).digest() != raw[len(_MAGIC) : start]:
        return None
    return zlib.decompress(packed)


@cache
def _environment() -> str:
    """Return the versions and settings that compiled code depends on, besides the kernel and the processor."""
    settings = {
        name: repr(getattr(config, name))
        for name in sorted(vars(config))
        if name.isupper() and not name.startswith(_HARMLESS)
    }
    return _digest(*build_versions().values(), repr(settings))


def _digest(*parts: str) -> str:
    return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()


def describe_type(kind: Any) -> str:
    """Return a Numba type in words that mean the same in every process."""
    inner = getattr(kind, "instance_class", None)
    if inner is not None:  # a NamedTuple
        parts = ", ".join(describe_type(one) for one in kind)
        return f"{inner.__module__}.{inner.__qualname__}{getattr(inner, '_fields', ())}({parts})"
    dispatcher = getattr(kind, "dispatcher", None)
    if dispatcher is not None:  # a kernel as an argument
        return content(dispatcher.py_func, dispatcher.targetoptions)
    return str(kind)


def content(function: Callable[..., Any], options: Mapping[str, Any]) -> str:
    """Return a digest of a kernel and of all that it uses.

    Examples
    --------
    >>> from learnable.core.jit import kernel
    >>> @kernel
    ... def double(x):
    ...     return 2 * x
    >>> @kernel
    ... def triple(x):
    ...     return 3 * x
    >>> content(double.py_func, double.options) == content(triple.py_func, triple.options)
    False
    """
    words: list[str] = []
    _describe(Kernel(function, options), words, {})
    return _digest(*words)


def _describe(value: Any, words: list[str], seen: dict[int, int]) -> None:
    """Append what the value means to a kernel; a function that was described before is named by its number."""
    if isinstance(value, Kernel):
        words.append(repr(sorted((name, _sorted(option)) for name, option in value.options.items())))
        _describe_function(value.py_func, words, seen)
    elif isinstance(value, FunctionType):
        _describe_function(value, words, seen)
    elif isinstance(value, Intrinsic):
        words += [value.name, _intrinsics_source(value.module)]
    elif isinstance(value, tuple):
        words.append(f"tuple of {len(value)}")
        for one in value:
            _describe(one, words, seen)
    elif isinstance(value, np.ndarray):
        words += [str(value.dtype), str(value.shape), value.tobytes().hex()]
    elif value is None or isinstance(value, bool | int | float | complex | str | bytes | np.generic):
        words.append(f"{type(value).__qualname__} {value!r}")
    elif isinstance(value, ModuleType):
        words.append(value.__name__)
    elif isinstance(value, type | BuiltinFunctionType):
        words.append(f"{value.__module__}.{value.__qualname__} {getattr(value, '_fields', ())}")
    elif isinstance(value, np.ufunc):
        words.append(value.__name__)
    else:
        raise TypeError(f"a kernel uses a {type(value).__name__}, of which no digest is known")


def _describe_function(function: Any, words: list[str], seen: dict[int, int]) -> None:
    if id(function) in seen:
        words.append(f"function {seen[id(function)]}")
        return
    seen[id(function)] = len(seen)
    names: set[str] = set()
    _describe_code(function.__code__, words, names)
    _describe(function.__defaults__, words, seen)
    for name in sorted(names & function.__globals__.keys()):
        value = function.__globals__[name]
        words.append(name)
        _describe(value, words, seen)
        if isinstance(value, ModuleType) and value.__name__.startswith("learnable."):
            for inner in sorted(names & vars(value).keys()):
                words.append(inner)
                _describe(vars(value)[inner], words, seen)
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        words.append(name)
        _describe(cell.cell_contents, words, seen)


def _describe_code(code: CodeType, words: list[str], names: set[str]) -> None:
    words += [code.co_code.hex(), repr(code.co_names), repr(code.co_varnames)]
    names.update(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            _describe_code(constant, words, names)
        else:
            words.append(repr(constant))


def _sorted(option: Any) -> Any:
    return sorted(option) if isinstance(option, set | frozenset) else option


@cache
def _intrinsics_source(module: str) -> str:
    return files("learnable.core").joinpath(f"{module}.py").read_text(encoding="utf-8")
