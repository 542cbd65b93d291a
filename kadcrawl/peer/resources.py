"""The parts that a peer opens before it knows its job: the locked directory, the journal, the keys and the link client.

A full peer and a leaf both open them first and close them last. Everything built later takes this object, or single
fields of it. `open_resources` registers each close with an AsyncExitStack, so a failed start leaves nothing open.

Tests: tests/peer/test_peer.py, tests/peer/membership/test_key_store.py
"""

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from random import Random

from kadcrawl.crawl.fetch.poison_pages import PoisonPages
from kadcrawl.crawl.output.counters import Counters
from kadcrawl.crawl.url_traces import UrlTraces
from kadcrawl.errors import ConfigError, StartError
from kadcrawl.link.client import LinkClient
from kadcrawl.link.peer_score import PeerScore
from kadcrawl.members.credentials import Credentials
from kadcrawl.overlay.waves.activity import Activity
from kadcrawl.peer.directory import Directory
from kadcrawl.peer.environment import Environment
from kadcrawl.peer.job_store import JobRecord
from kadcrawl.peer.membership.key_rotation import KeyRotation, key_rotation
from kadcrawl.settings.config import Config
from kadcrawl.sinks.deliveries import Deliveries
from kadcrawl.store.store import Store
from kadcrawl.system.clock import Clock
from kadcrawl.system.daemon_threads import DaemonThreadExecutor
from kadcrawl.system.open_files import FILES_OF_A_PEER, files_allowed, has_room, how_to_allow

SEED_SLOTS = 2
"""Batches of seeds on their way at a time. A thousand seeds may open as many cells, each with a sync of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """The open parts of one full peer or leaf."""

    config: Config
    environment: Environment
    random: Random
    """The source of every choice by chance."""
    activity: Activity
    store: Store
    jobs: JobRecord
    clock: Clock
    started_at: float
    """The second of `clock` at which this run began."""
    counters: Counters
    """The counters of all runs in this directory."""
    deliveries: Deliveries
    """The sinks."""
    poison_pages: PoisonPages
    traces: UrlTraces | None
    """The traces of URLs, if the configuration asks for them."""
    key_rotation: KeyRotation | None
    """None in a swarm without a key."""
    peer_score: PeerScore
    client: LinkClient
    seed_slots: asyncio.Semaphore
    """Held while up to `BATCH_MAX` seeds are on their way to their owners."""
    note_end: Callable[[BaseException | None], None]
    """Takes the error by which the run ends. The new directory of a start that was refused is removed."""

    @property
    def credentials(self) -> Credentials | None:
        """The certificates and keys of this peer, or None in a swarm without a key."""
        return self.key_rotation.credentials if self.key_rotation is not None else None


def too_few_files() -> str:
    """Return the sentence for a peer that finds no room for its files."""
    allowed = files_allowed() or 0
    return (
        f"a peer opens {FILES_OF_A_PEER} files and more, and this process, which may open {allowed}, has too few left: "
        f"{how_to_allow(2 * allowed)}, or let the program raise its own limit (resource.setrlimit)"
    )


async def open_resources(config: Config, environment: Environment, random: Random, stack: AsyncExitStack) -> Resources:
    """Lock the directory and open the journal and the link client.

    Raises StartError, and ConfigError for a sink or a damaged secret.
    """
    loop = asyncio.get_running_loop()
    if not has_room(FILES_OF_A_PEER):
        raise StartError(too_few_files())
    deliveries = Deliveries(config.data, config.sinks, DaemonThreadExecutor(), loop.time)
    directory = Directory(config.data)
    stack.callback(directory.close)
    poison_pages = environment.poison_pages(config.data)
    stack.callback(poison_pages.close)
    limits = config.limits
    page_bytes = environment.journal_page_bytes
    store = Store(config.data, limits.commit_spacing_s, environment.sync, limits, page_bytes)
    stack.callback(store.close)
    jobs = JobRecord(store)

    def note_end(error: BaseException | None) -> None:
        if isinstance(error, (StartError, ConfigError)) and not (jobs.is_kept or store.journal.has_failed):
            directory.is_refused = True

    stack.push(lambda kind, error, traceback: note_end(error))
    clock = Clock(loop, environment.wall)
    started_at = clock.now()
    store.saved_time.restore(started_at)
    counters = Counters.from_bytes(store.meta.get("totals"))
    rotation = key_rotation(config, store, clock)
    if rotation is not None:
        await store.journal.commit()  # The number of this run must be on disk before any certificate uses it.
    traces = _open_traces(config, clock, random, stack)
    peer_score = PeerScore()
    credentials = rotation.credentials if rotation is not None else None
    client = LinkClient(config.limits.message_bytes_max, credentials, peer_score, environment.process_links)
    await client.open()
    stack.push_async_callback(client.close)
    return Resources(
        config=config,
        environment=environment,
        random=random,
        activity=Activity(),
        store=store,
        jobs=jobs,
        clock=clock,
        started_at=started_at,
        counters=counters,
        deliveries=deliveries,
        poison_pages=poison_pages,
        traces=traces,
        key_rotation=rotation,
        peer_score=peer_score,
        client=client,
        seed_slots=asyncio.Semaphore(SEED_SLOTS),
        note_end=note_end,
    )


def _open_traces(config: Config, clock: Clock, random: Random, stack: AsyncExitStack) -> UrlTraces | None:
    """Return the traces that a configuration asks for. Raises ConfigError if their package is missing."""
    if config.traces is None:
        return None
    try:
        from kadcrawl.peer.tracing.otel_traces import OtelTraces  # Not at the top: the library is an extra.
    except ModuleNotFoundError as error:
        raise ConfigError("traces need a package: pip install 'kadcrawl[traces]'") from error

    traces = OtelTraces(config.traces, config.trace_share, clock, random)
    stack.push_async_callback(traces.close)
    return traces
