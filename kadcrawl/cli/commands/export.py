"""`kadcrawl export` sends the results in directories to sinks by hand, as a peer does while it crawls.

The directories may be of running, ended or dead peers. The parent of a local crawl ends with the same, for results that
a peer left when it died or gave its sinks up.

Tests: tests/cli/test_command_sinks.py
"""

import asyncio
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import click
import cloup

from kadcrawl.cli.directory_arguments import directories_argument
from kadcrawl.cli.exits import DONE, UNDELIVERED, told
from kadcrawl.cli.options import sink_option
from kadcrawl.cli.say import say
from kadcrawl.cli.targets import data_directories, directories, is_set_aside
from kadcrawl.cli.view.shortfalls import say_shortfalls
from kadcrawl.errors import ConfigError
from kadcrawl.sinks.sink_names import STANDARD_OUTPUT, check_directory, parse
from kadcrawl.store.log_copies import without_copies
from kadcrawl.store.log_parts import has_log
from kadcrawl.system.file_names import PAGE_LOG
from kadcrawl.system.plural import counted, plural

EXPORT_STALL_S = 3.0
"""Seconds without progress before a sink is given up. A person can call the command again, and peers have waited
before."""


@cloup.command(short_help="Bring the results of a crawl into a database or a bucket.")
@directories_argument
@sink_option("--to", "Where they go", required=True)
@cloup.option("--records", is_flag=True, help="To the standard output: the records in place of the pages.")
@told
def export(directories: tuple[Path, ...], sinks: tuple[str, ...], records: bool) -> int:
    """Hand the results in DIR... (of a crawl, or of a peer) to sinks, as --sink does while a crawl runs.

    A sink gets the results that it lacks, and a result that it gets twice overwrites itself. So the command may be
    repeated, and broken off, at any moment. It may run while peers do.

    \b
    For a pipe or one file, the standard output:
        kadcrawl export crawl-data --to - | jq .url
        kadcrawl export crawl-data --to csv:- > pages.csv

    \b
    Exit codes: 0  the sinks have everything
                2  it could not be done as asked
                4  a sink lacks something; the same command goes on
    """
    whole, kind = True, STANDARD_OUTPUT.get(sinks[0])
    if records and kind is None:
        raise ConfigError("--records is for the standard output (--to -, --to csv:-): other sinks get them as well")
    if kind is None:
        for name in map(parse, sinks):
            check_directory(name)
    for directory in directories:
        if not peers_in(directory):
            raise ConfigError(f"there is no pages.jsonl in {directory}, nor in the directories in it")
    if kind is not None:
        peers = _each_once(peer for directory in directories for peer in peers_in(directory))
        return _write_out(peers, "records" if records else "pages", kind)
    for directory in _each_once(directories):
        whole = deliver(directory, sinks, tells=True) and whole
    return DONE if whole else UNDELIVERED


def _write_out(peers: Sequence[Path], table: str, kind: str) -> int:
    """Write the results to the standard output, until a reader has enough of them."""
    from kadcrawl.sinks.standard_output import LineExport  # Not at the top: `crawl` imports this module.

    exported = LineExport(peers, table, kind)
    out = sys.stdout.buffer
    try:
        for line in exported.lines():
            out.write(line)
        out.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Or Python would try once more at its end.
        return DONE
    if exported.parts_elsewhere:
        absent = plural(exported.parts_elsewhere, "closed part is", "closed parts are")
        say(f"kadcrawl: {counted(exported.lines_elsewhere, 'line')} left out: {absent} not here", err=True)
    if exported.refused:
        say(f"kadcrawl: {counted(exported.refused, 'line')} left out: no documents of {table}", err=True)
    return DONE


def deliver(directory: Path, sinks: Sequence[str], *, tells: bool = False) -> bool:
    """Send the results of the peers below this directory to the sinks. Return whether the sinks have everything then.

    Prints what the sinks lack, and with `tells` also what they got. A sink that is down is not waited for as long as a
    peer waits.
    """
    import logging

    from kadcrawl.cli.run import run

    # Without a handler, Python would print each failed try as it stands in logs.
    logging.getLogger("kadcrawl.sinks").addHandler(logging.NullHandler())
    return run(_deliver(directory, sinks, tells))


def peers_in(directory: Path) -> list[Path]:
    """Return the directories of peers and leaves with pages, at this directory or in it, each once.

    Copies are left out, as of a backup beside the peers of a crawl: their lines would come twice.
    """
    # The crawl's own directories come first, as the first of equal logs stays.
    found = sorted(data_directories(directory), key=lambda one: one not in directories(directory))
    found = sorted(found, key=lambda one: is_set_aside(one, directory))
    peers = _each_once(one for one in found if (one / PAGE_LOG).exists() or has_log(one / PAGE_LOG))
    kept = {path.parent for path in without_copies((one / PAGE_LOG for one in peers), _peer_of)}
    return [one for one in peers if one in kept]


def _peer_of(log: Path) -> bytes | None:
    """Return the ID of the peer that wrote a log, if its journal is beside the log."""
    from kadcrawl.cli.local.resting import peer_in  # Not at the top: it takes time to load.

    return peer_in(log.parent)


def _each_once(directories: Iterable[Path]) -> list[Path]:
    """Return these directories without further names of the same directory."""
    found: dict[Path, Path] = {}
    for directory in directories:
        found.setdefault(directory.resolve(), directory)
    return [*found.values()]


async def _deliver(directory: Path, sinks: Sequence[str], tells: bool) -> bool:
    from kadcrawl.sinks.deliveries import Deliveries
    from kadcrawl.system.daemon_threads import DaemonThreadExecutor

    now = asyncio.get_running_loop().time
    each = {peer: Deliveries(peer, sinks, DaemonThreadExecutor(), now) for peer in peers_in(directory)}
    running = [asyncio.create_task(deliveries.run(), name=f"sinks {peer}") for peer, deliveries in each.items()]
    try:
        await asyncio.gather(*(deliveries.finish(EXPORT_STALL_S) for deliveries in each.values()))
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
    for peer, deliveries in each.items():
        for delivery in deliveries.each if tells else ():
            click.echo(f"{peer}: {delivery.work.done} to {delivery.work.name.shown}")
        say_shortfalls(deliveries.shortfalls, peer)
    return not any(deliveries.shortfalls for deliveries in each.values())
