"""Near duplicates of a site's earlier pages are found, so that their links need not be followed (`Job.twins`).

Two pages are near duplicates when their SimHashes (simhash.py) differ in at most 3 bits. Only pages whose links were
followed are remembered, so a page is a near duplicate of one of these, and never of another near duplicate: else many
small steps could lead from one text to quite another. A page met again, by a recrawl, is not its own near duplicate,
and the first page stays first.

The search is that of Manku, Jain and Das Sarma (WWW 2007): if at most 3 of 64 bits differ, one of four blocks of 16
bits is equal. Each site has four sorted arrays of its SimHashes, rotated so that another block comes first. SimHashes
that begin with the same block stand together, and of 20,000 random SimHashes at most one does. On a site whose pages
are made so that all stand together, a search takes some milliseconds.

Each peer remembers the pages that it has fetched itself, in memory and bounded, and forgets the oldest first. So the
memory begins anew after a restart, when a site falls to another owner, and with each peer that borrows pages.
Forgetting costs requests and no page: links are followed once more than necessary. A decision: no I/O, no clock.
"""

from array import array
from bisect import bisect_left, bisect_right, insort
from collections import OrderedDict, deque
from collections.abc import Iterator

from kadcrawl.crawl.content.simhash import BITS

DIFFERING_BITS_MAX = 3
"""The most bits in which the SimHashes of near duplicates differ."""
SITE_PAGES_MAX = 20_000
"""Pages of one site remembered, those met last."""
PAGES_MAX = 200_000
"""Pages remembered in all, ..."""
CHARS_MAX = 20_000_000
"""... and characters of their URLs; both together are 70 MB. The site met longest ago forgets its oldest first."""
SITES_MAX = 10_000
"""Sites, which take 2 KB beside their pages: the one met longest ago is forgotten."""

_BLOCK_BITS = BITS // (DIFFERING_BITS_MAX + 1)
_ALL = (1 << BITS) - 1
_REST = _ALL >> _BLOCK_BITS
"""All bits but the first block."""


class NearDuplicates:
    """The pages of all sites one peer fetches from whose links were followed."""

    def __init__(
        self,
        site_pages_max: int = SITE_PAGES_MAX,
        pages_max: int = PAGES_MAX,
        chars_max: int = CHARS_MAX,
        sites_max: int = SITES_MAX,
    ) -> None:
        self._site_pages_max = site_pages_max
        self._pages_max = pages_max
        self._chars_max = chars_max
        self._sites_max = sites_max
        self._sites: OrderedDict[str, _Site] = OrderedDict()
        """By name, the one met longest ago first."""
        self._pages = 0
        self._chars = 0

    def __len__(self) -> int:
        """Return how many pages are remembered."""
        return self._pages

    def first(self, site: str, url: str, simhash: int) -> str | None:
        """Return the URL of the site's earlier page that this page nearly duplicates, or None."""
        known = self._sites.get(site)
        if known is None:
            return None
        self._sites.move_to_end(site)
        near = list(known.near(simhash))
        return near[0] if near and url not in near else None

    def remember(self, site: str, url: str, simhash: int) -> None:
        """The links of a page are followed: remember it, unless one it is near to is remembered, be it itself."""
        known = self._sites.setdefault(site, _Site())
        self._sites.move_to_end(site)
        if next(known.near(simhash), None) is not None:
            return
        known.add(simhash, url)
        self._pages += 1
        self._chars += len(url)
        if len(known.urls) > self._site_pages_max:
            self._forget_oldest(site)
        if len(self._sites) > self._sites_max:
            _, gone = self._sites.popitem(last=False)
            self._pages -= len(gone.urls)
            self._chars -= sum(map(len, gone.urls.values()))
        while self._pages > self._pages_max or self._chars > self._chars_max:
            self._forget_oldest(next(iter(self._sites)))

    def _forget_oldest(self, site: str) -> None:
        known = self._sites[site]
        self._chars -= len(known.drop_oldest())
        self._pages -= 1
        if not known.urls:
            del self._sites[site]


class _Site:
    """The pages of one site."""

    def __init__(self) -> None:
        self.urls: dict[int, str] = {}
        """URLs by SimHash."""
        self._order: deque[int] = deque()
        """SimHashes, the oldest first."""
        self._turned = [array("Q") for _ in range(DIFFERING_BITS_MAX + 1)]
        """SimHashes turned left by so many blocks, sorted."""

    def near(self, simhash: int) -> Iterator[str]:
        """Yield the URLs of near duplicates of a page with this SimHash, some more than once."""
        for blocks, turned in enumerate(self._turned):
            sought = _turn(simhash, blocks)
            start, end = bisect_left(turned, sought & ~_REST), bisect_right(turned, sought | _REST)
            for found in turned[start:end]:
                if (found ^ sought).bit_count() <= DIFFERING_BITS_MAX:
                    yield self.urls[_turn(found, len(self._turned) - blocks)]

    def add(self, simhash: int, url: str) -> None:
        """Remember a page with a SimHash that none has."""
        self.urls[simhash] = url
        self._order.append(simhash)
        for blocks, turned in enumerate(self._turned):
            insort(turned, _turn(simhash, blocks))

    def drop_oldest(self) -> str:
        """Forget the oldest page, and return its URL."""
        simhash = self._order.popleft()
        for blocks, turned in enumerate(self._turned):
            del turned[bisect_left(turned, _turn(simhash, blocks))]
        return self.urls.pop(simhash)


def _turn(simhash: int, blocks: int) -> int:
    """Return a SimHash turned left by so many blocks."""
    bits = blocks * _BLOCK_BITS % BITS
    return (simhash << bits | simhash >> (BITS - bits)) & _ALL
