"""The thread that carries exchanges: order, overlap, errors. No sockets here."""

import threading

import pytest
import torch

from talka.exchange.conveyor import Conveyor
from talka.exchange.meter import Meter


class Signal:
    """An operation that is done when the test says so."""

    def __init__(self):
        self.event = threading.Event()

    def wait(self):
        assert self.event.wait(timeout=100)


def steps(said, name, *signals):
    said.append(f"{name} starts")
    for number, signal in enumerate(signals):
        yield [signal]
        said.append(f"{name} has {number}")


def test_the_next_starts_while_the_first_waits():
    said, signals = [], [Signal() for _ in range(3)]
    gate = Signal()
    conveyor = Conveyor(Meter())
    opening = conveyor.put(lambda: steps(said, "opening", gate), lambda: None)
    first = conveyor.put(lambda: steps(said, "a", signals[0], signals[1]), lambda: "a done")
    second = conveyor.put(lambda: steps(said, "b", signals[2]), lambda: "b done")
    for signal in (gate, *signals):
        signal.event.set()
    assert [opening.wait(), first.wait(), second.wait()] == [None, "a done", "b done"]
    assert said.index("b starts") < said.index("a has 0")
    assert said.index("a has 1") < said.index("b has 0"), "it waits for the oldest alone"
    conveyor.close()


def test_an_error_belongs_to_its_own_future_and_the_next_go_on():
    def broken():
        yield []
        raise ArithmeticError("no")

    conveyor = Conveyor(Meter())
    bad = conveyor.put(broken, lambda: None)
    good = conveyor.put(lambda: steps([], "good"), lambda: "fine")
    with pytest.raises(ArithmeticError, match="no"):
        bad.wait()
    assert good.wait() == "fine"
    conveyor.close()


@pytest.mark.parametrize(
    ("raised", "expected"),
    [(ArithmeticError("does not start"), ArithmeticError), (SystemExit(3), RuntimeError)],
)
def test_an_error_while_an_exchange_starts_reaches_its_future_and_the_next_go_on(raised, expected):
    def broken():
        raise raised

    conveyor = Conveyor(Meter())
    bad = conveyor.put(broken, lambda: None)
    good = conveyor.put(lambda: steps([], "good"), lambda: "fine")
    futures = torch.futures.collect_all([good, bad])
    assert wait_for(futures), "the thread died with the first exchange"
    with pytest.raises(expected, match=r"does not start|SystemExit\(3\)"):
        bad.value()
    assert good.value() == "fine"
    conveyor.close()


def wait_for(future, timeout_s=10):
    """Whether a future is done in time; its own `wait` has no time limit."""
    done = threading.Event()
    future.add_done_callback(lambda _: done.set())
    return done.wait(timeout_s)


def test_what_is_under_way_is_finished_before_the_thread_ends():
    said, signal, before = [], Signal(), threading.enumerate()
    conveyor = Conveyor(Meter())
    future = conveyor.put(lambda: steps(said, "a", signal), lambda: "done")
    signal.event.set()
    conveyor.close()
    assert future.wait() == "done"
    assert [one for one in threading.enumerate() if one not in before] == []
