"""The counters of this peer since its directory was made, behind the status and the summary."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from kadcrawl.link.wire.messages import PeerCounters

COUNTED_ALONE = frozenset(
    f"http_{status}"
    for status in (
        *(400, 401, 402, 403, 404, 405, 406, 408, 409, 410, 418, 421, 422, 423, 425, 429, 451),
        *(500, 501, 502, 503, 504, 505, 508, 520, 521, 522, 523, 524, 525, 526, 530),
    )
)
"""HTTP statuses with a counter each.

A server could otherwise fill the message, which has at most `REASONS_MAX` names, with odd statuses. The set is the same
on every peer, so that their counts add up."""


def counted_as(reason: str) -> str:
    """Return the name under which the reason of a failure is counted. The page line has the exact reason."""
    if not reason.startswith("http_") or reason in COUNTED_ALONE:
        return reason
    return f"http_{reason[5]}xx" if len(reason) == 8 and reason[5] in "45" else "http_odd"


@dataclass(slots=True)
class Counters:
    """The mutable form of the wire's `PeerCounters`, journaled with each commit."""

    pages: int = 0
    body_bytes: int = 0
    urls: int = 0
    done: int = 0
    links_seen: int = 0
    duplicates: int = 0
    peer_messages: int = 0
    revisits: int = 0
    unchanged: int = 0
    records: int = 0
    record_errors: int = 0
    unanswered: int = 0
    """URLs given up without any answer. On the wire they are among the failed URLs."""
    failed: dict[str, int] = field(default_factory=dict)
    left_out: dict[str, int] = field(default_factory=dict)
    retried: dict[str, int] = field(default_factory=dict)

    @property
    def tried(self) -> int:
        """URLs that were requested to their end."""
        return self.pages + self.unanswered

    def accept(self) -> None:
        """Count a new URL."""
        self.urls += 1

    def find_links(self, links: int) -> None:
        """Count the links found on a page."""
        self.links_seen += links

    def answer(
        self, body_bytes: int, records: int, *, is_revisit: bool, is_unchanged: bool, has_record_error: bool = False
    ) -> None:
        """Count a page whose server answered."""
        self.pages += 1
        self.body_bytes += body_bytes
        self.records += records
        self.record_errors += has_record_error
        self.revisits += is_revisit
        self.unchanged += is_unchanged

    def give_up(self) -> None:
        """Count a URL given up without any answer."""
        self.unanswered += 1

    def finish(self, *, is_first: bool) -> None:
        """Count a URL as DONE. It is a duplicate, and no further URL, if the store knew it as DONE before."""
        self.done += 1
        self.duplicates += not is_first

    def fail(self, reason: str, urls: int = 1) -> None:
        """Count URLs recorded as failed."""
        name = counted_as(reason)
        self.failed[name] = self.failed.get(name, 0) + urls

    def retry(self, reason: str) -> None:
        """Count a done URL that is pending again, by the reason of its last failure, which is empty without one."""
        self.retried[reason] = self.retried.get(reason, 0) + 1

    def leave_out(self, links: Mapping[str, int]) -> None:
        """Count links that limits kept from being followed, by limit."""
        for limit, count in links.items():
            self.left_out[limit] = self.left_out.get(limit, 0) + count

    def to_wire(self) -> PeerCounters:
        return PeerCounters(
            pages=self.pages,
            bytes=self.body_bytes,
            urls=self.urls,
            done=self.done,
            links_seen=self.links_seen,
            duplicates=self.duplicates,
            peer_messages=self.peer_messages,
            revisits=self.revisits,
            unchanged=self.unchanged,
            failed=dict(self.failed),
            left_out=dict(self.left_out),
            records=self.records,
            record_errors=self.record_errors,
            retried=dict(self.retried),
        )

    def to_bytes(self) -> bytes:
        return msgspec.json.encode(self)

    @classmethod
    def from_bytes(cls, journaled: bytes | None) -> "Counters":
        """Return the journaled counters, or new counters if none can be read."""
        try:
            counters = msgspec.json.decode(journaled, type=cls) if journaled is not None else cls()
        except msgspec.MsgspecError:
            return cls()  # The crawl works without the counters, and its pages are in the log.
        failed, counters.failed = counters.failed, {}
        for reason, urls in failed.items():
            counters.fail(reason, urls)
        return counters
