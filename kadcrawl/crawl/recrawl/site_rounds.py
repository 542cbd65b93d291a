"""`SiteRounds` decides which sites may have due pages brought back, so that no page of a site waits for ever.

The frontier takes the pages of a site in the order of their depth. If a site has more due pages than its pace can
fetch, the pages near the seeds are due again before those far below have had their turn. So a site whose due pages are
back is held, until as many pages of it are finished as were pending then. A decision without a clock.

Tests: tests/crawl/recrawl/test_site_rounds.py
"""

from collections.abc import Callable, Collection

from kadcrawl.keys import SITE_BYTES, Cell, Key


class SiteRounds:
    """The held sites of one peer."""

    def __init__(self, pending: Callable[[bytes], int]) -> None:
        """`pending` returns the pages of a site, by its hash, that may be fetched now."""
        self._pending = pending
        self._owed: dict[Cell, dict[bytes, int]] = {}
        """Cell -> its held sites, each with the pages to finish before its next round."""
        self._begun: dict[Cell, set[bytes]] = {}
        """Cell -> the sites whose due pages are being brought back, in several turns."""

    def held(self, cell: Cell) -> Collection[bytes]:
        """Return the hashes of the sites of a cell whose pages are not brought back now."""
        return self._owed.get(cell, ())

    @property
    def any_held(self) -> bool:
        """True if a site is held."""
        return bool(self._owed)

    def bring_back(self, cell: Cell, key: Key) -> None:
        """Note that a page of a cell is brought back."""
        self._begun.setdefault(cell, set()).add(key[:SITE_BYTES])

    def hold(self, cell: Cell) -> None:
        """Hold the sites of a cell whose due pages were brought back."""
        for site in self._begun.pop(cell, ()):
            if pending := self._pending(site):
                self._owed.setdefault(cell, {})[site] = pending

    def finish(self, cell: Cell, key: Key) -> bool:
        """Count a finished page. Return whether its site is not held, or not any more."""
        owed, site = self._owed.get(cell), key[:SITE_BYTES]
        if owed is None or site not in owed:
            return True
        owed[site] -= 1
        return self._let_go(cell, site)

    def recount(self, count: int) -> list[Cell]:
        """Count what is pending anew, and return the cells with a site that is held no more.

        Pages leave without being finished here as well: they are dropped, put off, or finished by another peer. About
        `count` sites are looked at, those not looked at for the longest time first.
        """
        freed = []
        for cell in list(self._owed):
            if count <= 0:
                break
            owed = self._owed[cell] = self._owed.pop(cell)
            count -= len(owed)
            for site in list(owed):
                owed[site] = min(owed[site], self._pending(site))
                if self._let_go(cell, site):
                    freed.append(cell)
        return freed

    def forget(self, cell: Cell) -> None:
        """Forget a cell that is opened or closed."""
        self._owed.pop(cell, None)
        self._begun.pop(cell, None)

    def _let_go(self, cell: Cell, site: bytes) -> bool:
        owed = self._owed[cell]
        if owed[site] > 0:
            return False
        del owed[site]
        if not owed:
            del self._owed[cell]
        return True
