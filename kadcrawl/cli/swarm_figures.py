"""The figures of a swarm for `kadcrawl status` and `kadcrawl summary`: from a running peer, or else from a directory.

Tests: tests/cli/test_command_resting.py
"""

from dataclasses import dataclass
from pathlib import Path

import click

from kadcrawl.cli.keys import key_to_ask
from kadcrawl.cli.targets import NotRunningError, peer_directories, targets
from kadcrawl.errors import ConfigError
from kadcrawl.link.wire.messages import GetStatus, Status
from kadcrawl.system.clock import wall
from kadcrawl.system.directory_lock import is_running


@dataclass(frozen=True, slots=True)
class FoundFigures:
    """The status of a swarm, and where it is from."""

    status: Status
    directory: Path | None
    """The directory with the journals that the figures are from, or None if a peer answered."""

    def say_source(self) -> None:
        """Print that no peer answered, and the command that goes on with the crawl."""
        if self.directory is not None:
            verb = "crawl" if peer_directories(self.directory) else "start"
            click.echo(
                f"kadcrawl: no peer runs in {self.directory}, whose journals have these figures; "
                f"kadcrawl {verb} --data {self.directory} goes on",
                err=True,
            )


def swarm_figures(peer: tuple[str, int], data: Path, key_file: Path | None) -> FoundFigures:
    """Return the figures of the swarm of this peer or directory. Raises ConfigError, RemoteError."""
    try:
        return FoundFigures(targets(peer, data, key_to_ask(key_file, data)).ask(GetStatus(), Status), None)
    except NotRunningError as error:
        from kadcrawl.cli.local.resting import job_of, resting_peers, status_of

        peers = resting_peers(data)
        job = job_of(peers)
        if job is None:
            raise
        if any(is_running(one.directory) for one in peers):
            raise ConfigError(f"{error}. Its process runs, and does not answer (yet)") from None
        return FoundFigures(status_of(peers, job, wall()), data)
