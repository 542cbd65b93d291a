"""Test the journal: acknowledged records survive a crash, and the log files agree with the journal."""

import _sqlite3
import asyncio
import ctypes
import errno
import gc
import os
import resource
import signal
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import pytest

from kadcrawl.errors import DiskFullError, StartError, StorageError
from kadcrawl.keys import Cell, Key, site_hash
from kadcrawl.store import journal, wal
from kadcrawl.store.cell_digest import digest_records
from kadcrawl.store.journal import SMALL_PAGE_BYTES, Journal
from kadcrawl.store.store import DONE, PENDING, Store
from sim.loop import world
from tests.support.stores import accept, key, line, opened, written


def test_the_keys_of_a_site_are_counted_through_every_change(store: Store) -> None:
    one, other = site_hash("a.example"), site_hash("b.example")

    def key_of(site: bytes, number: int) -> Key:
        return Key(site + number.to_bytes(8, "big"))

    def counts(store: Store) -> tuple[int, int]:
        return store.site_keys.count(one), store.site_keys.count(other)

    store.accept(key_of(one, 0), "a.example", "http://a.example/0", 0, 0)
    assert (1, 0) == counts(store)
    for number in (0, 2**64 - 1):
        store.accept(key_of(one, number), "a.example", f"http://a.example/{number}", 0, 0)
        store.learn_done(key_of(one, number))
    store.learn_done(key_of(other, 1))
    assert (2, 1) == counts(store)
    store.forget(key_of(one, 0))
    assert (1, 1) == counts(store)
    store.forget_cell(store.cell_of(key_of(other, 0)), 10)
    assert (1, 0) == counts(store)


async def test_the_trail_of_a_redirect_is_journaled(tmp_path: Path) -> None:
    with closing(opened(tmp_path)) as first:
        first.accept(key(1), "a.example", "http://a.example/1", 0, 1, trail=b"12345678")
        await first.journal.commit()
    with closing(opened(tmp_path)) as again:
        entry = again.entry(key(1))
        assert entry is not None
        assert (1, b"12345678") == (entry.hops, entry.trail)


def test_a_key_is_accepted_once(store: Store) -> None:
    entry = accept(store, 1)
    assert store.accept(entry.key, entry.site, entry.url, 5, 0) is None
    assert (PENDING, 1) == (store.state(entry.key), store.pending)


def test_a_finished_key_keeps_no_text(store: Store) -> None:
    entry = accept(store, 1)
    assert store.finish(entry, line(1))
    assert (DONE, 0, None) == (store.state(entry.key), store.pending, store.entry(entry.key))


def test_finishing_twice_is_told(store: Store) -> None:
    entry = accept(store, 1)
    assert store.finish(entry, line(1))
    assert not store.finish(entry, line(1))


async def test_what_was_acknowledged_survives_a_crash(tmp_path: Path) -> None:
    store = opened(tmp_path)
    committer = asyncio.create_task(store.journal.run())
    done, left = accept(store, 1), accept(store, 2)
    store.finish(done, line(1))
    store.meta.set("name", b"value")
    await store.journal.durable()
    committer.cancel()
    accept(store, 3)
    store.close()
    again = opened(tmp_path)
    assert left == again.entry(left.key)
    assert (DONE, PENDING, None) == tuple(again.state(key(n)) for n in (1, 2, 3))
    assert again.meta.get("name") == b"value"
    assert accept(again, 4).seq > left.seq
    again.close()


@pytest.mark.parametrize(("has_time", "spacing_s"), [(False, 0.1), (True, 0.1 * journal.HAS_TIME_TIMES)])
def test_commits_of_a_peer_that_has_time_are_farther_apart(has_time: bool, spacing_s: float, tmp_path: Path) -> None:
    async def scenario(store: Store) -> list[float]:
        time = asyncio.get_running_loop().time
        store.journal.take_time(lambda: has_time)
        committer = asyncio.create_task(store.journal.run())
        on_disk_at = []
        for number in range(4):
            accept(store, number)
            await store.journal.durable()
            on_disk_at.append(time())
        committer.cancel()
        return on_disk_at

    with world(0) as loop, closing(Store(tmp_path, 0.1, lambda fds: None)) as store:
        store.begin(16)
        times = loop.run_until_complete(scenario(store))
    assert [pytest.approx(spacing_s, abs=0.01)] * 3 == [later - earlier for earlier, later in pairwise(times)]


