"""`kadcrawl rekey` gives the peers of a directory a new key of their swarm, and tells a person the consequences.

A peer takes two keys at most: the new key and, for an hour, the former key. So a third key while the former key is good
would end that at once, and shut out peers that have not been told of the key between. A third key is refused unless a
person insists. Going back to the former key ends no key.

Tests: tests/cli/test_command_keys.py
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click
import cloup

from kadcrawl.cli.exits import DONE, MISTAKE, told
from kadcrawl.cli.targets import address_of, directories
from kadcrawl.errors import ConfigError, RemoteError
from kadcrawl.members.key_file import read_key
from kadcrawl.members.keyring import Keyring
from kadcrawl.members.peer_key import PeerKey
from kadcrawl.members.swarm_key import SwarmKey
from kadcrawl.system.clock import wall
from kadcrawl.system.file_names import FORMER_KEY, PEER_KEY


@dataclass(frozen=True, slots=True)
class One:
    """One peer that is to be told, as its directory shows it."""

    directory: Path
    address: tuple[str, int]
    keyring: Keyring
    peer_key: PeerKey

    def __str__(self) -> str:
        return f"the peer of {self.directory}"


@cloup.command(short_help="Give running peers another key.")
@cloup.argument("new", type=click.Path(path_type=Path, dir_okay=False), metavar="NEW-KEY-FILE")
@cloup.option(
    "--data",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("crawl-data"),
    show_default=True,
    help="Directory of a running peer, or of a crawl and all its peers, on this machine.",
)
@cloup.option(
    "--end-former",
    is_flag=True,
    help="Change the key although a former key is still good. The former key ends at once, and peers with only "
    "that key are shut out.",
)
@told
def rekey(new: Path, data: Path, end_former: bool) -> int:
    """Give running peers the key in NEW-KEY-FILE. For an hour they take the former key as well.

    \b
        kadcrawl keygen > new.key
        one$  kadcrawl rekey new.key --data crawl-data
        two$  kadcrawl rekey new.key --data crawl-data

    Do it on every machine whose peers are to stay, within an hour. Then peers with only the former key are out. Let
    new peers join when all have the new key: until then they know only peers that have it. A third key within the hour
    would end the first at once, and is refused without --end-former. The former key is in DATA as
    swarm.key.former. Going back to it ends no key, and a third key with --end-former then ends only the key that you
    went back from.
    The new key goes from you to one peer at a time, never from peer to peer, so only peers that you tell get it. Only a
    person with a peer's directory can tell the peer. Start a leaf again with the new key. A peer that is restarted
    with a replaced key goes on with the key that came after it.
    """
    wanted = read_key(new)
    peers = _peers(data)
    if not peers:
        if (data / PEER_KEY).exists() and address_of(data) is None:
            raise ConfigError(
                f"{data} is of a leaf, which cannot be told: stop it, and start it again with the new key (--key-file)"
            )
        raise ConfigError(f"{data} is no directory of a peer with a key, nor of a crawl of such: name one by --data")
    if not end_former:
        _refuse_third(peers, wanted, data)
    changed = [one for one in peers if _tell(one, wanted)]
    rings = [ring for ring in (_keyring(one.directory) for one in changed) if ring is not None]
    if ends := [ring.until for ring in rings if ring.former is not None]:
        click.echo(
            f"tell every other peer of the swarm by {_clock(min(ends))}, on its machine; then whoever has only the "
            "former key is out"
        )
    return DONE if len(changed) == len(peers) else MISTAKE


def _peers(data: Path) -> list[One]:
    """Return the peers that can be told. Raises StartError and ConfigError for keys that cannot be read."""
    from kadcrawl.peer.membership.key_store import KeyStore

    found = []
    for directory in directories(data):
        address, keyring, peer_key = address_of(directory), _keyring(directory), KeyStore(directory).peer_key()
        if address is not None and keyring is not None and peer_key is not None:
            found.append(One(directory, address, keyring, peer_key))
    return found


def _keyring(directory: Path) -> Keyring | None:
    """Return the keys by which the peer of this directory goes now."""
    from kadcrawl.peer.membership.key_store import KeyStore

    safe = KeyStore(directory)
    return None if (key := safe.swarm_key) is None else safe.kept(key, wall())


def _refuse_third(peers: Sequence[One], wanted: SwarmKey, data: Path) -> None:
    """Raise ConfigError, before any is told, if the change would end a key that is still good."""
    for one in peers:
        if one.keyring.former is not None and wanted not in one.keyring.keys:
            former = one.directory / FORMER_KEY
            raise ConfigError(
                f"{one} goes by two keys until {_clock(one.keyring.until)}: the one it was told last, and the former "
                "one. A third ends the former one at once, and peers that have not been told of the one between are "
                "shut out, and crawl by themselves. Wait until then; or, if no peer has only the former one, say "
                "--end-former. If the last one was a mistake, go back first, which shuts nobody out (kadcrawl rekey "
                f"{former} --data {data}), and then say --end-former, which ends only the mistaken one"
            )


def _tell(one: One, wanted: SwarmKey) -> bool:
    """Tell one peer the key, and print the result for a person. Return whether the peer goes by that key now."""
    from kadcrawl.cli.ask import ask
    from kadcrawl.link.wire.messages import Contact, Ok, Rekey

    how = "goes by that key already"
    if one.keyring.key != wanted:
        how = "goes by the new key"
        message = Rekey(one.peer_key.id, bytes.fromhex(wanted.text))
        try:
            # Whoever is to be left out has the former key, and may listen where the peer did.
            ask(Contact(one.peer_key.id, *one.address), message, Ok, one.keyring.key, one.peer_key)
        except RemoteError as error:
            if (keyring := _keyring(one.directory)) is None or keyring.key != wanted:  # Or only the answer was lost.
                click.echo(f"kadcrawl: {one} {_what_is_known(one, error)}", err=True)
                return False
    keyring = _keyring(one.directory)
    if keyring is not None and keyring.former is not None:
        how += f", and until {_clock(keyring.until)} by the former one as well"
    click.echo(f"{one} {how}")
    return True


def _what_is_known(one: One, error: RemoteError) -> str:
    """Return the state of a peer that did not confirm the key."""
    from kadcrawl.link.client_connection import NO_ANSWER, UNREACHED_PREFIX, is_hung_up

    if error.why.startswith(UNREACHED_PREFIX):
        return (
            f"cannot be reached at {one.address[0]}:{one.address[1]}, so it keeps its key: start it with the new one "
            "(--key-file), or tell it again when it runs"
        )
    if error.why.startswith(NO_ANSWER) or is_hung_up(error.why):
        return (
            f"may have taken the key or not: {error.why}. Its directory has the one before; kadcrawl status "
            f"--data {one.directory} tells whether it runs, and then the same command again whether it takes the key"
        )
    return f"goes on as before: {error.why}"


def _clock(at: float) -> str:
    """Return an instant within some hours as a person's clock shows it."""
    return time.strftime("%H:%M:%S", time.localtime(at))
