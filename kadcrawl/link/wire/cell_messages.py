"""The part of the wire that keeps history: copies at the backups, and cells on the move (replication/owner/sync.py,
replication/holder_side.py).

Tests: tests/link/wire/test_messages.py
"""

from typing import Annotated

from msgspec import Meta, Struct, field

from kadcrawl.link.wire.basics import (
    BATCH_MAX,
    CONTACTS_MAX,
    MY_CELLS_MAX,
    ROBOTS_BYTES_MAX,
    CellNumber,
    Contact,
    Count,
    IdBytes,
    Keys,
    LongSeconds,
    Message,
    Seconds,
    Small,
    Url,
)

VALIDATOR_CHARS_MAX = 256
"""Of an entity tag or a date by which a server knows what it sent."""
DIGEST_CHARS_MAX = 64
COMPARED_MAX = 64
"""Windows in one Compare: reading them takes either side some 30 ms."""
EPOCH_FILTER_BYTES_MAX = 4 * 1024 * 1024
"""Of all slices in one message: a million URLs of one cell in one grain, as the next filter is larger. What is longer
travels in parts as long as this."""
EPOCH_FILTER_WHOLE_BYTES_MAX = 256 * 1024 * 1024
"""Of one slice in parts: some 67 million URLs of one cell in one grain."""
EPOCH_FILTERS_MAX = 1_000
"""Slices of a cell: those that live, and as many ahead of a clock that was put back
(store/bloom/expiring_filter.py)."""
EPOCH_FILTER_KEYS_MAX = 2**40


