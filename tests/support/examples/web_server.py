"""The server of the web of the examples: HTTPS and HTTP on loopback, with certificates of an authority of its own."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.support.examples.example_web import NAMES, ExampleWeb, Response

HTTPS: Final = 443
HTTP: Final = 80


@asynccontextmanager
async def serving(directory: Path) -> AsyncIterator[dict[str, int]]:
    """Serve the web until the end of the context. Gives "ADDRESS:PORT" of each site -> port on loopback.

    The certificates are below the directory: `authority.pem` is trusted by the processes of examples.
    """
    context = _tls_context(directory)
    example = ExampleWeb()

    async def respond(request: web.BaseRequest) -> web.Response:
        host = request.host.partition(":")[0]
        if not request.secure:
            return web.Response(status=301, headers={"Location": f"https://{host}{request.path_qs}"})
        found: Response = example.answer(host, request.path, request.query, request.headers)
        if not found.body:
            return web.Response(status=found.status, headers=found.headers)
        return web.Response(
            text=found.body, status=found.status, headers=found.headers, content_type=found.mime, charset="utf-8"
        )

    runner = web.ServerRunner(web.Server(respond, access_log=None), shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        secure, plain = (address[1] for address in runner.addresses)
        yield {
            f"{address}:{port}": served
            for address in NAMES.values()
            for port, served in ((HTTPS, secure), (HTTP, plain))
        }
    finally:
        ports = {address[1] for address in runner.addresses}
        await runner.cleanup()
        await _hung_up(ports)


async def _hung_up(ports: set[int]) -> None:
    """Close all connections of these ports at once.

    A connection with TLS that is closed waits for the client to say goodbye, and the loop of a test ends sooner than a
    client that is slow or was killed in the middle.
    """
    loop = asyncio.get_running_loop()
    assert isinstance(loop, asyncio.SelectorEventLoop)
    for transport in list(loop._transports.values()):  # type: ignore[attr-defined]
        if transport.get_extra_info("sockname", ("", 0))[1] in ports:
            transport.abort()
    await asyncio.sleep(0)  # An aborted transport closes its socket in the next turn of the loop.


def _tls_context(directory: Path) -> ssl.SSLContext:
    authority_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    authority = _name("Authority of the examples")
    signed = _certificate(authority, authority, authority_key).add_extension(
        x509.BasicConstraints(ca=True, path_length=0), critical=True
    )
    (directory / "authority.pem").write_bytes(
        signed.sign(authority_key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    )
    leaf = _certificate(_name("example.org"), authority, key).add_extension(
        x509.SubjectAlternativeName([x509.DNSName(name) for name in NAMES]), critical=False
    )
    pem, pem_key = directory / "site.pem", directory / "site.key"
    pem.write_bytes(leaf.sign(authority_key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
    pem_key.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(pem, pem_key)
    return context


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _certificate(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder(issuer, subject, key.public_key(), x509.random_serial_number())
    return builder.not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=2))
