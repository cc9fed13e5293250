"""Compare and swap: how threads change one number of an array without losing each other's changes.

Numba's cache does not notice a change of this file: after one, remove the `__pycache__` folders of
the kernels.
"""

from typing import Any

from numba import types
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.extending import intrinsic


def _compare_and_swap(
    typing_context: Any, array: Any, index: Any, expected: Any, replacement: Any
) -> Any:
    wanted = types.Array(types.uint32, 1, "C")
    if array != wanted:
        raise TypingError(f"compare_and_swap works on {wanted}, not on {array}")
    signature = types.uint32(wanted, types.uint64, types.uint32, types.uint32)

    def generate(context: Any, builder: Any, _: Any, arguments: Any) -> Any:
        values, at, old, new = arguments
        proxy: Any = cgutils.create_struct_proxy(wanted)  # type: ignore[no-untyped-call]
        place = builder.gep(proxy(context, builder, values).data, [at])
        swapped = builder.cmpxchg(place, old, new, "monotonic", "monotonic")
        return builder.extract_value(swapped, 0)

    return signature, generate


compare_and_swap: Any = intrinsic(_compare_and_swap)
"""In a kernel, `compare_and_swap(array, index, expected, replacement)`: what stood at the index.

If that is `expected`, `replacement` stands there now, in one step that no other thread can come
between. `array` is of uint32 and in one piece; the caller has to know that `index` is inside of it.
"""
