"""A server that answers byte by byte from a row of a table.

The answer has no end where the row says so.
"""

import asyncio
from collections.abc import Sequence

from tests.support.sites.scripted_site import DRIP_S, ScriptedSite, Step


class Endless(bytes):
    """A step: these bytes again and again, until the client has gone."""


class Drip(bytes):
    """A step: as `Endless`, one now and then."""


class HostileSite(ScriptedSite):
    """A `ScriptedSite` with endless steps."""

    def __init__(self) -> None:
        super().__init__()
        self.sent = 0
        """Bytes of endless steps that went out, which the client need not have read."""

    @property
    def is_connected(self) -> bool:
        """Return whether a client is still connected, as far as the server knows."""
        return bool(self._running)

    async def _answer(self, steps: Sequence[Step], writer: asyncio.StreamWriter) -> bool:
        keep = False
        for step in steps:
            if not isinstance(step, Endless | Drip):
                keep = await super()._answer([step], writer) or keep
                continue
            while not self._over.is_set():
                writer.write(step)
                self.sent += len(step)
                await writer.drain()
                await asyncio.sleep(0 if isinstance(step, Endless) else DRIP_S)
        return keep
