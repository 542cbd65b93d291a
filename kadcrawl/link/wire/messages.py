"""All messages of the wire, and the definition of those about waves and commands.

A message is ``[tag, field, ...]`` in msgpack (`codec`). Bytes from the network are checked against these types and
limits before any field is read. This module re-exports the messages of the other files: `basics` (limits and common
types), `cell_messages`, `filter_messages` (epoch filters), `grant_messages` (shares of a budget), `loan_messages`,
`leaf_messages`, `joining_messages` (a newcomer's ID), `leave_messages` (departed peers), `offer_messages` (links),
`order_messages` (standing orders), `queue_messages` (pending URLs by site), `relay_messages` (requests for other
peers), `retry_messages` (orders to retry), `seed_messages` and `swarm_state_messages`.

Datagrams (UDP, at most `DATAGRAM_BYTES_MAX`) carry Ping, FindNode, Leave, GetRange and their replies
(`datagram_messages`). All other messages travel by TCP.
"""

from typing import Annotated, Literal

from msgspec import Meta, Raw, field

from kadcrawl.link.wire.absence_messages import AbsenceSeen as AbsenceSeen, WasAway as WasAway
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
    TRAIL_BYTES_MAX as TRAIL_BYTES_MAX,
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
    Reasons as Reasons,
    Seconds as Seconds,
    Small as Small,
    Tally as Tally,
    Trail as Trail,
    Url as Url,
    is_spoken as is_spoken,
)
from kadcrawl.link.wire.cell_messages import (
    COMPARED_MAX as COMPARED_MAX,
    DIGEST_CHARS_MAX as DIGEST_CHARS_MAX,
    JAR_BYTES_MAX as JAR_BYTES_MAX,
    VALIDATOR_CHARS_MAX as VALIDATOR_CHARS_MAX,
    AssignReplica as AssignReplica,
    BackOffRecord as BackOffRecord,
    Batch as Batch,
    CellsAccepted as CellsAccepted,
    CellsHeld as CellsHeld,
    CellState as CellState,
    CellSummary as CellSummary,
    CompareDigests as CompareDigests,
    CookiesRecord as CookiesRecord,
    DigestsCompared as DigestsCompared,
    DoneRun as DoneRun,
    FindMyCells as FindMyCells,
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
from kadcrawl.link.wire.clock_messages import ClockReply, ClockRequest
from kadcrawl.link.wire.datagram_messages import (
    Datagram as Datagram,
    FindNode as FindNode,
    Leave as Leave,
    Left as Left,
    Nodes as Nodes,
    Ping as Ping,
    Pong as Pong,
)
from kadcrawl.link.wire.filter_messages import (
    EPOCH_FILTER_BYTES_MAX as EPOCH_FILTER_BYTES_MAX,
    EPOCH_FILTER_KEYS_MAX as EPOCH_FILTER_KEYS_MAX,
    EPOCH_FILTER_WHOLE_BYTES_MAX as EPOCH_FILTER_WHOLE_BYTES_MAX,
    EPOCH_FILTERS_MAX as EPOCH_FILTERS_MAX,
    CellEpochFilters as CellEpochFilters,
    EpochFilterLabel as EpochFilterLabel,
    EpochFilterRecord as EpochFilterRecord,
    GetEpochFilters as GetEpochFilters,
    GetFilterPart as GetFilterPart,
    GotEpochFilters as GotEpochFilters,
    GotFilterPart as GotFilterPart,
    KeepEpochFilters as KeepEpochFilters,
    KeepFilterPart as KeepFilterPart,
    KeptFilterPart as KeptFilterPart,
)
from kadcrawl.link.wire.find_url_messages import FindUrl as FindUrl, UrlFound as UrlFound
from kadcrawl.link.wire.grant_messages import Grant as Grant
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
    PowersRecord as PowersRecord,
    Recall as Recall,
    Recalled as Recalled,
    RenewLease as RenewLease,
    ReturnedUrl as ReturnedUrl,
    VisitFacts as VisitFacts,
)
from kadcrawl.link.wire.offer_messages import (
    Accepted as Accepted,
    DatedLink as DatedLink,
    DatedOffer as DatedOffer,
    Link as Link,
    Offer as Offer,
    Redirect as Redirect,
)
from kadcrawl.link.wire.order_messages import (
    STANDING_ORDERS_MAX as STANDING_ORDERS_MAX,
    GiveOrders as GiveOrders,
    OrdersGiven as OrdersGiven,
    StandingOrder as StandingOrder,
    Steer as Steer,
)
from kadcrawl.link.wire.peer_row import (
    REFUSING_MAX as REFUSING_MAX,
    SITE_SHOWN_MAX as SITE_SHOWN_MAX,
    PeerRow as PeerRow,
    RefusingSite as RefusingSite,
)
from kadcrawl.link.wire.queue_messages import (
    GetQueue as GetQueue,
    Queue as Queue,
    QueueCounts as QueueCounts,
    SurveyQueue as SurveyQueue,
)
from kadcrawl.link.wire.relay_messages import RelayReply, RelayRequest
from kadcrawl.link.wire.retry_messages import (
    AddAgain as AddAgain,
    AddedAgain as AddedAgain,
    FetchAgain as FetchAgain,
    FetchedAgain as FetchedAgain,
    Retried as Retried,
    Retry as Retry,
    RetryFailed as RetryFailed,
)
from kadcrawl.link.wire.seed_messages import (
    Add as Add,
    Added as Added,
    GetReach as GetReach,
    GotReach as GotReach,
    NewReach as NewReach,
    NewSeeds as NewSeeds,
    SeedsStreamed as SeedsStreamed,
    StreamSeeds as StreamSeeds,
)
from kadcrawl.link.wire.swarm_state_messages import GetSwarmState as GetSwarmState, GotSwarmState as GotSwarmState
from kadcrawl.link.wire.watch_messages import Watched as Watched
from kadcrawl.members.swarm_key import KEY_BYTES
from kadcrawl.settings.job import Job

