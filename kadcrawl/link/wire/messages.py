"""The wire: every message peers exchange, its meaning, its limits, and what a repeat of it means.

A message is ``[tag, field, ...]`` in msgpack (`codec`). Bytes from the network are checked against these types and
limits before anyone reads a field. Limits and common types stand in `basics`, the messages about cells in
`cell_messages`, those about loans in `loan_messages`, of leaves in `leaf_messages`, about a newcomer's ID in
`joining_messages`, of who leaves in `farewell_messages`, about what the swarm was told in `course_messages`; all are
found here as well.

Datagrams (UDP, at most `DATAGRAM_BYTES_MAX`) carry Ping, FindNode, Leave, GetRange and their replies
(`datagram_messages`); the rest goes by TCP.
"""

from typing import Annotated, Literal

from msgspec import Meta, Raw, Struct, field

from kadcrawl.link.wire.basics import (
    BATCH_MAX as BATCH_MAX,
    CONTACTS_MAX as CONTACTS_MAX,
    COUNT_MAX as COUNT_MAX,
    DATAGRAM_BYTES_MAX as DATAGRAM_BYTES_MAX,
    LONG_S_MAX as LONG_S_MAX,
    MY_CELLS_MAX as MY_CELLS_MAX,
    PRINTABLE as PRINTABLE,
    ROBOTS_BYTES_MAX as ROBOTS_BYTES_MAX,
    ROWS_MAX as ROWS_MAX,
    SMALL_MAX as SMALL_MAX,
    URL_CHARS_MAX as URL_CHARS_MAX,
    WIRE_VERSION as WIRE_VERSION,
    CellNumber as CellNumber,
    Contact as Contact,
    Count as Count,
    Fingerprint as Fingerprint,
    Host as Host,
    IdBytes as IdBytes,
    Keys as Keys,
    LongSeconds as LongSeconds,
    Message as Message,
    PeerCounters as PeerCounters,
    Port as Port,
    Seconds as Seconds,
    Small as Small,
    Url as Url,
)
from kadcrawl.link.wire.cell_messages import (
    COMPARED_MAX as COMPARED_MAX,
    DIGEST_CHARS_MAX as DIGEST_CHARS_MAX,
    EPOCH_FILTER_BYTES_MAX as EPOCH_FILTER_BYTES_MAX,
    EPOCH_FILTER_KEYS_MAX as EPOCH_FILTER_KEYS_MAX,
    EPOCH_FILTER_WHOLE_BYTES_MAX as EPOCH_FILTER_WHOLE_BYTES_MAX,
    EPOCH_FILTERS_MAX as EPOCH_FILTERS_MAX,
    VALIDATOR_CHARS_MAX as VALIDATOR_CHARS_MAX,
    AssignReplica as AssignReplica,
    Batch as Batch,
    CellEpochFilters as CellEpochFilters,
    CellsAccepted as CellsAccepted,
    CellsHeld as CellsHeld,
    CellState as CellState,
    CellSummary as CellSummary,
    CompareDigests as CompareDigests,
    DigestsCompared as DigestsCompared,
    EpochFilterLabel as EpochFilterLabel,
    EpochFilterRecord as EpochFilterRecord,
    FindMyCells as FindMyCells,
    GetEpochFilters as GetEpochFilters,
    GetFilterPart as GetFilterPart,
    GotEpochFilters as GotEpochFilters,
    GotFilterPart as GotFilterPart,
    KeepEpochFilters as KeepEpochFilters,
    KeepFilterPart as KeepFilterPart,
    KeptFilterPart as KeptFilterPart,
    LaterState as LaterState,
    MyCells as MyCells,
    PendingRecord as PendingRecord,
    Reconcile as Reconcile,
    Reconciled as Reconciled,
    ReplicaAssigned as ReplicaAssigned,
    Replicate as Replicate,
    Replicated as Replicated,
    RobotsRecord as RobotsRecord,
    SiteRecord as SiteRecord,
    TakeOver as TakeOver,
    TakeOverAnswer as TakeOverAnswer,
    VisitRecord as VisitRecord,
    Window as Window,
)
from kadcrawl.link.wire.datagram_messages import (
    Datagram as Datagram,
    FindNode as FindNode,
    Leave as Leave,
    Left as Left,
    Nodes as Nodes,
    Ping as Ping,
    Pong as Pong,
)
from kadcrawl.link.wire.joining_messages import (
    DRAWN_MAX as DRAWN_MAX,
    FindRanges as FindRanges,
    FoundRange as FoundRange,
    GetRange as GetRange,
    OwnRange as OwnRange,
    Ranges as Ranges,
)
from kadcrawl.link.wire.leaf_messages import (
    GRANT_LOANS_MAX as GRANT_LOANS_MAX,
    GRANT_URLS_MAX as GRANT_URLS_MAX,
    SwarmActivity as SwarmActivity,
    WorkGrant as WorkGrant,
    WorkRequest as WorkRequest,
)
from kadcrawl.link.wire.leave_messages import (
    DEPARTED_MAX as DEPARTED_MAX,
    LEFT as LEFT,
    Departed as Departed,
    LeaveStats as LeaveStats,
)
from kadcrawl.link.wire.loan_messages import (
    CONNECTIONS_MAX as CONNECTIONS_MAX,
    LOANS_MAX as LOANS_MAX,
    ActiveLoan as ActiveLoan,
    BacklogRecord as BacklogRecord,
    GetLoad as GetLoad,
    LeaseRenewed as LeaseRenewed,
    Lend as Lend,
    Lent as Lent,
    Load as Load,
    LoanReport as LoanReport,
    Recall as Recall,
    Recalled as Recalled,
    RenewLease as RenewLease,
    ReturnedUrl as ReturnedUrl,
)
from kadcrawl.link.wire.swarm_state_messages import GetSwarmState as GetSwarmState, GotSwarmState as GotSwarmState
from kadcrawl.members.swarm_key import KEY_BYTES
from kadcrawl.settings.config import Job

