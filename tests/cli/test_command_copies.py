"""As many peers as `--copies` says hold each URL, as real processes show."""

import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.swarm.command import crawl, finished, kadcrawl, slow_web

pytestmark = pytest.mark.chaos

PAGES = 12


def holders(data: Path) -> Counter[bytes]:
    """Return the number of journals that have each URL, by key."""
    found: Counter[bytes] = Counter()
    for journal in data.rglob("peer.sqlite"):
        with closing(sqlite3.connect(f"file:{journal}?mode=ro", uri=True)) as db:
            found.update(key for (key,) in db.execute("SELECT key FROM history"))
    return found


async def test_each_url_is_in_as_many_journals_as_the_job_keeps_copies(tmp_path: Path) -> None:
    async with slow_web(PAGES, seconds=0.0) as site:
        run = await kadcrawl(*crawl(tmp_path, site.url("/"), peers=4), "--copies", "2")
        assert run.code == 0, run
        assert "copies" not in run.err
        assert PAGES == len(finished(tmp_path))
        few = holders(tmp_path)
        again = await kadcrawl("crawl", "--data", str(tmp_path), "--copies", "4", site.url("/more"))
        assert again.code == 0, again
    many = holders(tmp_path)
    assert PAGES == len(few)
    assert {2} == set(few.values())
    assert {4} == {many[key] for key in few}


async def test_a_swarm_of_fewer_peers_than_copies_says_so(tmp_path: Path) -> None:
    async with slow_web(PAGES, seconds=0.0) as site:
        run = await kadcrawl(*crawl(tmp_path, site.url("/"), peers=2), "--copies", "5")
    assert run.code == 0, run
    assert "each URL has 2 copies, one for each peer, and --copies asks for 5; use more peers" in run.err
    assert {2} == set(holders(tmp_path).values())
