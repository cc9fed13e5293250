"""No stream of frames, however it was forged, does more than be refused or be read."""

from tests.hostile.frames import attack


def test_forged_frames_are_refused_or_read():
    outcome = attack(rounds=1500, seed=0)
    assert outcome.accepted + outcome.refused == 1500
    assert outcome.refused > 300
    assert outcome.accepted > 300
