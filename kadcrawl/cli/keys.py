"""Which key a command goes by, and where it comes from: a file, the environment, a peer's directory; never an argument.

--key-file FILE, else KADCRAWL_KEY, else what the directory of --data was made with.

Tests: tests/cli/test_command_keys.py
"""

import os
import stat
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import click

from kadcrawl.cli.exits import DONE, told
from kadcrawl.cli.options import Address
from kadcrawl.cli.targets import directories
from kadcrawl.errors import ConfigError
from kadcrawl.members.key_file import read_kept_key, read_key, write_secret
from kadcrawl.members.swarm_key import SwarmKey
from kadcrawl.settings.config import PORT_DEFAULT
from kadcrawl.system.file_names import JOURNAL, PEER_KEY, SWARM_KEY

Function = TypeVar("Function", bound=Callable[..., Any])

VARIABLE = "KADCRAWL_KEY"
HOW = f"--key-file FILE, or {VARIABLE}"

_KEY_FILE = click.option(
    "--key-file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help=f"The swarm's key, in a file only you can read, or - for the standard input; else {VARIABLE} has it, or the "
    "directory of --data.",
)
_INSECURE = click.option(
    "--insecure",
    is_flag=True,
    help="Go without a key: nothing is encrypted and whoever reaches a peer is in, so it listens on this machine only.",
)

REKEYED = click.option(
    "--rekeyed",
    is_flag=True,
    help="The key is not the one of --data because the swarm's was changed meanwhile, and nobody is left there whom "
    "this peer knew. (Without it a directory of another swarm is refused.)",
)


def member_options(command: Function) -> Function:
    """Add the options of a command that runs peers."""
    return _KEY_FILE(_INSECURE(command))


def peer_options(help_text: str) -> Callable[[Function], Function]:
    """Return what adds the options of a command that asks a running peer."""
    address = click.option(
        "--peer",
        type=Address(),
        default=f"127.0.0.1:{PORT_DEFAULT}",
        show_default=True,
        help=f"{help_text} By default the one of --data, if that is here.",
    )
    data = click.option(
        "--data",
        type=click.Path(path_type=Path, file_okay=False),
        default=Path("crawl-data"),
        show_default=True,
        help="Directory of a peer, or a crawl, on this machine: it knows the address and the key.",
    )
    return lambda command: address(data(_KEY_FILE(command)))


def key_to_begin(key_file: Path | None, insecure: bool, data: Path) -> SwarmKey | None:
    """Return the key of a swarm that begins, a new one if none is given; None if it is to have none.

    Raises ConfigError.
    """
    key = _key(key_file, insecure, data)
    if key is not None or insecure:
        return key
    if any((directory / JOURNAL).exists() for directory in directories(data)):
        click.echo(
            f"kadcrawl: the swarm of {data} had no key; it gets one now, and the peer another ID: others need the key "
            "to join, and --insecure goes on without",
            err=True,
        )
    return SwarmKey.generate()


def key_to_join(key_file: Path | None, insecure: bool, data: Path) -> SwarmKey | None:
    """Return the key of a swarm that is there; None if it has none. Raises ConfigError, above all if none is given."""
    key = _key(key_file, insecure, data)
    if key is None and not insecure:
        raise ConfigError(
            f"to join, this peer needs the swarm's key: {HOW}. Whoever began the swarm has it in its --data, as "
            f"{SWARM_KEY}; a swarm that was begun with --insecure has none, and is joined with --insecure"
        )
    return key


def key_to_ask(key_file: Path | None, data: Path) -> SwarmKey | None:
    """Return the key by which a peer is asked; None if there is none here, so that it may have none either.

    Raises ConfigError.
    """
    return _key(key_file, False, data)


def say_insecure(key: SwarmKey | None) -> None:
    """Say loudly what it means to go without a key."""
    if key is None:
        click.echo(
            "kadcrawl: --insecure: nothing is encrypted, and whoever is on this machine can join and steer the crawl",
            err=True,
        )


def _key(key_file: Path | None, insecure: bool, data: Path) -> SwarmKey | None:
    text = os.environ.pop(VARIABLE, None)  # Processes started from here have no use for it.
    if insecure:
        if key_file is not None:
            raise ConfigError("--insecure means no key: leave out one of --insecure and --key-file")
        return None
    if key_file is not None:
        return read_key(key_file)
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


@click.command()
@told
def keygen() -> int:
    """Print a new swarm's key: 32 random bytes in 64 hexadecimal digits.

    \b
        kadcrawl keygen > swarm.key
        one$  kadcrawl start https://example.org/ --key-file swarm.key --listen 10.0.0.1:4160
        two$  kadcrawl join --key-file swarm.key --bootstrap 10.0.0.1:4160

    Whoever has it is a member: can read and steer the crawl, and let its own peers in. If the output is a file, only
    you can read that from then on; copy it by a way that nobody else reads, such as scp.
    """
    key, out = SwarmKey.generate().text, os.fstat(sys.stdout.fileno())
    if stat.S_ISREG(out.st_mode) and out.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        write_secret(_name_of_output(out), f"{key}\n".encode())
    else:
        click.echo(key)
    return DONE


def _name_of_output(out: os.stat_result) -> Path:
    """Return the name of the empty file the output goes to, for another file that takes its place.

    Others could open it before we were started, and whoever has it open reads what comes later, whatever its mode is by
    then. Raises ConfigError if that is not all there is to it.
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
