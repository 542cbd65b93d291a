"""crawl, start, join and add take seeds of files and pipes, and go on in them after a crash."""

import asyncio
import gzip
import json
import os
import signal
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

import pytest
from aiohttp import web

from tests.support.sites.web import Web, html
from tests.support.swarm.command import (
    LOOPBACK,
    Run,
    address_of,
    crawl,
    ended,
    finished,
    interrupted,
    joinable,
    joined,
    kadcrawl,
    start,
    until,
)


async def with_input(text: bytes, *arguments: str) -> Run:
    """Return the run of a command that reads this from standard input, which is a pipe."""
    readable, writable = os.pipe()
    with open(readable, "rb", 0) as its_input:
        process = await start(*arguments, stdin=its_input)
    end = open(writable, "wb", 0)  # noqa: SIM115 -- the transport closes it
    pipe, _ = await asyncio.get_running_loop().connect_write_pipe(asyncio.BaseProtocol, end)
    pipe.write(text)
    pipe.close()  # Once all is written.
    return await ended(process)


def lines_of(urls: list[str]) -> str:
    return "".join(f"{url}\n" for url in urls)


def unreachable(count: int, name: str = "") -> list[str]:
    return [f"http://127.0.0.2:9/{name}{number}" for number in range(count)]


async def pending(address: str) -> int:
    status = json.loads((await kadcrawl("status", "--peer", address, "--json")).out)
    return int(status["pending"])


async def test_add_takes_files_and_standard_input(tmp_path: Path) -> None:
    peer = await joinable(data=tmp_path / "peer")
    address = await address_of(peer)
    assert (await kadcrawl("pause", "--peer", address)).code == 0
    path = tmp_path / "seeds.gz"
    path.write_bytes(gzip.compress(lines_of([*unreachable(9_000), "nonsense"]).encode()))
    run = await kadcrawl("add", str(path), "--peer", address)
    assert run.code == 0, run
    assert [
        f"9000 seeds of {path} added, from 9001 lines",
        "1 line is no URL:",
        "  line 9001: 'nonsense' has no scheme: did you mean https://nonsense/?",
    ] == run.out.splitlines()
    assert 9_000 == await pending(address)
    again = await kadcrawl("add", str(path), "--peer", address)
    assert f"0 seeds of {path} added, from 9001 lines; the first 9001 lines were read before" in again.out
    more = lines_of(unreachable(10, "more")).encode()
    for _ in range(2):
        piped = await with_input(more, "add", "-", "--peer", address)
        assert (0, "10 seeds of standard input added, from 10 lines\n") == (piped.code, piped.out), piped
    assert 9_010 == await pending(address)
    missing = await kadcrawl("add", str(tmp_path / "missing"), "--peer", address)
    assert missing.code == 2
    assert (await interrupted(peer)).code == 11


async def test_seeds_of_others_need_a_contact(tmp_path: Path) -> None:
    peer = await joinable(data=tmp_path / "peer")
    address = await address_of(peer)
    run = await with_input(b"http://example.org/\n", "add", "-", "--peer", address)
    assert run.code == 2
    assert "the swarm does not say who it is: start it with --contact" in run.err
    run = await with_input(b"http://example.org/\n", *crawl(tmp_path / "crawl"), "--seeds", "-")
    assert run.code == 2, run
    assert "start it with --contact" in run.err
    assert (await interrupted(peer)).code == 11


async def test_a_crawl_begins_at_the_seeds_of_a_file_on_several_peers(tmp_path: Path) -> None:
    async with Web(40) as site:
        site.fallback = lambda request: html()
        urls = [site.url(f"/{number}", site=number % 40) for number in range(1_500)]
        path = tmp_path / "seeds"
        path.write_text(lines_of(urls))
        run = await kadcrawl(*crawl(tmp_path / "crawl", peers=2), "--seeds", str(path))
        assert run.code == 0, run
        assert dict.fromkeys(urls, 1) == dict(finished(tmp_path / "crawl"))
        assert f"1500 seeds of {path} added, from 1500 lines" in run.err


@pytest.mark.chaos
async def test_no_link_is_judged_before_all_seeds_are_read(tmp_path: Path) -> None:
    async with Web(2) as site:
        first, linked = site.url("/", site=0), site.url("/linked", site=1)
        site.fallback = lambda request: html(linked)
        seeds = [first, *unreachable(3_000), site.url("/", site=1)]
        arguments = crawl(tmp_path / "crawl")
        arguments[arguments.index("any")] = "host"
        run = await with_input(lines_of(seeds).encode(), *arguments, "--retries", "0", "--seeds", "-")
        assert run.code == 0, run
        assert linked in finished(tmp_path / "crawl")


