"""Test that a failing sink is tried again at growing intervals and loses nothing.

The end of the crawl waits a bounded time for the sink.
"""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from kadcrawl.sinks import delivery
from kadcrawl.sinks.batch import BatchSize, DocumentBatch
from kadcrawl.sinks.delivery import Delivery
from kadcrawl.sinks.log_work import LogWork
from kadcrawl.sinks.sink_names import parse
from kadcrawl.store.log_parts import LogPart, PartIndex, encoded_index, index_path, part_path, source_of
from tests.support.sinks.delivery import delivering
from tests.support.sinks.peer_directory import Directory
from tests.support.sinks.readers import in_json_lines


class Memory:
    """A sink in memory that is down whenever the test says so."""

    def __init__(self, size: BatchSize) -> None:
        self.size = size
        self.marks: dict[tuple[str, str], int] = {}
        self.keys: list[str] = []
        self.is_down = False
        self.tries = 0

    async def open(self) -> None:
        self.tries += 1
        if self.is_down:
            raise ConnectionError("mongodb://me:secret@h/db is down")

    async def offset(self, table: str, source: str) -> int:
        return self.marks.get((table, source), 0)

    async def put(self, batch: DocumentBatch) -> Sequence[str]:
        await self.open()
        self.keys += batch.documents()[0]
        self.marks[batch.table, batch.source] = batch.end
        return ()

    async def close(self) -> None:
        pass


def log_work(directory: Directory, sink: Memory, now: float = 0.0) -> LogWork:
    return LogWork(directory.path, parse("mongodb://me:secret@h/db"), sink, lambda: now)