# --- the link (TCP): what must not be lost -----------------------------------------------------------------------


class Refused(Message, frozen=True):
    """The answer to a request that was understood and will not be done. `why` is one sentence for a person."""

    why: Annotated[str, Meta(max_length=1000)]


class Hello(Message, frozen=True):
    """A newcomer asks its bootstrap peer for the job. Answered by Welcome. A repeat is answered again."""

    version: Small


class Welcome(Message, frozen=True):
    """The answer to Hello: the job, and whether the swarm is paused."""

    job: Job
    paused: bool
    update_s: Seconds
    """Seconds until the next comparison of load levels."""
    stamp: Count = 0
    """Stamp of the last order to pause or to resume."""
    orders: Annotated[list[StandingOrder], Meta(max_length=STANDING_ORDERS_MAX)] = field(default_factory=list)
    """The standing orders about sites."""


class Survey(Message, frozen=True):
    """A wave's question for the remaining work (termination). Answers are added up, so its cost is the same at any
    size.
    """


class Census(Message, frozen=True):
    """A wave's question for the description of each peer, one row a peer (status)."""

    since_s: Seconds | None = None
    """If given, each peer also tells its details, and what happened in the last so many seconds (dashboard)."""
    unit: Literal["", "pages", "bytes"] = ""
    """The budget that the asker will share out by the rows. Each row then begins an epoch (`PeerRow.grant_epoch`)."""


class Order(Message, frozen=True):
    """An order by wave: pause, resume, or stop (finish requests in flight and exit), or the news that the swarm is
    quiescent.

    A quiescent swarm has either ended, or rests until pages are due again. A repeat changes nothing.
    """

    verb: Literal["pause", "resume", "stop", "ended", "rest"]
    stamp: Count = 0
    """The stamp of an order to pause or to resume: the sender's clock in milliseconds, but later than the last such
    order it knows.
    """


Question = Survey | Census | Order | NewSeeds | NewReach | Grant | Retry | Steer | SurveyQueue


