"""The network is tried as a peer uses it: ports on loopback, peers that run, and a site."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from email.utils import formatdate
from ipaddress import ip_address
from pathlib import Path

import pytest
from aiohttp import web

from kadcrawl.cli.doctor.network_probes import bootstrap_facts, listening_errors, own_addresses, site_facts
from kadcrawl.cli.doctor.reach import PeerAnswer
from kadcrawl.members.swarm_key import SwarmKey
from kadcrawl.peer import Peer
from kadcrawl.settings.config import Config
from kadcrawl.settings.job import Job
from kadcrawl.system.clock import wall
from tests.support.sites.web import Web, html
from tests.support.swarm.command import crawl, kadcrawl

KEY = SwarmKey.generate()
NOWHERE = Path("/nonexistent")


@asynccontextmanager
async def running(data: Path, key: SwarmKey | None, seed: str = "http://127.0.0.2:9/") -> AsyncIterator[Peer]:
    async with Peer(Config(data=data, port=0, swarm_key=key), Job()) as peer:
        await peer.begin(paused=True)
        await peer.crawl([seed])
        yield peer
        await peer.finish()


def test_the_addresses_of_this_machine_are_ip_addresses() -> None:
    addresses = own_addresses()
    assert all(map(ip_address, addresses))
    assert len(set(addresses)) == len(addresses)


def test_a_port_in_use_is_told_by_protocol_and_a_free_one_stays_free() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        address: tuple[str, int] = taken.getsockname()
        errors = listening_errors(address)
        assert (None, True) == (errors["TCP"], isinstance(errors["UDP"], OSError))
    assert {"TCP": None, "UDP": None} == listening_errors(address)
    assert {"TCP": None, "UDP": None} == listening_errors(address), "nothing is left open"


def test_an_address_of_another_machine_cannot_be_listened_at() -> None:
    assert all(isinstance(error, OSError) for error in listening_errors(("192.0.2.77", 0)).values())


@pytest.mark.parametrize("key", [KEY, None])
async def test_a_member_answers_by_tcp_and_udp_and_takes_nobody_in(tmp_path: Path, key: SwarmKey | None) -> None:
    async with running(tmp_path, key) as peer:
        facts = await bootstrap_facts(peer.contact.address, key, NOWHERE)
        assert [peer.contact] == [row.contact for row in (await peer.census()).rows]
    assert (PeerAnswer.MEMBER, True, True) == (facts.answer, facts.udp_answers, facts.same_swarm)
    assert ["127.0.0.1"] == list(facts.resolved)


@pytest.mark.parametrize(
    ("theirs", "ours", "answer"),
    [
        (KEY, SwarmKey.generate(), PeerAnswer.OTHER_KEY),
        (KEY, None, PeerAnswer.KEY_WANTED),
        (None, KEY, PeerAnswer.NO_KEY),
    ],
)
async def test_another_key_is_told_apart(
    tmp_path: Path, theirs: SwarmKey | None, ours: SwarmKey | None, answer: PeerAnswer
) -> None:
    async with running(tmp_path, theirs) as peer:
        facts = await bootstrap_facts(peer.contact.address, ours, NOWHERE)
    assert (answer, None) == (facts.answer, facts.udp_answers)


async def test_a_directory_of_another_swarm_is_noticed(tmp_path: Path) -> None:
    async with running(tmp_path / "other", None, "http://127.0.0.3:9/"):
        pass
    async with running(tmp_path / "peer", None) as peer:
        assert not (await bootstrap_facts(peer.contact.address, None, tmp_path / "other")).same_swarm
        assert (await bootstrap_facts(peer.contact.address, None, peer.config.data)).same_swarm


async def test_a_member_whose_datagrams_are_dropped_answers_by_tcp_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kadcrawl.cli.doctor.network_probes.DATAGRAM_S", 0.05)
    async with running(tmp_path, KEY) as peer:
        peer.overlay.withhold_answers()
        facts = await bootstrap_facts(peer.contact.address, KEY, NOWHERE)
    assert (PeerAnswer.MEMBER, False) == (facts.answer, facts.udp_answers)


async def test_a_program_that_is_no_peer_is_told(tmp_path: Path) -> None:
    async with Web() as site:
        site.fallback = lambda request: web.Response(status=404)
        port = int(site.url().rsplit(":", 1)[1].strip("/"))
        facts = await bootstrap_facts(("127.0.0.2", port), None, NOWHERE)
    assert PeerAnswer.NOT_A_PEER is facts.answer
    assert "is not a peer of this version (HTTP 404)" == facts.detail


async def test_a_closed_port_an_unknown_name_and_silence_are_told_apart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
        assert PeerAnswer.REFUSED is (await bootstrap_facts(("127.0.0.1", port), None, NOWHERE)).answer
        assert PeerAnswer.REFUSED is (await bootstrap_facts(("127.0.0.1", port), KEY, NOWHERE)).answer
    assert PeerAnswer.NO_SUCH_NAME is (await bootstrap_facts(("no.such.invalid", 1), None, NOWHERE)).answer
    monkeypatch.setattr("kadcrawl.cli.doctor.network_probes.HELLO_S", 0.2)
    never = asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await never.wait()
        writer.close()

    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    async with server:
        address = server.sockets[0].getsockname()
        assert PeerAnswer.SILENT is (await bootstrap_facts(address, None, NOWHERE)).answer
        never.set()


@pytest.mark.parametrize(("ahead_s", "expected"), [(0.0, 0.0), (500.0, 500.0), (-500.0, -500.0)])
async def test_a_site_answers_and_tells_its_time(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, ahead_s: float, expected: float
) -> None:
    monkeypatch.setattr("kadcrawl.cli.doctor.network_probes.networks_of", lambda given, data: ("127.0.0.0/8",))
    async with Web() as site:
        site.pages["/a"] = lambda request: html(date=formatdate(wall() + ahead_s, usegmt=True))
        facts, found_s = await site_facts(site.url("/a"), tmp_path)
    assert (200, None, ["127.0.0.2"]) == (facts.status, facts.error, list(facts.addresses))
    assert found_s == pytest.approx(expected, abs=3.0)


async def test_a_private_site_is_refused_as_the_crawl_would(tmp_path: Path) -> None:
    async with Web() as site:
        facts, found_s = await site_facts(site.url(), tmp_path)
        assert not site.requests
    assert ("address_refused", None, None) == (facts.error, facts.status, found_s)


async def test_the_networks_of_a_crawl_and_those_given_are_allowed(tmp_path: Path) -> None:
    async with Web() as site:
        given, _ = await site_facts(site.url(), tmp_path, ("127.0.0.0/8",))
        assert given.status is not None
        data = tmp_path / "crawl"
        assert (await kadcrawl(*crawl(data, site.url()))).code in (0, 1)
        facts, _ = await site_facts(site.url(), data)
    assert (given.status, None) == (facts.status, facts.error)


async def test_a_host_without_an_address_is_told(tmp_path: Path) -> None:
    facts, _ = await site_facts("http://no.such.invalid/", tmp_path)
    assert ("dns", ()) == (facts.error, facts.addresses)
