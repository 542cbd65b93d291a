"""Messages about cells: replication to backups, and the move of cells to new owners (replication/owner/sync.py,
replication/holder_side.py).

A *cell* is the unit of ownership. Its *records* are the state of its URLs. A *holder* has records of a cell, its
*owner* crawls it. The messages about epoch filters are in `filter_messages`.

Tests: tests/link/wire/test_messages.py
"""

from typing import Annotated

from msgspec import Meta, Struct, field

from kadcrawl.link.wire.basics import (
    BATCH_MAX,
    CONTACTS_MAX,
    COUNT_MAX,
    MY_CELLS_MAX,
    PRINTABLE,
    ROBOTS_BYTES_MAX,
    CellNumber,
    Contact,
    Count,
    IdBytes,
    Keys,
    LongSeconds,
    Message,
    Reason,
    Seconds,
    Small,
    Trail,
    Url,
)
from kadcrawl.settings.job import COPIES_MAX

ANSWER_CHARS_MAX = 600
"""Characters of the last answer of a page, the same as in the store (store/last_answer.py)."""
VALIDATOR_CHARS_MAX = 256
"""Characters of an entity tag or a date by which a server recognizes a version."""
DIGEST_CHARS_MAX = 64
"""Characters of the digest of a page's body."""
COMPARED_MAX = 64
"""Windows in one CompareDigests: reading them takes either side some 30 ms."""
JAR_BYTES_MAX = 16 * 1024
"""Limit on the encoded cookies of one site, in bytes."""


class CellSummary(Struct, frozen=True, array_like=True):
    """The records of one cell at one peer, in numbers (store/cell_digest.py). Equal digests mean equal records."""

    cell: CellNumber
    keys: Count
    pending: Count
    digest: Annotated[bytes, Meta(min_length=16, max_length=16)]


class PendingRecord(Struct, frozen=True, array_like=True):
    """A URL accepted and not finished, with its retry state."""

    url: Url
    depth: Small
    hops: Small
    tries: Small
    wait_s: Seconds
    """Seconds until its next try."""
    trail: Trail = b""
    """Hashes of the URLs whose redirects led to the URL, in order."""
    rounds: Small = 0
    """Visits before this visit. Only a loan has pages beyond their first."""
    drop_order: Count = 0
    """Stamp of the latest order to drop URLs that was known where the URL became pending."""


class VisitRecord(Struct, frozen=True, array_like=True):
    """A page that is fetched repeatedly, or that failed: its state, its last visit, and the next (store/visit.py)."""

    url: Url
    depth: Small
    state: Annotated[int, Meta(ge=1, le=2**53)]
    tries: Small
    wait_s: Seconds
    """Seconds until the next try of a pending page."""
    due_s: LongSeconds | None
    """Seconds until its next fetch, or None for never, or if it is pending."""
    period_s: LongSeconds
    etag: Annotated[str, Meta(max_length=VALIDATOR_CHARS_MAX)]
    last_modified: Annotated[str, Meta(max_length=VALIDATOR_CHARS_MAX)]
    digest: Annotated[str, Meta(max_length=DIGEST_CHARS_MAX)]
    captured: Annotated[str, Meta(max_length=DIGEST_CHARS_MAX)]
    gone: Small
    failed: Reason = ""
    """Reason for which the last visit failed, or empty."""
    order: Count = 0
    """Stamp of the latest order to retry that the page has undergone, or that was known when its visit began."""
    answer: Annotated[str, Meta(max_length=ANSWER_CHARS_MAX, pattern=PRINTABLE)] = ""
    """Its last answer 200 with a body of its own (store/last_answer.py), or empty."""
    drop_order: Count = 0
    """Stamp of the latest order to drop URLs that was known where the page became pending, if it is."""


Visits = Annotated[list[VisitRecord], Meta(max_length=BATCH_MAX)]


class BackOffRecord(Struct, frozen=True, array_like=True):
    """The refusals of a site, answers 429 or 503 (store/back_off.py). The later version counts."""

    refusals: Small
    """Refusals in a row."""
    last_s: Seconds
    """Seconds of the last wait that had no Retry-After, halved by each answer since."""
    status: Annotated[int, Meta(ge=429, le=503)]
    """Status of the last refusal, 429 or 503."""
    left_s: Seconds
    """Seconds until the wait of the last refusal is over."""
    version: Annotated[int, Meta(ge=1, le=COUNT_MAX)]
    """Number of changes so far."""