async def test_an_input_without_urls_is_a_mistake(tmp_path: Path) -> None:
    run = await with_input(b"# nothing\nnonsense\n", *crawl(tmp_path / "crawl"), "--seeds", "-")
    assert run.code == 2, run
    assert "standard input has no URL to begin at" in run.err
    assert "line 2: 'nonsense' has no scheme" in run.err


def has_place(data: Path) -> bool:
    """Return whether a peer has journaled how far an input was read."""
    for journal in data.glob("peer-*/peer.sqlite"):
        with suppress(sqlite3.Error), closing(sqlite3.connect(f"{journal.as_uri()}?mode=rw", uri=True)) as opened:
            if opened.execute("SELECT 1 FROM meta WHERE name = 'seed_inputs'").fetchone():
                return True
    return False


@pytest.mark.chaos
@pytest.mark.timeout(300)
async def test_a_crawl_killed_while_it_reads_goes_on_in_the_file(tmp_path: Path) -> None:
    async with Web(40) as site:
        site.fallback = lambda request: html()
        urls = [site.url(f"/{number}", site=number % 40) for number in range(30_000)]
        path = tmp_path / "seeds"
        path.write_text(lines_of(urls))
        arguments = [*crawl(tmp_path / "crawl", peers=2), "--seeds", str(path), "--max-pages", "20"]
        arguments[arguments.index("any")] = "host"
        process = await start(*arguments)
        await until(lambda: has_place(tmp_path / "crawl"), process)
        os.killpg(process.pid, signal.SIGKILL)
        await ended(process)  # Its peers as well, as the next run needs their directories.
        assert {} == dict(finished(tmp_path / "crawl")), "nothing is fetched before"
        run = await ended(await start(*arguments), within_s=200)  # It takes some seconds of work.
        assert run.code == 0, run
        assert "lines were read before" in run.err
        assert "from 30000 lines" in run.err
        assert 20 <= len(finished(tmp_path / "crawl")) <= 40


async def test_a_seed_that_failed_is_fetched_again_when_the_same_command_names_it(tmp_path: Path) -> None:
    """The second and third runs name it in the same file, the fourth in no file."""
    async with Web(1) as site:
        site.fallback = lambda request: html()
        site.pages["/gone"] = lambda request: web.Response(status=404)
        data, path = tmp_path / "crawl", tmp_path / "seeds"
        path.write_text(lines_of([site.url("/gone"), site.url("/")]))
        said = "1 seed that failed before is fetched again"
        for times in (1, 2, 3):
            run = await kadcrawl(*crawl(data), "--seeds", str(path))
            assert (0, times > 1) == (run.code, said in run.err), run
            assert times == site.fetched[site.url("/gone")]
        peer = await start("start", site.url("/gone"), "--data", str(data / "peer-1"), "--exit-when-done", *LOOPBACK)
        run = await ended(peer)
        assert (0, True) == (run.code, said in run.err), run
        assert {site.url("/gone"): 4, site.url("/"): 1} == dict(finished(data)), "nothing else is fetched again"


async def test_start_and_join_take_seeds_too(tmp_path: Path) -> None:
    async with Web(4) as site:
        site.fallback = lambda request: html()
        one, two = tmp_path / "one.txt", tmp_path / "two.txt"
        one.write_text(lines_of([site.url("/one", site=1), "nonsense"]))
        two.write_text(lines_of([site.url("/two", site=2)]))
        first = await joinable("--delay", "0", "--seeds", str(one), data=tmp_path / "one")
        address = await address_of(first)
        await until(lambda: site.url("/one", site=1) in site.fetched, first)
        second = await joined(address, tmp_path / "two", "--seeds", str(two))
        await until(lambda: site.url("/two", site=2) in site.fetched, second)
        assert (await interrupted(second)).code == 11
        run = await interrupted(first)
        assert "line 2: 'nonsense' has no scheme" in run.err
    leaf = await kadcrawl(
        "join", "--bootstrap", "127.0.0.1:1", "--leaf", "--seeds", "-", "--data", str(tmp_path / "leaf"), *LOOPBACK
    )
    assert (2, True) == (leaf.code, "a leaf takes no seeds" in leaf.err)
