"""General programs for tests."""

from typing import ClassVar

import numpy as np

from talka.graph import VertexProgram


class Ranks(VertexProgram):
    """PageRank on whole arrays."""

    columns: ClassVar = {"rank": np.float64}
    combine = "sum"
    aggregates: ClassVar = {"lost": "sum"}
    num_supersteps = 5

    def compute(self, step):
        size = step.num_vertices
        if step.superstep == 0:
            step["rank"] = 1 / size
        else:
            lost = step.aggregates["lost"] / size
            step["rank"] = 0.15 / size + 0.85 * (step.combined + lost)
        degrees = step.out_degrees
        step.aggregate("lost", step["rank"][degrees == 0].sum())
        step.send_along_edges(step["rank"] / np.maximum(degrees, 1))


class Lists(VertexProgram):
    """All messages arrive, along edges and by number; the result is their sum and their number."""

    columns: ClassVar = {"total": np.int64, "count": np.int64}
    message_type: ClassVar = np.dtype([("who", np.uint32), ("what", np.int64)])
    num_supersteps = 5

    def compute(self, step):
        inbox = step.inbox
        at = inbox.places
        step["count"] = step["count"] + np.diff(inbox.offsets)
        received = np.bincount(at, inbox.messages["what"], minlength=len(step.vertices))
        step["total"] = (step["total"] * 3 + received.astype(np.int64)) % 1009
        messages = np.zeros(len(step.vertices), self.message_type)
        messages["who"] = step.vertices
        messages["what"] = step["total"] + step.vertices
        step.send_along_edges(messages, where=step.vertices % 3 != step.superstep % 3)
        step.send((step.vertices * 7 + step.superstep) % step.num_vertices, messages)


class Mixed(VertexProgram):
    """Combined messages along edges and by number, votes to halt, and an end set by `master`."""

    columns: ClassVar = {"value": np.int64}
    message_type = np.int64
    combine = "max"
    aggregates: ClassVar = {
        "most": "max",
        "any": "any",
        "pair": lambda a, b: [a[0] + b[0], max(a[1], b[1])],
    }

    def compute(self, step):
        best = np.maximum(step["value"], step.combined) if step.superstep else step["value"]
        grown = (best + step.vertices + step.superstep) % 97
        step["value"] = grown
        step.aggregate("most", grown.max(initial=-1))
        step.aggregate("any", bool((grown > 90).any()))
        step.aggregate("pair", [len(grown), int(grown.max(initial=0))])
        step.send_along_edges(grown)
        step.send((step.vertices + 5) % step.num_vertices, grown)
        step.vote_to_halt(grown % 2 == 0)

    def master(self, superstep, aggregates):
        return {"bound": superstep + aggregates["pair"][1] // 25}

    def until(self, aggregates):
        return aggregates["bound"] >= 9


class Growing(VertexProgram):
    """Adds and removes vertices and edges while messages are in transit."""

    columns: ClassVar = {"value": np.int64}
    message_type = np.int64
    combine = "sum"
    mutates = True
    num_supersteps = 6

    def compute(self, step):
        ids = step.ids
        if step.superstep in (1, 3):
            chosen = ids[ids % 7 == step.superstep]
            step.add_edges(chosen, chosen + 1000)
            step.remove_vertices(ids[ids % 11 == step.superstep])
            step.add_vertices(np.array([5000 + step.superstep]))
            step.remove_edges(ids, ids + 1)
        received = step.combined if step.superstep else 0
        step["value"] = (step["value"] * 2 + 1 + received) % 1013
        step.send_along_edges(step["value"] + 1)


VERTEX_PROGRAMS = {"ranks": Ranks, "lists": Lists, "mixed": Mixed, "growing": Growing}
