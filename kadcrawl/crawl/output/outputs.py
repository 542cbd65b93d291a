"""Writes the output files of a crawl: WARC files, a line per URL in pages.jsonl, and a line per record in
records.jsonl.

The files are tied to the journal. Before each commit the WARC is handed to the operating system and its length is
journaled. After a crash the WARC is cut back to the length that the journal knows. The crawler calls this module once
per finished URL.

Tests: tests/crawl/test_crawler.py
"""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from random import Random
from typing import Any

import msgspec

from kadcrawl.crawl.content.link_finder import FoundLinks
from kadcrawl.crawl.content.record_extractor import ExtractedRecords
from kadcrawl.crawl.fetch.result import FetchResult
from kadcrawl.crawl.output.cdxj import WARC_SUFFIX
from kadcrawl.crawl.output.warc import Original, WarcPlace, WarcWriter
from kadcrawl.errors import DiskFullError, StorageError
from kadcrawl.settings.limits import Limits
from kadcrawl.settings.page_rules import PageRules
from kadcrawl.store.disk_faults import is_disk_full, write_fault
from kadcrawl.store.frontier_entry import FrontierEntry
from kadcrawl.store.last_answer import LastAnswer, decoded, printable_mime
from kadcrawl.store.store import Store

WARC_DIRECTORY = "warc"


class PageLine(msgspec.Struct, omit_defaults=True):
    """One line of pages.jsonl: a URL that is finished, fetched or not.

    A URL has one line for each visit. Fields with a default are absent when they have it.
    """

    key: str
    """Key of the URL (keys.py), 20 bytes in hex. It identifies the page in a sink."""
    url: str
    """The canonical URL (urls.py)."""
    status: int | None
    """HTTP status, or null without a response."""
    mime: str
    """Media type of the response in lower case, without parameters, or empty."""
    bytes: int
    """Bytes of the body as received, before decompression."""
    digest: str
    """Digest of the body as received, as in the WARC: `sha1:` and 32 characters of base32. Empty without a response."""
    depth: int
    """Number of links from the nearest seed to the page. A redirect adds nothing."""
    links: int
    """Distinct links found on the page, in scope or not."""
    fetched_at: str
    """Time at which the request began, or at which the URL was given up without a request: RFC 3339, UTC, milliseconds.
    """
    ms: int
    """Milliseconds from the begin of the request to the last byte. 0 without a request."""
    peer: str
    """First 16 hex digits of the ID of the peer that wrote the line."""
    warc: str | None = None
    """File with the record of the response, below the peer's directory."""
    offset: int | None = None
    """Offset in this file, in bytes, at which the gzip member of the record begins."""
    visit: int = 0
    """Number of earlier visits to the URL."""
    unchanged: str | None = None
    """Proof that the page has not changed since an earlier visit: `not_modified` (status 304) or `same_digest`.

    The WARC has a revisit record then, and the digest is the digest of the earlier visit."""
    simhash: str | None = None
    """SimHash of the page's text in 16 hex digits. Near duplicates differ in few bits (crawl/content/simhash.py)."""
    failed: str | None = None
    """Reason for which the URL counts as failed."""
    detail: str | None = None
    """A few words about the failure, for a person."""
    location: str | None = None
    """The URL that a redirect leads to, or what the server named instead of one."""
    tried_by: int = 1
    """Number of peers that tried to connect before the URL counted as failed."""
    via: str | None = None
    """First 16 hex digits of the ID of the peer that made the request, if another peer made it."""
    canonical: str | None = None
    """The URL that the page names as canonical. Its other links were left to the page there."""
    twin: str | None = None
    """The URL of an earlier near duplicate on the same site. The links of this page were left to that page."""
    noindex: bool = False
    """True if the page asks search engines not to show it, by `X-Robots-Tag` or a robots meta element.

    Absent in the line of an unchanged visit, whose page is not read."""
    role: str | None = None
    """Role of the URL by the rules of the job: `next_link` or `detail_request`."""
    records: int = 0
    """Number of the page's lines in records.jsonl."""
    record_error: str | None = None
    """Reason for which a page with a record rule has no records."""
    answer_status: int | None = None
    """Status of the last answer with a body to keep, always 200.

    The other fields of the line are those of this visit, which may have brought no such answer."""
    answer_mime: str | None = None
    """Media type of that answer, at most 100 characters."""
    answer_bytes: int | None = None
    """Bytes of its body as received."""
    answer_digest: str | None = None
    """Digest of its body."""
    answer_fetched_at: str | None = None
    """Time at which its request began."""
    answer_peer: str | None = None
    """First 16 hex digits of the ID of the peer that has its record."""
    answer_warc: str | None = None
    """File with its record, below the directory of that peer."""
    answer_offset: int | None = None
    """Offset of its record in this file, in bytes."""


