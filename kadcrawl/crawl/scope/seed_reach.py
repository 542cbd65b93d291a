"""The reach of streamed seeds: the hosts, domains or directories that seeds bring into scope when the job names them
not.

A job names a few thousand seeds, because it travels whole to every peer. Any number of further seeds is streamed to
their owners, and the other peers learn of them only what the scope needs: the *reach* of each seed, a fingerprint of
64 bits of its host (scope ``host``), registered domain (``domain``) or host and directory (``prefix``). With scope
``any`` a seed has no reach.

The reach comes in *segments*, sorted lists of up to 4,096 fingerprints that never change. A segment's ID is a hash of
its content, so nobody can give another content for it. The set of segments only grows, and two sets merge by exchanging
their IDs (peer/swarm/reach_sync.py). A set of ten million fingerprints has 2,500 segments, and its IDs take 40 kB. Two
hosts among ten million have the same fingerprint by chance once in 400,000 crawls. A decision: no I/O, no clock.
"""

import sys
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from itertools import pairwise

from kadcrawl.link.wire.seed_messages import (
    FINGERPRINT_BYTES,
    SEGMENT_FINGERPRINTS_MAX,
    SEGMENT_ID_BYTES,
    SEGMENTS_MAX,
)
from kadcrawl.settings.job import ScopeKind
from kadcrawl.urls import path_of, site_of

REACH_MAX = 2**24
"""Limit on the fingerprints of one crawl: some 150 MB of memory at each peer."""
_BUCKET_SHIFT = 52
"""The top 12 bits of a fingerprint name its bucket, so that each bucket is short enough to insert into."""


class SeedReach:
    """The reach of the streamed seeds that one peer has heard of."""

    def __init__(self, kind: ScopeKind) -> None:
        """`kind` is the job's scope."""
        self.kind = kind
        self.digest = 0
        """A number of 32 bits that is the same for the same segments in any order, and 0 for none."""
        self._buckets: dict[int, array[int]] = {}
        self._ids: dict[bytes, None] = {}
        self._count = 0

    def __len__(self) -> int:
        """Return the number of fingerprints."""
        return self._count

    @property
    def ids(self) -> bytes:
        """The IDs of all segments, one after the other."""
        return b"".join(self._ids)

    def lacking(self, ids: bytes) -> list[bytes]:
        """Return the segments among these IDs that are unknown here, as many as there is room for."""
        unknown = [one for one in split_ids(ids) if one not in self._ids]
        return unknown[: max(0, SEGMENTS_MAX - len(self._ids))]

    def covers(self, url: str, *, is_sitemap: bool = False) -> bool:
        """Return whether a canonical URL, perhaps of a followed sitemap, is in the reach of a streamed seed."""
        if not self._count:
            return False
        if is_sitemap and self._has(fingerprint(near_name(url, self.kind))):
            return True
        return any(self._has(fingerprint(name)) for name in _reaches_over(url, self.kind))

    def segments_of(self, urls: Iterable[str]) -> list[bytes]:
        """Return the segments that bring these canonical URLs into scope, without the reach known here."""
        if self.kind == "any":
            return []
        numbers = {fingerprint(name) for url in urls for name in _reaches_of(url, self.kind)}
        fresh = sorted(number for number in numbers if not self._has(number))
        starts = range(0, len(fresh), SEGMENT_FINGERPRINTS_MAX)
        return [_packed(fresh[start : start + SEGMENT_FINGERPRINTS_MAX]) for start in starts]

    def add(self, segment: bytes) -> bytes | None:
        """Add a segment, and return its ID, or None if it is known, malformed, or there is no room for it."""
        segment_id = id_of(segment)
        if segment_id in self._ids or len(self._ids) >= SEGMENTS_MAX or self.kind == "any":
            return None
        numbers = _unpacked(segment)
        if numbers is None or self._count + len(numbers) > REACH_MAX:
            return None
        for number in numbers:
            self._insert(number)
        self._ids[segment_id] = None
        self.digest ^= _digest_of(segment_id)
        return segment_id

    def _has(self, number: int) -> bool:
        bucket = self._buckets.get(number >> _BUCKET_SHIFT)
        if bucket is None:
            return False
        place = bisect_left(bucket, number)
        return place < len(bucket) and bucket[place] == number

    def _insert(self, number: int) -> None:
        bucket = self._buckets.setdefault(number >> _BUCKET_SHIFT, array("Q"))
        place = bisect_left(bucket, number)
        if place == len(bucket) or bucket[place] != number:
            bucket.insert(place, number)
            self._count += 1


def near_name(url: str, kind: ScopeKind) -> str:
    """Return the registered domain or the host of a canonical URL, as the scope compares it.

    A host has its port, and no ``www.`` before it.
    """
    return site_of(url, "domain") if kind == "domain" else site_of(url, "host").removeprefix("www.")


def fingerprint(reach: str) -> int:
    """Return the fingerprint of a host, domain or directory."""
    return int.from_bytes(blake2b(reach.encode(), digest_size=FINGERPRINT_BYTES).digest(), "big")


def id_of(segment: bytes) -> bytes:
    """Return the ID of a segment."""
    return blake2b(segment, digest_size=SEGMENT_ID_BYTES).digest()


def split_ids(ids: bytes) -> list[bytes]:
    """Return the IDs that stand one after the other, each once."""
    starts = range(0, len(ids) - len(ids) % SEGMENT_ID_BYTES, SEGMENT_ID_BYTES)
    return list(dict.fromkeys(ids[start : start + SEGMENT_ID_BYTES] for start in starts))


def digest_of_ids(ids: bytes) -> int:
    """Return the digest of a set of segments, given their IDs one after the other (see `SeedReach.digest`)."""
    digest = 0
    for one in split_ids(ids):
        digest ^= _digest_of(one)
    return digest


def _digest_of(segment_id: bytes) -> int:
    return int.from_bytes(segment_id[:4], "big")


def _reaches_of(url: str, kind: ScopeKind) -> Iterator[str]:
    """Yield the names of the reach of a seed."""
    name = near_name(url, kind)
    yield name  # With scope `prefix` for sitemaps only: without a slash it is no directory.
    if kind == "prefix":
        path = path_of(url).partition("?")[0]
        yield name + path[: path.rindex("/") + 1]


def _reaches_over(url: str, kind: ScopeKind) -> Iterator[str]:
    """Yield each name that would bring a canonical URL into scope."""
    name = near_name(url, kind)
    if kind != "prefix":
        yield name
        return
    path = path_of(url).partition("?")[0]
    end = path.find("/") + 1
    while end:
        yield name + path[:end]
        end = path.find("/", end) + 1


def _packed(numbers: Iterable[int]) -> bytes:
    packed = array("Q", numbers)
    if sys.byteorder == "little":
        packed.byteswap()
    return packed.tobytes()


def _unpacked(segment: bytes) -> "array[int] | None":
    """Return the fingerprints of a segment, or None unless they are sorted and as many as a segment may have."""
    count, rest = divmod(len(segment), FINGERPRINT_BYTES)
    if rest or not 0 < count <= SEGMENT_FINGERPRINTS_MAX:
        return None
    numbers = array("Q", segment)
    if sys.byteorder == "little":
        numbers.byteswap()
    return numbers if all(a < b for a, b in pairwise(numbers)) else None
