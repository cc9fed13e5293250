"""The contract of all engines, tested on each of them."""

import functools
import operator
import os
import threading

import numpy as np
import pyarrow as pa
import pytest

from talka.engine import Ref, Retries
from talka.errors import (
    InvalidValueError,
    NotShippableError,
    ReleasedError,
    TaskDiedError,
    TaskError,
)

PYTHON = pytest.mark.parametrize("python", [False, True], ids=["native", "python"])
BIG = 200_000  # values; Ray keeps small outputs with the driver, where they cannot be lost with a machine


def big(value):
    return np.full(BIG, value)


@PYTHON
def test_runs_a_function_of_its_inputs(engine, python):
    a = engine.submit(lambda: 20, python=python)
    b = engine.submit(lambda x, y, z: x * y + z, a, 2, a, python=python)
    assert engine.fetch(b) == 60
    assert engine.fetch([a, b]) == [20, 60]


@PYTHON
def test_functions_may_be_closures_partials_and_builtins(engine, python):
    offset = 7
    refs = [
        engine.submit(lambda: offset, python=python),
        engine.submit(functools.partial(operator.add, 1), 2, python=python),
        engine.submit(sorted, [3, 1, 2], python=python),
    ]
    assert engine.fetch(refs) == [7, 3, [1, 2, 3]]


@PYTHON
@pytest.mark.parametrize(
    "value",
    [
        None, True, -3, 2.5, "talka", b"\0", [1, [2.0, "x"]], (1, (2, [3])), {"a": 1, 2: [None]},
        np.float32(1.5), np.int64(7),
    ],
    ids=repr,
)  # fmt: skip
def test_plain_values_come_back_as_they_were(engine, python, value):
    fetched = engine.fetch(engine.submit(lambda: value, python=python))
    assert fetched == value
    assert type(fetched) is type(value)


@PYTHON
def test_arrow_and_numpy_come_back_as_they_were(engine, python):
    table = pa.table({"k": [1, 2, None], "s": ["a", "b", "c"]}).replace_schema_metadata({"x": "y"})
    matrix = np.arange(12.0).reshape(3, 4)
    for value in (table, table.to_batches()[0], table["s"], table["k"].chunk(0)):
        fetched = engine.fetch(engine.submit(lambda value=value: value, python=python))
        assert type(fetched) is type(value)
        assert fetched.equals(value)
    assert table.schema.metadata == {b"x": b"y"}
    fetched = engine.fetch(engine.submit(lambda: matrix, python=python))
    np.testing.assert_array_equal(fetched, matrix)


@PYTHON
def test_outputs_are_immutable(engine, python):
    ref = engine.submit(lambda: np.zeros(3), python=python)

    def spoil(array):
        array[0] = 1

    with pytest.raises(TaskError, match="read-only"):
        engine.fetch(engine.submit(spoil, ref, python=python))
    assert engine.fetch(ref)[0] == 0


@PYTHON
def test_several_outputs_each_have_a_ref(engine, python):
    low, high = engine.submit(lambda: (1, 2), num_outputs=2, python=python)
    assert engine.fetch([high, low]) == [2, 1]


def test_a_wrong_number_of_outputs_is_an_error(engine):
    refs = engine.submit(lambda: (1, 2, 3), num_outputs=2)
    with pytest.raises(TaskError, match="instead of a tuple or list of 2 outputs"):
        engine.fetch(refs)


@PYTHON
def test_a_long_chain_and_a_wide_fan_in(engine, python):
    refs = [engine.submit(lambda i=i: i, python=python) for i in range(40)]
    total = engine.submit(lambda *numbers: sum(numbers), *refs, python=python)
    for _ in range(20):
        total = engine.submit(lambda x: x + 1, total, python=python)
    assert engine.fetch(total) == sum(range(40)) + 20


def test_wait_returns_done_and_pending_refs(engine, tmp_path):
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    quick = engine.submit(lambda: 1)
    held = engine.submit(gate.read_text)
    assert engine.wait([quick]) == ([quick], [])
    assert engine.wait([quick, held], timeout_s=0.05) == ([quick], [held])
    gate.write_text("go")
    assert engine.wait([quick, held]) == ([quick, held], [])


# Losses: D4, D5.


