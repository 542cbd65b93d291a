"""Test that an honest peer survives any well-formed lie of a member, and goes on with its own work."""

import json
import logging
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from kadcrawl import Job
from kadcrawl.cli.view.status import show
from kadcrawl.cli.view.table import print_rows
from kadcrawl.crawl.content.link_finder import deeper
from kadcrawl.crawl.page_budget import Budget, listed
from kadcrawl.errors import RemoteError
from kadcrawl.keys import Cell, Key, anchor, id_bytes
from kadcrawl.link.server import LinkServer
from kadcrawl.link.wire.census_rows import fitting, packed_rows, read_rows
from kadcrawl.link.wire.codec import pack, unpack
from kadcrawl.link.wire.leaf_messages import NO_HOST, NO_PORT, LeafDetails
from kadcrawl.link.wire.messages import (
    BATCH_MAX,
    COUNT_MAX,
    DEPARTED_MAX,
    LONG_S_MAX,
    ROWS_MAX,
    SMALL_MAX,
    WIRE_VERSION,
    Add,
    Answer,
    AssignReplica,
    BacklogRecord,
    Batch,
    CellEpochFilters,
    CellsHeld,
    CellState,
    CellSummary,
    Census,
    CompareDigests,
    Contact,
    DatedLink,
    DatedOffer,
    Departed,
    EpochFilterLabel,
    EpochFilterRecord,
    FindMyCells,
    FindRanges,
    GetEpochFilters,
    GetLoad,
    GetReach,
    GetStatus,
    GetSwarmState,
    GotEpochFilters,
    Grant,
    Hello,
    KeepEpochFilters,
    KeepFilterPart,
    LaterState,
    LeaveStats,
    Lend,
    Link,
    LoanReport,
    Message,
    NewReach,
    NewSeeds,
    Offer,
    Order,
    PeerCounters,
    PeerRow,
    PendingRecord,
    Recall,
    Reconcile,
    RenewLease,
    Replicate,
    Reply,
    Request,
    ReturnedUrl,
    RobotsRecord,
    SiteRecord,
    Status,
    StreamSeeds,
    Survey,
    SwarmStatus,
    TakeOver,
    TakeOverAnswer,
    Tally,
    WasAway,
    Wave,
    Welcome,
    Window,
    WorkRequest,
)
from kadcrawl.link.wire.peer_row import PeerDetails
from kadcrawl.link.wire.peer_state import PeerState
from kadcrawl.link.wire.seed_messages import SEGMENTS_ASKED_MAX, STREAM_URLS_MAX
from kadcrawl.link.wire.watch_messages import SINKS_OF_LEAF_MAX, WatchedSink
from kadcrawl.overlay.waves.quiescence import add_up
from kadcrawl.overlay.waves.wave import ROWS_BYTES_MAX
from kadcrawl.replication.epoch_filter_transfer import EpochFilterSync
from kadcrawl.replication.owner import (
    catch_up,
    release_wait,
    work_quota,
)
from kadcrawl.store.frontier_entry import FrontierEntry
from kadcrawl.store.schema import DONE, STATE_MAX
from kadcrawl.store.store import Store
from kadcrawl.store.visit import Visit
from tests.support.links.liar import BYTES_MAX, DIGEST, LIAR, NOWHERE, liar, say, visit
from tests.support.swarm.peers import MakePeer, make_peer as make_peer
from tests.support.waiting import until

URLS = [
    "http://a.example/",
    "http://a.example",
    "HTTP://A.example/",
    "http://",
    "http://[::1",
    "http:///",
    "x",
    "/",
    "ftp://a/",
    "http://a.example/#f",
    "\x00",
    "h" * 8192,
    "http://\u4e2d/",
]
CELLS = [0, 2**16 - 1, 2**16, 2**24 - 1]


