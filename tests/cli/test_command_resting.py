"""Test that a directory whose crawl does not run answers the status and the summary, and goes on without URLs."""

import contextlib
import json
import os
import signal
import sqlite3
from pathlib import Path
from typing import Any, cast

import pytest
from aiohttp import web

from tests.support.sites.web import Web, html, slow
from tests.support.swarm.command import (
    Run,
    children,
    crawl,
    ended,
    finished,
    joinable,
    joined,
    kadcrawl,
    slow_web,
    start,
    until,
)

PAGES = 60


def serve(site: Web, seconds: float = 0.0) -> None:
    """Serve a page that links to others, and one that is not there."""

    def page(request: web.BaseRequest) -> web.StreamResponse:
        if request.path == "/":
            return html(*(f"/{number}" for number in range(PAGES)), "/gone")
        return web.Response(status=404) if request.path == "/gone" else html()

    site.fallback = slow(page, seconds)


async def status(data: Path) -> dict[str, object]:
    run = await kadcrawl("status", "--data", str(data), "--json")
    assert run.code == 0, run
    return dict(json.loads(run.out))


@pytest.mark.parametrize("peers", [1, 3])
async def test_a_finished_crawl_answers_from_its_directory(tmp_path: Path, peers: int) -> None:
    data, written = tmp_path / "data", tmp_path / "summary.json"
    async with Web(3) as site:
        serve(site)
        seeds = [site.url("/", one) for one in range(3)]
        run = await kadcrawl(*crawl(data, *seeds, peers=peers), "--summary", str(written))
        assert run.code == 0, run
    found = await status(data)
    total = 3 * (PAGES + 2)
    assert ("not running", 0, total, total) == tuple(
        found[name] for name in ("state", "pending", "urls_found", "urls_done")
    )
    assert {"http_404": 3} == found["urls_failed"]
    assert peers == len(found["peers"])  # type: ignore[arg-type]
    told = await kadcrawl("status", "--data", str(data))
    assert told.out.startswith(f"not running: {total} pages, 0 pending, 3 failed\n")
    assert f"kadcrawl: no peer runs in {data}, whose journals have these figures\n" == told.err

    said = await kadcrawl("summary", "--data", str(data), "--json")
    expected = json.loads(written.read_text())
    del expected["seconds"]
    kept = json.loads(said.out)
    # A peer still sends heartbeats between its last report and its end.
    assert expected.pop("peer_messages") <= kept.pop("peer_messages")
    assert expected == kept, "as the crawl wrote it at its end"
    said = await kadcrawl("summary", "--data", str(data))
    assert f"{total} of {total} URLs done (3 failed: http_404 3), 0 fetched twice, 0 pending; below {data}/" in said.out
    assert "  3 http_404 (there is no such page): http://" in said.out


@pytest.mark.parametrize(("history", "names_retry"), [("exact", True), ("bloom", False)])
async def test_the_summary_names_a_retry_only_where_the_crawl_can_retry(
    tmp_path: Path, history: str, names_retry: bool
) -> None:
    async with Web() as site:
        serve(site)
        assert (await kadcrawl(*crawl(tmp_path, site.url("/")), "--history", history)).code == 0
    said = await kadcrawl("summary", "--data", str(tmp_path))
    assert names_retry == ("kadcrawl retry --data" in said.out)


async def killed(data: Path, *urls: str) -> None:
    """Crawl some pages with two peers, these among them, and kill all processes."""
    process = await start(*crawl(data, *urls, peers=2))
    await until(lambda: len(pages := finished(data)) >= 20 and pages.keys() >= {*urls}, process)
    for pid in (*children(process), process.pid):
        os.kill(pid, signal.SIGKILL)
    await ended(process)


async def test_a_killed_crawl_goes_on_without_its_urls_and_counts_its_pending_urls_once(tmp_path: Path) -> None:
    async with Web(2) as site:
        serve(site, 0.03)
        seeds = [site.url("/", one) for one in range(2)]
        await killed(tmp_path, *seeds)
        found = await status(tmp_path)
        assert "not running" == found["state"]
        assert 0 < int(str(found["pending"])) == 2 * (PAGES + 2) - int(str(found["urls_done"]))
        assert sorted(seeds) == sorted(found["seeds"])  # type: ignore[call-overload]
        assert (
            f"; kadcrawl crawl --data {tmp_path} goes on\n" in (await kadcrawl("summary", "--data", str(tmp_path))).err
        )
        run = await kadcrawl("crawl", "--data", str(tmp_path))
        expected = {
            site.url(path, one) for one in range(2) for path in ("/", "/gone", *map("/{}".format, range(PAGES)))
        }
    assert run.code == 0, run
    assert "going on with the crawl" in run.err
    assert "2 seeds" in run.err
    assert expected == finished(tmp_path).keys()


