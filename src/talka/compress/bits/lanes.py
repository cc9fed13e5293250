"""Sixteen values at once, in compiled kernels.

LLVM turns few of the loops over bits into vector code, and fewer of those that also read and write
memory: plain loops were several times slower. So kernels say themselves what happens to sixteen
values: `w = load(values, at) + load(residual, at)`. Any machine has these operations, in registers of
its own width.

Lanes have the operators of numbers; the right side may be one number for all lanes. Unsigned ones
wrap. `load` and `store` look at `array[at : at + 16]`, which the caller has to know to exist (under
NUMBA_BOUNDSCHECK=1 they check it). Numba's cache does not notice a change of this file: after one,
remove the `__pycache__` folders of the kernels.
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

LANES = 16  # 4-byte values in a cache line, and in the widest vector register there is

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
    """The type of sixteen numbers of one kind, or of sixteen yes or no."""

    def __init__(self, element: Any) -> None:
        self.element = element
        self.code = ir.VectorType(_CODES[element], LANES)
        super().__init__(f"Lanes({element})")


@register_model(Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Lanes) -> None:
        super().__init__(manager, kind, kind.code)  # type: ignore[no-untyped-call]


def _for_all(context: Any, builder: Any, kind: Lanes, given: Any, value: Any) -> Any:
    """Lanes as they are; one number in all lanes."""
    if isinstance(given, Lanes):
        return value
    nothing = ir.Constant(kind.code, ir.Undefined)
    number = context.cast(builder, value, given, kind.element)
    first = builder.insert_element(nothing, number, _I32(0))
    zeros = ir.Constant(ir.VectorType(_I32, LANES), [0] * LANES)
    return builder.shuffle_vector(first, nothing, zeros)


# Operators: the builder's method for floats and for integers.

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
        if real:  # NaN is different from all, and nothing else
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


# Memory.


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
            message = ("lanes outside of their array",)
            context.call_conv.return_user_exc(builder, IndexError, message)
    return builder.bitcast(builder.gep(array.data, [args[1]]), code.as_pointer())


def _check_place(array: Any, at: Any) -> None:
    if not isinstance(array, types.Array) or array.layout != "C" or array.ndim != 1:
        raise TypingError("lanes need a contiguous array")
    if at != types.int64:
        raise TypingError(f"the place of lanes has to be int64, not {at}")


def _load(context: Any, array: Any, at: Any) -> Any:
    """`array[at : at + 16]`; 1- and 2-byte numbers become 4-byte ones."""
    _check_place(array, at)
    item = array.dtype
    kind = Lanes(_WIDER.get(item, item))

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        code = ir.VectorType(context.get_data_type(item), LANES)
        place = _place(context, builder, signature, args, code)
        found = builder.load(place, align=item.bitwidth // 8)
        if code == kind.code:
            return found
        return (builder.sext if item.signed else builder.zext)(found, kind.code)

    return kind(array, at), generate


def _store(context: Any, array: Any, at: Any, lanes: Any) -> Any:
    """`array[at : at + 16] = lanes`; into 1- and 2-byte numbers go the low bits."""
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
    """`array[at : at + 8]`, which are bytes, become those of a number of 64 bits."""
    _check_place(array, at)
    if array.dtype != types.uint8 or word != types.uint64:
        raise TypingError(f"a word of {word} is no eight of {array.dtype}")

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place = _place(context, builder, signature, args, _I64, 8)
        builder.store(args[2], place, align=1)
        return context.get_dummy_value()

    return types.void(array, at, word), generate


def _prefetch(context: Any, array: Any, at: Any) -> Any:
    """`array[at]` will be changed soon; it need not exist."""
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


# Choices, and masks as bits: lane 0 is the lowest.


def _where(context: Any, mask: Any, yes: Any, no: Any) -> Any:
    """Lane by lane: `yes` where the mask says so, else `no`; both may be numbers."""
    kind = next((one for one in (yes, no) if isinstance(one, Lanes)), None) or Lanes(yes)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        chosen = _for_all(context, builder, kind, yes, args[1])
        return builder.select(args[0], chosen, _for_all(context, builder, kind, no, args[2]))

    return kind(mask, yes, no), generate


def _word_of(context: Any, mask: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.zext(builder.bitcast(args[0], ir.IntType(LANES)), _I32)

    return types.uint32(mask), generate


def _mask_of(context: Any, word: Any) -> Any:
    kind = Lanes(types.boolean)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(builder.trunc(args[0], ir.IntType(LANES)), kind.code)

    return kind(word), generate


where: Any = intrinsic(_where)
word_of: Any = intrinsic(_word_of)
mask_of: Any = intrinsic(_mask_of)


# From kind to kind.


def _conversion(how: str, target: Any) -> Any:
    def convert(context: Any, lanes: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return getattr(builder, how)(args[0], signature.return_type.code)

        return Lanes(target)(lanes), generate

    return intrinsic(convert)


bits_of = _conversion("bitcast", types.uint32)
"""The bits of float32 lanes."""
floats_of = _conversion("bitcast", types.float32)
"""The float32 lanes of these bits."""
signed = _conversion("bitcast", types.int32)
to_ints = _conversion("fptosi", types.int32)
"""Towards zero."""
to_floats = _conversion("sitofp", types.float32)
"""From signed lanes."""
to_doubles = _conversion("fpext", types.float64)


def _spread(context: Any, number: Any) -> Any:
    kind = Lanes(number)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _for_all(context, builder, kind, number, args[0])

    return kind(number), generate


def _counting(context: Any) -> Any:
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
    """From the first lane to the last: rounding depends on the order."""

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
            given = [args[0]] if name == "ctpop" else [args[0], _I1(0)]
            number = builder.call(function, given)
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
