"""The names of shared clocks, and the times of their leases.

The name of a clock is hashed as a site is, so each clock lies in a cell and has an owner. No site has such a name, as
the names of sites have no space. A decision.

Tests: tests/crawl/clocks/test_clock_keeper.py, tests/crawl/clocks/test_shared_clock.py
"""

from ipaddress import IPv6Address, ip_address

LEASE_S = 6.0
"""Seconds of a lease, counted from the question. Each question serves the pages of so many seconds, and a peer that
dies keeps a clock from all others for as long."""
REACHES_S = 3.0
"""Seconds after which a request has surely reached its server. A peer that makes the request for the holder begins
within 1.5 s (crawl/reach/relay_host.py)."""
REST_S = LEASE_S + REACHES_S
"""Seconds after which no lease of a former owner counts."""
AHEAD_S = 1.0
"""Seconds before a clock is free from which it is leased, so that the next holder need not ask at the very instant."""

IP = "ip "
HOST = "host "


def ip_clock(address: str) -> str:
    """Return the name of the clock of a numeric IP address."""
    return IP + plain_address(address)


def host_clock(authority: str) -> str:
    """Return the name of the clock of a host with its port."""
    return HOST + authority


def is_clock(name: str) -> bool:
    """Return whether this is the name of a shared clock, and of no site."""
    return name.startswith((IP, HOST))


def is_of_host(name: str) -> bool:
    """Return whether this is the name of the clock of a host."""
    return name.startswith(HOST)


def plain_address(address: str) -> str:
    """Return the one spelling of a numeric IP address, without zone. Raises ValueError."""
    parsed = ip_address(address.partition("%")[0])
    if isinstance(parsed, IPv6Address) and parsed.ipv4_mapped is not None:
        parsed = parsed.ipv4_mapped
    return str(parsed)
