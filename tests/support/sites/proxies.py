"""Real proxies for tests, on loopback: http, https and socks5, with or without credentials; they die and come back."""

import asyncio
import base64
import datetime
import ipaddress
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

Target = tuple[str, int]


def certificate(directory: Path, *names: str, days: float = 1, issuer: str | None = None) -> Path:
    """Write a certificate for these names and addresses, and its key, into one file. Return the file.

    The certificate is self-signed, or signed by this issuer, whose own certificate is nowhere. It is valid from two
    days ago until this number of days from now. With -1 the certificate has expired.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, names[0])])
    now = datetime.datetime.now(datetime.UTC)
    others = [x509.IPAddress(ipaddress.ip_address(name)) if name[0].isdigit() else x509.DNSName(name) for name in names]
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, issuer)]) if issuer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=2))
        .not_valid_after(now + datetime.timedelta(days=days))
        .add_extension(x509.SubjectAlternativeName(others), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(ec.generate_private_key(ec.SECP256R1()) if issuer else key, hashes.SHA256())
    )
    path = directory / f"{names[0]}.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(private + made.public_bytes(serialization.Encoding.PEM))
    return path


def serving_tls(path: Path) -> ssl.SSLContext:
    """Return the context of a server with this certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    return context


class ProxyServer:
    """One proxy. Names of hosts lead where `hosts` says, as if it had looked them up."""

    def __init__(
        self,
        kind: str = "http",
        credentials: tuple[str, str] | None = None,
        tls: ssl.SSLContext | None = None,
        hosts: dict[str, Target] | None = None,
    ) -> None:
        self.kind = kind
        self.credentials = credentials
        self.hosts = hosts or {}
        self.asked: list[str] = []
        """host:port of each request or tunnel."""
        self.heads: list[bytes] = []
        """Heads of the HTTP requests it got."""
        self.refuses: bytes | None = None
        """The status line by which it answers everything."""
        self.breaks = False
        """The proxy closes each connection once it has heard the request."""
        self.port = 0
        self._tls = tls
        self._server: asyncio.Server | None = None
        self._place: socket.socket | None = None
        """Holds the port while nobody listens there, which somebody else might be given meanwhile."""
        self._running: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        who = f"{self.credentials[0]}:{self.credentials[1]}@" if self.credentials else ""
        return f"{self.kind}://{who}127.0.0.1:{self.port}"

    async def start(self) -> None:
        if self._place is None:
            self._place = socket.socket()
            self._place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            self._place.bind(("127.0.0.1", 0))
            self.port = self._place.getsockname()[1]
        self._server = await asyncio.start_server(
            self._connected, "127.0.0.1", self.port, ssl=self._tls, reuse_port=True
        )

    async def die(self) -> None:
        """Close everything at once, and listen no more."""
        if self._server is None:
            return
        server, self._server = self._server, None
        for listening in server.sockets:
            asyncio.get_running_loop().remove_reader(listening.fileno())
        for _ in range(3):  # What a server just accepted leaks if it is closed before it looked at it.
            await asyncio.sleep(0)
        server.close()
        for _ in range(3):  # What was just accepted has no task yet.
            for task in self._running:
                task.cancel()
            await asyncio.gather(*self._running, return_exceptions=True)
            await asyncio.sleep(0)

    @asynccontextmanager
    async def living(self) -> AsyncIterator["ProxyServer"]:
        await self.start()
        try:
            yield self
        finally:
            await self.die()
            if self._place is not None:
                self._place.close()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._running.add(task)
        try:
            if self._server is None:
                return
            await (self._socks if self.kind == "socks5" else self._http)(reader, writer)
        except (OSError, EOFError, ssl.SSLError, asyncio.CancelledError):
            pass
        finally:
            writer.transport.abort()
            self._running.discard(task)

    def _wants(self, host: str, port: int) -> Target | None:
        self.asked.append(f"{host}:{port}")
        return None if self.breaks else self.hosts.get(host, (host, port))

    async def _http(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        self.heads.append(head)
        lines = head.decode().split("\r\n")
        method, where, _ = lines[0].split(" ")
        fields = [line.partition(": ")[::2] for line in lines[1:-2]]
        if self.credentials is not None:
            expected = base64.b64encode(":".join(self.credentials).encode()).decode()
            if ("Proxy-Authorization", f"Basic {expected}") not in fields:
                writer.write(b"HTTP/1.1 407 Who are you\r\nContent-Length: 0\r\n\r\n")
                await writer.drain()
                return
        parts = urlsplit(f"//{where}" if method == "CONNECT" else where)
        assert parts.hostname is not None
        target = self._wants(parts.hostname, parts.port or 80)
        if self.refuses is not None:
            writer.write(self.refuses + b"\r\nContent-Length: 0\r\n\r\n")
            await writer.drain()
            return
        if target is None:
            return
        site_reader, site_writer = await asyncio.open_connection(*target)
        if method == "CONNECT":
            writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        else:
            path = parts.path + (f"?{parts.query}" if parts.query else "")
            kept = [f"{name}: {value}" for name, value in fields if not name.startswith("Proxy-")]
            request = "\r\n".join([f"{method} {path} HTTP/1.1", *kept, "Connection: close", "", ""])
            site_writer.write(request.encode())
        await _pipe(reader, writer, site_reader, site_writer)

    async def _socks(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        _, count = await reader.readexactly(2)
        methods = await reader.readexactly(count)
        wanted = 2 if self.credentials else 0
        writer.write(bytes([5, wanted if wanted in methods else 255]))
        if self.credentials:
            said = []
            await reader.readexactly(1)
            for _ in range(2):
                (length,) = await reader.readexactly(1)
                said.append((await reader.readexactly(length)).decode())
            good = tuple(said) == self.credentials
            writer.write(bytes([1, 0 if good else 1]))
            if not good:
                await writer.drain()
                return
        kind = (await reader.readexactly(4))[3]
        if kind == 1:
            host = str(ipaddress.ip_address(await reader.readexactly(4)))
        else:
            (length,) = await reader.readexactly(1)
            host = (await reader.readexactly(length)).decode()
        port = int.from_bytes(await reader.readexactly(2), "big")
        target = self._wants(host, port)
        if target is None:
            return
        site_reader, site_writer = await asyncio.open_connection(*target)
        writer.write(b"\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00")
        await _pipe(reader, writer, site_reader, site_writer)


async def _pipe(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    site_reader: asyncio.StreamReader,
    site_writer: asyncio.StreamWriter,
) -> None:
    """Carry bytes both ways until the site has closed."""
    up = asyncio.create_task(_copy(reader, site_writer))
    try:
        await _copy(site_reader, writer)
        writer.close()
        await writer.wait_closed()
    finally:
        site_writer.transport.abort()
        up.cancel()
        await asyncio.gather(up, return_exceptions=True)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while chunk := await reader.read(65_536):
            writer.write(chunk)
            await writer.drain()
