"""Feeds seeds to a swarm for a command, and says how it goes.

Tests: tests/cli/seeds/test_command_seeds.py
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress

from kadcrawl.cli.seeds.seed_feeder import FeedFigures, SeedFeeder, Send
from kadcrawl.cli.seeds.seed_file import SeedBatch, SeedFile
from kadcrawl.cli.view.summary import failed_before
from kadcrawl.errors import ConfigError, RemoteError
from kadcrawl.link.client import Address, LinkClient
from kadcrawl.link.client_connection import NO_ANSWER, SILENT, UNREACHED_PREFIX
from kadcrawl.link.wire.messages import Contact
from kadcrawl.link.wire.seed_messages import SeedsStreamed, StreamSeeds
from kadcrawl.settings.contact import needs_contact
from kadcrawl.settings.job import Job
from kadcrawl.system.plural import counted

STREAM_DEADLINE_S = 300.0
"""Seconds for one batch: a slow machine takes half a minute for it."""
SEND_TRIES = 5
"""Tries of one message in a row before the command gives up."""
SEND_RETRY_S, SEND_RETRY_MOST_S = 1.0, 10.0
"""First and longest wait before another try, in seconds."""
SAID_INTERVAL_S = 5.0
"""Seconds between two lines about a feed."""


def why_no_contact(job: Job) -> Callable[[SeedBatch], None]:
    """Return a check that raises ConfigError for seeds of other people, if the job has no contact."""

    def check(batch: SeedBatch) -> None:
        if not job.contact and needs_contact(batch.urls):
            raise ConfigError(
                "the swarm does not say who it is: start it with --contact URL or e-mail address, "
                "so that a site's owner can reach you"
            )

    return check


def send_to(client: LinkClient, peers: Callable[[], Sequence[Contact | Address]], tries: int = SEND_TRIES) -> Send:
    """Return a function that sends to the first of these peers that answers. It raises RemoteError if none does."""

    async def send(message: StreamSeeds) -> SeedsStreamed:
        why = RemoteError("swarm", "no peer is up to take seeds")
        for attempt in range(tries):
            for peer in peers():
                try:
                    return await client.ask(peer, message, SeedsStreamed, STREAM_DEADLINE_S)
                except RemoteError as error:
                    why = error
                    if not _may_pass(error):
                        raise
            await asyncio.sleep(min(SEND_RETRY_S * 2**attempt, SEND_RETRY_MOST_S))
        raise why

    return send


async def feed(
    seeds: SeedFile, send: Send, job: Job, say: Callable[[str], None], on_open: Callable[[], None] = lambda: None
) -> FeedFigures:
    """Feed an input to its end, say how it goes, and return the figures. Raises ConfigError, RemoteError.

    `on_open` is called once the crawl cannot end before the input does.
    """
    said_at = asyncio.get_running_loop().time()

    def on_progress(figures: FeedFigures) -> None:
        nonlocal said_at
        on_open()
        now = asyncio.get_running_loop().time()
        if now >= said_at + SAID_INTERVAL_S:
            said_at = now
            read, added = counted(figures.lines, "line"), counted(figures.seeds, "seed")
            say(f"{read} of {seeds.name} read, {added} added so far")

    try:
        return await SeedFeeder(seeds, send, check=why_no_contact(job), on_progress=on_progress).run()
    finally:
        with suppress(OSError):
            seeds.close()


def summary_of(figures: FeedFigures, seeds: SeedFile) -> list[str]:
    """Return the lines about the whole of an input, for a person."""
    skipped = counted(figures.skipped, "line was", "lines were")
    before = f"; the first {skipped} read before" if figures.skipped else ""
    lines = [f"{counted(figures.seeds, 'seed')} of {seeds.name} added, from {counted(figures.lines, 'line')}{before}"]
    if figures.again:
        lines.append(failed_before(figures.again))
    if seeds.bad:
        lines.append(f"{seeds.bad} lines are no URLs:" if seeds.bad > 1 else "1 line is no URL:")
        lines += [f"  {example}" for example in seeds.examples]
        if seeds.bad > len(seeds.examples):
            lines.append(f"  and {seeds.bad - len(seeds.examples)} more")
    return lines


def _may_pass(error: RemoteError) -> bool:
    """Return whether another try may succeed: the peer was not reached, was cut off, is slow, or is not ready.

    Two batches share a connection. If one of them has no answer in time, the other ends with the connection.
    """
    return error.why.startswith((UNREACHED_PREFIX, NO_ANSWER, SILENT)) or any(
        words in error.why for words in ("connection", "try again")
    )
