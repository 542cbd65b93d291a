"""A directory belongs to one peer, or to a local crawl with the directories of its peers in it.

Both kinds of command have the same --data by default. A command that began on the directory of the other kind would
know nothing of the results there, and fetch all again, maybe at the same time. A directory that has both already serves
both.
"""

from pathlib import Path

from kadcrawl.cli.local.supervisor import peers_of
from kadcrawl.errors import ConfigError
from kadcrawl.system.file_names import JOURNAL


def check_for_peer(data: Path) -> None:
    """Raise ConfigError if a local crawl has this directory."""
    held = _peers_of_a_crawl(data)
    if held and not (data / JOURNAL).exists():
        peers = f"{held} peer" + ("s" if held != 1 else "")
        raise ConfigError(
            f"{data} holds a local crawl of {peers}: kadcrawl crawl goes on with it, this needs another directory by "
            "--data"
        )


def check_for_crawl(data: Path) -> None:
    """Raise ConfigError if one peer has this directory."""
    if (data / JOURNAL).exists() and not _peers_of_a_crawl(data):
        raise ConfigError(
            f"{data} holds a peer of its own: kadcrawl start (or join, as it was begun) goes on with it, a local crawl "
            "needs another directory by --data"
        )


def _peers_of_a_crawl(data: Path) -> int:
    return sum((data / f"peer-{number}" / JOURNAL).exists() for number in peers_of(data))
