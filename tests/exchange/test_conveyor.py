"""The thread that runs exchanges: order, overlap, errors. No sockets here."""

import threading

import pytest
import torch

from talka.exchange.conveyor import Conveyor
from talka.exchange.meter import Meter


class Signal:
    """An operation that ends when the test sets its event."""

    def __init__(self):
        self.event = threading.Event()

    def wait(self):
        assert self.event.wait(timeout=100)


def steps(log, name, *signals):
    log.append(f"{name} starts")
    for number, signal in enumerate(signals):
        yield [signal]
        log.append(f"{name} has {number}")


def test_the_next_starts_while_the_first_waits():
    log, signals = [], [Signal() for _ in range(3)]
    gate = Signal()
    conveyor = Conveyor(Meter())
    opening = conveyor.put(lambda: steps(log, "opening", gate), lambda: None)
    first = conveyor.put(lambda: steps(log, "a", signals[0], signals[1]), lambda: "a done")
    second = conveyor.put(lambda: steps(log, "b", signals[2]), lambda: "b done")
    for signal in (gate, *signals):
        signal.event.set()
    assert [opening.wait(), first.wait(), second.wait()] == [None, "a done", "b done"]
    assert log.index("b starts") < log.index("a has 0")
    assert log.index("a has 1") < log.index("b has 0"), "it waits only for the oldest"
    conveyor.close()


def test_an_error_belongs_to_its_own_future_and_the_next_works():
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
def test_an_error_while_an_exchange_starts_reaches_its_future_and_the_next_works(raised, expected):
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
    """Return True if a future is done in time; its `wait` has no time limit."""
    done = threading.Event()
    future.add_done_callback(lambda _: done.set())
    return done.wait(timeout_s)


def test_exchanges_in_progress_are_finished_before_the_thread_ends():
    log, signal, before = [], Signal(), threading.enumerate()
    conveyor = Conveyor(Meter())
    future = conveyor.put(lambda: steps(log, "a", signal), lambda: "done")
    signal.event.set()
    conveyor.close()
    assert future.wait() == "done"
    assert [thread for thread in threading.enumerate() if thread not in before] == []


def test_an_exchange_waits_for_an_older_one_of_the_same_parameter():
    conveyor, log, signals = Conveyor(Meter()), [], [Signal() for _ in range(3)]
    names = [frozenset("ab"), frozenset("c"), frozenset("b")]
    futures = [
        conveyor.put(lambda i=i: steps(log, str(i), signals[i]), lambda: None, names[i])
        for i in range(3)
    ]
    for signal in reversed(signals):
        signal.event.set()
    for future in futures:
        future.wait()
    conveyor.close()
    assert log.index("0 has 0") < log.index("2 starts")
