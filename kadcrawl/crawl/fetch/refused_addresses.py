"""Warnings tell a person at once about addresses that this peer may not connect to.

A peer without --allow-network that joins a crawl of a private network burdens other peers with its share, and if all
peers lack it, everything fails, unnoticed before the end. On the web, pages may link to such addresses again and again,
so a warning comes at most once in `REFUSED_WARN_INTERVAL_S`.
"""

import logging
from ipaddress import ip_address, ip_network
from math import inf

REFUSED_WARN_INTERVAL_S = 600.0
NETWORKS = tuple(
    map(ip_network, ("127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7"))
)
"""Networks of private use. Such an address is hardly the only address of its network in a crawl."""

log = logging.getLogger(__name__)


class RefusedAddresses:
    """The addresses refused to one peer."""

    def __init__(self) -> None:
        self._warned_at = -inf
        self._warning: str | None = None

    def add(self, address: str, now: float) -> None:
        """An address that is neither public nor allowed was not asked."""
        if now < self._warned_at + REFUSED_WARN_INTERVAL_S:
            return
        self._warned_at = now
        network = network_of(address)
        log.warning("address.refused address=%s allow_network=%s", address, network)
        self._warning = (
            f"{address} is neither public nor allowed here, so this peer does not ask it, and its URLs there fail "
            f"(address_refused) unless another peer may ask it; if it is yours to crawl, stop, give the order "
            f"kadcrawl retry --reason address_refused, and start again with --allow-network {network}"
        )

    def take(self) -> str | None:
        """Return the next warning for a person, or None."""
        warning, self._warning = self._warning, None
        return warning


def network_of(address: str) -> str:
    """Return the network that would have to be allowed, as far as an address tells."""
    ip = ip_address(address.partition("%")[0])
    return str(next((network for network in NETWORKS if ip in network), ip_network(ip)))
