"""What the crawl leaves behind: WARC files, and one line per URL in pages.jsonl.

Ties the files to the journal: before each commit the WARC is handed to the system and its length journaled, so that
after a crash it is cut back to what the journal knows. Called by the crawler once per finished URL.
"""

from collections.abc import Mapping
from pathlib import Path
from random import Random

import msgspec

from kadcrawl.config import Limits
from kadcrawl.crawl.fetched import HTML, Fetched
from kadcrawl.crawl.simhash import simhash
from kadcrawl.crawl.warc import WarcPlace, WarcWriter
from kadcrawl.errors import DiskFullError, StorageError
from kadcrawl.history.entry import Entry
from kadcrawl.history.journal import is_disk_full
from kadcrawl.history.store import Store

WARC_DIRECTORY = "warc"


class PageLine(msgspec.Struct, omit_defaults=True):
    """One line of pages.jsonl."""

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
    simhash: str | None = None
    """Of its text, if the job asks for it: 16 hex digits; twins differ in few bits (crawl/simhash.py)."""
    failed: str | None = None
    """Why it counts as failed: a Failure, http_404 and the like, robots, robots_unreachable, redirect_limit, ..."""
    detail: str | None = None


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
    ) -> None:
        """`name` begins the WARC files' names, `info` describes them, `peer` is its ID in hex. Raises OSError."""
        self._store = store
        self._peer = peer[:16]
        self._with_simhash = with_simhash
        journaled = store.meta("warc")
        committed = msgspec.json.decode(journaled, type=tuple[str, int]) if journaled else None
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
        self._store.set_meta("warc", msgspec.json.encode(self._warc.position))
        return [self._warc.fileno()]

    def keep(self, fetched: Fetched) -> WarcPlace | None:
        """Write a request and its response to the WARC; None if there was no response. Raises StorageError."""
        if fetched.status is None:
            return None
        try:
            return self._warc.write(fetched)
        except OSError as error:
            kind = DiskFullError if is_disk_full(error) else StorageError
            raise kind(f"cannot write to the WARC: {error}; make room and start again") from error

    def line(self, entry: Entry, fetched: Fetched, links: int, place: WarcPlace | None, failed: str | None) -> bytes:
        """Return the page line of a URL that was asked for."""
        return _encoded(
            PageLine(
                url=entry.url,
                status=fetched.status,
                mime=fetched.mime,
                bytes=len(fetched.body),
                digest=place.payload_digest if place else "",
                depth=entry.depth,
                links=links,
                fetched_at=fetched.started_at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
                ms=round(fetched.seconds * 1000),
                peer=self._peer,
                warc=f"{WARC_DIRECTORY}/{place.file}" if place else None,
                offset=place.offset if place else None,
                simhash=self._simhash(fetched) if failed is None else None,
                failed=failed,
                detail=fetched.detail or None,
            )
        )

    def _simhash(self, fetched: Fetched) -> str | None:
        if not self._with_simhash or fetched.mime not in HTML or not fetched.content:
            return None
        fingerprint = simhash(fetched.content)
        return None if fingerprint is None else f"{fingerprint:016x}"

    def unfetched_line(self, entry: Entry, at: str, failed: str) -> bytes:
        """Return the page line of a URL that was not asked for, and why."""
        return _encoded(
            PageLine(
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
                failed=failed,
            )
        )

    def close(self) -> None:
        self._warc.close()


def _encoded(line: PageLine) -> bytes:
    return msgspec.json.encode(line) + b"\n"
