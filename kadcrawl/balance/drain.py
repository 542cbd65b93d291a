"""Shedding by time: who would be busy longer than the mean hands blocks of URLs to who will be idle first.

A count of URLs (P1 1.4) does not tell a slow peer with few from a quick one with many; seconds to drain do. Decides
only: whoever asks, every so often, has measured the loads and makes the moves.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class Load:
    """What one peer has before it. Raises ValueError where a number is below 0, or a URL takes no time."""

    pending: int
    """URLs that could still be handed over."""
    url_s: float
    """How long it takes for one, by what was measured or predicted."""
    busy_s: float = 0.0
    """Until it is free for them: the rest of what it has begun, or of its start."""

    def __post_init__(self) -> None:
        if self.pending < 0 or not self.url_s > 0 or not self.busy_s >= 0 or not isfinite(self.url_s + self.busy_s):
            raise ValueError(f"{self} cannot be: no number is below 0, and a URL takes some time")

    @property
    def drain_s(self) -> float:
        """Until it is idle."""
        return self.busy_s + self.pending * self.url_s


class Move(NamedTuple):
    """`urls` URLs go from one peer to another, both by their place in the loads."""

    giver: int
    taker: int
    urls: int


def shed(loads: Sequence[Load], block_urls: int, hand_over_s: float = 0.0) -> list[Move]:
    """Return what to move now, in blocks of `block_urls`; at most one move for a pair.

    Who is above the mean gives, the longest drain first; who is not takes, and of them the one that would be idle first
    with the block. It is moved only if the taker, who if idle before waits `hand_over_s` for it, will then be done with
    everything before the giver would have been: so each block makes the later of the two ends earlier, none is worth
    moving back, and there is an end of moving.

    Raises:
        ValueError: a block of no URLs.
    """
    if block_urls < 1:
        raise ValueError(f"a block of {block_urls} URLs cannot be moved: 1 or more")
    loads = list(loads)
    moved: dict[tuple[int, int], int] = {}
    mean_s = sum(load.drain_s for load in loads) / max(1, len(loads))
    givers = {peer for peer, load in enumerate(loads) if load.drain_s > mean_s}
    takers = [peer for peer in range(len(loads)) if peer not in givers]
    while givers and takers:
        giver = max(givers, key=lambda peer: (loads[peer].drain_s, -peer))
        given = _given(loads[giver], block_urls)
        taken, taker = min(
            ((_taken(loads[peer], block_urls, hand_over_s), peer) for peer in takers),
            key=lambda each: (each[0].drain_s, each[1]),
        )
        if given is None or taken.drain_s >= loads[giver].drain_s:
            givers.discard(giver)
            continue
        loads[giver], loads[taker] = given, taken
        moved[giver, taker] = moved.get((giver, taker), 0) + block_urls
    return [Move(giver, taker, urls) for (giver, taker), urls in moved.items()]


def _given(load: Load, urls: int) -> Load | None:
    return replace(load, pending=load.pending - urls) if load.pending >= urls else None


def _taken(load: Load, urls: int, hand_over_s: float) -> Load:
    """Return the load with `urls` more, that come when `hand_over_s` have passed."""
    idle_s = max(0.0, hand_over_s - load.drain_s)
    return replace(load, pending=load.pending + urls, busy_s=load.busy_s + idle_s)