async def test_a_setting_may_change_when_a_crawl_goes_on(tmp_path: Path) -> None:
    async with Web() as site:
        serve(site)
        first = await kadcrawl(*crawl(tmp_path, site.url("/")), "--max-pages", "3")
        assert "3 of " in first.out, first
        run = await kadcrawl("crawl", "--data", str(tmp_path), "--max-pages", "10")
    assert 10 == len(finished(tmp_path)), run


@pytest.mark.parametrize("verb", ["crawl", "start"])
async def test_the_time_expected_for_a_budget_is_that_of_the_pages_left(verb: str, tmp_path: Path) -> None:
    async with Web() as site:
        serve(site)
        options = ("--delay", "0", "--allow-network", "127.0.0.0/8", "--insecure", "--data", str(tmp_path))
        ports = ("--listen", ":0", "--exit-when-done") if verb == "start" else ()
        first = await kadcrawl(verb, site.url("/"), *options, *ports, "--max-pages", "3")
        assert first.code in (0, 14), first
        run = await kadcrawl(verb, "--data", str(tmp_path), *ports, "--delay", "1", "--max-pages", "4")
    assert "for the one page left of --max-pages" in run.err, run


@pytest.mark.parametrize(("option", "spent", "more"), [("--max-bytes", "100", "1GB"), ("--max-time", "1s", "1h")])
async def test_no_time_is_expected_once_the_bytes_or_the_time_of_a_crawl_are_spent(
    option: str, spent: str, more: str, tmp_path: Path
) -> None:
    async with slow_web(300, 0.5) as site:
        command = crawl(tmp_path, site.url("/0"), peers=1)
        for expected, limit in ((1, spent), (0, spent), (1, more)):
            run = await kadcrawl(*command, option, limit)
            assert expected == run.err.count("site without a delay"), run
            assert (0 if limit == more else {"--max-bytes": 14, "--max-time": 15}[option]) == run.code, run


async def test_a_directory_without_a_crawl_needs_a_url(tmp_path: Path) -> None:
    run: Run = await kadcrawl("crawl", "--data", str(tmp_path))
    assert run.code == 2, run
    assert "Missing argument 'URL...'" in run.err
    assert "holds no crawl" in run.err


@pytest.mark.chaos
async def test_a_peer_that_left_still_shows_its_own_figures(tmp_path: Path) -> None:
    one = await joinable(data=tmp_path / "one")
    two = await joined((tmp_path / "one" / "address").read_text().strip(), tmp_path / "two")
    assert 0 == (await kadcrawl("leave", "--data", str(tmp_path / "two"))).code
    run = await kadcrawl("status", "--data", str(tmp_path / "two"))
    assert run.out.startswith("not running: 0 pages"), run
    assert f"kadcrawl start --data {tmp_path / 'two'} goes on" in run.err
    assert 0 == await two.wait()
    one.send_signal(signal.SIGSTOP)
    try:
        held = await kadcrawl("status", "--data", str(tmp_path / "one"))
    finally:
        one.send_signal(signal.SIGCONT)
    assert held.code == 2, "a process that runs is not spoken for"
    one.send_signal(signal.SIGINT)
    await ended(one)


def refusals_of(data: Path) -> int:
    """Return how many journaled rows say that a site refuses requests."""
    rows = 0
    for path in data.rglob("peer.sqlite"):
        with contextlib.closing(sqlite3.connect(path)) as journal, contextlib.suppress(sqlite3.OperationalError):
            rows += journal.execute("SELECT count(*) FROM back_off WHERE refusals>0").fetchone()[0]
    return rows


async def test_a_killed_crawl_still_knows_which_sites_refuse_and_waits_for_them(tmp_path: Path) -> None:
    async with Web() as site:
        site.pages["/"] = lambda request: html(*(f"/{number}" for number in range(5)))
        site.fallback = lambda request: html(status=429)
        process = await start(*crawl(tmp_path, site.url("/"), peers=2))
        await until(lambda: refusals_of(tmp_path) > 0, process)
        for pid in (*children(process), process.pid):
            os.kill(pid, signal.SIGKILL)
        await ended(process)
        found = await status(tmp_path)
        name, asked = site.url("/").split("/")[2], len(site.requests)
        refusing: list[dict[str, object]] = cast(Any, found["refusing"])
        assert 1 == len(refusing)
        told = refusing[0]
        assert (name, 429, 1, 1) == (told["site"], told["status"], told["refusals"], found["refusing_count"])
        assert 0 < float(str(told["wait_s"])) <= 60
        again = await start("crawl", "--data", str(tmp_path))
        running: dict[str, object] = {}
        while running.get("state") != "crawling" or not running["refusing"]:
            run = await kadcrawl("status", "--data", str(tmp_path), "--json")
            running = json.loads(run.out) if run.code == 0 else {}
        assert asked == len(site.requests), "nobody asked the site again"
        for pid in (*children(again), again.pid):
            os.kill(pid, signal.SIGKILL)
        await ended(again)


