"""Shedding by time: who would be busy longer than the others hands blocks of URLs to who will be idle first.

A count of URLs (P1 1.4) does not tell a slow peer with few from a quick one with many; seconds to drain do. Decides
only: whoever asks, every so often, has measured the backlogs and makes the moves. `shed` decides for all peers of whom
everything is known. In a swarm each looks around by itself, at the same instants: one that would be busy beyond the
*common end*, at which all would be done that it asked, makes `gifts`; and a taker `accepts`, or not, by what it has
then, and by what all have told that asked it. So several may choose the same taker without filling it up.

Nothing swings. Only own URLs are lent on, so a block moves once, and a second time only if its taker fails; who gives
is above the common end and who takes is to stay below its giver; and less than `MARGIN` is no reason to begin.

A peer that has measured nothing is *cold*: it gives nothing, as it may be quick; and it is given a block to try, as
nobody would ever know otherwise. If it was done with that at once it is still cold, as it can only be measured while
something waits for it, and next tries twice as many (`Trial`). What others tell may be a lie: it costs balance, never
a URL.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heapreplace
from math import isfinite
from typing import NamedTuple

DRAIN_MARGIN = 0.1
"""Of a peer's time to drain: by so much it must be above the common end, and its taker's, before it gives anything."""
TRIAL_MAX = 64
"""Blocks a cold peer tries at most."""
BLOCKS_PER_UPDATE_MAX = 500
"""Given at one look around; what is left is looked at again at the next."""


@dataclass(frozen=True, slots=True)
class Backlog:
    """What one peer has before it. Raises ValueError where a number is below 0, or a URL takes no time."""

    pending: int
    """URLs that could still be handed over."""
    url_s: float
    """How long it takes for one, by what was measured or predicted."""
    busy_s: float = 0.0
    """Until it is free for them: the rest of what it has begun or borrowed, or of its start."""

    def __post_init__(self) -> None:
        if self.pending < 0 or not self.url_s > 0 or not self.busy_s >= 0 or not isfinite(self.url_s + self.busy_s):
            raise ValueError(f"{self} cannot be: no number is below 0, and a URL takes some time")

    @property
    def drain_s(self) -> float:
        """Until it is idle."""
        return self.busy_s + self.pending * self.url_s


class Move(NamedTuple):
    """`urls` URLs go from one peer to another, both by their place in the backlogs."""

    lender: int
    borrower: int
    urls: int


def plan_moves(backlogs: Sequence[Backlog], block_urls: int, hand_over_s: float = 0.0) -> list[Move]:
    """Return what to move now, in blocks of `block_urls`; at most one move for a pair.

    Who is above the mean gives, the longest drain first; who is not takes, and of them the one that would be idle first
    with the block. It is moved only if the taker, who if idle before waits `hand_over_s` for it, will then be done with
    everything before the giver would have been: so each block makes the later of the two ends earlier, none is worth
    moving back, and there is an end of moving.

    Raises:
        ValueError: a block of no URLs.
    """
    _check(block_urls)
    backlogs = list(backlogs)
    moved: dict[tuple[int, int], int] = {}
    mean_s = sum(backlog.drain_s for backlog in backlogs) / max(1, len(backlogs))
    givers = {peer for peer, backlog in enumerate(backlogs) if backlog.drain_s > mean_s}
    takers = [peer for peer in range(len(backlogs)) if peer not in givers]
    while givers and takers:
        giver = max(givers, key=lambda peer: (backlogs[peer].drain_s, -peer))
        taken, taker = min(
            ((_taken(backlogs[peer], block_urls, hand_over_s), peer) for peer in takers),
            key=lambda each: (each[0].drain_s, each[1]),
        )
        if backlogs[giver].pending < block_urls or taken.drain_s >= backlogs[giver].drain_s:
            givers.discard(giver)
            continue
        backlogs[giver], backlogs[taker] = _given(backlogs[giver], block_urls), taken
        moved[giver, taker] = moved.get((giver, taker), 0) + block_urls
    return [Move(giver, taker, urls) for (giver, taker), urls in moved.items()]


def common_end_s(backlogs: Sequence[Backlog]) -> float:
    """Return when all would be done if what these have were shared out by how quick they are; 0 for nobody."""
    power = sum(1 / backlog.url_s for backlog in backlogs)
    return sum(backlog.drain_s / backlog.url_s for backlog in backlogs) / power if power else 0.0


class BlockTrial:
    """How many blocks a cold peer without work tries."""

    def __init__(self) -> None:
        self.blocks = 1
        self._has_some = False

    def started(self) -> None:
        """It was given some."""
        self._has_some = True

    def update(self, waiting: int) -> None:
        """Note, at an update, how many URLs that it was given wait for it, and not for their sites."""
        if self._has_some and not waiting:
            self._has_some = False
            self.blocks = min(2 * self.blocks, TRIAL_MAX)


def block_offers(own: Backlog, others: Sequence[Backlog | int], block_urls: int, hand_over_s: float = 0.0) -> list[int]:
    """Return how many blocks of `block_urls` to offer each of the `others`; a number is what a cold one would try.

    Each cold one is given that, up to `TRIAL_MAX`, or half of what we have. The others are given some if we are
    `MARGIN` above the common end: each block to the one that would be done first with it, if that is before us and it
    is not above the common end itself, until we are not any more; none to one that is not `MARGIN` before us to begin
    with.

    Raises:
        ValueError: a block of no URLs.
    """
    _check(block_urls)
    blocks = [0] * len(others)
    longest_s = (1 - DRAIN_MARGIN) * own.drain_s
    end_s = common_end_s([own, *(other for other in others if isinstance(other, Backlog))])
    left = BLOCKS_PER_UPDATE_MAX
    for place, other in enumerate(others):
        if isinstance(other, int):
            # Were it as quick as we are, it should be done with that before us.
            few = min(other, TRIAL_MAX, left, own.pending // (2 * block_urls))
            if few > 0 and few * block_urls * own.url_s + hand_over_s < longest_s:
                own, blocks[place] = _given(own, few * block_urls), few
                left -= few
    if longest_s <= end_s:
        return blocks
    takers = [
        (after.drain_s, place, after)
        for place, other in enumerate(others)
        if isinstance(other, Backlog)
        and other.drain_s <= end_s
        and (after := _taken(other, block_urls, hand_over_s)).drain_s < longest_s
    ]
    heapify(takers)
    while takers and left and own.pending >= block_urls and own.drain_s > end_s:
        ends_s, place, after = takers[0]
        if ends_s >= own.drain_s:
            break
        own = _given(own, block_urls)
        blocks[place] += 1
        left -= 1
        if ends_s > end_s:
            heappop(takers)
        else:
            after = _taken(after, block_urls, hand_over_s)
            heapreplace(takers, (after.drain_s, place, after))
    return blocks


def accepts(
    own: Backlog, lender: Backlog, others: Sequence[Backlog], urls: int, block_urls: int, hand_over_s: float = 0.0
) -> bool:
    """Return whether a peer takes `urls` of a giver that still has them; `others` are known to have work as well.

    It was not above the common end before it got the last block of them, and is done with that before its giver.

    Raises:
        ValueError: a block of no URLs.
    """
    _check(block_urls)
    before = max(0, urls - block_urls)
    giver_then = replace(lender, pending=max(0, lender.pending - before))
    end_s = common_end_s([own, lender, *others])
    return (
        _taken(own, before, hand_over_s).drain_s <= max(end_s, hand_over_s)
        and _taken(own, urls, hand_over_s).drain_s < giver_then.drain_s
    )


def _check(block_urls: int) -> None:
    if block_urls < 1:
        raise ValueError(f"a block of {block_urls} URLs cannot be moved: 1 or more")


def _given(backlog: Backlog, urls: int) -> Backlog:
    return replace(backlog, pending=backlog.pending - urls)


def _taken(backlog: Backlog, urls: int, hand_over_s: float) -> Backlog:
    """Return the backlog with `urls` more, that come when `hand_over_s` have passed."""
    idle_s = max(0.0, hand_over_s - backlog.drain_s)
    return replace(backlog, pending=backlog.pending + urls, busy_s=backlog.busy_s + idle_s)