class CookiesRecord(Struct, frozen=True, array_like=True):
    """The cookies of a site (store/kept_cookies.py). Of two records the larger version counts."""

    jar: Annotated[bytes, Meta(max_length=JAR_BYTES_MAX)]
    """The encoded cookies (crawl/cookies/jar.py)."""
    version: Count
    """Number of changes. Of two records the larger version counts."""


class SiteRecord(Struct, frozen=True, array_like=True):
    """The politeness of a site: the wait before its next request, the delay, its refusals, and its cookies."""

    site: Url
    wait_s: Seconds
    delay_s: Seconds
    back_off: BackOffRecord | None = None
    """The refusals, or None if there was none."""
    cookies: CookiesRecord | None = None
    """The cookies of a site that keeps some, or None. They travel only in a swarm with a key."""


class RobotsRecord(Struct, frozen=True, array_like=True):
    """The rules of an origin's robots.txt, and their age."""

    origin: Url
    rules: Annotated[bytes, Meta(max_length=ROBOTS_BYTES_MAX)]
    age_s: Seconds


class Batch(Struct, frozen=True, array_like=True):
    """Records of the history. Merging is a join in a lattice: later states, more tries, later instants win.

    `done` and `pending` are of the first round, and of pages that are fetched once. A repeat changes nothing.
    """

    done: Keys
    pending: Annotated[list[PendingRecord], Meta(max_length=BATCH_MAX)]
    sites: Annotated[list[SiteRecord], Meta(max_length=BATCH_MAX)]
    robots: Annotated[list[RobotsRecord], Meta(max_length=BATCH_MAX)]
    visits: Visits = []


class DoneRun(Struct, frozen=True, array_like=True):
    """Pages of one site that are done: some of its PENDING URLs at the receiver, breadth first."""

    first: IdBytes
    """Key of the first page."""
    count: Annotated[int, Meta(ge=2, le=BATCH_MAX)]
    """Number of pages, the first included."""
    check: Annotated[bytes, Meta(min_length=16, max_length=16)]
    """XOR of the last 16 bytes of their keys (replication/done_runs.py)."""


class Replicate(Message, frozen=True):
    """A request to journal these records: from the owner of their cells to a backup, or from a late finisher to the
    owner.

    Answered by Replicated. A repeat merges the same records again and changes nothing.
    """

    sender: Contact
    batch: Batch
    runs: Annotated[list[DoneRun], Meta(max_length=BATCH_MAX)] = field(default_factory=list)
    """Further pages that are done. They come before the records of the batch."""


class Replicated(Message, frozen=True):
    """The answer to Replicate: the batch is journaled here, and the runs except those named."""

    unlike: Annotated[list[Annotated[int, Meta(ge=0, lt=BATCH_MAX)]], Meta(max_length=BATCH_MAX)] = field(
        default_factory=list
    )
    """Indices of the runs that the receiver has otherwise. The sender sends their keys."""


class FindMyCells(Message, frozen=True):
    """A peer that has come, or was away, asks another: which cells that you crawl are nearer to me?

    Answered by MyCells. It may be repeated.
    """

    newcomer: Contact


class MyCells(Message, frozen=True):
    """The answer to FindMyCells: the numbers of these cells, four bytes big-endian each. Cells beyond the limit come as
    CellsHeld.
    """

    cells: Annotated[bytes, Meta(max_length=4 * MY_CELLS_MAX)]


class CellsHeld(Message, frozen=True):
    """A holder sends the owner of cells summaries of its records, so that the owner syncs.

    Answered by CellsAccepted. A repeat is another reminder.
    """

    holder: Contact
    cells: Annotated[list[CellSummary], Meta(max_length=BATCH_MAX)]


class CellsAccepted(Message, frozen=True):
    """The answer to CellsHeld: the receiver syncs these cells. The others are not its own, as far as it knows yet."""

    cells: Annotated[list[CellNumber], Meta(max_length=BATCH_MAX)]


