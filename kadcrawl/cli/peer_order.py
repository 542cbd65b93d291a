"""`PeerOrder` is all that `kadcrawl start` or `kadcrawl join` says about the peer that it runs.

The process that reads the options may be another than the process that runs the peer (lean_start.py). So an order has
plain values only, and what carries it out loads no options.

Tests: tests/cli/test_lean_start.py, tests/cli/test_command_live.py
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kadcrawl.cli.machine import LogSettings
from kadcrawl.cli.say import tell
from kadcrawl.settings.config import Config
from kadcrawl.settings.job import Job

if TYPE_CHECKING:
    from kadcrawl.leaf.leaf import Leaf
    from kadcrawl.peer import Peer


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerOrder:
    """An order to run one peer."""

    config: Config
    log: LogSettings
    bootstrap: Sequence[tuple[str, int]]
    job: Job | None = None
    """The job of the first peer of a swarm. None to join a swarm, which has the job."""
    is_leaf: bool = False
    seeds: Sequence[str] = ()
    seeds_file: str | None = None
    wait_s: float = 0.0
    rekeyed: bool = False
    missing_powers: str = ""
    """A sentence for a person if the swarm's job needs powers that the machine does not tell."""


def carry_out(order: PeerOrder) -> int:
    """Run the peer until it ends, and return the exit code of its command. Raises KadcrawlError."""
    if order.is_leaf:
        return _run_leaf(order)
    return _join(order) if order.job is None else _start(order, order.job)


def _run_leaf(order: PeerOrder) -> int:
    from kadcrawl.cli.commands.run_peer import join_in_time, live_leaf  # Not at the top: that loads aiohttp.
    from kadcrawl.cli.run import run
    from kadcrawl.leaf.leaf import Leaf

    async def enter(leaf: "Leaf") -> None:
        await join_in_time(leaf, order.bootstrap, order.wait_s, rekeyed=order.rekeyed)

    return run(live_leaf(lambda: Leaf(order.config), enter, order.log))


def _join(order: PeerOrder) -> int:
    from kadcrawl.cli.commands.run_peer import join_in_time, live, peer_feed
    from kadcrawl.cli.run import run
    from kadcrawl.cli.seeds.seed_file import SeedFile
    from kadcrawl.peer import Peer

    async def enter(peer: "Peer") -> None:
        await join_in_time(peer, order.bootstrap, order.wait_s, rekeyed=order.rekeyed)
        if order.missing_powers and peer.job.lends_by == "predictive":
            tell(order.missing_powers, err=True)

    feed = None if order.seeds_file is None else peer_feed(SeedFile(order.seeds_file))
    return run(live(lambda: Peer(order.config), enter, "join", feed, order.log))


def _start(order: PeerOrder, job: Job) -> int:
    from kadcrawl.cli.commands.run_peer import live, named_again, peer_feed
    from kadcrawl.cli.run import run
    from kadcrawl.cli.seeds.seed_file import SeedFile
    from kadcrawl.peer import Peer
    from kadcrawl.peer.rejoin import come_back

    feed = None if order.seeds_file is None else peer_feed(SeedFile(order.seeds_file))
    add, feed = named_again(order.seeds, feed) if order.seeds else (None, feed)

    async def enter(peer: "Peer") -> None:
        await come_back(peer, bootstrap=order.bootstrap)
        if add is not None:
            await add(peer)

    return run(live(lambda: Peer(order.config, job), enter, "start", feed, order.log))
