"""The work in progress of a peer's crawlers, counted against the limits of the peer.

A peer has one crawler for its own pages and one for borrowed pages. Both share one `Capacity`, so the limits on
requests, unfinished pages and bytes hold for the peer as a whole. Each crawler joins with a `WorkInProgress` of its
own, which also carries the event that wakes its loop.

Tests: tests/crawl/test_crawler.py, tests/crawl/test_capacity.py
"""

from collections.abc import Callable

from kadcrawl.settings.limits import Limits
from kadcrawl.system.event import Event

LADEN_URLS = 40
"""A peer with at least so many URLs to fetch has enough to do while its links wait for company."""


class WorkInProgress:
    """The entries that one crawler has taken from its frontier."""

    def __init__(self) -> None:
        self.slots: set[int] = set()
        """Sequence numbers of the entries whose request is not over."""
        self.taken: set[int] = set()
        """Sequence numbers of the entries neither finished nor put back."""
        self.started = 0
        """Attempts that have not ended."""
        self.unfinished_bytes = 0
        """Bytes in memory of fetched pages that are not finished."""
        self.changed = Event()
        """Set when the loop of the crawler should look again for entries to start."""
        self._eased = Event()

    def begin(self, seq: int) -> None:
        """Count a new attempt, which holds a request slot."""
        self.started += 1
        self.slots.add(seq)
        self.taken.add(seq)

    def end_request(self, seq: int) -> None:
        """Free the request slot of an entry."""
        self.slots.discard(seq)
        self._eased.set()

    def give_back(self, seq: int) -> None:
        """Forget an entry that is finished or put back."""
        self.taken.discard(seq)

    def end(self) -> None:
        """Count an attempt as over."""
        self.started -= 1
        self._eased.set()

    def add_bytes(self, count: int) -> None:
        """Add bytes that an unfinished page holds in memory. A negative count frees bytes."""
        self.unfinished_bytes += count

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until the condition holds, looking each time a request or an attempt is over."""
        while not holds():
            self._eased.clear()
            await self._eased.wait()


class Capacity:
    """The limits on work in progress that all crawlers of one peer share."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._crawlers: list[WorkInProgress] = []

    def join(self) -> WorkInProgress:
        """Return the work in progress of one more crawler."""
        work = WorkInProgress()
        self._crawlers.append(work)
        return work

    @property
    def has_room(self) -> bool:
        """One more request may start."""
        requests = started = held_bytes = 0
        for work in self._crawlers:
            requests += len(work.slots)
            started += work.started
            held_bytes += work.unfinished_bytes
        limits = self._limits
        return (
            requests < limits.fetches_max
            and started < limits.unfinished_max
            and held_bytes < limits.unfinished_bytes_max
        )

    def is_idle(self, pending: int) -> bool:
        """Return whether no request is under way, and none of these pending entries is still to be fetched.

        Entries that only wait for acknowledgements keep no peer busy.
        """
        return not any(work.slots for work in self._crawlers) and self._unfetched(pending) <= 0

    def is_laden(self, pending: int) -> bool:
        """Return whether so many of these pending entries are to be fetched that nobody needs new ones soon.

        A peer is not laden while its unfinished pages take half of their room: their links must arrive.
        """
        started = sum(work.started for work in self._crawlers)
        return self._unfetched(pending) >= LADEN_URLS and started < self._limits.unfinished_max // 2

    def _unfetched(self, pending: int) -> int:
        return pending - sum(len(work.taken) for work in self._crawlers)

    def wake_all(self, own: WorkInProgress) -> None:
        """Wake the loops of all crawlers: the caller's own last, so that crawlers with room for one take turns."""
        for work in self._crawlers:
            if work is not own:
                work.changed.set()
        own.changed.set()
