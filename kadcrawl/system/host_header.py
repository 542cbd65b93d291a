"""The host that a request names in its Host header: a listener for this machine answers requests to no other name.

A page in a browser could otherwise read the answers by a name of its own that leads to 127.0.0.1 (DNS rebinding).

Tests: tests/peer/monitoring/test_request_check.py, tests/web/test_request_guard.py
"""

import ipaddress


def is_loopback(host: str) -> bool:
    """Return whether only this machine reaches a listener at an IP address."""
    return ipaddress.ip_address(host).is_loopback


def named_host(host: str) -> str:
    """Return the name or address in a Host header, without the port."""
    name = host.strip()
    name = name[1:].partition("]")[0] if name.startswith("[") else name.partition(":")[0]
    return name.lower().rstrip(".")


def is_safe(host: str) -> bool:
    """Return whether a Host header names an IP address or this machine, and so no name of somebody else."""
    name = named_host(host)
    if name == "localhost":
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
