"""The rounds of pages: the visits that a crawler journals, by the policy of the job and the orders to retry.

A job with a recrawl has a visit for each page. Any other job has a visit for each page that failed, so that an order to
retry finds it, and for each page that was fetched again. A job that keeps fingerprints has no rounds.

Tests: tests/crawl/test_crawler.py, tests/peer/test_recrawl.py
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from kadcrawl.crawl.fetch.result import FetchResult
from kadcrawl.crawl.output.warc import Original, WarcPlace, digest_of
from kadcrawl.crawl.recrawl.policy import Recrawl
from kadcrawl.keys import Key
from kadcrawl.store.frontier_entry import FrontierEntry
from kadcrawl.store.store import Store
from kadcrawl.store.visit import Visit


class VisitStart(NamedTuple):
    """The facts about a visit that are known before its request."""

    number: int
    """Visits before this visit."""
    last: Visit | None = None
    """The last visit to the page, or None before the first visit."""
    order: int = 0
    """Stamp of the latest order to retry known then. A failure is older than all later orders."""


class Rounds:
    """Answers the crawlers of one peer about the visits to a page."""

    def __init__(
        self,
        recrawl: Recrawl | None,
        store: Store,
        now: Callable[[], float],
        on_due: Callable[[Key], None],
    ) -> None:
        """`recrawl` is None in a job that fetches each page once. `now` returns wall-clock seconds.

        `on_due` is called with the key of each page that was finished in its round, or that is to be visited sooner.
        """
        self._recrawl = recrawl
        self._store = store
        self._now = now
        self._on_due = on_due

    @property
    def recrawls(self) -> bool:
        """True if the job fetches pages again when they are due."""
        return self._recrawl is not None

    def start(self, last: Visit | None, number: int) -> VisitStart:
        """Return the start of a visit at this moment. `last` is the last visit, `number` counts the visits before."""
        return VisitStart(number, last, self._store.visits.last_order)

    def validators(self, last: Visit | None) -> Sequence[tuple[str, str]]:
        """Return the header fields that make the request for a page conditional."""
        return () if last is None or self._recrawl is None else self._recrawl.validators(last)

    def original(self, last: Visit | None, result: FetchResult) -> Original | None:
        """Return the record of an earlier visit with the same page, or None if the page is new or changed."""
        if last is None or self._recrawl is None:
            return None
        if not self._recrawl.is_unchanged(last, result, digest_of(result.body)):
            return None
        return Original(last.digest, last.captured)

    def fetched(
        self,
        entry: FrontierEntry,
        start: VisitStart,
        result: FetchResult,
        place: WarcPlace | None,
        failed: str | None,
    ) -> Visit | None:
        """Return the visit to journal after a final answer, or None for a page that nobody asks for again.

        `failed` is the reason for which the page counts as failed. The caller adds an answer with a body to keep in
        place of the last.
        """
        visit = ended_visit(entry, failed, start)
        if self._recrawl is not None:
            digest, captured = (place.payload_digest, place.date) if place is not None else ("", "")
            visit = self._recrawl.next_visit(entry, start.last, result, digest, captured, self._now())
            visit = _noted(visit, failed, start)
        return visit

    def unasked(self, entry: FrontierEntry, why: str, start: VisitStart) -> Visit | None:
        """Return the visit to journal for a page without a request."""
        visit = self._recrawl.unasked(entry, start.last, why, self._now()) if self._recrawl is not None else None
        return ended_visit(entry, why, start) if visit is None else _noted(visit, why, start)

    def reported(self, entry: FrontierEntry, start: VisitStart, told: Visit | None, failed: str | None) -> Visit | None:
        """Return the visit to journal for a page that a borrower has finished, as `fetched` does for an own page.

        `told` is the visit as the borrower saw it, or None if it told nothing.
        """
        visit = ended_visit(entry, failed, start)
        if self._recrawl is not None:
            decided = self._recrawl.reported(entry, start.last, told, failed, self._now())
            visit = _noted(decided, failed, start) if decided is not None else visit
        return visit if visit is None or told is None or not told.answer else visit._replace(answer=told.answer)

    def modified(self, key: Key, at: float) -> None:
        """Visit a page sooner if a sitemap says that the page was modified at this wall-clock second.

        Only the owner of the page knows the new time. If the cell moves before the visit, the page may be visited in
        its usual period.
        """
        visit = self._store.visits.get(key)
        if visit is None or self._recrawl is None:
            return
        due = self._recrawl.hastened(visit, at, self._now())
        if due is not None and self._store.hasten(key, due):
            self._on_due(key)

    def finished(self, entry: FrontierEntry) -> None:
        """Note that a page was journaled as DONE in its round."""
        self._on_due(entry.key)


def ended_visit(entry: FrontierEntry, failed: str | None, start: VisitStart) -> Visit | None:
    """Return the visit to journal for a page that is not due again, or None if nobody asks for the page again.

    `failed` is the reason of a failure.
    """
    if failed is None and not start.number:
        return None
    last = start.last or Visit.first(entry.key, entry.site, entry.url, entry.depth)
    return _noted(last._replace(depth=min(last.depth, entry.depth), due=None), failed, start)


def _noted(visit: Visit, failed: str | None, start: VisitStart) -> Visit:
    """Return the visit with the reason of its failure, as newer than the orders to retry known at its start."""
    return visit._replace(failed=failed or "", order=max(visit.order, start.order))
