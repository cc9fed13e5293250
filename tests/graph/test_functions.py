"""Functions as text: when a cached text is used again, and when not."""

import math

import pytest

from talka.errors import ProgramError
from talka.graph.programs.functions import function_text


def scaled_by(factor):
    return lambda value: value * factor


@pytest.mark.parametrize("others", [(1, 1.0, True), (0.0, -0.0), (math.exp, math.log)])
def test_equal_functions_with_other_constants_have_other_texts(others):
    texts = [function_text(scaled_by(constant), "message").text for constant in others]
    assert len(set(texts)) == len(others)
    again = [function_text(scaled_by(constant), "message").text for constant in others]
    assert again == texts


def test_a_text_follows_the_names_that_the_function_refers_to(monkeypatch):
    def message(value):
        return value * FACTOR  # noqa: F821

    with pytest.raises(ProgramError, match="the name 'FACTOR' is not defined"):
        function_text(message, "message")
    monkeypatch.setitem(globals(), "FACTOR", 2)
    assert "message__FACTOR = 2" in function_text(message, "message").text
    monkeypatch.setitem(globals(), "FACTOR", 3)
    assert "message__FACTOR = 3" in function_text(message, "message").text


def test_a_text_follows_the_helpers_of_the_function():
    texts = set()
    for factor in (2, 3):
        helper = scaled_by(factor)
        texts.add(function_text(lambda value: helper(value), "message").text)  # noqa: B023
    assert len(texts) == 2


def test_the_same_function_is_the_same_text_under_each_name():
    double = scaled_by(2)
    assert function_text(double, "message").name == "message"
    assert "def update(" in function_text(double, "update").text
