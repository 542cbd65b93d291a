"""Test the addresses at which a peer listens, and the first messages of a newcomer where packets are lost."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from kadcrawl import Peer
from kadcrawl.errors import ConfigError, StartError, UnansweredError
from kadcrawl.link.client import LinkClient
from kadcrawl.link.server import LinkServer
from kadcrawl.link.wire.messages import Hello, Ok
from kadcrawl.members.credentials import Credentials
from kadcrawl.overlay.addresses import ip_version
from kadcrawl.peer.membership.endpoints import HELLO_TRIES, hello, reachable_host
from kadcrawl.settings.config import Config
from tests.support.links.member_links import KEYRING, credentials
from tests.support.swarm.peers import MakePeer


class DeafAtFirst:
    """Passes bytes on to a peer, but of the first connections hears nothing."""

    def __init__(self, to: tuple[str, int], deaf: int) -> None:
        self.connections = 0
        self._to, self._deaf = to, deaf
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: list[asyncio.StreamWriter] = []

    async def __aenter__(self) -> tuple[str, int]:
        self._server = await asyncio.start_server(self._passed_on, "127.0.0.1", 0)
        host, port = self._server.sockets[0].getsockname()
        return host, port

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for writer in self._writers:
            writer.transport.abort()
        await asyncio.sleep(0)

    async def _passed_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._writers.append(writer)
        if self.connections > self._deaf:
            there, back = await asyncio.open_connection(*self._to)
            self._writers.append(back)
            for source, sink in ((reader, back), (there, writer)):
                self._tasks.add(asyncio.create_task(pumped(source, sink)))


async def pumped(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    while data := await source.read(65_536):
        sink.write(data)


@asynccontextmanager
async def caller(by: Credentials | None) -> AsyncIterator[LinkClient]:
    """Yield a client that dials by these credentials."""
    client = LinkClient(1_000_000, by)
    await client.open()
    try:
        yield client
    finally:
        await client.close()


@pytest.mark.parametrize("deaf", [0, HELLO_TRIES - 1, HELLO_TRIES])
async def test_who_is_not_heard_at_once_tries_again(deaf: int, make_peer: MakePeer) -> None:
    peer = await make_peer()
    way = DeafAtFirst(peer.contact.address, deaf)
    async with caller(None) as client, way as address:
        if deaf < HELLO_TRIES:
            assert (await hello(client, [address])).job == peer.job
            assert way.connections == deaf + 1
        else:
            with pytest.raises(StartError, match=r"cannot join: peer [^;]*no answer within[^;]*running there\?$"):
                await hello(client, [address])


async def test_a_peer_that_starts_may_be_asked_again(tmp_path: Path) -> None:
    """A machine may ask the first peer of the swarm just before it begins."""
    config = Config(data=tmp_path / "one", port=0, swarm_key=KEYRING.key)
    async with caller(credentials(tmp_path)) as client, Peer(config) as peer:
        with pytest.raises(UnansweredError, match="still starting"):
            await hello(client, [peer.contact.address])
        await peer.begin(paused=True)
        assert peer.job == (await hello(client, [peer.contact.address])).job


@pytest.mark.parametrize("has_key", [True, False])
async def test_a_hang_up_is_final_only_for_a_caller_without_a_key(has_key: bool, tmp_path: Path) -> None:
    """A peer that takes another ID, or ends, hangs up too. A peer with a key does so whenever it is called without."""
    server = LinkServer(1_000_000, credentials(tmp_path) if has_key else None)

    async def hang_up(_: Hello) -> Ok:
        server.disconnect()
        return Ok()

    server.handle(Hello, hang_up)
    address = ("127.0.0.1", await server.listen("127.0.0.1", 0))
    try:
        async with caller(credentials(tmp_path) if has_key else None) as client:
            with pytest.raises(StartError, match="the connection is lost") as raised:
                await hello(client, [address])
    finally:
        await server.close()
    assert has_key == isinstance(raised.value, UnansweredError)


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("2001:DB8::1", "2001:db8::1"),
        ("2001:db8:0:0::1", "2001:db8::1"),
        ("::ffff:1.2.3.4", "1.2.3.4"),
        ("::FFFF:7f00:1", "127.0.0.1"),
        ("fe80::1", "fe80::1"),
    ],
)
def test_a_peer_listens_at_an_address_as_others_take_it(given: str, kept: str, tmp_path: Path) -> None:
    assert Config(data=tmp_path, host=given).host == kept
    assert ip_version(kept) is not None


@pytest.mark.parametrize(
    ("given", "kept"), [("0.0.0.0", "0.0.0.0"), ("::ffff:0.0.0.0", "0.0.0.0"), ("::", "::"), ("0::0", "::")]
)
def test_all_addresses_of_a_machine_are_written_in_one_way(given: str, kept: str, tmp_path: Path) -> None:
    assert Config(data=tmp_path, host=given).host == kept


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ("fe80::1%eth0", "one network interface only"),
        ("::%lo", "one network interface only"),
        ("::ffff:1.2.3.4%eth0", "one network interface only"),
        ("224.0.0.1", "many machines"),
        ("::ffff:224.0.0.1", "many machines"),
        ("255.255.255.255", "many machines"),
        ("ff02::1", "many machines"),
        ("0", "must be an IP address"),
        ("127.1", "must be an IP address"),
        ("010.0.0.1", "must be an IP address"),
        ("localhost", "must be an IP address"),
        ("", "must be an IP address"),
    ],
)
def test_an_address_that_others_would_not_take_is_refused_at_once(given: str, why: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=why):
        Config(data=tmp_path, host=given)
    assert ip_version(given) is None


def test_ipv4_is_not_taken_in_the_form_of_ipv6_on_any_python() -> None:
    assert [ip_version(host) for host in ("::ffff:1.2.3.4", "::ffff:102:304")] == [None, None]


async def test_a_way_that_begins_on_one_interface_is_no_address_to_be_told(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = asyncio.get_running_loop()
    made: Callable[..., Any] = loop.create_datagram_endpoint

    async def scoped(*args: Any, **kwargs: Any) -> Any:
        transport, protocol = await made(*args, **kwargs)
        monkeypatch.setattr(transport, "get_extra_info", {"sockname": ("fe80::1%eth0", 9, 0, 2)}.get)
        return transport, protocol

    monkeypatch.setattr(loop, "create_datagram_endpoint", scoped)
    with pytest.raises(StartError, match=r"packets to ::1 leave from fe80::1%eth0"):
        await reachable_host("::", ("::1", 9))
