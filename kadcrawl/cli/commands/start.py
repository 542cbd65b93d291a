"""`kadcrawl start`: the first peer of a swarm.

Tests: tests/cli/test_command_live.py
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import cloup
from cloup import option

from kadcrawl.cli.exits import told
from kadcrawl.cli.job_options import job_options
from kadcrawl.cli.keys import KeyOptions, key_to_begin, member_options, say_insecure
from kadcrawl.cli.lean_start import hand_over
from kadcrawl.cli.machine_options import MachineOptions, machine_options, make_machine, say_missing
from kadcrawl.cli.options import PEER, SEEDS, Address, make_job, make_sinks, say_rule_warnings
from kadcrawl.cli.peer_config import make_config
from kadcrawl.cli.peer_order import PeerOrder
from kadcrawl.cli.targets import refuse_directories


@cloup.command(short_help="Start the first peer of a swarm.")
@cloup.argument("urls", nargs=-1, metavar="[URL...]")
@cloup.option_group("Seeds", SEEDS)
@cloup.option_group(
    "Swarm",
    option(
        "--bootstrap",
        type=Address(),
        multiple=True,
        help="Join the swarm of this peer if it answers, or one of the peers of a DNS name, and begin no other. "
        "Repeatable. For services that start all peers at once, and for a first peer that may lose its disk.",
    ),
)
@PEER
@job_options
@member_options
@machine_options
@told
def start(
    urls: tuple[str, ...],
    bootstrap: tuple[tuple[str, int], ...],
    listen: tuple[str, int] | None,
    announce: bool,
    data: Path,
    key: KeyOptions,
    allow_network: tuple[str, ...],
    exit_when_done: bool,
    machine: MachineOptions,
    seeds_file: str | None,
    **options: Any,
) -> int:
    """Start the first peer of a swarm. Its options, or --job, define the job for every peer that joins.

    Started again on its --data while others are still crawling, the peer joins them, and the job stays theirs. The
    first Ctrl-C (or SIGTERM, or `kadcrawl leave`) hands this peer's range over and exits, the second exits at once.
    While less than 64 MiB are left on the disk, the peer waits for room.
    """
    refuse_directories(urls, "URL")
    seeds, job = make_job(urls, options, data, machine.limits, says_standing=True)
    settings = make_machine(machine, make_sinks(machine.sinks, options["job_file"], data), job, options["job_file"])
    swarm_key = key_to_begin(key, data)
    config = settings.config(make_config(data, listen, allow_network, exit_when_done, swarm_key))
    config = replace(config, announce=announce)
    say_missing(settings, job)
    say_rule_warnings(job, seeds, data, streams=seeds_file is not None)
    say_insecure(swarm_key)
    order = PeerOrder(config=config, log=settings.log, bootstrap=bootstrap, job=job, seeds=seeds, seeds_file=seeds_file)
    return hand_over(order)
