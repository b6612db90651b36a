"""Vectors of 32 bytes and a tile of a matrix product, in the compiler's own language; `core.wide` tells what each does.

Importing this file imports Numba. Kernels therefore take these names from `core.wide`, which stand for them until a
kernel is compiled.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, models, register_model

_WORD = ir.IntType(32)
_SIZE = ir.IntType(64)
_TILE_ROWS = 6
#: By element: its type in the compiler, its suffix there, and how many fill 32 bytes.
_KINDS = {types.float32: (ir.FloatType(), "f32", 8), types.float64: (ir.DoubleType(), "f64", 4)}
_INVERSE_FACTORIALS = [1.0]
for _k in range(1, 14):
    _INVERSE_FACTORIALS.append(_INVERSE_FACTORIALS[-1] / _k)
#: tanh x = x·P(x²)/Q(x²) for |x| ≤ 8, from the fit with the least largest relative error, 6.5e-9. Rounding in float32
#: makes it 2.8e-7, of the sigmoid 1.7e-7; values stay within [−1, 1]. Two thirds of the operations that e^x takes.
_TANH_END = 8.0
_ABOVE = [0.9999999936, 0.1344453285, 0.003571639042, 2.18953206e-05, 1.523129663e-08]
_BELOW = [1.0, 0.467778602, 0.02616460002, 0.0003411358401, 8.52281374e-07]


class _Wide(types.Type):  # type: ignore[misc]
    """The type of a vector of one kind of numbers."""

    def __init__(self, element: Any) -> None:
        self.element = element
        scalar, suffix, width = _KINDS[element]
        self.scalar = scalar
        self.width = width
        self.vector = ir.VectorType(scalar, width)
        self.suffix = f"v{width}{suffix}"
        super().__init__(name=f"{element}x{width}")  # type: ignore[no-untyped-call]


WIDE = {element: _Wide(element) for element in _KINDS}


@register_model(_Wide)
class _WideModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, fe_type: Any) -> None:
        super().__init__(manager, fe_type, fe_type.vector)  # type: ignore[no-untyped-call]


def _pointer(context: Any, builder: Any, signature: Any, args: Any, which: int = 0) -> Any:
    """Return the address of the number that the index after an array points to."""
    array = context.make_array(signature.args[which])(context, builder, args[which])
    index = context.cast(builder, args[which + 1], signature.args[which + 1], types.intp)
    return builder.gep(array.data, [index])


def _load_wide(typing: Any, array: Any, index: Any) -> Any:
    kind = WIDE[array.dtype]

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place = _pointer(context, builder, signature, args)
        return builder.load(builder.bitcast(place, kind.vector.as_pointer()), align=4)

    return kind(array, index), build


def _load_counts(typing: Any, array: Any, index: Any) -> Any:
    kind = WIDE[types.float32]

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place = _pointer(context, builder, signature, args)
        numbers = ir.VectorType(place.type.pointee, kind.width)
        found = builder.load(builder.bitcast(place, numbers.as_pointer()), align=1)
        return builder.sitofp(found, kind.vector)

    return kind(array, index), build


def _store_wide(typing: Any, array: Any, index: Any, value: Any) -> Any:
    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place = _pointer(context, builder, signature, args)
        builder.store(args[2], builder.bitcast(place, WIDE[array.dtype].vector.as_pointer()), align=4)
        return context.get_dummy_value()

    return types.void(array, index, value), build


def _spread_wide(typing: Any, x: Any) -> Any:
    kind = WIDE[x]

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _spread(builder, kind, args[0])

    return kind(x), build


def _operation(name: str) -> Any:
    """Return an operation on two vectors by its name in the compiler's language."""

    def operation(typing: Any, x: Any, y: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return getattr(builder, name)(*args)

        return x(x, y), build

    return intrinsic(operation)


def _fma_wide(typing: Any, x: Any, y: Any, z: Any) -> Any:
    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _fused(builder, x, *args)

    return x(x, y, z), build


def _sigmoid_wide(typing: Any, v: Any) -> Any:
    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _sigmoid(builder, v, args[0])

    return v(v), build


def _tanh_wide(typing: Any, v: Any) -> Any:
    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        if v.element == types.float32:
            return _quotient(builder, v, args[0], _TANH_END, _ABOVE, _BELOW)
        half = _sigmoid(builder, v, builder.fadd(args[0], args[0]))
        return builder.fsub(builder.fadd(half, half), _constant(v, 1.0))

    return v(v), build


def _tile_of(more: bool) -> Any:
    """Return the intrinsic that multiplies a tile; `more`: it adds to what is there."""

    def tile_wide(
        typing: Any,
        a: Any,
        i: Any,
        rows: Any,
        row_step: Any,
        step: Any,
        right: Any,
        at: Any,
        right_step: Any,
        k: Any,
        c: Any,
        j: Any,
        c_step: Any,
    ) -> Any:
        kind = WIDE[right.dtype]

        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            def number(which: int) -> Any:
                return context.cast(builder, args[which], signature.args[which], types.intp)

            left, weights, out = (_pointer(context, builder, signature, args, which) for which in (0, 5, 9))
            steps = number(3), number(4), number(7), number(11)
            length = number(8)
            end = builder.append_basic_block("tile.end")
            choice = builder.switch(number(2), end)
            for count in range(1, _TILE_ROWS + 1):
                block = builder.append_basic_block(f"tile.{count}")
                choice.add_case(_SIZE(count), block)
                builder.position_at_end(block)
                _build_tile(builder, kind, count, (left, weights, out), steps, length, more)
                builder.branch(end)
            builder.position_at_end(end)
            return context.get_dummy_value()

        return types.void(a, i, rows, row_step, step, right, at, right_step, k, c, j, c_step), build

    return intrinsic(tile_wide)


def _build_tile(builder: Any, kind: Any, count: int, places: Any, steps: Any, k: Any, more: bool) -> None:
    """Build the loop over s that keeps the sums of `count` rows, two vectors each, in registers, and store them."""
    left, right, out = places
    row_step, step, right_step, c_step = steps

    def vector_at(start: Any, offset: Any) -> Any:
        return builder.bitcast(builder.gep(start, [offset]), kind.vector.as_pointer())

    starts = [builder.gep(left, [builder.mul(_SIZE(r), row_step)]) for r in range(count)]
    targets = [
        vector_at(out, builder.add(builder.mul(_SIZE(r), c_step), _SIZE(half * kind.width)))
        for r in range(count)
        for half in range(2)
    ]
    first = [builder.load(target, align=4) if more else _constant(kind, 0.0) for target in targets]
    before = builder.block
    head = builder.append_basic_block("tile.head")
    body = builder.append_basic_block("tile.body")
    done = builder.append_basic_block("tile.done")
    builder.branch(head)
    builder.position_at_end(head)
    s = builder.phi(_SIZE)
    s.add_incoming(_SIZE(0), before)
    sums = [builder.phi(kind.vector) for _ in targets]
    for value, start in zip(sums, first, strict=True):
        value.add_incoming(start, before)
    builder.cbranch(builder.icmp_signed("<", s, k), body, done)
    builder.position_at_end(body)
    base = builder.mul(s, right_step)
    weights = [
        builder.load(vector_at(right, builder.add(base, _SIZE(half * kind.width))), align=4) for half in range(2)
    ]
    for r in range(count):
        x = _spread(builder, kind, builder.load(builder.gep(starts[r], [builder.mul(s, step)])))
        for half in range(2):
            value = sums[2 * r + half]
            value.add_incoming(_fused(builder, kind, x, weights[half], value), body)
    s.add_incoming(builder.add(s, _SIZE(1)), body)
    builder.branch(head)
    builder.position_at_end(done)
    for value, target in zip(sums, targets, strict=True):
        builder.store(value, target, align=4)


def _quotient(builder: Any, kind: Any, x: Any, end: float, above: list[float], below: list[float]) -> Any:
    """Return x·P(x²)/Q(x²) for |x| ≤ end, and its values at the ends beyond; NaN stays NaN."""
    top = _constant(kind, end)
    bottom = _constant(kind, -end)
    x = builder.select(builder.fcmp_ordered(">", x, top), top, x)
    x = builder.select(builder.fcmp_ordered("<", x, bottom), bottom, x)
    square = builder.fmul(x, x)
    numerator = builder.fmul(x, _polynomial(builder, kind, above, square))
    return builder.fdiv(numerator, _polynomial(builder, kind, below, square))


def _sigmoid(builder: Any, kind: Any, x: Any) -> Any:
    """Return 1/(1 + e^(−x)), which is ½ + ½ tanh ½x; of float64 beyond ±80 it is 1 or e^(−80)."""
    if kind.element == types.float32:
        above = [0.25 * c / 4.0**j for j, c in enumerate(_ABOVE)]
        below = [c / 4.0**j for j, c in enumerate(_BELOW)]
        odd = _quotient(builder, kind, x, 2.0 * _TANH_END, above, below)
        return builder.fadd(odd, _constant(kind, 0.5))
    one = _constant(kind, 1.0)
    negative = builder.fsub(_constant(kind, 0.0), x)
    top = _constant(kind, 80.0)
    bounded = builder.select(builder.fcmp_ordered(">", negative, top), top, negative)
    return builder.fdiv(one, builder.fadd(one, _exp(builder, kind, bounded)))


def _exp(builder: Any, kind: Any, x: Any) -> Any:
    """Return e^x of float64 to the last digit or two; see `core.intrinsics._exp`."""
    integer = ir.VectorType(_SIZE, kind.width)
    least = _constant(kind, -708.0)
    x = builder.select(builder.fcmp_ordered("<", x, least), least, x)  # beside one, e^(−708) is nothing
    n = _call(builder, f"llvm.rint.{kind.suffix}", [builder.fmul(x, _constant(kind, 1.4426950408889634))])
    r = _fused(builder, kind, n, _constant(kind, -0.693145751953125), x)
    r = _fused(builder, kind, n, _constant(kind, -1.42860682030941723212e-6), r)
    odd, even = (_polynomial(builder, kind, _INVERSE_FACTORIALS[j::2], builder.fmul(r, r)) for j in (1, 0))
    series = _fused(builder, kind, odd, r, even)
    power = builder.sext(builder.fptosi(n, ir.VectorType(_WORD, kind.width)), integer)
    bits = builder.shl(builder.add(power, _integers(integer, 1023)), _integers(integer, 52))
    return builder.fmul(series, builder.bitcast(bits, kind.vector))


def _polynomial(builder: Any, kind: Any, coefficients: list[float], x: Any) -> Any:
    value = _constant(kind, coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        value = _fused(builder, kind, value, x, _constant(kind, coefficient))
    return value


def _fused(builder: Any, kind: Any, x: Any, y: Any, z: Any) -> Any:
    return _call(builder, f"llvm.fmuladd.{kind.suffix}", [x, y, z])


def _spread(builder: Any, kind: Any, x: Any) -> Any:
    first = builder.insert_element(ir.Constant(kind.vector, ir.Undefined), x, _WORD(0))
    zeros = ir.Constant(ir.VectorType(_WORD, kind.width), [_WORD(0)] * kind.width)
    return builder.shuffle_vector(first, ir.Constant(kind.vector, ir.Undefined), zeros)


def _constant(kind: Any, value: float) -> Any:
    return ir.Constant(kind.vector, [kind.scalar(value)] * kind.width)


def _integers(kind: Any, value: int) -> Any:
    return ir.Constant(kind, [kind.element(value)] * kind.count)


def _call(builder: Any, name: str, args: list[Any]) -> Any:
    shape = ir.FunctionType(args[0].type, [arg.type for arg in args])
    function: Callable[..., Any] = cgutils.get_or_insert_function(  # type: ignore[no-untyped-call]
        builder.module, shape, name
    )
    return builder.call(function, args)


load: Any = intrinsic(_load_wide)
load_counts: Any = intrinsic(_load_counts)
store: Any = intrinsic(_store_wide)
spread: Any = intrinsic(_spread_wide)
add: Any = _operation("fadd")
sub: Any = _operation("fsub")
mul: Any = _operation("fmul")
div: Any = _operation("fdiv")
fma: Any = intrinsic(_fma_wide)
sigmoid: Any = intrinsic(_sigmoid_wide)
tanh: Any = intrinsic(_tanh_wide)
tile: Any = _tile_of(more=False)
tile_more: Any = _tile_of(more=True)
