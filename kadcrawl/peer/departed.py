"""Who has left, and what it did: so that the totals of a crawl do not go back when a peer says goodbye.

Kept by the two peers nearest to its ID, and journaled, for a person to see. Nothing is decided by it: who left has
nothing pending, and is passed over where a budget is shared out. A peer that is there speaks for itself (`each_once`),
so one that has come back is not counted twice. Who dies says no goodbye: what it did is missing until it is back.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence

import msgspec

from kadcrawl.errors import RemoteError
from kadcrawl.history.store import Store
from kadcrawl.link.client import LinkClient
from kadcrawl.link.farewell_messages import DEPARTED_MAX, LEFT, Departed, Farewell
from kadcrawl.link.leaf_messages import LEAF_STATE, is_leaf
from kadcrawl.link.messages import Contact, Ok, PeerRow

KEEPERS = 2
"""One of them may die."""
FAREWELL_S = 3.0
"""How long who leaves waits for them: figures are not worth more."""

log = logging.getLogger(__name__)

Nearest = Callable[[int, int], Sequence[Contact]]
"""(target, count) -> the live peers nearest to it, this one included."""


class DepartedPeers:
    """Those one peer keeps in mind, by ID."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._kept = {departed.contact.id: departed for departed in _decoded(store.meta("departed"))}

    def keep(self, departed: Iterable[Departed]) -> None:
        """Keep these as well; of one peer, and where there are too many, those that did more."""
        for one in departed:
            known = self._kept.get(one.contact.id)
            if known is None or known.counters.pages <= one.counters.pages:
                self._kept[one.contact.id] = one
        for least in sorted(self._kept.values(), key=_pages)[: max(0, len(self._kept) - DEPARTED_MAX)]:
            del self._kept[least.contact.id]
        self._store.set_meta("departed", msgspec.msgpack.encode([*self._kept.values()]))

    def rows(self) -> list[PeerRow]:
        """Describe them, as they might themselves."""
        return [
            PeerRow(
                contact=one.contact,
                state=LEAF_STATE + LEFT if is_leaf(one.contact) else LEFT,
                pending=0,
                in_flight=0,
                uptime_s=0,
                counters=one.counters,
                allowance=0,
                granted=0,
            )
            for one in self._kept.values()
        ]

    def farewells(self, me: Departed, nearest: Nearest) -> list[tuple[Contact, Farewell]]:
        """Return what this peer has to say, and to whom, when it leaves: of itself, and of whom it kept in mind."""
        said: dict[Contact, list[Departed]] = {}
        for one in [me, *(one for one in self._kept.values() if one.contact.id != me.contact.id)]:
            others = [contact for contact in nearest(one.contact.number, KEEPERS + 2) if contact.id != me.contact.id]
            for contact in [other for other in others if other.id != one.contact.id][:KEEPERS]:
                said.setdefault(contact, []).append(one)
        return [(contact, Farewell(me.contact.id, departed[:DEPARTED_MAX])) for contact, departed in said.items()]


async def say(client: LinkClient, farewells: Iterable[tuple[Contact, Farewell]]) -> None:
    """Say farewell to all of these; whoever does not answer soon does without."""

    async def one(contact: Contact, farewell: Farewell) -> None:
        try:
            await client.ask(contact, farewell, Ok, FAREWELL_S)
        except RemoteError as error:
            log.info("farewell.unheard peer=%s why=%s", contact, error)

    await asyncio.gather(*(one(contact, farewell) for contact, farewell in farewells))


def has_left(row: PeerRow) -> bool:
    """Say whether this describes a peer that is not there any more."""
    return row.state in (LEFT, LEAF_STATE + LEFT)


def _pages(departed: Departed) -> int:
    return departed.counters.pages


def _decoded(journaled: bytes | None) -> list[Departed]:
    """Return those journaled: none if they are not what this version writes, as it can do without."""
    try:
        return msgspec.msgpack.decode(journaled, type=list[Departed]) if journaled else []
    except msgspec.MsgspecError:
        return []
