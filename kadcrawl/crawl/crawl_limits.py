"""The limits that end the crawl of a whole swarm: `--max-pages`, `--max-bytes` and `--max-time`, at one peer.

While a limit is reached no request starts, and pending URLs stay pending: they count as no work, so that the swarm ends
once the pages under way are finished. With a larger limit the crawl goes on with them. A decision: `page_budget`,
`byte_budget` and `crawl_time` decide about each limit.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Literal, Protocol

from kadcrawl.crawl.byte_budget import ByteBudget
from kadcrawl.crawl.crawl_time import CrawlTime
from kadcrawl.crawl.page_budget import Budget
from kadcrawl.keys import Key
from kadcrawl.link.wire.messages import PeerRow
from kadcrawl.link.wire.peer_row import CrawlLimit
from kadcrawl.settings.job import Job


def told_limit(kind: str, size: float | None) -> bytes:
    """Return a limit and its size as they are journaled. A larger limit since then is not the one that was reached."""
    return f"{kind} {float(size or 0)!r}".encode()


def told_limits(job: Job) -> dict[CrawlLimit, bytes]:
    """Return the limits of a crawl as they are journaled once they are reached, by their kind."""
    return {
        "pages": told_limit("pages", job.max_pages),
        "bytes": told_limit("bytes", job.max_bytes),
        "time": told_limit("time", job.max_time_s),
    }


class AttemptLimits(Protocol):
    """The limits of one crawler."""

    @property
    def reached(self) -> CrawlLimit: ...
    @property
    def unfinished(self) -> int: ...
    @property
    def may_begin(self) -> bool: ...
    @property
    def may_request(self) -> bool: ...
    def begin(self) -> bool: ...
    def end(self, fetched: bool, key: Key | None = None) -> None: ...


class SharedBudget(Protocol):
    """A budget that one peer shares out among all, by grants."""

    @property
    def unit(self) -> Literal["pages", "bytes"]: ...
    @property
    def limit(self) -> int | None: ...
    @property
    def granted(self) -> int: ...
    @property
    def told(self) -> int: ...
    @property
    def own_total(self) -> int: ...
    @property
    def known(self) -> dict[bytes, int]: ...
    @property
    def epoch(self) -> int: ...
    @property
    def epochs(self) -> dict[bytes, int]: ...
    @property
    def spent(self) -> bool: ...
    def tell(self) -> int: ...
    def learn(self, totals: Mapping[bytes, int], me: bytes, spent: bool, epochs: Mapping[bytes, int] = ...) -> None: ...
    def hear(self, totals: Mapping[bytes, int], epochs: Mapping[bytes, int] = ...) -> None: ...
    def absent(self, rows: Sequence[PeerRow], left: Iterable[PeerRow] = ...) -> dict[bytes, int]: ...
    def epochs_of(self, totals: Mapping[bytes, int], rows: Sequence[PeerRow]) -> dict[bytes, int]: ...
    def give_back(self) -> None: ...
    def to_journal(self) -> bytes: ...
    def note_journaled(self, written: int) -> None: ...
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
        if self.is_time_over:
            return "time"
        return "pages" if self.pages.spent else "bytes" if self.bytes.spent else ""

    @property
    def journaled(self) -> bytes:
        """The limit that is reached, as a directory at rest tells it, or nothing."""
        sizes = {"pages": self.pages.limit, "bytes": self.bytes.limit, "time": self.time.limit_s}
        reached = self.reached
        return told_limit(reached, sizes[reached]) if reached else b""

    @property
    def may_begin(self) -> bool:
        """True if this peer may begin a URL."""
        return self.pages.may_begin and not self.is_time_over and self.bytes.may_begin(self.held)

    @property
    def may_request(self) -> bool:
        """True if a request of a URL begun before may still start."""
        return not self.is_time_over

    @property
    def is_time_over(self) -> bool:
        """True if the crawl has had its time. Without a limit no clock is read, as each page asks several times."""
        return self.time.limit_s is not None and self.time.is_over(self._now())

    def change(self, job: Job) -> None:
        """Take the limits of the job as a person has changed it while the crawl runs."""
        self.pages.set_limit(job.max_pages)
        self.bytes.set_limit(job.max_bytes)
        self.time.set_limit(job.max_time_s)

    def budget(self, unit: Literal["pages", "bytes"]) -> SharedBudget:
        """Return the budget of pages or of bytes."""
        return self.pages if unit == "pages" else self.bytes

    @property
    def budgets(self) -> tuple[SharedBudget, SharedBudget]:
        """The budgets of pages and of bytes."""
        return self.pages, self.bytes

    @property
    def held(self) -> int:
        """URLs begun and not finished."""
        return self.pages.held

    @property
    def unfinished(self) -> int:
        """URLs that are still finished when a limit is reached: those begun here, and those on loan."""
        return self.pages.held + self.pages.lent

    @property
    def ends_loans(self) -> bool:
        """True if a limit is reached that also holds for borrowed pages. Pages are paid for by their lenders."""
        return self.is_time_over or self.bytes.spent

    def begin(self) -> bool:
        """Begin a URL. Return False if a limit forbids that."""
        return self.may_begin and self.pages.begin()

    def end(self, fetched: bool, key: Key | None = None) -> None:
        """End a URL that was begun. If it is to be tried again, it counts for no limit on URLs."""
        self.pages.end(fetched, key)


class LoanLimits:
    """The limits for the pages that a peer has borrowed: their lenders have paid for them, but bytes and time count."""

    def __init__(self, limits: CrawlLimits) -> None:
        """`limits` are those of the same peer for its own pages."""
        self._limits = limits

    @property
    def reached(self) -> CrawlLimit:
        """The limit that is reached for the whole swarm, or an empty text."""
        return self._limits.reached

    @property
    def unfinished(self) -> int:
        """URLs that are still finished when a limit is reached."""
        return self._limits.unfinished

    @property
    def may_begin(self) -> bool:
        """True if this peer may begin a borrowed URL."""
        limits = self._limits
        return limits.may_request and limits.bytes.may_begin(limits.held)

    @property
    def may_request(self) -> bool:
        """True if a request of a URL begun before may still start."""
        return self._limits.may_request

    def begin(self) -> bool:
        """Begin a borrowed URL. Return False if a limit forbids that."""
        if not self.may_begin:
            return False
        self._limits.pages.begin_borrowed()
        return True

    def end(self, fetched: bool, key: Key | None = None) -> None:
        """End a borrowed URL that was begun. Its lender counts it."""
        self._limits.pages.end_borrowed()
