"""Messages of load balance: pages of an owner that another peer fetches for it, on a lease.

A *loan* is some pending URLs of one site, and some of the connections the site may have at a time. With a delay between
requests a site has only one. The URLs stay pending at their owner, the *lender*. The *borrower* begins once its first
report was answered, and stops when it has had no answer for some time (balance/leases.py). So a lost message costs only
time.

Tests: tests/link/wire/test_messages.py
"""

from typing import Annotated

from msgspec import Meta, Struct, field

from kadcrawl.balance.leases import RENEW_S, SILENCE_MAX_S
from kadcrawl.balance.machine_profile import PROFILE_MOST
from kadcrawl.link.wire.basics import (
    BATCH_MAX,
    PRINTABLE,
    Contact,
    IdBytes,
    Keys,
    LongSeconds,
    Message,
    Reason,
    Seconds,
    Small,
)
from kadcrawl.link.wire.cell_messages import (
    ANSWER_CHARS_MAX,
    DIGEST_CHARS_MAX,
    VALIDATOR_CHARS_MAX,
    PendingRecord,
    RobotsRecord,
    SiteRecord,
)

LOANS_MAX = 64
"""Loans in one message, and between two peers in one direction."""
CONNECTIONS_MAX = 1000
"""Connections of one site, in one loan."""

LoanId = Annotated[bytes, Meta(min_length=8, max_length=8)]
LEVEL_MAX = 1e6
"""Largest load level in heavy blocks, above and below zero."""
Level = Annotated[float, Meta(ge=-LEVEL_MAX, le=LEVEL_MAX)]
URL_S_MIN, URL_S_MAX = 1e-6, 1e5
"""Seconds per URL: no peer is quicker, and a slower peer is as good as idle."""
BUSY_S_MAX = 1e9
"""Seconds of borrowed work: 30 years, far above any honest backlog."""


class BacklogRecord(Struct, frozen=True, array_like=True):
    """The work ahead of a peer, by time (balance/drain.py)."""

    pending: Small
    """Own URLs that wait for the peer and not for their sites."""
    url_s: Annotated[float, Meta(ge=URL_S_MIN, le=URL_S_MAX)]
    """Seconds per URL."""
    busy_s: Annotated[float, Meta(ge=0, le=BUSY_S_MAX)]
    """Seconds of borrowed work."""


class PowersRecord(Struct, frozen=True, array_like=True):
    """The powers of a peer's machine, as it measured or declared them (balance/machine_profile.py)."""

    cores: Annotated[int, Meta(ge=1, le=int(PROFILE_MOST["cores"]))]
    clock_ghz: Annotated[float, Meta(gt=0, le=PROFILE_MOST["clock_ghz"])]
    memory_gb: Annotated[float, Meta(gt=0, le=PROFILE_MOST["memory_gb"])]
    net_mbps: Annotated[float, Meta(gt=0, le=PROFILE_MOST["net_mbps"])]
    disk_mbps: Annotated[float, Meta(gt=0, le=PROFILE_MOST["disk_mbps"])]


class GetLoad(Message, frozen=True):
    """A question: how loaded are you? It carries the asker's own backlog, or None if that is unknown, or balanced by
    number.

    Answered by Load. A repeat is answered again.
    """

    asker: IdBytes
    backlog: BacklogRecord | None


class Load(Message, frozen=True):
    """The answer to GetLoad: the level in heavy blocks (balance/level.py), below zero for light. Loans not begun are
    counted.
    """

    level: Level
    backlog: BacklogRecord | None
    """The load by time, or None if it is unknown or not told."""
    powers: PowersRecord | None = None
    """The powers of the machine, for a job with balance predictive, or None while they are not known."""


