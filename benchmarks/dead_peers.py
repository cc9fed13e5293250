"""How long until the others know that a rank is dead, beside gloo?

    python -m benchmarks.dead_peers --preset smoke     # some seconds; the lab needs root or user namespaces
    python -m benchmarks.dead_peers --preset full --json FILE --markdown FILE

Four hosts of a lab, links of 100 Mbit/s, so that 100 MB take 8 s. The last rank kills itself (SIGKILL) or
stops (SIGSTOP) one second after all have met. Seconds are from its death until each of the other three
has raised an error: the slowest counts. Limits for silence: 1 s for talka, 8 s (the timeout of the group)
for gloo, which is measured for SIGKILL only: a stopped rank always costs it its timeout. "never" is a
call that had not returned when the run was ended after 20 s.
"""

import json
import sys
import tempfile
from pathlib import Path

from benchmarks.harness import arguments, publish
from talka.errors import GangError
from talka.lab import Lab, LabConfig, LabRunOptions

SITUATIONS = [
    "receive pending",
    "posted 2 s after the death",
    "100 MB receive in flight",
    "100 MB send in flight",
    "all-reduce in flight",
    "receive from one who waits for the dead",
]
PRESETS = {
    "smoke": {"situations": SITUATIONS[:1], "how": ["kill"], "libraries": ["talka"]},
    "full": {"situations": SITUATIONS, "how": ["kill", "stop"], "libraries": ["talka", "gloo"]},
}


def measured(lab, library, situation, how):
    """Return the seconds until the slowest of the others knew, and its error."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.json"
        words = [sys.executable, "-W", "ignore", "-m", "benchmarks.dead_peers_rank"]
        words += ["--library", library, "--situation", situation, "--how", how, "--out", str(out)]
        try:
            lab.run(words, LabRunOptions(timeout_s=20), check=False)
        except GangError:
            return None
        return max(json.loads(out.read_text())) if out.exists() else None


def main():
    args = arguments(__doc__, PRESETS)
    settings = PRESETS[args.preset]
    rows = []
    with Lab(LabConfig(num_hosts=4, rate_bits_per_s=1e8)) as lab:
        for how in settings["how"]:
            for situation in settings["situations"]:
                row = {"death": "SIGKILL" if how == "kill" else "SIGSTOP", "situation": situation}
                for library in settings["libraries"]:
                    if (library, how) == ("gloo", "stop"):
                        row["gloo s"] = "timeout"
                        continue
                    answer = measured(lab, library, situation, how)
                    row[f"{library} s"] = "never" if answer is None else f"{answer[0]:.3f}"
                    print(row, answer, file=sys.stderr)
                rows.append(row)
    publish(args, __doc__.splitlines()[0], {"Seconds until all others know": rows})


if __name__ == "__main__":
    main()