def batch(urls: Sequence[str] = URLS) -> Batch:
    return Batch(
        [LIAR, bytes(20), b"\xff" * 20],
        [PendingRecord(url, SMALL_MAX, SMALL_MAX, SMALL_MAX, 86_400.0) for url in urls],
        [SiteRecord(url, 86_400.0, 86_400.0) for url in urls],
        [RobotsRecord(url, b"\xff\x00Disallow", 86_400.0) for url in urls],
        [visit(url, state) for url in urls for state in (1, 2, STATE_MAX - 1, STATE_MAX)],
    )


def largest_counters(failed: dict[str, int], left_out: dict[str, int]) -> PeerCounters:
    """Return counters at the limit of the wire."""
    return replace(PeerCounters(*[COUNT_MAX] * 7), failed=failed, left_out=left_out)  # type: ignore[arg-type]


def false_epoch_filters() -> list[EpochFilterRecord]:
    grains, bits = (0, 1, 20_000, COUNT_MAX), (b"", b"seen", b"seen" + bytes(60), bytes(1000))
    return [EpochFilterRecord(EpochFilterLabel(grain, 2**40, DIGEST), one) for grain in grains for one in bits]


def lies(me: Contact) -> Iterator[Message]:
    """All that a message can say, at its limits, of itself or of others."""
    us_elsewhere, our_address = Contact(me.id, "10.9.9.9", 9), Contact(LIAR, me.host, me.port)
    speakers = [me, us_elsewhere, our_address, Contact(id_bytes(me.number ^ 1), "127.0.0.1", 9)]
    speakers += [Contact(id_bytes(anchor(Cell(0), 16)), "::1", 9)]
    speakers += [Contact(LIAR, host, 1) for host in NOWHERE]
    for offer in (Link, DatedLink):
        links = [offer(url, depth, SMALL_MAX) for url in URLS for depth in (0, 1, SMALL_MAX)]
        for mark in (0, 7):
            yield (Offer if offer is Link else DatedOffer)(links, mark)  # type: ignore[arg-type]
    yield DatedOffer(
        [
            DatedLink("http://a.example/x", 1, 0, b"12345678", LONG_S_MAX),
            DatedLink("http://a.example/y", 1, 0, b"", 0.0),
        ]
    )
    for version in (0, WIRE_VERSION - 2, WIRE_VERSION + 2, SMALL_MAX):
        yield Hello(version)
    yield GetSwarmState()
    yield FindRanges([me.id, LIAR, bytes(20), LIAR])
    held = [CellSummary(cell, keys, COUNT_MAX, DIGEST) for cell in CELLS for keys in (0, COUNT_MAX)]
    for speaker in speakers:
        yield FindMyCells(speaker)
        yield WasAway(speaker, 2.0)
        yield Replicate(speaker, batch())
        for cells in ([0], [0, 0], CELLS, [2**16]):
            yield TakeOver(speaker, cells)
            yield CellsHeld(speaker, [CellSummary(cell, COUNT_MAX, COUNT_MAX, DIGEST) for cell in cells])
            for role in (0, 1, 2):
                yield AssignReplica(speaker, role, [one for one in held if one.cell in cells])
        yield KeepEpochFilters(speaker, [CellEpochFilters(cell, false_epoch_filters()) for cell in CELLS])
        yield KeepEpochFilters(speaker, [CellEpochFilters(0, false_epoch_filters())] * 2)
        pending = [PendingRecord("http://a.example/", SMALL_MAX, SMALL_MAX, SMALL_MAX, 86_400.0)]
        clock = SiteRecord("a.example", 86_400.0, 86_400.0)
        yield Lend(speaker, bytes(8), clock, 1000, pending, batch().robots)
        yield Lend(speaker, bytes(8), clock, 1000, [PendingRecord(url, 0, 0, 0, 0.0) for url in URLS], [])
        yield Recall(speaker, [bytes(8)] * 64)
        never = LoanReport(bytes(8), clock, [LIAR, bytes(20)], [ReturnedUrl(LIAR, SMALL_MAX, 86_400.0)], True)
        yield RenewLease(speaker, [never, never])
    for cell in CELLS:
        for after, last in [(None, None), (b"\xff" * 20, bytes(20)), (bytes(20), b"\xff" * 20)]:
            yield CompareDigests(cell, after, [Window(last, COUNT_MAX, DIGEST), Window(after, 0, DIGEST)] * 3)
            keys = [LIAR, bytes(20), b"\xff" * 20]
            yield Reconcile(cell, after, last, keys, keys, [LaterState(key, STATE_MAX) for key in keys])
            yield Reconcile(cell, after, last, [number.to_bytes(20, "big") for number in range(BATCH_MAX)], keys, [])
        yield GetEpochFilters(cell, COUNT_MAX, [EpochFilterLabel(COUNT_MAX, 1, DIGEST)])
    yield GetLoad(me.id, BacklogRecord(SMALL_MAX, 1e5, 1e9))
    yield GetLoad(LIAR, BacklogRecord(0, 1e-6, 0.0))
    most = largest_counters(failed={"x" * 40: COUNT_MAX}, left_out={"": COUNT_MAX})
    for leaf in (me.id, LIAR, bytes(20)):
        sinks = [WatchedSink("", COUNT_MAX, COUNT_MAX)] * SINKS_OF_LEAF_MAX
        boasts = LeafDetails(PeerDetails("", -SMALL_MAX, COUNT_MAX, COUNT_MAX), sinks)
        yield WorkRequest(leaf, 200, 0.0, "stopped", PeerState.LEFT, COUNT_MAX, COUNT_MAX, most, 0, boasts)
    for who in (me, us_elsewhere, our_address, Contact(bytes(20), NO_HOST, NO_PORT)):
        yield LeaveStats(LIAR, [Departed(who, most)] * DEPARTED_MAX)
    yield LeaveStats(LIAR, [Departed(Contact(id_bytes(number), "10.9.9.9", 9), most) for number in range(DEPARTED_MAX)])
    for question in (Survey(), Census(), Order("rest"), Order("pause", COUNT_MAX), Order("resume", 2**31)):
        for limit in (0, 160):
            yield Wave(limit, 1e-9 if limit else 120.0, question)
    yield Wave(160, 1.0, Grant({me.id: COUNT_MAX, LIAR: COUNT_MAX, bytes(20): 0}, True))
    yield Wave(160, 1.0, Grant({me.id: 0}, False))
    yield Wave(160, 1.0, Grant({me.id: 0, LIAR: COUNT_MAX}, False, epochs={me.id: COUNT_MAX, LIAR: COUNT_MAX}))
    yield Wave(160, 1.0, Grant({}, False, "bytes", {me.id: 0, bytes(20): 1}))
    yield Wave(160, 1.0, Census(unit="pages"))
    yield Wave(160, 1.0, NewSeeds(URLS))
    yield Wave(160, 1.0, NewSeeds([f"http://s{number}.example/{'x' * 8000}" for number in range(200)]))
    for segment in (bytes(8), bytes(16), bytes(9), bytes(range(255, -1, -1)), bytes(range(256))):
        yield Wave(160, 1.0, NewReach(segment))
    yield GetReach([bytes(16)] * SEGMENTS_ASKED_MAX)
    yield StreamSeeds(bytes(16), URLS, False, bytes(32), COUNT_MAX, COUNT_MAX)
    yield StreamSeeds(bytes(16), ["x"] * STREAM_URLS_MAX, True)
    yield Add(URLS)
    yield Add(["x"] * BATCH_MAX)
    yield GetStatus()


