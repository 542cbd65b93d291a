"""The response deadline decides how long the rest of an answer is waited for. A plain object: times are arguments.

The earliest of three bounds counts. A request may take `fetch_timeout_s` in all. Its body may be silent for
`idle_timeout_s`. After `rate_grace_s` the body must have come at `rate_min_bytes_s` on average, as a slow drip is
neither silent nor ever over. Before the head of the answer only the first bound applies, as some pages take long to
make. While the peer pauses the answer no bound applies. Few large bodies are read at a time, so a large body must come
at `large_rate_min_bytes_s` as long as others wait for its slot: else a server that sends most of a body and then drips
would keep the slot for all of `fetch_timeout_s`.
"""

from collections.abc import Callable

from kadcrawl.crawl.fetch.result import FetchError
from kadcrawl.settings.limits import Limits

LARGE_LOOK_S = 10.0
"""Seconds between two looks at the progress of a large body."""


class ResponseDeadline:
    """Decides when to give up on one answer. All times are seconds of one monotonic clock."""

    def __init__(self, limits: Limits, now: float) -> None:
        self._limits = limits
        self._end_at = now + limits.fetch_timeout_s
        self._head_at: float | None = None
        self._paused_at: float | None = None
        self._resumed_at = now
        self._paused_s = 0.0
        self._last_at = now
        self.body_bytes = 0
        self._others_wait: Callable[[], bool] | None = None
        self._looked: tuple[float, int] = now, 0
        """The time of the last look at a large body, and its bytes then."""

    def head_came(self, now: float) -> None:
        self._head_at = self._last_at = now

    def bytes_came(self, count: int, now: float) -> None:
        self.body_bytes += count
        self._last_at = now

    def pause(self, now: float) -> None:
        """The answer is not read for a while, for a reason of ours: that time does not count."""
        self._paused_at = now

    def resume(self, now: float) -> None:
        if self._paused_at is not None and self._head_at is not None:
            paused_s = now - self._paused_at
            self._paused_at = None
            self._resumed_at, self._paused_s = now, paused_s
            self._end_at += paused_s
            self._head_at += paused_s
            self._last_at += paused_s

    def stood_still(self, seconds: float) -> None:
        """The whole process stood still, as by SIGSTOP: what came meanwhile is read only now. That time does not
        count."""
        self._end_at += seconds
        self._last_at += seconds
        self._looked = self._looked[0] + seconds, self._looked[1]
        if self._head_at is not None:
            self._head_at += seconds

    def broke_by_pause(self, now: float) -> bool:
        """Say whether an answer that breaks off now does so as we paused: it was read for no longer since then.

        A server gives up a client that reads nothing, and that shows only after the pause.
        """
        return now - self._resumed_at < self._paused_s

    def has_slot(self, now: float, others_wait: Callable[[], bool]) -> None:
        """The body is large and has a place, for which others may wait."""
        self._others_wait = others_wait
        self._looked = now, self.body_bytes

    def verdict(self, now: float) -> FetchError | None:
        """Tell why to give up now, if so."""
        if self._paused_at is not None:
            return None
        looked_at, looked_bytes = self._looked
        if self._others_wait is not None and now >= looked_at + LARGE_LOOK_S:
            self._looked = now, self.body_bytes
            due_bytes = (now - looked_at) * self._limits.large_rate_min_bytes_s
            if self.body_bytes - looked_bytes < due_bytes and self._others_wait():
                return FetchError.TOO_SLOW
        due, failure = self._due()
        return failure if now >= due else None

    def look_again_at(self, now: float) -> float:
        """Return the time to ask for the next verdict. No verdict can fall earlier, whatever arrives until then."""
        if self._paused_at is not None:
            return now + self._limits.idle_timeout_s
        if self._head_at is None:
            return min(self._end_at, now + min(self._limits.idle_timeout_s, self._limits.rate_grace_s))
        due = self._due()[0]
        return due if self._others_wait is None else min(due, self._looked[0] + LARGE_LOOK_S)

    def _due(self) -> tuple[float, FetchError]:
        end = (self._end_at, FetchError.TIMEOUT)
        if self._head_at is None:
            return end
        limits = self._limits
        slow_s = max(limits.rate_grace_s, self.body_bytes / limits.rate_min_bytes_s)
        return min(
            end,
            (self._last_at + limits.idle_timeout_s, FetchError.IDLE),
            (self._head_at + slow_s, FetchError.TOO_SLOW),
        )
