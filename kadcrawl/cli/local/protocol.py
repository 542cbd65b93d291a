"""What `kadcrawl crawl` and its peer processes tell each other: lines of JSON over a child's stdin and stdout.

Down goes an `Assignment`; then, to one child, once all are ready, `Go`; the end of stdin means: finish and exit. Up
come `Ready`, `Going` in answer to `Go`, a `Doing` now and then, and at last `Final`; or `Unable` in place of any.
Words only, so that the parent, which crawls nothing, need not load what a peer is made of.

Tests: tests/cli/local/test_child_main.py, tests/cli/test_parts.py
"""

import msgspec

from kadcrawl.cli.machine import MachineSettings
from kadcrawl.link.wire.messages import PeerRow
from kadcrawl.settings.config import Job

PIPE_LINE_BYTES_MAX = 16 * 1024 * 1024
"""One line: as many seeds as a command line holds fit several times."""


class Assignment(msgspec.Struct):
    """What the parent wants this peer to be."""

    data: str
    job: Job
    allow_networks: tuple[str, ...]
    bootstrap: list[tuple[str, int]]
    """Peers to join; none for the first, which then begins paused."""
    machine: MachineSettings = MachineSettings()
    swarm_key: str | None = None
    """In text."""


class Go(msgspec.Struct):
    """All peers are there: add these seeds, if any, and let the whole swarm fetch."""

    seeds: list[str]


class Ready(msgspec.Struct, tag=True):
    """The peer listens, and has joined."""

    address: tuple[str, int]


class Going(msgspec.Struct, tag=True):
    """The seeds are journaled, and the whole swarm fetches."""


class Doing(msgspec.Struct, tag=True):
    """What the peer has done so far."""

    row: PeerRow
    warning: str | None = None
    """What a person should know now (see `Member.warning`)."""


class Final(msgspec.Struct, tag=True):
    """The peer ends as asked; this is what it did."""

    row: PeerRow


class Unable(msgspec.Struct, tag=True):
    """The peer cannot start or do as asked, and why."""

    why: str


Report = Ready | Going | Doing | Final | Unable


def line(message: Assignment | Go | Report) -> bytes:
    """Return the message as one line."""
    return msgspec.json.encode(message) + b"\n"