def bugs(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]


JOBS: list[dict[str, Any]] = [
    {},
    {"max_pages": 3},
    {"recrawl_after_s": 86_400.0},
    {"history": "bloom", "recrawl_after_s": 86_400.0},
    {"partition": "url", "balance": "level"},
    {"partition": "domain", "max_depth": 3, "site_pages_max": 2},
]


@pytest.mark.parametrize("job", JOBS, ids=["-".join(map(str, job.values())) or "plain" for job in JOBS])
async def test_no_lie_breaks_a_peer(
    make_peer: MakePeer,
    caplog: pytest.LogCaptureFixture,
    job: dict[str, Any],
) -> None:
    """The lies come in two orders.

    The peer refuses or accepts each lie, and answers the next question as ever.
    """
    peer = await make_peer("one", **job)
    async with liar() as client:
        said = [*lies(peer.contact)]
        for lie in [*said, *reversed(said)]:
            assert unpack(pack(lie), Request, BYTES_MAX) == lie, "it is in good form"
            await say(client, peer, lie)
        answer = await say(client, peer, Hello(WIRE_VERSION))
        assert isinstance(answer, Welcome)
        status = await say(client, peer, GetStatus())
        assert isinstance(status, Status)
        assert status.answer.rows[0].contact == peer.contact
        assert peer.overlay.contacts() == []
    assert not bugs(caplog)


