"""Operations on sixteen values at once, for compiled kernels.

LLVM vectorizes few of the loops over bits, and fewer of those that also read and write memory: plain
loops were several times slower. So kernels state the operations on sixteen values explicitly:
`w = load(values, at) + load(residual, at)`. These compile on any machine, to registers of its width.

Lanes support the operators of numbers; the right operand may be one number for all lanes. Unsigned
lanes wrap around. `load` and `store` access `array[at : at + 16]`; the caller must ensure that it
exists (with NUMBA_BOUNDSCHECK=1 they check it). Numba's cache does not notice changes to this file:
after one, remove the `__pycache__` folders of the kernels.
"""

import operator
from typing import Any

import numba
import numba.extending
from llvmlite import ir  # type: ignore[import-untyped]  # ships no types
from numba import types
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.extending import intrinsic, models, register_model

LANES = 16  # 4-byte values per cache line, and per register of the widest kind (AVX-512)

config: Any = numba.config
_I1, _I32, _I64 = ir.IntType(1), ir.IntType(32), ir.IntType(64)
_CODES = {
    types.float32: ir.FloatType(),
    types.float64: ir.DoubleType(),
    types.int32: _I32,
    types.uint32: _I32,
    types.boolean: _I1,
}
_WIDER = {
    types.uint8: types.uint32,
    types.uint16: types.uint32,
    types.int8: types.int32,
    types.int16: types.int32,
}


class Lanes(types.Type):
    """Numba type of sixteen numbers of one kind, or of sixteen booleans."""

    def __init__(self, element: Any) -> None:
        self.element = element
        self.code = ir.VectorType(_CODES[element], LANES)
        super().__init__(f"Lanes({element})")


@register_model(Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Lanes) -> None:
        super().__init__(manager, kind, kind.code)  # type: ignore[no-untyped-call]


def _for_all(context: Any, builder: Any, kind: Lanes, value_type: Any, value: Any) -> Any:
    """Return lanes unchanged, and a number as lanes that all hold it."""
    if isinstance(value_type, Lanes):
        return value
    undefined = ir.Constant(kind.code, ir.Undefined)
    number = context.cast(builder, value, value_type, kind.element)
    first = builder.insert_element(undefined, number, _I32(0))
    zeros = ir.Constant(ir.VectorType(_I32, LANES), [0] * LANES)
    return builder.shuffle_vector(first, undefined, zeros)


# Operators, with the names of the builder's methods for floats and for integers.

_ARITHMETIC = {
    operator.add: ("fadd", "add"),
    operator.sub: ("fsub", "sub"),
    operator.mul: ("fmul", "mul"),
    operator.and_: ("", "and_"),
    operator.or_: ("", "or_"),
    operator.xor: ("", "xor"),
    operator.lshift: ("", "shl"),
    operator.rshift: ("", "lshr"),
}
_COMPARISONS = {
    operator.lt: "<",
    operator.le: "<=",
    operator.gt: ">",
    operator.ge: ">=",
    operator.eq: "==",
    operator.ne: "!=",
}


def _add_operator(symbol: Any) -> None:
    def typed(context: Any) -> Any:
        def result(left: Any, right: Any) -> Any:
            if not isinstance(left, Lanes) or not isinstance(right, Lanes | types.Number):
                return None
            if isinstance(right, Lanes) and right != left:
                return None
            return Lanes(types.boolean) if symbol in _COMPARISONS else left

        return result

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = signature.args[0]
        right = _for_all(context, builder, kind, signature.args[1], args[1])
        real = isinstance(kind.element, types.Float)
        if symbol in _ARITHMETIC:
            return getattr(builder, _ARITHMETIC[symbol][0 if real else 1])(args[0], right)
        if real:  # NaN compares as different from everything, and every other comparison is False
            different = symbol is operator.ne
            compare = builder.fcmp_unordered if different else builder.fcmp_ordered
            return compare(_COMPARISONS[symbol], args[0], right)
        signed = kind.element == types.int32
        compare = builder.icmp_signed if signed else builder.icmp_unsigned
        return compare(_COMPARISONS[symbol], args[0], right)

    extending: Any = numba.extending  # half typed
    extending.type_callable(symbol)(typed)
    extending.lower_builtin(symbol, Lanes, Lanes)(generate)
    extending.lower_builtin(symbol, Lanes, types.Number)(generate)


