"""Test that two peers make one cell equal from any state. Only differences travel, in bounded messages."""

import asyncio
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings, strategies as st

from kadcrawl.errors import KadcrawlError, RemoteError
from kadcrawl.keys import Cell, Key, cell_of, id_bytes, site_hash, url_key
from kadcrawl.link.wire.codec import pack, unpack
from kadcrawl.link.wire.messages import (
    BATCH_MAX,
    COMPARED_MAX,
    Batch,
    CellSummary,
    CompareDigests,
    Contact,
    DigestsCompared,
    PendingRecord,
    Reconcile,
    Reconciled,
    Replicate,
    Replicated,
    Reply,
    Request,
    VisitRecord,
    Window,
)
from kadcrawl.replication import anti_entropy
from kadcrawl.replication.anti_entropy import AntiEntropy, KeyRange, joined as joined_ranges, window_keys
from kadcrawl.replication.replicator import digest_of
from kadcrawl.store.cell_digest import EMPTY
from kadcrawl.store.schema import is_pending
from kadcrawl.store.store import DONE, PENDING, Store
from kadcrawl.store.visit import Visit
from sim.loop import world

BITS = 4
SITE = "a.example"
SITE_HASH = site_hash(SITE)
CELL = cell_of(Key(SITE_HASH + bytes(8)), BITS)
MESSAGE_BYTES_MAX = 2 * 1024 * 1024
KEYS_MAX = 24
"""Records of a small cell, when a batch has 4: all the ways windows and batches can meet."""
SMALL_BATCH = 4


def url(number: int) -> str:
    return f"http://{SITE}/{number}"


def key(number: int) -> Key:
    return url_key(SITE_HASH, url(number))


class ReconcilingSide:
    """One of the two sides: a store, its end of the conversation, and the requests that it received."""

    def __init__(self, directory: Path, number: int) -> None:
        directory.mkdir()
        self.contact = Contact(id_bytes(number), f"10.0.0.{number}", 4160)
        self.store = Store(directory, 0.0, lambda fds: None)
        self.store.begin(BITS)
        self.other: ReconcilingSide
        self.asked: list[Any] = []
        """Requests this side was asked, in order."""
        self.answers_left = 10_000
        self.anti_entropy = AntiEntropy(lambda: self.contact, self, self.store, self.make_batch, self.merge)  # type: ignore[arg-type]

    def fill(self, records: dict[int, int]) -> None:
        for number, state in records.items():
            if state > DONE:
                due = None if is_pending(state) else 9.0
                self.store.learn_visit(
                    Visit(key(number), SITE, url(number), 0, due, 1.0, "e", "t", "d", "c", 0), state, 0, 0.0
                )
                continue
            entry = self.store.accept(key(number), SITE, url(number), 0, 0)
            if state == DONE:
                assert entry is not None
                self.store.learn_done(entry.key)

    def make_batch(self, keys: Sequence[Key]) -> Batch:
        done, pending, visits = [], [], []
        for one in keys:
            if (visit := self.store.visits.get(one)) is not None:
                state = self.store.state(one) or 0
                visits.append(
                    VisitRecord(visit.url, 0, state, 0, 0.0, visit.due, visit.period_s, "e", "t", "d", "c", 0)
                )
            elif self.store.state(one) == DONE:
                done.append(bytes(one))
            elif (entry := self.store.entry(one)) is not None:
                pending.append(PendingRecord(entry.url, entry.depth, entry.hops, entry.tries, 0.0))
        return Batch(done, pending, [], [], visits)

    def merge(self, batch: Batch, only: Cell, believed: bool = True) -> None:
        for done in map(Key, batch.done):
            if self.store.cell_of(done) == only:
                self.store.learn_done(done)
        for record in batch.pending:
            self.store.accept(url_key(SITE_HASH, record.url), SITE, record.url, record.depth, record.hops)
        for one in batch.visits:
            visit = Visit(url_key(SITE_HASH, one.url), SITE, one.url, 0, one.due_s, one.period_s, "e", "t", "d", "c", 0)
            self.store.learn_visit(visit, one.state, 0, 0.0)

    async def ask(self, to: Contact, message: Any, expected: Any, deadline_s: float) -> Any:
        """Bring a question to the other side and its answer back, both as they travel."""
        assert to == self.other.contact
        other, question = self.other, unpack(pack(message), Request, MESSAGE_BYTES_MAX)
        if not other.answers_left:
            raise RemoteError(other.contact, "is gone")
        other.answers_left -= 1
        other.asked.append(question)
        match question:
            case CompareDigests():
                answer: Any = await other.anti_entropy.answer_compare(question)
            case Reconcile():
                answer = await other.anti_entropy.answer_reconcile(question)
            case Replicate():
                other.merge(question.batch, CELL)
                await other.store.journal.durable()
                answer = Replicated()
        answer = unpack(pack(answer), Reply, MESSAGE_BYTES_MAX)
        assert isinstance(answer, expected)
        return answer

    def held(self) -> CellSummary:
        return digest_of(CELL, self.store.cells.get(CELL, EMPTY))

    def records(self) -> dict[Key, int]:
        return dict(self.store.scan.records(CELL, b"", 1_000_000))


