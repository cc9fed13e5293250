import subprocess
import sys

import numpy as np

from talka.machine import peak_memory_bytes

LARGE = 400_000_000


def test_what_was_given_back_counts():
    np.ones(LARGE, np.uint8)
    assert peak_memory_bytes() > LARGE


def test_what_the_parent_holds_does_not():
    held = np.ones(LARGE, np.uint8)
    code = "from talka.machine import peak_memory_bytes; print(peak_memory_bytes())"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout
    assert int(output) < LARGE < peak_memory_bytes()
    assert held.all()


def test_what_a_finished_child_held_does():
    code = f"import numpy; numpy.ones({3 * LARGE}, numpy.uint8)"
    subprocess.run([sys.executable, "-c", code], check=True)
    assert peak_memory_bytes() > 3 * LARGE
