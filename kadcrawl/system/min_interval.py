"""Minimum intervals between events: a single event happens at once, and events close together are batched.

A fixed wait before every batch would cost a quiet peer as much time as a busy one. And while a page's links and its
DONE wait, a crash costs a second fetch.
"""


class MinInterval:
    """Spaces events at least `interval_s` apart. Instants in seconds."""

    __slots__ = ("_next_at", "interval_s")

    def __init__(self, interval_s: float) -> None:
        self.interval_s = interval_s
        self._next_at = float("-inf")

    def wait_s(self, now: float) -> float:
        """Return the wait of the next event, wanted since `now`. The event is taken to happen after that wait."""
        at = max(now, self._next_at)
        self._next_at = at + self.interval_s
        return at - now