def joined(one: dict[Key, int], other: dict[Key, int]) -> dict[Key, int]:
    return {key: max(one.get(key, 0), other.get(key, 0)) for key in one.keys() | other.keys()}


class Sides(NamedTuple):
    """Both ends, in virtual time."""

    ours: ReconcilingSide
    theirs: ReconcilingSide
    loop: asyncio.AbstractEventLoop


@contextmanager
def two_sides(directory: Path) -> Iterator[Sides]:
    ours, theirs = ReconcilingSide(directory / "ours", 1), ReconcilingSide(directory / "theirs", 2)
    ours.other, theirs.other = theirs, ours
    with world(0) as loop:
        committers = [loop.create_task(side.store.journal.run()) for side in (ours, theirs)]
        yield Sides(ours, theirs, loop)
        for committer in committers:
            committer.cancel()
        loop.run_until_complete(asyncio.gather(*committers, return_exceptions=True))
    ours.store.close()
    theirs.store.close()


@pytest.fixture
def sides(tmp_path: Path) -> Iterator[Sides]:
    with two_sides(tmp_path) as sides:
        yield sides


def reconcile(sides: Sides, *, push: bool = True) -> None:
    ours, theirs, loop = sides
    loop.run_until_complete(ours.anti_entropy.reconcile(theirs.contact, theirs.held(), push=push))


states = st.sampled_from([PENDING, DONE]) | st.integers(3, 6)
cells = st.dictionaries(st.integers(0, KEYS_MAX - 1), states, max_size=KEYS_MAX)


@given(cells, cells, st.booleans())
@settings(max_examples=150, deadline=None)
def test_any_two_sets_of_records_end_equal(ours: dict[int, int], theirs: dict[int, int], push: bool) -> None:
    with (
        pytest.MonkeyPatch.context() as patch,
        tempfile.TemporaryDirectory(dir="/dev/shm") as directory,
        two_sides(Path(directory)) as sides,
    ):
        patch.setattr(anti_entropy, "BATCH_MAX", SMALL_BATCH)
        sides[0].fill(ours)
        sides[1].fill(theirs)
        before = sides[1].records()
        expected = joined(sides[0].records(), before)
        reconcile(sides, push=push)
        assert expected == sides[0].records()
        assert (expected if push else before) == sides[1].records()
        assert sides[0].held().digest == sides[1].held().digest or not push
        for question in sides[1].asked:
            if isinstance(question, Replicate):
                batch = question.batch
                assert 0 < len(batch.done) + len(batch.pending) + len(batch.visits) <= SMALL_BATCH
            if isinstance(question, Reconcile):
                assert len(question.done) + len(question.pending) + len(question.later) <= SMALL_BATCH


