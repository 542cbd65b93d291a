"""The commands that ask a running peer: status, add, pause, resume, leave, stop.

Tests: tests/cli/test_command_live.py, tests/cli/commands/test_control.py
"""

import time
from collections.abc import Sequence
from functools import partial
from os.path import exists, isdir  # They return False also for text that can be no path.
from pathlib import Path
from typing import Literal

import click
import cloup

from kadcrawl.cli.exits import DONE, INTERRUPTED, PROBLEMS, told
from kadcrawl.cli.keys import key_to_ask, peer_options, peer_options_or_directory
from kadcrawl.cli.options import is_given
from kadcrawl.cli.seeds.seed_feeder import FeedFigures
from kadcrawl.cli.seeds.seed_file import STANDARD_INPUT, SeedFile
from kadcrawl.cli.targets import Asked, address_of, directories, goes_on, refuse_directories, rests, targets
from kadcrawl.cli.view.progress import Progress
from kadcrawl.cli.view.summary import failed_before
from kadcrawl.errors import ConfigError, RemoteError
from kadcrawl.link.wire.messages import (
    BATCH_MAX,
    Add,
    AddAgain,
    Added,
    AddedAgain,
    Answer,
    Census,
    Command,
    GetStatus,
    Ok,
    PeerRow,
    Status,
    Wave,
)
from kadcrawl.link.wire.peer_state import PeerState
from kadcrawl.settings.contact import needs_contact
from kadcrawl.system.directory_lock import is_running
from kadcrawl.system.plural import counted, noun
from kadcrawl.urls import seed

PEER = peer_options("Any peer of the swarm.")
PEER_OR_DIRECTORY = peer_options_or_directory("Any peer of the swarm.")
LEAVING_POLL_S = 0.5
"""Seconds between two looks at a leaving peer."""
LOOKS_FAILED_MAX = 3
"""Failed looks in a row at a leaving peer before the command gives up.

A single look may fall into the moment in which the peer closes its connections.
"""
ITSELF, ANSWER_S = 0, 10.0
"""A wave that goes no further (`overlay.waves.wave`), and how long its answer may take."""
STOPPED_FIRST = (
    "the swarm is stopping; the asked peer ended before all peers had answered. "
    "`kadcrawl status --peer HOST:PORT` of another peer shows whether one goes on"
)


@cloup.command()
@PEER_OR_DIRECTORY
@cloup.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
@told
def status(peer: tuple[str, int], data: Path, key_file: Path | None, as_json: bool) -> int:
    """Show the state of the swarm, peer by peer.

    If no peer of --data runs, the figures come from the directory.
    """
    from kadcrawl.cli.swarm_figures import swarm_figures
    from kadcrawl.cli.view.status import show

    found = swarm_figures(peer, data, key_file)
    show(found.status, as_json, found.damaged_journals)
    found.say_source()
    return PROBLEMS if found.is_damaged else DONE


@cloup.command()
@cloup.argument("urls", nargs=-1, required=True, metavar="URL|FILE|-...")
@cloup.option("--again", is_flag=True, help="Fetch the URLs again that are done, whether they failed or not.")
@PEER
@told
def add(urls: tuple[str, ...], again: bool, peer: tuple[str, int], data: Path, key_file: Path | None) -> int:
    """Add seeds to a running crawl.

    With --again, URLs that are done are fetched again: by the running swarm, or if no peer of --data runs, when the
    crawl goes on.

    A FILE, or standard input for -, has any number of URLs, one a line, perhaps as gzip. Blank lines and lines that
    begin with # are left out. Until it is read to its end, the crawl is not over. Killed in the middle, the same
    command goes on in the file where it stopped, if it asks the same peer. Seeds that failed before are fetched again.
    """
    refuse_directories(urls, "URL")
    inputs = [text for text in dict.fromkeys(urls) if _is_input(text)]
    seeds = list(dict.fromkeys(_seed(url) for url in urls if not _is_input(url)))
    if again:
        return add_again(seeds, inputs, peer, data, key_file)
    asked = _targets(peer, data, key_file)
    for name in inputs:
        feed_files(asked, name)
    if not seeds:
        return DONE
    _need_contact(asked, seeds)
    failed = sum(
        asked.ask(Add(seeds[first : first + BATCH_MAX]), Added).again for first in range(0, len(seeds), BATCH_MAX)
    )
    others = f"{failed_before(failed)}, and nothing else" if failed else "what was found already is not fetched again"
    click.echo(f"{len(seeds)} seed{'s' if len(seeds) != 1 else ''} added; {others}")
    return DONE


