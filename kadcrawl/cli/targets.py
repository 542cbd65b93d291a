"""A command asks the peer at --peer, or else the first peer of --data that is up.

If no peer can be asked, the error tells what is wrong with the directory, and what to do instead.
"""

import shlex
from dataclasses import dataclass
from os.path import isdir  # It returns False also for text that can be no path.
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from kadcrawl.cli.options import is_given
from kadcrawl.cli.view.addresses import shown
from kadcrawl.errors import ConfigError, RemoteError
from kadcrawl.link.wire.messages import Message
from kadcrawl.members.swarm_key import SwarmKey
from kadcrawl.store.log_parts import has_log
from kadcrawl.system.directory_lock import is_running
from kadcrawl.system.file_names import ADDRESS, JOURNAL, PAGE_LOG, PEER_KEY
from kadcrawl.system.printable import printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

NAMED_MAX = 5
"""Limit on the directories that an error names."""
ANOTHER = "--peer HOST:PORT asks any other peer of the swarm"

Expected = TypeVar("Expected", bound=Message)


class NotRunningError(ConfigError):
    """No peer of a directory can be asked: none is up, or the directory is a leaf's."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The peers that a command may ask, and the key. The first peer that is up answers."""

    addresses: "Sequence[tuple[str, int]]"
    data: Path | None
    """The directory of the addresses, or None for addresses that a person gave."""
    key: SwarmKey | None

    def ask(self, message: Message, expected: type[Expected]) -> Expected:
        """Return the answer of the first that can be reached. Raises RemoteError, with what to do if none can."""
        from kadcrawl.cli.ask import ask
        from kadcrawl.link.client_connection import UNREACHED_PREFIX

        why = None
        for address in self.addresses:
            try:
                return ask(address, message, expected, self.key)
            except RemoteError as error:
                if self.data is None or not error.why.startswith(UNREACHED_PREFIX):
                    raise
                why = error
        assert why is not None, "somebody is asked"
        assert self.data is not None, "addresses of a person have raised"
        if len(self.addresses) > 1:
            which = f"none of the {len(self.addresses)} peers of {self.data} is up"
        else:
            which = f"the peer of {self.data} is not up; it listened at {shown(self.addresses[0])}"
        raise NotRunningError(f"{which}. {_how_to_go_on(self.data)}; {ANOTHER}") from why


def targets(peer: tuple[str, int], data: Path, key: SwarmKey | None) -> Asked:
    """Return who is asked by these options. Raises ConfigError if the directory was named and knows nobody."""
    if is_given("peer"):
        return Asked([peer], None, key)
    found = [address for directory in directories(data) if (address := address_of(directory)) is not None]
    if found:
        return Asked(found, data, key)
    if not is_given("data"):
        return Asked([peer], None, key)
    if not data.exists():
        why = f"there is no {data}: --data names the directory of a peer on this machine, or of a crawl"
    elif any((data / name).exists() for name in (JOURNAL, PEER_KEY)):
        why = f"{data} is of a leaf, which listens nowhere and cannot be asked, nor told to leave but by Ctrl-C"
        raise NotRunningError(f"{why}. {ANOTHER}")
    elif (below := peers_below(data)) is not None:
        why = below
    else:
        why = (
            f"{data} holds no peer: --data names the directory of one on this machine, or a directory whose peers are "
            "in peer-1, peer-2 and so on"
        )
    raise ConfigError(f"{why}. {ANOTHER}")


def refuse_directories(texts: "Iterable[str]", what: str) -> None:
    """Raise ConfigError for the directory of a crawl in place of a site or a URL (`what`).

    If --data or --peer is given, the text means what it says: a directory may have the name of a site.
    """
    parameters = click.get_current_context().params
    if any(name in parameters and is_given(name) for name in ("data", "peer")):
        return
    for text in texts:
        if isdir(text) and any((directory / JOURNAL).exists() for directory in data_directories(Path(text))):
            named = printable(shlex.quote(text))
            raise ConfigError(f"{named} is the directory of a crawl, and no {what}: give it as --data {named}")


