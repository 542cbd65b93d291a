"""The swarm's key for a command comes from a file, the environment or a peer's directory, never from an argument.

--key-file FILE wins over KADCRAWL_KEY, which wins over the key in the directory of --data. A peer that joins a peer of
the same user on the same machine needs none of them: own_peers.py finds the directory of the other peer.

Tests: tests/cli/test_command_keys.py
"""

import os
import stat
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar, cast

import click
import cloup
from cloup import option, option_group

from kadcrawl.cli.directory_arguments import ALSO, DATA_DIRECTORY, directory_argument
from kadcrawl.cli.exits import DONE, told
from kadcrawl.cli.options import Address
from kadcrawl.cli.own_peers import directory_at
from kadcrawl.cli.targets import directories
from kadcrawl.errors import ConfigError
from kadcrawl.members.key_file import read_kept_key, read_key, write_secret
from kadcrawl.members.swarm_key import SwarmKey
from kadcrawl.settings.config import PORT_DEFAULT
from kadcrawl.system.file_names import JOURNAL, PEER_KEY, SWARM_KEY

Function = TypeVar("Function", bound=Callable[..., Any])

VARIABLE = "KADCRAWL_KEY"
HOW = f"--key-file FILE, or {VARIABLE}"

_KEY_FILE = option(
    "--key-file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="The swarm's key is in this file, which only you can read. - means the standard input.  [default: "
    f"{VARIABLE} in the environment, or the key in --data]",
)
_INSECURE = option(
    "--insecure",
    is_flag=True,
    help="Go without a key. Nothing is encrypted and everybody who reaches a peer can join, so the peer listens on "
    "this machine only.",
)

REKEYED = option(
    "--rekeyed",
    is_flag=True,
    help="Take another key than that in --data: the swarm's key was changed meanwhile, and no peer that this peer knew "
    "is left. Without this option a directory of another swarm is refused.",
)


@dataclass(frozen=True, slots=True)
class KeyOptions:
    """The options of `member_options`, as given."""

    key_file: Path | None
    insecure: bool


MEMBER = option_group("Swarm key", _KEY_FILE, _INSECURE)


def member_options(command: Function) -> Function:
    """Add the options of a command that runs peers. The command gets them as `key`, a `KeyOptions`."""

    @wraps(command)
    def gathered(*args: Any, key_file: Path | None, insecure: bool, **options: Any) -> Any:
        return command(*args, key=KeyOptions(key_file, insecure), **options)

    return cast("Function", MEMBER(gathered))


def peer_options(help_text: str) -> Callable[[Function], Function]:
    """Return a decorator that adds the options of a command that asks a running peer."""
    return _peer_options(help_text, "")


def peer_options_or_directory(help_text: str) -> Callable[[Function], Function]:
    """Return a decorator as `peer_options` does, for a command whose only argument may be the directory."""

    def decorate(command: Function) -> Function:
        return _peer_options(help_text, f" {ALSO}")(directory_argument(command))

    return decorate


def _peer_options(help_text: str, also: str) -> Callable[[Function], Function]:
    return option_group(
        "Peer to ask",
        option(
            "--peer",
            type=Address(),
            default=f"127.0.0.1:{PORT_DEFAULT}",
            show_default=True,
            help=f"{help_text} By default the peer of --data, if that is here.",
        ),
        option(
            "--data",
            type=DATA_DIRECTORY,
            default=Path("crawl-data"),
            show_default=True,
            help=f"Directory of a peer, or of a crawl, on this machine: it holds the address and the key.{also}",
        ),
        _KEY_FILE,
    )


def key_to_begin(given: KeyOptions, data: Path) -> SwarmKey | None:
    """Return the key of a new swarm: as given, or a fresh key, or None with --insecure. Raises ConfigError."""
    key = _key(given, data)
    if key is not None or given.insecure:
        return key
    if any(_has_begun(directory) for directory in directories(data)):
        click.echo(
            f"kadcrawl: the swarm of {data} had no key; it gets one now, and the peer another ID: others need the key "
            "to join, and --insecure goes on without",
            err=True,
        )
    return SwarmKey.generate()


def _has_begun(directory: Path) -> bool:
    """Return whether the peer of a directory has been in a swarm. A start that failed earlier leaves a journal too."""
    if not (directory / JOURNAL).exists():
        return False
    from kadcrawl.peer.job_store import journaled_job  # Not at the top: it loads the whole peer.

    return journaled_job(directory) is not None


