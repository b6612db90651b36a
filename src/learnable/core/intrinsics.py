"""What kernels say in the compiler's own language: vectors of four, atomic counters, prefetching, bits as numbers.

Importing this file imports Numba. Kernels therefore take these names from `core.simd` and `core.atomics`, which stand
for them until a kernel is compiled.

Four float64 numbers as one value: what the compiler's vectoriser does not find by itself.

Numba vectorises loops over many numbers. A recursion over ten states has none: its loops are short, and each depends on
the one before. A kernel that says which four numbers move together gets vector registers on every machine (two
registers of two where the machine has no wider ones).

Nothing is checked: the caller pads arrays to multiples of four.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Final

from llvmlite import ir
from numba import carray, types  # type: ignore[attr-defined]
from numba.core import cgutils
from numba.extending import intrinsic, models, register_model

WIDTH: Final = 4

_REAL = ir.DoubleType()
_LONG = ir.IntType(64)
_WORD = ir.IntType(32)
_VECTOR = ir.VectorType(_REAL, WIDTH)


class _Lanes(types.Type):  # type: ignore[misc]
    """The type of four numbers."""


LANES: Final = _Lanes(name="float64x4")


@register_model(_Lanes)
class _LanesModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, fe_type: Any) -> None:
        super().__init__(manager, fe_type, _VECTOR)  # type: ignore[no-untyped-call]


def _pointer(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    array = context.make_array(signature.args[0])(context, builder, args[0])
    index = context.cast(builder, args[1], signature.args[1], types.intp)
    return builder.bitcast(builder.gep(array.data, [index]), _VECTOR.as_pointer())


def _load_lanes(typing: Any, array: Any, index: Any) -> Any:
    """Return array[index] … array[index + 3]."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load(_pointer(context, builder, signature, args), align=8)

    return LANES(array, index), build


