"""The figures of a whole crawl, added up from its peers: what --summary writes and the last lines say."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import msgspec

from kadcrawl.link.messages import PeerRow

LINES_COMPARED_MAX = 1_000_000
"""Lines of page logs in which repeats are looked for: about 100 MB of memory and a second or two."""


class _Logged(msgspec.Struct):
    """A line of pages.jsonl, as far as it matters here."""

    url: str


@dataclass(frozen=True, slots=True)
class Summary:
    """Counts over all peers, since the crawl's directory was made."""

    pages: int
    bytes: int
    urls_found: int
    urls_done: int
    urls_failed: dict[str, int]
    duplicates: int
    links_seen: int
    peer_messages: int
    seconds: float
    """Of this run."""
    peers: list[dict[str, Any]]

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def add_up(rows: Iterable[PeerRow], seconds: float) -> Summary:
    """Return the summary of these peers."""
    rows = sorted(rows, key=lambda row: row.contact.id)
    failed: Counter[str] = Counter()
    for row in rows:
        failed.update(row.counters.failed)
    return Summary(
        pages=sum(row.counters.pages for row in rows),
        bytes=sum(row.counters.bytes for row in rows),
        urls_found=sum(row.counters.urls for row in rows),
        urls_done=sum(row.counters.done for row in rows),
        urls_failed=dict(sorted(failed.items())),
        duplicates=sum(row.counters.duplicates for row in rows),
        links_seen=sum(row.counters.links_seen for row in rows),
        peer_messages=sum(row.counters.peer_messages for row in rows),
        seconds=round(seconds, 3),
        peers=[{"id": row.contact.id.hex(), "pages": row.counters.pages, "urls": row.counters.urls} for row in rows],
    )


def repeats(directories: Iterable[Path]) -> int:
    """Return how many lines of these peers' page logs are about a URL that had a line before."""
    lines = 0
    seen: set[int] = set()
    for directory in directories:
        with (directory / "pages.jsonl").open("rb") as log:
            for line in log:
                lines += 1
                # 64 bits each: among a million URLs, two agree by chance in one of ten million crawls.
                seen.add(hash(msgspec.json.decode(line, type=_Logged).url))
    return lines - len(seen)