class RecordLine(msgspec.Struct):
    """One line of records.jsonl: a record that a rule extracted from a page."""

    key: str
    """Key of the page in hex, a colon, and the number of the record on the page, from 0.

    The key is the same at every peer."""
    url: str
    """The canonical URL of the page."""
    fetched_at: str
    """Time at which the page was fetched, as in its line of pages.jsonl."""
    peer: str
    """First 16 hex digits of the ID of the peer that wrote the line."""
    rule: str
    """Name of the record rule, or its pattern if it has no name."""
    record: msgspec.Raw
    """The record: a JSON object with the fields of the rule, or as the hook returned it.

    A field with one selector has a text or null. A field with a selector in a list has a list of texts."""


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
        now: Callable[[], float],
        with_simhash: bool = False,
        rules: PageRules | None = None,
    ) -> None:
        """Open the outputs. Raises OSError.

        `name` begins the names of the WARC files, `info` describes them, and `peer` is the peer's ID in hex.
        `now` returns seconds since 1970.
        """
        self._store = store
        self._peer = peer[:16]
        self.with_simhash = with_simhash
        """Page lines have the SimHash."""
        self._rules = rules or PageRules()
        self._warcs = directory / WARC_DIRECTORY
        committed = store.meta.read("warc", msgspec.json.Decoder(tuple[str, int]).decode)
        self._warc = WarcWriter.open(
            self._warcs,
            name,
            committed,
            info=info,
            bytes_max=limits.warc_bytes_max,
            random=random,
            now=now,
            known=lambda file: offsets_in(file, store.journal.last_page_lines()),
            lost=store.journal.lost_files.note,
        )
        self.flush()

    @property
    def warc_file(self) -> str:
        """The name of the WARC file being written. All other WARC files of the directory are finished."""
        return self._warc.position[0]

    def finished_warcs(self) -> list[Path]:
        """Return the WARC files of this directory that will not grow any more. Raises OSError."""
        return sorted(path for path in self._warcs.glob(f"*{WARC_SUFFIX}") if path.name != self.warc_file)

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
            raise kind(write_fault(f"cannot write to the WARC: {error}", error, self._warcs.parent)) from error

    def answer(self, result: FetchResult, place: WarcPlace | None) -> LastAnswer | None:
        """Return an answer as later page lines name it, or None unless it is a whole answer 200 in the WARC."""
        if place is None or result.status != 200 or result.error is not None:
            return None
        return LastAnswer(
            mime=printable_mime(result.mime),
            bytes=len(result.body),
            digest=place.payload_digest,
            fetched_at=_time(result, place),
            peer=self._peer,
            warc=f"{WARC_DIRECTORY}/{place.file}",
            offset=place.offset,
        )

    def line(
        self,
        entry: FrontierEntry,
        result: FetchResult,
        found: FoundLinks,
        place: WarcPlace | None,
        visit: int = 0,
        unchanged: str | None = None,
        simhash: int | None = None,
        answer: str = "",
    ) -> PageLine:
        """Return the page line of a requested URL, for `lines`.

        `answer` is the last answer with a body to keep (store/last_answer.py), which may be this one.
        """
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
            fetched_at=_time(result, place),
            ms=round(result.seconds * 1000),
            peer=self._peer,
            warc=f"{WARC_DIRECTORY}/{place.file}" if place else None,
            offset=place.offset if place else None,
            visit=visit,
            unchanged=unchanged,
            simhash=f"{simhash:016x}" if told else None,
            failed=found.failed,
            detail=found.detail or result.detail or None,
            location=found.location,
            tried_by=result.tried_by,
            via=result.via or None,
            canonical=found.canonical,
            twin=found.near_duplicate,
            noindex=found.noindex,
            role=self._role(entry),
            **_answer_fields(answer),
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

    def unfetched_line(
        self, entry: FrontierEntry, at: str, failed: str, visit: int = 0, tried_by: int = 1, answer: str = ""
    ) -> bytes:
        """Return the page line of a URL without a request, with `failed` as the reason.

        `tried_by` is the number of peers that tried to connect to the site, and `answer` is the last answer.
        """
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
                tried_by=tried_by,
                role=self._role(entry),
                **_answer_fields(answer),
            )
        )

    def _role(self, entry: FrontierEntry) -> str | None:
        rule = self._rules.role(entry.url)
        return None if rule is None else rule.role

    def close(self) -> None:
        self._warc.close()


class _PlacedLine(msgspec.Struct):
    """The fields of a page line that say where its record is."""

    warc: str | None = None
    offset: int | None = None


def offsets_in(file: str, lines: Iterable[bytes]) -> list[int]:
    """Return the offsets in a WARC file at which these page lines have their records."""
    placed = map(_decode_place, lines)
    return [each.offset for each in placed if each.warc == f"{WARC_DIRECTORY}/{file}" and each.offset is not None]


def _decode_place(line: bytes) -> _PlacedLine:
    try:
        return msgspec.json.decode(line, type=_PlacedLine)
    except (msgspec.MsgspecError, UnicodeError):
        return _PlacedLine()


def _time(result: FetchResult, place: WarcPlace | None) -> str:
    if place is not None:
        return f"{place.date[:23]}Z"  # The same instant in microseconds.
    return result.started_at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _answer_fields(text: str) -> dict[str, Any]:
    """Return the fields of a page line about the last answer."""
    answer = decoded(text)
    if answer is None:
        return {}
    fields = msgspec.structs.asdict(answer)
    return {"answer_status": 200} | {f"answer_{name}": value for name, value in fields.items()}


def _encoded(line: PageLine | RecordLine) -> bytes:
    return msgspec.json.encode(line) + b"\n"
