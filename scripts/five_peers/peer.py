"""One peer's process: the `kadcrawl` command, fetching from the address named first.

``python -m scripts.five_peers.peer 127.0.1.3 join ...``. On loopback all would ask from 127.0.0.1 otherwise.
"""

import socket
import sys

from aiohappyeyeballs import AddrInfoType

from kadcrawl.cli import main
from kadcrawl.crawl.fetch.address_guard import Guard


def fetch_from(address: str) -> None:
    """Let every socket a fetcher of this process connects to a site be bound to `address`."""
    unbound = Guard.socket

    def bound(self: Guard, addr_info: AddrInfoType) -> socket.socket:
        made = unbound(self, addr_info)
        made.bind((address, 0))
        return made

    Guard.socket = bound  # type: ignore[method-assign]


if __name__ == "__main__":
    fetch_from(sys.argv.pop(1))
    main()