class TakeOver(Message, frozen=True):
    """The new owner of cells asks a holder to stop crawling them and to describe its records of them.

    Answered by TakeOverAnswer. It is repeated until the holder has stopped.
    """

    owner: Contact
    cells: Annotated[list[CellNumber], Meta(max_length=BATCH_MAX)]


class CellState(Struct, frozen=True, array_like=True):
    """The state of one cell at a peer, for another peer that wants to own it."""

    held: CellSummary
    rival: Contact | None
    """A live peer nearer to the cell than the asker, as far as this peer knows."""
    others: Annotated[list[Contact], Meta(max_length=CONTACTS_MAX)]
    """Other holders of the cell: peers whose copy this peer keeps, or that kept copies of its own."""
    releasing: bool
    """This peer was crawling the cell and still has requests under way, so the asker must ask again."""
    released: bool
    """This peer was crawling the cell and has stopped. `sites` are its clocks."""
    sites: Annotated[list[SiteRecord], Meta(max_length=BATCH_MAX)]
    in_progress: Keys = []
    """Pending pages that this peer has fetched, and finishes once their links have arrived. The asker leaves them for a
    while.
    """
    clocks_incomplete: bool = False
    """This peer was crawling the cell, has stopped, and cannot tell all its clocks. The asker leaves its sites alone,
    whatever others tell.
    """
    lost_s: Seconds | None = None
    """Seconds since this peer lost another peer, which may have leased shared clocks of the cell. None if that was long
    ago.
    """


class TakeOverAnswer(Message, frozen=True):
    """The answer to TakeOver: one state per cell asked for, in the same order."""

    cells: Annotated[list[CellState], Meta(max_length=BATCH_MAX)]


class Window(Struct, frozen=True, array_like=True):
    """A window of a cell's keys at the asker: from the window before up to `last`, included, or None for the cell's
    end.
    """

    last: IdBytes | None
    keys: Count
    digest: Annotated[bytes, Meta(min_length=16, max_length=16)]


class CompareDigests(Message, frozen=True):
    """A question: which of these windows of a cell differ at your side?

    The first window begins after `after`, or at the cell's begin. Answered by DigestsCompared. A repeat is answered
    again.
    """

    cell: CellNumber
    after: IdBytes | None
    windows: Annotated[list[Window], Meta(max_length=COMPARED_MAX)]


class DigestsCompared(Message, frozen=True):
    """The answer to CompareDigests: the indices of the windows that differ."""

    differing: Annotated[list[Annotated[int, Meta(ge=0, lt=COMPARED_MAX)]], Meta(max_length=COMPARED_MAX)]


class LaterState(Struct, frozen=True, array_like=True):
    """A key beyond its first round, and its state."""

    key: IdBytes
    state: Annotated[int, Meta(ge=3, le=2**53)]


class Reconcile(Message, frozen=True):
    """The asker's keys of a cell beyond `after` and up to `last`: the receiver returns the records that the asker
    lacks.

    `done` and `pending` are in their first round. The receiver also names the keys that it lacks itself. Answered by
    Reconciled. A repeat is answered again.
    """

    cell: CellNumber
    after: IdBytes | None
    last: IdBytes | None
    done: Keys
    pending: Keys
    later: Annotated[list[LaterState], Meta(max_length=BATCH_MAX)] = field(default_factory=list)


class Reconciled(Message, frozen=True):
    """The answer to Reconcile: the records that the asker lacks, and the keys whose records it should send.

    `upto` is the last key covered, or None for the whole window.
    """

    batch: Batch
    wanted: Keys
    upto: IdBytes | None


class AssignReplica(Message, frozen=True):
    """The owner asks a peer to keep a copy of cells under placement key `role`, or to drop it.

    Answered by ReplicaAssigned. A repeat changes nothing.
    """

    owner: Contact
    role: Annotated[int, Meta(ge=0, lt=COPIES_MAX)]
    cells: Annotated[list[CellSummary], Meta(max_length=BATCH_MAX)]


class ReplicaAssigned(Message, frozen=True):
    """The answer to AssignReplica: done, except for these cells, whose copy here differs."""

    differing: Annotated[list[CellSummary], Meta(max_length=BATCH_MAX)]
