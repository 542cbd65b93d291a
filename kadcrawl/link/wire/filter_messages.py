"""Messages about epoch filters (replication/epoch_filter_transfer.py).

A job that keeps no keys of finished URLs keeps *epoch filters* of each cell: the fingerprints of the keys finished
within one epoch of time.

Tests: tests/link/wire/test_messages.py
"""

from typing import Annotated

from msgspec import Meta, Struct, field

from kadcrawl.link.wire.basics import BATCH_MAX, CellNumber, Contact, Message

EPOCH_FILTER_BYTES_MAX = 4 * 1024 * 1024
"""Bytes of all epoch filters in one message: a million URLs of one cell in one epoch. A longer filter travels in parts
of this size.
"""
EPOCH_FILTER_WHOLE_BYTES_MAX = 256 * 1024 * 1024
"""Bytes of one epoch filter in parts: some 67 million URLs of one cell in one epoch."""
EPOCH_FILTERS_MAX = 1_000
"""Epoch filters of a cell: those that live, and as many ahead of a clock that was put back
(store/bloom/expiring_filter.py).
"""
EPOCH_FILTER_KEYS_MAX = 2**40
"""Keys that the label of one epoch filter may claim."""

Epoch = Annotated[int, Meta(ge=0, le=2**53)]


class EpochFilterLabel(Struct, frozen=True, array_like=True):
    """The label of an epoch filter: the finished keys of a cell within one epoch. Equal labels mean equal keys."""

    epoch: Epoch
    keys: Annotated[int, Meta(ge=1, le=EPOCH_FILTER_KEYS_MAX)]
    digest: Annotated[bytes, Meta(min_length=16, max_length=16)]


class EpochFilterRecord(Struct, frozen=True, array_like=True):
    """An epoch filter: its label, and its fingerprints as store/bloom/encoding.py encodes them."""

    label: EpochFilterLabel
    bits: Annotated[bytes, Meta(max_length=EPOCH_FILTER_BYTES_MAX)]


EpochFilterRecords = Annotated[list[EpochFilterRecord], Meta(max_length=EPOCH_FILTERS_MAX)]


Epochs = Annotated[list[Epoch], Meta(max_length=EPOCH_FILTERS_MAX)]
Size = Annotated[int, Meta(ge=1, le=EPOCH_FILTER_WHOLE_BYTES_MAX)]
Offset = Annotated[int, Meta(ge=0, le=EPOCH_FILTER_WHOLE_BYTES_MAX)]
Part = Annotated[bytes, Meta(max_length=EPOCH_FILTER_BYTES_MAX)]


class GetEpochFilters(Message, frozen=True):
    """A question with the asker's labels of a cell: which epoch filters of later epochs than `after` differ at your
    side?

    Only for jobs that keep fingerprints. Answered by GotEpochFilters. A repeat is answered again.
    """

    cell: CellNumber
    after: Annotated[int, Meta(ge=-1, le=2**53)]
    have: Annotated[list[EpochFilterLabel], Meta(max_length=EPOCH_FILTERS_MAX)]


class GotEpochFilters(Message, frozen=True):
    """The answer to GetEpochFilters: these filters, in order of time. `upto` is the epoch to go on from, or None if
    that is all.
    """

    epoch_filters: EpochFilterRecords
    differing: Epochs
    """Epochs of the question whose filters differ or are absent here."""
    upto: Epoch | None
    large: Epochs = field(default_factory=list)
    """Epochs whose filters differ as well but are too large for a message. Each is requested by `GetFilterPart`."""


class GetFilterPart(Message, frozen=True):
    """A question: which bytes of this filter follow `offset`? Answered by GotFilterPart. A repeat is answered again."""

    cell: CellNumber
    epoch: Epoch
    offset: Offset


class GotFilterPart(Message, frozen=True):
    """The answer to GetFilterPart: as many bytes as one message takes.

    The filter may have grown since the last part. Then its label has changed.
    """

    label: EpochFilterLabel | None
    """The present label, or None if there is no such filter any more."""
    size: Offset
    """Bytes of the whole filter."""
    bits: Part


class CellEpochFilters(Struct, frozen=True, array_like=True):
    """Epoch filters of one cell, in order of time."""

    cell: CellNumber
    epoch_filters: EpochFilterRecords


class KeepEpochFilters(Message, frozen=True):
    """The owner of cells sends its epoch filters: the receiver joins them to its own, and takes over their labels.

    Answered by Replicated. A repeat changes nothing.
    """

    owner: Contact
    cells: Annotated[list[CellEpochFilters], Meta(max_length=BATCH_MAX)]


class KeepFilterPart(Message, frozen=True):
    """A part of one epoch filter of the owner, from byte `offset`. The receiver joins the filter when it is whole.

    Answered by KeptFilterPart. A repeat changes nothing.
    """

    owner: Contact
    cell: CellNumber
    label: EpochFilterLabel
    size: Size
    offset: Offset
    bits: Part


class KeptFilterPart(Message, frozen=True):
    """The answer to KeepFilterPart: so many bytes are here, so go on from there. None means that others are sending, so
    ask later.
    """

    upto: Offset | None