# --- one by one --------------------------------------------------------------------------------------------------


async def test_a_peer_is_not_sent_where_no_peer_can_be(make_peer: MakePeer) -> None:
    peer = await make_peer("one")
    async with liar() as client:
        for host in NOWHERE:
            nowhere = Contact(LIAR, host, 1)
            for lie in (
                FindMyCells(nowhere),
                WasAway(nowhere, 2.0),
                TakeOver(nowhere, [0]),
                CellsHeld(nowhere, [CellSummary(0, 1, 1, DIGEST)]),
                AssignReplica(nowhere, 0, []),
                Replicate(nowhere, batch([])),
                KeepEpochFilters(nowhere, []),
                KeepFilterPart(nowhere, 0, EpochFilterLabel(0, 1, DIGEST), 1, 0, b"x"),
            ):
                assert await say(client, peer, lie) == f"no peer is asked at {host}"
    assert not peer.client._connections
    assert peer.components.frontier.pending == 0


async def test_nobody_is_asked_in_the_name_of_another(make_peer: MakePeer) -> None:
    """The liar names a third peer at its own address, and could otherwise describe the copies of that peer."""
    anne = await make_peer("one")
    bert = await make_peer("two", join=anne)
    await until(lambda: anne.overlay.contacts() == [bert.contact])
    cell = next(cell for cell in map(Cell, range(2**16)) if anne.overlay.owns(cell))
    assert await anne.cells.sync.opened([cell], 30.0) == {cell}
    asked: list[Contact] = []
    server = LinkServer(BYTES_MAX)

    async def answer(sync: TakeOver) -> TakeOverAnswer:
        asked.append(sync.owner)
        held = [CellSummary(one, 0, 0, DIGEST) for one in sync.cells]
        return TakeOverAnswer([CellState(one, None, [], False, False, []) for one in held])

    server.handle(TakeOver, answer)
    port = await server.listen("127.0.0.1", 0)
    async with liar() as client:
        syncs = anne.cells.sync.syncs
        disguised = Contact(bert.contact.id, "127.0.0.1", port)
        await say(client, anne, CellsHeld(disguised, [CellSummary(cell, 1, 1, DIGEST)]))
        await until(lambda: anne.cells.sync.syncs > syncs)
        assert not asked
        syncs = anne.cells.sync.syncs
        await say(client, anne, CellsHeld(Contact(LIAR, "127.0.0.1", port), [CellSummary(cell, 1, 1, DIGEST)]))
        await until(lambda: anne.cells.sync.syncs > syncs)
        assert asked == [anne.contact], "in its own name it may say what it likes"
    await server.close()


