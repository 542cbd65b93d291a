"""Members whose certificates OpenSSL takes and a peer does not: any member can sign them."""

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from kadcrawl.errors import RemoteError
from kadcrawl.link.client import LinkClient
from kadcrawl.link.server import LinkServer
from kadcrawl.link.wire.messages import Contact, Hello, Ok
from kadcrawl.members import der
from kadcrawl.members.credentials import Credentials
from tests.support.links.member_links import credentials, is_answered, served
from tests.support.waiting import until

VERSIONS = [2, 4]


def of_version(usual: bytes, authority: Ed25519PrivateKey, version: int) -> bytes:
    """Return a certificate whose version is said to be another."""
    was, before = x509.load_der_x509_certificate(usual).tbs_certificate_bytes, b"\xa0\x03\x02\x01"
    signed = was.replace(before + b"\x02", before + bytes([version - 1]), 1)
    assert signed != was
    return usual[:-64].replace(was, signed) + authority.sign(signed)


@contextmanager
def certified(version: int, place: Path) -> Iterator[Credentials]:
    """Give the credentials of a member with such a certificate."""
    make = der.certificate

    def other(
        subject: str, public: bytes, issuer: str, authority: Ed25519PrivateKey, *, serial: int, signs: bool
    ) -> bytes:
        usual = make(subject, public, issuer, authority, serial=serial, signs=signs)
        return usual if signs else of_version(usual, authority, version)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(der, "certificate", other)
        made = credentials(place)
        assert made.to_dial
        assert made.server_context(made.keyring.key)
        yield made


@pytest.mark.parametrize("version", VERSIONS)
async def test_who_asks_by_one_is_sent_away_without_a_line_of_the_log(
    version: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with certified(version, tmp_path) as shown:
        client = LinkClient(1_000_000, shown)
    await client.open()
    async with served(tmp_path) as (_, _, address):
        with pytest.raises(RemoteError, match="the connection is lost"):
            await client.ask(address, Hello(1), Ok, 10)
        assert await is_answered(address, tmp_path)
    await client.close()
    assert not caplog.records


@pytest.mark.parametrize("version", VERSIONS)
async def test_who_answers_by_one_is_not_asked_and_the_connection_ends(
    version: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with certified(version, tmp_path) as shown:
        server = LinkServer(1_000_000, shown)
    port = await server.listen("127.0.0.1", 0)
    client = LinkClient(1_000_000, credentials(tmp_path))
    await client.open()
    with pytest.raises(RemoteError, match="is another peer"):
        await client.ask(Contact(shown.peer_key.id, "127.0.0.1", port), Hello(1), Ok, 10)
    await until(lambda: not client._tasks and not server._incoming)
    await client.close()
    await server.close()
    assert not caplog.records


async def test_a_dialler_closes_what_it_cannot_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: ssl.SSLObject) -> bytes:
        raise OSError("unreadable")

    async with served(tmp_path) as (server, _, address):
        client = LinkClient(1_000_000, credentials(tmp_path))
        await client.open()
        monkeypatch.setattr("kadcrawl.link.client.peer_id_of", fail)
        with pytest.raises(RemoteError, match="unreadable"):
            await client.ask(Contact(bytes(20), *address), Hello(1), Ok, 10)
        await until(lambda: not client._tasks and not server._incoming)
        await client.close()
