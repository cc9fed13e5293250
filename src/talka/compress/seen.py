"""How large sections were lately: the best guess of how large the next will be."""

_KEPT = 0.9  # of what was seen before, at each new section


class BytesSeen:
    """Bytes a unit (a value, a word), of sections whose size depends on what they hold.

    >>> seen = BytesSeen(0.5)
    >>> seen.expected(1000)
    500.0
    >>> seen.note(100, 25)
    >>> seen.expected(1000)
    250.0
    """

    def __init__(self, guess: float) -> None:
        """With what to expect before the first section."""
        self._guess = guess
        self._num_units = self._num_bytes = 0.0

    def note(self, num_units: int, num_bytes: int) -> None:
        self._num_units = _KEPT * self._num_units + num_units
        self._num_bytes = _KEPT * self._num_bytes + num_bytes

    def expected(self, num_units: int) -> float:
        per_unit = self._num_bytes / self._num_units if self._num_units else self._guess
        return num_units * per_unit