@pytest.mark.parametrize(
    ("keys", "releasing"), [(0, True), (1, True), (1, False)], ids=["crawls it for ever", "and tells nothing", "fails"]
)
async def test_a_non_owner_delays_the_opening_of_a_cell_by_one_request_at_most(
    make_peer: MakePeer,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    keys: int,
    releasing: bool,
) -> None:
    monkeypatch.setattr(release_wait, "WAIT_S", 8.0)
    monkeypatch.setattr(catch_up, "SYNCS_MAX", 1)
    anne = await make_peer("one")
    bert = await make_peer("two", join=anne)
    await until(lambda: anne.overlay.contacts() == [bert.contact])
    cells = [cell for cell in map(Cell, range(2**16)) if anne.overlay.owns(cell)][:3]
    assert await anne.cells.sync.opened(cells[:1], 30.0) == set(cells[:1])
    server = LinkServer(BYTES_MAX)
    asked: list[int] = []

    async def answer(sync: TakeOver) -> TakeOverAnswer:
        asked.append(len(sync.cells))
        held = [CellSummary(one, keys, keys, DIGEST) for one in sync.cells]
        return TakeOverAnswer([CellState(one, None, [], releasing=releasing, released=False, sites=[]) for one in held])

    server.handle(TakeOver, answer)
    liar_at = Contact(LIAR, "127.0.0.1", await server.listen("127.0.0.1", 0))
    try:
        async with liar() as client:
            claims = CellsHeld(liar_at, [CellSummary(cell, 1, 1, DIGEST) for cell in cells[:2]])
            await say(client, anne, claims)
            await until(lambda: asked)
            began = anne.clock.now()
            assert await anne.cells.sync.opened(cells[2:], 6.0) == set(cells[2:]), "others wait for none of this"
            assert await anne.cells.sync.opened(cells, 60.0) == set(cells)
            assert anne.clock.now() - began <= 8 + 15
            await say(client, anne, claims)
            syncs = anne.cells.sync.syncs
            await until(lambda: anne.cells.sync.syncs >= syncs + 2)
            assert all(anne.cells.holdings.is_open(cell) for cell in cells)
    finally:
        await server.close()
    said = caplog.text.count("sync.impatient")
    for cell in cells * 100:
        anne.cells.sync._catch_up._say("impatient", f"cell={cell}")
    assert 1 <= said
    assert caplog.text.count("sync.impatient") <= said + 1, "it fills no log"


@pytest.mark.parametrize("releasing", [True, False], ids=["crawls them for ever", "fails"])
async def test_a_peer_with_many_false_claims_of_cells_is_soon_not_asked_at_all(
    make_peer: MakePeer, monkeypatch: pytest.MonkeyPatch, releasing: bool
) -> None:
    monkeypatch.setattr(work_quota, "QUOTA_CELLS_MAX", 10 * work_quota.FAILED_COST)
    monkeypatch.setattr(catch_up, "SYNCS_MAX", 2)
    anne = await make_peer("one")
    bert = await make_peer("two", join=anne)
    await until(lambda: anne.overlay.contacts() == [bert.contact])
    cells = [cell for cell in map(Cell, range(2**16)) if anne.overlay.owns(cell)][:20]
    server = LinkServer(BYTES_MAX)
    asked: list[int] = []

    async def answer(sync: TakeOver) -> TakeOverAnswer:
        asked.extend(sync.cells)
        held = [CellSummary(one, 1, 1, DIGEST) for one in sync.cells]
        return TakeOverAnswer([CellState(one, None, [], releasing=releasing, released=False, sites=[]) for one in held])

    server.handle(TakeOver, answer)
    liar_at = Contact(LIAR, "127.0.0.1", await server.listen("127.0.0.1", 0))
    try:
        async with liar() as client:
            claims = CellsHeld(liar_at, [CellSummary(cell, 1, 1, DIGEST) for cell in cells])
            await say(client, anne, claims)
            began = anne.clock.now()
            await until(lambda: not anne.cells.sync.busy)
            assert anne.clock.now() - began < release_wait.WAIT_S / 2, "it keeps none closed for two minutes"
            assert all(anne.cells.holdings.is_open(cell) for cell in cells)
            assert 0 < len(asked) <= 12
            await say(client, anne, claims)
            assert not anne.cells.sync.busy
            assert bert.contact.id not in anne.cells.sync._catch_up.work_quota._of
    finally:
        await server.close()


