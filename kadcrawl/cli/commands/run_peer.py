"""One peer of a swarm over several machines, in this process: `kadcrawl start`, `kadcrawl join`, and `join --leaf`.

A peer whose disk is full ends; the command does not: it says so, waits for room, and enters the peer again.

Tests: tests/cli/commands/test_run_peer.py, tests/cli/test_command_live.py, tests/peer/test_disk_full.py
"""

import asyncio
import logging
import shlex
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from kadcrawl.cli.exits import INTERRUPTED, UNDELIVERED, code_of_limit
from kadcrawl.cli.log_file import log_to, secrets_of_machine
from kadcrawl.cli.machine import LogSettings
from kadcrawl.cli.own_peers import note_peer
from kadcrawl.cli.run import Interrupts, first_of, until_stopped
from kadcrawl.cli.say import tell
from kadcrawl.cli.seeds.feeding import STREAM_DEADLINE_S, feed, summary_of
from kadcrawl.cli.seeds.seed_file import SeedFile
from kadcrawl.cli.view.addresses import shown
from kadcrawl.cli.view.failed_examples import by_counted_reason, examples_at_the_ends
from kadcrawl.cli.view.join_hint import how_to_join
from kadcrawl.cli.view.last_lines import CrawlEnd, last_lines
from kadcrawl.cli.view.limit_end import ReachedLimit, SwarmView, reached_limit, swarm_end_sentence
from kadcrawl.cli.view.live.expectation import Expectation
from kadcrawl.cli.view.live.sites import SiteReport, report_sites
from kadcrawl.cli.view.orders import order_lines
from kadcrawl.cli.view.progress import Progress
from kadcrawl.cli.view.shortfalls import say_shortfalls
from kadcrawl.cli.view.summary import failed_before, reasons
from kadcrawl.crawl.disk_guard import Pauses
from kadcrawl.errors import ConfigError, DiskFullError, RemoteError, StartError, UnansweredError
from kadcrawl.link.wire.given_order import GivenOrder, orders_in_force
from kadcrawl.link.wire.messages import PeerRow, SeedsStreamed, StreamSeeds
from kadcrawl.link.wire.order_messages import StandingOrder
from kadcrawl.link.wire.peer_state import PeerState, state_text
from kadcrawl.link.wire.unresolved import still_failed
from kadcrawl.settings import durations
from kadcrawl.settings.job_changes import changed
from kadcrawl.settings.job_limits import limits_with
from kadcrawl.settings.site_rules import secrets_of
from kadcrawl.system.event import Event
from kadcrawl.system.file_names import SWARM_KEY
from kadcrawl.system.plural import counted
from kadcrawl.system.printable import printable
from kadcrawl.system.start_up_memory import give_back, give_back_again

if TYPE_CHECKING:  # A leaf runs without the rooms of a full peer, and a peer without those of a leaf.
    from kadcrawl.leaf.leaf import Leaf
    from kadcrawl.peer import Peer

SHOW_INTERVAL_S = 1.0
SETTLED_S = 8.0
"""Seconds after which a peer has spoken with those that it meets first."""
ASK_AGAIN_S = 2.0
"""The time between two tries of a peer that waits for its swarm."""

log = logging.getLogger(__name__)

