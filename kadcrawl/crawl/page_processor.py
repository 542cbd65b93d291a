"""Turns a final answer into the outputs, the links to follow and the next visit of a page.

The crawler fetches the answer. Each step belongs to another module: the links (crawl/content/link_finder.py), the files
(crawl/output/outputs.py), the next visit (crawl/recrawl/rounds.py) and the records (crawl/content/record_extractor.py).

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
from kadcrawl.crawl.recrawl.rounds import Rounds, VisitStart
from kadcrawl.crawl.robots.rules import Rules
from kadcrawl.link.wire.messages import Link
from kadcrawl.settings.limits import Limits
from kadcrawl.settings.page_rules import PageRules
from kadcrawl.store.frontier_entry import FrontierEntry
from kadcrawl.store.visit import Visit
from kadcrawl.system.cooperative import run_cooperatively

LINE_BYTES = 500
"""Approximate bytes of a page line beside its URL."""
log = logging.getLogger(__name__)


@dataclass(slots=True)
class ProcessedPage:
    """The part of a final answer that is kept until the links of the page are acknowledged.

    The body is kept only if an application or a record rule needs the page.
    """

    line: PageLine
    failed: str | None
    outlinks: list[Link]
    page: Page | None
    rule: int | None
    """Number of the record rule for the page."""
    body_bytes: int
    held_bytes: int
    visit: Visit | None
    """The visit to journal, if the page may be fetched again."""
    number: int
    """Visits before this visit."""
    is_unchanged: bool


class PageProcessor:
    """Processes the answers of one crawler."""

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
        """`rounds` is None in a job that keeps fingerprints. `extraction` extracts records, if `page_rules` has record
        rules.

        `poison_pages` notes each page while it is being read.
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
        """A lock that the page being read holds, so that pages take turns."""

    async def read(
        self,
        entry: FrontierEntry,
        result: FetchResult,
        rules: Rules,
        start: VisitStart,
        *,
        page_wanted: bool,
    ) -> ProcessedPage:
        """Write a final answer to the WARC and find its links.

        `rules` are the robots.txt of its origin, `start` is known since before the request and counts the earlier
        visits. `page_wanted` is True if an application reads pages. The method waits only in the middle of long
        parsing, and for the turns of other pages.
        """
        number = start.number
        original = self._rounds.original(start.last, result) if self._rounds else None
        async with self._poison_pages.reading(entry.url):
            text_hash = self._simhash(result, is_unchanged=original is not None)
            if original is not None:
                found = FoundLinks((), [], None)  # The links of an unchanged page have arrived long ago.
            else:
                listed = None
                if self._link_finder.follows_sitemaps(entry):
                    listed = await run_cooperatively(self._link_finder.read_sitemap(entry, result, rules), self._alone)
                found = await run_cooperatively(
                    self._link_finder.find_links(entry, result, rules, listed, text_hash), self._alone
                )
        self._poison_pages.was_read(entry.url)
        location = self._outputs.keep(result, original)
        visit = self._rounds.fetched(entry, start, result, location, found.failed) if self._rounds else None
        if visit is not None and original is None and (answer := self._outputs.answer(result, location)) is not None:
            visit = visit._replace(answer=answer.encoded())
        proof = None if original is None else "not_modified" if result.status == 304 else "same_digest"
        known = visit.answer if visit is not None else ""
        line = self._outputs.line(entry, result, found, location, number, proof, text_hash, known)
        rule = None
        if self._extraction and not original and not found.failed and result.location is None and result.content:
            rule = self._page_rules.record(entry.url)
        page = None
        if page_wanted or rule is not None:
            page = Page.of(entry, result, found.links, found.failed, line.role)
            if not page_wanted:
                # Only this much is needed to see that the page is too large for records.
                page = replace(page, content=page.content[: self._limits.record_page_bytes_max + 1])
        held = LINE_BYTES + len(entry.url) + sum(len(link.url) for link in found.outlinks)
        if page is not None:
            held += len(page.content) + sum(map(len, page.links))
        self._counters.find_links(len(found.links))
        self._counters.leave_out(found.left_out)
        body_bytes, unchanged = len(result.body), original is not None
        return ProcessedPage(line, found.failed, found.outlinks, page, rule, body_bytes, held, visit, number, unchanged)

    def count(self, page: ProcessedPage, records: bytes) -> None:
        """Count a finished URL and the records in these lines."""
        if page.line.status is None:
            self._counters.give_up()
        else:
            self._counters.answer(
                page.body_bytes,
                records.count(b"\n"),
                is_revisit=page.number > 0,
                is_unchanged=page.is_unchanged,
                has_record_error=page.line.record_error is not None,
            )

    def outlinks_of_forbidden(self, entry: FrontierEntry, rules: Rules) -> list[Link]:
        """Return the links of a page that robots.txt forbids: the sitemaps of its site, if the job follows sitemaps."""
        onward, left_out = self._link_finder.sitemaps(entry, rules)
        self._counters.leave_out(left_out)
        return onward

    async def lines(self, entry: FrontierEntry, answered: ProcessedPage) -> tuple[bytes, bytes]:
        """Extract the records of a page, and return its page line and its record lines."""
        return self._outputs.lines(entry, answered.line, await self._extracted(answered))

    def _simhash(self, result: FetchResult, *, is_unchanged: bool) -> int | None:
        """Return the SimHash of a page if the page line or the search for near duplicates needs it."""
        wanted = self._outputs.with_simhash or (self._link_finder.looks_for_near_duplicates and not is_unchanged)
        if not wanted or result.why_failed is not None or result.mime not in HTML or not result.content:
            return None
        return simhash(result.content)

    async def _extracted(self, processed: ProcessedPage) -> ExtractedRecords | None:
        """Return the records of a page, or None if no rule applies to the page."""
        if self._extraction is None or processed.page is None or processed.rule is None:
            return None
        extracted = await self._extraction.extract(processed.rule, processed.page)
        if extracted.error is not None:
            log.warning("record.failed url=%s why=%s", processed.page.url, extracted.error)
        return extracted
