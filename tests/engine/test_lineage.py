"""The decisions of the driver, without a thread, a process or a sleep."""

from hypothesis import given, settings
from hypothesis import strategies as st

from talka.engine.lineage import Fail, Forget, Free, Lineage, Retries, RunTask


class World:
    """A fake engine: stores and loses outputs, and finishes tasks on request."""

    def __init__(self):
        self.lineage = Lineage()
        self.inputs = {}  # output -> inputs of its task; task n has the one output n
        self.stored = set()
        self.released = set()
        self.running = []
        self.runs = []
        self.failed = {}

    def submit(self, inputs, retries=Retries()):  # noqa: B008
        task = len(self.inputs)
        self.inputs[task] = tuple(inputs)
        self.obey(self.lineage.submitted(task, inputs, [task], retries))
        return task

    def obey(self, instructions):
        for instruction in instructions:
            match instruction:
                case RunTask(task):
                    assert set(self.inputs[task]) <= self.stored, "an input is not there"
                    self.running.append(task)
                    self.runs.append(task)
                case Free(output):
                    assert output in self.released
                    self.stored.discard(output)
                case Fail(task, cause):
                    self.failed[task] = cause
                case Forget(task):
                    assert task in self.released

    def finish(self, task):
        self.running.remove(task)
        missing = [i for i in self.inputs[task] if i not in self.stored]
        if missing:
            self.obey(self.lineage.inputs_lost(task, missing))
            return
        self.stored.add(task)
        self.obey(self.lineage.finished(task))

    def run_all(self):
        while self.running:
            self.finish(self.running[0])

    def lose(self, outputs):
        self.stored -= set(outputs)
        self.lineage.lost(outputs)

    def release(self, outputs):
        self.released |= set(outputs)
        self.obey(self.lineage.released(outputs))

    def want(self, outputs):
        self.obey(self.lineage.wanted(outputs))

    def needed(self, output):
        """Return the tasks that must run for this output, computed in the obvious, slow way."""
        if output in self.stored:
            return set()
        return {output}.union(*(self.needed(source) for source in self.inputs[output]))


def test_a_task_waits_for_its_inputs():
    world = World()
    a = world.submit([])
    b = world.submit([a])
    assert world.runs == [a]
    world.finish(a)
    assert world.runs == [a, b]


def test_a_lost_output_is_computed_again_only_when_needed():
    world = World()
    a = world.submit([])
    world.run_all()
    world.lose([a])
    assert world.runs == [a]
    world.want([a])
    assert world.runs == [a, a]


def test_an_input_that_is_lost_before_its_reader_starts_is_computed_first():
    world = World()
    a, b = world.submit([]), None
    world.finish(a)
    b = world.submit([a])
    world.lose([a])
    world.finish(b)  # its input is lost
    assert world.runs == [a, b, a]
    world.run_all()
    assert world.runs == [a, b, a, b]


def test_an_input_that_is_lost_while_its_reader_waits_for_another_is_computed_first():
    world = World()
    a, b = world.submit([]), world.submit([])
    world.finish(a)
    c = world.submit([a, b])
    world.lose([a])
    world.finish(b)
    assert world.runs == [a, b, a]
    world.run_all()
    assert world.runs == [a, b, a, c]


def test_chains_of_any_length_are_computed_again_without_recursion():
    world = World()
    last = world.submit([])
    for _ in range(5000):
        last = world.submit([last])
    world.run_all()
    world.lose(range(last + 1))
    world.want([last])
    world.run_all()
    assert len(world.runs) == 2 * (last + 1)


def test_deaths_and_exceptions_have_separate_limits():
    lineage = Lineage()
    lineage.submitted(0, [], [0], Retries(exceptions=1, deaths=2))
    assert lineage.died(0) == [RunTask(0, "its worker died")]
    assert lineage.raised(0) == [RunTask(0, "it raised an exception")]
    assert lineage.died(0) == [RunTask(0, "its worker died")]
    assert lineage.died(0) == [Fail(0, 0)]


