"""The share of non-members' datagrams to read in a flood of datagrams that begin like a member's.

An attacker that has seen the swarm's datagrams can send similar ones, or the same again, as fast as its line allows.
Each costs two to four microseconds before it is known as a non-member's. Beyond `NON_MEMBERS_PER_SECOND_MAX` the kernel
passes only one in 2, 4, 8 ... of them, drawn at random, and all datagrams from the addresses of known peers
(system/packet_filter.py). So a flood costs less than a tenth of a core, and a peer not yet known loses some of its
datagrams, as on a bad line.

A decision: counts and instants are arguments.
"""

import logging

log = logging.getLogger(__name__)

NON_MEMBERS_PER_SECOND_MAX = 20_000
"""Datagrams of non-members read per second: they cost less than a tenth of a core."""
ONE_IN_MAX = 1024
"""Largest value of `one_in`: it leaves 20,000 of twenty million datagrams a second."""
CALM_FACTOR = 4
"""The share doubles only when the rate is below the limit by this factor, so that the flood is over."""


class FloodSampler:
    """The share of datagrams from unknown addresses that the kernel passes."""

    def __init__(self) -> None:
        self.one_in = 1
        """The kernel passes one of so many datagrams from unknown addresses (a power of two)."""
        self._count = 0
        self._since: float | None = None

    def sample(self, non_members: int, now: float) -> bool:
        """Adapt the share. Return whether the kernel's filter must be updated.

        `non_members` counts non-members' datagrams since the start, `now` is in seconds. The filter is updated when
        `one_in` changes, and each time while `one_in` is above 1, as known peers come and go.
        """
        came, since = non_members - self._count, self._since
        self._count, self._since = non_members, now
        if since is None or now <= since:
            return False
        a_second, before = came / (now - since), self.one_in
        while a_second > NON_MEMBERS_PER_SECOND_MAX and self.one_in < ONE_IN_MAX:
            self.one_in *= 2
            a_second /= 2
        if self.one_in == before > 1 and a_second < NON_MEMBERS_PER_SECOND_MAX / CALM_FACTOR:
            self.one_in //= 2
        if self.one_in != before:
            log.warning("overlay.flood one_in=%d non_members=%d", self.one_in, non_members)
        return max(self.one_in, before) > 1
