"""Hosts files: what is written is read back, and what is wrong is named with its line."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from talka.errors import HostsFileError, OutputError
from talka.network import (
    LOOPBACK,
    Hosts,
    Link,
    Network,
    NetworkHost,
    SharedCores,
    read_hosts,
    write_hosts,
)
from talka.network.hosts_file import MAX_FILE_BYTES

BY_HAND = """
[[hosts]]
name = "first"
rate = "100mbit"

[[hosts]]
name = "second"
address = "192.168.1.11"
workers = 2
cores = 8
rate = "10mbit"
rate_down = "50mbit"
latency = "5ms"
"""

OF_A_LAB = """
[shared_cores]
number = 2

[[hosts]]
name = "first"
rate = "100mbit"
burst = "12.5kB"
overhead = "0.02ms"
"""

rates = st.floats(1, 1e15) | st.integers(1, 10**6).map(lambda number: number * 1e5)
bursts = st.integers(0, 10**12).map(float)
links = st.builds(Link, st.floats(0, 1e6), rates, st.none() | rates, bursts, st.floats(0, 1e6))
names = st.text(st.characters(exclude_categories=("C", "Z")), min_size=1, max_size=20)
hosts = st.builds(
    NetworkHost,
    names,
    links,
    st.integers(1, 100),
    st.none() | st.integers(1, 100_000),
    st.just("") | names,
)
contents = st.builds(
    Hosts,
    st.lists(hosts, min_size=1, max_size=5, unique_by=lambda host: host.name).map(tuple),
    links,
    st.none() | st.builds(SharedCores, st.integers(1, 100_000), st.floats(0, 1e6)),
)


@settings(max_examples=40)  # each file is synced to the disk
@given(contents)
def test_what_is_written_is_read(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("hosts") / "hosts.toml"
    write_hosts(path, content)
    assert read_hosts(path) == content


def test_a_file_by_hand_may_leave_things_out(tmp_path):
    (tmp_path / "hosts.toml").write_text(BY_HAND)
    found = read_hosts(tmp_path / "hosts.toml")
    assert found.hosts == (
        NetworkHost("first", Link(0.0001, 1e8)),
        NetworkHost("second", Link(0.005, 1e7, 5e7), 2, 8, "192.168.1.11"),
    )
    assert found.network == Network(
        (Link(0.0001, 1e8), Link(0.005, 1e7, 5e7)), workers_per_host=(1, 2), inner=LOOPBACK
    )


def test_a_written_file_is_for_people(tmp_path):
    write_hosts(tmp_path / "a.toml", Hosts((NetworkHost("a", Link(0.0002, 94.5e6, 4e8), 1, 2),)))
    assert (tmp_path / "a.toml").read_text() == (
        '[inner]\nrate = "20gbit"\nlatency = "0.03ms"\n\n[[hosts]]\nname = "a"\nworkers = 1\n'
        'cores = 2\nrate = "94.5mbit"\nrate_down = "400mbit"\nlatency = "0.2ms"\n'
    )


@pytest.mark.parametrize(
    "former, new, line, problem",
    [
        ('rate = "10mbit"', "rat = 1", 11, "unknown key 'rat'. Did you mean rate?"),
        ('rate = "10mbit"', 'rate = "10mbits"', 11, "rate = '10mbits', but it must be a rate"),
        ('rate = "10mbit"', "rate = 10", 11, "rate = 10, but it must be a rate"),
        ('rate = "10mbit"', 'rate = "1e300bit"', 11, "must be a rate from 1bit"),
        ('rate = "10mbit"', "", 6, "a host without rate. Add rate: a rate"),
        ('name = "second"', "", 6, "a host without name"),
        ('name = "second"', 'name = "first"', 7, "two hosts with the name 'first'"),
        ('name = "second"', 'name = "a\\nb"', 7, "must be text of 1 to 253 printable"),
        ('latency = "5ms"', 'latency = "5 parsec"', 13, "must be a time"),
        ('latency = "5ms"', 'latency = "2e6s"', 13, "must be a time"),
        ("workers = 2", "workers = 0", 9, "must be a number from 1 to 1,000"),
        ("workers = 2", "workers = true", 9, "must be a number from 1 to 1,000"),
        ("workers = 2", "workers = 1000", None, "has 1,001 workers on all hosts"),
        ("cores = 8", "cores = 8.5", 10, "must be a number from 1 to 100,000"),
        ("cores = 8", "cores = ", 10, "is not TOML"),
        ("[[hosts]]\nname = \"first\"", "[host]\nname = \"first\"", 2, "Did you mean hosts?"),
        ("\n[[hosts]]\nname = \"first\"", "[inner]\nname = \"first\"", 2, "unknown key 'name'"),
    ],
)  # fmt: skip
def test_an_error_names_file_and_line(tmp_path, former, new, line, problem):
    path = tmp_path / "hosts.toml"
    assert former in BY_HAND
    path.write_text(BY_HAND.replace(former, new, 1))
    with pytest.raises(HostsFileError) as caught:
        read_hosts(path)
    assert problem in str(caught.value)
    assert caught.value.line == line
    assert str(caught.value).startswith(f"{path}, line {line}: " if line else f"{path}: ")


@pytest.mark.parametrize(
    "content",
    [b"", b"hosts = 3", b"hosts = [3]", b"hosts = []", b"\xff", b"x" * (MAX_FILE_BYTES + 1)],
)
def test_other_files_are_refused(tmp_path, content):
    path = tmp_path / "hosts.toml"
    path.write_bytes(content)
    with pytest.raises(HostsFileError):
        read_hosts(path)
    with pytest.raises(HostsFileError, match="cannot be read"):
        read_hosts(tmp_path / "missing.toml")


@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_any_bytes_are_hosts_or_an_error(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("hosts") / "hosts.toml"
    path.write_bytes(content)
    with pytest.raises(HostsFileError):
        read_hosts(path)


def test_nothing_is_written_that_could_not_be_read(tmp_path):
    path = tmp_path / "hosts.toml"
    with pytest.raises(HostsFileError, match="printable"):
        write_hosts(path, Hosts((NetworkHost("a\nb", Link(0, 1e6)),)))
    with pytest.raises(OutputError):
        write_hosts(tmp_path / "missing" / "hosts.toml", Hosts((NetworkHost("a", Link(0, 1e6)),)))
    assert not path.exists()


def test_a_lab_shares_its_cores_among_hosts(tmp_path):
    (tmp_path / "hosts.toml").write_text(OF_A_LAB)
    network = read_hosts(tmp_path / "hosts.toml").network
    assert network.cores == SharedCores(2)
    assert network.links == (Link(0.0001, 1e8, burst_bytes=12_500, overhead_s=2e-5),)


@pytest.mark.parametrize(
    "before, after",
    [
        ("number = 2", "number = 0"),
        ("number = 2", "numbers = 2"),
        ("number = 2", ""),
        ('"12.5kB"', '"-1kB"'),
        ('"0.02ms"', '"2 apples"'),
        ("[shared_cores]\nnumber = 2", "shared_cores = 2"),
    ],
)
def test_wrong_shared_cores_bursts_and_overheads_are_refused(tmp_path, before, after):
    (tmp_path / "hosts.toml").write_text(OF_A_LAB.replace(before, after))
    with pytest.raises(HostsFileError):
        read_hosts(tmp_path / "hosts.toml")
