"""The owner of a cell looks a link up in its history and accepts it once.

The intake takes links found here, links offered by other peers and seeds. It also merges the records of other holders
of a cell (PENDING < DONE), whether the cell may be crawled here or not. Links of other peers are checked as if no peer
had checked them: canonical, within the limits and in scope. A seed of the job is accepted even if the job excludes it,
so that the page log says why the seed is not fetched. Nothing is awaited here: the caller acknowledges a link after
`Journal.durable`.

A site with as many URLs as its limit (`SiteSettings.pages_max`) gets no more. The records of the site are counted,
which all holders of its cell have, so the next owner goes on with the same count. A record of another holder is always
merged, as the histories of a cell could never become equal otherwise. A path gets at most `Job.path_queries_max` URLs
with a query. This limit counts only the URLs accepted here (crawl/scope/query_limits.py).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kadcrawl.crawl.frontier.frontier import Frontier
from kadcrawl.crawl.output.counters import Counters
from kadcrawl.crawl.scope.partitioner import UrlLocation
from kadcrawl.crawl.scope.query_limits import PathQueries
from kadcrawl.crawl.scope.scope import Reason, Scope
from kadcrawl.keys import SITE_BYTES, Cell, Key
from kadcrawl.link.wire.messages import DatedLink, Link
from kadcrawl.overlay.waves.activity import Activity
from kadcrawl.store.bloom.expiring_filter import ExpiringFilter
from kadcrawl.store.schema import is_pending
from kadcrawl.store.store import Store
from kadcrawl.store.visit import Visit
from kadcrawl.urls import is_canonical

LEFT_OUT: frozenset[Reason] = frozenset({"exclude", "site_off", "site_excluded", "scope_removed"})
"""The reasons that bind even seeds. A seed is accepted all the same, so that a page line says why it is not fetched."""


def _ignore(*_: object) -> None:
    """Ignore an event."""


def _no_limit(_site: str) -> int | None:
    return None


@dataclass(frozen=True, slots=True)
class IntakeLimits:
    """The limits of the job that apply where links are accepted."""

    by_depth: bool = False
    """The job limits depth, so the shortest known path to a URL counts."""
    pages_max_of: Callable[[str], int | None] = _no_limit
    """Returns the limit on the URLs of a site, or None for no limit."""
    path_queries_max: int | None = None
    """URLs with a query of one path, without a limit by default."""


@dataclass(frozen=True, slots=True)
class IntakeEvents:
    """The callbacks of an intake."""

    changed: Callable[[], None] = _ignore
    """Runs when there are more URLs to crawl than before, or fewer."""
    visited: Callable[[Key], None] = _ignore
    """Runs when another holder of the cell reported a visit to a page."""
    done_elsewhere: Callable[[Key], None] = _ignore
    """Runs when another holder of the cell reported a page as fetched that was not known to be."""
    accepted: Callable[[Link, UrlLocation], None] = _ignore
    """Receives each URL that this peer accepted as its owner."""
    modified: Callable[[Key, float], None] = _ignore
    """Receives the wall-clock second at which a known page was modified, according to a sitemap."""


class Intake:
    """Accepts the links of cells owned here."""

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
        self._pages_max_of = limits.pages_max_of
        queries_max = limits.path_queries_max
        self._path_queries = None if queries_max is None else PathQueries(queries_max)
        self._events = events
        self._frontier = frontier
        self._scope = scope
        self._counters = counters
        self._activity = activity
        self.rejected = 0
        """Links that other peers should not have sent."""

    def accept(self, link: Link, location: UrlLocation, now: float) -> None:
        """Accept a link found here, which is canonical and in scope."""
        if (limit := self._limit_met(link, location)) is not None:
            self._counters.leave_out({limit: 1})
        elif self._journal_new(link, location, now):
            self._counters.accept()
            self._events.accepted(link, location)
            if self._path_queries is not None:
                self._path_queries.count(link.url)
        else:
            if self._by_depth:
                self._store.shorten(location.key, link.depth)
            if isinstance(link, DatedLink) and link.modified is not None:
                self._events.modified(location.key, link.modified)

    def accept_offered(self, link: Link, location: UrlLocation, now: float) -> None:
        """Accept a link that another peer offers, if the link passes every check."""
        if not is_canonical(link.url):
            self.rejected += 1
            return
        if not self._scope.is_seed(link.url) and not self._is_taken(link):
            self.rejected += 1
            return
        self.accept(link, location, now)

    def _is_taken(self, link: Link) -> bool:
        """Return whether a link of another peer is to be crawled, or is a seed near a seed that the job excludes."""
        reason = self._scope.why_not(link.url, link.depth, link.hops)
        return reason is None or (
            reason in ("exclude", "site_off", "site_excluded", "scope_removed") and link.depth == link.hops == 0
        )

    def merge_pending(
        self,
        link: Link,
        location: UrlLocation,
        now: float,
        tries: int,
        due: float,
        *,
        even_seen: bool = False,
        drop_order: int = 0,
    ) -> None:
        """Merge a PENDING record of another holder of the cell, with its retry state (`due` in wall-clock seconds).

        The scope is not asked: the scope of the owner has accepted the URL, and may know seeds that are still on their
        way here. With `even_seen` the record comes from the owner of the cell (`Store.accept`).
        """
        if not is_canonical(link.url):
            self.rejected += 1
        elif not self._journal_new(link, location, now, tries, due, even_seen=even_seen, drop_order=drop_order):
            if self._by_depth:
                self._store.shorten(location.key, link.depth)
            if tries:
                self._store.merge_tries(location.key, tries, due)

    def merge_done(self, key: Key, now: float) -> None:
        """Merge a DONE record of another holder of the cell."""
        is_active = self._frontier.has_sites(self._store.cell_of(key))
        entry = self._store.entry(key) if is_active else None  # A backup's frontier has no entries of its cells.
        if self._store.learn_done(key):
            self._events.done_elsewhere(key)
            if entry is not None:
                self._frontier.remove(entry, now)
            self._activity.move()
            self._events.changed()

    def merge_filters(
        self, cell: Cell, filters: Sequence[ExpiringFilter], first: bytes, count: int, now: float
    ) -> bytes | None:
        """Mark PENDING records as DONE if the filters of another holder of the cell contain them.

        The method looks at `count` records from the key `first` on. Returns the next key to look at, or None at the end
        of the cell.
        """
        rows = self._store.scan.records(cell, first, count)
        for key, _ in rows:
            if any(epoch_filter.contains(key, now) for epoch_filter in filters):
                self.merge_done(key, now)
        return rows[-1][0] + b"\0" if len(rows) == count else None

    def merge_visit(self, visit: Visit, state: int, now: float, tries: int, due: float, drop_order: int = 0) -> None:
        """Merge the visit record of another holder of the cell: the page's state, its last visit and its next visit."""
        known = self._store.entry(visit.key)
        before = self._store.state(visit.key) or 0
        entry = self._store.learn_visit(visit, state, tries, due, drop_order)
        if before >= state:
            if before == state and is_pending(state) and tries:
                self._store.merge_tries(visit.key, tries, due)
            return
        if known is not None:
            self._frontier.remove(known, now)
        if entry is not None:
            self._frontier.add(entry, now)
        self._events.done_elsewhere(visit.key)
        self._events.visited(visit.key)
        self._activity.move()
        self._events.changed()

    def _limit_met(self, link: Link, location: UrlLocation) -> str | None:
        """Return the limit of its site or path that keeps a link out. A seed or a known URL meets no limit."""
        if link.depth == 0:
            return None
        most, queries = self._pages_max_of(location.site), self._path_queries
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
        drop_order: int | None = None,
    ) -> bool:
        """Journal a URL never met before, and add the URL to the frontier. Return False if the URL was met before."""
        entry = self._store.accept(
            *(location.key, location.site, link.url, link.depth, link.hops, tries, due),
            even_seen=even_seen,
            trail=link.trail,
            drop_order=drop_order,
        )
        if entry is None:
            return False
        self._activity.move()
        self._frontier.add(entry, now)
        self._events.changed()
        return True
