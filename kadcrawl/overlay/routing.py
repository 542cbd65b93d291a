"""The routing table: kademlia's, with its shape and its search made exact.

Bucket i holds the contacts at firstdiff i from this peer (P1 1.1: distance in [2^i, 2^(i+1))), so the bucket of a
contact is computed, not searched, and bucket i is also the i-th subtree of a wave. A bucket keeps k contacts and in
addition any of the nearest siblings; later contacts wait as replacements. Each bucket is ordered by the time its
contacts were last heard.

Invariants: every contact is in the bucket of its firstdiff; bit i of `live_mask` is set exactly when bucket i holds a
live contact. The table sends nothing and has no clock; `membership` decides which peer enters, is suspected, or goes.
The nearest contacts of the keys asked for last are remembered until the live contacts change.

Of the package stay the bucket with its replacement list and the removal. Three methods of the package are overridden:
`find_neighbors` may stop before it has seen the nearest, `get_bucket_for` misplaces the last ID of a bucket, and
`add_contact` pings by a task that nobody awaits.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from kademlia.node import Node
from kademlia.routing import KBucket, RoutingTable

from kadcrawl.keys import firstdiff
from kadcrawl.link.wire.messages import BacklogRecord, Contact

TARGETS_KEPT = 4_096
"""Keys whose nearest contacts are remembered. A crawl by URL asks for those of a few thousand cells, again and again.
"""
CONTACTS_SHARED = 4_096
"""Contacts of which the tables of all peers of one process share one object."""
LEVELS_SHARED = 1_024
"""Levels of loads that are shared alike. Most peers of a crawl have the level of an idle peer."""


class HeardLoad(NamedTuple):
    """The load of a peer in its latest heartbeat."""

    at: float
    """The loop second of the heartbeat."""
    level: int
    """Hundredths of a heavy block, below zero for light."""
    backlog: BacklogRecord | None
    """The work by time, or None if the peer does not tell it."""


class Neighbor:
    """A contact in the table, with its liveness and load: a node as the package needs it, with half of the memory."""

    __slots__ = ("contact", "id", "live", "load", "long_id")

    def __init__(self, contact: Contact) -> None:
        self.id: bytes = contact.id
        self.long_id = shared_number(contact.id)
        self.contact = contact
        self.live = True
        """False while suspected: kept and pinged, but neither handed out nor counted."""
        self.load: HeardLoad | None = None
        """The load in its latest heartbeat, or None before the first."""

    @property
    def ip(self) -> str:
        """The IP address, under the package's name."""
        return self.contact.host

    @property
    def port(self) -> int:
        return self.contact.port


@lru_cache(CONTACTS_SHARED)
def shared(contact: Contact) -> Contact:
    """Return the contact, the same object for all peers of this process."""
    return contact


@lru_cache(CONTACTS_SHARED)
def shared_number(peer: bytes) -> int:
    """Return an ID as a number, the same object for all peers of this process."""
    return int.from_bytes(peer, "big")


@lru_cache(LEVELS_SHARED)
def shared_level(level: int) -> int:
    """Return a level of a load, the same object for all peers of this process."""
    return level


class Bucket(KBucket):  # type: ignore[misc]  # the package is untyped
    """The contacts at one firstdiff, the longest unheard first."""

    def __init__(self, low: int, high: int, k: int) -> None:
        super().__init__(low, high, k, replacementNodeFactor=1)

    def touch_last_updated(self) -> None:
        """Do nothing: the overlay times the refreshing."""

    def keep(self, neighbor: Neighbor) -> None:
        """Add `neighbor` although the bucket may be full."""
        self.replacement_nodes.pop(neighbor.id, None)
        self.nodes[neighbor.id] = neighbor

    def remove_node(self, node: Neighbor) -> None:
        """Remove a contact. Unlike the package's method, this promotes no replacement, which may be long dead."""
        self.replacement_nodes.pop(node.id, None)
        self.nodes.pop(node.id, None)