@given(cells, cells, st.integers(0, 12))
@settings(max_examples=100, deadline=None)
def test_an_interrupted_reconciliation_loses_nothing_and_the_next_ends_it(
    ours: dict[int, int], theirs: dict[int, int], answers: int
) -> None:
    """Any of the requests may stay without an answer. Records merged before are kept."""
    with (
        pytest.MonkeyPatch.context() as patch,
        tempfile.TemporaryDirectory(dir="/dev/shm") as directory,
        two_sides(Path(directory)) as sides,
    ):
        patch.setattr(anti_entropy, "BATCH_MAX", SMALL_BATCH)
        sides[0].fill(ours)
        sides[1].fill(theirs)
        before = [side.records() for side in sides[:2]]
        expected = joined(*before)
        sides[1].answers_left = answers
        try:
            reconcile(sides)
        except RemoteError:
            pass
        for side, had in zip(sides[:2], before, strict=True):
            assert joined(side.records(), had) == side.records()
            assert joined(side.records(), expected) == expected
        sides[1].answers_left = 1000
        reconcile(sides)
        assert [expected, expected] == [side.records() for side in sides[:2]]


def test_one_difference_in_5000_costs_a_few_messages_and_moves_one_record(sides: Sides) -> None:
    ours, theirs, _ = sides
    ours.fill(dict.fromkeys(range(5000), PENDING))
    theirs.fill({number: DONE if number == 1234 else PENDING for number in range(5_000)})
    reconcile(sides)
    assert ours.records() == theirs.records()
    assert DONE == ours.store.state(key(1234))
    assert [CompareDigests, Reconcile] == [type(question) for question in theirs.asked]
    assert 1 == ours.anti_entropy.moved
    # All are read once on either side, and then one window.
    assert 5_000 + window_keys(5_000) == ours.anti_entropy.examined
    # Of each window one row more than ours has.
    assert theirs.anti_entropy.examined <= 5_000 + COMPARED_MAX + window_keys(5_000) + 1


def test_a_few_differences_all_over_a_large_cell_let_few_keys_be_read_twice(sides: Sides) -> None:
    """A crash leaves such differences in each cell. Windows of a whole batch would nearly all be read again."""
    ours, theirs, _ = sides
    count, differing = 8_000, range(0, 8_000, 400)
    ours.fill(dict.fromkeys(range(count), PENDING))
    theirs.fill({number: DONE if number in differing else PENDING for number in range(count)})
    reconcile(sides)
    assert ours.records() == theirs.records()
    assert len(differing) == ours.anti_entropy.moved
    again = len(differing) * window_keys(count)
    assert ours.anti_entropy.examined <= count + again
    assert theirs.anti_entropy.examined <= count + COMPARED_MAX + again
    assert [CompareDigests, Reconcile] == list(dict.fromkeys(type(question) for question in theirs.asked))


