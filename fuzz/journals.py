"""Fuzzing of the disk: a peer's journal with damaged bytes.

An input states the damage (bytes flipped, removed or inserted, in the database or in its WAL, of a small journal that a
crash has left) and the recovery action that follows. Opening the journal must raise a documented error or yield a
usable store, and later use may raise documented errors. After closing, no file stays open.
"""

import asyncio
import os
import tempfile
from collections.abc import Callable, Coroutine, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from fuzz.still_loop import StillLoop
from fuzz.target import Bites, Target
from kadcrawl.crawl.output.counters import Counters
from kadcrawl.errors import StartError, StorageError
from kadcrawl.keys import Cell, Key
from kadcrawl.store.bloom.expiring_filter import Period
from kadcrawl.store.store import Store
from kadcrawl.store.visit import Visit

CELL_BITS = 16
CELLS = (Cell(0), Cell(0x0101), Cell(0xFFFF))
NOW = 1_800_000_000.0
EDITS_MAX = 8
FILES = ("peer.sqlite", "peer.sqlite-wal")
FLIP, CUT, INSERT = range(3)


def no_sync(fds: Iterable[int]) -> None:
    """Sync no file: the journal is read again at once."""


def opened(directory: Path, *, bloom: bool) -> Store:
    """Return the store in a directory, as a peer opens it. Raises StartError."""
    store = Store(directory, 0.0, no_sync)
    try:
        store.begin(CELL_BITS, Period(epoch_s=86_400.0, epochs=3) if bloom else None, lambda: NOW)
        store.saved_time.restore(NOW)
        Counters.from_bytes(store.meta.get("totals"))
    except BaseException:
        store.close()
        raise
    return store


def key(cell: int, number: int) -> Key:
    return Key(cell.to_bytes(2, "big") + number.to_bytes(18, "big"))


def url(number: int) -> str:
    return f"http://a.example/{number}"


@cache
def prepared(bloom: bool) -> dict[str, bytes]:
    """Return the files of a journal as a crash leaves them: older records in the database, the last in the WAL."""
    with tempfile.TemporaryDirectory(prefix="kadcrawl-fuzz-") as name:
        directory = Path(name)
        store = opened(directory, bloom=bloom)
        for number in range(30):
            cell = CELLS[number % 3]
            entry = store.accept(key(cell, number), "a.example", url(number), number % 4, 0)
            assert entry is not None, "the entry is new"
            if number % 2:
                visit = Visit(entry.key, "a.example", url(number), 1, NOW, 60.0, "", "", "", "", 0)
                store.finish(entry, b'{"number":%d}\n' % number, visit=None if bloom else visit)
        store.sites.set_clock("a.example", NOW, 1.5)
        store.sites.set_robots("http://a.example", b"user-agent: *\ndisallow: /x", NOW)
        store.meta.set("totals", Counters(pages=15).to_bytes())
        store.saved_time.save(NOW + 5.0)
        run_now(store.journal.commit())
        store.journal._db.execute("COMMIT")
        store.journal._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        store.journal._db.execute("BEGIN")
        for number in range(30, 36):
            store.accept(key(CELLS[number % 3], number), "b.example", url(number), 0, 0)
        run_now(store.journal.commit())
        left = {file: (directory / file).read_bytes() for file in FILES}
        store.close()
    return left


