"""The world around a peer: chance, time, the disk, names. A simulation gives its own.

Tests: tests/peer/test_peer.py, tests/peer/test_disk_full.py
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from random import Random

from aiohttp.abc import AbstractResolver

from kadcrawl.crawl.content.record_extractor import Extraction, WorkerExtraction
from kadcrawl.crawl.cookies.login_hook import CallHook, call_login_hook
from kadcrawl.crawl.disk_guard import free_bytes
from kadcrawl.crawl.fetch.late_resolver import LateResolver
from kadcrawl.crawl.fetch.poison_pages import PoisonPages
from kadcrawl.lending.throughput_learning import MeasureMachine, measured_here
from kadcrawl.link.process_links import ProcessLinks
from kadcrawl.overlay import OverlaySettings
from kadcrawl.settings.limits import Limits
from kadcrawl.settings.page_rules import RecordRule
from kadcrawl.store.journal import sync_files


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """The world of one peer, by default the machine."""

    random: Random | None = None
    """The source of every choice by chance. By default it is seeded from the system's entropy."""
    wall: float | None = None
    """The world's time when the peer begins, in seconds since 1970. By default it is the machine's."""
    overlay: OverlaySettings | None = None
    """The timing of the overlay."""
    trusted_network: bool = False
    """True if only peers are on the network, so that a swarm without a key may listen there, and may keep cookies."""
    sync: Callable[[Iterable[int]], None] = sync_files
    """Makes the files of these descriptors durable. It runs in the loop's executor. Raises OSError."""
    journal_page_bytes: int | None = None
    """Size of a page of a new journal, in bytes, if it is not the usual size."""
    free_bytes: Callable[[Path], int] = free_bytes
    """Returns the bytes that may still be written to the file system of a directory. Raises OSError."""
    resolver: Callable[[], AbstractResolver] = LateResolver
    """Makes the resolver of the sites' names."""
    extraction: Callable[[tuple[RecordRule, ...], Limits], Extraction] = WorkerExtraction
    """Makes the extraction of records from pages, if the job has any. By default it is a process."""
    call_login_hook: CallHook = call_login_hook
    """Calls the login hooks of the job. By default it starts a process for each login."""
    poison_pages: Callable[[Path], PoisonPages] = PoisonPages
    """Makes the record, in a peer's directory, of pages that may crash the process."""
    process_links: ProcessLinks | None = None
    """The link to other peers of the same process, which share it. By default such peers dial each other as well."""
    machine_profile: MeasureMachine = measured_here
    """Measures the powers of the machine, for a job with balance predictive. It runs in a thread."""
