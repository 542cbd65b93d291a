"""Peers that keep few files open crawl as all others do, and close what they open."""

import json
import os
import sqlite3
from contextlib import closing, nullcontext
from pathlib import Path
from unittest import mock

import pytest

from kadcrawl.system.file_names import JOURNAL, PAGE_LOG
from sim.draw import draw
from sim.few_files import few_files
from sim.trial import run
from tests.support.stores import accept, opened


@pytest.mark.worlds
@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", [1, 2])
def test_a_world_goes_on_in_the_same_way_with_few_files(seed: int) -> None:
    plan = draw(seed, 6)
    with mock.patch("kadcrawl.store.wal.CHECKPOINT_BYTES", 32 * 1024):
        usual = run(plan)
        files = len(os.listdir("/proc/self/fd"))
        with few_files():
            few = run(plan)
    assert few.trace == usual.trace
    assert few.urls == usual.urls > 0
    assert few.clean
    assert len(os.listdir("/proc/self/fd")) <= files


async def test_a_page_log_that_is_due_to_be_synced_stays_open(tmp_path: Path) -> None:
    """A commit syncs the logs that are open, so that the outbox does not grow without end."""
    outboxes = []
    for directory, context in ((tmp_path / "few", few_files()), (tmp_path / "usual", nullcontext())):
        directory.mkdir()
        with context:
            store = opened(directory)
            for number in range(150):
                store.finish(accept(store, number), line_of(number))
                await store.journal.commit()
            store.close()
        with closing(sqlite3.connect(directory / JOURNAL)) as db:
            outboxes.append(db.execute("SELECT count(*) FROM outbox").fetchone())
    assert (tmp_path / "few" / PAGE_LOG).read_bytes() == (tmp_path / "usual" / PAGE_LOG).read_bytes()
    assert outboxes[0] == outboxes[1] < (150,)


def line_of(number: int) -> bytes:
    return json.dumps({"number": number, "pad": "x" * 1_000}).encode() + b"\n"