def _store_lanes(typing: Any, array: Any, index: Any, value: Any) -> Any:
    """Set array[index] … array[index + 3]."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.store(args[2], _pointer(context, builder, signature, args), align=8)
        return context.get_dummy_value()

    return types.void(array, index, value), build


def _store_columns(typing: Any, array: Any, index: Any, step: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    """Set array[index + r·step] … array[index + r·step + 3] to the r-th numbers of a, b, c and d, for r = 0 … 3."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        def pick(x: Any, y: Any, *lanes: int) -> Any:
            return builder.shuffle_vector(x, y, ir.Constant(ir.VectorType(_WORD, WIDTH), list(lanes)))

        place = context.cast(builder, args[1], signature.args[1], types.intp)
        stride = context.cast(builder, args[2], signature.args[2], types.intp)
        array = context.make_array(signature.args[0])(context, builder, args[0])
        even = [pick(*pair, 0, 4, 2, 6) for pair in (args[3:5], args[5:7])]  # a₀b₀a₂b₂ and c₀d₀c₂d₂
        odd = [pick(*pair, 1, 5, 3, 7) for pair in (args[3:5], args[5:7])]
        halves = (0, 1, 4, 5), (2, 3, 6, 7)
        for row in range(WIDTH):
            to = builder.bitcast(builder.gep(array.data, [place]), _VECTOR.as_pointer())
            builder.store(pick(*(even, odd)[row % 2], *halves[row // 2]), to, align=8)
            place = builder.add(place, stride)
        return context.get_dummy_value()

    return types.void(array, index, step, a, b, c, d), build


def _spread_lanes(typing: Any, x: Any) -> Any:
    """Return one number four times."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _spread(builder, args[0])

    return LANES(types.float64), build


def _repeat_lanes(typing: Any, array: Any, index: Any) -> Any:
    """Return array[index] four times."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, args[0])
        place = context.cast(builder, args[1], signature.args[1], types.intp)
        return _spread(builder, builder.load(builder.gep(array.data, [place])))

    return LANES(array, index), build


def _binary(name: str) -> Any:
    """Return an operation on two vectors by its name in the compiler's language."""

    def operation(typing: Any, x: Any, y: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return getattr(builder, name)(*args)

        return LANES(x, y), build

    return intrinsic(operation)


add: Any = _binary("fadd")
sub: Any = _binary("fsub")
mul: Any = _binary("fmul")


def _fma_lanes(typing: Any, x: Any, y: Any, z: Any) -> Any:
    """Return xy + z."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _call(builder, "llvm.fmuladd.v4f64", args)

    return LANES(x, y, z), build


def _larger_lanes(typing: Any, x: Any, y: Any) -> Any:
    """Return the greater number of each pair; the second where one is NaN."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _larger(builder, *args)

    return LANES(x, y), build


def _total_lanes(typing: Any, v: Any) -> Any:
    """Return the sum of the four numbers, by pairs."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _fold(builder, args[0], builder.fadd)

    return types.float64(v), build


def _top_lanes(typing: Any, v: Any) -> Any:
    """Return the greatest of the four numbers."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _fold(builder, args[0], lambda x, y: _larger(builder, x, y))

    return types.float64(v), build


def _exp_lanes(typing: Any, v: Any) -> Any:
    """Return e to the power of each number, or of a single one."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _exp(builder, args[0])

    return (LANES if v == LANES else types.float64)(v), build


load: Any = intrinsic(_load_lanes)
store: Any = intrinsic(_store_lanes)
store_columns: Any = intrinsic(_store_columns)
spread: Any = intrinsic(_spread_lanes)
repeat: Any = intrinsic(_repeat_lanes)
fma: Any = intrinsic(_fma_lanes)
larger: Any = intrinsic(_larger_lanes)
total: Any = intrinsic(_total_lanes)
top: Any = intrinsic(_top_lanes)
exp: Any = intrinsic(_exp_lanes)

_LEAST: Final = -708.0
_LOG2_HIGH: Final = 0.693145751953125  # its last bits are zero, so that n times it is exact
_LOG2_LOW: Final = 1.42860682030941723212e-6


def _list_inverse_factorials(n: int) -> list[float]:
    values = [1.0]
    for k in range(1, n + 1):
        values.append(values[-1] / k)
    return values


_INVERSE_FACTORIALS: Final = _list_inverse_factorials(13)


def _exp(builder: Any, x: Any) -> Any:
    """Return e^x to the last digit or two, of a vector or of one number.

    x = n log 2 + r with |r| ≤ ½ log 2, e^x = 2ⁿ e^r: the series of e^r to the thirteenth power is exact to rounding,
    and 2ⁿ is a number whose exponent bits are n.
    """
    real = x.type
    name = "v4f64" if x.type == _VECTOR else "f64"
    word, long = (ir.VectorType(kind, WIDTH) if real == _VECTOR else kind for kind in (_WORD, _LONG))

    def fused(x: Any, y: Any, z: Any) -> Any:
        return _call(builder, f"llvm.fmuladd.{name}", [x, y, z])

    def constant(value: float) -> Any:
        return _constant(real, value)

    def polynomial(coefficients: list[float], x: Any) -> Any:
        value = constant(coefficients[-1])
        for coefficient in coefficients[-2::-1]:
            value = fused(value, x, constant(coefficient))
        return value

    lost = builder.fcmp_ordered("<", x, constant(_LEAST))
    x = _larger(builder, x, constant(_LEAST))
    n = _call(builder, f"llvm.rint.{name}", [builder.fmul(x, constant(1.4426950408889634))])
    r = fused(n, constant(-_LOG2_HIGH), x)
    r = fused(n, constant(-_LOG2_LOW), r)
    even, odd = (polynomial(_INVERSE_FACTORIALS[first::2], builder.fmul(r, r)) for first in (0, 1))
    series = fused(odd, r, even)
    power = builder.sext(builder.fptosi(n, word), long)
    bits = builder.shl(builder.add(power, _constant(long, 1023)), _constant(long, 52))
    found = builder.fmul(series, builder.bitcast(bits, real))
    return builder.select(lost, constant(0.0), found)


def _exp_of_either(typing: Any, x: Any) -> Any:
    """Return e^x in the type of x, float32 or float64; arguments up to 80."""
    real = x if x in (types.float32, types.float64) else types.float64

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        value = context.cast(builder, args[0], signature.args[0], real)
        return _exp_single(builder, value) if real == types.float32 else _exp(builder, value)

    return real(x), build


def _exp_single(builder: Any, x: Any) -> Any:
    """Return e^x of a float32 to its last digit or two; see `_exp`."""
    real = ir.FloatType()
    word = ir.IntType(32)

    def fused(a: Any, b: Any, c: Any) -> Any:
        return _call(builder, "llvm.fmuladd.f32", [a, b, c])

    lost = builder.fcmp_ordered("<", x, real(-87.0))
    x = _larger(builder, x, real(-87.0))
    n = _call(builder, "llvm.rint.f32", [builder.fmul(x, real(1.4426950408889634))])
    r = fused(n, real(-0.693359375), x)
    r = fused(n, real(2.12194440054690583e-4), r)
    series = real(_INVERSE_FACTORIALS[7])
    for coefficient in _INVERSE_FACTORIALS[6::-1]:
        series = fused(series, r, real(coefficient))
    bits = builder.shl(builder.add(builder.fptosi(n, word), word(127)), word(23))
    found = builder.fmul(series, builder.bitcast(bits, real))
    return builder.select(lost, real(0.0), found)


def _spread(builder: Any, x: Any) -> Any:
    vector = ir.Constant(_VECTOR, ir.Undefined)
    for lane in range(WIDTH):
        vector = builder.insert_element(vector, x, _WORD(lane))
    return vector


def _constant(kind: Any, value: float) -> Any:
    """Return one number, or a vector of it."""
    return ir.Constant(kind, [kind.element(value)] * WIDTH if isinstance(kind, ir.VectorType) else value)


def _larger(builder: Any, x: Any, y: Any) -> Any:
    return builder.select(builder.fcmp_ordered(">", x, y), x, y)


def _fold(builder: Any, v: Any, join: Callable[[Any, Any], Any]) -> Any:
    a, b, c, d = (builder.extract_element(v, _WORD(lane)) for lane in range(WIDTH))
    return join(join(a, c), join(b, d))


def _call(builder: Any, name: str, args: Any) -> Any:
    kind = ir.FunctionType(args[0].type, [arg.type for arg in args])
    function = cgutils.get_or_insert_function(builder.module, kind, name)  # type: ignore[no-untyped-call]
    return builder.call(function, args)


exp_of_either: Any = intrinsic(_exp_of_either)

give_way = types.ExternalFunction("SwitchToThread" if sys.platform == "win32" else "sched_yield", types.int32())


def _address(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    array_type, index_type = signature.args[:2]
    array = context.make_array(array_type)(context, builder, args[0])
    index = context.cast(builder, args[1], index_type, types.intp)
    return cgutils.get_item_pointer(context, builder, array_type, array, [index])  # type: ignore[no-untyped-call]


def _atomic_add(typing: Any, array: Any, index: Any, value: Any) -> Any:
    """Add to array[index] (int64) at once and return what was there."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        amount = context.cast(builder, args[2], signature.args[2], types.int64)
        return builder.atomic_rmw("add", _address(context, builder, signature, args), amount, "seq_cst")

    return types.int64(array, index, value), generate


def _atomic_load(typing: Any, array: Any, index: Any) -> Any:
    """Return array[index] (int64) as other threads have written it."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load_atomic(_address(context, builder, signature, args), "acquire", 8)

    return types.int64(array, index), generate


def _prefetch(typing: Any, array: Any, index: Any) -> Any:
    """Ask for the cache line of array[index] (one dimension); the index may lie outside."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = builder.bitcast(_address(context, builder, signature, args), ir.IntType(8).as_pointer())
        word = ir.IntType(32)
        function = cgutils.get_or_insert_function(  # type: ignore[no-untyped-call]
            builder.module,
            ir.FunctionType(ir.VoidType(), [pointer.type, word, word, word]),
            "llvm.prefetch.p0i8",
        )
        builder.call(function, [pointer, word(0), word(3), word(1)])
        return context.get_dummy_value()

    return types.void(array, index), generate


def _float_of(typing: Any, bits: Any) -> Any:
    """Return the float32 whose bits are those of an int32."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.FloatType())

    return types.float32(types.int32), generate


def _numbers_at(_: Any, address: Any) -> Any:
    """Return a pointer to the float64 at an address."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], context.get_value_type(signature.return_type))

    return types.CPointer(types.float64)(types.uint64), build  # type: ignore[no-untyped-call]


def _integers_at(_: Any, address: Any) -> Any:
    """Return a pointer to the int64 at an address."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], context.get_value_type(signature.return_type))

    return types.CPointer(types.int64)(types.uint64), build  # type: ignore[no-untyped-call]


def _call_at(_: Any, address: Any, x: Any, out: Any, data: Any) -> Any:
    """Call the C function `double f(double *x, void *out, int64_t *data)` at an address with three arrays."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        byte = ir.IntType(8).as_pointer()
        pointers = []
        for kind, argument in zip(signature.args[1:], arguments[1:], strict=True):
            array = context.make_array(kind)(context, builder, argument)
            pointers.append(builder.bitcast(array.data, byte))
        function = ir.FunctionType(_REAL, [byte, byte, byte]).as_pointer()
        return builder.call(builder.inttoptr(arguments[0], function), pointers)

    return types.float64(types.int64, x, out, data), build


integers_at: Any = intrinsic(_integers_at)
call_at: Any = intrinsic(_call_at)
atomic_add: Any = intrinsic(_atomic_add)
atomic_load: Any = intrinsic(_atomic_load)
prefetch: Any = intrinsic(_prefetch)
float_of: Any = intrinsic(_float_of)
numbers_at: Any = intrinsic(_numbers_at)
array_at: Any = carray
