"""The part of the wire that keeps history: copies at the backups, and cells on the move (replication/owner/sync.py,
replication/holder.py)."""

from typing import Annotated

from msgspec import Meta, Struct, field

from kadcrawl.link.wire.basics import (
    BATCH_MAX,
    CLAIMED_MAX,
    CONTACTS_MAX,
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
SLICE_BYTES_MAX = 4 * 1024 * 1024
"""Of all slices in one message: a million URLs of one cell in one grain, as the next filter is larger. What is longer
travels in parts as long as this."""
SLICE_WHOLE_BYTES_MAX = 256 * 1024 * 1024
"""Of one slice in parts: some 67 million URLs of one cell in one grain."""
SLICES_MAX = 1_000
"""Slices of a cell: those that live, and as many ahead of a clock that was put back
(store/bloom/expiring_filter.py)."""
SLICE_KEYS_MAX = 2**40


class CellDigest(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
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


class Records(Message, frozen=True):
    """Journal these: from the owner of their cells to a backup, or from who finished one late to its owner."""

    sender: Contact
    batch: Batch


class Recorded(Message, frozen=True):
    """The batch is journaled here."""


class Claim(Message, frozen=True):
    """I have come, or was away: which cells that you crawl are nearer to me? May be repeated."""

    newcomer: Contact


class Claimed(Message, frozen=True):
    """These: their numbers, four bytes big-endian each. Should there be more, the rest comes as Have."""

    cells: Annotated[bytes, Meta(max_length=4 * CLAIMED_MAX)]


class Have(Message, frozen=True):
    """You own these cells now, and I hold this of them: sync. A repeat is another reminder."""

    holder: Contact
    cells: Annotated[list[CellDigest], Meta(max_length=BATCH_MAX)]


class Taken(Message, frozen=True):
    """I sync these; the others are not mine, as far as I know yet."""

    cells: Annotated[list[CellNumber], Meta(max_length=BATCH_MAX)]


class Sync(Message, frozen=True):
    """I own these cells now: what have you of them? Stop crawling them. May be repeated until you have stopped."""

    owner: Contact
    cells: Annotated[list[CellNumber], Meta(max_length=BATCH_MAX)]


class CellAnswer(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What one peer has of one cell that another wants to own."""

    held: CellDigest
    rival: Contact | None
    """A peer nearer to the cell than you that lives, as far as I know."""
    others: Annotated[list[Contact], Meta(max_length=CONTACTS_MAX)]
    """Who else holds something of it: whose copy I keep, or who kept copies of mine."""
    releasing: bool
    """I was crawling it and still have requests under way: ask again."""
    released: bool
    """I was crawling it and have stopped; these are its clocks."""
    sites: Annotated[list[SiteRecord], Meta(max_length=BATCH_MAX)]
    in_hand: Keys = []
    """PENDING pages of it I have fetched, and finish once their links have arrived: leave them to me for a while."""
    untold: bool = False
    """I was crawling it, have stopped, and cannot tell all its clocks: whatever others tell, leave its sites alone."""


class Synced(Message, frozen=True):
    """One answer per cell asked for, in the same order."""

    cells: Annotated[list[CellAnswer], Meta(max_length=BATCH_MAX)]


class Window(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What the asker has beyond the window before and up to `last`, which is included; None for the cell's end."""

    last: IdBytes | None
    keys: Count
    digest: Annotated[bytes, Meta(min_length=16, max_length=16)]


class Compare(Message, frozen=True):
    """Which of these windows of a cell are not the same with you? The first begins after `after`, or at the cell."""

    cell: CellNumber
    after: IdBytes | None
    windows: Annotated[list[Window], Meta(max_length=COMPARED_MAX)]


class Compared(Message, frozen=True):
    """The indices of the windows that differ."""

    differing: Annotated[list[Annotated[int, Meta(ge=0, lt=COMPARED_MAX)]], Meta(max_length=COMPARED_MAX)]


class Later(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A key beyond its first round, and its state."""

    key: IdBytes
    state: Annotated[int, Meta(ge=3, le=2**53)]


class Exchange(Message, frozen=True):
    """Beyond `after` and up to `last` I have these of a cell: what more do you know, and what do you lack?

    `done` and `pending` are in their first round.
    """

    cell: CellNumber
    after: IdBytes | None
    last: IdBytes | None
    done: Keys
    pending: Keys
    later: Annotated[list[Later], Meta(max_length=BATCH_MAX)] = field(default_factory=list)


class Exchanged(Message, frozen=True):
    """What the asker lacks, as far as `upto`, and what it should send; None when that is the whole window."""

    batch: Batch
    wanted: Keys
    upto: IdBytes | None


Grain = Annotated[int, Meta(ge=0, le=2**53)]


class SliceLabel(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What one has of a cell's finished keys of one grain of time; equal labels mean equal keys."""

    grain: Grain
    keys: Annotated[int, Meta(ge=1, le=SLICE_KEYS_MAX)]
    digest: Annotated[bytes, Meta(min_length=16, max_length=16)]


class SliceRecord(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A slice: its label, and its fingerprints as store/bloom/encoding.py has them."""

    label: SliceLabel
    bits: Annotated[bytes, Meta(max_length=SLICE_BYTES_MAX)]


Slices = Annotated[list[SliceRecord], Meta(max_length=SLICES_MAX)]


Grains = Annotated[list[Grain], Meta(max_length=SLICES_MAX)]
Size = Annotated[int, Meta(ge=1, le=SLICE_WHOLE_BYTES_MAX)]
Offset = Annotated[int, Meta(ge=0, le=SLICE_WHOLE_BYTES_MAX)]
Part = Annotated[bytes, Meta(max_length=SLICE_BYTES_MAX)]


class GetSlices(Message, frozen=True):
    """Of this cell I have these slices, of jobs that keep fingerprints: which of later grains than `after` differ?"""

    cell: CellNumber
    after: Annotated[int, Meta(ge=-1, le=2**53)]
    have: Annotated[list[SliceLabel], Meta(max_length=SLICES_MAX)]


class GotSlices(Message, frozen=True):
    """These, in order of time; `upto` is the grain from which to go on, None if that is all."""

    slices: Slices
    unlike: Grains
    """Which of those asked about are otherwise or not at all here."""
    upto: Grain | None
    large: Grains = field(default_factory=list)
    """Which are unlike as well but too large for a message: each is asked for by `GetSlicePart`."""


class GetSlicePart(Message, frozen=True):
    """Of this slice I have so many bytes: which come next?"""

    cell: CellNumber
    grain: Grain
    at: Offset


class GotSlicePart(Message, frozen=True):
    """These, as many as one message takes. It may have grown since the last part: then its label has changed."""

    label: SliceLabel | None
    """None if there is no such slice any more."""
    size: Offset
    """Of the whole slice, in bytes."""
    bits: Part


class CellSlices(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Slices of one cell, in order of time."""

    cell: CellNumber
    slices: Slices


class KeepSlices(Message, frozen=True):
    """As the owner of these cells I have these slices: join them to yours, and call them as I do. May be repeated."""

    owner: Contact
    cells: Annotated[list[CellSlices], Meta(max_length=BATCH_MAX)]


class KeepSlicePart(Message, frozen=True):
    """The same of one slice in parts; this one begins at byte `at`. Joined when it is whole. May be repeated."""

    owner: Contact
    cell: CellNumber
    label: SliceLabel
    size: Size
    at: Offset
    bits: Part


class KeptSlicePart(Message, frozen=True):
    """So many bytes of it are here: go on from there. None: others are sending, so ask later."""

    upto: Offset | None


class Settle(Message, frozen=True):
    """As their owner I say: keep a copy of these cells under placement key `role`, or, if that is 0, drop them.

    The digests are what I think you have; you drop only what is exactly that.
    """

    owner: Contact
    role: Annotated[int, Meta(ge=0, le=2)]
    cells: Annotated[list[CellDigest], Meta(max_length=BATCH_MAX)]


class Settled(Message, frozen=True):
    """Done, but for these cells, of which I have something else."""

    unlike: Annotated[list[CellDigest], Meta(max_length=BATCH_MAX)]