class SameThreadLoop(StillLoop):
    """A loop that runs calls for other threads at once: starting a thread costs as much as the rest of an input."""

    def run_in_executor(self, _: None, work: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:
        future = self.create_future()
        future.set_result(work(*args))
        return future


def run_now(work: Coroutine[None, None, None]) -> None:
    """Run a coroutine of the journal to its end."""
    with SameThreadLoop().running():
        try:
            work.send(None)
        except StopIteration:
            return
        raise AssertionError("a commit awaits more than the disk")


def journal(data: bytes) -> None:
    """Open a damaged journal and run one action of a peer on it."""
    bites = Bites(data)
    choice = bites.number()
    bloom, use = bool(choice & 1), USES[(choice >> 1) % len(USES)]
    files = {name: bytearray(content) for name, content in prepared(bloom).items()}
    for _ in range(EDITS_MAX):
        if not bites.left:
            break
        _damage(files, bites, bloom)
    before = _open_files()
    with tempfile.TemporaryDirectory(prefix="kadcrawl-fuzz-", dir=_memory()) as name:
        directory = Path(name)
        for file, content in files.items():
            (directory / file).write_bytes(content)
        _go_on(directory, bloom, use)
    assert _open_files() == before, "a file stays open"


def _go_on(directory: Path, bloom: bool, use: Callable[[Store], None]) -> None:
    """Open a journal, use it and close it."""
    try:
        store = opened(directory, bloom=bloom)
    except (StartError, StorageError) as error:
        assert str(error)
        return
    try:
        use(store)
    except StorageError as error:
        assert str(error)
    finally:
        store.close()


def _open_files() -> int:
    return len(os.listdir("/dev/fd"))


@cache
def _written(bloom: bool, name: str) -> list[int]:
    """Return the places of the bytes of a file that are not zero: most of a small database is empty pages."""
    return [at for at, byte in enumerate(prepared(bloom)[name]) if byte]


def _damage(files: dict[str, bytearray], bites: Bites, bloom: bool) -> None:
    """Damage one of the files in one way."""
    kind = bites.number()
    name = FILES[kind & 1]
    content = files[name]
    written = _written(bloom, name)
    at, some = written[bites.number(2) % len(written)], bites.take(bites.number() % 32)
    match (kind >> 1) % 3:
        case 0:
            content[at : at + len(some)] = some[: len(content) - at]
        case 1:
            del content[at : at + 64 * len(some)]
        case _:
            content[at:at] = some


def _memory() -> str | None:
    """Return a directory in memory, or None if the machine has none. Each input writes a journal."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def _read(store: Store) -> None:
    """Read everything, each URL in one of the ways there are."""
    for cell in _cells(store):
        for number, (one, _) in enumerate(store.scan.records(cell, b"", 20)):
            (store.state, store.entry, store.visits.get)[number % 3](one)
        store.scan.digest_between(cell, b"", None)
        for site_hash, _ in store.pending_sites(cell, b"", 5):
            store.site_keys.count(site_hash)
        store.visits.next_due(cell)
        store.visits.due_keys(cell, NOW, 3)
    for site in ("a.example", "b.example"):
        store.window(site, 10)
        store.sites.clock(site)


def _write(store: Store) -> None:
    """Go on with the crawl: URLs that are there and new ones, to their end, and pages that are due again."""
    for place, cell in enumerate(_cells(store)):
        for one in store.visits.due_keys(cell, NOW, 3):
            store.begin_round(one)
        for number in (place, 40):
            entry = store.accept(key(cell, number), "a.example", url(number), 1, 0) or store.entry(key(cell, number))
            if entry is not None:
                store.shorten(entry.key, 0)
                store.merge_tries(entry.key, 3, NOW)
                store.finish(entry, b"{}\n")
        store.learn_done(key(cell, 41))
    store.sites.learn_robots("http://a.example", b"", NOW + 1)
    run_now(store.journal.commit())


def _forget(store: Store) -> None:
    """Let a page go, if the history is exact, and a cell."""
    if store.expiring_filters is None:
        store.forget(key(CELLS[0], 0))
    store.forget_cell(CELLS[0], 100)
    run_now(store.journal.commit())


USES = (_read, _write, _forget)


def _cells(store: Store) -> list[Cell]:
    """Return those that were written, and some that only damage has made."""
    cells = dict.fromkeys([*CELLS, *list(store.cells)[:4]])
    return [cell for cell in cells if 0 <= cell < 1 << CELL_BITS]


def damages() -> Iterator[bytes]:
    """Yield no damage at all, and one of each kind in places of all kinds."""
    for choice in range(2 * len(USES)):
        yield bytes((choice,))
        for file in (0, 1):
            for kind in (FLIP, CUT, INSERT):
                for at in (0, 10, 40, 100, 500, 1000, 2000):
                    yield bytes((choice, kind << 1 | file)) + at.to_bytes(2, "big") + b"\4\0\xff\1\x80"


TARGETS = (Target("journal", journal, damages, bytes_max=256),)
