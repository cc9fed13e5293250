"""Edge programs for tests, and a slow reference interpreter with dictionaries and plain calls."""

import inspect

import numpy as np
from hypothesis import strategies as st

from talka.graph import Aggregate, EdgeProgram, Graph

FAR = 2**31 - 1


def pagerank(num_supersteps=5, damping=0.85):
    return EdgeProgram(
        initial=lambda num_vertices: 1 / num_vertices,
        message=lambda value, out_degree: value / out_degree,
        combine="sum",
        update=_ranked,
        aggregates={
            "lost": Aggregate(lambda value, out_degree: value if out_degree == 0 else 0.0),
            "change": Aggregate(lambda old, value: abs(value - old), "max"),
        },
        parameters={"damping": damping},
        num_supersteps=num_supersteps,
    )


def _ranked(combined, lost, num_vertices, damping):
    return (1 - damping) / num_vertices + damping * (combined + lost / num_vertices)


def levels(source=0, **given):
    return EdgeProgram(
        initial=lambda vertex, source: 0 if vertex == source else FAR,
        message=lambda value: value + 1,
        combine="any",
        update=lambda value, combined: min(value, combined),
        active=lambda old, value: value < old,
        starts=lambda value: value == 0,
        settled=lambda value: value < FAR,
        value_type=np.int32,
        parameters={"source": source},
        **given,
    )


def distances(source=0, **given):
    return EdgeProgram(
        initial=lambda vertex, source: 0.0 if vertex == source else np.inf,
        message=lambda value, weight: value + weight,
        combine="min",
        update=lambda value, combined: min(value, combined),
        active=lambda old, value: value < old,
        starts=lambda value: value == 0,
        parameters={"source": source},
        **given,
    )


def labels(**given):
    """The smallest number that reaches a vertex."""
    return EdgeProgram(
        initial=lambda vertex: vertex,
        message=lambda value: value,
        combine="min",
        update=lambda value, combined: min(value, combined),
        active=lambda old, value: value < old,
        value_type=np.uint32,
        **given,
    )


def pulses():
    """Sums that return to 0, a function as `combine`, and a fixed number of supersteps."""
    return EdgeProgram(
        initial=lambda vertex: vertex % 5 - 2,
        message=lambda value, superstep: value if superstep % 2 else -value,
        combine=lambda a, b: a + b,
        identity=0,
        update=lambda value, combined, in_degree, superstep: (
            (value * 3 + combined * (superstep + 1) + in_degree) % 17 - 8
        ),
        active=lambda old, value, superstep: (old + value + superstep) % 3 != 0,
        value_type=np.int64,
        num_supersteps=6,
    )


PROGRAMS = {
    "pagerank": pagerank,
    "levels": levels,
    "distances": distances,
    "labels": labels,
    "pulses": pulses,
}


@st.composite
def graphs(draw, max_vertices=12, weighted=True):
    size = draw(st.integers(1, max_vertices))
    ends = st.integers(0, size - 1)
    pairs = draw(st.lists(st.tuples(ends, ends), max_size=40))
    directed = draw(st.booleans())
    sources = np.array([a for a, _ in pairs], np.int64)
    targets = np.array([b for _, b in pairs], np.int64)
    weights = None
    if weighted:
        weights = np.array([draw(st.integers(0, 9)) for _ in pairs], np.float64)
    return Graph.from_edges((sources, targets), weights, directed, vertices=np.arange(size))


def interpret(graph, program):
    """Return values by number, computed one vertex and one message at a time."""
    size = graph.num_vertices
    out_degrees, in_degrees = graph.out.degrees(), graph.into.degrees()
    identity = 0 if program.identity is None else program.identity
    combine = {"sum": lambda a, b: a + b, "min": min, "max": max, "any": lambda a, b: a}
    combine = program.combine if callable(program.combine) else combine[program.combine]
    env = {"num_vertices": size, **program.parameters}

    def call(function, vertex, **local):
        known = {
            "vertex": vertex,
            "out_degree": int(out_degrees[vertex]),
            "in_degree": int(in_degrees[vertex]),
            **env,
            **local,
        }
        return function(*(known[name] for name in inspect.signature(function).parameters))

    values = [call(program.initial, v) for v in range(size)]
    senders = [
        v for v in range(size) if program.starts is None or call(program.starts, v, value=values[v])
    ]
    before, superstep = list(values), 0
    while True:
        totals = {
            name: _TOTALS[aggregate.combine](
                [
                    call(aggregate.function, v, value=values[v], old=before[v], superstep=superstep)
                    for v in range(size)
                ]
            )
            for name, aggregate in program.aggregates.items()
        }
        if superstep == program.num_supersteps:
            return values
        inbox = {}
        for v in senders:
            for entry in range(graph.out.offsets[v], graph.out.offsets[v + 1]):
                target = int(graph.out.columns[entry])
                weight = None if graph.out.weights is None else float(graph.out.weights[entry])
                message = call(
                    program.message, v, value=values[v], weight=weight, superstep=superstep
                )
                inbox[target] = combine(inbox[target], message) if target in inbox else message
        if program.active:
            inbox = {
                v: combined
                for v, combined in inbox.items()
                if combined != identity or program.combine in ("min", "any")
            }
            inbox = {
                v: combined
                for v, combined in inbox.items()
                if not (program.settled and call(program.settled, v, value=values[v]))
            }
            if not inbox:
                return values
        before, values, senders = values, list(values), []
        for v in range(size) if program.active is None else inbox:
            values[v] = call(
                program.update, v, value=before[v], combined=inbox.get(v, identity),
                superstep=superstep, **totals,
            )  # fmt: skip
            if program.active is None or call(
                program.active, v, old=before[v], value=values[v], superstep=superstep
            ):
                senders.append(v)
        senders.sort()
        superstep += 1


_TOTALS = {"sum": sum, "max": max, "min": min}