def test_a_tally_that_lies_is_passed_on_and_hides_no_others() -> None:
    """Otherwise a peer nearer to the asker would count as silent, with all of its part."""
    most = Tally(COUNT_MAX, b"\xff" * 16, COUNT_MAX, COUNT_MAX, COUNT_MAX, LONG_S_MAX)
    ours = Tally(1, bytes(16), 1, 1, 1, 5.0)
    answer = Answer(add_up([ours, most, most, ours]), [])
    assert answer == unpack(pack(answer), Reply, BYTES_MAX)
    assert (answer.tally.pending, answer.tally.due_s) == (COUNT_MAX, 5.0)


def overlong_row(number: int, name_chars: int = 5) -> PeerRow:
    reasons = {f"{reason:02}".rjust(name_chars, "x"): COUNT_MAX for reason in range(80)}
    counters = largest_counters(failed=reasons, left_out=reasons)
    return PeerRow(Contact(number.to_bytes(20, "big"), "h" * 64, 1), PeerState.REFUSED_BY_ALL, 0, 0, 0, counters, 0, 0)


async def test_rows_that_are_too_many_or_too_long_make_no_answer_too_long() -> None:
    job = Job(seeds=tuple(f"http://a.example/{number:06}".ljust(100, "x") for number in range(10_000)))
    rows = packed_rows(overlong_row(number, 40) for number in range(1000))
    some = fitting(rows, ROWS_BYTES_MAX)
    assert some == rows[: len(some)]
    assert 300 < len(some) < 1000
    status = Status(job, SwarmStatus(Tally(1, bytes(16), 0, 0, 0), await read_rows(some)), False, False)
    assert status == unpack(pack(status), Reply, BYTES_MAX)
    short = packed_rows(
        [PeerRow(Contact(LIAR, "h", 1), PeerState.IDLE, 0, 0, 0, PeerCounters(), 0, 0)] * (ROWS_MAX + 5)
    )
    assert len(fitting(short, ROWS_BYTES_MAX)) == ROWS_MAX


def test_nobody_is_granted_more_than_there_is() -> None:
    budget = Budget(30, 0, 0)
    budget.learn({b"me": COUNT_MAX, b"other": COUNT_MAX}, b"me", spent=False)
    assert (budget.granted, budget.known) == (30, {b"me": 30, b"other": 30})
    free = Budget(None, 0, 0)
    free.learn({b"me": COUNT_MAX, LIAR: 1}, b"me", spent=True)
    assert (free.granted, free.known, free.spent) == (0, {}, False), "a job without a budget keeps nothing of it"


def test_made_up_peers_keep_no_other_from_being_granted_anything() -> None:
    absent = {number.to_bytes(20, "big"): 1 for number in range(ROWS_MAX)}
    told = listed({LIAR: 7}, absent)
    assert (len(told), told[LIAR]) == (ROWS_MAX, 7)
    wave = Wave(160, 1.0, Grant(told, False))
    assert wave == unpack(pack(wave), Request, BYTES_MAX)


@contextmanager
def begun_store(directory: Path) -> Iterator[Store]:
    directory.mkdir()
    with closing(Store(directory, 0.0, lambda fds: None)) as store:
        store.begin(16)
        yield store


KEY = Key(bytes(20))


