"""The limits that end the crawl of a whole swarm: `--max-pages`, `--max-bytes` and `--max-time`, at one peer.

While a limit is reached no request starts, and pending URLs stay pending: they count as no work, so that the swarm ends
once the pages under way are finished. With a larger limit the crawl goes on with them. A decision: `page_budget`,
`byte_budget` and `crawl_time` decide about each limit.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Literal, Protocol

from kadcrawl.crawl.byte_budget import ByteBudget
from kadcrawl.crawl.crawl_time import CrawlTime
from kadcrawl.crawl.page_budget import Budget
from kadcrawl.link.wire.messages import PeerRow
from kadcrawl.link.wire.peer_row import CrawlLimit


class SharedBudget(Protocol):
    """A budget that one peer shares out among all, by grants."""

    @property
    def unit(self) -> Literal["pages", "bytes"]: ...
    @property
    def granted(self) -> int: ...
    @property
    def known(self) -> Mapping[bytes, int]: ...
    @property
    def spent(self) -> bool: ...
    def learn(self, totals: dict[bytes, int], me: bytes, spent: bool) -> None: ...
    def absent(self, rows: Sequence[PeerRow]) -> dict[bytes, int]: ...
    def give_back(self) -> None: ...
    def granted_to(self, row: PeerRow) -> int: ...
    def shares(
        self, rows: Sequence[PeerRow], resting: Collection[bytes], absent: int
    ) -> tuple[dict[bytes, int], bool]: ...


class CrawlLimits:
    """The limits of the swarm, at one peer."""

    def __init__(self, pages: Budget, bytes_: ByteBudget, time: CrawlTime, now: Callable[[], float]) -> None:
        """`now` gives the seconds of the clock by which `time` counts."""
        self.pages = pages
        self.bytes = bytes_
        self.time = time
        self._now = now

    @property
    def reached(self) -> CrawlLimit:
        """The limit that is reached for the whole swarm, as far as this peer knows, or an empty text."""
        if self.time.is_over(self._now()):
            return "time"
        return "pages" if self.pages.spent else "bytes" if self.bytes.spent else ""

    @property
    def may_begin(self) -> bool:
        """True if this peer may begin a URL."""
        if not self.pages.may_begin or self.time.is_over(self._now()):
            return False
        return self.bytes.may_begin(self.held)

    @property
    def may_request(self) -> bool:
        """True if a request of a URL begun before may still start."""
        return not self.time.is_over(self._now())

    def budget(self, unit: Literal["pages", "bytes"]) -> SharedBudget:
        """Return the budget of pages or of bytes."""
        return self.pages if unit == "pages" else self.bytes

    def give_back(self) -> None:
        """Give the unused grants back, as this peer begins nothing any more."""
        self.pages.give_back()
        self.bytes.give_back()

    @property
    def held(self) -> int:
        """URLs begun and not finished."""
        return self.pages.held

    def begin(self) -> bool:
        """Begin a URL. Return False if a limit forbids that."""
        return self.may_begin and self.pages.begin()

    def end(self, fetched: bool) -> None:
        """End a URL that was begun. If it is to be tried again, it counts for no limit on URLs."""
        self.pages.end(fetched)