def test_a_comparison_waits_for_the_disk_no_more_often_than_for_each_batch_that_it_merged(
    sides: Sides, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wait for each window would be a wait for each commit of a peer that crawls."""
    ours, theirs, _ = sides
    ours.fill(dict.fromkeys(range(8_000), PENDING))
    theirs.fill({number: PENDING if number % 400 else DONE for number in range(8_000)})
    waits: list[int] = []
    durable = ours.store.journal.durable

    def counted() -> asyncio.Future[None]:
        waits.append(1)
        return durable()

    monkeypatch.setattr(ours.store.journal, "durable", counted)
    reconcile(sides)
    assert not waits, "all that was merged is less than a batch"
    theirs.fill(dict.fromkeys(range(8_000, 8_000 + 3 * BATCH_MAX), PENDING))
    waits.clear()
    reconcile(sides)
    assert 1 <= len(waits) <= 3
    assert ours.records() == theirs.records()


def test_what_the_other_side_lacks_is_sent_in_few_messages(sides: Sides) -> None:
    ours, theirs, _ = sides
    ours.fill({number: PENDING if number % 400 else DONE for number in range(8_000)})
    theirs.fill(dict.fromkeys(range(8_000), PENDING))
    reconcile(sides)
    assert ours.records() == theirs.records()
    assert 1 == [type(question) for question in theirs.asked].count(Replicate)


@pytest.mark.parametrize(
    ("keys", "expected"),
    [(1_001, 32), (2_048, 32), (2_049, 33), (32_000, BATCH_MAX), (10_000_000, BATCH_MAX)],
)
def test_the_windows_of_a_cell_are_as_small_as_one_message_takes(keys: int, expected: int) -> None:
    assert expected == window_keys(keys)


def test_neighbors_that_differ_travel_together_as_long_as_a_message_takes_them() -> None:
    ends = [None, *(key(number) for number in range(5)), None]
    parts = [KeyRange(after, last, 200) for after, last in pairwise(ends)]
    assert [KeyRange(None, ends[2], 400), KeyRange(ends[2], ends[4], 400), KeyRange(ends[4], None, 400)] == (
        joined_ranges(parts)
    )
    assert [parts[0], parts[2]] == joined_ranges([parts[0], parts[2]])


@pytest.mark.parametrize("moving", ["to us", "to them"])
def test_a_record_that_one_side_lacks_is_all_that_moves(sides: Sides, moving: str) -> None:
    ours, theirs, _ = sides
    ours.fill({number: PENDING for number in range(3_000) if number != 77 or moving == "to them"})
    theirs.fill({number: PENDING for number in range(3_000) if number != 77 or moving == "to us"})
    reconcile(sides)
    assert ours.records() == theirs.records()
    assert 1 == ours.anti_entropy.moved
    asked = [type(question) for question in theirs.asked]
    assert CompareDigests == asked[0]
    # The window has one more key on one side, which may not fit the same message.
    assert asked.count(Reconcile) <= 2
    assert (moving == "to them") == asked.count(Replicate)


@pytest.mark.parametrize("count", [1, BATCH_MAX, BATCH_MAX + 1, 2_300])
def test_to_a_side_that_has_nothing_just_what_moves_is_looked_at(sides: Sides, count: int) -> None:
    ours, theirs, _ = sides
    theirs.fill({number: PENDING if number % 3 else DONE for number in range(count)})
    reconcile(sides)
    assert ours.records() == theirs.records()
    assert count == ours.anti_entropy.moved == ours.anti_entropy.examined + theirs.anti_entropy.examined
    assert -(-count // BATCH_MAX) + 1 >= len(theirs.asked)
    assert {Reconcile} == {type(question) for question in theirs.asked}


@pytest.mark.parametrize("count", [1, BATCH_MAX, BATCH_MAX + 1, 2_300])
def test_from_a_side_that_alone_has_something_just_what_moves_is_looked_at(sides: Sides, count: int) -> None:
    ours, theirs, _ = sides
    ours.fill({number: PENDING if number % 3 else DONE for number in range(count)})
    reconcile(sides)
    assert ours.records() == theirs.records()
    assert count == ours.anti_entropy.moved == ours.anti_entropy.examined
    assert -(-count // BATCH_MAX) == len(theirs.asked)


def test_an_old_disk_fetches_what_it_missed_in_bounded_messages(sides: Sides) -> None:
    """We have little, they much: each of our windows holds many of their records."""
    ours, theirs, _ = sides
    ours.fill(dict.fromkeys(range(0, 6000, 4), PENDING))
    theirs.fill(dict.fromkeys(range(6000), DONE))
    reconcile(sides)
    assert ours.records() == theirs.records()
    assert 6_000 == ours.anti_entropy.moved
    exchanges = [question for question in theirs.asked if isinstance(question, Reconcile)]
    assert all(len(question.done) + len(question.pending) <= BATCH_MAX for question in exchanges)
    assert len(theirs.asked) <= 2 * 6_000 // BATCH_MAX


def test_nothing_is_pushed_to_who_is_to_drop_it_anyway(sides: Sides) -> None:
    ours, theirs, _ = sides
    ours.fill(dict.fromkeys(range(10), PENDING))
    theirs.fill(dict.fromkeys(range(5, 15), PENDING))
    reconcile(sides, push=False)
    assert 15 == len(ours.records())
    assert 10 == len(theirs.records())
    assert {Reconcile} == {type(question) for question in theirs.asked}


def test_a_window_that_grows_meanwhile_is_exchanged_whole(sides: Sides, monkeypatch: pytest.MonkeyPatch) -> None:
    """Records are accepted while others travel.

    The cell is equal but for the records that came after their window had passed.
    """
    monkeypatch.setattr(anti_entropy, "BATCH_MAX", SMALL_BATCH)
    ours, theirs, _ = sides
    ours.fill(dict.fromkeys(range(0, 40, 2), PENDING))
    theirs.fill(dict.fromkeys(range(0, 40, 2), DONE))
    ask, fresh = ours.ask, iter(range(1, 40, 2))

    async def grow_and_ask(to: Contact, message: Any, expected: Any, deadline_s: float) -> Any:
        ours.fill({number: PENDING for _, number in zip(range(2), fresh, strict=False)})
        return await ask(to, message, expected, deadline_s)

    monkeypatch.setattr(ours, "ask", grow_and_ask)
    reconcile(sides)
    assert all(DONE == ours.store.state(key(number)) for number in range(0, 40, 2))
    reconcile(sides)
    assert ours.records() == theirs.records()


def test_what_was_reconciled_is_journaled_with_the_next_commit(tmp_path: Path) -> None:
    """Whoever tells another peer to drop its copy waits for that commit."""

    async def commit(store: Store) -> None:
        await store.journal.durable()

    with two_sides(tmp_path) as both:
        both.theirs.fill(dict.fromkeys(range(700), PENDING))
        reconcile(both)
        both.loop.run_until_complete(commit(both.ours.store))
    again = Store(tmp_path / "ours", 0.0, lambda fds: None)
    again.begin(BITS)
    assert 700 == again.cells[CELL].keys
    again.close()


# --- what a peer may be asked, whoever asks -----------------------------------------------------------------------


def test_no_record_of_another_cell_is_taken_from_an_answer(sides: Sides) -> None:
    """A peer asked about one cell has no say in other cells, which may be open here."""
    ours, theirs, _ = sides
    foreign = Key(bytes([(CELL ^ 1) << 4]) + bytes(19))
    answer = theirs.anti_entropy.answer_reconcile
    theirs.fill({1: PENDING})

    async def exchange(question: Reconcile) -> Any:
        exchanged = await answer(question)
        return type(exchanged)(Batch([*exchanged.batch.done, foreign], exchanged.batch.pending, [], []), [], None)

    theirs.anti_entropy.answer_reconcile = exchange  # type: ignore[method-assign]
    try:
        reconcile(sides)
    except RemoteError:
        pass
    assert ours.store.state(foreign) is None


def test_a_peer_that_lacks_keys_is_sent_only_keys_it_was_told_of(sides: Sides) -> None:
    """Otherwise a peer that shares one cell could get all records of the other cells."""
    ours, theirs, _ = sides
    foreign = Key(bytes([(CELL ^ 1) << 4]) + bytes(19))
    ours.fill({1: DONE, 2: DONE})
    theirs.fill({2: DONE})
    ours.store.learn_done(foreign)
    answer = theirs.anti_entropy.answer_reconcile

    async def exchange(question: Reconcile) -> Any:
        exchanged = await answer(question)
        return Reconciled(exchanged.batch, [foreign, *exchanged.wanted], exchanged.upto)

    theirs.anti_entropy.answer_reconcile = exchange  # type: ignore[method-assign]
    reconcile(sides)
    assert [[bytes(key(1))]] == [asked.batch.done for asked in theirs.asked if isinstance(asked, Replicate)]


def test_what_was_done_here_all_along_is_pushed_in_batches_too(sides: Sides, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(anti_entropy, "BATCH_MAX", SMALL_BATCH)
    ours, theirs, _ = sides
    ours.fill(dict.fromkeys(range(SMALL_BATCH), DONE))
    theirs.fill({SMALL_BATCH: DONE})
    ours.anti_entropy._refused = lambda batch, cell: [key(number) for number in range(SMALL_BATCH)]
    reconcile(sides)
    assert {SMALL_BATCH} == {len(asked.batch.done) for asked in theirs.asked if isinstance(asked, Replicate)}


def test_a_window_that_was_not_asked_about_does_not_differ(sides: Sides, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(anti_entropy, "BATCH_MAX", SMALL_BATCH)
    ours, theirs, _ = sides
    for side in (ours, theirs):
        side.fill(dict.fromkeys(range(KEYS_MAX), DONE))
    theirs.fill({KEYS_MAX: DONE})
    answer = theirs.anti_entropy.answer_compare

    async def compare(question: CompareDigests) -> Any:
        compared = await answer(question)
        return DigestsCompared([*compared.differing, len(question.windows), COMPARED_MAX - 1])

    theirs.anti_entropy.answer_compare = compare  # type: ignore[method-assign]
    reconcile(sides)
    assert ours.records() == theirs.records()


def test_an_answer_that_makes_no_progress_ends_the_exchange(sides: Sides) -> None:
    ours, theirs, _ = sides
    ours.fill(dict.fromkeys(range(10), PENDING))
    theirs.fill({1: DONE})

    async def exchange(question: Reconcile) -> Any:
        return Reconciled(Batch([], [], [], []), [], bytes(20))

    theirs.anti_entropy.answer_reconcile = exchange  # type: ignore[method-assign]
    try:
        reconcile(sides)
    except RemoteError:
        pass
    assert 2 >= len(theirs.asked)


@pytest.mark.parametrize(
    "lasts",
    [
        pytest.param([None] * COMPARED_MAX, id="every window the whole cell"),
        pytest.param([b"\xff" * 20, b"\0" * 20] * (COMPARED_MAX // 2), id="to and fro"),
    ],
)
def test_one_comparison_reads_no_more_than_its_windows_may_hold(sides: Sides, lasts: list[bytes | None]) -> None:
    """One message of a peer causes a bounded number of reads, because the event loop stands still meanwhile."""
    theirs = sides.theirs
    theirs.fill(dict.fromkeys(range(1000), PENDING))
    question = CompareDigests(CELL, None, [Window(last, 2**40, bytes(16)) for last in lasts])
    most = 0

    async def compare() -> None:
        nonlocal most
        comparing = asyncio.ensure_future(theirs.anti_entropy.answer_compare(question))
        while not comparing.done():
            before = theirs.anti_entropy.examined
            await asyncio.sleep(0)
            most = max(most, theirs.anti_entropy.examined - before)
        await comparing

    sides.loop.run_until_complete(compare())
    assert 0 < most <= BATCH_MAX + 1
    assert theirs.anti_entropy.examined <= COMPARED_MAX * (BATCH_MAX + 1)


def test_comparing_with_a_much_larger_cell_does_not_read_all_of_it(sides: Sides) -> None:
    """A few windows of an old disk against millions of records: one answer must stay short of a stall."""
    ours, theirs, loop = sides
    ours.fill(dict.fromkeys(range(0, 60000, 40), PENDING))
    theirs.fill(dict.fromkeys(range(60000), PENDING))
    loop.run_until_complete(ours.anti_entropy._differing(theirs.contact, theirs.held()))
    assert [CompareDigests] == [type(question) for question in theirs.asked]
    assert theirs.anti_entropy.examined <= 1_500 + COMPARED_MAX


@pytest.mark.parametrize("cell", [1 << BITS, (1 << 24) - 1])
def test_a_cell_that_does_not_exist_is_the_askers_fault(sides: Sides, cell: int) -> None:
    """The wire allows cells of up to 24 bits, for any job."""
    theirs = sides.theirs
    window = Window(None, 0, bytes(16))
    with pytest.raises(KadcrawlError):
        sides.loop.run_until_complete(theirs.anti_entropy.answer_compare(CompareDigests(cell, None, [window])))
    with pytest.raises(KadcrawlError):
        sides.loop.run_until_complete(theirs.anti_entropy.answer_reconcile(Reconcile(cell, None, None, [], [])))
