"""How fast is each compressor on one core, beside a memory copy, and what does it save and lose?

    python -m benchmarks.compressors --preset smoke          # some seconds
    python -m benchmarks.compressors --preset full --json FILE --markdown FILE

Each call uses other Gaussian gradients in one tensor. Encoding reads the tensor (and reads and
writes the residual with `+ef`) and writes a payload; decoding adds the values to another tensor.
GB/s count float32 values. Each row is measured in turns with a memory copy of the same values. The
speed relative to that copy comes first, since other processes on the machine disturb both alike.
"""

import numpy as np
import torch

from benchmarks.harness import arguments, interleaved, publish, spread
from talka.compress import Payload, compressor, layout_of

PRESETS = {
    "smoke": {"values": 100_000, "repeats": 2},
    "full": {"values": 32_000_000, "repeats": 9},
}
NUM_GRADIENTS = 10
SMALL = [16, 64, 128, 256, 512, 1024, 4096]
SPECS = [
    "none",
    "fp16",
    "fp16+ef",
    "bf16",
    "trunc16",
    "onebit",
    "onebit+ef",
    "onebit:all+ef",
    "uniform:3",
    "uniform:3/max/512+ef",
    "qsgd:7/fixed",
    "qsgd:7",
    "qsgd:7/max/512+ef",
    "terngrad",
    "topk:0.01",
    "topk:0.01+ef",
    "randomk:0.01+ef",
    "threshold:auto+ef",
    "threshold:3+ef",
    "significance:3+ef",
]


class Case:
    """Tensors of one size that all rows share."""

    def __init__(self, num_values):
        generator = torch.Generator().manual_seed(0)
        self._noise = torch.randn(num_values + 64 * NUM_GRADIENTS, generator=generator)
        self.num_values, self.num_bytes, self._turn = num_values, 4 * num_values, 0
        self.values = self._noise[:num_values]
        self.out = self.values.clone()

    def gradient(self):
        """Return other values each time: slices of the same noise with different offsets."""
        start = 64 * (self._turn % NUM_GRADIENTS)
        self._turn += 1
        return self._noise[start : start + self.num_values]

    def copy(self):
        np.copyto(self.out.numpy(), self.values.numpy())

    def speed(self, seconds):
        return f"{self.num_bytes / seconds / 1e9:.2f}"


def compressor_row(case, spec, repeats):
    one = compressor(spec)
    room = torch.zeros(one.max_bytes(case.num_values), dtype=torch.uint8)
    error = relative_error(case, one, one.encode(case.values, out=room))
    for _ in range(NUM_GRADIENTS):  # until residuals are what they will be
        payload = one.encode(case.gradient(), out=room)
    sent = Payload(payload.data.clone())
    candidates = {
        "copy": case.copy,
        "encode": lambda: one.encode(case.gradient(), out=room),
        "decode": lambda: one.decode(sent, case.out, add=True),
    }
    seconds = medians(candidates, repeats)
    return {
        "compressor": spec,
        "encode, of a copy": f"{seconds['copy'] / seconds['encode']:.2f}",
        "decode and add, of a copy": f"{seconds['copy'] / seconds['decode']:.2f}",
        "bytes a value": f"{sent.num_bytes / case.num_values:.4f}",
        "relative error": f"{error:.4f}",
        "encode GB/s": case.speed(seconds["encode"]),
        "decode and add GB/s": case.speed(seconds["decode"]),
    }


def relative_error(case, one, payload):
    """Return the relative error of one encoding, without error feedback."""
    one.decode(payload, case.out)
    return float((case.out - case.values).norm() / case.values.norm())


def medians(candidates, repeats):
    for run in candidates.values():
        run()
    found = interleaved(candidates, repeats=repeats)
    return {name: spread(times)[0] for name, times in found.items()}


def peer_rows(case, repeats):
    halves = torch.zeros(case.num_values, dtype=torch.float16)
    count = case.num_values // 100
    peers = {
        "memory copy": case.copy,
        "torch float32 to float16": lambda: halves.copy_(case.values),
        "torch float16 to float32": lambda: case.out.copy_(halves),
        "torch add float16 to float32": lambda: case.out.add_(halves),
        "torch.topk of 1%, magnitudes": lambda: torch.topk(case.values.abs(), count, sorted=False),
    }
    seconds = medians(peers, min(repeats, 3))
    return [
        {
            "peer": name,
            "of a copy": f"{seconds['memory copy'] / taken:.2f}",
            "GB/s": case.speed(taken),
        }
        for name, taken in seconds.items()
    ]


def small_row(num_values, repeats):
    """Compare coded with whole small tensors: below which link rate does coding pay off?"""
    layout = layout_of({f"bias{number}": (num_values,) for number in range(100)})
    values = torch.randn(100 * num_values)
    out, found, sizes = torch.zeros_like(values), {}, {}
    for name, limit in (("coded", 0), ("whole", num_values + 1)):
        one = compressor("onebit+ef", min_compressed_values=limit)

        def there_and_back(one=one):
            one.decode(one.encode(values, layout), out, layout)

        found[name], sizes[name] = there_and_back, one.encode(values, layout).num_bytes
    seconds = medians(found, 5 * repeats)
    saved_bits = 8 * (sizes["whole"] - sizes["coded"])
    more_s = seconds["coded"] - seconds["whole"]
    worth_below = f"{saved_bits / more_s / 1e6:.0f} Mbit/s" if more_s > 0 else "any rate"
    return {
        "values of a tensor": num_values,
        "coding is worth it below": worth_below if saved_bits > 0 else "no rate",
        "us a tensor coded": f"{1e4 * seconds['coded']:.1f}",
        "us whole": f"{1e4 * seconds['whole']:.1f}",
        "bytes coded": sizes["coded"] // 100,
        "bytes whole": sizes["whole"] // 100,
    }


def main():
    args = arguments(__doc__, PRESETS)
    preset = PRESETS[args.preset]
    torch.set_num_threads(1)
    case = Case(preset["values"])
    size = f"{preset['values']:,} values on one core"
    tables = {
        f"Compressors, {size}": [compressor_row(case, spec, preset["repeats"]) for spec in SPECS],
        f"What else there is, {size}": peer_rows(case, preset["repeats"]),
        "Small tensors with onebit+ef, there and back": [
            small_row(num_values, preset["repeats"]) for num_values in SMALL
        ],
    }
    publish(args, "How fast is each compressor, beside a memory copy?", tables)


if __name__ == "__main__":
    main()
