"""Peers on the same local network find each other by DNS-SD over multicast DNS (RFC 6763, RFC 6762).

A peer with `Config.announce` names its address to all machines there. A joining peer asks for such names when its
bootstrap name ends with `.local`. An answer proves nothing: the peer at the address must have the swarm's key, as
everywhere.

Tests: tests/peer/membership/test_lan.py
"""

import asyncio
import logging
import re
import socket
from importlib.util import find_spec
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any

from kadcrawl.errors import StartError
from kadcrawl.link.wire.messages import Contact
from kadcrawl.overlay.addresses import ip_version
from kadcrawl.system.event import Event

if TYPE_CHECKING:
    from zeroconf.asyncio import AsyncZeroconf

LAN_DOMAIN = ".local"
SERVICE = "_kadcrawl._tcp.local."
LISTEN_S = 2.0
"""Seconds for which a joining peer collects answers."""
ASK_S = 1.0
"""Seconds for the address of one peer that answered."""
ANSWERS_MAX = 32
"""Limit on the answers that are looked at."""

_SERVICE_NAME = re.compile(r"_[A-Za-z0-9-]{1,15}\._(tcp|udp)\.local\.?")
"""RFC 6763, sections 7 and 7.2."""

log = logging.getLogger(__name__)

Address = tuple[str, int]


def require_library() -> None:
    """Raise StartError without the library for multicast DNS."""
    if find_spec("zeroconf") is None:
        raise StartError("peers of a local network are found by the package zeroconf: pip install 'kadcrawl[lan]'")


class LanBeacon:
    """The announcement of one peer."""

    def __init__(self, contact: Contact) -> None:
        self._contact = contact

    async def run(self) -> None:
        """Announce the peer until cancelled. A network without multicast is logged."""
        from zeroconf import Error
        from zeroconf.asyncio import AsyncServiceInfo

        name, address = self._contact.id.hex()[:16], ip_address(self._contact.host)
        info = AsyncServiceInfo(
            SERVICE, f"{name}.{SERVICE}", self._contact.port, addresses=[address.packed], server=f"{name}.local."
        )
        try:
            _try_address(self._contact.host)  # The library leaves a socket open if it fails.
            zeroconf = _multicast([self._contact.host], address.version)
        except OSError as error:
            log.warning("lan.not_announced why=%s", error)
            return
        try:
            await zeroconf.async_register_service(info)
            log.info("lan.announced at=%s:%d", *self._contact.address)
            await Event().wait()
        except (OSError, Error) as error:
            log.warning("lan.not_announced why=%s", error)
        finally:
            await zeroconf.async_unregister_all_services()
            await zeroconf.async_close()


async def peers_on_lan(name: str) -> list[Address]:
    """Return the addresses of the peers that announce a service of this name. Raises OSError, StartError."""
    require_library()
    if _SERVICE_NAME.fullmatch(name) is None:
        raise OSError(f"{name} is no name of a service, such as {SERVICE.rstrip('.')}")
    from zeroconf import InterfaceChoice
    from zeroconf.asyncio import AsyncServiceBrowser, AsyncServiceInfo

    service, heard = f"{name.rstrip('.')}.", set[str]()

    def change(*, name: str, **_: Any) -> None:
        if len(heard) < ANSWERS_MAX:
            heard.add(name)

    zeroconf = _multicast(InterfaceChoice.All, 4)
    try:
        browser = AsyncServiceBrowser(zeroconf.zeroconf, service, handlers=[change])
        await asyncio.sleep(LISTEN_S)
        await browser.async_cancel()
        found = [AsyncServiceInfo(service, each) for each in sorted(heard)]
        await asyncio.gather(*(info.async_request(zeroconf.zeroconf, ASK_S * 1_000) for info in found))
    finally:
        await zeroconf.async_close()
    return [
        (host, info.port)
        for info in found
        for host in info.parsed_addresses()
        if info.port and ip_version(host) is not None
    ]


def _multicast(interfaces: Any, version: int) -> "AsyncZeroconf":
    """Return an end of multicast DNS on these interfaces. Raises OSError."""
    from zeroconf import IPVersion
    from zeroconf.asyncio import AsyncZeroconf

    return AsyncZeroconf(interfaces, ip_version=IPVersion.V6Only if version == 6 else IPVersion.V4Only)


def _try_address(host: str) -> None:
    """Raise OSError if packets cannot leave this machine from an IP address."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM) as tried:
        tried.bind((host, 0))