class Wave(Message, frozen=True):
    """A question for every peer of a subtree: the receiver answers and asks its own buckets below `limit`.

    Answered by Answer. Every question may be repeated, as a second answer changes nothing.
    """

    limit: Annotated[int, Meta(ge=0, le=160)]
    deadline_s: Annotated[float, Meta(gt=0, le=120)]
    """Seconds the answer may take. Each level passes on a little less."""
    question: Question


class Answer(Message, frozen=True):
    """The answer to Wave: the tally of a subtree, and its rows if the question is a Census.

    Reading thousands of rows at once would take a second. So each row is a packed `PeerRow` that is passed on unread,
    and read by the asker (link/wire/census_rows.py).
    """

    tally: Tally
    rows: Annotated[list[Raw], Meta(max_length=ROWS_MAX)]
    left: Annotated[list[Raw], Meta(max_length=ROWS_MAX)] = field(default_factory=list)
    """Rows of departed peers. They are separate, so that however many they are, all other rows are told."""
    queue: QueueCounts | None = None
    """The queue of the subtree, if the question is a SurveyQueue."""
    watched: Watched | None = None
    """What happened in the subtree, if the question is a Census with `since_s`."""


# --- control: from a person's command to any one peer -------------------------------------------------------------


class GetStatus(Message, frozen=True):
    """A command asks for the whole swarm, row by row: the peer runs a Census wave. Answered by Status. A repeat is
    answered again.
    """

    since_s: Seconds | None = None
    """As in Census, for the dashboard of a leaf."""


class SwarmStatus(Message, frozen=True, tag="Answer"):
    """The whole swarm's answer to a census, for a person: rows are read, each peer stands once, departed peers come
    last.
    """

    tally: Tally
    rows: Annotated[list[PeerRow], Meta(max_length=ROWS_MAX)]


class Status(Message, frozen=True):
    """The answer to GetStatus: the job and one row per peer that answered."""

    job: Job
    answer: SwarmStatus
    ended: bool
    paused: bool
    orders: Annotated[list[StandingOrder], Meta(max_length=STANDING_ORDERS_MAX)] = field(default_factory=list)
    """The standing orders about sites."""
    watched: Watched | None = None
    """What happened in the swarm, if GetStatus has `since_s`."""


class Command(Message, frozen=True):
    """A person's command: pause, resume or stop the swarm, or leave, by which only the asked peer goes.

    Answered by Ok. A repeat changes nothing.
    """

    verb: Literal["pause", "resume", "stop", "leave"]


class Rekey(Message, frozen=True):
    """The operator of a peer gives it a new key of the swarm. For an hour the former key is valid too.

    Answered by Ok. A repeat changes nothing.
    """

    peer: IdBytes
    """The peer's own ID. Only a sender with its key, and so its directory, may send this; no other member may."""
    key: Annotated[bytes, Meta(min_length=KEY_BYTES, max_length=KEY_BYTES)]


class OpenDashboard(Message, frozen=True):
    """The operator of a peer wants its dashboard open, on loopback. A file in the peer's directory tells where.

    Answered by Ok. A repeat changes nothing.
    """

    peer: IdBytes
    """The peer's own ID. Only a sender with its key, and so its directory, may send this; no other member may."""


class Ok(Message, frozen=True):
    """The answer to a command that was carried out."""


Request = (
    Offer
    | DatedOffer
    | Hello
    | GetSwarmState
    | GetReach
    | FindRanges
    | Wave
    | Replicate
    | FindMyCells
    | WasAway
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
    | RelayRequest
    | ClockRequest
    | LeaveStats
    | GetStatus
    | Add
    | StreamSeeds
    | Command
    | RetryFailed
    | AddAgain
    | FetchAgain
    | GiveOrders
    | GetQueue
    | Rekey
    | OpenDashboard
    | FindUrl
)
Reply = (
    Accepted
    | Refused
    | Welcome
    | GotSwarmState
    | GotReach
    | SeedsStreamed
    | Added
    | Ranges
    | Answer
    | Replicated
    | MyCells
    | AbsenceSeen
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
    | RelayReply
    | ClockReply
    | Status
    | Retried
    | AddedAgain
    | FetchedAgain
    | OrdersGiven
    | Queue
    | UrlFound
    | Ok
)
