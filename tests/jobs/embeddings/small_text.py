"""A small text with structure to learn, and the job on it.

Ten topics of 28 words each and 20 words that occur anywhere. A line keeps to its topic, except for
about every fourth word: without rare pairs the topics could not be distinguished.
"""

import json
import random
from pathlib import Path

from talka.data.text import PairOptions
from talka.events import Stream
from talka.jobs.base import execute
from talka.jobs.embeddings.config import EmbedConfig, TextConfig
from talka.jobs.embeddings.plan import EmbedPlan
from talka.jobs.unfinished import folder_beside
from talka.train.models.glove import GloVeConfig

TOPICS = [[f"{letter}{place:02}" for place in range(28)] for letter in "bcdfghjklm"]
ANYWHERE = [f"a{place:02}" for place in range(20)]


def small_text(*, num_lines=2_000, seed=1):
    random_of = random.Random(seed)

    def word(topic):
        words = topic if random_of.random() < 0.75 else random_of.choice([*TOPICS, ANYWHERE])
        return words[int(len(words) * random_of.random() ** 2)]

    def line():
        topic = random_of.choice(TOPICS)
        return " ".join(word(topic) for _ in range(random_of.randint(3, 15)))

    return "".join(f"{line()}\n" for _ in range(num_lines))


def write_small_text(folder, **options):
    path = folder / "text.txt"
    path.write_text(small_text(**options))
    return path


def config_of(corpus, *, seed=0, window=5, x_max=10.0, min_count=5, tokenizer="words", **options):
    text = TextConfig(
        corpus=(str(corpus),),
        min_count=min_count,
        tokenizer=tokenizer,
        pairs=PairOptions(window=window, seed=seed),
    )
    defaults = {"dim": 10, "epochs": 3, "threads": 1}
    return EmbedConfig(text=text, glove=GloVeConfig(x_max=x_max), **{**defaults, **options})


def embed(config, out, **options):
    """Run the job like the command, with a run directory next to `out`."""
    return execute(EmbedPlan(config, out, **options), root=out.parent / "runs")


def interrupt(config, out, when, **options):
    """Run the job, and interrupt it at the first event for which `when()` is true."""
    pressed = []

    def listen(event):
        if not pressed and when():
            pressed.append(event)
            raise KeyboardInterrupt

    events = Stream()
    try:
        with events.listening(listen):
            EmbedPlan(config, out, **options).run(events)
    except KeyboardInterrupt:
        assert pressed
        return
    raise AssertionError("the job was done before the moment came")


def num_epochs_done(out):
    losses = folder_beside(out) / "losses.json"
    try:
        return len(json.loads(losses.read_text())["loss"])
    except FileNotFoundError:  # not yet, or the run has finished
        return 0


def files_in(folder: Path):
    return {path.name: path.read_bytes() for path in folder.iterdir()}