class VisitFacts(Struct, frozen=True, array_like=True):
    """The facts that a visit left of a page of a loan (store/visit.py): the last, from the lender, or its own, from the
    borrower.
    """

    etag: Annotated[str, Meta(max_length=VALIDATOR_CHARS_MAX)]
    """Entity tag as received, or empty."""
    last_modified: Annotated[str, Meta(max_length=VALIDATOR_CHARS_MAX)]
    """Last-Modified field as received, or empty."""
    digest: Annotated[str, Meta(max_length=DIGEST_CHARS_MAX)]
    """Payload digest of the last whole body, or empty."""
    captured: Annotated[str, Meta(max_length=DIGEST_CHARS_MAX)]
    """WARC-Date of the record with that body, or empty."""
    gone: Small
    """Consecutive visits that found the page gone."""
    period_s: LongSeconds
    """Seconds between two visits. Only that of the lender counts."""
    is_due_again: bool
    """The page is to be visited again. The lender decides when."""
    answer: Annotated[str, Meta(max_length=ANSWER_CHARS_MAX, pattern=PRINTABLE)] = ""
    """The last answer 200 of the page with a body of its own (store/last_answer.py), or empty."""


class Lend(Message, frozen=True):
    """A lender asks another peer to fetch these URLs. Answered by Lent. A repeat of a known loan is answered again."""

    lender: Contact
    loan: LoanId
    clock: SiteRecord
    connections: Annotated[int, Meta(ge=1, le=CONNECTIONS_MAX)]
    """Requests that may be under way at a time, if the site has no delay."""
    pending: Annotated[list[PendingRecord], Meta(max_length=BATCH_MAX, min_length=1)]
    robots: Annotated[list[RobotsRecord], Meta(max_length=BATCH_MAX)]
    backlog: BacklogRecord | None = None
    """The lender's work by time, these URLs included, or None if it is unknown, or balanced by number."""
    visits: Annotated[dict[IdBytes, VisitFacts], Meta(max_length=BATCH_MAX)] = field(default_factory=dict)
    """The last visits to those URLs that were visited before."""


class Lent(Message, frozen=True):
    """The answer to Lend: whether the loan is accepted. Nothing is fetched before the first report was answered."""

    accepted: bool


class ReturnedUrl(Struct, frozen=True, array_like=True):
    """A URL that was not finished, with its retry state."""

    key: IdBytes
    tries: Small
    wait_s: Seconds
    unfinished: bool = False
    """The borrower has fetched the URL, and may still finish it."""


class LoanReport(Struct, frozen=True, array_like=True):
    """The progress of one loan. The URLs in `done` are on the borrower's disk. A repeat changes nothing."""

    loan: LoanId
    clock: SiteRecord
    done: Keys
    returned: Annotated[list[ReturnedUrl], Meta(max_length=BATCH_MAX)]
    over: bool
    """No request is under way, and nothing more of the loan will be fetched."""
    failed: Annotated[dict[IdBytes, Reason], Meta(max_length=BATCH_MAX)] = {}
    """The reasons of those in `done` that failed."""
    visits: Annotated[dict[IdBytes, VisitFacts], Meta(max_length=BATCH_MAX)] = {}
    """The visits to those in `done` that may be visited again."""


class RenewLease(Message, frozen=True):
    """A borrower reports the progress of the loans from one lender.

    Answered by LeaseRenewed, which renews the lease. A repeat changes nothing, and renews the lease again.
    """

    borrower: Contact
    loans: Annotated[list[LoanReport], Meta(max_length=LOANS_MAX)]


class ActiveLoan(Struct, frozen=True, array_like=True):
    """A loan that goes on, and the clock of its site as the lender knows it.

    The lender may have heard of requests that the borrower does not know.
    """

    loan: LoanId
    wait_s: Seconds
    delay_s: Seconds
    depths: Annotated[dict[IdBytes, Small], Meta(max_length=BATCH_MAX)] = {}
    """Key -> depth of each page of the loan to which the lender has met a shorter path since it lent the page."""


class LeaseRenewed(Message, frozen=True):
    """The answer to RenewLease: finished work is journaled here, and these loans go on. Nothing more of any other may
    be fetched.
    """

    active: Annotated[list[ActiveLoan], Meta(max_length=LOANS_MAX)]
    silence_s: Annotated[float, Meta(ge=RENEW_S, le=SILENCE_MAX_S)] = RENEW_S
    """Seconds until the next report, at the latest. A page needs a lease that is not over all the same."""


class Recall(Message, frozen=True):
    """A lender ends these loans: the borrower fetches nothing more of them, and reports. Answered by Recalled. A repeat
    is harmless.
    """

    lender: Contact
    loans: Annotated[list[LoanId], Meta(max_length=LOANS_MAX)]


class Recalled(Message, frozen=True):
    """The answer to Recall: no further request will begin."""