def test_a_failure_reaches_each_waiting_task_once():
    world = World()
    a = world.submit([])
    b, c = world.submit([a]), world.submit([a])
    d = world.submit([b, c])
    world.running.remove(a)
    world.obey(world.lineage.gave_up(a))
    assert world.failed == {a: a, b: a, c: a, d: a}
    late = world.submit([d])
    assert world.failed[late] == a
    assert world.runs == [a]


def test_a_released_output_is_freed_after_its_last_reader():
    lineage = Lineage()
    lineage.submitted(0, [], [0])
    lineage.finished(0)
    lineage.submitted(1, [0], [1])
    assert lineage.released([0]) == []
    assert Free(0) in lineage.finished(1)


def test_a_checkpoint_cuts_the_lineage():
    world = World()
    first = world.submit([])
    second = world.submit([first])
    third = world.submit([second])
    world.run_all()
    world.release([first])
    world.inputs[second] = ()
    assert world.lineage.is_done(world.lineage.producer_of(second))
    world.obey(world.lineage.replaced(second, []))
    assert len(world.lineage) == 2, "the first task can be needed no more"
    world.lose([second, third])
    world.runs.clear()
    world.want([third])
    world.run_all()
    assert world.runs == [second, third]


def test_a_checkpoint_may_be_made_of_other_outputs():
    world = World()
    first, other = world.submit([]), world.submit([])
    second = world.submit([first])
    world.run_all()
    world.inputs[second] = (other,)
    world.obey(world.lineage.replaced(second, [other]))
    world.release([other])
    world.lose([second])
    world.runs.clear()
    world.want([second])
    world.run_all()
    assert world.runs == [other, second]
    assert first in world.stored


def test_tasks_are_forgotten_when_no_descendant_can_need_them():
    lineage = Lineage()
    lineage.submitted(0, [], [0])
    lineage.finished(0)
    lineage.submitted(1, [0], [1])
    lineage.finished(1)
    lineage.released([0])
    assert len(lineage) == 2, "the first task may be needed if output 1 is lost"
    assert lineage.released([1]) == [Free(1), Forget(1), Forget(0)]
    assert len(lineage) == 0


ACTIONS = st.lists(
    st.tuples(
        st.sampled_from(["submit", "finish", "lose", "want", "release"]),
        st.lists(st.integers(0, 30), min_size=1, max_size=4, unique=True),
    ),
    max_size=60,
)


@given(ACTIONS)
@settings(max_examples=300, deadline=None)
def test_any_history_ends_with_every_wanted_output_stored(actions):
    world = World()
    for action, numbers in actions:
        known = [n for n in numbers if n in world.inputs and n not in world.released]
        if action == "submit":
            world.submit(known)
        elif action == "finish" and world.running:
            world.finish(world.running[numbers[0] % len(world.running)])
        elif action == "lose":
            world.lose(known)
        elif action == "want":
            world.want(known)
        elif action == "release":
            world.release(known)
    world.run_all()
    alive = [output for output in world.inputs if output not in world.released]
    world.want(alive)
    world.run_all()
    assert set(alive) <= world.stored
    assert not (world.stored & world.released), "a released output was not freed"
    world.release(alive)
    assert len(world.lineage) == 0, "a task is kept although it cannot be needed"


@given(st.data())
@settings(max_examples=200, deadline=None)
def test_exactly_the_lost_ancestors_run_again(data):
    world = World()
    for task in range(data.draw(st.integers(1, 15))):
        world.submit(data.draw(st.sets(st.integers(0, task - 1), max_size=3)) if task else [])
    world.run_all()
    world.runs.clear()
    lost = data.draw(st.sets(st.sampled_from(range(len(world.inputs)))))
    wanted = data.draw(st.sampled_from(range(len(world.inputs))))
    world.lose(lost)
    expected = world.needed(wanted)
    world.want([wanted])
    world.run_all()
    assert sorted(world.runs) == sorted(expected)
