"""Assigners of URLs to peers: those of P1 and P3, and two well-known ones, behind one interface.

Peers are numbers below `possible`. Some of them are alive. An `Assigner` gives each URL an owner among the alive. The
hashes of P3 use only the URL's hash. P1 adds that peers and URLs lie in one space. kadcrawl adds that a site is one
range of this space, so that one peer keeps the site's delay. Only the given IDs are random.
"""

from collections import defaultdict
from collections.abc import Sequence
from hashlib import blake2b
from typing import Protocol

import numpy as np

from kadcrawl.balance.level import BlockLoad
from kadcrawl.balance.shedding import block_offers_by_level
from kadcrawl.balance.two_level_hash import two_level_hash
from kadcrawl.keys import ID_BITS, Cell, anchor, firstdiff

from .workload import CELL_BITS, Numbers, Urls

H = 20
"""URLs in a heavy block (P1 2)."""

Peers = Numbers
"""Numbers of peers: of those alive, in ascending order; or of the owner of each URL."""


class Assigner(Protocol):
    """A method to assign URLs to peers."""

    @property
    def name(self) -> str:
        """The name in the report."""

    def assign(self, urls: Urls, alive: Peers, earlier: Peers | None = None) -> Peers:
        """Return who crawls each URL.

        `earlier` were alive when the URLs were first shared out; None if nobody has any yet. Only an assigner that
        leaves what it can where it is looks at it.
        """

    def address(self, urls: Urls, view: Peers) -> Peers:
        """Return the peer to which a sender that sees these peers alive sends each URL."""


class HashMod:
    """alive[hash(url) mod b], b being how many are alive (P3, formula 3.1)."""

    name = "hash mod n"

    def assign(self, urls: Urls, alive: Peers, earlier: Peers | None = None) -> Peers:
        return alive[(urls.hash % np.uint64(len(alive))).astype(np.int64)]

    address = assign


class TwoLevelHash:
    """t = hash(url) mod a. The owner is t if alive, else alive[hash(url) mod b] (P3, figure 3), with one hash as
    printed."""

    name = "two-level hash"

    def __init__(self, possible: int) -> None:
        self._possible = possible

    def assign(self, urls: Urls, alive: Peers, earlier: Peers | None = None) -> Peers:
        # Hashes with the same remainder have the same owner.
        numbers, where = np.unique(urls.hash % np.uint64(self._possible * len(alive)), return_inverse=True)
        owners: Peers = np.array(two_level_hash(numbers.tolist(), self._possible, alive.tolist()), dtype=np.int64)
        return owners[where]

    address = assign


class Ring:
    """Consistent hashing (Karger 1997): the next of the points of peers on a ring, `points` each; `salt` draws it."""

    def __init__(self, possible: int, points: int, salt: int = 0) -> None:
        """`points` for each peer."""
        self.name = f"ring, {points} points" if points > 1 else "ring"
        hashes = [_hash(f"{salt} {peer} {number}") for peer in range(possible) for number in range(points)]
        order = np.argsort(np.array(hashes, dtype=np.uint64), kind="stable")
        self._points = np.array(hashes, dtype=np.uint64)[order]
        self._peers = np.repeat(np.arange(possible, dtype=np.int64), points)[order]
        self._possible = possible

    def assign(self, urls: Urls, alive: Peers, earlier: Peers | None = None) -> Peers:
        there = np.zeros(self._possible, dtype=np.bool_)
        there[alive] = True
        live = there[self._peers]
        following = np.searchsorted(self._points[live], urls.hash)
        owners: Peers = self._peers[live][following % np.count_nonzero(live)]
        return owners

    address = assign


