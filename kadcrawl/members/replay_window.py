"""The replay window of one sender: numbers grow, may come out of order, and each counts once (RFC 6479).

Tests: tests/members/test_keys.py
"""

WINDOW = 256
"""The distance of an accepted number behind the largest so far."""
_ALL = (1 << WINDOW) - 1


class ReplayWindow:
    """The numbers seen of one sender under one key."""

    __slots__ = ("_largest", "_seen")

    def __init__(self) -> None:
        self._largest = -1
        self._seen = 0
        """Bit i is set if the number i below the largest has been seen."""

    def is_new(self, number: int) -> bool:
        """Return whether a number has not been seen, and is inside the window."""
        ahead = number - self._largest
        return ahead > 0 or (ahead > -WINDOW and not self._seen >> -ahead & 1)

    def add(self, number: int) -> None:
        """Note a new number."""
        ahead = number - self._largest
        if ahead > 0:
            self._seen = (self._seen << ahead | 1) & _ALL if ahead < WINDOW else 1
            self._largest = number
        else:
            self._seen |= 1 << -ahead
