"""The limits that end the crawl of a whole swarm: `--max-pages` and `--max-time`, as one crawler sees them.

While a limit is reached no request starts, and pending URLs stay pending: they count as no work, so that the swarm ends
once the pages under way are finished. With a larger limit the crawl goes on with them. A decision: `page_budget` and
`crawl_time` decide about each limit.
"""

from collections.abc import Callable

from kadcrawl.crawl.crawl_time import CrawlTime
from kadcrawl.crawl.page_budget import Budget
from kadcrawl.link.wire.peer_row import CrawlLimit


class CrawlLimits:
    """The limits of the swarm, at one peer."""

    def __init__(self, pages: Budget, time: CrawlTime, now: Callable[[], float]) -> None:
        """`now` gives the seconds of the clock by which `time` counts."""
        self.pages = pages
        self.time = time
        self._now = now

    @property
    def reached(self) -> CrawlLimit:
        """The limit that is reached for the whole swarm, as far as this peer knows, or an empty text."""
        if self.time.is_over(self._now()):
            return "time"
        return "pages" if self.pages.spent else ""

    @property
    def may_begin(self) -> bool:
        """True if this peer may begin a URL."""
        return self.pages.may_begin and not self.time.is_over(self._now())

    @property
    def may_request(self) -> bool:
        """True if a request of a URL begun before may still start."""
        return not self.time.is_over(self._now())

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
