"""What Numba works out time and again while it compiles is worked out once, or not at all where nobody asks for it.

Numba's own work, besides LLVM's, takes most of the time of compiling, and much of it is done over and over:

- which overload of a function fits these types: all overloads are tried for each of hundreds of `a + b` or `min(a, b)`;
- which type an attribute has: all classes above the type of a bundle of arrays are searched;
- whether overloads have been registered since: for each call of a function that is compiled apart;
- how many bytes a type takes: each time by writing a module of LLVM and parsing it;
- which variables live at the start of each block: after each pass, although only generators need it.

The answers are Numba's own, so that the same code is compiled. Numba's methods are hidden by ours while one of our
kernels is compiled: Numba's lock is held then, so that nobody else asks. A fifth of the time of trees is saved.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Any, Final

from llvmlite.ir import IdentifiedStructType
from numba.core import ir, postproc, targetconfig, transforms, types
from numba.core.registry import cpu_target

_Instruction: Any = ir.Inst
_Tuple: Any = types.BaseTuple
_options: Any = targetconfig.ConfigStack
_lifetime: Any = postproc.VariableLifetime
_canonicalize: Any = transforms.canonicalize_cfg

#: Types whose overloads depend on nothing but themselves; of tuples, those that hold no others.
_PLAIN: Final = (
    types.Array,
    types.Boolean,
    types.BooleanLiteral,
    types.DType,
    types.IntegerLiteral,
    types.NoneType,
    types.Number,
    types.RangeType,
    types.SliceType,
)
_NO_VARIABLES: Final = frozenset({ir.Loc, str, int, float, bool, type(None)})
_overloads: dict[Any, tuple[Any, Any]] = {}
_attributes: dict[Any, Any] = {}
_sizes: dict[str, int] = {}
_is_hidden = False


@contextlib.contextmanager
def remembered_answers() -> Iterator[None]:
    """Hide methods of Numba inside this block; a kernel that is compiled inside another one finds them hidden."""
    global _is_hidden
    if _is_hidden:
        yield
        return
    typing = type(cpu_target.typing_context)
    target = type(cpu_target.target_context)
    hiding: list[tuple[Any, str, Any]] = [
        (types.Function, "get_call_type", _remember_overloads(types.Function)),
        (typing, "refresh", _remember_refresh(typing)),
        (target, "refresh", _remember_refresh(target)),
        (target, "get_abi_sizeof", _remember_sizes(target)),
        (typing, "resolve_getattr", _remember_attributes(typing)),
        (postproc.PostProcessor, "run", _without_living_variables(postproc.PostProcessor)),
        (ir.Inst, "_rec_list_vars", _list_variables),
    ]
    with contextlib.ExitStack() as stack:
        for owner, name, method in hiding:
            stack.callback(_restore, owner, name, vars(owner).get(name))
            setattr(owner, name, method)
        _is_hidden = True
        try:
            yield
        finally:
            _is_hidden = False


def _restore(owner: Any, name: str, before: Any) -> None:
    if before is None:  # it belongs to the class above
        delattr(owner, name)
    else:
        setattr(owner, name, before)


def _remember_overloads(function_type: Any) -> Any:
    """Return `get_call_type`, which tries the overloads only once for plain types and the same options."""
    ask = function_type.get_call_type
    compiled: list[Any] = [None, None]  # the options of the function that is compiled, and what they say

    def get_call_type(self: Any, context: Any, args: Any, kws: Any) -> Any:
        if kws or not all(_is_plain(kind) for kind in args):
            return ask(self, context, args, kws)
        options = _options.top_or_none()
        if options is not compiled[0]:
            compiled[:] = options, options and options.summary()
        key = self, context, tuple(args), compiled[1]
        if key in _overloads:
            signature, implementation = _overloads[key]
            self._impl_keys[signature.args] = implementation  # it may have been asked for with other options since
        else:
            signature = ask(self, context, args, kws)
            if signature is not None:
                _overloads[key] = signature, self._impl_keys[signature.args]
        return signature

    return get_call_type


def _remember_attributes(typing: Any) -> Any:
    """Return `resolve_getattr`, which looks only once for an attribute of a plain type that is of a plain type."""
    ask = typing.resolve_getattr

    def resolve_getattr(self: Any, typ: Any, attr: str) -> Any:
        if not _is_plain(typ):
            return ask(self, typ, attr)
        key = self, typ, attr
        if key in _attributes:
            return _attributes[key]
        found = ask(self, typ, attr)
        if _is_plain(found):
            _attributes[key] = found
        return found

    return resolve_getattr


def _is_plain(kind: Any) -> bool:
    if isinstance(kind, _Tuple):
        return all(_is_plain(one) for one in kind.types)
    return isinstance(kind, _PLAIN)


def _list_variables(_: Any, value: Any) -> list[Any]:
    """List the variables in a part of an instruction, in order."""
    found: list[Any] = []
    _add_variables(value, found)
    return found


def _add_variables(value: Any, found: list[Any]) -> None:
    kind = type(value)
    if kind is ir.Var:
        found.append(value)
    elif kind is dict:
        for one in value.values():
            if type(one) not in _NO_VARIABLES:
                _add_variables(one, found)
    elif kind is tuple or kind is list:
        for one in value:
            _add_variables(one, found)
    elif isinstance(value, _Instruction):
        found.extend(value.list_vars())


def _remember_refresh(context: Any) -> Any:
    """Return `refresh`, which does nothing where nothing has been registered since it was last called."""
    refresh = context.refresh
    registered: list[Any] = []  # the lists of the registries
    last = -1

    def refresh_if_needed(self: Any) -> None:
        nonlocal last
        if len(sys.modules) + sum(map(len, registered)) != last:
            refresh(self)
            registered[:] = _registered_lists()
            last = len(sys.modules) + sum(map(len, registered))

    return refresh_if_needed


def _registered_lists() -> list[list[Any]]:
    """Return the lists of Numba's registries: they only grow, and new registries come with new modules."""
    contexts: tuple[Any, ...] = (cpu_target.typing_context, cpu_target.target_context)
    return [
        one
        for context in contexts
        for registry in context._registries
        for one in vars(registry).values()
        if isinstance(one, list)
    ]


def _remember_sizes(target: Any) -> Any:
    """Return `get_abi_sizeof`, which asks once for each type."""
    ask = target.get_abi_sizeof

    def get_abi_sizeof(self: Any, ty: Any) -> int:
        if isinstance(ty, IdentifiedStructType):
            return int(ask(self, ty))
        name = str(ty)
        if name not in _sizes:
            _sizes[name] = ask(self, ty)
        return _sizes[name]

    return get_abi_sizeof


def _without_living_variables(processor: Any) -> Any:
    """Return `run`, which leaves out `block_entry_vars` for functions that are no generators."""
    whole_run = processor.run

    def run(self: Any, emit_dels: bool = False, extend_lifetimes: bool = False) -> None:
        function = self.func_ir
        if function.is_generator:
            whole_run(self, emit_dels, extend_lifetimes)
            return
        function.blocks = _canonicalize(function.blocks)
        function.variable_lifetime = _lifetime(function.blocks)
        function.generator_info = None
        if emit_dels:
            self._insert_var_dels(extend_lifetimes=extend_lifetimes)

    return run
