"""Checks of the addresses that datagrams may be sent to. An address of a third party passes them before any use.

Tests: tests/overlay/test_protocol.py, tests/peer/membership/test_endpoints.py
"""

from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address

from kadcrawl.link.wire.messages import Contact

BROADCAST = IPv4Address("255.255.255.255")


@lru_cache(maxsize=4096)
def ip_version(host: str) -> int | None:
    """Return 4 or 6 for an IP literal that one host can answer from, None for anything else.

    Refused are names, unspecified, multicast and broadcast addresses, scoped addresses, unusual spellings, and IPv4 in
    the form of IPv6 (one peer must not appear under two addresses).
    """
    try:
        address = ip_address(host)
    except ValueError:
        return None
    if address.is_unspecified or address.is_multicast or address == BROADCAST or "%" in host or str(address) != host:
        return None
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return None
    return address.version


def sendable(contact: Contact, version: int) -> bool:
    """Return whether a socket of IP `version` can reach `contact`, as far as its address shows."""
    return 1 <= contact.port <= 65_535 and ip_version(contact.host) == version


def why_silent(listening: str, host: str) -> str:
    """Return advice for a peer that listens at `listening` (an IP literal) and has no answer from `host`."""
    theirs = ip_version(host)
    if theirs not in (None, ip_address(listening).version):
        return f"this peer listens on {listening}, which is not IPv{theirs}: choose another address with --listen"
    if ip_address(listening).is_loopback and theirs is not None and not ip_address(host).is_loopback:
        return f"this peer listens on {listening}, where only this machine reaches it: choose another with --listen"
    return "is one running there, and is UDP let through?"
