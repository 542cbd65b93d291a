"""The rounds of a crawl with a recrawl: the policy applied to the visits in the store.

Tests: tests/crawl/test_crawler.py, tests/peer/test_recrawl.py
"""

from collections.abc import Callable, Sequence

from kadcrawl.crawl.fetch.result import FetchResult
from kadcrawl.crawl.output.warc import Original, WarcPlace, digest_of
from kadcrawl.crawl.recrawl.policy import Recrawl
from kadcrawl.keys import Key
from kadcrawl.store.frontier_entry import FrontierEntry
from kadcrawl.store.schema import round_of
from kadcrawl.store.store import Store
from kadcrawl.store.visit import Visit


class Rounds:
    """Answers the crawler of the peer's own pages, if the job has a recrawl."""

    def __init__(self, recrawl: Recrawl, store: Store, now: Callable[[], float], on_due: Callable[[Key], None]) -> None:
        """`now` returns wall-clock seconds.

        `on_due` is called with the key of each page that was finished in its round, or that is to be visited sooner.
        """
        self._recrawl = recrawl
        self._store = store
        self._now = now
        self._on_due = on_due

    def last(self, entry: FrontierEntry) -> Visit | None:
        """Return the last visit to a page, or None before the first visit."""
        return self._store.visits.get(entry.key)

    def number(self, entry: FrontierEntry) -> int:
        """Return the number of earlier visits to a page."""
        return round_of(self._store.state(entry.key) or 1)

    def validators(self, last: Visit | None) -> Sequence[tuple[str, str]]:
        """Return the header fields that make the request for a page conditional."""
        return () if last is None else self._recrawl.validators(last)

    def original(self, last: Visit | None, result: FetchResult) -> Original | None:
        """Return the record of an earlier visit with the same page, or None if the page is new or changed."""
        if last is None or not self._recrawl.is_unchanged(last, result, digest_of(result.body)):
            return None
        return Original(last.digest, last.captured)

    def fetched(self, entry: FrontierEntry, last: Visit | None, result: FetchResult, place: WarcPlace | None) -> Visit:
        """Return the visit to journal after a final answer."""
        digest, captured = (place.payload_digest, place.date) if place is not None else ("", "")
        return self._recrawl.next_visit(entry, last, result, digest, captured, self._now())

    def unasked(self, entry: FrontierEntry, why: str) -> Visit | None:
        """Return the visit to journal for a page without a request, if the page may be fetched another time."""
        return self._recrawl.unasked(entry, self.last(entry), why, self._now())

    def modified(self, key: Key, at: float) -> None:
        """Visit a page sooner if a sitemap says that the page was modified at this wall-clock second.

        Only the owner of the page knows the new time. If the cell moves before the visit, the page may be visited in
        its usual period.
        """
        visit = self._store.visits.get(key)
        due = self._recrawl.hastened(visit, at, self._now()) if visit is not None else None
        if due is not None and self._store.hasten(key, due):
            self._on_due(key)

    def finish(self, entry: FrontierEntry, line: bytes, records: bytes, visit: Visit | None, number: int) -> bool:
        """Journal the page as DONE in this round, with `number` rounds before. Return False if the page was DONE
        already.
        """
        finished = self._store.finish(entry, line, records, visit, number)
        self._on_due(entry.key)
        return finished
