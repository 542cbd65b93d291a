"""The first contact of a peer with its swarm: a ping to addresses whose peers are not known yet.

Tests: tests/overlay/test_overlay.py, tests/peer/membership/test_bootstrap.py
"""

import asyncio
import socket
from collections.abc import Sequence
from ipaddress import ip_address

from kadcrawl.errors import StartError
from kadcrawl.link.wire.messages import Contact
from kadcrawl.overlay.addresses import ip_version, why_silent
from kadcrawl.overlay.membership import Membership
from kadcrawl.overlay.pending_requests import Address
from kadcrawl.overlay.protocol import DatagramProtocol
from kadcrawl.overlay.settings import OverlaySettings


async def greet_any(
    protocol: DatagramProtocol,
    membership: Membership,
    me: Contact,
    bootstrap: Sequence[Address],
    settings: OverlaySettings,
) -> None:
    """Ping the `bootstrap` addresses in rounds until another peer answers, and let it into the membership.

    Raises StartError when no peer answers.
    """
    for _ in range(settings.join_tries):
        async with asyncio.TaskGroup() as group:
            greetings = [group.create_task(_greet(protocol, membership, me, address)) for address in bootstrap]
        if any(greeting.result() for greeting in greetings):
            return
        await asyncio.sleep(settings.resend_s)
    raise StartError(f"no peer answered at {names_of(bootstrap)}; {why_silent(me.host, bootstrap[0][0])}")


def names_of(bootstrap: Sequence[Address]) -> str:
    """Return the addresses as text for an error message."""
    return ", ".join(f"{host}:{port}" for host, port in bootstrap)


async def _greet(protocol: DatagramProtocol, membership: Membership, me: Contact, address: Address) -> bool:
    """Ping one address (name or IP literal, port). Return whether another peer answered."""
    host, port = address
    loop = asyncio.get_running_loop()
    if ip_version(host) is None:
        family = socket.AF_INET6 if ":" in me.host else socket.AF_INET
        try:
            found = await loop.getaddrinfo(host, port, family=family, type=socket.SOCK_DGRAM)
        except OSError:
            return False
        host = str(found[0][4][0])
    if ip_version(host) not in (None, ip_address(me.host).version):
        return False  # The own socket cannot reach it.
    answered, pong = await protocol.ping((host, port), me.id)
    if not answered or pong.sender == me.id:
        return False
    membership.heard(Contact(pong.sender, host, port), loop.time())
    return True
