"""Ownership: every value has one owner, whatever buckets its parameter is in."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from talka.compress import layout_of
from talka.compress.layout import cut
from talka.exchange.topologies.owners import BLOCK, even_shares, slices


@given(st.integers(0, 20_000), st.integers(1, 9))
def test_slices_follow_one_another_in_whole_blocks(num_values, num_owners):
    found = slices(num_values, num_owners)
    assert len(found) == num_owners
    assert found[0][0] == 0
    assert found[-1][1] == num_values
    for (_, stop), (start, _) in itertools.pairwise(found):
        assert stop == start
        assert stop % BLOCK == 0 or stop == num_values
    blocks = [-(-(stop - start) // BLOCK) for start, stop in found]
    assert max(blocks) - min(blocks) <= 1


shapes = st.dictionaries(
    st.text("abc.", min_size=1, max_size=6), st.tuples(st.integers(1, 90), st.integers(1, 90))
)


@given(shapes, st.integers(1, 9))
def test_every_value_has_one_owner(shapes, num_owners):
    layout = layout_of(shapes)
    owned = [piece for share in even_shares(layout, num_owners) for piece in share]
    where = sorted((piece.start, piece.stop) for piece in owned)
    assert sum(stop - start for start, stop in where) == (layout[-1].stop if layout else 0)
    assert all(a[1] <= b[0] for a, b in itertools.pairwise(where))
    whole = {piece.name: piece for piece in layout}
    for piece in owned:
        assert piece.start - piece.offset == whole[piece.name].start


@given(shapes.filter(bool), st.integers(1, 5), st.data())
def test_the_owner_of_a_value_does_not_depend_on_what_is_beside_it(shapes, num_owners, data):
    """A bucket may hold a parameter with others, or a part of it: its values keep their owners."""
    name = data.draw(st.sampled_from(sorted(shapes)))
    layout = layout_of(shapes)
    alone = layout_of({name: shapes[name]})
    piece = next(one for one in layout if one.name == name)
    part = cut(layout, piece.start + piece.num_values // 3, piece.stop)

    def owner_of_each(some):
        return {
            piece.offset + index: owner
            for owner, share in enumerate(even_shares(some, num_owners))
            for piece in share
            if piece.name == name
            for index in range(piece.num_values)
        }

    everywhere = owner_of_each(alone)
    assert owner_of_each(layout) == everywhere
    assert owner_of_each(part).items() <= everywhere.items()
