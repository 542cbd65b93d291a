"""What the swarm is to do, as far as one peer has heard: whether it is paused, and by which seeds it crawls.

A wave brings that to everybody at once, but misses who is just entering the tables of others, and who is cut off. So it
is a state that merges, and each heartbeat carries a fingerprint of it; who hears another one asks (see `concord`). Of
two pauses the one with the later serial number counts, of two with the same number the one that pauses. Serial numbers
go round (RFC 1982), so that none is the last, whatever a member says.

Decides only.
"""

from collections.abc import Iterable
from hashlib import blake2b
from typing import Literal

from kadcrawl.link.messages import SERIALS, Order


class Course:
    """What one peer takes the swarm to be told."""

    def __init__(self, serial: int = 0, *, paused: bool = False) -> None:
        self.serial = serial % SERIALS
        """Goes up by one with each order to pause or to resume."""
        self.paused = paused

    def __repr__(self) -> str:
        return f"<Course {self.serial} paused={self.paused}>"

    def order(self, verb: Literal["pause", "resume", "stop"]) -> Order:
        """Return the order that makes every peer do so, whatever it was told before."""
        return Order(verb, 0 if verb == "stop" else (self.serial + 1) % SERIALS)

    def hear(self, serial: int, *, paused: bool) -> None:
        """Take what another peer was told, if that is later."""
        ahead = (serial - self.serial) % SERIALS
        if ahead == 0:
            self.paused = self.paused or paused
        elif ahead < SERIALS // 2:
            self.serial, self.paused = serial, paused

    def fingerprint(self, seeds: Iterable[str]) -> int:
        """Return a number of 32 bits, not zero, that is the same for all peers of this course with these seeds."""
        mixed = _hash(f"{self.serial} {self.paused}")
        for url in seeds:
            mixed ^= _hash(url)  # In whatever order they came.
        return mixed or 1


def _hash(text: str) -> int:
    return int.from_bytes(blake2b(text.encode(errors="surrogatepass"), digest_size=4).digest(), "big")