def peers_below(data: Path) -> str | None:
    """Return a sentence about the peers in directories of any name in this one, or None if there are none.

    They may be of several swarms, so a person has to name one.
    """
    found = sorted(path.parent for path in data.glob(f"*/{ADDRESS}"))
    running = [directory for directory in found if is_running(directory)]
    if not (named := running or found):
        return None
    peers = "a peer" if len(named) == 1 else "peers"
    run = "ran" if not running else "runs" if len(named) == 1 else "run"
    more = f" and {len(named) - NAMED_MAX} more" if len(named) > NAMED_MAX else ""
    names = ", ".join(printable(str(directory)) for directory in named[:NAMED_MAX])
    return f"{data} holds no peer itself, but {peers} {run} in {names}{more}: name the directory of one peer"


def _how_to_go_on(data: Path) -> str:
    """Return the sentence on going on with a directory whose peers are not up."""
    for one in directories(data):
        if has_lost_journal(one) and not is_set_aside(one, data):
            from kadcrawl.store.line_log import MOVE_AWAY  # Not at the top: few directories have lost their journal.

            return f"The journal of {one} is not there, and nothing goes on without it; {MOVE_AWAY}"
    return "The command that started it goes on with it"


def has_lost_journal(directory: Path) -> bool:
    """Return whether the journal is gone of a peer with pages. Results that were copied alone have no address."""
    return not (directory / JOURNAL).exists() and (directory / ADDRESS).exists() and has_log(directory / PAGE_LOG)


def directories(data: Path) -> list[Path]:
    """Return the directories of peers: this one, or those of a crawl."""
    return [data, *peer_directories(data)]


def data_directories(data: Path) -> list[Path]:
    """Return the directories that may hold a peer's data: this one, and those in it.

    A peer or leaf of a swarm may have a directory of any name, in which its journal or its pages are.
    """
    others = (path.parent for name in (JOURNAL, PAGE_LOG) for path in data.glob(f"*/{name}"))
    return [data, *sorted({*peer_directories(data), *others})]


def result_directories(data: Path) -> list[Path]:
    """Return the directories of the peers of a crawl, and of other peers and leaves at `data` or in it with pages."""
    peers = peer_directories(data)
    return [one for one in data_directories(data) if one in peers or has_log(one / PAGE_LOG)]


def peer_directories(data: Path) -> list[Path]:
    """Return the directories of the peers of a crawl, also of those set aside."""
    return sorted(path for path in data.glob("peer-*") if path.is_dir())


def is_set_aside(directory: Path, data: Path) -> bool:
    """Return whether the directory of a peer of a crawl was moved aside: the crawl goes on without it."""
    number = directory.name.removeprefix("peer-")
    is_named_by_crawl = number != directory.name
    return directory != data and is_named_by_crawl and not (number.isascii() and number.isdecimal())


def of_full_peers(directories: "Sequence[Path]") -> list[Path]:
    """Return those of these directories whose peers have cells, as no leaf has."""
    return [one for one in directories if (one / JOURNAL).exists() and (one / ADDRESS).exists()]


def rests(directories: "Sequence[Path]") -> bool:
    """Return whether these directories hold full peers, and none of the peers is running."""
    held = of_full_peers(directories)
    return bool(held) and not any(map(is_running, held))


def goes_on(data: Path) -> str:
    """Return the command that goes on with the crawl, or with the peer, of a directory."""
    verb = "crawl" if peer_directories(data) else "start"
    return f"kadcrawl {verb} --data {printable(shlex.quote(str(data)))}"


def address_of(directory: Path) -> tuple[str, int] | None:
    """Return the address of the peer of this directory, now or in its last run, or None without any."""
    try:
        host, _, port = (directory / ADDRESS).read_text().strip().rpartition(":")
        return host.strip("[]"), int(port)
    except (OSError, ValueError):
        return None
