"""The journal: what was acknowledged survives a crash, and what people read agrees with it."""

import asyncio
import json
import resource
import signal
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from kadcrawl.errors import StartError, StorageError
from kadcrawl.history import store as store_module
from kadcrawl.history.entry import Entry
from kadcrawl.history.store import DONE, PENDING, Store
from kadcrawl.keys import Key


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = Store(tmp_path, 0.0)
    yield store
    store.close()


def key(number: int) -> Key:
    return Key(number.to_bytes(20, "big"))


def accept(store: Store, number: int, site: str = "a.example", depth: int = 0) -> Entry:
    entry = store.accept(key(number), site, f"http://{site}/{number}", depth, 0)
    assert entry is not None
    return entry


def line(number: int) -> bytes:
    return json.dumps({"number": number}).encode() + b"\n"


def written(directory: Path) -> list[int]:
    return [json.loads(text)["number"] for text in (directory / "pages.jsonl").read_text().splitlines()]


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


def test_windows_are_breadth_first_and_of_one_site(store: Store) -> None:
    deep, other, shallow = accept(store, 1, depth=2), accept(store, 2, site="b.example"), accept(store, 3, depth=1)
    assert [shallow, deep] == store.window("a.example", 10)
    assert [shallow] == store.window("a.example", 1)
    assert [other] == store.window("b.example", 10)


def test_sites_are_found_in_turn(store: Store) -> None:
    accept(store, 1, site="b.example")
    accept(store, 2, site="a.example")
    assert ["a.example", "b.example", None] == [store.next_site(after) for after in ("", "a.example", "b.example")]


async def test_what_was_acknowledged_survives_a_crash(tmp_path: Path) -> None:
    store = Store(tmp_path, 0.0)
    committer = asyncio.create_task(store.run())
    done, left = accept(store, 1), accept(store, 2)
    store.finish(done, line(1))
    store.set_meta("name", b"value")
    await store.durable()
    committer.cancel()
    accept(store, 3)
    store.close()
    again = Store(tmp_path, 0.0)
    assert [left] == again.window("a.example", 10)
    assert (DONE, PENDING, None) == tuple(again.state(key(n)) for n in (1, 2, 3))
    assert again.meta("name") == b"value"
    assert accept(again, 4).seq > left.seq
    again.close()


async def test_a_line_is_never_visible_before_it_is_journaled(store: Store, tmp_path: Path) -> None:
    store.finish(accept(store, 1), line(1))
    assert written(tmp_path) == []
    await store.commit()
    assert written(tmp_path) == [1]


