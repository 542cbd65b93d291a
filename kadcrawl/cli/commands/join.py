"""`kadcrawl join`: one more peer of a swarm that is there, or a leaf of it.

Tests: tests/cli/test_command_live.py, tests/cli/test_command_leaf.py
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click
import cloup
from cloup import option, option_group

from kadcrawl.cli.exits import told
from kadcrawl.cli.keys import (
    REKEYED,
    KeyOptions,
    directory_to_ask,
    key_of_neighbor,
    key_to_join,
    member_options,
    say_insecure,
)
from kadcrawl.cli.lean_start import hand_over
from kadcrawl.cli.machine_options import MachineOptions, machine_options, make_machine, missing_powers
from kadcrawl.cli.options import PEER, SEEDS, Address, is_given, make_sinks
from kadcrawl.cli.peer_config import listen_beside, make_config, place_beside
from kadcrawl.cli.peer_order import PeerOrder
from kadcrawl.cli.types import Duration
from kadcrawl.errors import ConfigError
from kadcrawl.members.swarm_key import SwarmKey
from kadcrawl.system.file_names import SWARM_KEY

WAIT_S_MAX = 7 * 86_400.0
"""Limit on --wait: whoever waits longer than a week for a swarm wants a service manager."""

SWARM = option_group(
    "Swarm",
    option(
        "--bootstrap",
        type=Address(),
        multiple=True,
        required=True,
        help="A peer of the swarm, or a DNS name with the addresses of peers. Repeatable. _kadcrawl._tcp.example.org, "
        "with underscores, is the name of an SRV record, which has the ports too.",
    ),
    option(
        "--wait",
        "wait_s",
        type=Duration(0.0, WAIT_S_MAX),
        default="0s",
        show_default=True,
        help="Ask again and again for so long if no --bootstrap peer answers. DNS names are resolved each time.",
    ),
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
        help="Let the swarm's job call this function of this machine as a hook for records or logins. Without this "
        "option a job with a hook is refused. Repeatable.",
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
    wait_s: float,
    leaf: bool,
    listen: tuple[str, int] | None,
    announce: bool,
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

    Where --bootstrap is a peer that you run on this machine, its address is enough: the key is found in its directory,
    and this peer takes a port and a directory of its own. On another machine, give the key: --key-file.

    Started again on its --data when no --bootstrap peer answers, the peer asks those that it knew when it last ran. A
    --data of another swarm is refused. The first Ctrl-C (or SIGTERM, or `kadcrawl leave`) hands this peer's range over
    and exits, the second exits at once. While less than 64 MiB are left on the disk, the peer waits for room.

    A --leaf owns nothing and is asked nothing. The leaf draws pages of the other peers, of another peer if one dies,
    and gives back what is not fetched when it exits. Not in a crawl with --max-bytes.
    """
    settings = make_machine(machine, make_sinks(machine.sinks, None, data))
    swarm_key, data = _key_and_place(key, bootstrap, data)
    otherwise = listen_beside(bootstrap)
    config = settings.config(make_config(data, listen, allow_network, exit_when_done, swarm_key, otherwise))
    config = replace(config, hooks=hooks, announce=announce)
    say_insecure(swarm_key)
    if leaf:
        if seeds_file is not None:
            raise ConfigError("a leaf takes no seeds: add them by a full peer, with kadcrawl add")
        if listen is not None:
            raise ConfigError("a leaf listens on nothing: leave out --listen")
        if announce:
            raise ConfigError("a leaf listens on nothing: leave out --announce")
        if machine.network is not None or machine.powers:
            raise ConfigError("no peer predicts how long a leaf takes: leave out --network and --power")
    order = PeerOrder(
        config=config,
        log=settings.log,
        bootstrap=bootstrap,
        is_leaf=leaf,
        seeds_file=seeds_file,
        wait_s=wait_s,
        rekeyed=rekeyed,
        missing_powers=missing_powers(settings),
    )
    return hand_over(order)


def _key_and_place(given: KeyOptions, bootstrap: Sequence[tuple[str, int]], data: Path) -> tuple[SwarmKey | None, Path]:
    """Return the key of the swarm, and the directory of the new peer. Raises ConfigError without a key."""
    neighbor = directory_to_ask(given, bootstrap)
    if neighbor is None or (is_given("data") and (data / SWARM_KEY).exists()):
        return key_to_join(given, data), data
    key = key_of_neighbor(neighbor)
    if not is_given("data"):
        data = place_beside(neighbor, key, data)
    click.echo(f"kadcrawl: the key is that of your peer in {neighbor}; this peer is in {data}", err=True)
    return key, data
