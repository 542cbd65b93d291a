"""Writes the output files of a crawl: WARC files, a line per URL in pages.jsonl, and a line per record in
records.jsonl.

The files are tied to the journal. Before each commit the WARC is handed to the operating system and its length is
journaled. After a crash the WARC is cut back to the length that the journal knows. The crawler calls this module once
per finished URL.

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
    """The key of the URL (keys.py) in hex, which identifies the page in a sink (kadcrawl.sinks)."""
    url: str
    status: int | None
    mime: str
    bytes: int
    """Bytes of the body as received."""
    digest: str
    """The digest of the body as received, "sha1:" and base32: the payload digest of the WARC. Empty without a body."""
    depth: int
    links: int
    """Distinct links found on the page."""
    fetched_at: str
    ms: int
    peer: str
    """First 16 hex digits of the peer's ID."""
    warc: str | None = None
    """File of the response record, below the peer's directory."""
    offset: int | None = None
    """Offset of the record's gzip member in this file."""
    visit: int = 0
    """Number of earlier visits."""
    unchanged: str | None = None
    """Proof that the page has not changed since an earlier visit: "not_modified" (304) or "same_digest".

    The WARC has a revisit record then, and the digest is the digest of the earlier visit."""
    simhash: str | None = None
    """SimHash of the page's text in 16 hex digits, if the job asks for it.

    Near duplicates differ in few bits (crawl/content/simhash.py)."""
    failed: str | None = None
    """Reason of a failure: a FetchError, http_404 and the like, robots, robots_unreachable, killed_peer, ..."""
    detail: str | None = None
    canonical: str | None = None
    """The URL that the page names as canonical, if the job honors that. Its other links were left to the page there."""
    twin: str | None = None
    """The URL of an earlier near duplicate on the same site, if this page's links were not followed for that."""
    role: str | None = None
    """`next_link` or `detail_request`, if the job gives the URL a role."""
    records: int = 0
    """Records of the page in records.jsonl."""
    record_error: str | None = None
    """Reason for the lack of records, if a rule applies to the page."""


class RecordLine(msgspec.Struct):
    """One line of records.jsonl."""

    key: str
    """The key of the page in hex, and the record's number on the page. The key is the same at every peer."""
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
        """Open the outputs. Raises OSError.

        `name` begins the names of the WARC files, `info` describes them, and `peer` is the peer's ID in hex.
        """
        self._store = store
        self._peer = peer[:16]
        self.with_simhash = with_simhash
        """Page lines have the SimHash."""
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
        """Hand the WARC to the operating system, journal its length, and return the file descriptor to be synced."""
        self._warc.flush()
        self._store.meta.set("warc", msgspec.json.encode(self._warc.position))
        return [self._warc.fileno()]

    def keep(self, result: FetchResult, original: Original | None = None) -> WarcPlace | None:
        """Write a request and its response to the WARC, or return None without a response. Raises StorageError.

        `original` is an earlier response with the same page: only the head of the new response is written then.
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
        """Return the page line of a requested URL, for `lines`."""
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
        """Return the line for pages.jsonl and the lines for records.jsonl of a requested URL."""
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
        """Return the page line of a URL without a request, with `failed` as the reason."""
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
