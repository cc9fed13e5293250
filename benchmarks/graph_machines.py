"""What does a superstep of PageRank send between two machines, beside the prediction?

    python -m benchmarks.graph_machines --preset smoke        # needs root or user namespaces
    python -m benchmarks.graph_machines --preset full --json FILE --markdown FILE

Two hosts in a lab on this machine, Ray on both, the driver on the first, R-MAT graphs with 16 edges
per vertex. Predicted: 8 bytes for every mirror whose owner is on the other machine. Payload: bytes
that partitions sent to each other, as they count them. Link: all bytes in both directions with the
headers of every frame and Ray's own messages, as counted by the queues of the links, between two
supersteps, so that start-up and topology are excluded. Headers of TCP, IP and Ethernet are 4.6%.

Ray sends outputs below 100 kB to the driver, and from there with every task that needs them: values,
messages and degrees of a small partition, which could stay in place, are then sent in each superstep.
The amount depends on the host of the partition with the hubs. `RAY_max_direct_call_object_size` in
the environment of `ray start`, on all machines, changes that limit: both are measured. What remains
above the headers are Ray's messages about tasks: about 30 kB per task away from the driver.
"""

import json
import secrets
import sys
import tempfile
from itertools import product
from pathlib import Path

from benchmarks.harness import arguments, publish
from talka.lab import Lab, LabConfig, LabRunOptions

INLINE_LIMITS_BYTES = [
    102_400,
    4_096,
]  # the default of Ray; a value that keeps data in place
PRESETS = {
    "smoke": {
        "rates": [1e9],
        "limits": [4_096],
        "scales": [11],
        "partitions": [2],
        "supersteps": 5,
        "idle_s": 0.5,
    },
    "full": {
        "rates": [1e9, 1e8],
        "limits": INLINE_LIMITS_BYTES,
        "scales": [14, 16, 18],
        "partitions": [2, 4],
        "supersteps": 20,
        "idle_s": 3.0,
    },
}


def run(lab, scale, settings, limit_bytes):
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.json"
        command = [sys.executable, "-W", "ignore", "-m", "benchmarks.graph_machines_rank"]
        command += [str(scale), str(settings["supersteps"]), str(settings["idle_s"]), str(out)]
        environment = {
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN": secrets.token_hex(32),
            "RAY_max_direct_call_object_size": str(limit_bytes),
        }
        lab.run(
            [*command, *map(str, settings["partitions"])],
            LabRunOptions(timeout_s=600, environment=environment),
        )
        return json.loads(out.read_text())


def rows_of(answer, scale):
    idle = answer["idle_bytes_per_s"]
    return [
        {
            "scale": scale,
            "edges": f"{answer['edges']:,}",
            "partitions": row["partitions"],
            "machines": row["machines"],
            "link/predicted": f"{row['interface_bytes'] / row['predicted_bytes']:.3f}",
            "predicted kB": f"{row['predicted_bytes'] / 1e3:.1f}",
            "link kB": f"{row['interface_bytes'] / 1e3:.1f}",
            "of it idle Ray kB": f"{idle * row['seconds'] / 1e3:.1f}",
            "payload/predicted, all pairs": (
                f"{row['payload_all_pairs_bytes'] / row['predicted_all_pairs_bytes']:.3f}"
            ),
            "s a superstep": f"{row['seconds']:.3f}",
        }
        for row in answer["rows"]
    ]


def main():
    args = arguments(__doc__, PRESETS)
    settings = PRESETS[args.preset]
    tables = {}
    with Lab(LabConfig(num_hosts=2, rate_bits_per_s=settings["rates"][0])) as lab:
        for rate, limit in product(settings["rates"], settings["limits"]):
            lab.set_rate(rate)
            title = f"{rate / 1e6:.0f} Mbit/s, outputs up to {limit:,} bytes go through the driver"
            tables[title] = []
            for scale in settings["scales"]:
                tables[title] += rows_of(run(lab, scale, settings, limit), scale)
                print(f"{title}, scale {scale}: done", file=sys.stderr)
    publish(args, __doc__.splitlines()[0], tables)


if __name__ == "__main__":
    main()
