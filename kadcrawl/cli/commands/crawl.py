"""`kadcrawl crawl`: a whole swarm on this machine, to the end of the crawl, and the last lines about it.

Tests: tests/cli/test_command.py, tests/cli/test_command_local.py
"""

import json
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import cloup
from cloup import option, option_group

from kadcrawl.cli.commands.export import deliver
from kadcrawl.cli.exits import (
    DONE,
    INTERRUPTED,
    LEFT_BEHIND,
    NOTHING_FETCHED,
    UNDELIVERED,
    code_of_limit,
    is_interrupt,
    told,
)
from kadcrawl.cli.job_options import job_options
from kadcrawl.cli.keys import KeyOptions, key_to_begin, member_options, say_insecure
from kadcrawl.cli.local.directory_check import check_for_crawl
from kadcrawl.cli.local.supervisor import CrawlPlan, LocalSwarm, peers_of
from kadcrawl.cli.machine import MachineSettings
from kadcrawl.cli.machine_options import MachineOptions, machine_options, make_machine, say_missing
from kadcrawl.cli.options import (
    ALLOW_NETWORK,
    DATA,
    SEEDS,
    is_given,
    make_job,
    make_sinks,
    networks_of,
    say_rule_warnings,
)
from kadcrawl.cli.run import run
from kadcrawl.cli.say import tell
from kadcrawl.cli.seeds.seed_file import SeedFile
from kadcrawl.cli.targets import refuse_directories, result_directories
from kadcrawl.cli.types import WholeNumber
from kadcrawl.cli.view.addresses import shown
from kadcrawl.cli.view.last_lines import LONG_RUN_S, CrawlEnd, last_lines
from kadcrawl.cli.view.limit_end import limit_that_ended, unfinished_summary
from kadcrawl.cli.view.orders import order_lines
from kadcrawl.cli.view.progress import Progress
from kadcrawl.cli.view.summary import (
    Summary,
    figures_line,
    limits_met,
    unreachable_sentence,
)
from kadcrawl.errors import ConfigError
from kadcrawl.settings.config import Config
from kadcrawl.settings.durations import roughly
from kadcrawl.settings.job import Job
from kadcrawl.settings.job_changes import changed
from kadcrawl.settings.memory_plan import PEER_BASE_BYTES, memory_plan
from kadcrawl.store.log_parts import has_log
from kadcrawl.system.file_names import METRICS_TARGETS, PAGE_LOG
from kadcrawl.system.plural import counted, noun
from kadcrawl.system.printable import printable

LOCAL_SWARM = option_group(
    "Swarm on this machine",
    SEEDS,
    option("--peers", type=WholeNumber(1, 256), default=1, show_default=True, help="Processes, each with a peer."),
    option(
        "--in-process",
        type=WholeNumber(1, 256),
        metavar="N",
        help="Instead of --peers: N peers in one process, for laptops and tests. It is lighter, and ends as a whole.",
    ),
    option("--respawn", is_flag=True, help="Start peers that die again on their directories, not only at the end."),
    option("--summary", type=click.Path(path_type=Path, dir_okay=False), help="Write the final figures as JSON."),
    DATA,
    ALLOW_NETWORK,
)


