"""The partitioner computes the site, key and cell of a URL from the job's partition. Pure, and called for every new
link."""

from functools import lru_cache
from typing import NamedTuple

from kadcrawl.keys import Cell, Key, cell_of, site_hash, url_key
from kadcrawl.urls import SITE_CHARS_CACHED, Partition, site_of

SITES_CACHED_MAX = 50_000
"""Limit on the sites whose hash is remembered."""


class UrlLocation(NamedTuple):
    """The place of one URL."""

    site: str
    key: Key
    cell: Cell


class Partitioner:
    """Gives each canonical URL its place."""

    def __init__(self, partition: Partition, cell_bits: int) -> None:
        self._partition = partition
        self._cell_bits = cell_bits
        self._cached_hash = lru_cache(SITES_CACHED_MAX)(site_hash)

    def cell(self, site: str) -> Cell:
        """Return the cell all URLs of a site lie in."""
        return cell_of(Key(self._hash(site)), self._cell_bits)

    def locate(self, url: str) -> UrlLocation:
        """Return the place of a canonical URL."""
        site = site_of(url, self._partition)
        key = url_key(self._hash(site), url)
        return UrlLocation(site, key, cell_of(key, self._cell_bits))

    def locate_offered(self, url: str) -> UrlLocation | None:
        """Return the location of a URL that another peer offers, or None if the URL is not canonical."""
        if not url.isascii():
            return None
        try:
            return self.locate(url)
        except (ValueError, IndexError):
            return None

    def _hash(self, site: str) -> bytes:
        return self._cached_hash(site) if len(site) <= SITE_CHARS_CACHED else site_hash(site)
