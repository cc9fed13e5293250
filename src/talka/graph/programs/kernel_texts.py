"""Texts of the kernels of edge programs, with placeholders that `template.py` fills.

A kernel is a loop over vertices or edges that calls the program's functions; numba compiles loop
and functions together and inlines the calls. All kernels but `push`, `merge_all`, `merge_some` and
`update_some` work on a range of rows, so that threads can share the work.

Arrays. Kernels index vertices by slot: own vertices of the partition first (below num_own), then
mirrors of vertices that other partitions own. `values`, `flags` and the shared arrays (`env_names`)
have an entry per source slot, `combined` has one per target slot. `offsets` and `columns` are edges
in CSR form: `pull` gets a row of sources per target slot, `push` a row of targets per source slot.

Signatures. Each kernel is declared with the types of its arguments, which makes numba compile it
once, when the module is loaded, instead of at some first call. `kept(T)` is an array that is only
read and may be immutable, `made(T)` an array that is written.

The texts below are hashed into the identity of a checkpoint (`identity.py`): after any change of
them edge programs no longer resume from earlier checkpoints. Comments are therefore outside of the
texts, and the texts keep the names of the first version: NOTHING is the identity of `combine`,
`said` one message, `total` the messages combined so far, `got` all messages to a vertex, combined.
"""

from string import Template
from typing import Final

# Both heads define the same names. Without compilation signatures are ignored, and numpy scalars
# become Python numbers before a function sees them, so that it computes and fails as plain Python.
HEAD = Template('''\
"""Generated: kernels of one edge program."""

import math

import numba
import numpy as np
from numba import types

NOTHING = np.$M($nothing)


def kept(kind):
    return types.Array(kind, 1, "C", readonly=True)


def made(kind):
    return types.Array(kind, 1, "C")


V, M, OFFSET = types.$V, types.$M, types.$offset
I64, U32, U8, F64 = types.int64, types.uint32, types.uint8, types.float64
ENV = ($env_types)


def compiled(*signature):
    return numba.njit(signature, nogil=True, cache=True, error_model="numpy")


inlined = numba.njit(nogil=True, error_model="numpy")

''')

PLAIN_HEAD = Template('''\
"""Generated: loops of one edge program, not compiled."""

import math

import numpy as np

NOTHING = np.$M($nothing)
V = M = OFFSET = I64 = U32 = U8 = F64 = None
ENV = ()


def kept(kind):
    return None


made = kept


def compiled(*signature):
    return lambda kernel: kernel


def inlined(function):
    def called(*given):
        return function(*[x.item() if isinstance(x, np.generic) else x for x in given])

    return called

''')

# Kernels of every program, over all vertices of a partition.
KERNELS = Template(
    # Write the initial value of each own vertex.
    """

@compiled(I64, I64, made(V), *ENV)
def begin(start, stop, values, $env):
    for v in range(start, stop):
        values[v] = $initial
"""
    # Compute the message of each source slot once for all of its edges, if messages do not depend
    # on weights. `pull` then reads one number per edge instead of calling `message` per edge.
    """

@compiled(I64, I64, kept(V), made(M), *ENV)
def contribute(start, stop, values, contributions, $env):
    for v in range(start, stop):
        if out_degrees[v] > 0:
            contributions[v] = $message
        else:
            contributions[v] = NOTHING
"""
    # Every target reads from its sources. Each row has one writer, so threads need no locks, and
    # the running total stays in a register. Vertices whose value is settled skip their edges
    # (mirrors cannot: their values are elsewhere); with "any" a row stops at its first message.
    """

@compiled(I64, I64, kept(OFFSET), kept(U32), kept(F64), kept(V), kept(U8), kept(M), I64, made(M), *ENV)
def pull(start, stop, offsets, columns, weights, values, flags, contributions, num_own, combined, $env):
    for row in range(start, stop):
        total = NOTHING
        if $wants_messages:
            for entry in range(offsets[row], offsets[row + 1]):
                v = columns[entry]
                $gather
        combined[row] = total
"""
    # Combine messages that arrived, `arrived[i]` for the vertex at `places[i]`, into an array with
    # an entry per vertex.
    """

@compiled(kept(U32), kept(M), made(M))
def merge_all(places, arrived, combined):
    for i in range(len(places)):
        row = places[i]
        total, said = combined[row], arrived[i]
        combined[row] = $combine
"""
    # Update each own vertex and set its flag if it sends next. With `active`, a vertex without
    # messages keeps its value and does not send.
    """

@compiled(I64, I64, kept(V), kept(M), made(V), made(U8), *ENV)
def update_all(start, stop, values, combined, changed, flags, $env):
    for v in range(start, stop):
        got = combined[v]
        old = values[v]
        if $is_updated:
            new = $update
            changed[v] = new
            flags[v] = $active
        else:
            changed[v] = old
            flags[v] = 0
"""
)

