"""`LeasedClocks` remembers which peer leased each shared clock to this peer.

A message to that peer about one clock also renews others, and gives back those without use: else each would cost a
message of its own some moments later. A decision: times are seconds of the loop.

Tests: tests/crawl/clocks/test_leased_clocks.py
"""

from itertools import islice

from kadcrawl.crawl.clocks.shared_clock import SharedClock
from kadcrawl.link.wire.clock_messages import CLOCKS_MAX, ClockQuestion

AskedClock = tuple[SharedClock, ClockQuestion]


class LeasedClocks:
    """The leases of one peer, by the owners of their clocks."""

    def __init__(self) -> None:
        self._by_owner: dict[bytes, dict[str, SharedClock]] = {}
        """Owner -> the clocks that it leased, the longest not asked about first."""
        self._owners: dict[str, bytes] = {}
        """Clock -> the owner that leased it."""

    def note(self, shared: SharedClock, owner: bytes) -> None:
        """Note the answer of an owner to a question about a clock."""
        self._forget(shared.name)
        if shared.is_leased:
            self._owners[shared.name] = owner
            self._by_owner.setdefault(owner, {})[shared.name] = shared

    def company(self, owner: bytes, count: int, now: float) -> list[AskedClock]:
        """Return questions for an owner that are not due yet, to fill a message that has `count` questions."""
        leased = list(islice(self._by_owner.get(owner, {}).values(), CLOCKS_MAX))
        asked = ((shared, shared.early_question(now)) for shared in leased)
        found = ((shared, question) for shared, question in asked if question is not None)
        return list(islice(found, max(0, CLOCKS_MAX - count)))

    def _forget(self, clock: str) -> None:
        owner = self._owners.pop(clock, None)
        if owner is not None:
            leased = self._by_owner[owner]
            del leased[clock]
            if not leased:
                del self._by_owner[owner]