async def test_a_line_is_never_visible_before_it_is_journaled(store: Store, tmp_path: Path) -> None:
    store.finish(accept(store, 1), line(1))
    assert written(tmp_path) == []
    await store.journal.commit()
    assert written(tmp_path) == [1]


@pytest.mark.parametrize("crash", ["before the append", "in the middle of the append"])
async def test_a_journaled_line_is_written_again_after_a_crash(
    crash: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = opened(tmp_path)
    store.finish(accept(store, 1), line(1))
    await store.journal.commit()
    for number in (2, 3):
        store.finish(accept(store, number), line(number))

    def append(lines: bytes) -> None:
        if crash == "in the middle of the append":
            with (tmp_path / "pages.jsonl").open("ab") as file:
                file.write(lines[: len(lines) // 3])
        raise OSError("power cut")

    monkeypatch.setattr(store.journal._page_log, "append", append)
    with pytest.raises(StorageError, match="power cut"):
        await store.journal.commit()
    store.close()
    opened(tmp_path).close()
    assert written(tmp_path) == [1, 2, 3]


async def test_lines_are_whole_and_single_over_many_commits_and_crashes(tmp_path: Path) -> None:
    for round_ in range(5):
        store = opened(tmp_path)
        for number in range(10 * round_, 10 * round_ + 10):
            store.finish(accept(store, number), line(number))
            if number % 3 == 0:
                await store.journal.commit()
        await store.journal.commit()
        store.finish(accept(store, 1000 + round_), line(1000 + round_))
        store.close()
    assert written(tmp_path) == list(range(50))


def recorded(directory: Path) -> bytes:
    log = directory / "records.jsonl"
    return log.read_bytes() if log.exists() else b""


@pytest.mark.parametrize("crash", ["before the append", "in the middle of the append"])
async def test_records_are_journaled_with_their_page_and_rewritten_after_a_crash(
    crash: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = opened(tmp_path)
    store.finish(accept(store, 1), line(1))
    await store.journal.commit()
    assert not (tmp_path / "records.jsonl").exists()
    for number in (2, 3):
        store.finish(accept(store, number), line(number), b"%d:0\n%d:1\n" % (number, number))
        assert recorded(tmp_path) == (b"" if number == 2 else b"2:0\n2:1\n")
        if number == 2:
            await store.journal.commit()

    def append(lines: bytes) -> None:
        if crash == "in the middle of the append":
            with (tmp_path / "records.jsonl").open("ab") as file:
                file.write(lines[: len(lines) // 3])
        raise OSError("power cut")

    monkeypatch.setattr(store.journal._record_log, "append", append)
    with pytest.raises(StorageError, match="power cut"):
        await store.journal.commit()
    store.close()
    again = opened(tmp_path)
    assert recorded(tmp_path) == b"2:0\n2:1\n3:0\n3:1\n"
    again.finish(accept(again, 4), line(4), b"4:0\n")
    for number in (5, 6, 7):
        again.meta.set("x", b"%d" % number)
        await again.journal.commit()
    assert [(0,), (8,), (16,)] == again.journal._db.execute("SELECT place FROM record_outbox").fetchall()
    again.finish(accept(again, 5), line(5), b"5:0\n")  # Forgotten, as in a crash.
    again.close()
    opened(tmp_path).close()
    assert recorded(tmp_path) == b"2:0\n2:1\n3:0\n3:1\n4:0\n"
    assert written(tmp_path) == [1, 2, 3, 4]


async def test_a_directory_from_before_there_were_records_goes_on(tmp_path: Path) -> None:
    store = opened(tmp_path)
    store.finish(accept(store, 1), line(1))
    await store.journal.commit()
    store.close()
    with closing(sqlite3.connect(tmp_path / "peer.sqlite")) as db, db:
        db.execute("DROP TABLE record_outbox")
    again = opened(tmp_path)
    again.finish(accept(again, 2), line(2), b"2:0\n")
    await again.journal.commit()
    again.close()
    assert (written(tmp_path), recorded(tmp_path)) == ([1, 2], b"2:0\n")


def failing(error: OSError) -> Callable[[Iterable[int]], None]:
    def sync(fds: Iterable[int]) -> None:
        raise error

    return sync


FULL = OSError(errno.ENOSPC, "No space left on device")


async def test_an_outbox_is_trimmed_only_when_lines_have_become_safe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "KEPT_BYTES", 0)
    monkeypatch.setattr(journal, "UNSYNCED_BYTES", 0)
    store = opened(tmp_path)
    trimmed: list[str] = []
    store.journal._db.set_trace_callback(
        lambda said: trimmed.append(said) if said.startswith("DELETE FROM outbox") else None
    )
    for number in range(3):
        store.meta.set("x", b"%d" % number)
        await store.journal.commit()
    assert trimmed == []
    store.finish(accept(store, 1), line(1))
    for number in range(3, 6):
        store.meta.set("x", b"%d" % number)
        await store.journal.commit()
    assert trimmed == [f"DELETE FROM outbox WHERE place<{len(line(1))}"]
    assert store.journal.last_page_lines() == []
    store.close()


async def test_who_waits_for_a_failed_commit_is_told(tmp_path: Path) -> None:
    store = opened(tmp_path, failing(FULL))
    accept(store, 1)
    waiting = store.journal.durable()
    with pytest.raises(StorageError, match="No space left"):
        await store.journal.commit()
    with pytest.raises(StorageError, match="cannot write"):
        await waiting
    store.close()


async def test_who_waits_is_released_by_the_commit_that_has_its_writes(tmp_path: Path) -> None:
    syncs: list[int] = []
    gate = threading.Event()

    def sync(fds: Iterable[int]) -> None:
        assert gate.wait(10)
        syncs.append(1)

    store = opened(tmp_path, sync)
    assert store.journal.durable().done(), "nothing was written"
    accept(store, 1)
    commit = asyncio.create_task(store.journal.commit())
    await asyncio.sleep(0.05)
    under_way = store.journal.durable()
    accept(store, 2)
    later = store.journal.durable()
    gate.set()
    await commit
    assert (True, False) == (under_way.done(), later.done())
    await store.journal.commit()
    await later
    assert store.journal.durable().done()
    assert 2 == len(syncs)
    store.close()


async def test_who_waits_for_a_cancelled_commit_is_told_by_the_next(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    accept(store, 1)
    waiting = store.journal.durable()
    with monkeypatch.context() as patch:
        patch.setattr(asyncio.get_running_loop(), "run_in_executor", _cancelled)
        with pytest.raises(asyncio.CancelledError):
            await store.journal.commit()
    assert not waiting.done()
    await store.journal.commit()
    await waiting


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (FULL, DiskFullError),
        (OSError(errno.EDQUOT, "Disk quota exceeded"), DiskFullError),
        (OSError(errno.EIO, "Input/output error"), StorageError),
    ],
)
async def test_a_full_disk_is_told_from_a_broken_one(
    tmp_path: Path, error: OSError, expected: type[StorageError]
) -> None:
    store = opened(tmp_path, failing(error))
    accept(store, 1)
    waiting = store.journal.durable()
    for refused in (store.journal.commit, store.journal.commit, lambda: waiting):
        with pytest.raises(StorageError, match="cannot write") as caught:
            await refused()
        assert expected is caught.type
    with pytest.raises(StorageError, match="cannot write") as caught:
        accept(store, 2)
    assert expected is caught.type
    store.close()


async def test_a_database_that_may_not_grow_is_a_full_disk(store: Store) -> None:
    (pages,) = store.journal._db.execute("PRAGMA page_count").fetchone()
    store.journal._db.execute(f"PRAGMA max_page_count={pages}")
    with pytest.raises(DiskFullError, match="database or disk is full"):
        [accept(store, number) for number in range(10_000)]
    with pytest.raises(DiskFullError):
        await store.journal.commit()


async def test_once_there_is_room_again_nothing_acknowledged_is_missing(tmp_path: Path) -> None:
    room = True

    def sync(fds: Iterable[int]) -> None:
        if not room:
            raise FULL

    store = opened(tmp_path, sync)
    left, done = accept(store, 1), accept(store, 2)
    store.finish(done, line(2))
    await store.journal.commit()
    room = False
    store.finish(left, line(1))
    accept(store, 3)
    with pytest.raises(DiskFullError):
        await store.journal.commit()
    store.close()
    room = True
    again = opened(tmp_path, sync)
    # The last commit was never acknowledged, and may be there or not, but only as a whole.
    assert DONE == again.state(key(2))
    assert (again.state(key(1)), again.state(key(3))) in ((DONE, PENDING), (PENDING, None))
    assert {0: digest_records(again.scan.records(Cell(0), b"", 10))} == again.cells
    again.finish(accept(again, 4), line(4))
    await again.journal.commit()
    again.close()
    assert written(tmp_path) in ([2, 1, 4], [2, 4])


@pytest.fixture
def full_disk(store: Store) -> Iterator[None]:
    """Simulate a disk without room beyond the present size of the WAL."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (Path(f"{store.journal.path}-wal").stat().st_size, limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    signal.signal(signal.SIGXFSZ, handler)


async def test_after_a_failed_commit_nothing_is_written_and_everybody_is_told(
    store: Store, full_disk: None, tmp_path: Path
) -> None:
    entry = accept(store, 1)
    store.finish(entry, line(1))
    for _ in range(2):
        with pytest.raises(StorageError, match="make room and start again"):
            await store.journal.commit()
    for write in (
        lambda: accept(store, 2),
        lambda: store.shorten(entry.key, 0),
        lambda: store.postpone(entry),
        lambda: store.finish(entry, line(1)),
        lambda: store.learn_done(entry.key),
        lambda: store.merge_tries(entry.key, 1, 0.0),
        lambda: store.forget_cell(Cell(0), 1),
        lambda: store.sites.set_clock("a.example", 0.0, 0.0),
        lambda: store.sites.set_robots("http://a.example", b"", 0.0),
        lambda: store.meta.set("name", b"value"),
        store.journal.durable,
    ):
        with pytest.raises(StorageError, match="make room and start again"):
            write()
    assert written(tmp_path) == []


async def test_what_a_failed_commit_held_is_gone_as_a_whole(tmp_path: Path) -> None:
    store = opened(tmp_path)
    accept(store, 1)
    await store.journal.commit()
    store.finish(accept(store, 2), line(2))
    store.meta.set("totals", b"2")

    def full() -> list[int]:
        raise OSError(28, "No space left on device")

    store.journal.before_commit(full)
    with pytest.raises(StorageError):
        await store.journal.commit()
    assert (PENDING, None) == (store.state(key(1)), store.state(key(2)))
    store.close()
    again = opened(tmp_path)
    assert (PENDING, None, None) == (again.state(key(1)), again.state(key(2)), again.meta.get("totals"))
    assert written(tmp_path) == []
    again.close()


async def test_a_write_that_fails_is_a_storage_error_too(store: Store) -> None:
    store.journal._db.execute("PRAGMA query_only=1")
    with pytest.raises(StorageError, match="cannot write"):
        accept(store, 1)
    store.journal._db.execute("PRAGMA query_only=0")
    with pytest.raises(StorageError, match="cannot write"):
        await store.journal.commit()


async def test_lines_of_a_commit_that_was_cancelled_keep_their_places(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = opened(tmp_path)
    store.finish(accept(store, 100), line(100))
    with monkeypatch.context() as patch:
        patch.setattr(asyncio.get_running_loop(), "run_in_executor", _cancelled)
        with pytest.raises(asyncio.CancelledError):
            await store.journal.commit()
    for number in (1, 2):
        store.finish(accept(store, number), line(number))
        await store.journal.commit()
    assert written(tmp_path) == [100, 1, 2]
    store.close()
    opened(tmp_path).close()
    assert written(tmp_path) == [100, 1, 2]


async def _cancelled(*_: object) -> None:
    raise asyncio.CancelledError


async def test_the_wal_starts_anew_once_it_is_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wal, "CHECKPOINT_BYTES", 100_000)
    store = opened(tmp_path)
    largest = 0
    for number in range(3000):
        accept(store, number)
        if number % 50 == 0:
            await store.journal.commit()
            largest = max(largest, (tmp_path / "peer.sqlite-wal").stat().st_size)
    assert 100_000 < largest < 1_000_000
    await store.journal.commit()
    store.close()
    again = opened(tmp_path)
    assert again.pending == 3000
    again.close()


def test_a_key_done_elsewhere_leaves_the_frontier_and_stays_known(store: Store) -> None:
    entry = accept(store, 1)
    store.learn_done(entry.key)
    store.learn_done(key(2))
    assert store.pending == 0
    assert [(key(1), DONE), (key(2), DONE)] == store.scan.records(Cell(0), b"", 10)


def test_the_shorter_path_counts(store: Store) -> None:
    entry = accept(store, 1, depth=5)
    store.shorten(entry.key, 7)
    assert store.latest(entry).depth == 5
    store.shorten(entry.key, 2)
    assert store.latest(entry).depth == 2


def test_a_file_of_another_version_is_refused(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "peer.sqlite")) as db, db:
        db.execute("PRAGMA user_version = 99")
    with pytest.raises(StartError, match="another version"):
        Store(tmp_path, 0.0)


def test_a_file_that_is_no_journal_is_refused(tmp_path: Path) -> None:
    (tmp_path / "peer.sqlite").write_bytes(b"not a database at all, and long enough to be looked at" * 10)
    with pytest.raises(
        StartError, match=r"cannot open the journal .*: file is not a database; move this directory away"
    ):
        Store(tmp_path, 0.0)


def test_a_start_on_a_full_disk_says_to_make_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(journal: Journal) -> None:
        with closing(sqlite3.connect(":memory:")) as db:
            db.execute("PRAGMA max_page_count = 1")
            db.execute("CREATE TABLE wide (row)")

    monkeypatch.setattr(Journal, "_open", full)
    with pytest.raises(StartError, match=r"cannot open the journal .* is full; make room and start again"):
        Store(tmp_path, 0.0)


async def test_damage_found_by_a_write_is_not_called_a_lack_of_room(tmp_path: Path) -> None:
    store = opened(tmp_path)
    for number in range(2000):
        accept(store, number)
    await store.journal.commit()
    store.close()
    store = opened(tmp_path)
    with (tmp_path / "peer.sqlite").open("r+b") as file:
        file.seek(16 * 4096)
        file.write(bytes(file.seek(0, 2) - file.seek(16 * 4096)))
    with pytest.raises(StorageError, match=r"is damaged: .*; move this directory away"):
        _ = [store.finish_elsewhere(key(number), None) for number in range(4000)]
    store.close()


async def damaged(directory: Path, *statements: str) -> Store:
    """Open the store of a directory after these statements damaged its file, or raise the error of the opening."""
    store = opened(directory)
    for number in range(3):
        accept(store, number)
    store.meta.set("clock", b"1.5")
    await store.journal.commit()
    store.close()
    with closing(sqlite3.connect(directory / "peer.sqlite")) as db, db:
        for statement in statements:
            db.execute(statement)
    return opened(directory)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE cell SET digest=NULL",
        "UPDATE cell SET digest=x'00'",
        "UPDATE cell SET keys=-1",
        "UPDATE cell SET pending=9",
        "UPDATE cell SET cell=99999",
        "INSERT INTO outbox VALUES (1, 'text')",
        "INSERT INTO outbox VALUES (-5, x'00')",
        "DROP TABLE frontier",
    ],
)
async def test_an_impossible_journal_is_not_opened_and_leaves_no_file_open(tmp_path: Path, statement: str) -> None:
    relaxed = ["PRAGMA writable_schema=1", "UPDATE sqlite_schema SET sql=replace(sql, ' NOT NULL', '')"]
    before = open_files()
    with pytest.raises((StartError, StorageError), match=r"damaged|cannot open"):
        await damaged(tmp_path, *relaxed, "PRAGMA writable_schema=RESET", statement)
    assert open_files() <= before


def open_files() -> int:
    return len(os.listdir("/dev/fd"))


@pytest.mark.parametrize(
    ("statement", "read"),
    [
        ("UPDATE history SET state='x'", lambda store: store.state(key(1))),
        ("UPDATE history SET state='x'", lambda store: store.scan.records(Cell(0), b"", 9)),
        ("UPDATE history SET state='x'", lambda store: store.scan.digest_between(Cell(0), b"", None)),
        ("UPDATE frontier SET url=x'00'", lambda store: store.entry(key(1))),
        ("UPDATE frontier SET url=CAST(x'ff' AS TEXT)", lambda store: store.entry(key(1))),
        (
            "UPDATE meta SET value=x'39323233333732303336383534373735383037' WHERE name='frontier_seq'",
            lambda store: accept(store, 9),
        ),
        ("UPDATE meta SET value='text' WHERE name='clock'", lambda store: store.meta.get("clock")),
        ("UPDATE meta SET value=x'ff' WHERE name='clock'", lambda store: store.saved_time.restore(1.0)),
        ("DROP TABLE robots", lambda store: store.sites.robots("http://a.example")),
    ],
)
async def test_what_is_damaged_shows_as_it_is_read(
    tmp_path: Path, statement: str, read: Callable[[Store], object]
) -> None:
    store = await damaged(tmp_path, statement)
    with pytest.raises(StorageError):
        read(store)
    with pytest.raises(StorageError):
        accept(store, 10)
    with pytest.raises(StorageError):
        await store.journal.commit()
    store.close()


JOURNAL_BYTES = 100_000
"""More memory than an open journal takes of SQLite, and less than with the pages that SQLite allocates at once."""


def test_an_open_journal_takes_memory_for_the_pages_that_it_uses(tmp_path: Path) -> None:
    try:
        memory_used = ctypes.CDLL(_sqlite3.__file__).sqlite3_memory_used
    except (AttributeError, OSError):
        pytest.skip("SQLite is part of Python here")
    memory_used.restype = ctypes.c_int64
    opened(tmp_path).close()  # Not measured, as SQLite allocates some memory only once.
    for _ in ("of an earlier run", "the same again"):
        before = memory_used()
        with closing(opened(tmp_path)):
            assert 0 < memory_used() - before < JOURNAL_BYTES


def test_a_journal_keeps_the_size_of_its_pages(tmp_path: Path) -> None:
    sizes = []
    for page_bytes in (SMALL_PAGE_BYTES, None):
        with closing(Store(tmp_path, 0.0, page_bytes=page_bytes)) as store:
            sizes.append(store.journal.row((int,), "PRAGMA page_size")[0])
    assert sizes == [SMALL_PAGE_BYTES, SMALL_PAGE_BYTES]


def kept_statements(store: Store) -> int:
    """Return the number of statements that the connection of a journal keeps."""
    caches = [part for part in gc.get_referents(store.journal._db) if hasattr(part, "cache_info")]
    assert len(caches) == 1
    return int(caches[0].cache_info().currsize)


async def test_a_journal_forgets_the_statements_of_its_start(tmp_path: Path) -> None:
    store = opened(tmp_path)
    left = accept(store, 1)
    before = kept_statements(store)
    store.journal.forget_start()
    assert kept_statements(store) == 0 < before
    store.finish(left, line(1))
    await store.journal.commit()
    assert written(tmp_path) == [1]
    store.close()


async def test_writes_leave_no_cursors_behind(tmp_path: Path) -> None:
    store = opened(tmp_path)

    def kept() -> int:
        return sum(len(part) for part in gc.get_referents(store.journal._db) if isinstance(part, list))

    before = kept()
    for number in range(50):
        store.meta.set("x", b"%d" % number)
        await store.journal.commit()
    assert kept() <= before + 1
    store.close()
