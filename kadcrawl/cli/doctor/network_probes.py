"""Tries the network: the addresses of this machine, the port to listen at, other peers, and the site of a URL.

A peer is asked what each newcomer asks: Hello by TCP, and GetRange by UDP. Neither changes anything there. The site is
asked for one page, by the crawl's own fetcher and resolver.
"""

import asyncio
import fcntl
import secrets
import socket
import struct
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from kadcrawl.cli.doctor.reach import Address, BootstrapFacts, PeerAnswer, SiteFacts
from kadcrawl.cli.options import networks_of
from kadcrawl.cli.targets import directories
from kadcrawl.crawl.fetch.address_guard import Guard
from kadcrawl.crawl.fetch.fetcher import Fetcher, user_agent
from kadcrawl.crawl.fetch.late_resolver import LateResolver
from kadcrawl.errors import RemoteError
from kadcrawl.keys import ID_BYTES
from kadcrawl.link.client import NO_KEY, REFUSED_PREFIX, LinkClient
from kadcrawl.link.client_connection import NO_ANSWER, UNREACHED_PREFIX, is_hung_up
from kadcrawl.link.wire.codec import MalformedError
from kadcrawl.link.wire.messages import WIRE_VERSION, GetRange, Hello, OwnRange, Welcome
from kadcrawl.members.credentials import Credentials
from kadcrawl.members.keyring import Keyring
from kadcrawl.members.peer_key import PeerKey
from kadcrawl.members.swarm_key import SwarmKey
from kadcrawl.overlay.datagrams import decode, encode
from kadcrawl.peer.job_store import journaled_job
from kadcrawl.peer.membership.endpoints import ELSEWHERE, FAMILY
from kadcrawl.peer.membership.known_peers import is_same
from kadcrawl.settings.limits import Limits
from kadcrawl.system.clock import wall
from kadcrawl.version import VERSION

RESOLVE_S: Final = 5.0
HELLO_S: Final = 12.0
"""Seconds for the answer of a peer: more than a connection may take to be made (link/client_connection.py)."""
DATAGRAM_TRIES: Final = 4
DATAGRAM_S: Final = 1.0
"""Seconds for the answer to a datagram. Some datagrams are lost on good networks too."""
_IPV4_ADDRESS: Final = 0x8915
"""The request for an interface's address (SIOCGIFADDR, netdevice(7))."""


def own_addresses(ipv6: Path = Path("/proc/net/if_inet6")) -> list[str]:
    """Return the addresses of this machine: of each interface on Linux, elsewhere those that packets leave from."""
    found: list[str] = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        for _, name in socket.if_nameindex():
            with suppress(OSError):  # It has no IPv4 address, or the system has no such request.
                answer = fcntl.ioctl(asking, _IPV4_ADDRESS, struct.pack("256s", name.encode()[:15]))
                found.append(socket.inet_ntoa(answer[20:24]))
    with suppress(OSError):
        for line in ipv6.read_text().splitlines():
            found.append(socket.inet_ntop(socket.AF_INET6, bytes.fromhex(line.split()[0])))
    for version, elsewhere in ELSEWHERE.items():
        with suppress(OSError), socket.socket(FAMILY[version], socket.SOCK_DGRAM) as routed:
            routed.connect(elsewhere)  # This sends nothing.
            found.append(routed.getsockname()[0])
    return list(dict.fromkeys(found))


def listening_errors(address: Address) -> dict[str, OSError | None]:
    """Return the error of listening at this address, by protocol, None where it works. Nothing stays open."""
    family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
    errors: dict[str, OSError | None] = {}
    for name, kind in (("TCP", socket.SOCK_STREAM), ("UDP", socket.SOCK_DGRAM)):
        with socket.socket(family, kind) as tried:
            if kind is socket.SOCK_STREAM:
                tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # As a peer does.
            try:
                tried.bind(address)
                if kind is socket.SOCK_STREAM:
                    tried.listen(1)
                errors[name] = None
            except OSError as error:
                errors[name] = error
    return errors


async def bootstrap_facts(address: Address, key: SwarmKey | None, data: Path) -> BootstrapFacts:
    """Ask the peer at an address, by TCP and then by UDP."""
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(RESOLVE_S):
            found = await loop.getaddrinfo(*address, type=socket.SOCK_STREAM)
    except (OSError, TimeoutError):
        return BootstrapFacts(address=address, answer=PeerAnswer.NO_SUCH_NAME)
    resolved = tuple(dict.fromkeys(str(one[4][0]) for one in found))
    credentials = None
    if key is not None:
        credentials = Credentials(Keyring(key), PeerKey.generate(), None, lambda: 0.0, 0)
    client = LinkClient(Limits().message_bytes_max, credentials)
    await client.open()
    try:
        welcome = await client.ask(address, Hello(WIRE_VERSION), Welcome, HELLO_S)
    except RemoteError as error:
        answer = _answer(error.why, has_key=key is not None)
        return BootstrapFacts(address=address, answer=answer, resolved=resolved, detail=error.why)
    finally:
        await client.close()
    job = journaled_job(data)  # None as well if there is no directory.
    return BootstrapFacts(
        address=address,
        answer=PeerAnswer.MEMBER,
        resolved=resolved,
        udp_answers=await _answers_datagrams(found[0][4], credentials),
        same_swarm=job is None or not welcome.job.seeds or is_same(job, welcome.job),
    )