# Kernels of programs with `active`, over a frontier: the places of vertices that send.
FRONTIER_KERNELS = Template(
    # Set the flags of vertices that send in superstep 0.
    """

@compiled(I64, I64, kept(V), made(U8), *ENV)
def find_starters(start, stop, values, flags, $env):
    for v in range(start, stop):
        flags[v] = $starts
"""
    # Like `contribute`, for the vertices of the frontier only.
    """

@compiled(I64, I64, kept(U32), kept(V), made(M), *ENV)
def contribute_some(start, stop, frontier, values, contributions, $env):
    for place in range(start, stop):
        v = frontier[place]
        if out_degrees[v] > 0:
            contributions[v] = $message
"""
    # Every vertex of the frontier writes to its targets. Only edges of the frontier are read, but
    # writes go to random rows, so it runs in one thread. `touched` lists each row that received a
    # message once (`seen` marks it), and the caller reads and clears only these rows: the cost
    # depends on the frontier, not on the size of the partition.
    """

@compiled(kept(U32), kept(OFFSET), kept(U32), kept(F64), kept(V), made(M), made(U8), made(U32), *ENV)
def push(frontier, offsets, columns, weights, values, combined, seen, touched, $env):
    num_touched = 0
    for place in range(len(frontier)):
        v = frontier[place]
        if out_degrees[v] == 0:
            continue
        $message_once
        for entry in range(offsets[v], offsets[v + 1]):
            row = columns[entry]
            $message_each
            if seen[row] == 0:
                seen[row] = 1
                touched[num_touched] = row
                num_touched += 1
            total = combined[row]
            combined[row] = $combine
    return num_touched
"""
    # Like `merge_all`, for few messages: `arrived[i]` is for the vertex at `places[indices[i]]`,
    # and touched rows are listed as in `push`.
    """

@compiled(kept(U32), kept(U32), kept(M), made(M), made(U8), made(U32), I64)
def merge_some(places, indices, arrived, combined, seen, touched, num_touched):
    for i in range(len(indices)):
        row = places[indices[i]]
        if seen[row] == 0:
            seen[row] = 1
            touched[num_touched] = row
            num_touched += 1
        total, said = combined[row], arrived[i]
        combined[row] = $combine
    return num_touched
"""
    # Update the touched vertices, in place, and write those that send next to `frontier`.
    """

@compiled(kept(U32), kept(M), made(V), made(U32), *ENV)
def update_some(touched, combined, values, frontier, $env):
    num_active = 0
    for place in range(len(touched)):
        v = touched[place]
        got = combined[v]
        old = values[v]
        if $is_updated:
            new = $update
            values[v] = new
            if $active:
                frontier[num_active] = v
                num_active += 1
    return num_active
"""
    # Count the in-edges of vertices that are not settled: what `pull` would have to read.
    """

@compiled(I64, I64, kept(V), kept(OFFSET), *ENV)
def count_open(start, stop, values, offsets, $env):
    num_entries = 0
    for v in range(start, stop):
        if $is_open:
            num_entries += offsets[v + 1] - offsets[v]
    return num_entries
"""
)

# One kernel per aggregate: a total per block of vertices, in order. The driver combines the totals
# of all blocks, sums exactly, so the result has the same bits for any number of threads.
AGGREGATE = Template("""

@compiled(I64, I64, I64, kept(V), kept(V), made(F64), *ENV)
def total_$name(start, stop, num_own, olds, values, totals, $env):
    for block in range(start, stop):
        total = np.float64($identity)
        for v in range(block * $block, min(num_own, (block + 1) * $block)):
            said = np.float64($call)
            total = $combine
        totals[block] = total
""")

# How `said` is combined into `total`, as an expression of the text.
COMBINE_EXPRESSIONS: Final = {
    "sum": "total + said",
    "min": "said if said < total else total",
    "max": "said if said > total else total",
    "any": "said if total == NOTHING else total",
}
NEW: Final = "new"
"""Name in kernels of the result of `update`, which has whatever type the function returned."""
AGGREGATE_IDENTITIES: Final = {"sum": "0.0", "min": "math.inf", "max": "-math.inf"}
