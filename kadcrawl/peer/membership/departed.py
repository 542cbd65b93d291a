"""The counters of peers that left.

They keep the totals of a crawl from falling when a peer says goodbye.

The two peers nearest to a departed peer's ID keep its counters and journal them, for a person to see. A limit of pages
or bytes counts them too, as a peer may have left before there was a limit (crawl/granted_budget.py). A peer that is
there describes itself (`each_once`), so a peer that has come back is not counted twice. A peer that crashes says no
goodbye, so its counters are missing until it is back.
"""

import asyncio
import logging
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from kadcrawl.errors import RemoteError
from kadcrawl.link.client import LinkClient
from kadcrawl.link.handler import Handler
from kadcrawl.link.wire.census_rows import has_left
from kadcrawl.link.wire.leaf_messages import is_leaf
from kadcrawl.link.wire.leave_messages import DEPARTED_MAX, Departed, LeaveStats
from kadcrawl.link.wire.messages import COUNT_MAX, Contact, Message, Ok, PeerCounters, PeerRow
from kadcrawl.link.wire.peer_state import PeerState
from kadcrawl.store.store import Store

KEEPERS = 2
"""Peers that keep the counters of a departed peer: one of them may crash."""
SPARE = 4
"""Further peers to ask if these do not keep them."""
LEAVE_STATS_TRIES = 3
FAREWELL_S = 2.0
"""Seconds a leaving peer waits for each answer. The counters are not worth more."""

log = logging.getLogger(__name__)

Nearest = Callable[[int, int], Sequence[Contact]]
"""(target, count) -> the live peers nearest to it, this one included."""


