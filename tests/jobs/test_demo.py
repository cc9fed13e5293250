from pathlib import Path

from talka.events import Measured, Stream
from talka.jobs.demo import DemoPlan


class OneText:
    """An engine whose every task returns the same text."""

    def submit(self, function, share, *, python):
        return "größe in µs"

    def fetch(self, text):
        return text

    def release(self, text):
        pass


def test_what_workers_sent_is_counted_in_bytes(tmp_path, monkeypatch):
    monkeypatch.setattr("talka.jobs.demo.documentation_files", lambda: [Path(__file__)])
    corpus, events, emitted = tmp_path / "corpus.txt", Stream(), []
    with events.listening(emitted.append), events.phase("corpus") as phase:
        DemoPlan()._collect(OneText(), corpus, phase)
    assert Measured("corpus", corpus.stat().st_size, emitted[-1].seconds) == emitted[-1]
    assert corpus.stat().st_size == len("größe in µs\n".encode())
