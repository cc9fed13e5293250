"""All attacks with forged input, for as many rounds as you like:

    python -m tests.hostile.campaign                  # the published numbers of rounds
    python -m tests.hostile.campaign --share 0.01     # a hundredth of them
    python -m tests.hostile.campaign --seed 7 --only saved_states

Attacks run in processes of their own, two at a time, in pieces with seeds of their own. A process
that crashes, hangs, or meets an error that is not ours is a finding: its seed is printed, and the
exit code is 1.
"""

import argparse
import concurrent.futures
import importlib
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

from tests.hostile.outcome import Outcome

ROOT = Path(__file__).parents[2]
PIECE_TIMEOUT_S = 600


class Attack(NamedTuple):
    rounds: int
    piece: int
    """Rounds of one process: a few minutes at most."""


ATTACKS = {
    "payloads": Attack(2_000_000, 100_000),
    "frames": Attack(1_000_000, 50_000),
    "stored_values": Attack(200_000, 50_000),
    "saved_states": Attack(5_000, 2_500),
    "event_files": Attack(5_000, 500),
    "graph_checkpoints": Attack(2_000, 1_000),
}


class Finding(NamedTuple):
    """What one piece of an attack came to."""

    outcome: Outcome
    problem: str
    """Empty if all went well."""


def run_piece(name: str, rounds: int, seed: int) -> Finding:
    command = [sys.executable, "-W", "ignore", "-m", "tests.hostile.campaign"]
    try:
        done = subprocess.run(
            [*command, "--piece", name, str(rounds), str(seed)],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"},
            capture_output=True,
            text=True,
            timeout=PIECE_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Finding(Outcome(0, 0), f"{name}, seed {seed}: hangs")
    if done.returncode != 0:
        lines = done.stderr.splitlines() or [f"crashed with {done.returncode}"]
        return Finding(Outcome(0, 0), f"{name}, seed {seed}, exit {done.returncode}: {lines[-1]}")
    accepted, refused = map(int, done.stdout.split()[-2:])
    return Finding(Outcome(accepted, refused), "")


def pieces_of(attack: Attack, share: float, seed: int) -> list[tuple[int, int]]:
    """(rounds, seed) of every process; all rounds together are the attack's, times the share.

    >>> pieces_of(Attack(1_000, 400), 1.0, seed=0)
    [(400, 0), (400, 1), (200, 2)]
    """
    total = max(1, round(attack.rounds * share))
    starts = range(0, total, attack.piece)
    return [(min(attack.piece, total - at), seed + number) for number, at in enumerate(starts)]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--share", type=float, default=1.0, help="of all rounds; default 1")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=ATTACKS, help="one attack alone")
    parser.add_argument("--piece", nargs=3, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.piece:
        name, rounds, seed = args.piece
        module = importlib.import_module(f"tests.hostile.{name}")
        print(*module.attack(int(rounds), int(seed)))
        return
    problems = []
    print("| forged | rounds | read as good | refused | findings | seconds |")
    print("|---|---|---|---|---|---|", flush=True)
    for name in [args.only] if args.only else ATTACKS:
        pieces, start = pieces_of(ATTACKS[name], args.share, args.seed), time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            findings = list(pool.map(lambda piece, name=name: run_piece(name, *piece), pieces))
        accepted, refused = (sum(column) for column in zip(*(f.outcome for f in findings), strict=True))  # fmt: skip
        wrong = [finding.problem for finding in findings if finding.problem]
        problems += wrong
        row = f"{name.replace('_', ' ')} | {accepted + refused:,} | {accepted:,} | {refused:,}"
        print(f"| {row} | {len(wrong)} | {time.monotonic() - start:.0f} |", flush=True)
    if problems:
        sys.exit("\n".join(problems))


if __name__ == "__main__":
    main()
