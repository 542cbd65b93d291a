"""The part of the wire that balances load: pages of an owner that another peer fetches for it, on a lease.

A *loan* is some PENDING URLs of one site, and some of the connections the site may have at a time; with a delay between
requests it has only one. The URLs stay PENDING at their owner, the *giver*. The *taker* begins once its first
report was answered, and stops when it has had no answer for some time (balance/leases.py); so a lost message costs time
only.

Tests: tests/link/wire/test_messages.py
"""

from typing import Annotated

from msgspec import Meta, Struct

from kadcrawl.link.wire.basics import BATCH_MAX, Contact, IdBytes, Keys, Message, Seconds, Small
from kadcrawl.link.wire.cell_messages import PendingRecord, RobotsRecord, SiteRecord

LOANS_MAX = 64
"""Loans in one message, and between two peers in one direction."""
CONNECTIONS_MAX = 1000
"""Of one site, in one loan."""

LoanId = Annotated[bytes, Meta(min_length=8, max_length=8)]
LEVEL_MAX = 1e6
Level = Annotated[float, Meta(ge=-LEVEL_MAX, le=LEVEL_MAX)]
URL_S_MIN, URL_S_MAX = 1e-6, 1e5
"""Seconds for a URL: no peer is quicker; and one as slow as this is as good as idle."""
BUSY_S_MAX = 1e9


class BacklogRecord(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What a peer has before it, by time (balance/drain.py)."""

    pending: Small
    """Own URLs that wait for the peer and not for their sites."""
    url_s: Annotated[float, Meta(ge=URL_S_MIN, le=URL_S_MAX)]
    """How long it takes for one."""
    busy_s: Annotated[float, Meta(ge=0, le=BUSY_S_MAX)]
    """What is borrowed, in seconds."""


class GetLoad(Message, frozen=True):
    """How loaded are you? So am I; None: by number, or not known."""

    asker: IdBytes
    backlog: BacklogRecord | None


class Load(Message, frozen=True):
    """This much, in heavy blocks (balance/level.py), below zero for light; loans not begun are counted."""

    level: Level
    backlog: BacklogRecord | None
    """The same by time; None: not told, or not known."""


class Lend(Message, frozen=True):
    """Fetch these for me. A repeat of a loan that is known is answered again."""

    lender: Contact
    loan: LoanId
    clock: SiteRecord
    connections: Annotated[int, Meta(ge=1, le=CONNECTIONS_MAX)]
    """Requests that may be under way at a time, if the site has no delay."""
    pending: Annotated[list[PendingRecord], Meta(max_length=BATCH_MAX, min_length=1)]
    robots: Annotated[list[RobotsRecord], Meta(max_length=BATCH_MAX)]


class Lent(Message, frozen=True):
    """Whether I shall. Nothing is fetched before the first report was answered."""

    accepted: bool


class ReturnedUrl(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A URL that was not finished, with its retry state."""

    key: IdBytes
    tries: Small
    wait_s: Seconds


class LoanReport(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """How far one loan is. `done` are on the reporter's disk; a repeat changes nothing."""

    loan: LoanId
    clock: SiteRecord
    done: Keys
    returned: Annotated[list[ReturnedUrl], Meta(max_length=BATCH_MAX)]
    over: bool
    """No request is under way, and nothing more of it will be fetched."""


class RenewLease(Message, frozen=True):
    """How far the loans from one giver are; its answer renews the lease."""

    borrower: Contact
    loans: Annotated[list[LoanReport], Meta(max_length=LOANS_MAX)]


class ActiveLoan(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A loan that goes on, and how its site must be treated, as far as its giver knows: it may have heard of others."""

    loan: LoanId
    wait_s: Seconds
    delay_s: Seconds


class LeaseRenewed(Message, frozen=True):
    """What is done is journaled here. These loans go on; of all others nothing more is to be fetched."""

    active: Annotated[list[ActiveLoan], Meta(max_length=LOANS_MAX)]


class Recall(Message, frozen=True):
    """Fetch nothing more of these loans, and report. Harmless when repeated."""

    lender: Contact
    loans: Annotated[list[LoanId], Meta(max_length=LOANS_MAX)]


class Recalled(Message, frozen=True):
    """Nothing more will be begun."""
