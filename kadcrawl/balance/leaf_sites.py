"""`LeafSites`: which leaf of a full peer gets which site, by the two-level hash (P3: masters and their slaves).

Each leaf has a place in the virtual table, found from its ID, and has it again when it comes back. The two-level hash
(two_level_hash.py) deals a site when it first has URLs to lend. From then on the site keeps its leaf, which has
connections to the site and its robots.txt. As printed, the hash alone would deal most sites anew whenever a leaf comes
or goes, since most places are empty. Here only the sites of a leaf that goes are dealt anew.

No leaf is without work while others have too much: a ready site waits `TURN_S` for its leaf. Then any leaf that wants
work may take it, and keeps it. Decisions only, in the seconds of the caller.
"""

from collections.abc import Collection, Iterable, Sequence

from kadcrawl.balance.two_level_hash import two_level_hash
from kadcrawl.keys import site_hash

PLACES = 37
"""Places of the virtual table: a prime above the leaves of a peer, so the two divisions do not depend on each other."""
TURN_S = 1.0
"""Seconds that a ready site waits for its leaf. A leaf that waits for work is looked at five times in a second."""
SITES_DEALT_MAX = 10_000
"""Sites whose leaf is remembered. The hash deals a forgotten site anew."""


class LeafSites:
    """The leaves of one full peer, and their sites."""

    def __init__(self) -> None:
        self._places: dict[int, bytes] = {}
        """Place -> the live leaf there, in the order of places."""
        self._dealt: dict[str, bytes] = {}
        """Site -> its leaf, a leaf that is alive."""
        self._ready_at: dict[str, float] = {}
        """Site with URLs to lend -> the second since which it has them."""

    def arrive(self, leaf: bytes) -> None:
        """Give a new leaf a place: the place of its ID, or the next that is free. A known leaf keeps its place.

        Raises ValueError if all places are taken.
        """
        if leaf in self._places.values():
            return
        first = int.from_bytes(leaf, "big") % PLACES
        free = next((at for step in range(PLACES) if (at := (first + step) % PLACES) not in self._places), None)
        if free is None:
            raise ValueError(f"all {PLACES} places are taken: let a leaf go first")
        self._places = dict(sorted([*self._places.items(), (free, leaf)]))

    def depart(self, leaf: bytes) -> None:
        """Free the place of a leaf that went. Its sites are dealt anew, and all other sites keep their leaf."""
        self._places = {place: other for place, other in self._places.items() if other != leaf}
        self._dealt = {site: other for site, other in self._dealt.items() if other != leaf}

    def leaf_of(self, site: str) -> bytes:
        """Return the leaf of a site. Raises ValueError if there is no leaf."""
        leaf = self._dealt.get(site)
        if leaf is None:
            number = int.from_bytes(site_hash(site), "big")
            (place,) = two_level_hash([number], PLACES, [*self._places])
            leaf = self._places[place]
            self._deal(site, leaf)
        return leaf

    def note_ready(self, sites: Iterable[str], now: float) -> None:
        """Note all sites with URLs to lend at this moment."""
        self._ready_at = {site: self._ready_at.get(site, now) for site in sites}

    def sites_for(self, leaf: bytes, sites: Iterable[tuple[str, int]], now: float) -> Sequence[list[tuple[str, int]]]:
        """Return the leaf's own of these (site, URLs), and the others that it may take as their leaf let them wait."""
        own, waiting = [], []
        for site, urls in sites:
            if self.leaf_of(site) == leaf:
                own.append((site, urls))
            elif now >= self._ready_at.get(site, now) + TURN_S:
                waiting.append((site, urls))
        return own, waiting

    def note_lent(self, leaf: bytes, site: str, holders: Collection[bytes]) -> None:
        """Note that a leaf borrowed URLs of a site. It is the site's leaf from now on.

        `holders` had loans of the site before. A site with several connections stays with its leaf if that is one.
        """
        self._ready_at.pop(site, None)
        if leaf in self._places.values() and self.leaf_of(site) not in holders:
            self._deal(site, leaf)

    def _deal(self, site: str, leaf: bytes) -> None:
        self._dealt[site] = leaf
        if len(self._dealt) > SITES_DEALT_MAX:
            del self._dealt[next(iter(self._dealt))]
