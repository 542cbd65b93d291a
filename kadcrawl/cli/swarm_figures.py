"""The figures of a swarm for `kadcrawl status` and `kadcrawl summary`: from a running peer, or else from a directory.

Tests: tests/cli/test_command_resting.py
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kadcrawl.cli.keys import key_to_ask
from kadcrawl.cli.say import say
from kadcrawl.cli.targets import (
    ANOTHER,
    NotRunningError,
    address_of,
    directories,
    goes_on,
    is_set_aside,
    peer_directories,
    targets,
)
from kadcrawl.errors import ConfigError
from kadcrawl.link.wire.messages import GetStatus, Status
from kadcrawl.system.clock import wall
from kadcrawl.system.directory_lock import is_running

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kadcrawl.cli.local.resting import UnreadableJournal


@dataclass(frozen=True, slots=True)
class FoundFigures:
    """The status of a swarm, and where it is from."""

    status: Status
    directory: Path | None
    """The directory with the journals that the figures are from, or None if a peer answered."""
    unreadable: "Sequence[UnreadableJournal]" = ()
    """The journals in the directory whose figures are missing."""
    granted_elsewhere: int = 0
    """Pages of `--max-pages` that were granted to peers whose journals are not in the directory."""

    @property
    def damaged_journals(self) -> list[str]:
        """The directories of the journals whose figures are missing."""
        return [str(one.directory) for one in self.unreadable]

    @property
    def is_damaged(self) -> bool:
        """True if figures are missing, as a journal is damaged whose directory nobody has moved aside."""
        data = self.directory
        return data is not None and any(not is_set_aside(one.directory, data) for one in self.unreadable)

    @property
    def is_of_leaf(self) -> bool:
        """True if the directory is that of a leaf: no peer can go on with it, and it keeps no URLs to retry."""
        rows = self.status.answer.rows
        return self.directory is not None and bool(rows) and all(row.hosted_leaf for row in rows)

    def say_source(self) -> None:
        """Print that no peer answered, the journals that are damaged, and the command that goes on with the crawl."""
        if self.directory is not None:
            verb = "crawl" if peer_directories(self.directory) else "start"
            advice = f"; {goes_on(self.directory)} goes on" if self._may_go_on(verb) else ""
            if self.is_of_leaf:
                advice = "; the same kadcrawl join --leaf goes on"
            source = f"no peer runs in {self.directory}, whose journals have these figures"
            click.echo(f"kadcrawl: {source}{advice}", err=True)
        for one in self.unreadable:
            say(f"kadcrawl: {one.lacking(self.directory)}", err=True)

    def _may_go_on(self, verb: str) -> bool:
        """Return whether a URL may be left: in the journals, or if they are not all, elsewhere."""
        is_whole = verb == "crawl" and not self.unreadable
        return not is_whole or any(row.pending or row.due_s is not None for row in self.status.answer.rows)


def swarm_figures(peer: tuple[str, int], data: Path, key_file: Path | None) -> FoundFigures:
    """Return the figures of the swarm of this peer or directory. Raises ConfigError, RemoteError."""
    try:
        return FoundFigures(targets(peer, data, key_to_ask(key_file, data)).ask(GetStatus(), Status), None)
    except NotRunningError:
        running = [one for one in directories(data) if is_running(one)]
        listening = [one for one in running if address_of(one) is not None]
        if listening:
            raise ConfigError(
                f"the peer of {listening[0]} runs, and does not answer (yet): it starts, waits for its swarm "
                f"(kadcrawl join --wait), or ends. {ANOTHER}"
            ) from None
        if running:
            raise  # It is a leaf.
        from kadcrawl.cli.local.resting import granted_elsewhere, job_of, journals_at_rest, status_of

        peers, unreadable = journals_at_rest(data)
        job = job_of(peers)
        if job is None and unreadable:
            raise ConfigError(". ".join(one.lacking(data) for one in unreadable)) from None
        if job is None:
            raise
        return FoundFigures(status_of(peers, job, wall()), data, unreadable, granted_elsewhere(peers))
