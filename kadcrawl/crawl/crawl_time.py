"""The time for which the swarm has crawled (--max-time), as far as one peer knows.

Each peer counts by its own clock the time in which it has URLs to fetch and no reason to pause. Peers tell each other
the time they know, never an instant, and the longest counts. So the time of the swarm is the time in which at least one
peer crawls: a peer that joins late has the time of the others at once, and time in which no peer runs does not count.
A decision: `crawl/time_count.py` watches the clock.
"""


class CrawlTime:
    """The counted time of the swarm, and its limit. `now` is a second of any clock that runs evenly."""

    def __init__(self, limit_s: float | None, counted_s: float = 0.0) -> None:
        """Go on from the time that an earlier run has counted. Without a limit no time counts."""
        self.limit_s = limit_s
        self._counted_s = self._bounded(counted_s)
        self._since: float | None = None
        """The instant since which time counts here, or None while it does not."""

    def __repr__(self) -> str:
        return f"<CrawlTime {self._counted_s:.3f} of {self.limit_s}>"

    def set_limit(self, limit_s: float | None) -> None:
        """Take another limit, as a person has ordered while the crawl runs."""
        self.limit_s = limit_s

    def counted_s(self, now: float) -> float:
        """Return the seconds counted until now, never more than the limit."""
        running_s = 0.0 if self._since is None else max(0.0, now - self._since)
        return self._bounded(self._counted_s + running_s)

    def left_s(self, now: float) -> float | None:
        """Return the seconds left until the limit, or None without a limit."""
        return None if self.limit_s is None else self.limit_s - self.counted_s(now)

    def is_over(self, now: float) -> bool:
        """Return whether the limit is reached."""
        return self.limit_s is not None and self.counted_s(now) >= self.limit_s

    def count(self, now: float, *, is_crawling: bool) -> None:
        """Note whether this peer crawls from now on, so that time counts."""
        self._counted_s = self.counted_s(now)
        self._since = now if is_crawling and self.limit_s is not None else None

    def learn(self, counted_s: float, now: float) -> None:
        """Take the time that another peer knows, if it is longer. No peer can claim more than the limit."""
        if counted_s > self.counted_s(now):
            self._counted_s = self._bounded(counted_s)
            self._since = None if self._since is None else now

    def _bounded(self, counted_s: float) -> float:
        return 0.0 if self.limit_s is None else min(max(0.0, counted_s), self.limit_s)
