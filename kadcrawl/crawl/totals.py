"""What this peer has done since its directory was made: the counters behind status and summary."""

from dataclasses import dataclass, field

import msgspec

from kadcrawl.link.messages import Counters


@dataclass(slots=True)
class Totals:
    """Mutable twin of the wire's `Counters`; journaled with each commit."""

    pages: int = 0
    body_bytes: int = 0
    urls: int = 0
    done: int = 0
    links_seen: int = 0
    duplicates: int = 0
    peer_messages: int = 0
    failed: dict[str, int] = field(default_factory=dict)

    def fail(self, reason: str) -> None:
        """Count one URL recorded as failed."""
        self.failed[reason] = self.failed.get(reason, 0) + 1

    def counters(self) -> Counters:
        return Counters(
            pages=self.pages,
            bytes=self.body_bytes,
            urls=self.urls,
            done=self.done,
            links_seen=self.links_seen,
            duplicates=self.duplicates,
            peer_messages=self.peer_messages,
            failed=dict(self.failed),
        )

    def to_bytes(self) -> bytes:
        return msgspec.json.encode(self)

    @classmethod
    def from_bytes(cls, journaled: bytes | None) -> "Totals":
        """Return the totals as journaled; new ones if there are none."""
        if journaled is None:
            return cls()
        return msgspec.json.decode(journaled, type=cls)