@pytest.mark.parametrize("is_busiest", [True, False])
async def test_a_damaged_journal_is_named_and_its_peer_is_moved_aside(tmp_path: Path, is_busiest: bool) -> None:
    async with Web(3) as site:
        serve(site)
        command = crawl(tmp_path, *(site.url("/", one) for one in range(3)), peers=3)
        assert (await kadcrawl(*command)).code == 0
        ranked = sorted(tmp_path.glob("peer-*"), key=lambda peer: sum(finished(peer).values()))
        damaged = ranked[-1 if is_busiest else 0]  # The sites are neighbors, so one peer may have fetched all pages.
        aside = damaged.with_name(f"{damaged.name}.broken")
        pages = sum(finished(damaged).values())
        (damaged / "peer.sqlite").write_bytes(b"no database" * 1000)
        for asked in ("status", "summary"):
            run = await kadcrawl(asked, "--data", str(tmp_path))
            assert (run.code, f"the figures lack those of {damaged}, whose journal is damaged" in run.err) == (5, True)
            assert f"{3 * (PAGES + 2) - pages} pages" in run.out, run
            figures = json.loads((await kadcrawl(asked, "--data", str(tmp_path), "--json")).out)
            assert [str(damaged)] == figures["damaged_journals"]
        run = await kadcrawl(*command)
        assert (run.code, "move this directory away and go on without it" in run.err) == (2, True), run
        damaged.rename(aside)
        run = await kadcrawl(*command, "--summary", str(tmp_path / "summary.json"))
        assert run.code == 0, run
        assert f"{3 * (PAGES + 2) - pages} pages" in run.out, run
        assert f"the figures lack those of {aside}, whose journal is damaged" in run.err, run
        assert [str(aside)] == json.loads((tmp_path / "summary.json").read_text())["damaged_journals"]
        assert set(finished(tmp_path).values()) == {1}
    for asked in ("status", "summary"):
        run = await kadcrawl(asked, "--data", str(tmp_path))
        assert (run.code, f"the figures lack those of {aside}, whose journal is damaged" in run.err) == (0, True), run
    checked = await kadcrawl("check-data", str(tmp_path), "--json")
    assert (checked.code, json.loads(checked.out)["problems"]) == (0, 0), checked


async def test_a_directory_moved_aside_with_a_whole_journal_counts_at_the_end_of_the_crawl(tmp_path: Path) -> None:
    async with Web(3) as site:
        serve(site)
        command = crawl(tmp_path, *(site.url("/", one) for one in range(3)), peers=3)
        assert (await kadcrawl(*command)).code == 0
        moved = max(tmp_path.glob("peer-*"), key=lambda peer: sum(finished(peer).values()))
        moved.rename(moved.with_name(f"{moved.name}.away"))
        run = await kadcrawl(*command)
    assert (run.code, "figures lack" in run.err) == (0, False), run
    total = 3 * (PAGES + 2)
    assert run.out.startswith(f"{total} pages"), run
    assert f"{total} of {total} URLs done" in run.out, run


@pytest.mark.parametrize(
    ("content", "why"),
    [(None, "it is not there"), (b"", "it is empty"), (b"no database" * 1000, "file is not a database")],
)
async def test_a_directory_with_nothing_but_a_damaged_journal_is_named(
    content: bytes | None, why: str, tmp_path: Path
) -> None:
    if content is not None:
        (tmp_path / "peer.sqlite").write_bytes(content)
    (tmp_path / "pages.jsonl").write_bytes(b"{}\n")
    (tmp_path / "address").write_text("127.0.0.1:1\n")
    run = await kadcrawl("status", "--data", str(tmp_path))
    assert (run.code, f"the figures lack those of {tmp_path}, whose journal is damaged: {why}" in run.err) == (2, True)
    (tmp_path / "peer.sqlite").write_bytes(b"")
    (tmp_path / "pages.jsonl").write_bytes(b"")  # A peer that ended as it began.
    run = await kadcrawl("status", "--data", str(tmp_path))
    assert (run.code, "damaged" in run.err) == (2, False), run


async def test_settings_of_the_earlier_command_that_stand_are_named_once(tmp_path: Path) -> None:
    async with Web() as site:
        serve(site)
        first = await kadcrawl(*crawl(tmp_path, site.url("/")), "--exclude", "/1$", "--max-pages", "3")
        assert "stand" not in first.err, first
        run = await kadcrawl("crawl", "--data", str(tmp_path), "--max-pages", "10")
    standing = "kadcrawl: settings of the earlier command that stand: --scope any, --exclude /1$, --delay 0s\n"
    assert run.err.count(standing) == 1, run
    assert run.err.index("going on with the crawl") < run.err.index(standing), "the crawl is named first"
    assert not [url for url in finished(tmp_path) if url.endswith("/1")]
    assert (await kadcrawl("set", "max-pages", "20", "--data", str(tmp_path))).code == 0
    run = await kadcrawl("crawl", "--data", str(tmp_path), "--max-pages", "10")
    assert "stand: --scope any, --exclude /1$, --max-pages 20 (by an order), --delay 0s\n" in run.err
