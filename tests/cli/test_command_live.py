"""start, join, status, add, pause, resume, leave, stop: a swarm as people build it over machines."""

import asyncio
import json
import socket
from pathlib import Path

import pytest
from aiohttp import web

from kadcrawl.peer.job_store import journaled_job
from tests.support.sites.endless_web import endless_web
from tests.support.sites.web import Web, html, tree
from tests.support.swarm.command import (
    SITES,
    address_of,
    ended,
    finished,
    interrupted,
    joinable,
    joined,
    kadcrawl,
    start,
    until,
)
from tests.support.swarm.kept_port import kept_port


@pytest.mark.chaos
async def test_a_swarm_of_commands(tmp_path: Path) -> None:
    """start, join, status, pause, resume, add, leave, stop: a swarm as people build it over machines."""
    async with endless_web() as endless:
        first = await joinable(endless.seed, "--delay", "0", "--scope", "any", data=tmp_path / "one")
        one = await address_of(first)
        await until(lambda: len(finished(tmp_path)) > 5, first)
        second = await joined(one, tmp_path / "two")
        two = await address_of(second)
        await until(lambda: len(finished(tmp_path / "two")) > 5, second)
        status = json.loads((await kadcrawl("status", "--peer", two, "--json")).out)
        assert ("crawling", 2, 0) == (status["state"], len(status["peers"]), status["unanswered"])
        assert {one, two} == {peer["address"] for peer in status["peers"]}
        assert (await kadcrawl("pause", "--peer", two)).code == 0
        assert json.loads((await kadcrawl("status", "--peer", one, "--json")).out)["state"] == "paused"
        table = (await kadcrawl("status", "--peer", one)).out
        assert table.startswith("paused: ")
        assert two in table
        assert (await kadcrawl("add", endless.site.url("/extra"), "--peer", one)).code == 0
        assert (await kadcrawl("add", "nonsense", "--peer", one)).code == 2
        assert (await kadcrawl("resume", "--peer", one)).code == 0
        assert (await kadcrawl("leave", "--peer", two)).code == 0
        left = await ended(second)
        assert left.code == 0, left
        assert "0 URLs left on it" in left.out
        await until(lambda: endless.site.url("/extra") in endless.site.fetched, first)
        assert (await kadcrawl("stop", "--peer", one)).code == 0
        stopped = await ended(first)
        assert stopped.code == 0, stopped
        assert set(finished(tmp_path).values()) == {1}


async def test_join_exits_when_done_if_told_so(tmp_path: Path) -> None:
    async with Web(SITES) as site:
        site.fallback = tree(100, SITES)(site)
        first = await joinable("--delay", "0", "--scope", "any", "--exit-when-done", data=tmp_path / "one")
        address = await address_of(first)
        second = await joined(address, tmp_path / "two", "--exit-when-done")
        assert (await kadcrawl("add", site.url("/0"), "--peer", address)).code == 0
        runs = [await ended(first), await ended(second)]
        assert [0, 0] == [run.code for run in runs], runs
        assert {site.url(f"/{n}", site=n % SITES): 1 for n in range(100)} == dict(finished(tmp_path))


async def test_more_seeds_are_added_than_one_message_holds(tmp_path: Path) -> None:
    peer = await joinable(data=tmp_path)
    address = await address_of(peer)
    assert (await kadcrawl("pause", "--peer", address)).code == 0
    run = await kadcrawl("add", *(f"http://127.0.0.2:9/{n}" for n in range(1200)), "--peer", address)
    assert run.code == 0, run
    assert run.out == "1200 seeds added; what was found already is not fetched again\n"
    status = json.loads((await kadcrawl("status", "--peer", address, "--json")).out)
    assert (1200, 1200) == (len(status["seeds"]), status["pending"])
    assert (await interrupted(peer)).code == 11


async def test_a_swarm_without_a_contact_takes_no_sites_of_others(tmp_path: Path) -> None:
    peer = await joinable(data=tmp_path)
    address = await address_of(peer)
    assert (await kadcrawl("pause", "--peer", address)).code == 0
    run = await kadcrawl("add", "https://example.org/", "--peer", address)
    assert run.code == 2, run
    assert "start it with --contact" in run.err
    assert (await kadcrawl("add", "http://127.0.0.2:9/", "--peer", address)).code == 0
    assert (await interrupted(peer)).code == 11


async def test_a_started_peer_keeps_the_options_it_is_not_given_again(tmp_path: Path) -> None:
    for arguments in (["http://127.0.0.2:9/", "--contact", "me@example.org", "--exclude", "/x"], ["--max-depth", "3"]):
        peer = await joinable(*arguments, data=tmp_path)
        assert (await interrupted(peer)).code == 11
    job = journaled_job(tmp_path)
    assert job is not None
    assert ("me@example.org", ("/x",), 3) == (job.contact, job.exclude, job.max_depth)
    assert ("http://127.0.0.2:9/",) == job.seeds


async def test_ctrl_c_while_joining_leaves_at_once(tmp_path: Path) -> None:
    """The peer it joins by way of takes the connection and says nothing."""
    asked, never = asyncio.Event(), asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.set()
        await never.wait()
        writer.close()

    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    async with server:
        address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        taker = await start("join", "--bootstrap", address, "--listen", "127.0.0.1:0", "--data", str(tmp_path))
        async with asyncio.timeout(60):
            await asked.wait()
        run = await interrupted(taker)
        never.set()
    assert run.code == 11, run
    assert "leaving" in run.err
    assert "Traceback" not in run.err