def test_a_dropped_output_is_computed_again(engine, recorder):
    a = engine.submit(lambda: big(1), name="a")
    b = engine.submit(lambda x: x + 1, a, name="b")
    first = engine.fetch(b).copy()
    engine.drop(b)
    np.testing.assert_array_equal(engine.fetch(b), first)
    assert recorder.again() == ["b"]


def test_exactly_the_lost_outputs_and_their_lost_ancestors_run_again(engine, recorder):
    """Test a -> b -> d, a -> c -> d: b and d are lost, a and c are not."""
    a = engine.submit(lambda: big(1), name="a")
    b = engine.submit(lambda x: x + 1, a, name="b")
    c = engine.submit(lambda x: x * 3, a, name="c")
    d = engine.submit(lambda x, y: x + y, b, c, name="d")
    first = engine.fetch(d).copy()
    engine.drop([b, d])
    np.testing.assert_array_equal(engine.fetch(d), first)
    assert recorder.again() == ["b", "d"]
    engine.close()
    assert recorder.num_runs() == 6


def test_a_lost_output_that_is_not_needed_is_not_computed_again(engine, recorder):
    a = engine.submit(lambda: big(1), name="a")
    engine.wait([a])
    engine.drop(a)
    b = engine.submit(lambda: 2, name="b")
    engine.fetch(b)
    assert recorder.again() == []


def test_a_released_ancestor_is_computed_again_for_a_lost_descendant(engine, recorder):
    a = engine.submit(lambda: big(1), name="a")
    b = engine.submit(lambda x: x + 1, a, name="b")
    engine.wait([b])
    engine.release(a)
    engine.drop(b)
    assert engine.fetch(b)[0] == 2
    assert recorder.again() == ["a", "b"]


def test_one_lost_output_of_two_leaves_the_other_alone(engine, recorder):
    refs = engine.submit(lambda: (big(1), big(2)), num_outputs=2, name="two")
    engine.wait(refs)
    engine.drop(refs[0])
    assert [value[0] for value in engine.fetch(refs)] == [1, 2]
    assert recorder.again() == ["two"]


# Failures.


def fails_on_five(x):
    half = 10 / (x - 5)
    return half


@PYTHON
def test_an_error_names_task_input_line_and_carries_the_traceback(engine, python):
    ref = engine.submit(fails_on_five, 5, name="divide", python=python)
    with pytest.raises(TaskError) as caught:
        engine.fetch(ref)
    error = caught.value
    assert "'divide'" in error.task
    assert error.cause == "ZeroDivisionError: division by zero"
    assert error.line.endswith("in fails_on_five: half = 10 / (x - 5)")
    assert __file__ in error.line
    assert error.inputs == ("5",)
    assert "Traceback" in error.remote_traceback
    assert error.remote_traceback in "".join(error.__notes__)
    assert len(str(error).splitlines()) == 3


def test_tasks_that_depend_on_a_failure_fail_with_the_same_error(engine):
    bad = engine.submit(fails_on_five, 5, name="divide")
    after = engine.submit(lambda x: x, engine.submit(lambda x: x, bad))
    with pytest.raises(TaskError, match="divide"):
        engine.fetch(after)
    late = engine.submit(lambda x: x, bad)
    with pytest.raises(TaskError, match="divide"):
        engine.fetch(late)


def count_call(folder):
    """Leave a mark for this call, and return the number of marks."""
    for number in range(1000):
        try:
            (folder / str(number)).touch(exist_ok=False)
        except FileExistsError:
            continue
        return number + 1
    raise AssertionError


@PYTHON
def test_exceptions_are_retried_only_on_request(engine, recorder, tmp_path, python):
    def second_time_lucky():
        if count_call(tmp_path) < 2:
            raise RuntimeError("not yet")
        return "lucky"

    never = engine.submit(second_time_lucky, name="never", python=python)
    with pytest.raises(TaskError, match="not yet"):
        engine.fetch(never)
    assert len(list(tmp_path.iterdir())) == 1
    (tmp_path / "0").unlink()
    once = engine.submit(
        second_time_lucky, name="once", python=python, retries=Retries(exceptions=1)
    )
    assert engine.fetch(once) == "lucky"
    assert recorder.again() == ["once"]