@cloup.command(short_help="Crawl with a swarm on this machine, to the end.")
@cloup.argument("urls", nargs=-1, metavar="[URL...]")
@LOCAL_SWARM
@job_options
@member_options
@machine_options
@told
def crawl(
    urls: tuple[str, ...],
    peers: int,
    in_process: int | None,
    data: Path,
    key: KeyOptions,
    allow_network: tuple[str, ...],
    machine: MachineOptions,
    respawn: bool,
    summary: Path | None,
    seeds_file: str | None,
    **options: Any,
) -> int:
    """Crawl URL..., and the seeds of --job and --seeds, with a swarm on this machine, to the end.

    Each peer writes WARC files and pages.jsonl below DATA/peer-N, and records.jsonl if the job file has [[records]]. A
    hook that the job file names is imported from the current directory or the installed packages. Ctrl-C finishes what
    is under way and exits. The same command on the same --data goes on where it stopped, after a crash as well. Without
    URLs a crawl goes on with the seeds and the settings of its --data.

    If peers die, the others go on with what the dead had, unless all holders of a URL (--copies) die at the same
    moment. --respawn starts the dead again. If all die, all are started again, three times within an hour. While less
    than 64 MiB are left on the disk, the crawl waits for room.

    \b
    Exit codes: 0  the crawl is whole
                1  it ended with nothing fetched
                2  it could not be done as asked
                3  it ended without URLs known only to crashed peers, or before --max-pages, as crashed peers
                   had pages left of it. The same command goes on
                4  it is whole, but a --sink lacks something. The same command, or kadcrawl export, goes on
               11  interrupted, or stopped by kadcrawl stop. The same command goes on
               14  --max-bytes ended it. The same command with a larger number goes on
               15  --max-time ended it. The same command with a longer time goes on
    """
    refuse_directories(urls, "URL")
    check_for_crawl(data)
    if in_process is not None and is_given("peers"):
        raise click.UsageError("--peers and --in-process both say how many peers there are: leave out one of them")
    if in_process is not None:
        peers = in_process
    is_number_given = in_process is not None or is_given("peers")
    known = peers_of(data)
    first = data / f"peer-{min(known, default=1)}"
    names_seeds = bool(urls or options["job_file"] or seeds_file)
    seeds, job = make_job(urls, options, first, machine.limits, says_standing=names_seeds)
    named = seeds
    if not seeds and seeds_file is not None:
        peers = peers if is_number_given else max(1, len(known))
    elif not seeds:
        first, seeds = _begun(data)
        _, job = make_job(seeds, options, first, machine.limits, says_standing=not names_seeds)
        peers = peers if is_number_given else max(1, len(known))
    else:
        _say_added(seeds, first, data)
    plan = CrawlPlan(
        seeds=seeds,
        job=job,
        peers=peers,
        data=data,
        allow_networks=networks_of(allow_network, first),
        respawn=respawn,
        in_process=in_process is not None,
        swarm_key=key_to_begin(key, data),
        machine=make_machine(machine, make_sinks(machine.sinks, options["job_file"], data), job, options["job_file"]),
        named_again=named if known and job.history == "exact" else (),
        seeds_file=None if seeds_file is None else SeedFile(seeds_file),
        changes=_changes(first) if known else {},
    )
    plan = replace(
        plan,
        addresses=[*_addresses(plan.machine, max(peers, len(known)), data)],
        is_over=bool(known) and _is_over(first, changed(job, plan.changes)),
    )
    _check_memory(plan)
    _check_writable(summary)
    say_missing(plan.machine, job)
    say_rule_warnings(job, seeds, first, streams=seeds_file is not None)
    say_insecure(plan.swarm_key)
    _say_few_copies(job, peers)
    try:
        with Progress("crawl") as progress:
            swarm, result = run(_crawl(plan, progress))
    except BaseException as error:
        if is_interrupt(error) and peers_of(data):
            shown_data = printable(shlex.quote(str(data)))
            click.echo(f"kadcrawl: kadcrawl summary --data {shown_data} has the figures and the results", err=True)
        raise
    if summary is not None:
        summary.write_text(json.dumps(result.as_json(), indent=2) + "\n")
    unfinished = swarm.interrupted or swarm.stopped
    if swarm.reached_nothing:
        tell(unreachable_sentence(plan.job.network_wait_s))
    _say_result(result, plan, options["job_file"], interrupted=unfinished)
    if swarm.stopped and not swarm.interrupted:
        tell("kadcrawl: the crawl was stopped before its end; the same command goes on", err=True)
    # What a peer could not deliver before it ended, or died with.
    whole = not plan.machine.sinks or deliver(data, plan.machine.sinks)
    if swarm.interrupted:
        tell("kadcrawl: interrupted; the same command goes on", err=True)
    return INTERRUPTED if unfinished else _exit_code(result, job, whole=whole)


def _changes(directory: Path) -> dict[str, float]:
    """Return the settings of the job that orders have changed, as the peer of this directory knew them."""
    from kadcrawl.peer.job_store import journaled_changes  # Not at the top: a first crawl does without.

    return journaled_changes(directory)


def _is_over(directory: Path, job: Job) -> bool:
    """Return whether an earlier run has reached --max-bytes or --max-time, and the limit still stands.

    Of --max-pages some may be left, which crashed peers had.
    """
    from kadcrawl.crawl.crawl_limits import told_limits  # Not at the top: a first crawl does without.
    from kadcrawl.peer.job_store import journaled_limit

    limits = told_limits(job)
    return journaled_limit(directory) in (limits["bytes"], limits["time"])


def _begun(data: Path) -> tuple[Path, list[str]]:
    """Return the directory of a peer with the crawl to go on with, and its seeds. Raises UsageError without any."""
    if peers_of(data):
        from kadcrawl.cli.local.resting import job_of, journals_at_rest  # Not at the top: it loads the whole peer.

        peers, unreadable = journals_at_rest(data)
        found = [peer for peer in peers if peer.directory != data]
        job = job_of(found)
        if job is not None and job.seeds:
            seeds = f"{len(job.seeds)} seed" + ("s" if len(job.seeds) != 1 else "")
            click.echo(f"kadcrawl: going on with the crawl in {data}, which has {seeds}", err=True)
            return found[0].directory, [*job.seeds]
        for one in unreadable:
            if one.may_be_whole:
                raise ConfigError(f"cannot go on with the crawl in {data}: {one.lacking(data)}")
    raise click.UsageError(
        "Missing argument 'URL...': a crawl begins with one, or with the seeds in a --job FILE, or goes on with those "
        f"of its --data, and {data} holds no crawl"
    )