class CellSummary(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What a peer holds of one cell (store/cell_digest.py); equal digests mean equal records."""

    cell: CellNumber
    keys: Count
    pending: Count
    digest: Annotated[bytes, Meta(min_length=16, max_length=16)]


class PendingRecord(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A URL accepted and not finished, with its retry state."""

    url: Url
    depth: Small
    hops: Small
    tries: Small
    wait_s: Seconds
    """Until it may be tried again."""


class VisitRecord(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A page that is fetched again and again: its state, its last visit, and the next (store/visit.py)."""

    url: Url
    depth: Small
    state: Annotated[int, Meta(ge=1, le=2**53)]
    tries: Small
    wait_s: Seconds
    """Of a pending one: until it may be tried."""
    due_s: LongSeconds | None
    """Until it is to be fetched again; None for never, or if it is pending."""
    period_s: LongSeconds
    etag: Annotated[str, Meta(max_length=VALIDATOR_CHARS_MAX)]
    last_modified: Annotated[str, Meta(max_length=VALIDATOR_CHARS_MAX)]
    digest: Annotated[str, Meta(max_length=DIGEST_CHARS_MAX)]
    captured: Annotated[str, Meta(max_length=DIGEST_CHARS_MAX)]
    gone: Small


Visits = Annotated[list[VisitRecord], Meta(max_length=BATCH_MAX)]


class SiteRecord(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A site's politeness: how long its next request must still wait, and the delay between requests."""

    site: Url
    wait_s: Seconds
    delay_s: Seconds


class RobotsRecord(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What an origin's robots.txt said, and how long ago."""

    origin: Url
    rules: Annotated[bytes, Meta(max_length=ROBOTS_BYTES_MAX)]
    age_s: Seconds


class Batch(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Some records of the history. Merging is a join in a lattice: later states, more tries, later instants win.

    `done` and `pending` are of the first round, and of pages that are fetched once.
    """

    done: Keys
    pending: Annotated[list[PendingRecord], Meta(max_length=BATCH_MAX)]
    sites: Annotated[list[SiteRecord], Meta(max_length=BATCH_MAX)]
    robots: Annotated[list[RobotsRecord], Meta(max_length=BATCH_MAX)]
    visits: Visits = []


class Replicate(Message, frozen=True):
    """Journal these: from the owner of their cells to a backup, or from who finished one late to its owner."""

    sender: Contact
    batch: Batch


class Replicated(Message, frozen=True):
    """The batch is journaled here."""


class FindMyCells(Message, frozen=True):
    """I have come, or was away: which cells that you crawl are nearer to me? May be repeated."""

    newcomer: Contact


class MyCells(Message, frozen=True):
    """These: their numbers, four bytes big-endian each. Should there be more, the rest comes as Have."""

    cells: Annotated[bytes, Meta(max_length=4 * MY_CELLS_MAX)]


class CellsHeld(Message, frozen=True):
    """You own these cells now, and I hold this of them: sync. A repeat is another reminder."""

    holder: Contact
    cells: Annotated[list[CellSummary], Meta(max_length=BATCH_MAX)]


class CellsAccepted(Message, frozen=True):
    """I sync these; the others are not mine, as far as I know yet."""

    cells: Annotated[list[CellNumber], Meta(max_length=BATCH_MAX)]


class TakeOver(Message, frozen=True):
    """I own these cells now: what have you of them? Stop crawling them. May be repeated until you have stopped."""

    owner: Contact
    cells: Annotated[list[CellNumber], Meta(max_length=BATCH_MAX)]


class CellState(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What one peer has of one cell that another wants to own."""

    held: CellSummary
    rival: Contact | None
    """A peer nearer to the cell than you that lives, as far as I know."""
    others: Annotated[list[Contact], Meta(max_length=CONTACTS_MAX)]
    """Who else holds something of it: whose copy I keep, or who kept copies of mine."""
    releasing: bool
    """I was crawling it and still have requests under way: ask again."""
    released: bool
    """I was crawling it and have stopped; these are its clocks."""
    sites: Annotated[list[SiteRecord], Meta(max_length=BATCH_MAX)]
    in_progress: Keys = []
    """PENDING pages of it I have fetched, and finish once their links have arrived: leave them to me for a while."""
    clocks_incomplete: bool = False
    """I was crawling it, have stopped, and cannot tell all its clocks: whatever others tell, leave its sites alone."""


class TakeOverAnswer(Message, frozen=True):
    """One answer per cell asked for, in the same order."""

    cells: Annotated[list[CellState], Meta(max_length=BATCH_MAX)]


class Window(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What the asker has beyond the window before and up to `last`, which is included; None for the cell's end."""

    last: IdBytes | None
    keys: Count
    digest: Annotated[bytes, Meta(min_length=16, max_length=16)]


class CompareDigests(Message, frozen=True):
    """Which of these windows of a cell are not the same with you? The first begins after `after`, or at the cell."""

    cell: CellNumber
    after: IdBytes | None
    windows: Annotated[list[Window], Meta(max_length=COMPARED_MAX)]


class DigestsCompared(Message, frozen=True):
    """The indices of the windows that differ."""

    differing: Annotated[list[Annotated[int, Meta(ge=0, lt=COMPARED_MAX)]], Meta(max_length=COMPARED_MAX)]


class LaterState(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A key beyond its first round, and its state."""

    key: IdBytes
    state: Annotated[int, Meta(ge=3, le=2**53)]


class Reconcile(Message, frozen=True):
    """Beyond `after` and up to `last` I have these of a cell: what more do you know, and what do you lack?

    `done` and `pending` are in their first round.
    """

    cell: CellNumber
    after: IdBytes | None
    last: IdBytes | None
    done: Keys
    pending: Keys
    later: Annotated[list[LaterState], Meta(max_length=BATCH_MAX)] = field(default_factory=list)


class Reconciled(Message, frozen=True):
    """What the asker lacks, as far as `upto`, and what it should send; None when that is the whole window."""

    batch: Batch
    wanted: Keys
    upto: IdBytes | None


Epoch = Annotated[int, Meta(ge=0, le=2**53)]


class EpochFilterLabel(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What one has of a cell's finished keys of one grain of time; equal labels mean equal keys."""

    epoch: Epoch
    keys: Annotated[int, Meta(ge=1, le=EPOCH_FILTER_KEYS_MAX)]
    digest: Annotated[bytes, Meta(min_length=16, max_length=16)]


class EpochFilterRecord(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A slice: its label, and its fingerprints as store/bloom/encoding.py has them."""

    label: EpochFilterLabel
    bits: Annotated[bytes, Meta(max_length=EPOCH_FILTER_BYTES_MAX)]


EpochFilterRecords = Annotated[list[EpochFilterRecord], Meta(max_length=EPOCH_FILTERS_MAX)]


Epochs = Annotated[list[Epoch], Meta(max_length=EPOCH_FILTERS_MAX)]
Size = Annotated[int, Meta(ge=1, le=EPOCH_FILTER_WHOLE_BYTES_MAX)]
Offset = Annotated[int, Meta(ge=0, le=EPOCH_FILTER_WHOLE_BYTES_MAX)]
Part = Annotated[bytes, Meta(max_length=EPOCH_FILTER_BYTES_MAX)]


class GetEpochFilters(Message, frozen=True):
    """Of this cell I have these slices, of jobs that keep fingerprints: which of later grains than `after` differ?"""

    cell: CellNumber
    after: Annotated[int, Meta(ge=-1, le=2**53)]
    have: Annotated[list[EpochFilterLabel], Meta(max_length=EPOCH_FILTERS_MAX)]


class GotEpochFilters(Message, frozen=True):
    """These, in order of time; `upto` is the grain from which to go on, None if that is all."""

    epoch_filters: EpochFilterRecords
    differing: Epochs
    """Which of those asked about are otherwise or not at all here."""
    upto: Epoch | None
    large: Epochs = field(default_factory=list)
    """Which are unlike as well but too large for a message: each is asked for by `GetFilterPart`."""


class GetFilterPart(Message, frozen=True):
    """Of this slice I have so many bytes: which come next?"""

    cell: CellNumber
    epoch: Epoch
    offset: Offset


class GotFilterPart(Message, frozen=True):
    """These, as many as one message takes. It may have grown since the last part: then its label has changed."""

    label: EpochFilterLabel | None
    """None if there is no such slice any more."""
    size: Offset
    """Of the whole slice, in bytes."""
    bits: Part


class CellEpochFilters(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Slices of one cell, in order of time."""

    cell: CellNumber
    epoch_filters: EpochFilterRecords


class KeepEpochFilters(Message, frozen=True):
    """As the owner of these cells I have these slices: join them to yours, and call them as I do. May be repeated."""

    owner: Contact
    cells: Annotated[list[CellEpochFilters], Meta(max_length=BATCH_MAX)]


class KeepFilterPart(Message, frozen=True):
    """The same of one slice in parts; this one begins at byte `at`. Joined when it is whole. May be repeated."""

    owner: Contact
    cell: CellNumber
    label: EpochFilterLabel
    size: Size
    offset: Offset
    bits: Part


class KeptFilterPart(Message, frozen=True):
    """So many bytes of it are here: go on from there. None: others are sending, so ask later."""

    upto: Offset | None


class AssignReplica(Message, frozen=True):
    """As their owner I say: keep a copy of these cells under placement key `role`, or, if that is 0, drop them.

    The digests are what I think you have; you drop only what is exactly that.
    """

    owner: Contact
    role: Annotated[int, Meta(ge=0, le=2)]
    cells: Annotated[list[CellSummary], Meta(max_length=BATCH_MAX)]


class ReplicaAssigned(Message, frozen=True):
    """Done, but for these cells, of which I have something else."""

    differing: Annotated[list[CellSummary], Meta(max_length=BATCH_MAX)]
