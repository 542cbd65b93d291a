"""What a final answer comes to: what is kept of it, where it leads, and what its line and its records will say.

Between the crawler, which fetched it, and the rooms that each know one thing about it: where it leads
(crawl/content/link_finder.py), what is written of it (crawl/output/outputs.py), when its page is due again
(crawl/recrawl/rounds.py), what is taken out of it (crawl/content/record_extractor.py).

Tests: tests/crawl/test_crawler.py
"""

import asyncio
import logging
from dataclasses import dataclass, replace

from kadcrawl.crawl.content.link_finder import FoundLinks, LinkFinder
from kadcrawl.crawl.content.page import Page
from kadcrawl.crawl.content.record_extractor import ExtractedRecords, Extraction
from kadcrawl.crawl.content.simhash import simhash
from kadcrawl.crawl.fetch.poison_pages import PoisonPages
from kadcrawl.crawl.fetch.result import HTML, FetchResult
from kadcrawl.crawl.output.counters import Counters
from kadcrawl.crawl.output.outputs import Outputs, PageLine
from kadcrawl.crawl.recrawl.rounds import Rounds
from kadcrawl.crawl.robots.rules import Rules
from kadcrawl.link.wire.messages import Link
from kadcrawl.settings.limits import Limits
from kadcrawl.settings.page_rules import PageRules
from kadcrawl.store.frontier_entry import FrontierEntry
from kadcrawl.store.visit import Visit
from kadcrawl.system.cooperative import run_cooperatively

LINE_BYTES = 500
"""About what a page line has beside its URL."""
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ProcessedPage:
    """What is kept of a final answer until its links are acknowledged: its body only if somebody needs the page."""

    line: PageLine
    failed: str | None
    outlinks: list[Link]
    page: Page | None
    rule: int | None
    """By which records are taken out of the page."""
    body_bytes: int
    held_bytes: int
    visit: Visit | None
    """What is kept of it for the next time, if there is one."""
    number: int
    """Visits before this one."""
    is_unchanged: bool


class PageProcessor:
    """Reads the answers of one crawler."""

    def __init__(
        self,
        link_finder: LinkFinder,
        outputs: Outputs,
        counters: Counters,
        rounds: Rounds | None,
        page_rules: PageRules,
        extraction: Extraction | None,
        limits: Limits,
        poison_pages: PoisonPages,
    ) -> None:
        """`rounds` if pages are fetched again; `extraction` takes out the records, if `page_rules` has any.

        `deadly` is told what is being read.
        """
        self._poison_pages = poison_pages
        self._link_finder = link_finder
        self._outputs = outputs
        self._counters = counters
        self._rounds = rounds
        self._page_rules = page_rules
        self._extraction = extraction
        self._limits = limits
        self._alone = asyncio.Lock()
        """Held by the page that is in the middle of being read."""

    async def read(
        self,
        entry: FrontierEntry,
        result: FetchResult,
        rules: Rules,
        last: Visit | None,
        number: int,
        *,
        page_wanted: bool,
    ) -> ProcessedPage:
        """Record a final answer and find its links; waits only in the middle of what takes long, and for others' turns.

        `rules` are the robots.txt of its origin, `last` the visit before this one, `number` how many there were;
        `page_wanted` if somebody reads pages.
        """
        original = self._rounds.original(last, result) if self._rounds else None
        async with self._poison_pages.reading(entry.url):
            text_hash = self._simhash(result, is_unchanged=original is not None)
            if original is not None:
                found = FoundLinks((), [], None)  # Links of a page that is as it was have arrived long ago.
            else:
                listed = await run_cooperatively(self._link_finder.read_sitemap(entry, result, rules), self._alone)
                found = await run_cooperatively(
                    self._link_finder.find_links(entry, result, rules, listed, text_hash), self._alone
                )
        self._poison_pages.was_read(entry.url)
        place = self._outputs.keep(result, original)
        visit = self._rounds.fetched(entry, last, result, place) if self._rounds else None
        how = None if original is None else "not_modified" if result.status == 304 else "same_digest"
        line = self._outputs.line(entry, result, found, place, number, how, text_hash)
        rule = None
        if self._extraction and not original and not found.failed and result.location is None and result.content:
            rule = self._page_rules.record(entry.url)
        page = None
        if page_wanted or rule is not None:
            page = Page.of(entry, result, found.links, found.failed, line.role)
            if not page_wanted:
                # No more of it is held than shows that it is too large for records.
                page = replace(page, content=page.content[: self._limits.record_page_bytes_max + 1])
        held = LINE_BYTES + len(entry.url) + sum(len(link.url) for link in found.outlinks)
        if page is not None:
            held += len(page.content) + sum(map(len, page.links))
        self._counters.links_seen += len(found.links)
        self._counters.leave_out(found.left_out)
        body_bytes, unchanged = len(result.body), original is not None
        return ProcessedPage(line, found.failed, found.outlinks, page, rule, body_bytes, held, visit, number, unchanged)

    def count(self, page: ProcessedPage, records: bytes) -> None:
        """A URL is finished, and these are the lines of its records."""
        totals = self._counters
        if page.line.status is None:
            totals.unanswered += 1
            return
        totals.pages += 1
        totals.body_bytes += page.body_bytes
        totals.revisits += page.number > 0
        totals.unchanged += page.is_unchanged
        totals.records += records.count(b"\n")

    def outlinks_of_forbidden(self, entry: FrontierEntry, rules: Rules) -> list[Link]:
        """Return where a page leads that robots.txt forbids: to the sitemaps of its site, if the job follows them."""
        onward, left_out = self._link_finder.sitemaps(entry, rules)
        self._counters.leave_out(left_out)
        return onward

    async def lines(self, entry: FrontierEntry, answered: ProcessedPage) -> tuple[bytes, bytes]:
        """Return the page line, and the lines of the records, which are taken out of the page now."""
        return self._outputs.lines(entry, answered.line, await self._extracted(answered))

    def _simhash(self, result: FetchResult, *, is_unchanged: bool) -> int | None:
        """Return the SimHash of a page if somebody wants to know it: its line, or the finder."""
        wanted = self._outputs.with_simhash or (self._link_finder.looks_for_near_duplicates and not is_unchanged)
        if not wanted or result.why_failed is not None or result.mime not in HTML or not result.content:
            return None
        return simhash(result.content)

    async def _extracted(self, processed: ProcessedPage) -> ExtractedRecords | None:
        """Return the records of a page; None if no rule says what they would be."""
        if self._extraction is None or processed.page is None or processed.rule is None:
            return None
        extracted = await self._extraction.extract(processed.rule, processed.page)
        if extracted.error is not None:
            log.warning("record.failed url=%s why=%s", processed.page.url, extracted.error)
        return extracted