for _symbol in (*_ARITHMETIC, *_COMPARISONS):
    _add_operator(_symbol)


# Memory access.


def _place(
    context: Any, builder: Any, signature: Any, args: Any, code: Any, length: int = LANES
) -> Any:
    array = context.make_array(signature.args[0])(context, builder, args[0])
    if config.BOUNDSCHECK:
        end = builder.add(args[1], args[1].type(length))
        outside = builder.or_(
            builder.icmp_signed("<", args[1], args[1].type(0)),
            builder.icmp_signed(">", end, array.nitems),
        )
        with builder.if_then(outside, likely=False):
            message = ("lanes outside their array",)
            context.call_conv.return_user_exc(builder, IndexError, message)
    return builder.bitcast(builder.gep(array.data, [args[1]]), code.as_pointer())


def _check_place(array: Any, at: Any) -> None:
    if not isinstance(array, types.Array) or array.layout != "C" or array.ndim != 1:
        raise TypingError("lanes need a contiguous array")
    if at != types.int64:
        raise TypingError(f"the position of lanes must be int64, not {at}")


def _load(context: Any, array: Any, at: Any) -> Any:
    """Load `array[at : at + 16]`; 1- and 2-byte numbers become 4-byte numbers."""
    _check_place(array, at)
    item = array.dtype
    kind = Lanes(_WIDER.get(item, item))

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        code = ir.VectorType(context.get_data_type(item), LANES)
        place = _place(context, builder, signature, args, code)
        loaded = builder.load(place, align=item.bitwidth // 8)
        if code == kind.code:
            return loaded
        return (builder.sext if item.signed else builder.zext)(loaded, kind.code)

    return kind(array, at), generate


def _store(context: Any, array: Any, at: Any, lanes: Any) -> Any:
    """Store `array[at : at + 16] = lanes`; 1- and 2-byte numbers receive the low bits."""
    _check_place(array, at)
    item = array.dtype

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        code = ir.VectorType(context.get_data_type(item), LANES)
        value = args[2] if code == lanes.code else builder.trunc(args[2], code)
        place = _place(context, builder, signature, args, code)
        builder.store(value, place, align=item.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(array, at, lanes), generate


def _store_word(context: Any, array: Any, at: Any, word: Any) -> Any:
    """Store a 64-bit number as the bytes `array[at : at + 8]`."""
    _check_place(array, at)
    if array.dtype != types.uint8 or word != types.uint64:
        raise TypingError(f"store_word needs uint8 and a uint64, not {array.dtype} and {word}")

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place = _place(context, builder, signature, args, _I64, 8)
        builder.store(args[2], place, align=1)
        return context.get_dummy_value()

    return types.void(array, at, word), generate


def _prefetch(context: Any, array: Any, at: Any) -> Any:
    """Prefetch `array[at]` for writing; it need not exist."""
    _check_place(array, at)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        start = context.make_array(array)(context, builder, args[0]).data
        place = builder.bitcast(builder.gep(start, [args[1]]), ir.IntType(8).as_pointer())
        kind = ir.FunctionType(ir.VoidType(), [place.type, _I32, _I32, _I32])
        function = builder.module.declare_intrinsic("llvm.prefetch", (place.type,), kind)
        builder.call(function, [place, _I32(1), _I32(3), _I32(1)])  # to write, to keep, data
        return context.get_dummy_value()

    return types.void(array, at), generate


load: Any = intrinsic(_load)
store: Any = intrinsic(_store)
store_word: Any = intrinsic(_store_word)
prefetch: Any = intrinsic(_prefetch)


# Selection, and masks as bits: lane 0 is the lowest bit.


def _where(context: Any, mask: Any, yes: Any, no: Any) -> Any:
    """Take `yes` in lanes where the mask is set, otherwise `no`; both may be numbers."""
    kind = next((side for side in (yes, no) if isinstance(side, Lanes)), None) or Lanes(yes)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        chosen = _for_all(context, builder, kind, yes, args[1])
        return builder.select(args[0], chosen, _for_all(context, builder, kind, no, args[2]))

    return kind(mask, yes, no), generate


def _word_of(context: Any, mask: Any) -> Any:
    """Return a mask as the low 16 bits of a uint32."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.zext(builder.bitcast(args[0], ir.IntType(LANES)), _I32)

    return types.uint32(mask), generate


def _mask_of(context: Any, word: Any) -> Any:
    """Return the low 16 bits of a word as a mask."""
    kind = Lanes(types.boolean)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(builder.trunc(args[0], ir.IntType(LANES)), kind.code)

    return kind(word), generate


where: Any = intrinsic(_where)
word_of: Any = intrinsic(_word_of)
mask_of: Any = intrinsic(_mask_of)


# Conversions.


def _conversion(how: str, target: Any) -> Any:
    def convert(context: Any, lanes: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return getattr(builder, how)(args[0], signature.return_type.code)

        return Lanes(target)(lanes), generate

    return intrinsic(convert)


bits_of = _conversion("bitcast", types.uint32)
"""Reinterpret float32 lanes as their bits, uint32."""
floats_of = _conversion("bitcast", types.float32)
"""Reinterpret bits as float32 lanes."""
signed = _conversion("bitcast", types.int32)
to_ints = _conversion("fptosi", types.int32)
"""Convert floats to int32, rounding towards zero."""
to_floats = _conversion("sitofp", types.float32)
"""Convert signed integers to float32."""
to_doubles = _conversion("fpext", types.float64)


def _spread(context: Any, number: Any) -> Any:
    """Return lanes that all hold this number."""
    kind = Lanes(number)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _for_all(context, builder, kind, number, args[0])

    return kind(number), generate


def _counting(context: Any) -> Any:
    """Return the lanes 0, 1, 2, ..., 15."""
    kind = Lanes(types.uint32)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return ir.Constant(kind.code, list(range(LANES)))

    return kind(), generate


def _floor(context: Any, lanes: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = ir.FunctionType(lanes.code, [lanes.code])
        name = f"llvm.floor.v{LANES}f32"
        function = cgutils.get_or_insert_function(builder.module, kind, name)  # type: ignore[no-untyped-call]
        return builder.call(function, args)

    return lanes(lanes), generate


def _sum_of(context: Any, lanes: Any) -> Any:
    """Add up lanes from the first to the last: rounding depends on the order."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        add = builder.fadd if isinstance(lanes.element, types.Float) else builder.add
        total = builder.extract_element(args[0], _I32(0))
        for lane in range(1, LANES):
            total = add(total, builder.extract_element(args[0], _I32(lane)))
        return total

    return lanes.element(lanes), generate


def _count_of_bits(name: str) -> Any:
    def count(context: Any, word: Any) -> Any:
        if word not in (types.uint32, types.uint64):
            raise TypingError(f"{name} needs uint32 or uint64, not {word}")

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            code = args[0].type
            kind = ir.FunctionType(code, [code] if name == "ctpop" else [code, _I1])
            function = builder.module.declare_intrinsic(f"llvm.{name}", (code,), kind)
            operands = [args[0]] if name == "ctpop" else [args[0], _I1(0)]
            number = builder.call(function, operands)
            return number if code == _I64 else builder.zext(number, _I64)

        return types.int64(word), generate

    return intrinsic(count)


spread: Any = intrinsic(_spread)
counting: Any = intrinsic(_counting)
floor: Any = intrinsic(_floor)
sum_of: Any = intrinsic(_sum_of)
count_ones = _count_of_bits("ctpop")
leading_zeros = _count_of_bits("ctlz")
trailing_zeros = _count_of_bits("cttz")
