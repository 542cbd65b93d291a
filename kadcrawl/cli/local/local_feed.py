"""Feeds the seeds of ``--seeds`` to a local swarm, by its first peer that is alive.

If that peer dies, the feed goes on by another one. All peers are paused until the seeds are read, unless the scope
depends on no seed: a link that is found before the seed of its host is heard of would be left out for good.

Tests: tests/cli/seeds/test_command_seeds.py
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from kadcrawl.cli.ask import asking
from kadcrawl.cli.seeds.feeding import feed, send_to, summary_of
from kadcrawl.cli.seeds.seed_file import SeedFile
from kadcrawl.errors import ConfigError
from kadcrawl.link.client import Address
from kadcrawl.members.swarm_key import SwarmKey
from kadcrawl.settings.job import Job
from kadcrawl.system.event import Event

TRIES = 60
"""Tries of one message, some ten minutes: peers that all died are started again meanwhile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalFeed:
    """A feed of one input to the peers of a local swarm."""

    seeds: SeedFile
    job: Job
    key: SwarmKey | None
    peers: Callable[[], Sequence[Address]]
    """Returns the addresses of the peers that are alive."""
    say: Callable[[str], None]
    let_go: Callable[[], Awaitable[None]]
    """Lets the whole swarm fetch."""

    async def run(self, *, has_seeds: bool) -> None:
        """Feed the input to its end, and let the swarm fetch. `has_seeds` is true if it has others.

        Raises ConfigError, RemoteError, StartError.
        """
        is_open = Event()
        async with asking(self.key) as client, asyncio.TaskGroup() as group:
            if self.job.scope == "any":
                group.create_task(self._let_go_once(is_open), name="let go")
            send = send_to(client, self.peers, TRIES)
            figures = await feed(self.seeds, send, self.job, self.say, on_open=is_open.set)
        for line in summary_of(figures, self.seeds):
            self.say(line)
        if not (has_seeds or figures.seeds or figures.skipped):
            raise ConfigError(f"{self.seeds.name} has no URL to begin at")
        if self.job.scope != "any":
            await self.let_go()

    async def _let_go_once(self, is_open: Event) -> None:
        await is_open.wait()
        await self.let_go()
