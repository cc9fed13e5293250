"""How the log of worker 0 is read while it grows."""

from talka.train.scripts.launch import LogReader


def append(path, text):
    with path.open("ab") as file:
        file.write(text)


def test_only_whole_lines_are_shown_until_the_end(tmp_path):
    path = tmp_path / "log"
    reader = LogReader(path)
    assert reader.lines() == b"", "it does not exist yet"
    append(path, b"one\ntw")
    assert reader.lines() == b"one\n"
    assert reader.lines() == b""
    append(path, b"o\n 50%\r 99%")
    assert reader.lines() == b"two\n 50%\r"
    assert reader.rest() == b" 99%"
    assert reader.rest() == b""


def test_much_output_is_shown_in_pieces(tmp_path):
    path = tmp_path / "log"
    lines = b"".join(b"line %d\n" % number for number in range(500_000))
    append(path, lines + b"x" * 3_000_000)
    reader, shown = LogReader(path), []
    while piece := reader.lines():
        shown.append(piece)
    assert b"".join([*shown, reader.rest()]) == lines + b"x" * 3_000_000
    assert len(shown) > 5
    assert max(map(len, shown)) < 4_000_000
