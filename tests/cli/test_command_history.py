"""Fingerprints in place of keys, as a person would use them."""

import json
import sqlite3
from collections import Counter
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from tests.support.sites.web import Web, html
from tests.support.swarm.command import address_of, crawl, finished, interrupted, joinable, kadcrawl, slow_web, until

PAGES = 60


def journals(data: Path) -> list[Path]:
    return sorted(data.rglob("peer.sqlite"))


def count(journal: Path, what: str) -> int:
    with closing(sqlite3.connect(f"file:{journal}?mode=ro", uri=True)) as db:
        return int(db.execute(f"SELECT {what}").fetchone()[0])


@pytest.mark.parametrize("filters", ["pybloom", "rbloom"])
async def test_a_crawl_knows_fetched_pages_without_keeping_their_keys(filters: str, tmp_path: Path) -> None:
    bloom = ["--history", "bloom", "--filters", filters]
    async with slow_web(PAGES, seconds=0.0) as site:
        arguments = crawl(tmp_path, site.url("/"), peers=2)
        run = await kadcrawl(*arguments, *bloom)
        assert run.code == 0, run
        fetched = finished(tmp_path)
        assert len(fetched) == PAGES
        assert Counter(dict.fromkeys(fetched, 1)) == fetched
        asked = site.fetched
        for journal in journals(tmp_path):
            assert (0, 0) == (count(journal, "count(*) FROM history"), count(journal, "count(*) FROM frontier"))
        assert sum(count(journal, "total(keys) FROM slice") for journal in journals(tmp_path)) >= PAGES
        again = await kadcrawl(*arguments, *bloom)
        assert again.code == 0, again
        assert (fetched, asked) == (finished(tmp_path), site.fetched)
        other = await kadcrawl(*arguments, "--history", "exact")
    assert other.code
    assert "holds a crawl with history 'bloom', not 'exact'; choose another directory with --data" in other.err


async def test_recrawls_follow_the_seeds_and_the_status_counts_fingerprints(tmp_path: Path) -> None:
    async with Web() as site:
        for path, links in (("/", ("/a", "/b")), ("/a", ("/",)), ("/b", ("/",))):
            site.pages[path] = partial(lambda links, request: html(*links), links)
        options = ["--history", "bloom", "--recrawl-after", "2s", "--grain", "1s", "--delay", "0"]
        process = await joinable(site.url("/"), *options, data=tmp_path)
        address = await address_of(process)
        await until(lambda: len(site.fetched) == 3 and min(site.fetched.values()) >= 2, process)
        status = await kadcrawl("status", "--peer", address)
        told = await kadcrawl("status", "--json", "--peer", address)
        run = await interrupted(process)
    assert run.code == 11, run
    assert "fingerprints of finished URLs are kept, with copies; by them one unknown URL in 10,000 is" in status.out
    assert "the next page is due" in status.out
    assert {"state", "next_due_s"} <= json.loads(told.out).keys()
    assert [1] == [one["fingerprints"] > 0 for one in json.loads(told.out)["peers"]]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--filters", "rbloom"], "filters would do nothing, as it is for history bloom"),
        (["--grain", "1d"], "grain would do nothing, as it is for history bloom with --recrawl-after"),
        (
            ["--history", "bloom", "--grain", "1d"],
            "grain would do nothing, as it is for history bloom with --recrawl-after",
        ),
        (["--history", "bloom", "--max-site-pages", "5"], "history bloom cannot go with --max-site-pages"),
        (
            ["--history", "bloom", "--recrawl-after", "7d", "--recrawl-adaptive"],
            "history bloom cannot go with --recrawl-adaptive",
        ),
        (
            ["--history", "bloom", "--recrawl-after", "7d", "--grain", "1m"],
            "--grain must be from a 400th of --recrawl-after to half of it",
        ),
        (
            ["--history", "bloom", "--recrawl-after", "7d", "--grain", "1d", "--calendar-grain", "day"],
            "--grain and --calendar-grain cannot go together; use one of them",
        ),
        (
            ["--history", "bloom", "--recrawl-after", "30d", "--calendar-grain", "month"],
            "--recrawl-after must be more than one month and at most 400 with --calendar-grain month",
        ),
        (["--calendar-grain", "week"], "calendar-grain would do nothing, as it is for history bloom with"),
        (["--history", "bloom", "--recrawl-after", "5s"], "--recrawl-after must be at least 7 seconds"),
    ],
)
async def test_what_does_not_go_together_is_said(options: list[str], says: str, tmp_path: Path) -> None:
    run = await kadcrawl("crawl", "http://127.0.0.1/", *options, "--data", str(tmp_path / "data"))
    assert run.code == 2, run
    assert says in " ".join(run.err.split())
