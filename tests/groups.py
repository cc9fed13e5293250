"""How tests are shared among two processes, and in which order.

Tests of one file stay together, so that fixtures of a module are made once. All tests that need Ray
are one group: Ray starts once per run, and ends after the last of them, because its daemons take a
sixth of a core even when they do nothing. Groups that take long come first; short ones at the end
keep both processes busy until the last second.
"""

import re

import pytest
from xdist.scheduler import LoadScopeScheduling

RAY = "ray"
LONG = (
    "tests/compress/test_contract.py",  # compiles the kernels that those below need, too
    "tests/jobs/embeddings/test_resume.py",
    "tests/test_benchmarks.py",
    "tests/train/test_hook.py",
    "tests/exchange/test_exchanges.py",
    "tests/engine/test_cleanup.py",
    "tests/hostile/test_payloads.py",
)


_RAY_WORD = re.compile(r"(?<![a-z])ray(?![a-z])")


def needs_ray(name):
    """Return whether a test, by its name, uses the shared Ray, or starts one.

    Doctests in src/ do not: hooks of `tests/conftest.py`, such as the one that ends Ray after the
    last test of the group, are not called for them.
    """
    return name.startswith("tests/") and _RAY_WORD.search(name) is not None


def group_of(name):
    return RAY if needs_ray(name) else name.partition("::")[0]


def place_of(name):
    """Sort key: Ray, long files in the order above, then everything else as it was collected."""
    group = group_of(name)
    if group == RAY:
        return 0
    return 1 + (LONG.index(group) if group in LONG else len(LONG))


def check_name(item):
    """Tests that use the shared Ray have it in their name: two processes would start two."""
    if "ray_cluster" in item.fixturenames and not needs_ray(item.nodeid):
        raise pytest.UsageError(
            f"{item.nodeid} uses Ray: its name, or its file's, should have `ray`"
        )


class Groups(LoadScopeScheduling):
    """Gives whole groups to the test processes. xdist's own `loadgroup` fails with pytest 9.2."""

    def _split_scope(self, nodeid):
        return group_of(nodeid)