@pytest.mark.parametrize("state", [STATE_MAX - 3, STATE_MAX - 2, STATE_MAX - 1, STATE_MAX])
def test_a_state_at_the_end_of_all_rounds_can_still_be_told(tmp_path: Path, state: int) -> None:
    """Otherwise a page with such a state would be a record that no message can carry.

    All copies to a backup would stop for ever.
    """
    url = "http://a.example/"
    page = Visit(KEY, "a.example", url, 1, 5.0, 60.0, "", "", "", "", 0)
    with begun_store(tmp_path / "one") as store:
        store.learn_visit(page, state, 0, 0.0)
        for _ in range(3):
            known = store.state(KEY)
            assert known is not None
            message = Replicate(Contact(LIAR, "10.0.0.1", 1), Batch([], [], [], [], [visit(url, known)]))
            assert message == unpack(pack(message), Request, BYTES_MAX)
            later = Reconcile(0, None, None, [], [], [LaterState(KEY, known)])
            assert later == unpack(pack(later), Request, BYTES_MAX)
            entry = store.begin_round(KEY) or store.entry(KEY)
            if entry is not None:
                store.finish(entry, b"{}\n", visit=page)
        assert store.state(KEY) in (STATE_MAX - 1, STATE_MAX)
        assert store.begin_round(KEY) is None


def test_digests_notice_a_state_that_only_one_holder_was_told(tmp_path: Path) -> None:
    """A state that a member told one of three holders comes to the others as the latest state.

    The state is not undone.
    """
    with begun_store(tmp_path / "one") as one, begun_store(tmp_path / "two") as two:
        for store in (one, two):
            store.accept(KEY, "a.example", "http://a.example/", 1, 0)
        assert one.cells == two.cells
        one.learn_done(KEY)
        assert one.cells != two.cells
        assert one.cells[Cell(0)].pending == 0
        two.learn_done(KEY)
        assert one.cells == two.cells
        assert one.state(KEY) == DONE


def test_the_deepest_page_has_links_that_can_be_offered(tmp_path: Path) -> None:
    entry = FrontierEntry(SMALL_MAX, 1, KEY, "a.example", "http://a.example/", 0, SMALL_MAX, 0.0)
    offer = Offer([Link("http://a.example/x", deeper(entry), 0)])
    assert offer == unpack(pack(offer), Request, BYTES_MAX)
    assert deeper(entry._replace(depth=3)) == 4


async def test_epoch_filters_without_end_come_to_one() -> None:
    """A liar may always name a next epoch filter."""
    asked = 0

    class Endless:
        async def ask(
            self, address: object, question: GetEpochFilters, expected: object, deadline_s: float
        ) -> GotEpochFilters:
            nonlocal asked
            asked += 1
            return GotEpochFilters([], [], question.after + 1)

    store: Any = SimpleNamespace(
        expiring_filters=SimpleNamespace(labels=lambda cell: {}, period=SimpleNamespace(epochs=3))
    )
    client: Any = Endless()
    exchange = EpochFilterSync(client, store, lambda *_: pytest.fail("nothing came"), lambda *_: None)
    await exchange.reconcile(Contact(LIAR, "10.0.0.1", 1), Cell(0), push=True)
    assert asked == 2 * 3 + 1


def test_what_others_call_themselves_steers_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    odd = PeerRow(Contact(LIAR, "[bold]me[/bold][link=x]", 1), PeerState.IDLE, 1, 2, 3, PeerCounters(), 0, 0)
    print_rows([odd])
    assert "[bold]me[/bold][link=x]" in capsys.readouterr().out
    assert str(RemoteError("a", "no \x1b[2J\n\x9bat\u202e all \u4e2d")) == "peer a: no ?[2J??at? all \u4e2d"


def test_most_of_all_counts_can_be_shown(capsys: pytest.CaptureFixture[str]) -> None:
    status = Status(
        Job(), SwarmStatus(Tally(1, bytes(16), 0, 0, COUNT_MAX), [overlong_row(0), overlong_row(1)]), False, False
    )
    show(status, as_json=True)
    assert json.loads(capsys.readouterr().out)["pages"] == 2 * COUNT_MAX
    show(status, as_json=False)
    assert str(2 * COUNT_MAX) in capsys.readouterr().out
