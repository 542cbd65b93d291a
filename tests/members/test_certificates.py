"""Test which peers are rejected despite their certificate, and which peers are not trusted when dialed."""

import asyncio
import ssl
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import aiohttp
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from kadcrawl.errors import RemoteError
from kadcrawl.link.client import LinkClient
from kadcrawl.link.handler import LINK_PATH
from kadcrawl.link.wire.codec import pack
from kadcrawl.link.wire.messages import Hello, Ok
from kadcrawl.members.certificates import client_context, server_context
from kadcrawl.members.peer_key import PeerKey
from kadcrawl.members.swarm_key import SwarmKey
from tests.support.links.library_certificates import library_certificate
from tests.support.links.link_ends import UPGRADE
from tests.support.links.member_links import KEYRING, credentials, files, is_answered, served

TLS_1_2 = ssl.TLSVersion.TLSv1_2


def test_handshakes_before_a_peer_settles_on_its_key_stay_good(tmp_path: Path) -> None:
    """A newcomer may have shaken hands with the first peer of a swarm just before it begins under the drawn ID."""
    ends = credentials(tmp_path)
    context = ends.server_context(KEYRING.key)
    ends.use_peer_key(ends.peer_key)
    assert ends.is_good(context)
    ends.use_peer_key(PeerKey.generate())
    assert not ends.is_good(context)


def of_another_kind(place: Path) -> ssl.SSLContext:
    """Return a context that dials with the swarm's certificate for a key that belongs to no peer."""
    authority = Ed25519PrivateKey.from_private_bytes(KEYRING.key.derive(b"authority"))
    private = ec.generate_private_key(ec.SECP256R1())
    certificate = library_certificate("x", private.public_key(), authority, serial=7, signs=False)
    chain = place / "chain"
    secret = private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    chain.write_bytes(secret + certificate.public_bytes(Encoding.PEM))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.load_cert_chain(chain)
    return context


async def shakes_hands(address: tuple[str, int], context: ssl.SSLContext, key: SwarmKey) -> bool:
    try:
        _, writer = await asyncio.open_connection(*address, ssl=context, server_hostname=key.name)
    except OSError:
        return False
    writer.close()
    return True


def test_no_copy_of_the_key_of_a_peer_stays_open(tmp_path: Path) -> None:
    server_context(KEYRING.key, PeerKey.generate(), tmp_path)  # OpenSSL may open files of its own, once.
    before = files()
    server_context(KEYRING.key, PeerKey.generate(), tmp_path)
    assert files() <= before, "those of earlier tests may be closed meanwhile"
    assert not list(tmp_path.iterdir())


async def test_no_clock_shuts_a_member_out(tmp_path: Path) -> None:
    """Otherwise the member would hear that it uses the key of another swarm."""
    async with served(tmp_path) as (_, _, address):
        ((key, shown),) = credentials(tmp_path).to_dial
        _, writer = await asyncio.open_connection(*address, ssl=shown, server_hostname=key.name)
        for certificate in (writer.get_extra_info("peercert"), *shown.get_ca_certs()):
            times = [ssl.cert_time_to_seconds(certificate[name]) for name in ("notBefore", "notAfter")]
            assert [0, datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC).timestamp()] == times
        writer.close()


async def test_a_peer_lets_nobody_in_by_an_older_tls(tmp_path: Path) -> None:
    async with served(tmp_path) as (_, _, address):
        ((key, shown),) = credentials(tmp_path).to_dial
        shown.minimum_version = shown.maximum_version = TLS_1_2
        assert not await shakes_hands(address, shown, key)
        assert await is_answered(address, tmp_path)


async def test_a_peer_asks_nobody_by_an_older_tls(tmp_path: Path) -> None:
    context = server_context(KEYRING.key, PeerKey.generate(), tmp_path)
    context.minimum_version = context.maximum_version = TLS_1_2

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context) as server:
        ((key, shown),) = credentials(tmp_path).to_dial
        assert not await shakes_hands(server.sockets[0].getsockname(), shown, key)


async def test_nobody_is_asked_whose_certificate_is_not_of_the_swarm(tmp_path: Path) -> None:
    """The server accepts any name, at an address without a known ID.

    The server does not even hear the request.
    """
    context = server_context(SwarmKey(b"x" * 32), PeerKey.generate(), tmp_path)
    context.verify_mode = ssl.CERT_NONE
    heard: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.read(100))
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context) as server:
        client = LinkClient(1_000_000, credentials(tmp_path))
        await client.open()
        with pytest.raises(RemoteError):
            await client.ask(server.sockets[0].getsockname(), Hello(1), Ok, 5)
        await client.close()
    assert not any(heard)


async def test_the_name_of_the_key_admits_no_certificate_of_another_swarm(tmp_path: Path) -> None:
    """The name is open on the wire."""
    context = client_context(SwarmKey(b"x" * 32), PeerKey.generate(), tmp_path)
    context.verify_mode = ssl.CERT_NONE
    said = b""
    async with served(tmp_path) as (server, _, address):
        with suppress(OSError):
            reader, writer = await asyncio.open_connection(*address, ssl=context, server_hostname=KEYRING.key.name)
            try:
                writer.write(UPGRADE)
                said = await reader.read(100)
            finally:
                writer.close()
        assert not said
        assert await is_answered(address, tmp_path)
        assert server.non_members == 1


async def test_a_certificate_for_a_key_no_peer_can_have_is_answered_nothing(tmp_path: Path) -> None:
    """A holder of the swarm key can make such a certificate. Its owner would have no ID, and so never be to blame."""
    said: list[aiohttp.WSMsgType] = []
    async with served(tmp_path) as (server, _, (host, port)), aiohttp.ClientSession() as session:
        try:
            async with session.ws_connect(
                f"https://{host}:{port}{LINK_PATH}", ssl=of_another_kind(tmp_path), server_hostname=KEYRING.key.name
            ) as socket:
                await socket.send_bytes(bytes(8) + pack(Hello(1)))
                said.append((await socket.receive()).type)
        except (aiohttp.ClientError, OSError):
            pass
        assert aiohttp.WSMsgType.BINARY not in said
        assert not server._incoming
        assert await is_answered((host, port), tmp_path)
