"""A peer indexes each WARC file that it has finished, and those that a crash left without an index."""

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kadcrawl.crawl.output import warc_indexer
from kadcrawl.crawl.output.cdxj import index_of, is_indexed
from kadcrawl.crawl.output.warc_indexer import LOOK_S, WarcIndexer
from sim.loop import world
from tests.crawl.output.test_cdxj import archive


def numbered(directory: Path, count: int) -> list[Path]:
    """Return so many finished WARC files."""
    first = archive(directory, 3)
    others = [first.with_name(f"kadcrawl-test-{number:05}.warc.gz") for number in range(2, count + 1)]
    for other in others:
        other.write_bytes(first.read_bytes())
    return [first, *others]


@pytest.mark.parametrize("steps", [1, 200])
def test_a_file_is_indexed_once_it_is_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steps: int) -> None:
    monkeypatch.setattr(warc_indexer, "STEPS_PER_TURN", steps)
    first, second = numbered(tmp_path, 2)
    outputs: Any = SimpleNamespace(warc_file=second.name, finished_warcs=lambda: [first])

    async def scenario() -> None:
        task = asyncio.create_task(WarcIndexer(outputs).run())
        await asyncio.sleep(LOOK_S - 1)
        assert [True, False] == [is_indexed(warc) for warc in (first, second)]
        outputs.warc_file, outputs.finished_warcs = "third", lambda: [first, second]
        await asyncio.sleep(LOOK_S + 10)
        assert is_indexed(second)
        task.cancel()

    with world(0) as loop:
        loop.run_until_complete(scenario())


async def test_a_full_disk_stops_no_crawl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (warc,) = numbered(tmp_path, 1)

    def full(*_: object) -> object:
        raise OSError(28, "No space left on device")

    outputs: Any = SimpleNamespace(warc_file="next", finished_warcs=lambda: [warc])
    with monkeypatch.context() as patch:
        patch.setattr(warc_indexer, "write_index", full)
        await WarcIndexer(outputs).index_all()
    assert not index_of(warc).exists()
    await WarcIndexer(outputs).index_all()
    assert is_indexed(warc)
