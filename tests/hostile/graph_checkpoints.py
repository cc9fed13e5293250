"""Forged checkpoints of graph programs: invalid content with valid checksums."""

import random
import tempfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
import pyarrow as pa

from talka.engine import Embedded, storage
from talka.errors import TalkaError
from talka.events import Stream
from talka.graph import Graph, RunOptions, run_program
from talka.graph.events import SuperstepDone
from talka.graph.supersteps.checkpoint import _MAGIC
from tests.graph.programs import pulses
from tests.graph.vertex_programs import Growing, Lists, Ranks
from tests.hostile.outcome import Outcome

Call = Callable[[Graph, RunOptions], Any]


@dataclass(frozen=True)
class Case:
    call: Call
    num_partitions: int = 2
    partitioning: str = "hash"
    stop_at: int = 2


CASES = {
    "bfs": Case(lambda graph, options: graph.bfs(0, with_parents=True, options=options)),
    "bfs cut": Case(lambda graph, options: graph.bfs(0, options=options), 3, "vertex_cut"),
    "sssp": Case(lambda graph, options: graph.sssp(0, options=options), stop_at=1),
    "pagerank": Case(lambda graph, options: graph.pagerank(options=options)),
    "pagerank alone": Case(lambda graph, options: graph.pagerank(options=options), 1, "ranges"),
    "pulses": Case(lambda graph, options: graph.run(pulses(), options)),
    "components": Case(lambda graph, options: graph.components(options=options), stop_at=1),
    "communities": Case(lambda graph, options: graph.communities(options=options)),
    "cores": Case(lambda graph, options: graph.cores(options=options), stop_at=1),
    "triangles": Case(lambda graph, options: graph.triangles(options=options)),
    "triangles of lists": Case(lambda graph, options: graph.triangles(options=options), stop_at=3),
    "ranks": Case(lambda graph, options: graph.run(Ranks(), options)),
    "lists": Case(lambda graph, options: graph.run(Lists(), options)),
    "growing": Case(lambda graph, options: run_program(graph, Growing(), options)),
}


class _Stopped(Exception):
    pass


class _Stopping(Stream):
    def __init__(self, superstep: int) -> None:
        super().__init__()
        self._superstep = superstep

    def emit(self, event: Any) -> None:
        super().emit(event)
        if isinstance(event, SuperstepDone) and event.superstep == self._superstep:
            raise _Stopped


def attack(rounds: int, seed: int) -> Outcome:
    """Resume from `rounds` forged checkpoints.

    Each is accepted or rejected with a TalkaError; any other error becomes an AssertionError with
    the seed to reproduce it. A crash ends the process, so the caller starts a separate one.
    """
    accepted = refused = 0
    graph = _graph()
    with tempfile.TemporaryDirectory() as name, Embedded(threads=2) as engine:
        files = {case: _written(graph, engine, case, Path(name)) for case in CASES}
        for number in range(rounds):
            chance = random.Random(f"{seed} {number}")
            case = chance.choice(sorted(CASES))
            path, whole = files[case]
            path.write_bytes(forged(whole, chance))
            try:
                CASES[case].call(graph, _options(engine, case, path.parent, resume=True))
                accepted += 1
            except TalkaError:
                refused += 1
            except BaseException as error:
                message = f"seed {seed}, round {number} ({case}): {error!r}"
                raise AssertionError(message) from error
    return Outcome(accepted, refused)


def forged(whole: bytes, chance: random.Random) -> bytes:
    """Return a checkpoint with one or two changes, and valid checksums."""
    header, blobs = _decoded(whole)
    if chance.random() < 0.15:
        return _encoded(_other_header(header, chance), blobs)
    changed = list(blobs)
    for at in chance.sample(range(len(blobs)), min(len(blobs), chance.choice([1, 1, 1, 2]))):
        changed[at] = _other_blob(*blobs[at], blobs, chance)
    return _encoded(header, changed)


def _other_header(header: dict[str, Any], chance: random.Random) -> dict[str, Any]:
    wrong = [-1, 0, 1, 3, 2**31, 2**63 - 1, 1.5, None, "x", [], {}, [[]], [[[]]], [[[[]]]]]
    choice = chance.randrange(4)
    if choice == 0:
        return {**header, "superstep": chance.choice([*wrong, *range(8)])}
    if choice == 1:
        return {**header, chance.choice(sorted(header)): chance.choice(wrong)}
    if choice == 2:
        return {key: value for key, value in header.items() if key != chance.choice(sorted(header))}
    partitions = [[list(task) for task in partition] for partition in header["outputs"]]
    partition = chance.choice(partitions)
    task = chance.choice(partition)
    places: list[Any] = [partitions, partition, task]
    place = chance.choice(places)
    if chance.random() < 0.5:
        place.append(chance.choice(place))
    else:
        place.pop(chance.randrange(len(place)))
    return {**header, "outputs": partitions}


def _other_blob(
    is_plain: bool, blob: bytes, blobs: list[tuple[bool, bytes]], chance: random.Random
) -> tuple[bool, bytes]:
    choice = chance.random()
    if choice < 0.25:
        return is_plain, _flipped(blob, chance)
    if choice < 0.3:
        return is_plain, blob[: chance.randrange(len(blob) + 1)]
    if choice < 0.35:
        return chance.choice(blobs)
    if choice < 0.38:
        return not is_plain, blob
    if is_plain:
        return True, storage.pack(
            _other_plain(storage.unpack(storage.PackedValue(blob)), chance)
        ).data
    value = storage.from_buffer(blob)
    if isinstance(value, np.ndarray):
        value = _other_array(value, chance)
    elif isinstance(value, pa.Table) and value.num_columns:
        value = _other_table(value, chance)
    return False, storage.to_buffer(value).to_pybytes()


