"""Many outputs need few descriptors; if there are too few, an error names the limit."""

import contextlib
import itertools
import os
import resource
import socket

import numpy as np
import pytest

from talka.engine import Embedded, segments
from talka.engine.local import wire
from talka.errors import DescriptorLimitError, TaskError

NUM_ARRAYS = 300
NUM_VALUES = 10_000  # per array: too many to be sent inside a frame


@contextlib.contextmanager
def descriptor_limit(num_free):
    """Let this process, and those that it starts, open only this many more files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken = {int(name) for name in os.listdir("/proc/self/fd")}
    free = (number for number in itertools.count() if number not in taken)
    limit = next(itertools.islice(free, num_free, None))
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def array(number):
    return np.full(NUM_VALUES, number)


def arrays():
    return [array(number) for number in range(NUM_ARRAYS)]


def total(*values):
    return sum(int(value[-1]) for value in values)


@pytest.mark.parametrize("num_tasks", [1, NUM_ARRAYS])
def test_many_more_arrays_than_descriptors_come_from_workers_and_go_to_them(num_tasks):
    with descriptor_limit(60), Embedded(processes=1) as engine:
        if num_tasks == 1:
            refs = engine.submit(arrays, num_outputs=NUM_ARRAYS, python=True)
        else:
            refs = [engine.submit(array, i, python=True) for i in range(NUM_ARRAYS)]
        values = engine.fetch(refs)
        assert [int(value[0]) for value in values] == list(range(NUM_ARRAYS))
        assert engine.fetch(engine.submit(total, *refs, python=True)) == sum(range(NUM_ARRAYS))


def test_a_mapped_value_holds_no_descriptor():
    segment = segments.StorageSegment.create()
    with segment.appending() as sink:
        sink.write(b"x" * 100)
    before = len(os.listdir("/proc/self/fd"))
    mapped = segment.buffer(0, 100)
    assert len(os.listdir("/proc/self/fd")) == before
    del segment, sink
    assert len(os.listdir("/proc/self/fd")) == before - 1
    assert mapped.to_pybytes() == b"x" * 100


def test_descriptors_that_cannot_be_received_are_an_error_without_a_hang():
    ours, theirs = socket.socketpair()
    with ours, theirs, open(os.devnull) as file:
        wire.send(ours, "many", [file.fileno()] * 400)
        wire.send(ours, "next")
        before = os.listdir("/proc/self/fd")
        with descriptor_limit(10), pytest.raises(DescriptorLimitError, match="ulimit -n"):
            wire.receive(theirs)
        assert os.listdir("/proc/self/fd") == before
        assert wire.receive(theirs) == ("next", [])


def test_a_worker_that_cannot_start_without_descriptors_is_an_error():
    with (
        Embedded(processes=1) as engine,
        descriptor_limit(0),
        pytest.raises(DescriptorLimitError, match="ulimit -n"),
    ):
        engine.fetch(engine.submit(lambda: 1, python=True))


def test_a_task_that_opens_too_many_files_gets_an_error_with_the_limit():
    def open_many():
        while True:
            os.open(os.devnull, os.O_RDONLY)

    with (
        descriptor_limit(60),
        Embedded(processes=1) as engine,
        pytest.raises(TaskError, match="ulimit -n"),
    ):
        engine.fetch(engine.submit(open_many, python=True))