def _need_contact(asked: Asked, seeds: Sequence[str]) -> None:
    """Raise ConfigError if the swarm has no contact, and these seeds need one."""
    if needs_contact(seeds) and not asked.ask(GetStatus(), Status).job.contact:
        raise ConfigError(
            "the swarm does not say who it is: start it with --contact URL or e-mail address, "
            "so that a site's owner can reach you"
        )


def add_again(
    seeds: Sequence[str], inputs: Sequence[str], peer: tuple[str, int], data: Path, key_file: Path | None
) -> int:
    """Have these URLs fetched again, and say how many. Raises ConfigError, RemoteError."""
    from kadcrawl.cli.local.retry_at_rest import again_at_rest

    if inputs:
        raise ConfigError(f"--again takes URLs, and {inputs[0]} is an input of seeds: give the URLs themselves")
    resting = [] if is_given("peer") else directories(data)
    if rests(resting):
        done, pending, unknown = again_at_rest(resting, seeds)
        click.echo(_said_again(done, f"to be fetched again by {goes_on(data)}", pending, "pending already"))
        if unknown:
            them, seeds_named = noun(unknown, "it", "them"), noun(unknown, "a seed", "seeds")
            click.echo(f"{counted(unknown, 'URL')} not met so far: name {them} to {goes_on(data)} as {seeds_named}")
        return DONE
    asked = _targets(peer, data, key_file)
    _need_contact(asked, seeds)
    done = pending = 0
    for first in range(0, len(seeds), BATCH_MAX):
        answer = asked.ask(AddAgain(list(seeds[first : first + BATCH_MAX])), AddedAgain)
        done, pending = done + answer.again, pending + answer.pending
    click.echo(_said_again(done, "to be fetched again", pending, "new or pending already"))
    return DONE


def _said_again(done: int, how: str, pending: int, state: str) -> str:
    """Return the words about URLs that were done, and about those that are fetched without the order."""
    said = f"{counted(done, 'URL')} {how}"
    return f"{said}; {counted(pending, 'URL is', 'URLs are')} {state}" if pending else said


def _is_input(text: str) -> bool:
    """Return whether a text names standard input, a file, or a pipe, and is no URL."""
    return text == STANDARD_INPUT or ("://" not in text and exists(text) and not isdir(text))


def _seed(text: str) -> str:
    """Return the canonical URL of a text that names no file here. Raises ConfigError."""
    if "://" in text:
        return seed(text)
    if isdir(text):
        raise ConfigError(f"{text!r} is a directory, and no file of seeds")
    if text.startswith(("/", ".", "~")):
        raise ConfigError(f"no such file: {text!r}")
    try:
        return seed(text)
    except ConfigError as error:
        raise ConfigError(f"no such file, and no URL: {error}") from None


def feed_files(asked: Asked, name: str) -> None:
    """Feed one input to a running swarm. Raises ConfigError, RemoteError."""
    from kadcrawl.cli.ask import asking
    from kadcrawl.cli.run import run
    from kadcrawl.cli.seeds.feeding import feed, send_to, summary_of

    seeds, job = SeedFile(name), asked.ask(GetStatus(), Status).job

    async def whole() -> FeedFigures:
        async with asking(asked.key) as client:
            return await feed(seeds, send_to(client, lambda: asked.addresses), job, partial(click.echo, err=True))

    for line in summary_of(run(whole()), seeds):
        click.echo(line)


