from tests.hostile.event_files import attack


def test_hostile_run_directories_give_a_page_or_an_error_of_ours():
    outcome = attack(rounds=8, seed=0)
    assert outcome.accepted + outcome.refused == 8
    assert outcome.accepted >= 3, "most of it reaches the page"
