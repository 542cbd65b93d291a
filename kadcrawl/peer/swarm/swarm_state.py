"""The swarm state: whether a person has paused the swarm, as far as one peer knows, and the fingerprint of that.

A wave brings each order to all peers at once, but it misses a peer that is just entering the routing tables of others,
and a peer that is cut off. So the orders are a state that merges: each heartbeat carries a fingerprint of the state and
of the job's seeds, and a peer that hears another fingerprint asks for the state (state_gossip.py).

Of two orders the later one counts, by a hybrid logical clock (Kulkarni et al. 2014): an order's stamp is the clock of
the peer that gives it, in milliseconds, or one more than the latest stamp known there. So an order is later than all
orders known where it was given and, as far as the clocks agree, than the orders unknown there. Of two orders with the
same stamp, the one that pauses counts.

This module only decides.
"""

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Literal

from kadcrawl.link.wire.messages import COUNT_MAX, Order
from kadcrawl.settings.job import SEEDS_CHARS_MAX, SEEDS_MAX, Job

AHEAD_MAX_S = 366 * 86_400.0
"""The furthest a stamp counts ahead of this peer's clock, in seconds. So nobody can use up all stamps, and a machine
that has slept for days still agrees with the others."""


class SwarmState:
    """The swarm state that one peer knows."""

    def __init__(self, stamp: int = 0, *, paused: bool = False) -> None:
        self.stamp = stamp
        """The stamp of the last order to pause or to resume, in milliseconds since 1970, or 0."""
        self.paused = paused

    def __repr__(self) -> str:
        return f"<SwarmState {self.stamp} paused={self.paused}>"

    def order(self, verb: Literal["pause", "resume", "stop"], now: float) -> Order:
        """Return an order, given at this second, that is later than all orders known here."""
        return Order(verb, 0 if verb == "stop" else min(max(self.stamp + 1, _milliseconds(now)), COUNT_MAX))

    def hear(self, stamp: int, now: float, *, paused: bool) -> None:
        """Take over the state of another peer, if its stamp is later."""
        stamp = min(stamp, _milliseconds(now + AHEAD_MAX_S))
        if (stamp, paused) > (self.stamp, self.paused):
            self.stamp, self.paused = stamp, paused

    def pause(self) -> None:
        """Pause without an order: the swarm begins paused."""
        self.paused = True

    def fingerprint(self, seeds_fingerprint: int) -> int:
        """Return a number of 32 bits, not zero, that all peers with this state and these seeds compute alike."""
        return _hash(f"{self.stamp} {self.paused}") ^ seeds_fingerprint or 1


def fingerprint_of_seeds(seeds: Iterable[str]) -> int:
    """Return a number of 32 bits, not zero, that is the same for the same seeds in any order."""
    fingerprint = 0
    for url in seeds:
        fingerprint ^= _hash(url)
    return fingerprint or 1


def nameable(job: Job, urls: Sequence[str], named_max: int = SEEDS_MAX) -> Sequence[str]:
    """Return the first of these URLs that the job has room for, with `named_max` seeds at most."""
    room = named_max - len(job.seeds)
    chars = SEEDS_CHARS_MAX - sum(map(len, job.seeds))
    for count, url in enumerate(urls):
        chars -= len(url)
        if count >= room or chars < 0:
            return urls[:count]
    return urls


def _milliseconds(now: float) -> int:
    return max(0, int(now * 1000))


def _hash(text: str) -> int:
    return int.from_bytes(blake2b(text.encode(errors="surrogatepass"), digest_size=4).digest(), "big")
