"""The job of a directory: the journaled job, joined with the job of its owner or of the swarm.

Tests: tests/peer/test_traps.py, tests/cli/test_job_options.py
"""

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from kadcrawl.errors import StartError
from kadcrawl.link.wire.given_order import orders_in_force
from kadcrawl.link.wire.order_messages import StandingOrder
from kadcrawl.settings.job import Job
from kadcrawl.store.journal import UNREADABLE
from kadcrawl.store.journal_reader import open_at_rest
from kadcrawl.store.store import Store
from kadcrawl.system.file_names import JOURNAL

FIXED = ("name", "partition", "cell_bits", "history")
"""Fields that cannot change once anything is stored, as keys and files depend on them."""
FIXED_BLOOM = (*FIXED, "recrawl_after_s", "grain_s", "calendar_grain", "filters")
"""The fixed fields of a job with fingerprints, whose shape depends on more."""


Kind = TypeVar("Kind")


class JobRecord:
    """The job as journaled."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.is_kept = False
        """True once this run has journaled a job."""

    def journaled(self) -> Job | None:
        """Return the job of an earlier run in this directory."""
        return self._store.meta.read("job", msgspec.json.Decoder(Job).decode)

    def joined(self, job: Job) -> Job:
        """Return `job` with the seeds of earlier runs as well, and with the number of bits that name a cell.

        Raises StartError if this directory holds a crawl whose keys or files would not fit.
        """
        journaled = self.journaled()
        job = replace(job, cell_bits=job.cell_bits or (journaled or job).bits)  # Earlier releases had 16 also by URL.
        if journaled is None:
            return job
        for name in FIXED_BLOOM if job.history == "bloom" else FIXED:
            if getattr(journaled, name) != getattr(job, name):
                raise StartError(
                    f"{self._store.journal.path.parent} holds a crawl with {name} {getattr(journaled, name)!r}, "
                    f"not {getattr(job, name)!r}; choose another directory with --data"
                )
        return replace(job, seeds=tuple(dict.fromkeys([*journaled.seeds, *job.seeds])))

    def keep(self, job: Job) -> None:
        """Journal the job."""
        self._store.meta.set("job", msgspec.json.encode(job))
        self.is_kept = True

    def keep_networks(self, networks: tuple[str, ...]) -> None:
        """Journal the networks that may be fetched here although they are not public, for the next start."""
        self._store.meta.set("networks", msgspec.json.encode(networks))


def journaled_job(directory: Path) -> Job | None:
    """Return the job of the peer that has, or had, this directory, or None if none is readable."""
    return _read(directory, "job", Job)


def journaled_changes(directory: Path) -> dict[str, float]:
    """Return the settings of the job that orders have changed, by name, as the peer of this directory knew them."""
    orders = _read(directory, "orders", list[StandingOrder], msgspec.msgpack.decode) or ()
    return {one.about: one.value for one in orders_in_force(orders) if one.kind == "set"}


def journaled_limit(directory: Path) -> bytes:
    """Return the limit of the whole crawl that was reached (`CrawlLimits.journaled`), or nothing."""
    return _read(directory, "limit", bytes, lambda value, type: type(value)) or b""


def journaled_networks(directory: Path) -> tuple[str, ...]:
    """Return the networks that this peer was allowed to fetch although they are not public."""
    return _read(directory, "networks", tuple[str, ...]) or ()


def journaled_listening(directory: Path) -> tuple[str, int] | None:
    """Return the address (host, port) where this peer listened, as `endpoints.listen` keeps it."""
    host, port = _read(directory, "host", str), _read(directory, "port", int)
    return None if host is None or port is None else (host, port)


def _read(
    directory: Path, name: str, kind: type[Kind], decode: Callable[..., Any] = msgspec.json.decode
) -> Kind | None:
    path = directory / JOURNAL
    query = "SELECT value FROM meta WHERE name=? AND typeof(value)='blob'"
    try:
        with closing(open_at_rest(path)) as journal:
            row = journal.execute(query, (name,)).fetchone()
        return decode(row[0], type=kind) if row else None
    except (*UNREADABLE, msgspec.DecodeError):
        return None
