"""Steps 3 and 4 of a URL's life: the owner looks a link up in its history and takes it, once.

Called with links found here, offered by other peers, or given as seeds; and with the records of other holders of a
cell, which are merged (PENDING < DONE) whether the cell may be crawled here or not. Whatever comes from another peer
is checked as if nobody had: canonical, within the limits, in scope. A seed of the job is taken even if it is refused by
``exclude`` or the like: somebody asked for it, so the crawler records why it is not fetched.
No await here; the caller acknowledges after `Store.durable`.

A site that has all the URLs it may have (`Job.site_pages_max`) gets no more. What is counted are its records, which all
holders of its cell have: so the next owner goes on where this one stopped. A record that another holder has is always
merged; else two histories of one cell could never become equal. Nor does a path get more URLs with a query than it may
have (`Job.path_queries_max`), counted as they are taken here (crawl/scope/query_limits.py).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kadcrawl.crawl.frontier.frontier import Frontier
from kadcrawl.crawl.output.counters import Counters
from kadcrawl.crawl.scope.partitioner import UrlLocation
from kadcrawl.crawl.scope.query_limits import PathQueries
from kadcrawl.crawl.scope.scope import Scope
from kadcrawl.keys import SITE_BYTES, Cell, Key
from kadcrawl.link.wire.messages import DatedLink, Link
from kadcrawl.overlay.waves.activity import Activity
from kadcrawl.store.bloom.expiring_filter import ExpiringFilter
from kadcrawl.store.schema import is_pending
from kadcrawl.store.store import Store
from kadcrawl.store.visit import Visit
from kadcrawl.urls import is_canonical


def _ignore(*_: object) -> None:
    """Ignore an event."""


@dataclass(frozen=True, slots=True)
class IntakeLimits:
    """The limits of the job that apply where links are accepted."""

    by_depth: bool = False
    """Whether the job limits depth, so that the shortest known path to a URL counts."""
    site_pages_max: int | None = None
    """URLs of one site; no limit by default."""
    path_queries_max: int | None = None
    """URLs with a query of one path; no limit by default."""


@dataclass(frozen=True, slots=True)
class IntakeEvents:
    """The callbacks of an intake."""

    changed: Callable[[], None] = _ignore
    """Called when there are more URLs to crawl than before, or fewer."""
    visited: Callable[[Key], None] = _ignore
    """Called when another holder of the cell reported a visit to a page."""
    modified: Callable[[Key, float], None] = _ignore
    """Called with the wall-clock second at which a known page was modified, according to a sitemap."""


class Intake:
    """The owner's door."""

    def __init__(
        self,
        store: Store,
        frontier: Frontier,
        scope: Scope,
        counters: Counters,
        activity: Activity,
        limits: IntakeLimits,
        events: IntakeEvents,
    ) -> None:
        self._store = store
        self._by_depth = limits.by_depth
        self._site_pages_max = limits.site_pages_max
        queries_max = limits.path_queries_max
        self._path_queries = None if queries_max is None else PathQueries(queries_max)
        self._events = events
        self._frontier = frontier
        self._scope = scope
        self._counters = counters
        self._activity = activity
        self.rejected = 0
        """Links other peers should not have sent."""

    def accept(self, link: Link, location: UrlLocation, now: float) -> None:
        """Take a link found here, which is canonical and in scope."""
        if (limit := self._limit_met(link, location)) is not None:
            self._counters.leave_out({limit: 1})
        elif self._journal_new(link, location, now):
            self._counters.urls += 1
            if self._path_queries is not None:
                self._path_queries.count(link.url)
        else:
            if self._by_depth:
                self._store.shorten(location.key, link.depth)
            if isinstance(link, DatedLink) and link.modified is not None:
                self._events.modified(location.key, link.modified)

    def accept_offered(self, link: Link, location: UrlLocation, now: float) -> None:
        """Take a link another peer offers, if it stands every check."""
        if not is_canonical(link.url):
            self.rejected += 1
            return
        if not self._scope.is_seed(link.url) and not self._scope.allows(link.url, link.depth):
            self.rejected += 1
            return
        self.accept(link, location, now)

    def merge_pending(
        self, link: Link, location: UrlLocation, now: float, tries: int, due: float, *, even_seen: bool = False
    ) -> None:
        """Another holder of the cell knows this URL as PENDING, with this retry state (`due` in wall-clock seconds).

        It is not asked whether the URL is in scope: the scope of its owner has let it in, and may know seeds that are
        still on their way here. With `even_seen` it is the owner of the cell who knows it (`Store.accept`).
        """
        if not is_canonical(link.url):
            self.rejected += 1
        elif not self._journal_new(link, location, now, tries, due, even_seen=even_seen):
            if self._by_depth:
                self._store.shorten(location.key, link.depth)
            if tries:
                self._store.merge_tries(location.key, tries, due)

    def merge_done(self, key: Key, now: float) -> None:
        """Another holder of the cell knows this URL as DONE."""
        entry = self._store.entry(key)
        if self._store.learn_done(key):
            if entry is not None:
                self._frontier.remove(entry, now)
            self._activity.move()
            self._events.changed()

    def merge_filters(
        self, cell: Cell, filters: Sequence[ExpiringFilter], first: bytes, count: int, now: float
    ) -> bytes | None:
        """Another holder of the cell knows as DONE what is in `news`: look for the next `count` URLs that are PENDING.

        They begin at the key `first`. Return the key to go on from; None at the end of the cell.
        """
        rows = self._store.scan.records(cell, first, count)
        for key, _ in rows:
            if any(one.contains(key, now) for one in filters):
                self.merge_done(key, now)
        return rows[-1][0] + b"\0" if len(rows) == count else None

    def merge_visit(self, visit: Visit, state: int, now: float, tries: int, due: float) -> None:
        """Another holder of the cell knows this page in this state, its last visit and the next."""
        known = self._store.entry(visit.key)
        before = self._store.state(visit.key) or 0
        entry = self._store.learn_visit(visit, state, tries, due)
        if before >= state:
            if before == state and is_pending(state) and tries:
                self._store.merge_tries(visit.key, tries, due)
            return
        if known is not None:
            self._frontier.remove(known, now)
        if entry is not None:
            self._frontier.add(entry, now)
        self._events.visited(visit.key)
        self._activity.move()
        self._events.changed()

    def _limit_met(self, link: Link, location: UrlLocation) -> str | None:
        """Return the limit that keeps a link out, as its site or path has all it may have; none does if it is a seed or
        known."""
        if link.depth == 0:
            return None
        most, queries = self._site_pages_max, self._path_queries
        if most is not None and self._store.site_keys.count(location.key[:SITE_BYTES]) >= most:
            limit = "site_pages"
        elif queries is not None and queries.is_full(link.url):
            limit = "path_queries"
        else:
            return None
        return limit if self._store.state(location.key) is None else None

    def _journal_new(
        self,
        link: Link,
        location: UrlLocation,
        now: float,
        tries: int = 0,
        due: float = 0.0,
        *,
        even_seen: bool = False,
    ) -> bool:
        """Journal a URL never met before and let it be crawled if its cell is open; False if it was met."""
        entry = self._store.accept(
            location.key, location.site, link.url, link.depth, link.hops, tries, due, even_seen=even_seen
        )
        if entry is None:
            return False
        self._activity.move()
        self._frontier.add(entry, now)
        self._events.changed()
        return True
