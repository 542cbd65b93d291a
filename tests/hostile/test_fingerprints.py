"""Fingerprints that a member sends of cells it may not own, or of more grains than anybody has."""

import asyncio
from collections.abc import Iterable

from kadcrawl import Peer
from kadcrawl.keys import Cell, anchor
from kadcrawl.link.wire.messages import (
    CellEpochFilters,
    Contact,
    EpochFilterLabel,
    EpochFilterRecord,
    KeepEpochFilters,
    KeepFilterPart,
)
from kadcrawl.store.bloom.encoding import to_bytes
from kadcrawl.store.bloom.epoch_filter import EpochFilter
from kadcrawl.store.bloom.expiring_filter import ExpiringFilter
from tests.support.links.liar import LIAR, liar, say
from tests.support.swarm.peers import MakePeer, make_peer as make_peer

LIAR_AT = Contact(LIAR, "127.0.0.1", 9)


def epoch_filters_ahead(peer: Peer, ahead: Iterable[int] = (0,)) -> list[EpochFilterRecord]:
    """Return a slice with one key of each of these grains, counted from now."""
    seen = peer.store.expiring_filters
    assert seen is not None
    found = []
    for grain in (seen.period.epoch(seen.now()) + one for one in ahead):
        slice = EpochFilter(grain, seen.period.make, seen.period.epoch_error)
        slice.add(grain)
        one = ExpiringFilter(seen.period)
        one.put(slice)
        bits = to_bytes(one, seen.period.begin_s(grain))
        found.append(EpochFilterRecord(EpochFilterLabel(grain, 1, grain.to_bytes(16, "big")), bits))
    return found


async def test_fingerprints_count_only_from_the_nearest_known_peer_of_the_cell(make_peer: MakePeer) -> None:
    peer = await make_peer("one", history="bloom")
    mine: dict[bool, list[Cell]] = {True: [], False: []}
    for cell in map(Cell, range(2**16)):
        place = anchor(cell, 16)
        mine[peer.contact.number ^ place < LIAR_AT.number ^ place].append(cell)
    (one,) = epoch_filters_ahead(peer)
    async with liar() as client:
        for cells in (mine[True][:4], mine[False][:4]):
            await say(client, peer, KeepEpochFilters(LIAR_AT, [CellEpochFilters(cell, [one]) for cell in cells[:2]]))
            for cell in cells[2:]:
                await say(client, peer, KeepFilterPart(LIAR_AT, cell, one.label, len(one.bits), 0, one.bits))
    assert sorted(mine[False][:4]) == sorted(peer.store.cells)


async def test_epoch_filters_of_many_epochs_are_taken_in_one_by_one(make_peer: MakePeer) -> None:
    peer = await make_peer("one", history="bloom", recrawl_after_s=400.0 * 86_400, grain_s=86_400)
    told = epoch_filters_ahead(peer, range(-399, 401))
    seen, cell = peer.store.expiring_filters, Cell(0)
    assert seen is not None
    near = Contact(anchor(cell, 16).to_bytes(20, "big"), "127.0.0.1", 9)
    most = 0
    taking = asyncio.ensure_future(
        peer.cells.keep_epoch_filters(KeepEpochFilters(near, [CellEpochFilters(cell, told)]))
    )
    while not taking.done():
        before = len(seen.labels(cell))
        await asyncio.sleep(0)
        most = max(most, len(seen.labels(cell)) - before)
    await taking
    assert (800, 1) == (len(seen.labels(cell)), most)