async def test_ctrl_c_leaves_a_swarm_that_is_stuck_in_its_requests(tmp_path: Path) -> None:
    never = asyncio.Event()
    async with Web(12) as site:

        async def stuck(request: web.BaseRequest) -> web.StreamResponse:
            await never.wait()
            return html()

        site.fallback = stuck
        seeds = [site.url("/0", site=n) for n in range(12)]
        giver = await joinable(*seeds, "--delay", "0", data=tmp_path / "one")
        await until(lambda: len(site.fetched) == 12, giver)
        taker = await joined(await address_of(giver), tmp_path / "two")
        run = await interrupted(taker)
        assert run.code == 11, run
        assert "leaving" in run.err
        assert "Traceback" not in run.err
        giver.kill()
        await giver.wait()
        never.set()


async def test_an_ipv6_peer_is_shown_as_others_can_type_it(tmp_path: Path) -> None:
    with socket.socket(socket.AF_INET6) as probe:
        try:
            probe.bind(("::1", 0))
        except OSError:
            pytest.skip("this machine has no IPv6")
    peer = await start("start", "--listen", "[::1]:0", "--data", str(tmp_path))
    assert peer.stderr is not None
    async with asyncio.timeout(60):
        await peer.stderr.readuntil(b" --bootstrap '[::1]:")
        address = "[::1]:" + (await peer.stderr.readuntil(b"'"))[:-1].decode()
    assert f"@{address} " in (await kadcrawl("status", "--peer", address)).out
    assert (await interrupted(peer)).code == 11


async def test_a_peer_without_seeds_says_how_the_crawl_begins(tmp_path: Path) -> None:
    hint = f"it has no seeds yet: kadcrawl add URL... --data {tmp_path} begins the crawl"
    options = ("--listen", "127.0.0.1:0", "--data", str(tmp_path), "--contact", "a@example.org")
    peer = await start("start", *options)
    assert peer.stderr is not None
    async with asyncio.timeout(60):
        await peer.stderr.readuntil(f"{hint}\n".encode())
    assert (await kadcrawl("add", "http://127.0.0.1:9/", "--data", str(tmp_path))).code == 0
    assert (await interrupted(peer)).code == 11
    again = await kadcrawl("start", *options, "--exit-when-done")
    assert (again.code, "no seeds" in again.err) == (0, False), again


async def test_a_peer_that_fetches_nothing_says_why(tmp_path: Path) -> None:
    run = await kadcrawl(
        "start", "http://127.0.0.1:9/", "--listen", "127.0.0.1:0", "--data", str(tmp_path), "--exit-when-done"
    )
    assert run.code == 0, run
    assert "0 pages fetched by this peer, 1 failed (address_refused 1), 0 URLs left on it" in run.out
    assert "--allow-network" in run.out


async def test_who_joins_a_private_crawl_without_its_networks_hears_so_at_once(tmp_path: Path) -> None:
    async with endless_web() as endless:
        first = await joinable(endless.seed, "--delay", "0.2", "--scope", "any", data=tmp_path / "one")
        one = await address_of(first)
        await until(lambda: len(finished(tmp_path)) > 5, first)
        second = await start("join", "--bootstrap", one, "--listen", "127.0.0.1:0", "--data", str(tmp_path / "two"))
        assert second.stderr is not None
        async with asyncio.timeout(60):
            await second.stderr.readuntil(b" is neither public nor allowed here")
            said = (await second.stderr.readline()).decode()
        assert "start again with --allow-network 127.0.0.0/8" in said
        assert "address.refused address=127.0.0." in (tmp_path / "two" / "peer.log").read_text()
        # Its own requests are made by the other peer (kadcrawl/crawl/reach), so it may have pages all the same.
        await interrupted(second)
        await interrupted(first)


async def test_join_waits_for_the_first_peer_if_told_so(tmp_path: Path) -> None:
    """Whatever starts the machines need not know which of them is up first."""
    with kept_port() as port:
        address = f"127.0.0.1:{port}"
        at = ("--bootstrap", address)
        assert (await kadcrawl("join", *at, "--data", str(tmp_path / "hasty"))).code == 2
        early = await start("join", *at, "--wait", "1m", "--data", str(tmp_path / "two"), "--listen", "127.0.0.1:0")
        assert early.stderr is not None
        async with asyncio.timeout(60):
            said = (await early.stderr.readline()).decode()
        assert f"peer {address}: cannot be reached" in said
        assert said.endswith("; asking again for 1m\n")
        status = await kadcrawl("status", "--data", str(tmp_path / "two"), env={"KADCRAWL_KEY": ""})
        assert f"the peer of {tmp_path / 'two'} runs, and does not answer (yet): it starts, waits for" in status.err, (
            status
        )
        first = await start("start", "--data", str(tmp_path / "one"), "--listen", address)
        async with asyncio.timeout(60):
            await early.stderr.readuntil(b"others join with")
        assert 2 == len(json.loads((await kadcrawl("status", "--peer", address, "--json")).out)["peers"])
        for process in (early, first):
            assert (await interrupted(process)).code == 11


async def test_start_joins_the_swarm_that_is_there_and_begins_none_beside_it(tmp_path: Path) -> None:
    first = await joinable("http://127.0.0.2:9/", data=tmp_path / "one")
    address = await address_of(first)
    again = await start(
        "start",
        "http://127.0.0.3:9/",
        "--bootstrap",
        address,
        "--data",
        str(tmp_path / "two"),
        "--listen",
        "127.0.0.1:0",
    )
    assert again.stderr is not None
    async with asyncio.timeout(60):
        await again.stderr.readuntil(b"others join with")
    status = json.loads((await kadcrawl("status", "--peer", address, "--json")).out)
    assert 2 == len(status["peers"])
    for process in (again, first):
        assert (await interrupted(process)).code == 11
