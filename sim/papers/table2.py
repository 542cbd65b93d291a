"""The paper's eight peers, and the numbers that follow from their rates alone (P1 2.2, Table 2)."""

from collections.abc import Collection, Sequence

from .level_model import Setting

BLOCK = 20
"""H, URLs."""
PEERS = (
    Setting(0.2, 0.083, 6),
    Setting(0.2, 0.08, 6),
    Setting(0.05, 0.16, 1),
    Setting(0.1, 0.34, 1),
    Setting(0.2, 0.09, 6),
    Setting(0.1, 0.083, 4),
    Setting(0.1, 0.22, 1),
    Setting(0.05, 0.136, 1),
)
"""Table 2."""


def light() -> list[int]:
    """Return which of them, numbered from 0, crawl more than arrives."""
    return [number for number, peer in enumerate(PEERS) if peer.arrivals < peer.crawls]


def gain_bound(peers: Sequence[Setting], share: float = 1.0, stuck: Collection[int] = ()) -> float:
    """Return the greatest possible gain in percent: the excess of heavy peers that light peers can take.

    The heavy peers that are `stuck`, numbered from 1, give none.
    """
    excess = [peer.arrivals * share - peer.crawls for peer in peers]
    alone = sum(min(peer.crawls, peer.arrivals * share) for peer in peers)
    given = sum(max(0.0, rate) for number, rate in enumerate(excess, 1) if number not in stuck)
    return 100 * min(given, sum(max(0.0, -rate) for rate in excess)) / alone


def interval_needed(peer: Setting) -> float:
    """Return the T beyond which the paper's bound allows a peer its work area, in seconds."""
    heavy = peer.arrivals > peer.crawls
    return (peer.blocks_wide + heavy) * BLOCK / abs(peer.crawls - peer.arrivals)
