"""The address guard decides which IP addresses the crawl may connect to.

The guard is the only gate between links on the web and the machine's own networks. A link may lead anywhere, and a name
may resolve to one address when it is checked and to another when it is connected to (DNS rebinding). So the guard
decides nothing from URLs or names: the connector asks `Guard.socket` for a socket to each address that it is about to
connect to, whether the address came from a literal, a name or a redirect. A forbidden address gets no socket.
Invariant: the fetcher never connects to an address that `Guard.permits` refuses.

A proxy connects to the site itself, so the guard sees only the proxy's address. Before anything is sent,
`Guard.permits_host` checks the site's host: literals and names that mean something only inside a network are refused
here as well. The proxy looks up all other names, and their meaning there is unknown here.

`is_public` follows the IANA special-purpose registries (RFC 6890). IPv6 is public inside 2000::/3 only, which leaves
out the forms that carry an IPv4 address past a careless check (NAT64, ::a.b.c.d, ...). 6to4 and Teredo are cut out of
2000::/3. An IPv4-mapped address is judged as the IPv4 address that the kernel would connect to.
"""

import errno
import socket
from collections.abc import Callable, Sequence
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network

from aiohappyeyeballs import AddrInfoType
from aiohttp.abc import AbstractResolver, ResolveResult

_GLOBAL_UNICAST = IPv6Network("2000::/3")
# Called global by the standard library of at least one supported Python.
_NOT_PUBLIC = tuple(
    ip_network(network)
    for network in (
        "168.63.129.16/32",  # Azure's host agent: answers only from inside a virtual machine
        "192.0.0.0/24",  # IETF protocol assignments; Oracle's metadata service is among them
        "192.88.99.0/24",  # 6to4 relays (RFC 7526)
        "2001::/23",  # IETF protocol assignments: Teredo, ORCHID, benchmarks
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4: carries any IPv4 address
        "3fff::/20",  # documentation (RFC 9637)
    )
)
_LOCALHOST = "127.0.0.1"
_INSIDE = frozenset({"local", "localdomain", "internal", "intranet", "private", "lan", "home", "corp", "arpa", "onion"})
"""Top-level domains that never lead to a public address (RFC 6762, 7686, 8375 and ICANN's reserved names). ``arpa``
holds no web sites."""


class AddressRefused(OSError):
    """The address is neither public nor allowed by ``--allow-network``, and `address` names it.

    The text is the same for every address, as happy eyeballs folds equal errors of one attempt into one.
    """

    def __init__(self, address: str) -> None:
        super().__init__(errno.EACCES, "not a public address")
        self.address = address


class Guard:
    """Decides which addresses may be connected to."""

    def __init__(
        self, allow_networks: Sequence[str] = (), on_refused: Callable[[str], None] = lambda address: None
    ) -> None:
        """Permit the networks `allow_networks` (CIDRs) although they are not public.

        `on_refused` is called with each refused address. Raises ValueError if a network is malformed.
        """
        self._allowed = tuple(ip_network(network) for network in allow_networks)
        self._on_refused = on_refused

    def permits(self, address: str) -> bool:
        """Tell whether a numeric address may be connected to. What is no address (a name, say) may not."""
        parsed = _parse(address)
        if parsed is None:
            return False
        return _public(parsed) or any(parsed in network for network in self._allowed)

    def permits_host(self, host: str) -> bool:
        """Tell whether a proxy may be asked for this host of a canonical URL, which it will look up itself.

        A literal address is judged as by `permits`, and localhost as 127.0.0.1; `on_refused` hears of a refused one.
        Names without a dot and those of domains that exist only inside networks are refused.
        """
        name = host.strip("[]").rstrip(".").lower()
        last = name.rpartition(".")[2]
        address = _LOCALHOST if last == "localhost" else name
        if _parse(address) is None:
            return "." in name and last not in _INSIDE
        if self.permits(address):
            return True
        self._on_refused(address)
        return False

    def socket(self, addr_info: AddrInfoType) -> socket.socket:
        """Return a socket for the address, as ``aiohttp.TCPConnector(socket_factory=...)`` asks.

        Raises AddressRefused for an address that is not permitted.
        """
        family, kind, protocol, _, place = addr_info
        address = str(place[0])
        if not self.permits(address):
            self._on_refused(address)
            raise AddressRefused(address)
        return socket.socket(family, kind, protocol)


class PermittedOnly(AbstractResolver):
    """A resolver that leaves out forbidden addresses of a name that has permitted addresses as well.

    The guard would refuse a forbidden address anyway. But a refusal is final, and would hide that the permitted
    addresses cannot be reached just now, which may pass.
    """

    def __init__(self, resolver: AbstractResolver, guard: Guard) -> None:
        self._resolver = resolver
        self._guard = guard

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        found = await self._resolver.resolve(host, port, family)
        return [one for one in found if self._guard.permits(one["host"])] or found

    async def close(self) -> None:
        await self._resolver.close()


def is_public(address: str) -> bool:
    """Tell whether a numeric IPv4 or IPv6 address, with or without zone, is one of the public internet's."""
    parsed = _parse(address)
    return parsed is not None and _public(parsed)


def _parse(address: str) -> IPv4Address | IPv6Address | None:
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return None
    if isinstance(parsed, IPv6Address) and parsed.ipv4_mapped is not None:
        return parsed.ipv4_mapped
    return parsed


def _public(address: IPv4Address | IPv6Address) -> bool:
    if isinstance(address, IPv6Address) and address not in _GLOBAL_UNICAST:
        return False
    if address.is_multicast or address.is_reserved or not address.is_global:
        return False
    return not any(address in network for network in _NOT_PUBLIC)