class Xor:
    """kadcrawl: the peer XOR-nearest to the anchor of the URL's cell (P1 1.2)."""

    def __init__(self, node_ids: Sequence[int], name: str = "XOR owner") -> None:
        """`node_ids[peer]` has 160 bits."""
        self.name = name
        self.node_ids = node_ids

    def assign(self, urls: Urls, alive: Peers, earlier: Peers | None = None) -> Peers:
        return self.cells(alive)[urls.cell]

    address = assign

    def cells(self, alive: Peers) -> Peers:
        """Return the owner of every cell."""
        owners = np.empty(1 << CELL_BITS, dtype=np.int64)
        ordered = sorted((self.node_ids[peer], peer) for peer in alive.tolist())
        self._share_out(owners, 0, 1 << CELL_BITS, ordered)
        return owners

    def _share_out(self, owners: Peers, begin: int, end: int, peers: list[tuple[int, int]]) -> None:
        """Give the cells from `begin` to `end` to those of the `peers`, ordered by ID, that are nearest.

        The bit in which the two halves of the cells differ tells the peers apart too: each half goes to those on its
        side, or to all if there are none.
        """
        if len(peers) == 1 or end - begin == 1:
            place = anchor(Cell(begin), CELL_BITS)
            owners[begin:end] = min(peers, key=lambda peer: peer[0] ^ place)[1]
            return
        middle = (begin + end) // 2
        bit = ID_BITS - CELL_BITS + (end - begin).bit_length() - 2
        low = [peer for peer in peers if not peer[0] >> bit & 1]
        high = [peer for peer in peers if peer[0] >> bit & 1]
        self._share_out(owners, begin, middle, low or high)
        self._share_out(owners, middle, end, high or low)


class XorShedding:
    """The same, after the heavy have given blocks of H URLs to the light (P1 1.4 with `kadcrawl.balance`).

    Of equal power all, each with a work area of W: the mean in whole blocks, and one more, since a block goes nowhere
    where a part of it has no room. The heaviest decides first, each sees the levels of all as they are then, and gives
    from the end of its range, so that sites move whole where they can. Nothing is crawled meanwhile. URLs whose owner
    is still the same stay where they are. A URL is always sent to its owner: only that one knows who has it.
    """

    def __init__(self, xor: Xor) -> None:
        self.name = f"{xor.name} + shedding"
        self._xor = xor

    @staticmethod
    def work_area(urls: int, alive: int) -> int:
        """Return W, in URLs."""
        return H * (-(-urls // (alive * H)) + 1)

    def address(self, urls: Urls, view: Peers) -> Peers:
        return self._xor.address(urls, view)

    def assign(self, urls: Urls, alive: Peers, earlier: Peers | None = None) -> Peers:
        owners = self._xor.assign(urls, alive)
        holders = owners.copy()
        if earlier is not None:
            before = self.assign(urls, earlier)
            stays = (self._xor.assign(urls, earlier) == owners) & np.isin(before, alive)
            holders[stays] = before[stays]
        self._shed(urls, owners, holders, alive)
        return holders

    def _shed(self, urls: Urls, owners: Peers, holders: Peers, alive: Peers) -> None:
        """Change `holders` by one round."""
        work_area = self.work_area(len(urls), len(alive))
        size = max(alive.tolist()) + 1
        pending = np.bincount(holders, minlength=size)
        own = np.bincount(owners[owners == holders], minlength=size)
        # Of each holder: what it has taken, then its own in the order of their keys.
        order = np.lexsort((urls.place, owners == holders, holders))
        ends = np.cumsum(pending)
        for lender in sorted(alive.tolist(), key=lambda peer: (-pending[peer], peer)):
            load = BlockLoad(int(pending[lender]), work_area, H)
            blocks = min(load.blocks, int(own[lender]) // H)
            if blocks <= 0:
                continue
            levels = [
                (peer, BlockLoad(int(pending[peer]), work_area, H).level) for peer in alive.tolist() if peer != lender
            ]
            end = int(ends[lender])
            for borrower, count in block_offers_by_level(load.level, blocks, self._buckets(lender, levels)):
                urls_moved = count * H
                holders[order[end - urls_moved : end]] = borrower
                end -= urls_moved
                pending[borrower] += urls_moved
                pending[lender] -= urls_moved

    def _buckets(self, lender: int, levels: list[tuple[int, float]]) -> list[list[tuple[int, float]]]:
        """Return the k-buckets of a peer, near to far, each with its peers' levels."""
        buckets = defaultdict(list)
        for peer, level in levels:
            buckets[firstdiff(self._xor.node_ids[lender], self._xor.node_ids[peer])].append((peer, level))
        return [buckets[number] for number in sorted(buckets)]


def _hash(text: str) -> int:
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big")
