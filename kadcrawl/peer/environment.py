"""What a peer takes from the world around it: chance, time, the disk, names. A simulation gives its own.

Tests: tests/peer/test_peer.py, tests/peer/test_disk_full.py
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from random import Random

from aiohttp.abc import AbstractResolver

from kadcrawl.crawl.content.record_extractor import Extraction, WorkerExtraction
from kadcrawl.crawl.disk_guard import free_bytes
from kadcrawl.crawl.fetch.fetcher import system_resolver
from kadcrawl.crawl.fetch.poison_pages import PoisonPages
from kadcrawl.overlay import OverlaySettings
from kadcrawl.settings.config import Limits
from kadcrawl.settings.page_rules import RecordRule
from kadcrawl.store.journal import sync_files


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """The machine's own, unless said otherwise."""

    random: Random | None = None
    """Every choice by chance; by default seeded from the system's entropy."""
    wall: float | None = None
    """The world's time when the peer begins, in seconds since 1970; by default the machine's."""
    overlay: OverlaySettings | None = None
    """How patient the overlay is."""
    trusted_network: bool = False
    """Nobody but peers is on the network, so a swarm without a key may be there."""
    sync: Callable[[Iterable[int]], None] = sync_files
    """Makes the files of these descriptors durable; called in the loop's executor. Raises OSError."""
    free_bytes: Callable[[Path], int] = free_bytes
    """How much may still be written to the file system of a directory. Raises OSError."""
    resolver: Callable[[], AbstractResolver] = system_resolver
    """Makes what finds the addresses of the sites' names."""
    extraction: Callable[[tuple[RecordRule, ...], Limits], Extraction] = WorkerExtraction
    """Makes what takes records out of pages; asked only if the job has any. By default a process."""
    poison_pages: Callable[[Path], PoisonPages] = PoisonPages
    """Makes what notes, in a peer's directory, which page it may be dying of."""