async def test_a_sink_that_is_down_is_tried_again_and_gets_everything(
    directory: Directory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery, "DELIVERY_RETRY_S", 0.001)
    sink = Memory(BatchSize(2, 1000, 0.0))
    sink.is_down = True
    directory.write(5)
    kept = Delivery(log_work(directory, sink))
    running = asyncio.create_task(kept.run())
    async with asyncio.timeout(60):
        while sink.tries < 4:
            await asyncio.sleep(0.001)
        assert kept.why == "ConnectionError: *** is down"
        assert kept.shortfall == "the sink mongodb://***@h/db lacks 5 pages: ConnectionError: *** is down"
        sink.is_down = False
        directory.write(1)
        await kept.finish()
    assert (None, None, 0) == (kept.why, kept.shortfall, kept.work.lag)
    assert list(directory.expected["pages"]) == sink.keys
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_waits_after_failures_grow_to_a_bound(directory: Directory, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []

    async def note(self: Delivery, seconds: float, hurry: bool) -> None:
        waits.append(seconds)
        await asyncio.sleep(0)

    monkeypatch.setattr(Delivery, "_pause", note)
    sink = Memory(BatchSize(2, 1000, 0.0))
    sink.is_down = True
    directory.write(1)
    kept = Delivery(log_work(directory, sink))
    running = asyncio.create_task(kept.run())
    async with asyncio.timeout(60):
        while len(waits) < 9:
            await asyncio.sleep(0)
        assert [1, 2, 4, 8, 16, 32, 60, 60, 60] == waits[:9]
        sink.is_down = False
        while kept.work.lag:
            await asyncio.sleep(0)
        sink.is_down, count = True, len(waits)
        directory.write(1)
        while len(waits) < count + 3:
            await asyncio.sleep(0)
        assert delivery.DELIVERY_RETRY_S in waits[count:]  # A success ends the growth.
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


@pytest.mark.parametrize(
    ("pages", "waited", "hurry", "moved"),
    [
        (1, 0.0, False, False),
        (1, 9.9, False, False),
        (1, 10.0, False, True),
        (1, 0.0, True, True),
        (4, 0.0, False, True),
    ],
)
async def test_a_small_batch_waits_for_more(
    directory: Directory, pages: int, waited: float, hurry: bool, moved: bool
) -> None:
    now = 0.0
    sink = Memory(BatchSize(100, 400, 10.0))
    directory.write(pages)
    each = LogWork(directory.path, parse("mongodb://h/db"), sink, lambda: now)
    assert await each.step(False) is (pages == 4)
    now = waited
    if pages != 4:
        assert await each.step(hurry) is moved
    assert len(sink.keys) == (pages if moved else 0)


async def test_a_mark_the_log_does_not_reach_is_not_believed(directory: Directory) -> None:
    sink = Memory(BatchSize(100, 10_000, 0.0))
    directory.write(3)
    each = log_work(directory, sink)
    assert await each.step(True)
    ((log, mark),) = sink.marks.items()
    for wrong in (mark + 1, mark - 1):
        sink.marks[log] = wrong
        sink.keys.clear()
        await each.close()
        assert await each.step(True)
        assert list(directory.expected["pages"]) == sink.keys


def roll(directory: Directory, *, are_counted: bool) -> PartIndex:
    """Close the page log of a directory as a part of 4 lines and a part of 3, and begin a file with 2 lines."""
    path, parts, end, source = directory.path / "pages.jsonl", [], 0, ""
    for number, lines in enumerate((4, 3), 1):
        directory.write(lines)
        source = source or source_of(path)
        file, size = part_path(path, number), path.stat().st_size
        path.rename(file)
        parts.append(LogPart(file.name, end, size, lines if are_counted else None))
        end += size
    directory.write(2)
    index = PartIndex(source, tuple(parts))
    index_path(path).write_bytes(encoded_index(index))
    return index


@pytest.mark.parametrize(
    ("gone", "had", "are_counted", "parts", "lines", "done"),
    [
        ([1], 0, True, "pages-00001.jsonl", "4", "without 4 lines of parts"),
        ([1, 2], 0, True, "pages-00001.jsonl to pages-00002.jsonl", "7", "without 7 lines of parts"),
        ([1], 1, True, "pages-00001.jsonl", "unknown", "without lines of parts"),
        ([1], 0, False, "pages-00001.jsonl", "unknown", "without lines of parts"),
    ],
    ids=["a part", "two parts", "the rest of a part", "nobody counted"],
)
async def test_parts_that_a_sink_passes_over_are_named_with_what_it_lacks(
    gone: list[int],
    had: int,
    are_counted: bool,
    parts: str,
    lines: str,
    done: str,
    directory: Directory,
    caplog: pytest.LogCaptureFixture,
) -> None:
    index = roll(directory, are_counted=are_counted)
    sink = Memory(BatchSize(had or 100, 10_000, 0.0))
    each = log_work(directory, sink)
    if had:
        assert await each.step(True)
    lacks = index.parts[len(gone) - 1].end - each.moved
    for number in gone:
        part_path(directory.path / "pages.jsonl", number).unlink()
    sink.is_down = True
    with pytest.raises(ConnectionError):
        await each.step(True)
    await each.close()
    sink.is_down = False
    while await each.step(True):
        pass
    told = [record.getMessage() for record in caplog.records if "sink.part_elsewhere" in record.getMessage()]
    assert [f"parts={parts} lines={lines} bytes={lacks}"] == [f"parts={one.partition(' parts=')[2]}" for one in told]
    assert f"{done} that are not here (see the log)" in each.done
    assert index.end - lacks < each.moved


async def test_at_the_end_slow_connections_get_time_and_failures_only_a_little(directory: Directory) -> None:
    sink = Memory(BatchSize(100, 10_000, 0.0))
    may_open = asyncio.Event()

    async def slow() -> None:
        await may_open.wait()

    sink.open = slow  # type: ignore[method-assign]
    directory.write(3)
    kept = Delivery(log_work(directory, sink))
    running = asyncio.create_task(kept.run())
    finishing = asyncio.create_task(kept.finish(patience_s=0.001))
    await asyncio.sleep(0.05)
    assert not finishing.done()
    may_open.set()
    async with asyncio.timeout(60):
        await finishing
    assert (None, 3) == (kept.shortfall, len(sink.keys))
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_a_crawl_does_not_end_later_than_its_sinks_get_on(directory: Directory, tmp_path: Path) -> None:
    (tmp_path / "out").write_text("no directory")
    directory.write(3)
    async with delivering(directory.path, f"jsonl:{tmp_path}/out", f"jsonl:{tmp_path}/other") as deliveries:
        await deliveries.finish(patience_s=0.01)
    (said,) = deliveries.shortfalls
    assert said.startswith(f"the sink jsonl:{tmp_path}/out lacks 3 pages")
    assert directory.expected == in_json_lines(tmp_path / "other")[0]