class DepartedPeers:
    """The departed peers that one peer remembers. A leaf may have the ID of a full peer, and takes nothing from it."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._kept = {_identity(departed): departed for departed in journaled_departed(store.meta.get("departed"))}

    def keep(self, departed: Iterable[Departed]) -> None:
        """Keep these counters too. Of one peer, and of too many peers, those with more pages stay.

        The totals of the crawl lack the counters that have no room here, unless another peer keeps them.
        """
        for one in departed:
            known = self._kept.get(_identity(one))
            if known is None or known.counters.pages <= one.counters.pages:
                self._kept[_identity(one)] = one
        dropped = sorted(self._kept.values(), key=_pages)[: max(0, len(self._kept) - DEPARTED_MAX)]
        for least in dropped:
            del self._kept[_identity(least)]
        if dropped:
            log.warning("farewell.dropped peers=%d pages=%d", len(dropped), sum(map(_pages, dropped)))
        self._store.meta.set("departed", msgspec.msgpack.encode([*self._kept.values()]))

    def rows(self) -> list[PeerRow]:
        """Return their rows for a census."""
        return [departed_row(one) for one in self._kept.values()]

    def handlers(self) -> Mapping[type[Message], Handler]:
        """Return the handler of each message type."""
        return {LeaveStats: self._answer}

    async def _answer(self, message: LeaveStats) -> Ok:
        self.keep(message.departed)
        await self._store.journal.durable()
        return Ok()

    def leave_stats(self, me: Departed, nearest: Nearest) -> list[tuple[Departed, list[Contact]]]:
        """Return each departed peer with the contacts to tell, this leaving peer first.

        Two peers that keep each are enough.
        """
        told = []
        for one in [me, *(one for one in self._kept.values() if _identity(one) != _identity(me))]:
            others = nearest(one.contact.number, KEEPERS + SPARE + 2)
            told.append((one, [other for other in others if other.id not in (me.contact.id, one.contact.id)]))
        return told


async def send_leave_stats(
    client: LinkClient, sender: bytes, leave_stats: Sequence[tuple[Departed, Sequence[Contact]]]
) -> None:
    """Tell each departed peer to the first two of its contacts that keep it, as others may be leaving too."""

    async def heard(contact: Contact, departed: Sequence[Departed]) -> bool:
        try:
            await client.ask(contact, LeaveStats(sender, [*departed[:DEPARTED_MAX]]), Ok, FAREWELL_S)
        except RemoteError as error:
            log.info("farewell.unheard peer=%s why=%s", contact, error)
            return False
        return True

    deaf: set[bytes] = set()
    said: set[tuple[bytes, bytes]] = set()
    for _ in range(LEAVE_STATS_TRIES):
        told: defaultdict[Contact, list[Departed]] = defaultdict(list)
        for one, contacts in leave_stats:
            for contact in [contact for contact in contacts if contact.id not in deaf][:KEEPERS]:
                if (contact.id, one.contact.id) not in said:
                    told[contact].append(one)
        answers = await asyncio.gather(*(heard(contact, departed) for contact, departed in told.items()))
        for (contact, departed), answer in zip(told.items(), answers, strict=True):
            said |= {(contact.id, one.contact.id) for one in departed}
            if not answer:
                deaf.add(contact.id)


def _identity(departed: Departed) -> tuple[bool, bytes]:
    return is_leaf(departed.contact), departed.contact.id


def _pages(departed: Departed) -> int:
    return departed.counters.pages


def departed_row(departed: Departed) -> PeerRow:
    """Return the row of a departed peer for a census."""
    return PeerRow(
        contact=departed.contact,
        state=PeerState.LEFT,
        pending=0,
        in_flight=0,
        uptime_s=0,
        counters=departed.counters,
        allowance=0,
        granted=departed.pages_taken,
        hosted_leaf=is_leaf(departed.contact),
    )


def journaled_departed(journaled: bytes | None) -> list[Departed]:
    """Return the journaled peers, or none if another version wrote them, as they are dispensable."""
    try:
        return msgspec.msgpack.decode(journaled, type=list[Departed]) if journaled else []
    except msgspec.MsgspecError:
        return []


def each_once(rows: Iterable[PeerRow], *, for_budget: bool = False) -> list[PeerRow]:
    """Return the rows of a census with each peer once.

    A leaf has a row of each full peer that it asked lately: the latest counts, with the loans of all. It claims its ID
    and its uptime, so its row replaces no row of a full peer. Several peers remember a departed peer, perhaps with
    different counters. If that peer is back, its own row counts. A leaf claims to be that peer, and its counters only
    grow: its row counts if no counter is smaller, also once it has departed as well. With `for_budget` a leaf replaces
    no departed full peer at all, as only the row of that peer has its grant.
    """
    there: dict[tuple[bool, bytes], PeerRow] = {}
    gone: dict[tuple[bool, bytes], PeerRow] = {}
    borrowed = Counter[bytes]()
    for row in rows:
        which = row.hosted_leaf, row.contact.id
        if has_left(row):
            before = gone.get(which)
            if before is None or before.counters.pages < row.counters.pages:
                gone[which] = row
            continue
        if row.hosted_leaf:
            borrowed[row.contact.id] += row.borrowed
        known = there.get(which)
        if known is None or known.uptime_s <= row.uptime_s:
            there[which] = row

    def is_back(row: PeerRow) -> bool:
        if (False, row.contact.id) in there:
            return True
        if row.hosted_leaf:
            later = [there.get((True, row.contact.id)), gone.get((False, row.contact.id))]
        elif for_budget:
            later = []
        else:
            later = [there.get((True, row.contact.id))]
            left = gone.get((True, row.contact.id))
            if left is not None and not _has_grown(left.counters, row.counters):  # Of two equal rows one counts.
                later.append(left)
        return any(one is not None and _has_grown(row.counters, one.counters) for one in later)

    whole = (
        replace(row, borrowed=min(borrowed[row.contact.id], COUNT_MAX)) if row.hosted_leaf else row
        for row in there.values()
    )
    return [*whole, *(row for row in gone.values() if not is_back(row))]


def _has_grown(before: PeerCounters, now: PeerCounters) -> bool:
    """Return whether no number is smaller than before. A leaf's row has only its most frequent reasons: none counts."""
    return all(
        getattr(before, name) <= getattr(now, name)
        for name in PeerCounters.__struct_fields__
        if isinstance(getattr(before, name), int)
    )
