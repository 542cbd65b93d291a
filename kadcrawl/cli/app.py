"""The commands. Each is a few lines: options in, one sentence or a table out, an exit code.

Exit codes: 0 done, 1 the crawl ended with nothing fetched, 2 a mistake in how it was asked for, 3 the crawl ended
without what only dead peers knew, 4 a sink lacks something, 11 interrupted.
What only some commands need is imported inside them, as a peer's rooms take longer to load than a command may last.

Tests: tests/cli/test_command.py
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from kadcrawl.cli.commands.check import check
from kadcrawl.cli.commands.control import add, leave, pause, resume, status, stop
from kadcrawl.cli.commands.export import deliver, export
from kadcrawl.cli.commands.rekey import rekey
from kadcrawl.cli.exits import DONE, INTERRUPTED, LEFT_BEHIND, NOTHING_FETCHED, UNDELIVERED, told
from kadcrawl.cli.job_options import job_options
from kadcrawl.cli.keys import (
    REKEYED,
    key_to_begin,
    key_to_join,
    keygen,
    member_options,
    say_insecure,
)
from kadcrawl.cli.local.directory_check import check_for_crawl, check_for_peer
from kadcrawl.cli.local.supervisor import CrawlPlan, LocalSwarm, peers_of
from kadcrawl.cli.options import (
    Address,
    allow_network_option,
    listen_at,
    machine_options,
    make_job,
    make_machine,
    make_sinks,
    networks_of,
    say_missing,
)
from kadcrawl.cli.run import run
from kadcrawl.cli.view.progress import Progress
from kadcrawl.cli.view.summary import LINES_COMPARED_MAX, Summary, advice, limits_met, reasons, unfinished_summary
from kadcrawl.errors import ConfigError
from kadcrawl.members.swarm_key import SwarmKey
from kadcrawl.settings.config import PORT_DEFAULT, Config
from kadcrawl.version import VERSION

LISTEN = click.option(
    "--listen",
    type=Address(),
    help="Address for other peers, TCP and UDP; port 0 chooses a free one.  [default: where the peer of --data "
    f"listened before, or 127.0.0.1:{PORT_DEFAULT}]",
)
DATA = click.option(
    "--data",
    type=click.Path(path_type=Path),
    default=Path("crawl-data"),
    show_default=True,
    help="Directory for the journal, WARC files and pages.jsonl. Started again on it, a crawl goes on.",
)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(VERSION)
def main() -> None:
    """A fully decentralized web crawler: no master, no broker, any number of peers.

    \b
    Crawl a site with four peers on this machine, to the end:
        kadcrawl crawl https://example.org/ --peers 4 --contact me@example.org

    \b
    Or build a swarm over several machines; any peer may come, go, or be asked:
        kadcrawl keygen > swarm.key
        one$  kadcrawl start https://example.org/ --key-file swarm.key --listen 10.0.0.1:4160 --contact me@example.org
        two$  kadcrawl join --key-file swarm.key --bootstrap 10.0.0.1:4160 --listen 10.0.0.2:4160
        two$  kadcrawl status

    \b
    What to crawl can be kept in a file, and looked at before:
        kadcrawl check kadcrawl.toml https://example.org/login
        kadcrawl crawl --job kadcrawl.toml

    A swarm keeps to one request per second and site unless told otherwise, obeys robots.txt,
    and knows by itself when it is done.
    """


@main.command()
@click.argument("urls", nargs=-1, metavar="[URL...]")
@click.option("--peers", type=click.IntRange(1, 256), default=1, show_default=True, help="Processes, one peer each.")
@DATA
@member_options
@job_options
@allow_network_option
@machine_options
@click.option(
    "--respawn", is_flag=True, help="Start peers that die again on their directories, instead of doing without."
)
@click.option("--summary", type=click.Path(path_type=Path, dir_okay=False), help="Write the final figures as JSON.")
@told
def crawl(
    urls: tuple[str, ...],
    peers: int,
    data: Path,
    key_file: Path | None,
    insecure: bool,
    allow_network: tuple[str, ...],
    fetches: int,
    network: Path | None,
    powers: tuple[tuple[str, float], ...],
    sinks: tuple[str, ...],
    respawn: bool,
    summary: Path | None,
    **options: Any,
) -> int:
    """Crawl URL..., and the seeds of --job, with a swarm on this machine, to the end.

    Each peer writes WARC files and pages.jsonl below DATA/peer-N, and records.jsonl if the job file has [[records]]; a
    hook it names is imported from the current directory or the installed packages. Ctrl-C finishes what is under way
    and exits; the same command on the same --data goes on where it stopped, after a crash as well.

    If peers die, the others go on with what they had, as long as two of three holders of each URL do not die at one
    moment; with --respawn the dead are started again. If all die, all are started again, three times within an hour.
    While less than 64 MiB are left on the disk, the crawl waits for room.

    \b
    Exit codes: 0  the crawl is whole
                1  it ended with nothing fetched
                2  it could not be done as asked
                3  it ended, but URLs known only to peers that died are left; the same command goes on with them
                4  it is whole, but a --sink lacks something; the same command, or kadcrawl export, goes on
               11  interrupted
    """
    check_for_crawl(data)
    first = data / f"peer-{min(peers_of(data), default=1)}"
    seeds, job = make_job(urls, options, first)
    if not seeds:
        raise click.UsageError("Missing argument 'URL...': a crawl begins with one, or with the seeds in a --job FILE")
    plan = CrawlPlan(
        seeds=seeds,
        job=job,
        peers=peers,
        data=data,
        allow_networks=networks_of(allow_network, first),
        respawn=respawn,
        swarm_key=key_to_begin(key_file, insecure, data),
        machine=make_machine(fetches, network, powers, make_sinks(sinks, options["job_file"]), job),
    )
    _check_writable(summary)
    say_missing(plan.machine, job)
    say_insecure(plan.swarm_key)
    with Progress("crawl") as progress:
        swarm, result = run(_crawl(plan, progress))
    if summary is not None:
        summary.write_text(json.dumps(result.as_json(), indent=2) + "\n")
    failed = sum(result.urls_failed.values())
    why = f": {reasons(result.urls_failed)}" if failed else ""
    at_least = "at least " if result.urls_done > LINES_COMPARED_MAX else ""
    records = "" if result.records is None else f"{result.records} records, "
    click.echo(
        f"{result.pages} pages, {result.bytes / 1e6:.1f} MB, {records}"
        f"{result.urls_done} of {result.urls_found} URLs done ({failed} failed{why}),"
        f" {at_least}{result.duplicates} fetched twice, {result.seconds:.1f} s; below {data}/"
    )
    endings = () if swarm.interrupted else unfinished_summary(result, job)
    for sentence in (*endings, *limits_met(result.links_left_out)):
        click.echo(sentence)
    for sentence in advice(result.urls_failed):
        click.echo(sentence, err=True)
    # What a peer could not deliver before it ended, or died with.
    whole = not plan.machine.sinks or deliver(data, plan.machine.sinks)
    if swarm.interrupted:
        click.echo("kadcrawl: interrupted; the same command goes on", err=True)
        return INTERRUPTED
    if result.left_behind:
        click.echo(
            f"kadcrawl: {result.left_behind} URLs are left that only dead peers knew; the same command goes on",
            err=True,
        )
        return LEFT_BEHIND
    if not whole:
        return UNDELIVERED
    return DONE if result.pages else NOTHING_FETCHED


async def _crawl(plan: CrawlPlan, progress: Progress) -> tuple[LocalSwarm, Summary]:
    swarm = LocalSwarm(plan, progress)
    return swarm, await swarm.run()


@main.command()
@click.argument("urls", nargs=-1, metavar="[URL...]")
@LISTEN
@DATA
@member_options
@job_options
@allow_network_option
@machine_options
@click.option("--exit-when-done", is_flag=True, help="Exit once the whole swarm has nothing left to do.")
@told
def start(
    urls: tuple[str, ...],
    listen: tuple[str, int] | None,
    data: Path,
    key_file: Path | None,
    insecure: bool,
    allow_network: tuple[str, ...],
    exit_when_done: bool,
    fetches: int,
    network: Path | None,
    powers: tuple[tuple[str, float], ...],
    sinks: tuple[str, ...],
    **options: Any,
) -> int:
    """Start the first peer of a swarm; its options, or --job, are the job that everyone who joins will share.

    Started again on its --data while others are still crawling, it joins them, and the job stays theirs. The first
    Ctrl-C (or SIGTERM, or `kadcrawl leave`) hands this peer's range over and exits, the second exits at once. While
    less than 64 MiB are left on the disk, it waits for room.
    """
    from kadcrawl.cli.commands.run_peer import live
    from kadcrawl.peer import Peer
    from kadcrawl.peer.rejoin import come_back

    seeds, job = make_job(urls, options, data)
    machine = make_machine(fetches, network, powers, make_sinks(sinks, options["job_file"]), job)
    key = key_to_begin(key_file, insecure, data)
    config = machine.config(_config(data, listen, allow_network, exit_when_done, key))
    say_missing(machine, job)
    say_insecure(key)

    async def enter(peer: Peer) -> None:
        await come_back(peer)
        if seeds:
            await peer.crawl(seeds)

    return run(live(lambda: Peer(config, job), enter, "start"))


main.add_command(check)
main.add_command(export)
main.add_command(keygen)
main.add_command(rekey)
for command in (status, add, pause, resume, leave, stop):
    main.add_command(command)


@main.command()
@click.option("--bootstrap", type=Address(), multiple=True, required=True, help="A peer of the swarm. Repeatable.")
@click.option(
    "--leaf",
    is_flag=True,
    help="Only fetch for others, and listen on nothing: for a machine that nobody can connect to, or a weak one.",
)
@LISTEN
@DATA
@member_options
@allow_network_option
@machine_options
@click.option(
    "--hook",
    "hooks",
    multiple=True,
    metavar="MODULE:FUNCTION",
    help="Let the swarm's job call this function of this machine, if it has it as a hook for records; without it a job "
    "with a hook is refused. Repeatable.",
)
@REKEYED
@click.option("--exit-when-done", is_flag=True, help="Exit once the whole swarm has nothing left to do.")
@told
def join(
    bootstrap: tuple[tuple[str, int], ...],
    leaf: bool,
    listen: tuple[str, int] | None,
    data: Path,
    key_file: Path | None,
    insecure: bool,
    allow_network: tuple[str, ...],
    exit_when_done: bool,
    fetches: int,
    network: Path | None,
    powers: tuple[tuple[str, float], ...],
    sinks: tuple[str, ...],
    hooks: tuple[str, ...],
    rekeyed: bool,
) -> int:
    """Join a swarm and crawl with it; the job comes from the swarm.

    Started again on its --data when no --bootstrap peer answers, it asks those it knew when it last ran. A --data of
    another swarm is refused. The first Ctrl-C (or SIGTERM, or `kadcrawl leave`) hands this peer's range over and exits,
    the second exits at once. While less than 64 MiB are left on the disk, it waits for room.

    A --leaf owns nothing and is asked nothing: it draws pages of the other peers, of another one if one dies, and gives
    back what it has not fetched when it exits. Not in a crawl with --max-pages or --max-depth.
    """
    from kadcrawl.cli.commands.run_peer import live, live_leaf
    from kadcrawl.peer import Leaf, Peer

    machine = make_machine(fetches, network, powers, make_sinks(sinks, None))
    key = key_to_join(key_file, insecure, data)
    config = replace(machine.config(_config(data, listen, allow_network, exit_when_done, key)), hooks=hooks)
    say_insecure(key)
    if leaf:
        if listen is not None:
            raise ConfigError("a leaf listens on nothing: leave out --listen")
        if network is not None or powers:
            raise ConfigError("nobody predicts how long a leaf takes: leave out --network and --power")
        return run(live_leaf(lambda: Leaf(config), lambda leaf: leaf.join(bootstrap, rekeyed=rekeyed)))

    async def enter(peer: Peer) -> None:
        await peer.join(bootstrap, rekeyed=rekeyed)
        say_missing(machine, peer.job)

    return run(live(lambda: Peer(config), enter, "join"))


@main.command()
@click.argument(
    "directories",
    nargs=-1,
    required=True,
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    metavar="DIR...",
)
@click.option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    required=True,
    metavar="FILE",
    help="Where the network goes, for --network.",
)
@click.option(
    "--seed",
    type=click.IntRange(0, 2**32 - 1),
    default=0,
    show_default=True,
    help="Where the training begins; any will do.",
)
@told
def train(directories: tuple[Path, ...], output: Path, seed: int) -> int:
    """Learn from the crawls in DIR... how long peers take, by their powers, for a number of URLs.

    Each peer of a crawl with --balance predictive writes what it measures to batches.jsonl in its directory; all such
    files below DIR... are read. Needs scikit-learn: pip install 'kadcrawl[predict]'. What it has learned needs none.
    """
    from kadcrawl.balance.predict import train_network as trained
    from kadcrawl.balance.training_data import load_batches, save_network

    found, skipped = load_batches(directories)
    save_network(trained(found, seed=seed), output)
    machines = len({batch.profile for batch in found})
    others = f" ({skipped} lines are none)" if skipped else ""
    click.echo(f"learned from {len(found)} batches{others} of {machines} kinds of machines; {output}")
    return DONE


def _config(
    data: Path,
    listen: tuple[str, int] | None,
    allow_network: tuple[str, ...],
    exit_when_done: bool,
    key: SwarmKey | None,
) -> Config:
    check_for_peer(data)
    host, port = listen_at(listen, data)
    return Config(
        data=data,
        host=host,
        port=port,
        allow_networks=networks_of(allow_network, data),
        swarm_key=key,
        exit_when_done=exit_when_done,
    )


def _check_writable(path: Path | None) -> None:
    """Fail before the crawl, not after it."""
    if path is not None:
        try:
            path.touch()
        except OSError as error:
            raise ConfigError(f"cannot write the summary to {path}: {error.strerror}") from None
