"""The last lines of the commands: true after one run and after several, and their commands do as they say."""

import asyncio
import json
import re
from pathlib import Path

from aiohttp import web

from kadcrawl.cli.exits import LIMIT_OF_BYTES, LIMIT_OF_TIME
from tests.support.sites.web import Web, html, slow, tree
from tests.support.swarm.command import LOOPBACK, SITES, address_of, crawl, ended, joinable, joined, kadcrawl


def site_with_failures(site: Web) -> None:
    site.pages["/"] = lambda request: html("/1", "/2", "/3", "/ok")
    site.pages["/ok"] = lambda request: html()
    site.fallback = lambda request: web.Response(status=404)


def commands(out: str) -> list[str]:
    """Return the commands below `next:`."""
    _, _, below = out.partition("next:\n")
    return [re.split(r" {2,}", line.strip())[0] for line in below.splitlines()]


async def test_the_last_lines_of_a_crawl_say_what_failed_and_their_commands_work(tmp_path: Path) -> None:
    data = tmp_path / "my data"
    async with Web() as site:
        site_with_failures(site)
        run = await kadcrawl(*crawl(data, site.url(), peers=2))
    assert run.code == 0, run
    first, *rest = run.out.splitlines()
    assert re.fullmatch(
        r"5 pages, [0-9.]+ (bytes|kB), 5 of 5 URLs done \(3 failed: http_404 3\), 0 fetched twice, [0-9.]+ s; below .*",
        first,
    )
    assert re.fullmatch(rf"  3 http_404 \(there is no such page\): {re.escape(site.url())}[123]", rest[1])
    assert len(rest) < 15
    grep, retry, export = commands(run.out)
    process = await asyncio.create_subprocess_shell(grep, stdout=asyncio.subprocess.PIPE)
    out, _ = await process.communicate()
    assert {site.url(f"/{n}") for n in (1, 2, 3)} == {json.loads(line)["url"] for line in out.splitlines()}
    assert retry == f"kadcrawl retry --data '{data}'"
    assert export == f"kadcrawl export '{data}' --to sqlite:results.db"
    exported = await kadcrawl("export", str(data), "--to", f"sqlite:{tmp_path}/results.db")
    assert exported.code == 0, exported


async def test_a_resumed_crawl_has_the_examples_of_earlier_runs(tmp_path: Path) -> None:
    async with Web() as site:
        site_with_failures(site)
        command = crawl(tmp_path / "data", site.url())
        assert (await kadcrawl(*command)).code == 0
        run = await kadcrawl(*command, "--summary", str(tmp_path / "summary.json"))
    assert run.code == 0, run
    assert f"  3 http_404 (there is no such page): {site.url()}" in run.out
    examples = json.loads((tmp_path / "summary.json").read_text())["failed_examples"]
    assert ["http_404"] == list(examples)
    assert examples["http_404"] in {site.url(f"/{n}") for n in (1, 2, 3)}


async def test_an_exhausted_budget_of_pages_goes_on_as_the_last_lines_say(tmp_path: Path) -> None:
    async with Web() as site:
        site.fallback = lambda request: html(f"/{int(request.path[1:] or 0) + 1}")
        command = crawl(tmp_path / "data", site.url())
        run = await kadcrawl(*command, "--max-pages", "3")
        assert run.code == 0, run
        assert "--max-pages 3 ended it" in run.out
        (again,) = [line for line in commands(run.out) if "--max-pages" in line]
        assert again == "the same command with --max-pages 6"
        at_rest = await kadcrawl("summary", "--data", str(tmp_path / "data"))
        assert "--max-pages 3 ended it: 1 URL is left" in at_rest.out
        assert again in commands(at_rest.out)
        assert (await kadcrawl(*command, *again.split()[-2:])).code == 0
        assert 6 == len(site.fetched)


async def test_a_crawl_that_max_time_ends_says_so_and_a_longer_time_goes_on(tmp_path: Path) -> None:
    async with Web() as site:
        pages = 200
        site.fallback = slow(tree(pages)(site), 0.1)
        command = crawl(tmp_path / "data", site.url("/0"), peers=2)
        run = await kadcrawl(*command, "--max-time", "2s", "--summary", str(tmp_path / "summary.json"))
        assert run.code == LIMIT_OF_TIME, run
        figures = json.loads((tmp_path / "summary.json").read_text())
        left = figures["urls_found"] - figures["urls_done"]
        assert f"--max-time 2s ended it: {left} URLs are left" in run.out
        assert "time" == figures["limit_reached"]
        fetched = sum(site.fetched.values())
        assert 0 < fetched == figures["urls_done"] < pages
        assert (await kadcrawl(*command, "--max-time", "2s")).code == LIMIT_OF_TIME
        assert fetched == sum(site.fetched.values()), "earlier runs count"
        assert "the same command with --max-time 4s" in commands(run.out)
        at_rest = await kadcrawl("summary", "--data", str(tmp_path / "data"))
        assert f"--max-time 2s ended it: {left} URLs are left" in at_rest.out
        run = await kadcrawl(*command, "--max-time", "10m", "--summary", str(tmp_path / "summary.json"))
        assert run.code == 0, run
        assert "ended it" not in run.out
        assert "" == json.loads((tmp_path / "summary.json").read_text())["limit_reached"]
        assert "ended it" not in (await kadcrawl("summary", "--data", str(tmp_path / "data"))).out
        assert pages == sum(site.fetched.values())


