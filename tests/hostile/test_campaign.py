"""The campaign counts what attacks find, and notices a crash."""

import subprocess
import sys
from pathlib import Path

from tests.hostile.campaign import ATTACKS, Attack, pieces_of, run_piece

ROOT = Path(__file__).parents[2]


def test_pieces_have_all_rounds_and_seeds_of_their_own():
    for attack in ATTACKS.values():
        pieces = pieces_of(attack, 1.0, seed=3)
        assert sum(rounds for rounds, _ in pieces) == attack.rounds
        assert [seed for _, seed in pieces] == list(range(3, 3 + len(pieces)))
    assert pieces_of(Attack(1000, 400), 0.5, seed=0) == [(400, 0), (100, 1)]


def test_an_attack_that_fails_is_a_finding():
    finding = run_piece("no_such_attack", 1, 5)
    assert "no_such_attack, seed 5, exit 1: ModuleNotFoundError" in finding.problem


def test_a_small_campaign_finds_nothing():
    command = [sys.executable, "-m", "tests.hostile.campaign", "--only", "stored_values"]
    done = subprocess.run(
        [*command, "--share", "0.001"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "| stored values | 200 |" in done.stdout
