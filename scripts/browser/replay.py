"""`Replay` serves a recording of a simulated swarm by the server of the dashboard, one look at a time.

The hub, its document, its changes, and their stream are those of a running peer. Only the swarm is a file.

Tests: tests/web/pages/test_simulated_swarm.py
"""

import asyncio
import secrets
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from kadcrawl.cli.commands.web import read_dashboard
from kadcrawl.errors import ConfigError
from kadcrawl.system.file_names import DASHBOARD
from kadcrawl.web.listener import DashboardListener
from kadcrawl.web.source import DashboardSource
from kadcrawl.web.tokens import NONCE_BYTES, make_token
from sim.dashboard_recording import Gathered


class Replay:
    """One recording, whose looks come when they are asked for."""

    def __init__(self, looks: Sequence[Gathered]) -> None:
        self.looks = looks
        self.url = ""
        """The address with a token, once it is served."""
        self._shown = 0
        self._due: asyncio.Queue[Gathered] = asyncio.Queue()
        self._now = looks[0].at

    @property
    def is_over(self) -> bool:
        """True if the last look was told."""
        return self._shown == len(self.looks)

    def tell_next(self) -> Gathered:
        """Tell all viewers the next look, and return it."""
        look = self.looks[self._shown]
        self._shown += 1
        self._due.put_nowait(look)
        return look

    def now(self) -> float:
        """Return the second of the look that was told last."""
        return self._now

    async def gather(self) -> dict[str, Any]:
        """Return the next look once it is told."""
        look = await self._due.get()
        self._now = look.at
        return dict(look.document)


@asynccontextmanager
async def replaying(looks: Sequence[Gathered], directory: Path) -> AsyncIterator[Replay]:
    """Serve a recording on loopback until the block ends. `directory` gets the file of the dashboard."""
    replay = Replay(looks)

    async def refuse(_: Any) -> Any:
        raise ConfigError("this is a recording")

    def check(_: str) -> dict[str, Any]:
        raise ConfigError("this is a recording")

    key = secrets.token_bytes(32)
    source = DashboardSource(
        data=directory,
        now=replay.now,
        session_key=lambda: key,
        gather=replay.gather,
        check=check,
        find=refuse,
        order=refuse,
    )
    listener = DashboardListener(source, ("127.0.0.1", 0), control=False)
    with mock.patch.multiple("kadcrawl.web.hub", STEP_MOST_S=0.0, REST_S=0.0):
        await listener.open()
        try:
            secret = read_dashboard(directory / DASHBOARD).secret
            replay.url = f"{listener.url}#token={make_token(secret, replay.now(), secrets.token_bytes(NONCE_BYTES))}"
            yield replay
        finally:
            await listener.close()