async def test_a_crawl_that_max_bytes_ends_says_so_and_a_larger_number_goes_on(tmp_path: Path) -> None:
    async with Web() as site:
        site.fallback = lambda request: html(f"/{int(request.path[1:] or 0) + 1 if request.path != '/19' else 0}")
        command = crawl(tmp_path / "data", site.url())
        run = await kadcrawl(*command, "--max-bytes", "50 bytes")
        assert run.code == LIMIT_OF_BYTES, run
        assert "--max-bytes 50bytes ended it: 1 URL is left" in run.out
        (again,) = [line for line in commands(run.out) if "--max-bytes" in line]
        assert again == "the same command with --max-bytes 100bytes"
        fetched = len(site.fetched)
        assert 2 < fetched < 10
        assert (await kadcrawl(*command, *again.split()[-2:])).code == LIMIT_OF_BYTES
        assert fetched < len(site.fetched)
        assert (await kadcrawl(*command, "--max-bytes", "none")).code == 0
        assert 21 == len(site.fetched)


async def test_a_single_peer_that_max_time_ends_has_the_same_exit_code(tmp_path: Path) -> None:
    async with Web() as site:
        site.fallback = slow(tree(200)(site), 0.1)
        run = await kadcrawl(
            *("start", site.url("/0"), "--delay", "0", *LOOPBACK, "--exit-when-done", "--max-time", "1s"),
            *("--listen", "127.0.0.1:0", "--data", str(tmp_path / "one")),
        )
        assert run.code == LIMIT_OF_TIME, run
        assert "URLs left on it" in run.out
        assert "--max-time 1s ended the crawl of the swarm\n" in run.out
        assert f"kadcrawl set max-time 2s --data {tmp_path}/one" in commands(run.out)


async def test_each_peer_of_a_swarm_that_max_pages_ends_says_so_and_an_order_goes_on(tmp_path: Path) -> None:
    async with Web(SITES) as site:
        site.fallback = tree(200, SITES)(site)
        options = ("--delay", "0", "--scope", "any", "--exit-when-done", "--max-pages", "30")
        first = await joinable(*options, data=tmp_path / "one")
        address = await address_of(first)
        second = await joined(address, tmp_path / "two", "--exit-when-done")
        assert (await kadcrawl("add", site.url("/0"), "--peer", address)).code == 0
        runs = [await ended(first), await ended(second)]
        assert [0, 0] == [run.code for run in runs], runs
        assert 30 == sum(site.fetched.values())
        for run, data in zip(runs, (tmp_path / "one", tmp_path / "two"), strict=True):
            assert "--max-pages 30 ended the crawl of the swarm\n" in run.out, run
            assert f"kadcrawl set max-pages 60 --data {data}" in commands(run.out)
        at_rest = await kadcrawl("summary", "--data", str(tmp_path / "one"))
        assert "--max-pages 30 ended it: " in at_rest.out
        assert "early" not in at_rest.out
        assert (await kadcrawl("set", "max-pages", "500", "--data", str(tmp_path / "one"))).code == 0
        assert "ended it" not in (await kadcrawl("summary", "--data", str(tmp_path / "one"))).out


async def test_a_swarm_whose_pages_were_just_enough_was_ended_by_no_limit(tmp_path: Path) -> None:
    async with Web() as site:
        site.fallback = tree(7)(site)
        run = await kadcrawl(
            *("start", site.url("/0"), "--delay", "0", *LOOPBACK, "--exit-when-done", "--max-pages", "7"),
            *("--listen", "127.0.0.1:0", "--data", str(tmp_path / "one")),
        )
        assert run.code == 0, run
        assert 7 == sum(site.fetched.values())
        assert "ended" not in run.out
        assert "ended it" not in (await kadcrawl("summary", "--data", str(tmp_path / "one"))).out


async def test_the_last_lines_of_a_single_peer_say_the_same(tmp_path: Path) -> None:
    async with Web() as site:
        site_with_failures(site)
        run = await kadcrawl(
            *("start", site.url(), "--delay", "0", *LOOPBACK, "--exit-when-done"),
            *("--listen", "127.0.0.1:0", "--data", str(tmp_path / "one")),
        )
    assert run.code == 0, run
    first, *rest = run.out.splitlines()
    assert first.startswith("5 pages fetched by this peer, 3 failed (http_404 3), 0 URLs left on it; ")
    assert rest[1].startswith(f"  3 http_404 (there is no such page): {site.url()}")
    assert [
        f"grep -h '\"failed\":' {tmp_path}/one/pages.jsonl",
        f"kadcrawl retry --data {tmp_path}/one",
        f"kadcrawl export {tmp_path}/one --to sqlite:results.db",
    ] == commands(run.out)
