import json

import pytest

from talka.cli.commands import explain_collectives
from talka.cli.parser import CommandParser, UsageError
from talka.errors import InvalidValueError, OptionError
from talka.network import COLLECTIVES, EXCHANGES, LOOPBACK, Hosts, Link, NetworkHost, write_hosts


def parse(*words):
    parser = CommandParser(description=explain_collectives.__doc__)
    explain_collectives.add_arguments(parser)
    return parser.parse_args(words)


def explain(capsys, *words):
    assert explain_collectives.run(parse(*words)) == 0
    return capsys.readouterr().out


def explain_json(capsys, *words):
    return json.loads(explain(capsys, *words, "--format", "json"))


def row(answer, group, scheme):
    return next(row for row in answer[group] if row["scheme"] == scheme)


def test_the_table_names_every_scheme_once_in_its_group(capsys):
    lines = explain(capsys).splitlines()
    names = [line.split("  ")[0].removesuffix(" *").strip() for line in lines]
    start = names.index("Exchanges")
    assert [name for name in names[:start] if name in COLLECTIVES] == list(COLLECTIVES)
    assert [name for name in names[start:] if name in EXCHANGES] == list(EXCHANGES)


def test_one_exchange_is_marked_as_the_cheapest(capsys):
    marked = [line for line in explain(capsys).splitlines() if " * " in line]
    assert len(marked) == 1
    assert marked[0].startswith("two-phase *")
    assert "350 ms" in marked[0]


def test_the_table_fits_its_line_unbroken(capsys):
    lines = explain(capsys, "--workers", "100", "--bytes", "123.4GB").splitlines()
    assert max(len(line.rstrip()) for line in lines) < 200
    assert len(lines) <= len(COLLECTIVES) + len(EXCHANGES) + 10


def test_json_gives_plain_numbers(capsys):
    answer = explain_json(capsys, "--workers", "8", "--bytes", "25MB", "--rate", "1gbit")
    ring = row(answer, "exchanges", "ring")
    assert ring["max_sent_bytes"] == 2 * 7 / 8 * 25e6
    assert ring["seconds"] == pytest.approx(14 * (0.0001 + 0.025))
    assert ring["rounds"] == 14
    assert ring["sent_bytes_by_rank"] == [ring["max_sent_bytes"]] * 8
    assert answer["cheapest_average"] == "two-phase"
    assert answer["workers"] == 8


def test_unequal_rates_set_the_number_of_workers(capsys):
    answer = explain_json(capsys, "--rates", "1gbit,1gbit,100mbit", "--latency", "0")
    assert answer["workers"] == 3
    assert answer["rates_bits_per_s"] == [1e9, 1e9, 1e8]
    expected = 4 * 25e6 / 3 * 8 / 1e8
    assert row(answer, "exchanges", "ring")["seconds"] == pytest.approx(expected)


def test_hosts_make_the_hierarchy_worth_it(capsys):
    answer = explain_json(capsys, "--workers", "8", "--hosts", "2")
    assert answer["workers_per_host"] == [4, 4]
    assert answer["cheapest_average"] == "hierarchical"
    assert "2 hosts with 4, 4 workers" in explain(capsys, "--workers", "8", "--hosts", "2")


def test_rates_are_per_host_when_hosts_are_named(capsys):
    answer = explain_json(capsys, "--hosts", "2", "--rates", "1gbit,100mbit")
    assert answer["workers"] == 8
    assert answer["rates_bits_per_s"] == [1e9, 1e8]


def test_one_worker_has_nothing_to_send_and_no_cheapest(capsys):
    answer = explain_json(capsys, "--workers", "1")
    assert answer["cheapest_average"] is None
    assert row(answer, "exchanges", "ring")["seconds"] == 0
    assert "*" not in explain(capsys, "--workers", "1")