def key_to_join(given: KeyOptions, data: Path) -> SwarmKey | None:
    """Return the key of the swarm to join, or None with --insecure. Raises ConfigError if no key is given."""
    key = _key(given, data)
    if key is None and not given.insecure:
        raise ConfigError(
            f"to join, this peer needs the swarm's key: {HOW}. No peer of yours on this machine listens at "
            f"--bootstrap, so copy the file {SWARM_KEY} from the --data of a peer of the swarm, by a way that "
            "nobody else reads. A swarm that was begun with --insecure has no key, and is joined with --insecure"
        )
    return key


def directory_to_ask(given: KeyOptions, bootstrap: Sequence[tuple[str, int]]) -> Path | None:
    """Return the directory of this user's peer at one of these addresses, or None if a key is given or none is known.

    The swarm's key is in that directory, unless the swarm has none.
    """
    if given.insecure or given.key_file is not None or os.environ.get(VARIABLE):
        return None
    return next((found for address in bootstrap if (found := directory_at(address)) is not None), None)


def key_of_neighbor(directory: Path) -> SwarmKey:
    """Return the swarm's key from the directory of another peer of this user. Raises ConfigError if it has none."""
    if not (directory / SWARM_KEY).exists():
        raise ConfigError(f"the swarm of your peer in {directory} was begun with --insecure: join it with --insecure")
    return read_kept_key(directory / SWARM_KEY)


def key_to_ask(key_file: Path | None, data: Path) -> SwarmKey | None:
    """Return the key for a question to a peer, or None if there is no key here. Raises ConfigError."""
    return _key(KeyOptions(key_file, insecure=False), data)


def say_insecure(key: SwarmKey | None) -> None:
    """Print a warning about a swarm without a key."""
    if key is None:
        click.echo(
            "kadcrawl: --insecure: nothing is encrypted, and whoever is on this machine can join and steer the crawl",
            err=True,
        )


def _key(given: KeyOptions, data: Path) -> SwarmKey | None:
    text = os.environ.pop(VARIABLE, None)  # Processes started from here have no use for it.
    if given.insecure:
        if given.key_file is not None:
            raise ConfigError("--insecure means no key: leave out one of --insecure and --key-file")
        return None
    if given.key_file is not None:
        return read_key(given.key_file)
    if text:
        try:
            return SwarmKey.from_text(text, f"{VARIABLE} of the environment")
        except ConfigError as error:
            raise ConfigError(f"{VARIABLE}: {error}") from None
    found = directories(data)
    for directory in found:
        if (directory / SWARM_KEY).exists():
            return read_kept_key(directory / SWARM_KEY)
    for directory in found:
        if (directory / PEER_KEY).exists():
            raise ConfigError(
                f"{directory} is of a peer whose swarm has a key, and that is not there: give it by {HOW}, or choose "
                "another directory with --data"
            )
    return None


@cloup.command(short_help="Print a key for a new swarm.")
@told
def keygen() -> int:
    """Print a new swarm's key: 32 random bytes in 64 hexadecimal digits.

    \b
        kadcrawl keygen > swarm.key
        one$  kadcrawl start https://example.org/ --key-file swarm.key --listen 10.0.0.1:4160
        two$  kadcrawl join --key-file swarm.key --bootstrap 10.0.0.1:4160

    Everybody with the key is a member: a member can read and steer the crawl, and let other peers in. If the output is
    a file, only you can read that file from then on. Copy it by a way that nobody else reads, such as scp.
    """
    key, out = SwarmKey.generate().text, os.fstat(sys.stdout.fileno())
    if stat.S_ISREG(out.st_mode) and out.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        write_secret(_name_of_output(out), f"{key}\n".encode())
    else:
        click.echo(key)
    return DONE


def _name_of_output(out: os.stat_result) -> Path:
    """Return the name of the empty file that the output goes to, so that another file takes its place.

    Others could open the file before this process started, and a process with an open file reads later writes,
    whatever the file's mode is by then. Raises ConfigError if the file is not a new and empty file of this user.
    """
    with suppress(OSError):  # It has no name here.
        path = Path(os.readlink(f"/dev/fd/{sys.stdout.fileno()}"))
        is_its_own = (out.st_size, out.st_nlink, out.st_uid) == (0, 1, os.geteuid())
        if is_its_own and os.path.samestat(out, path.lstat()):
            return path
    raise ConfigError(
        "others can open the file this goes to, and would read the key: say umask 077 first, and give the name of a "
        "file that is not there yet"
    )