# --- the link (TCP): what must not be lost -----------------------------------------------------------------------


class Link(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A discovered URL on its way to its owner."""

    url: Url
    depth: Small
    """Links away from the nearest seed, along the path it was found."""
    hops: Small
    """Redirects in a row that led here."""


class Offer(Message, frozen=True):
    """Links for their owner. A repeat finds them known and changes nothing."""

    links: Annotated[list[Link], Meta(max_length=BATCH_MAX)]
    seeds_fingerprint: Fingerprint = 0
    """Of the seeds the sender crawls by (peer/swarm_state.py): what is out of scope by others may be in by these."""


class DatedLink(Link, frozen=True):
    """A link of a sitemap that says when its page changed last."""

    modified: LongSeconds | None = None
    """As wall-clock second; None if this one's was not said."""


class DatedOffer(Message, frozen=True):
    """An Offer some of whose links have dates, if pages are fetched again; answered like one.

    A repeat brings no page forward twice, as what is due soon stays as it is (crawl/recrawl/policy.py).
    """

    links: Annotated[list[DatedLink], Meta(max_length=BATCH_MAX)]
    seeds_fingerprint: Fingerprint = 0


class Redirect(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The link at `index` of an offer is not mine: ask `owner`."""

    index: Annotated[int, Meta(ge=0, lt=BATCH_MAX)]
    owner: Contact


class Accepted(Message, frozen=True):
    """All links of the offer are journaled here, but for those listed: ask their owners, which this peer may be."""

    redirects: Annotated[list[Redirect], Meta(max_length=BATCH_MAX)]


class Refused(Message, frozen=True):
    """The request was understood and will not be done; `why` is one sentence for a person."""

    why: Annotated[str, Meta(max_length=1000)]


class Hello(Message, frozen=True):
    """A newcomer asks its bootstrap peer for the job. A repeat is answered again."""

    version: Small


class Welcome(Message, frozen=True):
    """The job, and whether the swarm is paused just now."""

    job: Job
    paused: bool
    update_s: Seconds
    """Until the next look at the load levels."""
    stamp: Count = 0
    """Of the last order to pause or to resume."""


class Tally(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What a part of the swarm has left to do; tallies of disjoint parts add up (see overlay/waves/quiescence.py)."""

    members: Count
    view: Annotated[bytes, Meta(min_length=16, max_length=16)]
    """XOR over the members of H(ID, incarnation, activity counter): equal only if nobody came, went or did anything."""
    pending: Count
    """URLs accepted and not finished that may still be fetched."""
    unacknowledged: Count
    """Links and records on their way to other peers."""
    missing: Count
    """Subtrees that did not answer."""
    due_s: LongSeconds | None = None
    """Until the first page is to be fetched again; None if none is."""


RESTING = "resting"
"""State of a peer: in all of the swarm nothing is to be fetched until a page is due again."""


class PeerRow(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """One peer as it describes itself."""

    contact: Contact
    state: Annotated[str, Meta(max_length=40, pattern=PRINTABLE)]
    pending: Count
    in_flight: Count
    uptime_s: Count
    counters: PeerCounters
    allowance: Count
    """Fetches it may still begin of the budget --max-pages."""
    granted: Count
    """Fetches of that budget it has ever been granted."""
    lent: Count = 0
    """Of its pending URLs, those that others fetch for it just now."""
    borrowed: Count = 0
    """URLs of others that it fetches for them just now."""
    due_s: LongSeconds | None = None
    """Until the first of its pages is to be fetched again; None if none is."""
    lag: Count = 0
    """Bytes of its page log, records and WARC files that its sinks have not got yet."""
    fingerprints: Count = 0
    """Of finished URLs, its own and copies, in a job that keeps no keys of them."""


class Survey(Message, frozen=True):
    """What is left to do? (termination; aggregated, so it costs the same at any size)"""


class Census(Message, frozen=True):
    """Describe yourselves, one row a peer (status)."""


class Order(Message, frozen=True):
    """Do this: pause, resume, stop (finish what is in flight and exit); or hear that the swarm is quiescent.

    Then it is either ended, or it rests until pages are due again.
    """

    verb: Literal["pause", "resume", "stop", "ended", "rest"]
    stamp: Count = 0
    """To pause or to resume: the giver's clock, in milliseconds, but later than the last such order known to it."""


class NewSeeds(Message, frozen=True):
    """Widen the scope by these seeds; whoever sends it offers them to their owners as well."""

    urls: Annotated[list[Url], Meta(max_length=BATCH_MAX)]


class Grant(Message, frozen=True):
    """Shares of the budget --max-pages: how many fetches each listed peer is granted in all (crawl/page_budget.py).

    Totals, not additions, so that a repeat changes nothing. `spent` says that nothing is left for anybody.
    """

    totals: Annotated[dict[IdBytes, Count], Meta(max_length=ROWS_MAX)]
    spent: bool


Question = Survey | Census | Order | NewSeeds | Grant


class Wave(Message, frozen=True):
    """A question for every peer of a subtree: the receiver answers and asks its own buckets below `limit`.

    Every question may be repeated: answering twice changes nothing.
    """

    limit: Annotated[int, Meta(ge=0, le=160)]
    deadline_s: Annotated[float, Meta(gt=0, le=120)]
    """Seconds the answer may take; each level passes on a little less."""
    question: Question


class Answer(Message, frozen=True):
    """The tally of a subtree, and its rows when they were asked for.

    Thousands of rows would take a second to read in one go, so each is a packed `PeerRow` that is passed on unread, and
    read by who asked (link/wire/census_rows.py).
    """

    tally: Tally
    rows: Annotated[list[Raw], Meta(max_length=ROWS_MAX)]
    left: Annotated[list[Raw], Meta(max_length=ROWS_MAX)] = field(default_factory=list)
    """Of peers that are not there any more: apart, so that however many they are all others are told."""


# --- control: from a person's command to any one peer -------------------------------------------------------------


class GetStatus(Message, frozen=True):
    """The whole swarm, row by row (runs a Census wave)."""


class SwarmStatus(Message, frozen=True, tag="Answer"):
    """The answer of the whole swarm to a census, for a person: read, and each peer once; who left comes last."""

    tally: Tally
    rows: Annotated[list[PeerRow], Meta(max_length=ROWS_MAX)]


class Status(Message, frozen=True):
    """The job and one row per peer that answered."""

    job: Job
    answer: SwarmStatus
    ended: bool
    paused: bool


class Add(Message, frozen=True):
    """Crawl these as well: further seeds. Answered once their owners have them."""

    urls: Annotated[list[Url], Meta(max_length=BATCH_MAX)]


class Command(Message, frozen=True):
    """pause, resume or stop the swarm; leave: only the asked peer goes."""

    verb: Literal["pause", "resume", "stop", "leave"]


class Rekey(Message, frozen=True):
    """From whoever runs a peer to it: let in who has this key of the swarm, and for an hour who has the former one."""

    peer: IdBytes
    """Its own ID: only who has its key, and so its directory, may ask it this. No other member may."""
    key: Annotated[bytes, Meta(min_length=KEY_BYTES, max_length=KEY_BYTES)]


class Ok(Message, frozen=True):
    """Done."""


Request = (
    Offer
    | DatedOffer
    | Hello
    | GetSwarmState
    | FindRanges
    | Wave
    | Replicate
    | FindMyCells
    | CellsHeld
    | TakeOver
    | CompareDigests
    | Reconcile
    | GetEpochFilters
    | GetFilterPart
    | KeepEpochFilters
    | KeepFilterPart
    | AssignReplica
    | GetLoad
    | Lend
    | RenewLease
    | Recall
    | WorkRequest
    | LeaveStats
    | GetStatus
    | Add
    | Command
    | Rekey
)
Reply = (
    Accepted
    | Refused
    | Welcome
    | GotSwarmState
    | Ranges
    | Answer
    | Replicated
    | MyCells
    | CellsAccepted
    | TakeOverAnswer
    | DigestsCompared
    | Reconciled
    | GotEpochFilters
    | GotFilterPart
    | KeptFilterPart
    | ReplicaAssigned
    | Load
    | Lent
    | LeaseRenewed
    | Recalled
    | WorkGrant
    | Status
    | Ok
)
