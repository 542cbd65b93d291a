"""How many strangers' datagrams are worth a look, when masses come that begin as members' do.

Who has seen the swarm's datagrams go by can send others alike, or the same again, as fast as a line carries them; each
costs two to four microseconds to be told from a member's. Beyond `LOOKED_AT_MAX` a second the kernel lets only one in
2, 4, 8 ... through, drawn by chance, and all that come from the addresses of known peers (overlay/packet_filter.py). So
a flood costs less than a tenth of a core; who is not known yet loses some of its datagrams, as on a bad line.

Decides only: counts and instants come in.
"""

import logging

log = logging.getLogger(__name__)

NON_MEMBERS_PER_SECOND_MAX = 20_000
"""Strangers' datagrams looked at in a second: less than a tenth of a core."""
ONE_IN_MAX = 1024
"""Of twenty million a second there are 20,000 left."""
CALM_FACTOR = 4
"""Twice the share is let through only when so many times fewer come than may, so that it is no flood again."""


class FloodSampler:
    """What is let through of strangers' datagrams."""

    def __init__(self) -> None:
        self.one_in = 1
        """Of so many datagrams from unknown addresses one is let through; a power of two."""
        self._count = 0
        self._since: float | None = None

    def sample(self, non_members: int, now: float) -> bool:
        """Note how many have been looked at since the start; return whether the kernel must be told.

        That is when `one_in` changes, and each time while it is above 1, as known peers come and go.
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
