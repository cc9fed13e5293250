from tests.hostile.saved_states import attack


def test_forged_states_are_refused_or_loaded():
    accepted, refused = attack(300, seed=1)
    assert accepted + refused == 300
    assert accepted > 20
    assert refused > 20