Kind = TypeVar("Kind", "Peer", "Leaf")
Enter = Callable[[Kind], Coroutine[Any, Any, None]]
Feed = Callable[[Kind, Progress], Coroutine[Any, Any, None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerRun(Generic[Kind]):
    """The differences between a peer and a leaf, for the command that runs them."""

    make: Callable[[], Kind]
    enter: Enter[Kind]
    enter_again: Enter[Kind]
    """Enters the swarm again, after a pause."""
    title: str
    is_full: bool
    """True for a peer, False for a leaf."""
    greeting: Callable[[Kind], Sequence[str]]
    parting: str
    rows: Callable[[Kind], Awaitable[Sequence[PeerRow]]]
    """Returns the rows to show."""
    sites: Callable[[Kind], SiteReport]
    """Returns the sites to show."""
    grants: Callable[[Kind], Mapping[bytes, int]]
    """Returns the grants of `--max-pages` that are known, by the ID of their peer."""
    orders: Callable[[Kind], Sequence[StandingOrder]]
    """Returns the standing orders that are known, lifted ones included."""
    feed: Feed[Kind] | None = None
    """Feeds the seeds of a file, saying how it goes."""


async def live(
    make_peer: "Callable[[], Peer]",
    enter: "Enter[Peer]",
    title: str,
    feed: "Feed[Peer] | None" = None,
    log_settings: LogSettings | None = None,
) -> int:
    """Let a peer `enter` its swarm, and `feed` it, until it is stopped. Return the exit code of its command.

    Raises StartError, and StorageError for faults that no room on the disk will cure.
    """
    return await _live(replace(_of_peer(make_peer, enter, title), feed=feed), log_settings or LogSettings())


async def live_leaf(make_leaf: "Callable[[], Leaf]", enter: "Enter[Leaf]", log_settings: LogSettings) -> int:
    """Run a leaf as `live` runs a peer."""
    return await _live(_of_leaf(make_leaf, enter), log_settings)


async def join_in_time(
    peer: "Peer | Leaf", bootstrap: Sequence[tuple[str, int]], wait_s: float, *, rekeyed: bool
) -> None:
    """Join by these peers, and ask again for `wait_s` seconds while none answers. Raises StartError."""
    loop = asyncio.get_running_loop()
    began, said = loop.time(), False
    while True:
        try:
            return await peer.join(bootstrap, rekeyed=rekeyed)
        except UnansweredError as error:
            if loop.time() - began >= wait_s:
                raise
            if not said:
                tell(f"kadcrawl: {error}; asking again for {durations.shown(wait_s)}", err=True)
                said = True
        await asyncio.sleep(ASK_AGAIN_S)


def peer_feed(seeds: SeedFile) -> "Feed[Peer]":
    """Return a function that feeds the seeds of a file to a peer of this process, once."""

    async def feed_peer(peer: "Peer", progress: Progress) -> None:
        async def send(message: StreamSeeds) -> SeedsStreamed:
            return await peer.client.ask(peer.contact, message, SeedsStreamed, STREAM_DEADLINE_S)

        try:
            for line in summary_of(await feed(seeds, send, peer.job, progress.say), seeds):
                progress.say(line)
        except (ConfigError, RemoteError) as error:
            progress.say(f"kadcrawl: {error.for_people}")

    return feed_peer


def named_again(seeds: Sequence[str], then: "Feed[Peer] | None") -> "tuple[Enter[Peer], Feed[Peer]]":
    """Return a function that adds these seeds, and a feed that tells which failed before, and then feeds `then`."""
    again = 0

    async def add(peer: "Peer") -> None:
        nonlocal again
        if peer.job.history == "exact":
            # First, as a new seed may fail at once, and must not be fetched again.
            again = await peer.fetch_again(seeds, only_failed=True)
        await peer.crawl(seeds)

    async def say_again(peer: "Peer", progress: Progress) -> None:
        if again:
            progress.say(f"kadcrawl: {failed_before(again)}")
        if then is not None:
            await then(peer, progress)

    return add, say_again


def _of_peer(make: "Callable[[], Peer]", enter: "Enter[Peer]", title: str) -> "PeerRun[Peer]":
    """Return the life of a peer that enters its swarm like this."""

    async def come_back_soon(peer: "Peer") -> None:
        from kadcrawl.peer.rejoin import come_back  # Not at the top, as a leaf has no range to come back to.

        await come_back(peer, briefly_away=True)

    def greeting(peer: "Peer") -> Sequence[str]:
        address = shown(peer.contact.address)
        key_file = peer.config.data / SWARM_KEY
        whom = "whoever asks" if peer.config.swarm_key is None else f"whoever has {key_file}"
        hooks = sorted(peer.job.hooks)
        return (
            f"peer {peer.contact.id.hex()[:8]} listens on {address} and lets in {whom}",
            *_listener_lines(peer),
            how_to_join(peer.contact.address, peer.config, hooks, needs_secrets=bool(secrets_of(peer.job.sites))),
        )

    async def rows(peer: "Peer") -> Sequence[PeerRow]:
        return (await peer.census()).rows

    def sites(peer: "Peer") -> SiteReport:
        parts = peer.components
        figures = parts.frontier.figures(peer.clock.now())
        return report_sites(figures, peer.job.partition, parts.site_settings.delay_s)

    return PeerRun(
        make=make,
        enter=enter,
        enter_again=come_back_soon,
        title=title,
        is_full=True,
        greeting=greeting,
        parting="handing over and leaving",
        rows=rows,
        sites=sites,
        grants=lambda peer: peer.components.crawl_limits.pages.known,
        orders=lambda peer: peer.runtime.standing_orders.to_wire(),
    )


def _listener_lines(peer: "Peer | Leaf") -> Sequence[str]:
    """Return lines with the addresses of the metrics and of the dashboard, if the peer has them."""
    lines = []
    if (address := peer.metrics_address) is not None:
        lines.append(f"metrics at http://{shown(address)}/metrics")
    if (address := peer.web_address) is not None:
        lines.append(f"dashboard at http://{shown(address)}/, which kadcrawl web {_quoted(peer.config.data)} opens")
    return lines


def _quoted(path: Path) -> str:
    """Return a path as a shell takes it, safe for a terminal."""
    return printable(shlex.quote(str(path)))


def _of_leaf(make: "Callable[[], Leaf]", enter: "Enter[Leaf]") -> "PeerRun[Leaf]":
    """Return the life of a leaf that enters its swarm like this."""

    def greeting(leaf: "Leaf") -> Sequence[str]:
        listens = f"leaf {leaf.contact.id.hex()[:8]} draws pages of other peers; it listens on nothing"
        others = _listener_lines(leaf)
        return (f"{listens} for them" if others else listens, *others)

    async def rows(leaf: "Leaf") -> Sequence[PeerRow]:
        return [leaf.row()]

    return PeerRun(
        make=make,
        enter=enter,
        enter_again=enter,
        title="leaf",
        is_full=False,
        greeting=greeting,
        parting="giving back and leaving",
        rows=rows,
        sites=lambda leaf: SiteReport(),
        grants=lambda leaf: {},
        orders=lambda leaf: (),  # A leaf has no part of the crawl of its own.
    )


async def _live(peer_run: PeerRun[Kind], log_settings: LogSettings) -> int:
    interrupts, view = Interrupts(), SwarmView()
    with Progress(peer_run.title, sees_all=False) as progress:
        peer = peer_run.make()
        config = peer.config
        pauses = Pauses(config, peer.environment.free_bytes)
        while True:
            try:
                async with peer:
                    if not pauses.count:
                        secrets = secrets_of_machine(config.swarm_key, config.secrets)
                        log_to(config.data, log_settings, secrets, lambda: peer.short_id)  # noqa: B023 -- the latest
                        log.info("peer.opened")
                    enter = peer_run.enter_again if pauses.count else peer_run.enter
                    await _run_once(peer_run, peer, enter(peer), interrupts, progress, view)
                break
            except DiskFullError as error:
                log.error("peer.ended why=%s", error)
                if interrupts.first.is_set():
                    raise
                progress.say(f"{state_text(PeerState.DISK_FULL)}: {error}")
            except StartError:
                if not pauses.count or pauses.has_room:
                    raise
            await first_of(pauses.wait(), interrupts.first.wait())
            if interrupts.first.is_set():
                return INTERRUPTED  # All that was promised is on the disk, and others know it.
            progress.say("going on, as there is room again")
            peer = peer_run.make()
    if peer.begun:
        counters = peer.row().counters
        by_reason = still_failed([counters])
        failed = f", {sum(by_reason.values())} failed ({reasons(by_reason)})" if by_reason else ""
        errors = f", {counters.record_errors} record_errors" if counters.record_errors else ""
        fetched = f"{counted(counters.pages, 'page')} fetched by this peer{failed}{errors}"
        tell(f"{fetched}, {counted(peer.remaining, 'URL')} left on it; {config.data}/")
        orders = orders_in_force(peer_run.orders(peer))
        ended = peer.ended and not interrupts.first.is_set()
        limit = _limit_that_ended(peer, orders, view) if ended else None
        if limit is not None:
            lost = view.pages_lost(peer_run.grants(peer)) if limit.option == "--max-pages" else 0
            tell(swarm_end_sentence(limit, lost))
        for sentence in order_lines(orders):
            tell(sentence)
        examples = by_counted_reason(examples_at_the_ends([config.data])) if by_reason else {}
        end = CrawlEnd(
            data=config.data,
            peers=[config.data],
            failed=by_reason,
            examples=examples,
            record_errors=counters.record_errors,
            sinks=config.sinks,
            may_retry=peer.job.history == "exact" and peer_run.is_full,
            limit=limit if peer_run.is_full else None,
            goes_on=limit is None and peer_run.is_full and peer.remaining > 0,
        )
        for line in last_lines(end):
            tell(line)
    lacking = peer.deliveries.shortfalls
    say_shortfalls(lacking, config.data)
    if interrupts.first.is_set():
        return INTERRUPTED
    return UNDELIVERED if lacking else code_of_limit(peer.limit_reached if peer.ended else "")


def _limit_that_ended(peer: "Peer | Leaf", orders: Sequence[GivenOrder], view: SwarmView) -> ReachedLimit | None:
    """Return the limit that ended the crawl of this peer's swarm and left URLs, or None."""
    kind = peer.limit_reached
    if kind == "pages" and not peer.remaining and not view.has_pending:
        return None  # The pages were just enough.
    limit = reached_limit(kind, peer.job, {one.about: one.value for one in orders if one.kind == "set"})
    # The options of a crawl are those of its first peer alone, but each peer takes an order.
    return None if limit is None else replace(limit, is_ordered=True)


async def _run_once(
    peer_run: PeerRun[Kind],
    peer: Kind,
    entering: Coroutine[Any, Any, None],
    interrupts: Interrupts,
    progress: Progress,
    view: SwarmView,
) -> None:
    """Run the peer until it has ended as asked."""
    await first_of(entering, interrupts.first.wait())
    if not interrupts.first.is_set():
        if peer_run.is_full:
            note_peer(peer.contact.address, peer.config.data)
        for line in peer_run.greeting(peer):
            progress.say(line)
        if peer_run.is_full and peer_run.feed is None and not peer.activity.armed:
            command = f"kadcrawl add URL... --data {_quoted(peer.config.data)}"
            progress.say(f"it has no seeds yet: {command} begins the crawl")
        if peer.memory is not None:
            progress.say(peer.memory.said(peer.config.limits))
        give_back(is_bounded=peer.memory is not None)
        limits = limits_with(peer.config.limits, peer.job.shared_limits)
        begun = peer.row().begun
        orders = orders_in_force(peer_run.orders(peer))
        job = changed(peer.job, {order.about: order.value for order in orders if order.kind == "set"})
        progress.expect(job, Expectation(job, job.seeds, limits, sees_all=False, pages_begun=begun))
        feeding = _feed(peer_run, peer, progress)
        showing, dropping = _show(peer_run, peer, progress, view), _give_back_when_settled()
        await first_of(until_stopped(peer, interrupts), showing, feeding, dropping)
        if peer.limit_reached == "pages" and not interrupts.first.is_set():
            view.see(await peer_run.rows(peer))  # Others may have URLs left, and what was shown is of some time ago.
    if interrupts.first.is_set():
        progress.say(f"{peer_run.parting} (Ctrl-C again to force) ...")
        peer.leave_soon()
    if peer.begun:  # Otherwise nobody has heard of it yet.
        await peer.finish()
        if peer.deliveries.lag:
            progress.say("giving the sinks what they lack ...")


async def _feed(peer_run: PeerRun[Kind], peer: Kind, progress: Progress) -> None:
    """Feed the seeds of a file, if there is any, and wait until cancelled."""
    if peer_run.feed is not None:
        await peer_run.feed(peer, progress)
    await Event().wait()


async def _give_back_when_settled() -> None:
    """Give back what only the start and the first connections used, once, and wait until cancelled."""
    await asyncio.sleep(SETTLED_S)
    give_back_again()
    await Event().wait()


async def _show(peer_run: PeerRun[Kind], peer: Kind, progress: Progress, view: SwarmView) -> None:
    loop, sites, sites_at = asyncio.get_running_loop(), SiteReport(), 0.0
    while True:
        if (warning := peer.warning()) is not None:
            progress.say(f"kadcrawl: {warning}")
        if loop.time() >= sites_at:
            sites, sites_at = peer_run.sites(peer), loop.time() + progress.sites_interval_s
        rows = await peer_run.rows(peer)
        view.see(rows)
        progress.update(rows, sites)
        await asyncio.sleep(SHOW_INTERVAL_S)
