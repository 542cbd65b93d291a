"""A peer that found no bootstrap peer begins alone. While it stays alone, it asks the bootstrap names again.

All other peers may have new addresses, as containers have after a restart, so that only their names lead to them.

Tests: tests/peer/test_rejoin.py
"""

import asyncio
import logging
from collections.abc import Sequence

from kadcrawl.errors import StartError
from kadcrawl.overlay.addresses import ip_version
from kadcrawl.peer.membership.bootstrap_names import addresses_of
from kadcrawl.peer.membership.known_peers import is_same, welcome_from
from kadcrawl.peer.runtime import Runtime

DIAL_EVERY_S = 15.0

log = logging.getLogger(__name__)


class BootstrapDialer:
    """Looks for the swarm of one peer at its bootstrap names."""

    def __init__(self, runtime: Runtime, bootstrap: Sequence[tuple[str, int]]) -> None:
        """`bootstrap` has names or IP literals, each with a port."""
        self._runtime = runtime
        self._bootstrap = bootstrap

    async def run(self) -> None:
        """Dial now and then, while the peer knows no other."""
        while True:
            await asyncio.sleep(DIAL_EVERY_S)
            if not self._runtime.overlay.contacts():
                await self._dial()

    async def _dial(self) -> None:
        """Greet the first peer that serves the same job, so that both become contacts."""
        own = self._runtime.contact.address
        try:
            for address in await addresses_of(self._bootstrap, ip_version(own[0])):
                if address != own and await self._serves_this_job(address):
                    await self._runtime.overlay.greet([address])
                    log.info("bootstrap.found at=%s:%d", *address)
                    return
        except StartError as error:
            log.info("bootstrap.silent why=%s", error)

    async def _serves_this_job(self, address: tuple[str, int]) -> bool:
        welcome = await welcome_from(self._runtime.resources.client, address)
        return welcome is not None and is_same(self._runtime.job, welcome.job)
