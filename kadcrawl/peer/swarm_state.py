"""What the swarm is to do, as far as one peer has heard: whether it is paused, and by which seeds it crawls.

A wave brings that to everybody at once, but misses who is just entering the tables of others, and who is cut off. So it
is a state that merges, and each heartbeat carries a fingerprint of it; who hears another one asks (see `concord`). Of
two orders the later counts, by a hybrid logical clock (Kulkarni et al. 2014): the milliseconds of its giver's clock, or
one more than the latest order it knows of. So an order is later than all its giver had heard of, and, as far as clocks
agree, than those it had missed. Of two at the same millisecond the one that pauses counts.

Decides only.
"""

from collections.abc import Iterable
from hashlib import blake2b
from typing import Literal

from kadcrawl.link.wire.messages import COUNT_MAX, Order

AHEAD_MAX_S = 366 * 86_400.0
"""A stamp further ahead of one's own clock is taken for one that far ahead: so nobody can use all of them up, and a
machine that has slept for days still agrees with the others."""


class SwarmState:
    """What one peer takes the swarm to be told."""

    def __init__(self, stamp: int = 0, *, paused: bool = False) -> None:
        self.stamp = stamp
        """Of the last order to pause or to resume: milliseconds since 1970; 0 if there was none."""
        self.paused = paused

    def __repr__(self) -> str:
        return f"<Course {self.stamp} paused={self.paused}>"

    def order(self, verb: Literal["pause", "resume", "stop"], now: float) -> Order:
        """Return the order that makes every peer do so, given at this second, whatever is known to have been said."""
        return Order(verb, 0 if verb == "stop" else min(max(self.stamp + 1, _milliseconds(now)), COUNT_MAX))

    def hear(self, stamp: int, now: float, *, paused: bool) -> None:
        """Take what another peer was told, if that is later."""
        stamp = min(stamp, _milliseconds(now + AHEAD_MAX_S))
        if (stamp, paused) > (self.stamp, self.paused):
            self.stamp, self.paused = stamp, paused

    def fingerprint(self, seeds_fingerprint: int) -> int:
        """Return a number of 32 bits, not zero, that is the same for all of this course with seeds of this mark."""
        return _hash(f"{self.stamp} {self.paused}") ^ seeds_fingerprint or 1


def fingerprint_of_seeds(seeds: Iterable[str]) -> int:
    """Return a number of 32 bits, not zero, that is the same for the same seeds in whatever order they came."""
    mark = 0
    for url in seeds:
        mark ^= _hash(url)
    return mark or 1


def _milliseconds(now: float) -> int:
    return max(0, int(now * 1000))


def _hash(text: str) -> int:
    return int.from_bytes(blake2b(text.encode(errors="surrogatepass"), digest_size=4).digest(), "big")