def _order(verb: Literal["pause", "resume", "stop"], short: str, help_text: str, said: str) -> click.Command:
    @cloup.command(verb, short_help=short, help=help_text)
    @PEER_OR_DIRECTORY
    @told
    def order(peer: tuple[str, int], data: Path, key_file: Path | None) -> int:
        from kadcrawl.link.client_connection import is_going_away

        try:
            _targets(peer, data, key_file).ask(Command(verb), Ok)
        except RemoteError as error:
            if verb != "stop" or not is_going_away(error.why):
                raise
            # A dead peer holds up the order's answer, and the asked peer stops at once.
            click.echo(STOPPED_FIRST)
        else:
            click.echo(said)
        return DONE

    return order


pause = _order(
    "pause",
    "Pause the swarm.",
    "Let the whole swarm finish what is in flight and fetch nothing more.",
    "the swarm is paused",
)
resume = _order("resume", "Let a paused swarm go on.", "Let a paused swarm go on.", "the swarm goes on")
stop = _order(
    "stop",
    "Stop the swarm. The crawl can be continued.",
    "Let every peer finish what is in flight and exit; the crawl can be continued.",
    "the swarm is stopping",
)


@cloup.command(short_help="Let one peer hand its range over and exit.")
@peer_options_or_directory("The peer that is to leave.")
@told
def leave(peer: tuple[str, int], data: Path, key_file: Path | None) -> int:
    """Let one peer hand its range over and exit, while the others go on. Returns when it is gone.

    It finishes what is under way first, waits up to half a minute for others to take over what it has, and gives its
    sinks time. Ctrl-C ends the waiting, not the leaving.
    """
    asked = _targets(peer, data, key_file)
    if len(asked.addresses) > 1:
        raise ConfigError(f"{data} holds {len(asked.addresses)} peers; name the one that is to leave: {data}/peer-N")
    asked.ask(Command("leave"), Ok)
    try:
        with Progress("leaving") as progress:
            progress.say("the peer is leaving: it finishes what is under way and hands its range over ...")
            while _is_leaving(asked, progress):
                time.sleep(LEAVING_POLL_S)
    except KeyboardInterrupt:
        click.echo("kadcrawl: the peer goes on leaving", err=True)
        return INTERRUPTED
    click.echo("the peer has left")
    return DONE


def _is_leaving(asked: Asked, progress: Progress) -> bool:
    """Show the row of a leaving peer. Returns False once the peer is gone. Raises RemoteError."""
    row = _row_of(asked)
    if row is None:
        return _keeps_its_directory(asked)
    progress.update([row])
    return row.state is PeerState.LEAVING  # Or something has started it again already.


def _keeps_its_directory(asked: Asked) -> bool:
    """Return whether a peer that answers no more still has its directory, as it closes its journal.

    A peer that was started there since notes another address, or answers.
    """
    if asked.data is None:
        return False  # The peer may be on another machine.
    return any(address_of(one) in asked.addresses and is_running(one) for one in directories(asked.data))


def _row_of(asked: Asked) -> PeerRow | None:
    """Return the row of a peer, or None if the peer cannot be reached. Raises RemoteError."""
    from kadcrawl.cli.ask import ask
    from kadcrawl.link.client_connection import UNREACHED_PREFIX
    from kadcrawl.link.wire.codec import unpack_part

    for look in range(1, LOOKS_FAILED_MAX + 1):
        try:
            answer = ask(asked.addresses[0], Wave(ITSELF, ANSWER_S, Census()), Answer, asked.key)
        except RemoteError as error:
            if error.why.startswith(UNREACHED_PREFIX):
                return None
            if look == LOOKS_FAILED_MAX:
                raise
            time.sleep(LEAVING_POLL_S)
        else:
            return unpack_part(answer.rows[0], PeerRow)
    return None


def _targets(peer: tuple[str, int], data: Path, key_file: Path | None) -> Asked:
    return targets(peer, data, key_to_ask(key_file, data))