def _flipped(blob: bytes, chance: random.Random) -> bytes:
    changed = bytearray(blob)
    for _ in range(chance.choice([1, 2, 8])):
        if changed:
            extreme = chance.choice([0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)])
            changed[chance.randrange(len(changed))] = extreme
    return bytes(changed)


def _other_plain(value: Any, chance: random.Random) -> Any:
    wrong = [-1, 2**63 - 1, 2**64 - 1, 0.5, float("nan"), None, "x", [], {}, True, [None], (1,)]
    if not isinstance(value, dict) or not value or chance.random() < 0.1:
        return chance.choice(wrong)
    key = chance.choice(sorted(value))
    if chance.random() < 0.1:
        return {k: v for k, v in value.items() if k != key}
    inner = value[key]
    deeper = isinstance(inner, dict) and inner and chance.random() < 0.8
    return {**value, key: _other_plain(inner, chance) if deeper else chance.choice(wrong)}


def _other_array(array: np.ndarray, chance: random.Random) -> np.ndarray:
    generator = np.random.default_rng(chance.randrange(2**32))
    choice = chance.random()
    if choice < 0.15:
        length = chance.choice([0, 1, len(array) + 1, max(len(array) - 1, 0), 1000])
        return np.resize(array, length) if len(array) else np.zeros(length, array.dtype)
    if choice < 0.3:
        kinds = [np.uint32, np.int64, np.float64, np.bool_, np.uint8, "S3", "M8[s]"]
        kinds += [[("place", np.uint32), ("message", np.float64)], [("optional", np.int64)]]
        return np.zeros(len(array), np.dtype(chance.choice(kinds)))
    if choice < 0.35 and len(array):
        return array.reshape(1, -1)
    raw = np.frombuffer(bytearray(array.tobytes()), np.uint8)
    if len(raw) == 0:
        return np.frombuffer(generator.bytes(4 * array.dtype.itemsize), array.dtype)
    if choice < 0.5:
        raw[:] = generator.integers(0, 256, len(raw))
    elif choice < 0.6:
        raw[:] = 255
    else:
        start = chance.randrange(0, len(raw), 4) if len(raw) >= 4 else 0
        extreme = chance.choice([0, 1, 5, 20, 2**31, 2**32 - 1, 2**32 - 2, chance.randrange(40)])
        raw[start : start + 4] = np.frombuffer(np.uint32(extreme).tobytes(), np.uint8)[
            : len(raw) - start
        ]
    return np.frombuffer(raw.tobytes(), array.dtype)


def _other_table(table: pa.Table, chance: random.Random) -> pa.Table:
    at = chance.randrange(table.num_columns)
    name = table.column_names[at]
    choice = chance.random()
    if choice < 0.3:
        return table.drop_columns([name])
    if choice < 0.6:
        return table.rename_columns([f"{column}x" for column in table.column_names])
    values = chance.choice([None, "x", 2**62, -(2**63), 1.5])
    return table.set_column(at, name, pa.array([values] * table.num_rows))


def _decoded(whole: bytes) -> tuple[dict[str, Any], list[tuple[bool, bytes]]]:
    start = len(_MAGIC) + 16
    size = int.from_bytes(whole[start - 16 : start - 8], "little")
    header = msgpack.unpackb(whole[start : start + size])
    place, blobs = start + size, []
    entries = [entry for partition in header["outputs"] for task in partition for entry in task]
    for is_plain, num_bytes, _ in [*entries, *header["graph"]]:
        blobs.append((is_plain, whole[place : place + num_bytes]))
        place += num_bytes
    return header, blobs


def _encoded(header: dict[str, Any], blobs: list[tuple[bool, bytes]]) -> bytes:
    """Return the file; entries that are left in the header get new sizes and checksums."""
    described = iter([(is_plain, len(blob), zlib.crc32(blob)) for is_plain, blob in blobs])

    def renewed(tree: Any) -> Any:
        if isinstance(tree, list | tuple):
            if len(tree) == 3 and isinstance(tree[0], bool):
                return next(described, tree)
            return [renewed(each) for each in tree]
        return tree

    header = {
        key: renewed(value) if key in ("outputs", "graph") else value
        for key, value in header.items()
    }
    packed = msgpack.packb(header)
    sizes = len(packed).to_bytes(8, "little") + zlib.crc32(packed).to_bytes(8, "little")
    return _MAGIC + sizes + packed + b"".join(blob for _, blob in blobs)


def _graph() -> Graph:
    generator = np.random.default_rng(3)
    ends = generator.integers(0, 24, (2, 70))
    return Graph.from_edges(tuple(ends), generator.integers(1, 9, 70).astype(float))


def _written(graph: Graph, engine: Embedded, case: str, folder: Path) -> tuple[Path, bytes]:
    options = _options(engine, case, folder / case, events=_Stopping(CASES[case].stop_at))
    try:
        CASES[case].call(graph, options)
    except _Stopped:
        [path] = (folder / case).glob("*.checkpoint")
        return path, path.read_bytes()
    raise AssertionError(f"{case} ends before it is stopped")


def _options(engine: Embedded, case: str, folder: Path, **keywords: Any) -> RunOptions:
    return RunOptions(
        engine=engine,
        num_partitions=CASES[case].num_partitions,
        partitioning=CASES[case].partitioning,
        checkpoint_dir=folder,
        checkpoint_every=keywords.pop("checkpoint_every", 1 if "events" in keywords else 10**6),
        max_supersteps=50,
        **keywords,
    )
