"""The size of recent sections, as an estimate of the next one's size."""

_KEPT = 0.9  # weight of all former sections at each new one


class BytesSeen:
    """Bytes per unit (a value, a word) of recent sections whose size depends on their values.

    >>> seen = BytesSeen(0.5)
    >>> seen.expected(1000)
    500.0
    >>> seen.note(100, 25)
    >>> seen.expected(1000)
    250.0
    """

    def __init__(self, guess: float = 0.0) -> None:
        """Start with a guess of the bytes per unit, used until the first section."""
        self._guess = guess
        self._num_units = self._num_bytes = 0.0

    @property
    def is_empty(self) -> bool:
        """True before the first section."""
        return not self._num_units

    def note(self, num_units: int, num_bytes: int) -> None:
        """Record the size of a section."""
        self._num_units = _KEPT * self._num_units + num_units
        self._num_bytes = _KEPT * self._num_bytes + num_bytes

    def expected(self, num_units: int) -> float:
        """Return the expected bytes of a section of this many units."""
        per_unit = self._num_bytes / self._num_units if self._num_units else self._guess
        return num_units * per_unit