class LiveRoutingTable(RoutingTable):  # type: ignore[misc]  # the package is untyped
    """All contacts of the peer `me` (a 160-bit number): at most `k` per bucket, and some siblings."""

    def __init__(self, me: int, k: int) -> None:
        self.me = me
        super().__init__(None, k, None)

    def flush(self) -> None:
        self.buckets: dict[int, Bucket] = {}
        self.members: dict[bytes, Neighbor] = {}
        self.live_mask = 0
        self._filled: tuple[int, Sequence[int]] = 0, []
        """A mask of live buckets and the result of `filled` for it, which few contacts change."""
        self._nearest: dict[tuple[int, int], list[Neighbor]] = {}
        """(key, count) -> the live contacts nearest to the key, as long as no contact comes, goes, or is suspected."""

    def get_bucket_for(self, node: Node | Neighbor) -> int:
        """Return the index of the bucket that `node` belongs into: its firstdiff from this peer."""
        index = firstdiff(self.me, node.long_id)
        assert index >= 0, "our own ID has no bucket"
        if index not in self.buckets:
            low = (self.me ^ (1 << index)) >> index << index
            self.buckets[index] = Bucket(low, low + (1 << index) - 1, self.ksize)
        return index

    def add_contact(self, node: Neighbor, *, sibling: bool = False) -> bool:
        """Add a contact, or note that it was heard. A full bucket takes only a `sibling`.

        Returns whether the contact is in the table now. Otherwise it waits among the replacements.
        """
        index = self.get_bucket_for(node)
        bucket = self.buckets[index]
        if sibling and bucket.is_new_node(node):
            bucket.keep(node)
        elif not bucket.add_node(node):
            return False
        if self.members.get(node.id) is not node:
            self._nearest.clear()
        self.members[node.id] = node
        if node.live:
            self.live_mask |= 1 << index
        else:
            self._remask(index)
        return True

    def remove_contact(self, node: Neighbor) -> None:
        super().remove_contact(node)
        self.members.pop(node.id, None)
        self._nearest.clear()
        self._remask(self.get_bucket_for(node))

    def set_live(self, node: Neighbor, live: bool) -> None:
        """Mark a contact of the table as live or as suspected."""
        node.live = live
        self._nearest.clear()
        self._remask(self.get_bucket_for(node))

    def has_room_for(self, node: Node | Neighbor) -> bool:
        """Return whether the bucket of `node` has room, or holds it already."""
        bucket = self.buckets[self.get_bucket_for(node)]
        return len(bucket) < self.ksize or not bucket.is_new_node(node)

    def find_neighbors(
        self, node: Node | Neighbor, k: int | None = None, exclude: Neighbor | None = None
    ) -> list[Neighbor]:
        """Return the `k` live contacts XOR-nearest to `node`, exactly, nearest first."""
        return self.nearest(node.long_id, k or self.ksize, exclude.id if exclude is not None else None)

    def nearest(self, target: int, count: int, without: bytes | None = None) -> list[Neighbor]:
        """Return the `count` live contacts XOR-nearest to `target`, exactly, nearest first. Never the ID `without`."""
        if without is not None:
            return self._find_nearest(target, count, without)
        found = self._nearest.get((target, count))
        if found is None:
            if len(self._nearest) >= TARGETS_KEPT:
                self._nearest.clear()
            found = self._nearest[target, count] = self._find_nearest(target, count, None)
        return found.copy()

    def _find_nearest(self, target: int, count: int, without: bytes | None) -> list[Neighbor]:
        if len(self.members) <= count:
            return nearest([n for n in self.members.values() if n.live and n.id != without], target, count)
        found: list[Neighbor] = []
        for bucket in self._by_distance(target):
            left = count - len(found)
            if not left:
                break
            found += nearest([n for n in bucket.nodes.values() if n.live and n.id != without], target, left)
        return found

    def live(self) -> list[Neighbor]:
        """Return the live contacts in the order they entered."""
        return [neighbor for neighbor in self.members.values() if neighbor.live]

    def bucket(self, index: int) -> list[Neighbor]:
        """Return the live contacts at firstdiff `index`, most recently heard first."""
        bucket = self.buckets.get(index)
        return [n for n in reversed(bucket.nodes.values()) if n.live] if bucket else []

    def filled(self) -> Sequence[int]:
        """Return the indexes of the buckets with a live contact, nearest first."""
        if self._filled[0] != self.live_mask:
            filled = []
            left = self.live_mask
            while left:
                filled.append((left & -left).bit_length() - 1)
                left &= left - 1
            self._filled = self.live_mask, filled
        return self._filled[1]

    def subtrees(self, below: int) -> dict[int, list[Neighbor]]:
        """Return the contacts at each firstdiff less than `below`: live contacts, latest heard first, then suspects."""
        trees = {index: self.bucket(index) for index in self.filled() if index < below}
        for index, bucket in self.buckets.items():
            if index < below:
                for neighbor in bucket.nodes.values():
                    if not neighbor.live:
                        trees.setdefault(index, []).append(neighbor)
        return trees

    def replacements(self, node: Node | Neighbor) -> list[Neighbor]:
        """Return the replacements for the bucket of `node`, most recently heard first, or none if it is full."""
        bucket = self.buckets[self.get_bucket_for(node)]
        return list(reversed(bucket.replacement_nodes.values())) if len(bucket) < self.ksize else []

    def _by_distance(self, target: int) -> Iterator[Bucket]:
        """Yield the filled buckets so that all contacts of a bucket are nearer to `target` than any of the next.

        Where this peer and the target differ, a bucket agrees with the target, so the farthest such bucket is the
        nearest to it. Where they agree, a bucket departs from the target, the farther the more (as in `ownership`).
        """
        filled = self.filled()
        side = self.me ^ target
        yield from (self.buckets[index] for index in reversed(filled) if side >> index & 1)
        yield from (self.buckets[index] for index in filled if not side >> index & 1)

    def _remask(self, index: int) -> None:
        bit = 1 << index
        if any(neighbor.live for neighbor in self.buckets[index].nodes.values()):
            self.live_mask |= bit
        else:
            self.live_mask &= ~bit


def nearest(neighbors: Iterable[Neighbor], target: int, count: int) -> list[Neighbor]:
    """Return the `count` of `neighbors` XOR-nearest to `target`, nearest first."""
    # For the hundred or so of a table a plain sort is several times faster than heapq.nsmallest.
    return sorted(neighbors, key=lambda neighbor: neighbor.long_id ^ target)[:count]
