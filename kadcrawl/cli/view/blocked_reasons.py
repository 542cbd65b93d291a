"""Blocked reasons tell why peers fetch nothing although URLs are pending, with advice for a person.

Tests: tests/cli/view/test_status.py, tests/cli/view/test_progress.py
"""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence

from kadcrawl.link.wire.messages import PeerRow
from kadcrawl.link.wire.peer_state import BLOCKED, PeerState, state_text
from kadcrawl.settings.limits import Limits

READING_SEEDS = "reading seeds"
"""The words for peers that are paused until their crawl has read its seeds."""


def blocked_reasons(rows: Sequence[PeerRow], *, reads_seeds: bool = False) -> dict[str, int]:
    """Return the number of peers in each state that keeps a peer from fetching, by the words of the state.

    `reads_seeds`: the crawl still reads its seeds, so that its peers are paused by no person.
    """
    counts = Counter(state_text(row.state, row.refused_by) for row in rows if row.state in BLOCKED)
    if reads_seeds and (paused := counts.pop(state_text(PeerState.PAUSED), 0)):
        counts[READING_SEEDS] = paused
    return dict(sorted(counts.items()))


def in_words(waiting: dict[str, int], peers: int) -> str:
    """Return the blocked reasons as an addition to a line about so many peers, or an empty text."""
    return "".join(f", {state}" if count >= peers else f", {count} {state}" for state, count in waiting.items())


def explained(waiting: Collection[str]) -> Iterator[str]:
    """Yield advice on blocked reasons, where the state itself gives none."""
    if state_text(PeerState.PAUSED) in waiting:
        yield "a paused swarm fetches nothing until kadcrawl resume, or until a local crawl has read its seeds"
    if state_text(PeerState.DISK_FULL) in waiting:
        mebibytes = Limits().disk_reserve_bytes // 1024**2
        yield (
            f"with less than {mebibytes} MiB left on its disk, or its own disk_reserve_bytes, a peer fetches nothing; "
            "it goes on when there is room"
        )
