"""The URLs of the experiments: those of a synthetic web with sites by Zipf's law, or each URL a site by itself.

Keys are made as kadcrawl makes them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from kadcrawl.keys import Key, site_hash, url_key

from ..synthetic_sites import PLAIN, make_sites

CELL_BITS = 16
"""Cell bits of a job by default."""
SITES = 2_000
SEED_SITES = 20
ZIPF = 1.0
"""The second largest site is half as large as the largest."""

Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class Urls:
    """URLs by their keys. `site` holds the number of each URL's site."""

    keys: Sequence[Key]
    site: Numbers

    @cached_property
    def _words(self) -> NDArray[np.uint64]:
        whole = np.frombuffer(b"".join(self.keys), dtype=np.uint8).reshape(-1, 20)
        return np.ascontiguousarray(whole[:, [*range(8), *range(12, 20)]]).view(">u8").astype(np.uint64)

    @property
    def place(self) -> NDArray[np.uint64]:
        """The top 64 bits of each key: where in the space its site lies."""
        return self._words[:, 0]

    @property
    def hash(self) -> NDArray[np.uint64]:
        """A hash of each URL by itself: the low 64 bits of its key."""
        return self._words[:, 1]

    @cached_property
    def cell(self) -> Numbers:
        """The cell of each (`kadcrawl.keys.cell_of`)."""
        return (self.place >> np.uint64(64 - CELL_BITS)).astype(np.int64)

    def __len__(self) -> int:
        return len(self.keys)

    def some(self, count: int) -> "Urls":
        """Return about `count` of them, spread over all."""
        step = max(1, len(self) // count)
        return Urls(self.keys[::step], self.site[::step])

    @property
    def largest_site(self) -> NDArray[np.bool_]:
        """A mask of the URLs of the largest site."""
        largest: NDArray[np.bool_] = self.site == np.bincount(self.site).argmax()
        return largest

    def cell_loads(self) -> tuple[NDArray[np.uint64], Numbers]:
        """Return the top 64 bits of the anchors of the cells that have URLs, and how many each has."""
        cells, counts = np.unique(self.cell, return_counts=True)
        return cells.astype(np.uint64) << np.uint64(64 - CELL_BITS), counts.astype(np.int64)


def of_sites(seed: int, count: int) -> Urls:
    """Return the URLs of a synthetic web of `SITES` sites."""
    keys: list[Key] = []
    sizes = []
    for site in make_sites(seed, SITES, count, SEED_SITES, ZIPF, PLAIN):
        hashed = site_hash(site.host)
        keys += [url_key(hashed, f"{site.origin}/{page}") for page in range(site.pages)]
        sizes.append(site.pages)
    return Urls(keys, np.repeat(np.arange(len(sizes), dtype=np.int64), sizes))


def alone(seed: int, count: int) -> Urls:
    """Return URLs that are each a site by itself, as in P1. Their keys are uniform."""
    urls = [f"http://page{number}-{seed}.test/" for number in range(count)]
    return Urls([url_key(site_hash(url), url) for url in urls], np.arange(count, dtype=np.int64))
