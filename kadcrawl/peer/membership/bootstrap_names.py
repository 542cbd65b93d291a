"""The addresses behind the names of bootstrap peers, asked of the DNS anew at each try.

A host name may have many addresses, as the headless service of a StatefulSet has one for each peer. A name that begins
with an underscore is that of an SRV record (RFC 2782), which also tells the port: `_kadcrawl._tcp.example.org`. If it
ends with `.local`, the peers of the local network are asked.

Tests: tests/peer/membership/test_bootstrap_names.py
"""

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from kadcrawl.errors import UnansweredError
from kadcrawl.overlay.addresses import ip_version
from kadcrawl.peer.membership.lan import LAN_DOMAIN, peers_on_lan

if TYPE_CHECKING:
    from aiodns import DNSResolver

ADDRESSES_MAX = 32
"""Limit on the addresses of all names together: more would only make a try longer."""
RECORDS_MAX = 32
"""Limit on the SRV records used of one name, those with the least priority first."""
DNS_DEADLINE_S = 10.0
FAMILIES = {4: socket.AF_INET, 6: socket.AF_INET6}

log = logging.getLogger(__name__)

Address = tuple[str, int]
SrvLookup = Callable[[str], Awaitable[Sequence[Address]]]


async def addresses_of(
    bootstrap: Sequence[Address], version: int | None, srv_lookup: SrvLookup | None = None
) -> list[Address]:
    """Return the addresses (IP literal, port) of bootstrap peers (name or IP literal, port), each once, in order.

    Of names, only addresses of IP `version` are taken, or any with None. Raises UnansweredError if no name has one.
    """
    found: dict[Address, None] = {}
    unknown = []
    for name in bootstrap:
        addresses = await _of_name(name, version, srv_lookup or srv_targets)
        found.update(dict.fromkeys(addresses))
        if not addresses:
            unknown.append(name[0])
    if not found:
        names = ", ".join(unknown)
        kind = f"IPv{version} address" if version else "address"
        raise UnansweredError(f"cannot join: there is no {kind} of {names}; check the name given as --bootstrap")
    return [*found][:ADDRESSES_MAX]


def is_srv(name: Address) -> bool:
    """Return whether a bootstrap name is that of an SRV record."""
    return name[0].startswith("_")


async def _of_name(name: Address, version: int | None, srv_lookup: SrvLookup) -> list[Address]:
    if not is_srv(name):
        return await _of_host(name, version)
    try:
        async with asyncio.timeout(DNS_DEADLINE_S):
            is_lan = name[0].rstrip(".").endswith(LAN_DOMAIN)
            targets = (await (peers_on_lan if is_lan else srv_lookup)(name[0]))[:RECORDS_MAX]
    except OSError as error:
        log.info("bootstrap.unresolved name=%s why=%s", name[0], error)
        return []
    return [address for target in targets for address in await _of_host(target, version)]


async def _of_host(name: Address, version: int | None) -> list[Address]:
    """Return the addresses of one host (name or IP literal, port), none if the DNS has none in time."""
    if ip_version(name[0]) is not None:
        return [name]
    loop = asyncio.get_running_loop()
    family = FAMILIES.get(version or 0, socket.AF_UNSPEC)
    try:
        async with asyncio.timeout(DNS_DEADLINE_S):
            found = await loop.getaddrinfo(*name, family=family, type=socket.SOCK_DGRAM)
    except (OSError, UnicodeError) as error:
        log.info("bootstrap.unresolved name=%s why=%s", name[0], error)
        return []
    addresses = [(str(entry[4][0]), int(entry[4][1])) for entry in found]
    return [address for address in addresses if ip_version(address[0]) is not None]


async def srv_targets(name: str, resolver: "DNSResolver | None" = None) -> list[Address]:
    """Return the hosts and ports that an SRV record names, by priority and then weight. Raises OSError."""
    from aiodns import DNSResolver
    from aiodns.error import DNSError
    from pycares import SRVRecordData

    asked = resolver or DNSResolver()
    try:
        answer = (await asked.query_dns(name, "SRV")).answer
    except DNSError as error:
        raise OSError(str(error.args[-1])) from None
    finally:
        await asked.close()
    records = [record.data for record in answer if isinstance(record.data, SRVRecordData)]
    records.sort(key=lambda data: (data.priority, -data.weight))
    return [(target, data.port) for data in records if (target := data.target.rstrip("."))]
