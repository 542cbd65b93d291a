"""The end of a page in the journal: its line, its records, its visit, and the counters.

Attempts finish pages by it (attempt.py), and orders of a person that end pending URLs without a request.

Tests: tests/crawl/test_crawler.py, tests/peer/test_dropped_sites.py
"""

import logging
from datetime import UTC, datetime

from kadcrawl.crawl.dependencies import CrawlDependencies, CrawlSource
from kadcrawl.store.frontier_entry import FrontierEntry
from kadcrawl.store.visit import Visit
from kadcrawl.urls import origin_of

log = logging.getLogger(__name__)


class PageFinisher:
    """Finishes the pages of one crawler in its store. The caller tells the frontier."""

    __slots__ = ("_parts", "_source")

    def __init__(self, parts: CrawlDependencies, source: CrawlSource) -> None:
        self._parts = parts
        self._source = source

    def finish_unfetched(self, entry: FrontierEntry, why: str) -> None:
        """Journal an entry as DONE without a request, and give `why` as the reason in its page line."""
        rounds, store = self._parts.rounds, self._source.store
        at = datetime.fromtimestamp(self._parts.clock.now(), UTC).isoformat(timespec="milliseconds")
        number = store.rounds(entry.key)
        visit = rounds.unasked(entry, why, rounds.start(store.last_visit(entry.key), number)) if rounds else None
        tried_by = self._source.robots.tried_by(origin_of(entry.url))
        answer = visit.answer if visit is not None else ""
        line = self._parts.outputs.unfetched_line(entry, at.replace("+00:00", "Z"), why, number, tried_by, answer)
        self.finish(entry, line, why, visit, number)

    def finish(
        self,
        entry: FrontierEntry,
        line: bytes,
        failed: str | None,
        visit: Visit | None,
        number: int,
        records: bytes = b"",
    ) -> None:
        """Journal an entry as DONE with its lines. `number` counts the visits before this visit."""
        parts = self._parts
        is_first = self._source.store.finish(entry, line, records, visit, number)
        if parts.rounds is not None:
            parts.rounds.finished(entry)
        parts.counters.finish(is_first=is_first)
        if failed is not None:
            if is_first:
                parts.counters.fail(failed)
            log.info("crawl.failed url=%s why=%s", entry.url, failed)
        if parts.traces is not None:
            parts.traces.finished(entry.key, entry.url, failed)
