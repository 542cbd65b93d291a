"""`kadcrawl web` opens the dashboard of a running peer of this machine in a browser, by a token that is good once.

Tests: tests/cli/commands/test_web.py
"""

import json
import secrets
import webbrowser
from pathlib import Path
from typing import NamedTuple

import click
import cloup

from kadcrawl.cli.directory_arguments import ALSO, DATA_DIRECTORY, directory_argument
from kadcrawl.cli.exits import DONE, told
from kadcrawl.cli.targets import address_of, directories, peers_below
from kadcrawl.errors import ConfigError
from kadcrawl.members.key_file import read_secret
from kadcrawl.system.clock import wall
from kadcrawl.system.directory_lock import is_running
from kadcrawl.system.file_names import DASHBOARD
from kadcrawl.system.printable import printable

ITSELF, ANSWER_S = 0, 10.0
"""A wave that goes no further (`overlay.waves.wave`), and how long its answer may take."""


class OpenDashboard(NamedTuple):
    """The dashboard of a running peer, as the file in its directory tells."""

    url: str
    secret: bytes


@cloup.command(short_help="Open the dashboard of a running peer.")
@directory_argument
@cloup.option(
    "--data",
    type=DATA_DIRECTORY,
    default=Path("crawl-data"),
    show_default=True,
    help=ALSO,
)
@cloup.option("--no-open", is_flag=True, help="Print the address, and open no browser.")
@told
def web(data: Path, no_open: bool) -> int:
    """Open the dashboard of a peer that runs on this machine in a browser, and print its address.

    DIR is the directory of the peer, or of a crawl with several peers, by default crawl-data. A peer that was started
    without --web opens its dashboard now, on loopback. A leaf needs --web.

    The address holds a token that is good once, for five minutes. So keep it to yourself: the first browser that opens
    it has a session of twelve hours, or until the swarm gets another key. Only a person who can read the peer's
    directory can make a token.
    """
    from kadcrawl.web.tokens import NONCE_BYTES, make_token  # Not at the top: no other command needs this room.

    found = _dashboard(data)
    address = f"{found.url}#token={make_token(found.secret, wall(), secrets.token_bytes(NONCE_BYTES))}"
    click.echo(address)
    if not no_open and not webbrowser.open(address):
        click.echo("kadcrawl: no browser was found here: open the address in one on this machine", err=True)
    return DONE


def _dashboard(data: Path) -> OpenDashboard:
    """Return the dashboard of the first peer of a directory that has one. Raises ConfigError if none has."""
    running = [directory for directory in directories(data) if _runs(directory)]
    for directory in running:
        if (directory / DASHBOARD).exists():
            return read_dashboard(directory / DASHBOARD)
    for directory in running:
        if (address := address_of(directory)) is not None:
            _let_open(directory, address)
            return read_dashboard(directory / DASHBOARD)
    if running:
        raise ConfigError(
            f"{running[0]} is of a leaf, which cannot be asked to open its dashboard: start it with --web"
        )
    if not data.exists():
        raise ConfigError(f"there is no {data}: name the directory of a running peer, or of a crawl, on this machine")
    if not any(map(address_of, directories(data))) and (below := peers_below(data)) is not None:
        raise ConfigError(below)
    raise ConfigError(f"no peer runs in {data}: start it with --web, and look at what it has done by kadcrawl status")


def _let_open(directory: Path, address: tuple[str, int]) -> None:
    """Have a running peer open its dashboard. Raises RemoteError and ConfigError."""
    from kadcrawl.cli.ask import ask
    from kadcrawl.link.wire.codec import unpack_part
    from kadcrawl.link.wire.messages import Answer, Census, Contact, Ok, OpenDashboard, PeerRow, Wave
    from kadcrawl.peer.membership.key_store import KeyStore

    kept = KeyStore(directory)
    key, peer_key = kept.swarm_key, kept.peer_key()
    if key is None or peer_key is None:  # In a swarm without a key nobody proves an ID.
        answer = ask(address, Wave(ITSELF, ANSWER_S, Census()), Answer, None)
        ask(address, OpenDashboard(unpack_part(answer.rows[0], PeerRow).contact.id), Ok, None)
        return
    ask(Contact(peer_key.id, *address), OpenDashboard(peer_key.id), Ok, kept.kept(key, wall()).key, peer_key)


def _runs(directory: Path) -> bool:
    return directory.is_dir() and is_running(directory)


def read_dashboard(path: Path) -> OpenDashboard:
    """Return the dashboard that a file tells of. Raises ConfigError."""
    read = read_secret(path, what="secret of the dashboard")
    try:
        said = json.loads(read)
        return OpenDashboard(printable(str(said["url"])), bytes.fromhex(said["secret"]))
    except (ValueError, KeyError, TypeError):
        raise ConfigError(f"{path} is damaged: start the peer again") from None
