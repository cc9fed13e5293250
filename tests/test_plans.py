"""Trees of costed parts, against sums written out by hand."""

import json

from hypothesis import given
from hypothesis import strategies as st

from talka.events import Considered, Predicted
from talka.plans import Alternative, Part

seconds = st.none() | st.integers(0, 100).map(float)


def leaves(names):
    return st.builds(
        Part, cost_id=st.sampled_from(names), seconds=seconds, sent_bytes=seconds,
        memory_bytes=seconds,
    )  # fmt: skip


trees = st.recursive(
    leaves(["job/a", "job/b", "job/c"]),
    lambda inner: st.lists(inner, min_size=1, max_size=4).map(lambda parts: Part.of("job", parts)),
    max_leaves=12,
)


def leaves_of(part):
    return [part] if not part.parts else [leaf for one in part.parts for leaf in leaves_of(one)]


@given(trees)
def test_a_tree_costs_as_much_as_its_leaves(tree):
    known = [leaf.seconds for leaf in leaves_of(tree) if leaf.seconds is not None]
    assert tree.known_seconds == sum(known)
    assert tree.unknown() == [leaf.cost_id for leaf in leaves_of(tree) if leaf.seconds is None]
    assert (tree.seconds is None) == bool(tree.unknown())
    sent = [leaf.sent_bytes for leaf in leaves_of(tree) if leaf.sent_bytes is not None]
    assert tree.sent_bytes == (sum(sent) if sent else None)
    if tree.parts:
        memory = [leaf.memory_bytes or 0.0 for leaf in leaves_of(tree)]
        assert tree.memory_bytes == (max(memory) or None)


@given(trees)
def test_every_part_is_recorded_as_one_event_and_as_plain_values(tree):
    events = list(tree.events())
    assert [event.cost_id for event in events] == [part.cost_id for part in tree.walk()]
    assert json.loads(json.dumps(tree.as_plain())) == tree.as_plain()


def test_alternatives_are_recorded_with_the_reason():
    lost = Alternative("ring", "takes longer", seconds=2.0, sent_bytes=8.0)
    part = Part(cost_id="train/exchange", seconds=1.0, choice="tree", alternatives=(lost,))
    assert list(part.events()) == [
        Predicted("train/exchange", None, 1.0, ""),
        Considered("train/exchange", "ring", 8.0, 2.0, "takes longer"),
    ]


def test_a_part_at_the_beginning_adds_to_the_total():
    whole = Part.of("job", [Part(cost_id="job/a", seconds=1.0)], reason="because")
    longer = whole.starting_with(Part(cost_id="job/start", seconds=0.5))
    assert (longer.seconds, longer.reason) == (1.5, "because")
    assert [part.cost_id for part in longer.parts] == ["job/start", "job/a"]
