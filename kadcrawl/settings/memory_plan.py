"""`MemoryPlan` divides the memory of one process (`Limits.memory_bytes`) among all that grows with a crawl.

A process takes a fixed part before its first page, for its code and its connections. The rest is the room, and each
share of the room becomes a limit: bodies in flight, the frontier's window, caches. A limit that is lower already stays.
The memory counted is private memory: the kernel can take pages of files back at any time. The worker that extracts
records is a process of its own (`Limits.record_memory_bytes`).
"""

from dataclasses import dataclass, replace

from kadcrawl.errors import ConfigError
from kadcrawl.settings.config import Config
from kadcrawl.settings.job import Job
from kadcrawl.settings.limits import Limits
from kadcrawl.settings.recrawl_checks import GRAINS_DEFAULT
from kadcrawl.settings.units import shown_size

MEBIBYTE = 1024 * 1024
LEAF_BASE_BYTES = 41 * MEBIBYTE
"""Private memory of a leaf before its first page. `make bench-memory` measures it."""
PEER_BASE_BYTES = 48 * MEBIBYTE
"""Private memory of a peer before its first page, with some connections."""
ROOM_LEAST_BYTES = 4 * MEBIBYTE
"""With less room, only pages below 400 kB would be read whole."""
SHARES = 16
"""The room is divided into this many shares. Each use below takes one, unless it says otherwise."""
LARGE_SHARES = 7
"""Shares of the one large body that is in memory at a time."""
LARGE_COST = 4
"""Bytes of memory for each byte of a large body: as received, decompressed, as links, and as a record of a WARC."""
SMALL_SHARES = 2
"""Shares of all other bodies in flight together."""
SMALL_COST = 2
SMALL_BODY_LEAST = 32 * 1024
"""A body of this size counts as small, however little memory there is, as most pages are larger than half of it."""
FETCH_BYTES = MEBIBYTE
"""Room for each request in flight."""
FETCHES_LEAST = 2
"""Requests in flight with the least memory, so that a slow site does not stop all others."""
ENTRY_BYTES = 400
"""Bytes of a URL in the frontier's window."""
WINDOW_MAX = 32
"""URLs of one site in memory, so that more sites have some."""
ACTIVE_SITES_LEAST = 4
"""Sites with URLs in memory with the least memory."""
RECENT_BYTES = 200
"""Bytes of a link that was sent recently."""
TAG_BYTES = 400
"""Bytes of a remembered tag with its meaning."""
UNFINISHED_PAGE_BYTES = 4096
ROBOTS_BYTES = 2048
LABEL_BYTES = 200
"""Bytes of the label of one cell in one epoch, in a bounded history."""
LOCAL_SINKS = ("sqlite:", "jsonl:", "csv:")
"""Forms of sinks whose libraries take no memory of note. A `jsonl:` or `csv:` that names a URL is not one of them."""


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """The memory of one process, in bytes."""

    memory_bytes: int
    base_bytes: int

    def __post_init__(self) -> None:
        if self.memory_bytes < self.least_bytes:
            raise ConfigError(
                f"--memory {shown_size(self.memory_bytes)} is too little: give at least "
                f"{-(-self.least_bytes // 1_000_000)} MB, as the program itself takes {self.base_bytes // 1_000_000} MB"
            )

    @property
    def least_bytes(self) -> int:
        """The least memory that is accepted."""
        return self.base_bytes + ROOM_LEAST_BYTES

    @property
    def room_bytes(self) -> int:
        """The memory for all that grows with a crawl."""
        return self.memory_bytes - self.base_bytes

    def bound(self, limits: Limits) -> Limits:
        """Return these limits, lowered to what the memory has room for."""
        share = self.room_bytes // SHARES
        fetches = min(limits.fetches_max, max(FETCHES_LEAST, self.room_bytes // FETCH_BYTES))
        held = LARGE_SHARES * share // LARGE_COST
        small = max(SMALL_BODY_LEAST, SMALL_SHARES * share // SMALL_COST // fetches)
        window = min(limits.site_window, WINDOW_MAX)
        return replace(
            limits,
            fetches_max=fetches,
            held_bytes_max=min(limits.held_bytes_max or held, held),
            large_body_bytes=min(limits.large_body_bytes, small),
            large_bodies_max=1,
            large_contents_max=1,
            site_window=window,
            active_sites_max=_least(limits.active_sites_max, share // ENTRY_BYTES // window, ACTIVE_SITES_LEAST),
            # There are two of each: links with and without dates, and robots.txt of own and of borrowed pages.
            recent_links_max=_least(limits.recent_links_max, share // RECENT_BYTES // 2),
            recent_chars_max=_least(limits.recent_chars_max, share // 4),
            robots_cached_max=_least(limits.robots_cached_max, share // ROBOTS_BYTES // 2),
            robots_cached_bytes_max=_least(limits.robots_cached_bytes_max, share // 2),
            remembered_tags_max=_least(limits.remembered_tags_max, share // TAG_BYTES),
            remembered_chars_max=_least(limits.remembered_chars_max, share),
            unfinished_max=_least(limits.unfinished_max, share // UNFINISHED_PAGE_BYTES),
            unfinished_bytes_max=_least(limits.unfinished_bytes_max, share),
            journal_cache_bytes=_least(limits.journal_cache_bytes, share),
            filters_bytes_max=_least(limits.filters_bytes_max, share),
        )

    def said(self, limits: Limits) -> str:
        """Return the bounded limits that a person may notice, in a sentence."""
        return (
            f"--memory {shown_size(self.memory_bytes)}: at most {limits.fetches_max} requests at a time, and bodies "
            f"are cut off at {limits.held_bytes_max // 1000} kB"
        )

    def check_history(self, job: Job) -> None:
        """Raise ConfigError if the history of this job does not fit.

        A peer that is alone owns all cells, and keeps a label of each cell and epoch in memory.
        """
        if job.history == "exact":
            return
        epochs = 1 if job.recrawl_after_s is None else 1 + (job.grains or GRAINS_DEFAULT)
        needed = self.least_bytes + LABEL_BYTES * epochs * 2**job.bits
        if self.memory_bytes < needed:
            raise ConfigError(
                f"--memory {shown_size(self.memory_bytes)} has no room for --history bloom, whose labels of cells may "
                f"take {(needed - self.least_bytes) // 1_000_000} MB: give at least {-(-needed // 1_000_000)} MB, or "
                "use --history exact, which is on disk"
            )


def memory_plan(config: Config, base_bytes: int) -> MemoryPlan | None:
    """Return the plan for a peer, or None if its memory is not bound.

    Raises ConfigError if the memory is too little, and for a sink whose library takes more than a plan can count.
    """
    if not config.limits.memory_bytes:
        return None
    for name in config.sinks:
        if not name.startswith(LOCAL_SINKS) or "://" in name:
            kind = name.partition(":")[0]
            raise ConfigError(
                f"--memory does not bound the library of a sink of the kind {kind}: leave out one of them, and bring "
                "the results there afterwards, with kadcrawl export"
            )
    return MemoryPlan(config.limits.memory_bytes, base_bytes)


def _least(limit: int, share: int, least: int = 1) -> int:
    return min(limit, max(least, share))
