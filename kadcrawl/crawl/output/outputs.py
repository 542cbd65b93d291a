"""What the crawl leaves behind: WARC files, one line per URL in pages.jsonl, and one per record in records.jsonl.

Ties the files to the journal: before each commit the WARC is handed to the system and its length journaled, so that
after a crash it is cut back to what the journal knows. Called by the crawler once per finished URL.

Tests: tests/crawl/test_crawler.py
"""

from collections.abc import Mapping
from pathlib import Path
from random import Random

import msgspec

from kadcrawl.crawl.content.link_finder import FoundLinks
from kadcrawl.crawl.content.record_extractor import ExtractedRecords
from kadcrawl.crawl.fetch.result import FetchResult
from kadcrawl.crawl.output.warc import Original, WarcPlace, WarcWriter
from kadcrawl.errors import DiskFullError, StorageError
from kadcrawl.settings.limits import Limits
from kadcrawl.settings.page_rules import PageRules
from kadcrawl.store.frontier_entry import FrontierEntry
from kadcrawl.store.journal import is_disk_full
from kadcrawl.store.store import Store

WARC_DIRECTORY = "warc"


class PageLine(msgspec.Struct, omit_defaults=True):
    """One line of pages.jsonl."""

    key: str
    """Of the URL (keys.py), in hex: what a page is known by in a sink (kadcrawl.sinks)."""
    url: str
    status: int | None
    mime: str
    bytes: int
    """Of the body as received."""
    digest: str
    """sha1: and base32, of the body as received; the WARC's payload digest. Empty without a body."""
    depth: int
    links: int
    """Distinct links found on the page."""
    fetched_at: str
    ms: int
    peer: str
    """First 16 hex digits of the peer's ID."""
    warc: str | None = None
    """File, below the peer's directory, of the response record."""
    offset: int | None = None
    """Where in that file the record's gzip member begins."""
    visit: int = 0
    """How many visits to it came before this one."""
    unchanged: str | None = None
    """If it is as it was at an earlier visit: by what that is known, "not_modified" (304) or "same_digest"; then the
    WARC has a revisit record, and the digest is that of the earlier one."""
    simhash: str | None = None
    """Of its text, if the job asks for it: 16 hex digits; twins differ in few bits (crawl/content/simhash.py)."""
    failed: str | None = None
    """Why it counts as failed: a Failure, http_404 and the like, robots, robots_unreachable, killed_peer, ..."""
    detail: str | None = None
    canonical: str | None = None
    """The URL it names as canonical, if the job honors that: its other links were left to the page there."""
    twin: str | None = None
    """The URL of an earlier page of its site with nearly the same text, if its links were left to that."""
    role: str | None = None
    """`next_link` or `detail_request`, if the job says so of the URL."""
    records: int = 0
    """Of it in records.jsonl."""
    record_error: str | None = None
    """Why it has no records, if a rule says what they would be."""


class RecordLine(msgspec.Struct):
    """One line of records.jsonl."""

    key: str
    """The page's in hex, and the record's number on the page: the same whoever fetches it again."""
    url: str
    fetched_at: str
    peer: str
    rule: str
    """Name of the rule, or its pattern."""
    record: msgspec.Raw


class Outputs:
    """The WARC writer and the page lines of one peer."""

    def __init__(
        self,
        directory: Path,
        name: str,
        info: Mapping[str, str],
        peer: str,
        store: Store,
        limits: Limits,
        random: Random,
        with_simhash: bool = False,
        rules: PageRules | None = None,
    ) -> None:
        """`name` begins the WARC files' names, `info` describes them, `peer` is its ID in hex. Raises OSError."""
        self._store = store
        self._peer = peer[:16]
        self.with_simhash = with_simhash
        """Whether lines tell it."""
        self._rules = rules or PageRules()
        committed = store.meta.read("warc", msgspec.json.Decoder(tuple[str, int]).decode)
        self._warc = WarcWriter.open(
            directory / WARC_DIRECTORY,
            name,
            committed,
            info=info,
            bytes_max=limits.warc_bytes_max,
            random=random,
        )
        self.flush()

    def flush(self) -> list[int]:
        """Hand the WARC to the system, journal its length, and return the file descriptor to be synced."""
        self._warc.flush()
        self._store.meta.set("warc", msgspec.json.encode(self._warc.position))
        return [self._warc.fileno()]

    def keep(self, result: FetchResult, original: Original | None = None) -> WarcPlace | None:
        """Write a request and its response to the WARC; None if there was no response. Raises StorageError.

        `original` is an earlier response the page is still as it was in: then only the head of this one is kept.
        """
        if result.status is None:
            return None
        try:
            return self._warc.write(result, original)
        except OSError as error:
            kind = DiskFullError if is_disk_full(error) else StorageError
            raise kind(f"cannot write to the WARC: {error}; make room and start again") from error

    def line(
        self,
        entry: FrontierEntry,
        result: FetchResult,
        found: FoundLinks,
        place: WarcPlace | None,
        visit: int = 0,
        unchanged: str | None = None,
        simhash: int | None = None,
    ) -> PageLine:
        """Return the page line of a URL that was asked for, to be given to `lines`; its fields say what is what."""
        told = self.with_simhash and simhash is not None and found.failed is None
        return PageLine(
            key=entry.key.hex(),
            url=entry.url,
            status=result.status,
            mime=result.mime,
            bytes=len(result.body),
            digest=place.payload_digest if place else "",
            depth=entry.depth,
            links=len(found.links),
            fetched_at=result.started_at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            ms=round(result.seconds * 1000),
            peer=self._peer,
            warc=f"{WARC_DIRECTORY}/{place.file}" if place else None,
            offset=place.offset if place else None,
            visit=visit,
            unchanged=unchanged,
            simhash=f"{simhash:016x}" if told else None,
            failed=found.failed,
            detail=result.detail or None,
            canonical=found.canonical,
            twin=found.near_duplicate,
            role=self._role(entry),
        )

    def lines(self, entry: FrontierEntry, line: PageLine, extracted: ExtractedRecords | None) -> tuple[bytes, bytes]:
        """Return what belongs in pages.jsonl and in records.jsonl of a URL that was asked for."""
        if extracted is None:
            return _encoded(line), b""
        line.records, line.record_error = len(extracted.records), extracted.error
        number = self._rules.record(entry.url)
        label = "" if number is None else self._rules.records[number].label
        key = entry.key.hex()
        records = [
            RecordLine(f"{key}:{index}", line.url, line.fetched_at, line.peer, label, record)
            for index, record in enumerate(extracted.records)
        ]
        return _encoded(line), b"".join(map(_encoded, records))

    def unfetched_line(self, entry: FrontierEntry, at: str, failed: str, visit: int = 0) -> bytes:
        """Return the page line of a URL that was not asked for, and why."""
        return _encoded(
            PageLine(
                key=entry.key.hex(),
                url=entry.url,
                status=None,
                mime="",
                bytes=0,
                digest="",
                depth=entry.depth,
                links=0,
                fetched_at=at,
                ms=0,
                peer=self._peer,
                visit=visit,
                failed=failed,
                role=self._role(entry),
            )
        )

    def _role(self, entry: FrontierEntry) -> str | None:
        rule = self._rules.role(entry.url)
        return None if rule is None else rule.role

    def close(self) -> None:
        self._warc.close()


def _encoded(line: PageLine | RecordLine) -> bytes:
    return msgspec.json.encode(line) + b"\n"