@pytest.mark.parametrize(
    "words, named",
    [
        (("--workers", "0"), "--workers"),
        (("--workers", "-3"), "--workers"),
        (("--workers", "1.5"), "--workers"),
        (("--workers", "1M"), "--workers"),
        (("--workers", "four"), "--workers"),
        (("--rate", "1e-300bit"), "--rate"),
        (("--bytes", "big"), "--bytes"),
        (("--rate", "0gbit"), "--rate"),
        (("--rate", "100"), "--rate"),
        (("--latency", "soon"), "--latency"),
        (("--rates", ""), "--rates"),
        (("--rates", "1gbit,"), "--rates"),
        (("--rates", "1gbit,1gbit", "--workers", "3"), "--rates"),
        (("--rates", "1gbit,1gbit,1gbit", "--hosts", "2"), "--rates"),
        (("--rates", ",".join(["1gbit"] * 1001)), "--rates"),
        (("--hosts", "9"), "--hosts"),
        (("--hosts", "0"), "--hosts"),
        (("--inner-rate", "fast"), "--inner-rate"),
        (("--inner-latency", "-1ms"), "--inner-latency"),
    ],
)
def test_bad_values_are_named(words, named):
    words = [f"{name}={value}" for name, value in zip(words[::2], words[1::2], strict=True)]
    with pytest.raises(InvalidValueError) as caught:
        explain_collectives.run(parse(*words))
    assert caught.value.name == named
    assert caught.value.exit_code == 2


def test_too_few_rates_say_how_many_are_needed():
    words = ["--rates", "1gbit,1gbit", "--workers", "3"]
    with pytest.raises(InvalidValueError, match="one rate for each of 3 workers, not 2 rates"):
        explain_collectives.run(parse(*words))


def test_hosts_may_receive_faster_than_they_send(capsys):
    words = ["--workers", "3", "--bytes", "1MB", "--rate", "8mbit", "--latency", "0"]
    answer = explain_json(capsys, *words, "--rate-down", "16mbit")
    assert row(answer, "collectives", "gather")["seconds"] == 1.0
    assert answer["rates_down_bits_per_s"] == [16e6] * 3
    unequal = ["--rates", "8mbit,8mbit", "--rates-down", "32mbit,16mbit", "--bytes", "1MB"]
    assert explain_json(capsys, *unequal)["rates_down_bits_per_s"] == [32e6, 16e6]
    assert "8.00 Mbit/s up and 32.0 Mbit/s down, 8.00 Mbit/s up and 16" in explain(capsys, *unequal)


def test_rates_down_come_with_as_many_rates_up():
    with pytest.raises(OptionError, match="--rates-down needs --rates"):
        explain_collectives.run(parse("--rates-down", "1gbit,1gbit"))
    with pytest.raises(InvalidValueError, match="--rates-down .* one rate for each of 2 workers"):
        explain_collectives.run(parse("--rates", "1gbit,1gbit", "--rates-down", "1gbit"))


def test_the_network_may_come_from_a_hosts_file(capsys, tmp_path):
    path = tmp_path / "hosts.toml"
    hosts = [NetworkHost("a", Link(0.001, 1e6, 2e6), 2), NetworkHost("b", Link(0.002, 3e6))]
    write_hosts(path, Hosts(tuple(hosts), Link(0.0001, 1e9)))
    answer = explain_json(capsys, "--network", str(path))
    assert answer["rates_bits_per_s"] == [1e6, 3e6]
    assert answer["rates_down_bits_per_s"] == [2e6, 3e6]
    assert (answer["workers_per_host"], answer["inner_rate_bits_per_s"]) == ([2, 1], 1e9)
    for words in (("--workers", "2"), ("--latency", "1s"), ("--rate-down", "1gbit")):
        with pytest.raises(OptionError, match=f"--network cannot be combined with {words[0]}"):
            explain_collectives.run(parse("--network", str(path), *words))


def test_one_rate_and_many_rates_exclude_each_other():
    with pytest.raises(UsageError, match="^--rates cannot be combined with --rate"):
        parse("--rate", "100mbit", "--rates", "1gbit,1gbit")


@pytest.mark.parametrize("size, rate", [("1e308", "1bit"), ("1e308", "1gbit")])
def test_absurd_values_give_an_answer_instead_of_a_traceback(capsys, size, rate):
    assert "inf s" in explain(capsys, "--bytes", size, "--rate", rate, "--hosts", "2")


def test_help_shows_every_default(capsys):
    with pytest.raises(SystemExit):
        parse("--help")
    text = capsys.readouterr().out
    for default in ("8", "25MB", "1gbit", "0.1ms", "20gbit", "0.03ms", "table"):
        assert f"(default: {default}" in " ".join(text.split())


def test_the_inner_link_is_loopback_unless_said_otherwise():
    args = parse()
    assert args.inner_rate == LOOPBACK.rate_bits_per_s
    assert args.inner_latency == pytest.approx(LOOPBACK.latency_s)