@pytest.mark.parametrize("crash", ["before the append", "in the middle of the append"])
async def test_a_journaled_line_is_written_again_after_a_crash(
    crash: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path, 0.0)
    store.finish(accept(store, 1), line(1))
    await store.commit()
    for number in (2, 3):
        store.finish(accept(store, number), line(number))

    def append(lines: bytes) -> None:
        if crash == "in the middle of the append":
            with (tmp_path / "pages.jsonl").open("ab") as file:
                file.write(lines[: len(lines) // 3])
        raise OSError("power cut")

    monkeypatch.setattr(store._page_log, "append", append)
    with pytest.raises(StorageError, match="power cut"):
        await store.commit()
    store.close()
    Store(tmp_path, 0.0).close()
    assert written(tmp_path) == [1, 2, 3]


async def test_lines_are_whole_and_single_over_many_commits_and_crashes(tmp_path: Path) -> None:
    for round_ in range(5):
        store = Store(tmp_path, 0.0)
        for number in range(10 * round_, 10 * round_ + 10):
            store.finish(accept(store, number), line(number))
            if number % 3 == 0:
                await store.commit()
        await store.commit()
        store.finish(accept(store, 1000 + round_), line(1000 + round_))
        store.close()
    assert written(tmp_path) == list(range(50))


async def test_who_waits_for_a_failed_commit_is_told(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(fds: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fdatasync", full)
    accept(store, 1)
    waiting = store.durable()
    with pytest.raises(StorageError, match="No space left"):
        await store.commit()
    with pytest.raises(StorageError, match="cannot write"):
        await waiting


@pytest.fixture
def disk(store: Store) -> Iterator[None]:
    """A disk without room beyond what the WAL has already."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (Path(f"{store.path}-wal").stat().st_size, limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    signal.signal(signal.SIGXFSZ, handler)


async def test_after_a_failed_commit_nothing_is_written_and_everybody_is_told(
    store: Store, disk: None, tmp_path: Path
) -> None:
    entry = accept(store, 1)
    store.finish(entry, line(1))
    for _ in range(2):
        with pytest.raises(StorageError, match="make room and start again"):
            await store.commit()
    for write in (
        lambda: accept(store, 2),
        lambda: store.shorten(entry.key, 0),
        lambda: store.postpone(entry),
        lambda: store.finish(entry, line(1)),
        lambda: store.learn_done(entry.key),
        lambda: store.forget(entry),
        lambda: store.set_site("a.example", 0.0, 0.0),
        lambda: store.set_robots("http://a.example", b"", 0.0),
        lambda: store.set_meta("name", b"value"),
        store.durable,
    ):
        with pytest.raises(StorageError, match="make room and start again"):
            write()
    assert written(tmp_path) == []


async def test_what_a_failed_commit_held_is_gone_as_a_whole(tmp_path: Path) -> None:
    store = Store(tmp_path, 0.0)
    accept(store, 1)
    await store.commit()
    store.finish(accept(store, 2), line(2))
    store.set_meta("totals", b"2")

    def full() -> list[int]:
        raise OSError(28, "No space left on device")

    store.flush = full
    with pytest.raises(StorageError):
        await store.commit()
    assert (PENDING, None) == (store.state(key(1)), store.state(key(2)))
    store.close()
    again = Store(tmp_path, 0.0)
    assert (PENDING, None, None) == (again.state(key(1)), again.state(key(2)), again.meta("totals"))
    assert written(tmp_path) == []
    again.close()


async def test_a_write_that_fails_is_a_storage_error_too(store: Store) -> None:
    store._db.execute("PRAGMA query_only=1")
    with pytest.raises(StorageError, match="cannot write"):
        accept(store, 1)
    store._db.execute("PRAGMA query_only=0")
    with pytest.raises(StorageError, match="cannot write"):
        await store.commit()


async def test_lines_of_a_commit_that_was_cancelled_keep_their_places(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path, 0.0)
    store.finish(accept(store, 100), line(100))
    with monkeypatch.context() as patch:
        patch.setattr(asyncio.get_running_loop(), "run_in_executor", _cancelled)
        with pytest.raises(asyncio.CancelledError):
            await store.commit()
    for number in (1, 2):
        store.finish(accept(store, number), line(number))
        await store.commit()
    assert written(tmp_path) == [100, 1, 2]
    store.close()
    Store(tmp_path, 0.0).close()
    assert written(tmp_path) == [100, 1, 2]


async def _cancelled(*_: object) -> None:
    raise asyncio.CancelledError


async def test_the_wal_starts_anew_once_it_is_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "CHECKPOINT_BYTES", 100_000)
    store = Store(tmp_path, 0.0)
    largest = 0
    for number in range(3000):
        accept(store, number)
        if number % 50 == 0:
            await store.commit()
            largest = max(largest, (tmp_path / "peer.sqlite-wal").stat().st_size)
    assert 100_000 < largest < 1_000_000
    await store.commit()
    store.close()
    again = Store(tmp_path, 0.0)
    assert again.pending == 3000
    again.close()


def test_ranges_are_read_in_key_order_and_bounded(store: Store) -> None:
    for number in (5, 1, 3, 9):
        accept(store, number)
    store.learn_done(key(3))
    assert [(key(3), DONE), (key(5), PENDING)] == store.keys_from(key(2), key(9), 10)
    assert [(key(9), PENDING)] == store.keys_from(key(6), None, 10)
    assert [(key(1), PENDING)] == store.keys_from(b"", None, 1)


def test_a_key_done_elsewhere_leaves_the_frontier_and_stays_known(store: Store) -> None:
    entry = accept(store, 1)
    store.learn_done(entry.key)
    store.learn_done(key(2))
    assert store.pending == 0
    assert [(key(1), DONE), (key(2), DONE)] == store.keys_from(b"", None, 10)


def test_a_forgotten_entry_may_come_again_but_a_done_one_is_never_forgotten(store: Store) -> None:
    entry = accept(store, 1)
    store.forget(entry)
    assert (0, None) == (store.pending, store.state(entry.key))
    entry = accept(store, 1)
    store.learn_done(entry.key)
    store.forget(entry)
    assert store.state(entry.key) == DONE


def test_the_shorter_path_counts(store: Store) -> None:
    entry = accept(store, 1, depth=5)
    store.shorten(entry.key, 7)
    assert store.latest(entry).depth == 5
    store.shorten(entry.key, 2)
    assert store.latest(entry).depth == 2


def test_a_file_of_another_version_is_refused(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "peer.sqlite") as db:
        db.execute("PRAGMA user_version = 99")
    db.close()
    with pytest.raises(StartError, match="another version"):
        Store(tmp_path, 0.0)


def test_a_file_that_is_no_journal_is_refused(tmp_path: Path) -> None:
    (tmp_path / "peer.sqlite").write_bytes(b"not a database at all, and long enough to be looked at" * 10)
    with pytest.raises(StartError, match="cannot open the journal"):
        Store(tmp_path, 0.0)
