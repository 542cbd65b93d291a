"""The protocol between `kadcrawl crawl` and its peer processes: lines of JSON over a child's stdin and stdout.

The parent sends an `Assignment`. Once all children are ready, it sends `Go` to one child. The end of stdin means:
finish and exit. A child sends `Ready`, `Going` in answer to `Go`, a `Doing` and a `DoingSites` now and then, and at
last `Final`, or `Unable` in place of any. Plain values only, so that the parent, which crawls nothing, need not load
the rooms of a peer.

Tests: tests/cli/local/test_child_main.py, tests/cli/test_parts.py
"""

import msgspec

from kadcrawl.cli.machine import MachineSettings
from kadcrawl.cli.view.live.sites import SiteReport
from kadcrawl.link.wire.messages import PeerRow
from kadcrawl.link.wire.order_messages import StandingOrder
from kadcrawl.settings.job import Job

PIPE_LINE_BYTES_MAX = 16 * 1024 * 1024
"""One line: as many seeds as a command line holds fit several times."""


class Assignment(msgspec.Struct):
    """The parent's assignment for a peer."""

    data: str
    job: Job
    allow_networks: tuple[str, ...]
    bootstrap: list[tuple[str, int]]
    """Peers to join. The first peer has none and begins paused."""
    machine: MachineSettings = MachineSettings()
    swarm_key: str | None = None
    """The swarm's key as text."""
    sites_interval_s: float = 60.0
    """Seconds between two reports of sites."""
    title: str = ""
    """The title of the peer's process, such as `peer 3 of 4`."""


class Go(msgspec.Struct):
    """All peers are there: add these seeds, if any, and let the whole swarm fetch."""

    seeds: list[str]
    resume: bool = True
    """False if the swarm stays paused, as more seeds are to come."""
    named_again: list[str] = msgspec.field(default_factory=list)
    """Those of the seeds that a person has named again: they are fetched again if they failed."""


class Ready(msgspec.Struct, tag=True):
    """The peer listens, and has joined."""

    address: tuple[str, int]
    pages_begun: int = 0
    """Fetches of --max-pages that earlier runs of the peer have used."""


class Going(msgspec.Struct, tag=True):
    """The seeds are journaled, and the whole swarm fetches."""

    again: int = 0
    """Seeds that failed before, and are fetched again."""


class Doing(msgspec.Struct, tag=True):
    """The figures of a peer so far."""

    row: PeerRow
    warning: str | None = None
    """A warning for a person (see `PeerBase.warning`), or None."""


class DoingSites(msgspec.Struct, tag=True):
    """The largest and slowest sites of a peer."""

    sites: SiteReport


class Final(msgspec.Struct, tag=True):
    """The final figures of a peer that ends as asked."""

    row: PeerRow
    is_stopped: bool = False
    """True if the peer was told to stop before the swarm was done."""
    orders: list[StandingOrder] = msgspec.field(default_factory=list)
    """The standing orders that the peer knows, lifted ones included."""


class Unable(msgspec.Struct, tag=True):
    """The peer cannot start or do as asked, and why."""

    why: str


Report = Ready | Going | Doing | DoingSites | Final | Unable


def line(message: Assignment | Go | Report) -> bytes:
    """Return the message as one line."""
    return msgspec.json.encode(message) + b"\n"
