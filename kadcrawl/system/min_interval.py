"""Instants kept apart: what comes alone goes at once, and what comes thick and fast goes together.

Waiting for company before every batch would cost a quiet peer as much time as a busy one, and while a page's links and
its DONE wait, a crash costs a second fetch.
"""


class MinInterval:
    """Says how long the next of something waits, so that two are at least `apart_s` apart. Instants in seconds."""

    __slots__ = ("_next_at", "interval_s")

    def __init__(self, interval_s: float) -> None:
        self.interval_s = interval_s
        self._next_at = float("-inf")

    def wait_s(self, now: float) -> float:
        """Return how long the next one, wanted since `now`, has to wait from then; it will go then."""
        at = max(now, self._next_at)
        self._next_at = at + self.interval_s
        return at - now
