"""`kadcrawl join`: one more peer of a swarm that is there, or a leaf of it.

Tests: tests/cli/test_command_live.py, tests/cli/test_command_leaf.py
"""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import cloup
from cloup import option, option_group

from kadcrawl.cli.exits import told
from kadcrawl.cli.keys import REKEYED, KeyOptions, key_to_join, member_options, say_insecure
from kadcrawl.cli.machine_options import MachineOptions, machine_options, make_machine, say_missing
from kadcrawl.cli.options import PEER, SEEDS, Address, make_sinks
from kadcrawl.cli.peer_config import make_config
from kadcrawl.cli.run import run
from kadcrawl.cli.seeds.seed_file import SeedFile
from kadcrawl.errors import ConfigError

if TYPE_CHECKING:
    from kadcrawl.peer import Peer

SWARM = option_group(
    "Swarm",
    option("--bootstrap", type=Address(), multiple=True, required=True, help="A peer of the swarm. Repeatable."),
    option(
        "--leaf",
        is_flag=True,
        help="Only fetch for others, and listen on nothing: for a machine that nobody can connect to, or a weak one.",
    ),
    option(
        "--hook",
        "hooks",
        multiple=True,
        metavar="MODULE:FUNCTION",
        help="Let the swarm's job call this function of this machine as a hook for records. Without this option a job "
        "with a hook is refused. Repeatable.",
    ),
)


@cloup.command(short_help="Join a swarm and crawl with it.")
@SWARM
@cloup.option_group("Seeds", SEEDS)
@PEER
@member_options
@REKEYED
@machine_options
@told
def join(
    bootstrap: tuple[tuple[str, int], ...],
    leaf: bool,
    listen: tuple[str, int] | None,
    data: Path,
    key: KeyOptions,
    allow_network: tuple[str, ...],
    exit_when_done: bool,
    machine: MachineOptions,
    hooks: tuple[str, ...],
    rekeyed: bool,
    seeds_file: str | None,
) -> int:
    """Join a swarm and crawl with it. The job comes from the swarm.

    Started again on its --data when no --bootstrap peer answers, the peer asks those that it knew when it last ran. A
    --data of another swarm is refused. The first Ctrl-C (or SIGTERM, or `kadcrawl leave`) hands this peer's range over
    and exits, the second exits at once. While less than 64 MiB are left on the disk, the peer waits for room.

    A --leaf owns nothing and is asked nothing. The leaf draws pages of the other peers, of another peer if one dies,
    and gives back what is not fetched when it exits. Not in a crawl with --max-pages or --max-depth.
    """
    from kadcrawl.cli.commands.run_peer import live, live_leaf, peer_feed
    from kadcrawl.leaf.leaf import Leaf
    from kadcrawl.peer import Peer

    settings = make_machine(machine, make_sinks(machine.sinks, None))
    swarm_key = key_to_join(key, data)
    config = replace(settings.config(make_config(data, listen, allow_network, exit_when_done, swarm_key)), hooks=hooks)
    say_insecure(swarm_key)
    if leaf:
        if seeds_file is not None:
            raise ConfigError("a leaf takes no seeds: add them by a full peer, with kadcrawl add")
        if listen is not None:
            raise ConfigError("a leaf listens on nothing: leave out --listen")
        if machine.network is not None or machine.powers:
            raise ConfigError("no peer predicts how long a leaf takes: leave out --network and --power")
        return run(live_leaf(lambda: Leaf(config), lambda leaf: leaf.join(bootstrap, rekeyed=rekeyed)))

    async def enter(peer: "Peer") -> None:
        await peer.join(bootstrap, rekeyed=rekeyed)
        say_missing(settings, peer.job)

    feed = None if seeds_file is None else peer_feed(SeedFile(seeds_file))
    return run(live(lambda: Peer(config), enter, "join", feed))
