"""No stored value, however it was forged, does more than be refused or be read."""

from talka.engine import storage
from tests.hostile.stored_values import attack, good_values, use


def test_good_values_are_read():
    for data, is_packed in good_values():
        use(storage.from_foreign(data, is_packed=is_packed))


def test_forged_values_are_refused_or_read():
    outcome = attack(rounds=3000, seed=0)
    assert outcome.accepted + outcome.refused == 3000
    assert outcome.refused > 500
