"""Choices of the command line, from `talka train` to the process of the script."""

import dataclasses
import os

import pytest

from talka.errors import InvalidValueError, OptionError, SpecError, UnknownNameError
from talka.train import choices
from talka.train.choices import Choices, current


def test_nothing_is_chosen_outside_of_talka_train(monkeypatch):
    monkeypatch.delenv(choices.VARIABLE, raising=False)
    assert current() == Choices()
    assert set(dataclasses.asdict(current()).values()) == {None}


def test_choices_arrive_as_they_were_given(monkeypatch):
    given = Choices(
        rhythm="local-sgd:50", outer="sgd:0.9", compressor="onebit+ef", network="/tmp/a b/höst.toml"
    )
    given.check()
    for name, text in given.environment().items():
        monkeypatch.setenv(name, text)
    assert current() == given
    assert "exchange" not in os.environ[choices.VARIABLE]


@pytest.mark.parametrize("text", ["[]", "{", '{"tempo": "every-step"}', '{"rhythm": 3}', "null"])
def test_other_content_of_the_variable_is_refused(monkeypatch, text):
    monkeypatch.setenv(choices.VARIABLE, text)
    with pytest.raises(InvalidValueError, match="compressor, exchange, network, outer, rhythm"):
        current()


@pytest.mark.parametrize(
    "given, error",
    [
        ({"rhythm": "sometimes"}, UnknownNameError),
        ({"rhythm": "every-step:3"}, InvalidValueError),
        ({"rhythm": "local-sgd:"}, InvalidValueError),
        ({"rhythm": "local-sgd:-1"}, InvalidValueError),
        ({"rhythm": "delayed:"}, InvalidValueError),
        ({"rhythm": "local-sgd:5", "outer": "nesterov:0.7"}, InvalidValueError),
        ({"rhythm": "delayed:5", "outer": "sgd:0.7"}, OptionError),
        ({"outer": "adam:0.7"}, InvalidValueError),
        ({"compressor": "onebit+fe"}, SpecError),
        ({"exchange": "servers"}, UnknownNameError),
    ],
)
def test_names_are_checked(given, error):
    with pytest.raises(error):
        Choices(**given).check()


def test_all_exchanges_can_be_chosen():
    from talka.exchange.registry import EXCHANGES

    assert set(choices.EXCHANGES) == set(EXCHANGES)
    for name in choices.EXCHANGES:
        Choices(exchange=name).check()