async def site_facts(url: str, data: Path, allow_networks: tuple[str, ...] = ()) -> tuple[SiteFacts, float | None]:
    """Ask the site of a canonical URL for this page, as the crawl does.

    Without `allow_networks`, the networks of an earlier run on this directory are allowed. Return the facts, and the
    seconds by which the site's clock is ahead, if it tells its time.
    """
    parts = urlsplit(url)
    host = parts.hostname or ""
    addresses, detail = await _resolved(host)
    if not addresses:
        return SiteFacts(host=host, addresses=(), status=None, error="dns", detail=detail), None
    fetcher = Fetcher(Limits(), Guard(_networks(allow_networks, data)), user_agent(VERSION), wall)
    await fetcher.start()
    try:
        result = await fetcher.fetch(url)
    finally:
        await fetcher.close()
    facts = SiteFacts(
        host=host,
        addresses=addresses,
        status=result.status,
        error=None if result.error is None else str(result.error),
        detail=result.detail,
        seconds=result.seconds,
    )
    return facts, _ahead_s(result.header(b"date"), result.started_at, result.seconds)


def _networks(given: tuple[str, ...], data: Path) -> tuple[str, ...]:
    """Return the networks that may be fetched: those given, or those of the first peer that was given any."""
    return given or next((found for peer in directories(data) if (found := networks_of((), peer))), ())


async def _resolved(host: str) -> tuple[list[str], str]:
    """Return the addresses of a host by the crawl's resolver, or a few words on why there are none."""
    resolver = LateResolver()
    try:
        found = await resolver.resolve(host, 0, socket.AF_UNSPEC)
    except OSError as error:
        return [], error.strerror or str(error)
    finally:
        await resolver.close()
    return list(dict.fromkeys(one["host"] for one in found)), ""


def _ahead_s(date: str | None, started_at: datetime, seconds: float) -> float | None:
    """Return the seconds by which a Date header is ahead of this clock, 0 within the time of the answer."""
    if date is None:
        return None
    try:
        told = parsedate_to_datetime(date)
    except ValueError:
        return None
    told = told if told.tzinfo else told.replace(tzinfo=UTC)
    ahead_s = (told - started_at).total_seconds()
    return 0.0 if -1.0 <= ahead_s <= seconds + 1.0 else ahead_s  # The header has whole seconds.


def _answer(why: str, *, has_key: bool) -> PeerAnswer:
    """Return the kind of answer that the link client's reason tells."""
    if why.startswith(REFUSED_PREFIX):
        return PeerAnswer.NO_KEY if NO_KEY in why else PeerAnswer.OTHER_KEY
    if is_hung_up(why) and not has_key:
        return PeerAnswer.KEY_WANTED
    if why.startswith(UNREACHED_PREFIX):
        return PeerAnswer.REFUSED if "refused" in why.lower() else PeerAnswer.SILENT
    if why.startswith(NO_ANSWER):
        return PeerAnswer.SILENT
    return PeerAnswer.NOT_A_PEER


async def _answers_datagrams(address: Sequence[object], credentials: Credentials | None) -> bool:
    """Return whether a peer answers a datagram."""
    me = PeerKey.generate().id if credentials is None else credentials.peer_key.id
    assert len(me) == ID_BYTES
    loop = asyncio.get_running_loop()
    arrived: asyncio.Queue[bytes] = asyncio.Queue(64)
    transport, _ = await loop.create_datagram_endpoint(
        lambda: _Arrivals(arrived), remote_addr=(str(address[0]), int(str(address[1])))
    )
    try:
        for _ in range(DATAGRAM_TRIES):
            request_id = secrets.randbits(64)
            datagram: bytes | None = encode(request_id, GetRange(me))
            if credentials is not None and datagram is not None:
                datagram = credentials.sealing.seal(datagram, None)
            assert datagram is not None, "a greeting needs no proof"
            transport.sendto(datagram)
            with suppress(TimeoutError):
                async with asyncio.timeout(DATAGRAM_S):
                    while not _is_answer(await arrived.get(), request_id, credentials):
                        pass
                    return True
    finally:
        transport.close()
    return False


def _is_answer(datagram: bytes, request_id: int, credentials: Credentials | None) -> bool:
    if credentials is not None:
        opened = credentials.sealing.open(datagram)
        if opened is None or not opened.proven:
            return False
        datagram = opened.plaintext
    try:
        answered, message = decode(datagram)
    except MalformedError:
        return False
    return answered == request_id and isinstance(message, OwnRange)


class _Arrivals(asyncio.DatagramProtocol):
    """Puts datagrams into a queue. Errors of the network count as silence."""

    def __init__(self, queue: asyncio.Queue[bytes]) -> None:
        self._queue = queue

    def datagram_received(self, data: bytes, addr: object) -> None:
        with suppress(asyncio.QueueFull):
            self._queue.put_nowait(data)

    def error_received(self, exc: Exception) -> None:
        pass
