"""A server on loopback that answers as the table of odd servers says: each behavior in a folder of its name.

A behavior of TLS has a port of its own. The certificates are made for each run, by an authority that clients are told
to trust.

Tests: tests/scripts/test_odd_servers.py
"""

import asyncio
import datetime
import ipaddress
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from scripts.odd_servers.behaviors import DRIP, HANG, PAUSE, RESET, Step, Tls
from scripts.odd_servers.table import BEHAVIORS

HOST: Final = "127.0.0.1"
PAUSE_S: Final = 0.2
"""Seconds after which a client has read what came before."""
DRIP_S: Final = 0.05
_AUTHORITY: Final = "Odd Servers CA"


class OddServers:
    """The running servers."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._ports: dict[Tls | None, int] = {}
        self._over = asyncio.Event()
        self._running: set[asyncio.Task[None]] = set()
        self._key = ec.generate_private_key(ec.SECP256R1())
        self.authority = directory / "authority.pem"
        """A file with the certificate of the authority that clients trust."""
        self.authority.write_bytes(_certificate(_AUTHORITY, None, self._key, self._key, 1))

    def url(self, name: str) -> str:
        """Return the URL of a behavior."""
        tls = BEHAVIORS[name].tls
        return f"{'http' if tls is None else 'https'}://{HOST}:{self._ports[tls]}/{name}/"

    @asynccontextmanager
    async def serving(self) -> AsyncIterator["OddServers"]:
        """Serve until the end of the context."""
        async with AsyncExitStack() as stack:
            for tls in dict.fromkeys(behavior.tls for behavior in BEHAVIORS.values()):
                context = None if tls in (None, "none") else self._context(tls)
                connected = self._connected if tls != "none" else self._connected_without_tls
                server = await asyncio.start_server(connected, HOST, 0, ssl=context)
                self._ports[tls] = server.sockets[0].getsockname()[1]
                stack.callback(server.close)
            try:
                yield self
            finally:
                self._over.set()
                await asyncio.gather(*self._running)

    def _context(self, tls: Tls | None) -> ssl.SSLContext:
        key = ec.generate_private_key(ec.SECP256R1())
        match tls:
            case "self-signed":
                chain = _certificate(HOST, HOST, key, key, 1)
            case "unknown authority":
                chain = _certificate(HOST, HOST, key, ec.generate_private_key(ec.SECP256R1()), 1, "Unknown CA")
            case "wrong name":
                chain = _certificate("other", "other.example", key, self._key, 1, _AUTHORITY)
            case _:
                chain = _certificate(HOST, HOST, key, self._key, -1 if tls == "expired" else 1, _AUTHORITY)
        path = self._directory / f"{tls}.pem"
        path.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
            + chain
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(path)
        return context

    async def _connected_without_tls(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer a greeting of TLS by what is no TLS."""
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._running.add(task)
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            await self._answer(_steps(head.split()[1].decode()), reader, writer)
        except (OSError, EOFError, asyncio.LimitOverrunError):
            pass
        finally:
            writer.close()
            self._running.discard(task)

    async def _answer(self, steps: Sequence[Step], reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for step in steps:
            if isinstance(step, bytes):
                writer.write(step)
                await writer.drain()
            elif step == RESET:
                raw: socket.socket = writer.get_extra_info("socket")
                raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                writer.transport.abort()
            elif step == PAUSE:
                await self._waited(PAUSE_S)
            elif step == HANG:
                # A client that takes the connection for free, and asks again on it, is to ask on another one.
                waits = {asyncio.ensure_future(self._over.wait()), asyncio.ensure_future(reader.read(1))}
                _, left = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
                for wait in left:
                    wait.cancel()
                await asyncio.gather(*waits, return_exceptions=True)
            else:
                assert step == DRIP, step
                while not await self._waited(DRIP_S):
                    writer.write(b"x")
                    await writer.drain()

    async def _waited(self, seconds: float) -> bool:
        """Wait for a time, or for the end. Return whether the end has come."""
        try:
            async with asyncio.timeout(seconds):
                await self._over.wait()
        except TimeoutError:
            return False
        return True


def _steps(path: str) -> Sequence[Step]:
    """Return the answer to a request for this path."""
    _, name, rest = path.split("/", 2)
    behavior = BEHAVIORS[name]
    if not rest:
        return behavior.steps
    return (behavior.more.get(rest, b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"),)


def _certificate(
    name: str,
    host: str | None,
    key: ec.EllipticCurvePrivateKey,
    signed_by: ec.EllipticCurvePrivateKey,
    days: float,
    issuer: str = "",
) -> bytes:
    """Return a certificate as PEM: of an authority, or for a host. Without an issuer it is self-signed."""
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)]))
        .issuer_name(x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, issuer or name)]))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=2))
        .not_valid_after(now + datetime.timedelta(days=days))
        .add_extension(x509.BasicConstraints(ca=host is None, path_length=None), critical=True)
    )
    if host is not None:
        is_address = host[0].isdigit()
        other = x509.IPAddress(ipaddress.ip_address(host)) if is_address else x509.DNSName(host)
        made = made.add_extension(x509.SubjectAlternativeName([other]), critical=False)
    return made.sign(signed_by, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