def test_a_worker_that_is_killed_in_the_middle_of_a_task_costs_that_task_only(
    engine, recorder, tmp_path
):
    def dies_once(x):
        if count_call(tmp_path) == 1:
            os.kill(os.getpid(), 9)
        return x.sum()

    source = engine.submit(lambda: big(1), name="source", python=True)
    ref = engine.submit(dies_once, source, name="dies", python=True)
    assert engine.fetch(ref) == BIG
    assert recorder.again() == ["dies"]


def test_deaths_are_retried_twice_and_then_reported(engine, tmp_path):
    def dies(x):
        count_call(tmp_path)
        os._exit(3)

    ref = engine.submit(dies, 1, name="doomed", python=True)
    with pytest.raises(TaskDiedError, match="doomed"):
        engine.fetch(ref)
    assert len(list(tmp_path.iterdir())) == 3
    never = engine.submit(dies, 1, python=True, retries=Retries(deaths=0))
    with pytest.raises(TaskDiedError):
        engine.fetch(never)
    assert len(list(tmp_path.iterdir())) == 4


def test_sys_exit_is_an_error_of_the_task(engine):
    def leave():
        raise SystemExit(4)

    for python in (False, True):
        with pytest.raises(TaskError, match="SystemExit: 4"):
            engine.fetch(engine.submit(leave, python=python))


@PYTHON
@pytest.mark.parametrize(
    "value", [{1, 2}, object(), 2**70, [np.zeros(2)]], ids=lambda v: type(v).__name__
)
def test_a_result_that_cannot_be_stored_is_an_error_that_names_allowed_types(engine, python, value):
    ref = engine.submit(lambda: value, name="odd", python=python)
    with pytest.raises(TaskError, match="cannot be the output of a task. Return Arrow"):
        engine.fetch(ref)


def test_a_function_that_cannot_be_sent_is_an_error_at_once(engine):
    lock = threading.Lock()
    with pytest.raises(NotShippableError, match="locks, sockets and connections inside it"):
        engine.submit(lambda: lock.locked(), python=True)


def test_a_ref_inside_another_value_is_an_error(engine):
    ref = engine.submit(lambda: 1)
    with pytest.raises(NotShippableError, match="a Ref must itself be an input"):
        engine.submit(len, [ref], python=True)


# Release.


def test_a_released_ref_cannot_be_used_again(engine):
    ref = engine.submit(lambda: 1)
    engine.fetch(ref)
    engine.release(ref)
    for use in (engine.fetch, engine.release, engine.drop, lambda r: engine.submit(abs, r)):
        with pytest.raises(ReleasedError, match="was released"):
            use(ref)


def test_a_release_keeps_outputs_until_pending_tasks_have_read_them(engine):
    a = engine.submit(lambda: big(3))
    b = engine.submit(lambda x: float(x[0]), a)
    engine.release(a)
    assert engine.fetch(b) == 3


def test_released_tasks_are_forgotten(engine):
    refs = [engine.submit(lambda i=i: i) for i in range(10)]
    refs += [engine.submit(lambda x: x, ref) for ref in refs]
    engine.wait(refs)
    engine.release(refs)
    assert len(engine._lineage) == 0
    assert engine._tasks == {}


def test_a_ref_of_another_engine_is_refused(engine):
    from talka.engine import Embedded

    with Embedded() as other, pytest.raises(ReleasedError):
        engine.fetch(other.submit(lambda: 1))


def test_a_closed_engine_refuses_work(engine):
    engine.close()
    engine.close()
    with pytest.raises(ReleasedError):
        engine.submit(lambda: 1)


def test_options_out_of_range_are_refused(engine):
    with pytest.raises(InvalidValueError, match="num_outputs is 0"):
        engine.submit(lambda: 1, num_outputs=0)
    with pytest.raises(InvalidValueError, match="function is 'not a function'"):
        engine.submit("not a function")
    with pytest.raises(InvalidValueError, match="size is 0"):
        engine.gang(lambda worker: None, size=0)


def test_one_output_is_a_ref_and_a_number_of_outputs_a_tuple(engine):
    [only] = engine.submit(lambda: 1, num_outputs=1)
    assert engine.fetch(only) == 1
    with pytest.raises(TypeError, match="cannot unpack non-iterable Ref|'Ref' object is not iter"):
        [only] = engine.submit(lambda: 1)


def test_refs_show_their_number(engine):
    ref = engine.submit(lambda: 1)
    assert isinstance(ref, Ref)
    assert repr(ref) == "Ref(0)"