def _say_added(seeds: Sequence[str], first: Path, data: Path) -> None:
    """Say that new seeds are added to a crawl that began with others: a new crawl may have been meant."""
    if not first.is_dir():
        return
    from kadcrawl.peer.job_store import journaled_job  # Not at the top: it loads the whole peer.

    job = journaled_job(first)
    if job is not None and job.seeds and not set(seeds) & set(job.seeds):
        others = f" and {len(job.seeds) - 1} more" if len(job.seeds) > 1 else ""
        click.echo(
            f"kadcrawl: {data} has a crawl of {job.seeds[0]}{others}, which goes on with {seeds[0]} as another seed. "
            "For a new crawl choose another directory with --data",
            err=True,
        )


def _say_few_copies(job: Job, peers: int) -> None:
    """Say that the swarm has too few peers for the copies that a person asked for."""
    if peers < job.copies != Job().copies:
        click.echo(
            f"kadcrawl: each URL has {peers} {'copies' if peers > 1 else 'copy'}, one for each peer, and --copies asks "
            f"for {job.copies}; use more peers (--peers, --in-process)",
            err=True,
        )


def _addresses(machine: MachineSettings, peers: int, data: Path) -> Iterator[str]:
    """Yield the sentences that say where the metrics and the dashboard of the peers are."""
    if (address := machine.metrics) is not None and not address[1]:
        yield f"kadcrawl: {data}/peer-*/{METRICS_TARGETS} name the addresses of the metrics"
    elif address is not None:
        last = f", and of the other peers at the next ports up to {address[1] + peers - 1}" if peers > 1 else ""
        yield f"kadcrawl: metrics at http://{shown(address)}/metrics{last}"
    if machine.web is not None:
        yield f"kadcrawl: kadcrawl web {printable(shlex.quote(str(data)))} opens the dashboard"


async def _crawl(plan: CrawlPlan, progress: Progress) -> tuple[LocalSwarm, Summary]:
    swarm = LocalSwarm(plan, progress)
    return swarm, await swarm.run()


def _say_result(result: Summary, plan: CrawlPlan, job_file: Path | None, *, interrupted: bool) -> None:
    """Print the last lines of a crawl: its figures, why it is not whole, limits, failures, results, advice."""
    data, job = plan.data, plan.job
    tell(f"{figures_line(result)}; below {data}/")
    if result.seconds is not None and result.seconds >= LONG_RUN_S:
        tell(f"this run took {roughly(result.seconds)}")
    endings = () if interrupted else unfinished_summary(result, job)
    for sentence in (*endings, *order_lines(result.orders), *limits_met(result.links_left_out)):
        tell(sentence)
    limit = None if interrupted else limit_that_ended(result, job)
    end = CrawlEnd(
        data=data,
        peers=result_directories(data),
        failed=result.urls_failed,
        examples=result.failed_examples,
        record_errors=result.record_errors or 0,
        sinks=plan.machine.sinks,
        may_retry=job.history == "exact",
        job_file=job_file,
        limit=limit,
    )
    for line in last_lines(end):
        tell(line)


def _exit_code(result: Summary, job: Job, *, whole: bool) -> int:
    """Return the exit code of an ended crawl and print its meaning. `whole` is true if the sinks have everything."""
    if result.left_behind:
        tell(
            f"kadcrawl: {counted(result.left_behind, 'URL')} known only to crashed peers "
            f"{noun(result.left_behind, 'was', 'were')} not fetched. Run the same command to continue.",
            err=True,
        )
        return LEFT_BEHIND
    if not whole:
        return UNDELIVERED
    limit = limit_that_ended(result, job)
    if limit is not None and limit.lost:
        return LEFT_BEHIND
    if limit is not None:
        return code_of_limit(result.limit_reached)
    # A directory that was moved aside has pages that are not counted.
    has_pages = result.pages or any(has_log(Path(one) / PAGE_LOG) for one in result.damaged_journals)
    return DONE if has_pages else NOTHING_FETCHED


def _check_memory(plan: CrawlPlan) -> None:
    """Say what a bound on memory allows each peer, before any peer starts. Raises ConfigError if it cannot hold."""
    config = plan.machine.config(Config(data=plan.data))
    memory = memory_plan(config, PEER_BASE_BYTES)
    if memory is None:
        return
    if plan.in_process:
        raise ConfigError("--memory bounds a process, and --in-process has all peers in one: leave out one of them")
    memory.check_history(plan.job)
    click.echo(f"kadcrawl: {memory.said(memory.bound(config.limits))}", err=True)


def _check_writable(path: Path | None) -> None:
    """Fail before the crawl, not after it, if the summary cannot be written. Raises ConfigError."""
    if path is not None:
        try:
            path.touch()
        except OSError as error:
            raise ConfigError(f"cannot write the summary to {path}: {error.strerror}") from None
