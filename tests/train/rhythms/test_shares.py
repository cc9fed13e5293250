"""Batches that are drawn, used and counted, without processes."""

import pytest

from talka.errors import OptionError
from talka.train import Shares


def shares_of(num_workers, batch_size, rank=0):
    shares = Shares(batch_size, measured=False)
    shares.join(rank, num_workers)
    return shares


def test_batches_that_were_used_are_counted_in_the_next_epoch():
    """Three steps of a round are in one epoch, two in the next; a fourth batch was only drawn."""
    shares = shares_of(2, 4)
    sampler = shares.sampler(range(16))
    for place, _ in enumerate(sampler):
        if place < 3:
            shares.use()
    for _ in zip(sampler, range(2), strict=False):
        shares.use()
    assert shares.taken(5) == (10, 20)
    with pytest.raises(OptionError):
        shares.taken(9)


def test_used_batches_are_saved_and_loaded():
    shares = shares_of(2, 4)
    for _ in shares.sampler(range(8)):
        shares.use()
    later = shares_of(2, 4)
    later.load_state(shares.state())
    list(later.sampler(range(4)))
    assert later.taken(3) == (6, 12)


def test_a_sampler_continues_within_an_epoch():
    whole = list(shares_of(1, 4).sampler(range(18)))
    sampler = shares_of(1, 4).sampler(range(18))
    sampler.skip(3)
    assert list(sampler) == whole[3:]
    assert len(list(sampler)) == len(sampler) == 5


@pytest.mark.parametrize("may_be_empty", [False, True])
def test_a_last_batch_may_have_fewer_samples_than_workers(may_be_empty):
    drawn = []
    for rank in range(3):
        sampler = shares_of(3, 6, rank).sampler(range(14), may_be_empty=may_be_empty)
        parts = list(sampler)
        assert len(parts) == len(sampler) == 2 + may_be_empty
        drawn += [index for part in parts for index in part]
    assert len(drawn) == len(set(drawn)) == (14 if may_be_empty else 12)
