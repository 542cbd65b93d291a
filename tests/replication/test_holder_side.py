"""Test the holder's side: the owner hears of each held cell until it answers, and no cell is dropped before that."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kadcrawl.errors import KadcrawlError, RemoteError
from kadcrawl.keys import Cell, Key
from kadcrawl.link.wire.messages import (
    AssignReplica,
    CellsAccepted,
    CellsHeld,
    CellSummary,
    Contact,
    SiteRecord,
    TakeOver,
)
from kadcrawl.replication.events import ReplicationEvents
from kadcrawl.replication.holder_side import NOTIFY_S, HolderSide
from kadcrawl.replication.placement.holdings import Holdings, NoRoleError
from kadcrawl.replication.placement.placement import placement_keys
from kadcrawl.replication.replicator import digest_of
from kadcrawl.store.cell_digest import EMPTY
from kadcrawl.store.store import Store
from sim.loop import world
from tests.support.links.contacts import contact
from tests.support.swarm.sync_overlay import SwarmOverlay

BITS = 4
CELL = Cell(8)
ANCHOR = 8 << 156


NEAREST, NEAR, ME, FAR = (contact(ANCHOR ^ distance) for distance in (1, 2, 4, 8))
"""The peers in the order of their distance to the cell."""


class FakeCrawl:
    def __init__(self) -> None:
        self.closed: list[Cell] = []
        self.busy = False
        self.told: list[SiteRecord] | None = []
        self.known: list[SiteRecord] | None = []
        self.refusing: list[SiteRecord] = []
        self.crawled_lately = False
        self.unfinished: list[bytes] = []

    def open(self, cell: Cell, *, hold: bool, unsure_since: float | None = None) -> None:
        raise AssertionError("who tells opens nothing")

    def close(self, cell: Cell) -> None:
        self.closed.append(cell)

    def is_busy(self, cell: Cell) -> bool:
        return self.busy

    def clocks(self, cell: Cell, most: int) -> list[SiteRecord] | None:
        return self.told

    def was_crawled_lately(self, cell: Cell) -> bool:
        return self.crawled_lately

    def known_clocks(self, cell: Cell, most: int) -> list[SiteRecord] | None:
        return self.known

    def told_clocks(self, cell: Cell, most: int) -> list[SiteRecord]:
        return self.refusing

    def in_hand(self, cell: Cell) -> list[bytes]:
        return self.unfinished

    def leave_in_hand(self, cell: Cell, keys: Iterable[bytes]) -> None:
        raise AssertionError("who tells learns nothing")

    def learn_clocks(self, cell: Cell, sites: Iterable[SiteRecord]) -> None:
        raise AssertionError("who tells learns nothing")


class CellsHeldClient:
    def __init__(self) -> None:
        self.haves: list[tuple[tuple[str, int], CellsHeld]] = []
        self.down = False
        self.meanwhile: Callable[[], None] = lambda: None

    async def ask(self, to: Contact, message: Any, expected: Any, deadline_s: float) -> Any:
        await asyncio.sleep(0.01)
        if self.down:
            raise RemoteError(to, "no answer")
        self.haves.append((to.address, message))
        await asyncio.sleep(0.01)
        self.meanwhile()
        return CellsAccepted([held.cell for held in message.cells])


class HolderBench:
    def __init__(self, directory: Path) -> None:
        self.store = Store(directory, 0.0, lambda fds: None)
        self.store.begin(BITS)
        self.overlay = SwarmOverlay(ME)
        self.client = CellsHeldClient()
        self.crawl = FakeCrawl()
        self.holdings = Holdings(ME.number, BITS)
        client: Any = self.client
        events = ReplicationEvents()
        self.holder_side = HolderSide(self.overlay, client, self.store, self.holdings, self.crawl, BITS, events)
        self.owned: list[Cell] = []
        events.cell_due.append(self.owned.append)

    def know(self, *contacts: Contact) -> None:
        self.overlay.known.update((one.id, one) for one in contacts)

    def fill(self, count: int = 3) -> None:
        for number in range(count):
            self.store.learn_done(Key(bytes([CELL << 4]) + number.to_bytes(19, "big")))

    def held(self) -> CellSummary:
        return digest_of(CELL, self.store.cells.get(CELL, EMPTY))

    def own(self) -> None:
        self.holdings.own(CELL, 0.0).open = True

    def asked_by(self, owner: Contact) -> Any:
        (answer,) = self.holder_side.answer(TakeOver(owner, [CELL])).cells
        return answer


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[HolderBench]:
    bench = HolderBench(tmp_path)
    yield bench
    bench.store.close()


def run_with_holder_side(bench: HolderBench, scenario: Callable[[], Awaitable[None]]) -> None:
    async def play() -> None:
        telling = asyncio.create_task(bench.holder_side.run())
        try:
            await scenario()
        finally:
            telling.cancel()
            await asyncio.gather(telling, return_exceptions=True)

    with world(0) as loop:
        loop.run_until_complete(play())


# --- reminding -------------------------------------------------------------------------------------------------------


def test_the_owner_hears_of_a_stray_until_it_says_what_becomes_of_it(bench: HolderBench) -> None:
    async def scenario() -> None:
        bench.know(NEAREST, FAR)
        bench.fill()
        bench.holder_side.notify_of_strays()
        await asyncio.sleep(60.0)
        told = len(bench.client.haves)
        assert told >= 2
        assert {(NEAREST.address, ME)} == {(address, have.holder) for address, have in bench.client.haves}
        assert [[bench.held()]] == [have.cells for _, have in bench.client.haves[-1:]]
        bench.holder_side.assign_replica(AssignReplica(NEAREST, 2, [bench.held()]))
        await asyncio.sleep(60.0)
        assert (told, 0) == (len(bench.client.haves), bench.holder_side.unnotified)

    run_with_holder_side(bench, scenario)


def test_a_backup_that_knows_a_nearer_one_says_so_to_the_owner(bench: HolderBench) -> None:
    """The nearer peer had come before this peer was told to keep the cell, so no join event named it."""

    async def scenario() -> None:
        bench.know(NEAREST, FAR)
        bench.fill()
        place = placement_keys(CELL, BITS)[1]
        assert FAR.number ^ place < ME.number ^ place
        bench.holder_side.assign_replica(AssignReplica(NEAREST, 1, [bench.held()]))
        await asyncio.sleep(60.0)
        assert [(NEAREST.address, [bench.held()])] == [(address, have.cells) for address, have in bench.client.haves]

    run_with_holder_side(bench, scenario)


@pytest.mark.parametrize("records", [0, 3])
def test_a_displaced_backup_says_so_until_the_owner_knows_it(bench: HolderBench, records: int) -> None:
    """Until the owner hears of the newcomer, it tells this peer to keep the cell, and fills it."""

    async def scenario() -> None:
        bench.know(NEAREST)
        bench.fill(records)
        settle = AssignReplica(NEAREST, 1, [bench.held()])
        bench.holder_side.assign_replica(settle)
        bench.know(FAR)
        bench.holder_side.displaced(CELL)
        for _ in range(6):
            await asyncio.sleep(10.0)
            bench.holder_side.assign_replica(settle)
        told = len(bench.client.haves)
        assert told >= 4
        bench.holder_side.assign_replica(AssignReplica(NEAREST, 0, [bench.held()]))
        await asyncio.sleep(60.0)
        assert (told, 0) == (len(bench.client.haves), bench.holder_side.unnotified)

    run_with_holder_side(bench, scenario)


def test_a_role_that_no_cell_of_the_crawl_has_is_refused(bench: HolderBench) -> None:
    """The wire has room for the roles of five copies, and this crawl has three."""
    bench.fill()
    bench.know(NEAREST)
    with pytest.raises(NoRoleError, match="3 holders in this crawl, and none has the role 3"):
        bench.holder_side.assign_replica(AssignReplica(NEAREST, 3, [bench.held()]))
    assert CELL not in bench.holdings.backed


def test_records_do_not_keep_a_backup_in_the_wrong_place_from_saying_so(bench: HolderBench) -> None:
    async def scenario() -> None:
        bench.know(NEAREST, FAR)
        bench.fill()
        bench.holder_side.assign_replica(AssignReplica(NEAREST, 1, [bench.held()]))
        for _ in range(20):
            await asyncio.sleep(0.1)
            bench.holder_side.backed([CELL], NEAREST)
        assert [NEAREST.address] == [address for address, _ in bench.client.haves]

    run_with_holder_side(bench, scenario)


def test_a_backup_in_its_place_asks_no_owner_for_the_notice_to_keep_a_copy(bench: HolderBench) -> None:
    """In an overloaded swarm the notice comes long after the changes, and there may be thousands of cells."""

    async def scenario() -> None:
        bench.know(NEAREST)
        bench.fill()
        bench.holder_side.backed([CELL], NEAREST)
        await asyncio.sleep(60.0)
        assert ([], 0) == (bench.client.haves, bench.holder_side.unnotified)
        assert 1 == bench.holdings.backed[CELL].role

    run_with_holder_side(bench, scenario)


def test_a_peer_with_no_role_asks_what_becomes_of_the_copy_that_it_was_sent(bench: HolderBench) -> None:
    async def scenario() -> None:
        bench.know(NEAREST, FAR)
        bench.holdings.copies = 2  # There FAR is the only backup.
        bench.fill()
        bench.holder_side.backed([CELL], NEAREST)
        await asyncio.sleep(60.0)
        assert NEAREST.address in [address for address, _ in bench.client.haves]
        assert bench.holdings.backed[CELL].role is None

    run_with_holder_side(bench, scenario)


def test_a_cell_owned_here_is_synced_not_told(bench: HolderBench) -> None:
    async def scenario() -> None:
        bench.know(FAR)
        bench.fill()
        bench.holder_side.notify_of_strays()
        await asyncio.sleep(1.0)

    run_with_holder_side(bench, scenario)
    assert ([CELL], []) == (bench.owned, bench.client.haves)


def test_an_owner_that_does_not_answer_is_told_again(bench: HolderBench) -> None:
    async def scenario() -> None:
        bench.know(NEAREST)
        bench.fill()
        bench.client.down = True
        bench.holder_side.notify_owner(CELL)
        await asyncio.sleep(3.0)
        bench.client.down = False
        await asyncio.sleep(2.0)
        assert bench.client.haves

    run_with_holder_side(bench, scenario)


def test_what_is_not_here_any_more_is_not_told(bench: HolderBench) -> None:
    async def scenario() -> None:
        bench.know(NEAREST)
        bench.holder_side.notify_owner(CELL)
        await asyncio.sleep(1.0)
        assert 0 == bench.holder_side.unnotified

    run_with_holder_side(bench, scenario)
    assert [] == bench.client.haves


def test_news_that_come_while_the_owner_is_told_are_told_too(bench: HolderBench) -> None:
    """A page finished late, just then, in a cell backed up here: its owner must not wait for the next repair."""

    async def scenario() -> None:
        bench.know(NEAREST)
        bench.fill(1)
        bench.holdings.back_up_for(CELL, NEAREST, 1, 0.0)

        def finish_late() -> None:
            bench.client.meanwhile = lambda: None
            bench.fill(2)
            bench.holder_side.notify_owner(CELL)

        bench.client.meanwhile = finish_late
        bench.holder_side.notify_owner(CELL)
        await asyncio.sleep(6.0)
        assert [bench.held()] == bench.client.haves[-1][1].cells

    run_with_holder_side(bench, scenario)


def test_a_keep_does_not_silence_news(bench: HolderBench) -> None:
    async def scenario() -> None:
        bench.know(NEAREST)
        bench.fill()
        bench.holder_side.notify_owner(CELL)
        bench.holder_side.assign_replica(AssignReplica(NEAREST, 1, [digest_of(CELL, EMPTY)]))
        await asyncio.sleep(1.0)
        assert bench.client.haves

    run_with_holder_side(bench, scenario)


# --- answering -------------------------------------------------------------------------------------------------------


def test_who_is_farther_is_told_of_the_rival(bench: HolderBench) -> None:
    async def scenario() -> None:
        bench.know(FAR, NEAR)
        bench.own()
        assert NEAR == bench.asked_by(FAR).rival
        assert bench.holdings.is_open(CELL)

    run_with_holder_side(bench, scenario)


def test_an_owner_asked_by_a_nearer_one_stops_and_tells_its_clocks(bench: HolderBench) -> None:
    async def scenario() -> None:
        bench.know(NEAR, FAR)
        bench.fill()
        bench.own()
        bench.holdings.back_up_at(CELL, [FAR])
        bench.crawl.told = [SiteRecord("a.example", 1.0, 2.0)]
        answer = bench.asked_by(NEAR)
        assert (True, False, bench.crawl.told, [FAR]) == (
            answer.released,
            answer.releasing,
            answer.sites,
            answer.others,
        )
        assert ([CELL], bench.held()) == (bench.crawl.closed, answer.held)
        assert CELL not in bench.holdings.owned
        assert not bench.asked_by(NEAR).released, "only once: its clocks are not known here any more"

    run_with_holder_side(bench, scenario)


def test_an_owner_with_requests_under_way_releases_when_they_are_over(bench: HolderBench) -> None:
    async def scenario() -> None:
        bench.know(NEAR)
        bench.own()
        bench.crawl.busy = True
        first = bench.asked_by(NEAR)
        assert (True, False) == (first.releasing, first.released)
        assert [CELL] == bench.crawl.closed
        bench.crawl.busy = False
        second = bench.asked_by(NEAR)
        assert (False, True) == (second.releasing, second.released)

    run_with_holder_side(bench, scenario)


def test_a_cell_given_up_with_open_requests_is_released_after_them(bench: HolderBench) -> None:
    """The peer has been away: it owns nothing then, and its requests are still on their way."""

    async def scenario() -> None:
        bench.know(NEAR)
        bench.fill()
        bench.crawl.busy = True
        assert bench.asked_by(NEAR).releasing
        bench.crawl.busy = False
        assert not bench.asked_by(NEAR).releasing

    run_with_holder_side(bench, scenario)


@pytest.mark.parametrize("owned", [True, False])
def test_pages_in_hand_are_named_to_who_takes_the_cell(bench: HolderBench, owned: bool) -> None:
    async def scenario() -> None:
        bench.know(NEAR)
        bench.fill()
        if owned:
            bench.own()
        bench.crawl.unfinished = [bytes(20), bytes(19) + b"x"]
        assert bench.crawl.unfinished == bench.asked_by(NEAR).in_progress

    run_with_holder_side(bench, scenario)


def test_a_cell_being_released_for_a_lost_peer_goes_to_the_next_at_once(bench: HolderBench) -> None:
    async def scenario() -> None:
        bench.know(NEAREST, NEAR)
        bench.own()
        bench.crawl.busy = True
        assert bench.asked_by(NEAREST).releasing
        del bench.overlay.known[NEAREST.id]
        bench.holder_side.lost()
        await asyncio.sleep(2 * NOTIFY_S)
        assert [NEAR.address] == [address for address, _ in bench.client.haves]

    run_with_holder_side(bench, scenario)


def test_an_owner_that_cannot_tell_its_clocks_does_not_say_released(bench: HolderBench) -> None:
    async def scenario() -> None:
        bench.know(NEAR)
        bench.own()
        bench.crawl.told, bench.crawl.refusing = None, [SiteRecord("a.example", 60.0, 1.0)]
        answer = bench.asked_by(NEAR)
        assert (False, True) == (answer.released, answer.clocks_incomplete)
        assert bench.crawl.refusing == answer.sites, "a refused request is known all the same"

    run_with_holder_side(bench, scenario)


def test_who_leaves_is_nobodys_rival(bench: HolderBench) -> None:
    async def scenario() -> None:
        bench.know(FAR)
        bench.holder_side.begin_leaving()
        assert bench.asked_by(FAR).rival is None

    run_with_holder_side(bench, scenario)


def test_a_backup_tells_the_clocks_it_knows_and_has_not_released_the_cell(bench: HolderBench) -> None:
    """A site with done pages only is in no record that moves, so its delay would be forgotten."""

    async def scenario() -> None:
        bench.know(NEAREST)
        bench.fill()
        bench.holder_side.assign_replica(AssignReplica(NEAREST, 2, [bench.held()]))
        bench.crawl.told, bench.crawl.known = None, [SiteRecord("a.example", 3.0, 8.0)]
        answer = bench.asked_by(NEAREST)
        assert (False, bench.crawl.known) == (answer.released, answer.sites)

    run_with_holder_side(bench, scenario)


@pytest.mark.parametrize("crawled_lately", [False, True])
def test_only_a_former_owner_says_that_it_cannot_tell_its_clocks(bench: HolderBench, crawled_lately: bool) -> None:
    async def scenario() -> None:
        bench.know(NEAREST)
        bench.crawl.known, bench.crawl.crawled_lately = None, crawled_lately
        bench.crawl.refusing = [SiteRecord("a.example", 60.0, 1.0)]
        answer = bench.asked_by(NEAREST)
        told = (answer.released, answer.sites, answer.clocks_incomplete)
        assert (False, bench.crawl.refusing, crawled_lately) == told

    run_with_holder_side(bench, scenario)


def test_what_an_owner_was_told_is_here_is_not_forgotten_for_another(bench: HolderBench) -> None:
    """Two owners may exist for a moment after a partition.

    The first may have this peer drop records that the second counts on.
    """

    async def scenario() -> None:
        bench.know(NEAR)
        bench.fill()
        bench.holder_side.assign_replica(AssignReplica(NEAR, 0, [bench.held()]))
        bench.know(NEAREST)
        answer = bench.asked_by(NEAREST)
        await asyncio.sleep(60.0)
        assert answer.held.keys == bench.held().keys > 0
        assert bench.client.haves, "the owner is asked what is to become of it"
        bench.holder_side.assign_replica(AssignReplica(NEAREST, 0, [bench.held()]))
        await asyncio.sleep(1.0)
        assert 0 == bench.held().keys

    run_with_holder_side(bench, scenario)


@pytest.mark.parametrize("claimed_sender", [NEAR, FAR])
def test_nothing_is_dropped_for_a_peer_to_whom_another_is_nearer(bench: HolderBench, claimed_sender: Contact) -> None:
    async def scenario() -> None:
        bench.know(NEAREST)
        bench.fill()
        held = bench.held()
        assert [held] == bench.holder_side.assign_replica(AssignReplica(claimed_sender, 0, [held])).differing
        await asyncio.sleep(60.0)
        assert held == bench.held()
        assert not bench.holder_side.assign_replica(AssignReplica(NEAREST, 0, [held])).differing
        await asyncio.sleep(1.0)
        assert 0 == bench.held().keys

    run_with_holder_side(bench, scenario)


def test_a_second_claimant_hears_of_the_first(bench: HolderBench) -> None:
    """Two that came at the same moment may not know each other yet: the first may crawl already."""

    async def scenario() -> None:
        bench.know(NEAR)
        bench.own()
        assert bench.asked_by(NEAR).released
        assert NEAR in bench.asked_by(NEAREST).others

    run_with_holder_side(bench, scenario)


def test_whoever_asks_hears_of_holders_our_overlay_does_not_know_yet(bench: HolderBench) -> None:
    """The holders were found or have claimed the cell a moment ago. Perhaps no other peer knows about them."""

    async def scenario() -> None:
        bench.fill()
        bench.own()
        bench.holdings.back_up_at(CELL, [FAR])
        assert [FAR] == bench.asked_by(NEAR).others
        assert NEAR in bench.asked_by(NEAREST).others

    run_with_holder_side(bench, scenario)


def test_whoever_asks_hears_of_the_holders_that_named_themselves_here(bench: HolderBench) -> None:
    """While many peers join at once, a cell may have no owner among them yet that holds anything of it."""

    async def scenario() -> None:
        bench.holder_side.providers.add(CELL, FAR)
        assert [FAR] == bench.asked_by(NEAR).others
        bench.holder_side.providers.retire(CELL, 0.0)
        assert [FAR] == bench.asked_by(NEAR).others, "the sync of this peer has ended, as another peer is nearer"

    run_with_holder_side(bench, scenario)


def test_former_backups_of_a_cell_are_named_until_its_new_owner_speaks(bench: HolderBench) -> None:
    """The new owner may die before it has told them anything, and come back without a memory of them."""

    async def scenario() -> None:
        bench.fill()
        bench.own()
        bench.holdings.back_up_at(CELL, [FAR])
        assert bench.asked_by(NEAR).released
        assert FAR in bench.asked_by(NEAR).others
        bench.holder_side.assign_replica(AssignReplica(NEAR, 1, [bench.held()]))
        assert FAR not in bench.asked_by(NEAR).others

    run_with_holder_side(bench, scenario)


# --- keeping and dropping --------------------------------------------------------------------------------------------


def test_only_what_the_owner_has_seen_is_dropped(bench: HolderBench) -> None:
    async def scenario() -> None:
        bench.know(NEAR)
        bench.fill(2)
        seen = bench.held()
        bench.fill(3)
        assert [bench.held()] == bench.holder_side.assign_replica(AssignReplica(NEAR, 0, [seen])).differing
        await asyncio.sleep(2.0)
        assert 3 == bench.store.cells[CELL].keys
        assert [] == bench.holder_side.assign_replica(AssignReplica(NEAR, 0, [bench.held()])).differing
        await asyncio.sleep(2.0)
        assert {} == bench.store.cells

    run_with_holder_side(bench, scenario)


def test_a_cell_that_is_crawled_here_is_not_dropped_at_an_old_word(bench: HolderBench) -> None:
    """The cell was given away and taken back before the message came.

    The owner has to ask, so that the cell is released first.
    """

    async def scenario() -> None:
        bench.know(NEAR)
        bench.fill()
        bench.own()
        assert [bench.held()] == bench.holder_side.assign_replica(AssignReplica(NEAR, 0, [bench.held()])).differing
        assert bench.holdings.is_open(CELL)
        assert bench.asked_by(NEAR).released
        assert [] == bench.holder_side.assign_replica(AssignReplica(NEAR, 0, [bench.held()])).differing

    run_with_holder_side(bench, scenario)


def test_who_is_farther_than_the_owner_here_drops_nothing(bench: HolderBench) -> None:
    async def scenario() -> None:
        bench.fill()
        bench.own()
        assert [bench.held()] == bench.holder_side.assign_replica(AssignReplica(FAR, 0, [bench.held()])).differing
        await asyncio.sleep(2.0)
        assert 3 == bench.store.cells[CELL].keys
        assert bench.holdings.is_open(CELL)

    run_with_holder_side(bench, scenario)


def test_news_stop_the_forgetting(bench: HolderBench) -> None:
    async def scenario() -> None:
        bench.know(NEAR)
        bench.fill()
        bench.holder_side.assign_replica(AssignReplica(NEAR, 0, [bench.held()]))
        bench.holder_side.notify_owner(CELL)
        await asyncio.sleep(2.0)
        assert 3 == bench.store.cells[CELL].keys

    run_with_holder_side(bench, scenario)


def test_records_from_anybody_stop_the_forgetting(bench: HolderBench) -> None:
    """The records were acknowledged, so their sender counts on this peer."""

    async def scenario() -> None:
        bench.know(NEAR)
        bench.fill(2)
        bench.holder_side.assign_replica(AssignReplica(NEAR, 0, [bench.held()]))
        bench.fill(3)
        bench.holder_side.backed([CELL], FAR)
        await asyncio.sleep(2.0)
        assert CELL in bench.store.cells

    run_with_holder_side(bench, scenario)


def test_a_cell_asked_for_twice_is_refused(bench: HolderBench) -> None:
    async def scenario() -> None:
        with pytest.raises(KadcrawlError, match="twice"):
            bench.holder_side.answer(TakeOver(NEAREST, [CELL, CELL]))

    run_with_holder_side(bench, scenario)


def test_a_backup_in_the_wrong_place_says_so_ever_more_seldom(bench: HolderBench) -> None:
    """Owner and backup may know different peers for as long as a cut lasts."""

    async def scenario() -> None:
        bench.know(NEAREST, FAR)
        bench.fill()
        for _ in range(60):
            bench.holder_side.assign_replica(AssignReplica(NEAREST, 1, [bench.held()]))
            await asyncio.sleep(10.0)
        assert 5 <= len(bench.client.haves) <= 15

    run_with_holder_side(bench, scenario)
