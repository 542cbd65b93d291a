"""Blocked reasons tell why peers fetch nothing although URLs are pending, with advice for a person.

Tests: tests/cli/view/test_status.py, tests/cli/view/test_progress.py
"""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence

from kadcrawl.link.wire.leaf_messages import LEAF_STATE
from kadcrawl.link.wire.messages import PeerRow
from kadcrawl.settings.config import Limits

PAUSED = "paused"
FULL = "paused: disk full"
REFUSED = "refused by"
BLOCKED_PREFIXES = (PAUSED, REFUSED)
"""The beginnings of such states, ..."""
LOOKING = ("waiting for proxies", "looking for a peer")
"""... or the whole states. `peer.status` and `leaf.leaf` have these words, and commands do without those modules."""


def blocked_reasons(rows: Sequence[PeerRow]) -> dict[str, int]:
    """Return how many of these peers wait for each reason, by their states."""
    states = (row.state.removeprefix(LEAF_STATE) for row in rows)
    return dict(
        sorted(Counter(state for state in states if state.startswith(BLOCKED_PREFIXES) or state in LOOKING).items())
    )


def in_words(waiting: dict[str, int], peers: int) -> str:
    """Return the blocked reasons as an addition to a line about so many peers, or an empty text."""
    return "".join(f", {state}" if count >= peers else f", {count} {state}" for state, count in waiting.items())


def explained(waiting: Collection[str]) -> Iterator[str]:
    """Yield advice on blocked reasons, where the state itself gives none."""
    if FULL in waiting:
        mebibytes = Limits().disk_reserve_bytes // 1024**2
        yield f"with less than {mebibytes} MiB left on its disk a peer fetches nothing; it goes on when there is room"
