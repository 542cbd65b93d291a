"""The figures of a whole crawl, added up from its peers: what --summary writes and the last lines say."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from kadcrawl.link.messages import PeerRow


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
