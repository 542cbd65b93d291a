"""Test that each message comes back from the wire unchanged, and that nothing else gets through."""

import msgpack
import msgspec
import pytest

from kadcrawl.errors import ConfigError
from kadcrawl.link.wire.basics import REASONS_MAX, URL_CHARS_MAX
from kadcrawl.link.wire.cell_messages import (
    ANSWER_CHARS_MAX,
    DIGEST_CHARS_MAX,
    VALIDATOR_CHARS_MAX,
    LaterState,
    VisitRecord,
)
from kadcrawl.link.wire.census_rows import packed_rows
from kadcrawl.link.wire.clock_messages import (
    CLOCK_CHARS_MAX,
    CLOCKS_MAX,
    ClockFree,
    ClockFreeNoted,
    ClockQuestion,
    ClocksLeased,
    ClockTurn,
    LeaseClocks,
)
from kadcrawl.link.wire.codec import MalformedError, pack, unpack
from kadcrawl.link.wire.loan_messages import URL_S_MIN
from kadcrawl.link.wire.messages import (
    BATCH_MAX,
    COMPARED_MAX,
    CONTACTS_MAX,
    COUNT_MAX,
    DATAGRAM_BYTES_MAX,
    DRAWN_MAX,
    EPOCH_FILTER_WHOLE_BYTES_MAX,
    JAR_BYTES_MAX,
    LOANS_MAX,
    MY_CELLS_MAX,
    ROBOTS_BYTES_MAX,
    ROWS_MAX,
    SMALL_MAX,
    AbsenceSeen,
    ActiveLoan,
    AddAgain,
    AddedAgain,
    Answer,
    AssignReplica,
    BacklogRecord,
    BackOffRecord,
    Batch,
    CellEpochFilters,
    CellsAccepted,
    CellsHeld,
    CellState,
    CellSummary,
    Census,
    CompareDigests,
    Contact,
    CookiesRecord,
    Datagram,
    DatedLink,
    DatedOffer,
    DigestsCompared,
    DoneRun,
    EpochFilterLabel,
    EpochFilterRecord,
    FetchAgain,
    FetchedAgain,
    FindMyCells,
    FindRanges,
    FoundRange,
    GetEpochFilters,
    GetFilterPart,
    GetLoad,
    GetRange,
    GetReach,
    GetSwarmState,
    GotEpochFilters,
    GotFilterPart,
    GotReach,
    GotSwarmState,
    Grant,
    KeepEpochFilters,
    KeepFilterPart,
    KeptFilterPart,
    LeaseRenewed,
    Lend,
    Lent,
    Link,
    Load,
    LoanReport,
    Message,
    MyCells,
    Nodes,
    Offer,
    OwnRange,
    PeerCounters,
    PeerRow,
    PendingRecord,
    Ping,
    Pong,
    PowersRecord,
    Ranges,
    Recall,
    Recalled,
    Reconcile,
    Reconciled,
    RenewLease,
    ReplicaAssigned,
    Replicate,
    Replicated,
    Reply,
    Request,
    Retried,
    Retry,
    RetryFailed,
    ReturnedUrl,
    RobotsRecord,
    SiteRecord,
    Status,
    Survey,
    SwarmStatus,
    TakeOver,
    TakeOverAnswer,
    Tally,
    WasAway,
    Wave,
    Welcome,
    Window,
)
from kadcrawl.link.wire.order_messages import (
    ABOUT_CHARS_MAX,
    STANDING_ORDERS_MAX,
    USER_CHARS_MAX,
    GiveOrders,
    OrdersGiven,
    StandingOrder,
    Steer,
)
from kadcrawl.link.wire.peer_state import PeerState
from kadcrawl.link.wire.queue_messages import (
    AGES_S,
    DEPTHS_MAX,
    QUEUED_SITES_MAX,
    QUEUED_URLS_MAX,
    SITE_CHARS_MAX,
    GetQueue,
    Queue,
    QueueCounts,
    QueuedSite,
    QueuedUrl,
    SurveyQueue,
)
from kadcrawl.link.wire.relay_messages import (
    RELAY_BODY_BYTES_MAX,
    RELAY_FIELDS_MAX,
    RELAY_HEADERS_MAX,
    RELAY_PART_BYTES_MAX,
    FetchedForPeer,
    FetchedPart,
    FetchForPeer,
    GetFetchedPart,
    HeaderField,
    ReceivedField,
)
from kadcrawl.link.wire.retry_messages import RETRY_ORDERS_MAX, RetryOrder
from kadcrawl.link.wire.seed_messages import (
    SEGMENT_FINGERPRINTS_MAX,
    SEGMENT_ID_BYTES,
    SEGMENTS_ASKED_MAX,
    SEGMENTS_MAX,
    STREAM_URLS_MAX,
    NewReach,
    SeedsStreamed,
    StreamSeeds,
)
from kadcrawl.replication.record_codec import ROBOTS_BATCH_BYTES_MAX
from kadcrawl.settings.job import COPIES_MAX, SEEDS_CHARS_MAX, SEEDS_MAX, Job
from kadcrawl.settings.limits import Limits
from kadcrawl.settings.page_rules import FIELDS_MAX, RULES_CHARS_MAX, RULES_MAX, Field, RecordRule, RoleRule
from tests.support.cases import cases

ID = bytes(range(20))
CONTACT = Contact(ID, "10.0.0.1", 4160)
TALLY = Tally(1, bytes(16), 0, 0, 0)
LABEL = EpochFilterLabel(20_000, 3, bytes(16))
HELD = CellSummary(7, 3, 2, bytes(16))
SITE = SiteRecord("a.example", 1.5, 0.5, BackOffRecord(3, 240.0, 429, 1.5, 2), CookiesRecord(b"jar", 3))
PENDING = PendingRecord("http://a.example/", 1, 2, 2, 0.5, b"12345678abcdefgh")
VISIT = VisitRecord(
    "http://a.example/", 1, 4, 0, 0.0, 2.0**33, 86_400.0, '"e"', "", "sha1:A", "2026-01-01T00:00:00Z", 0, answer="[]"
)
BATCH = Batch([ID], [PENDING], [SITE], [RobotsRecord("http://a.example", b"Disallow:", 60.0)], [VISIT])
QUEUE = QueueCounts(
    *(7, 1, [3, 4], [7], [QueuedSite("a.example", 7, ID, 1, 503, 1.0, 2.5, 3)]),
    [QueuedUrl("http://a.example/", 1, 2, 0.5)],
    1.5,
)
STANDING = StandingOrder("pause", "a" * ABOUT_CHARS_MAX, float(COUNT_MAX), COUNT_MAX, ID, "x" * USER_CHARS_MAX)
RETRY = RetryOrder(COUNT_MAX, ("http_503", "dns"), "a.example", "http://a.example/")
LOAN = bytes(8)
FIELDS_MOST = [HeaderField("X-" + "a" * 62, "b" * 8192)] * RELAY_FIELDS_MAX
FETCHED = FetchedForPeer(
    "", "", "", False, 200, "1.1", b"OK", [ReceivedField(b"Server", b"\xff")] * RELAY_HEADERS_MAX, "192.0.2.1",
    RELAY_BODY_BYTES_MAX, bytes(RELAY_PART_BYTES_MAX), LOAN,
)  # fmt: skip
"""The largest answer of another peer."""
CLOCK_QUESTION = ClockQuestion(
    *("c" * CLOCK_CHARS_MAX, COUNT_MAX, True, True, 1000, 1000, 1000, 86_400.0, 86_400.0),
    page="http://a.example/".ljust(8192, "a"),
)
CLOCK_TURN = ClockTurn(
    *(COUNT_MAX, 86_400.0, 1000, CONTACT), robots=RobotsRecord("http://a.example", bytes(16 * 1024), 86_400.0)
)
LARGE = 2 * 1024 * 1024


@cases(
    ("message", "kind"),
    [
        (Ping(ID, 0), Datagram),
        (Ping(ID, -SMALL_MAX, 0, 0, BacklogRecord(3, 1.0, 2.0)), Datagram),
        (Pong(ID, SMALL_MAX, 0, 0, BacklogRecord(SMALL_MAX, URL_S_MIN, 0.0)), Datagram),
        (Nodes(ID, [CONTACT] * CONTACTS_MAX), Datagram),
        (GetRange(ID), Datagram),
        (OwnRange(ID, ID), Datagram),
        (FindRanges([ID] * DRAWN_MAX), Request),
        (Ranges([FoundRange(ID, ID), None]), Reply),
        (Offer([Link("http://a.example/", 0, 0)], 2**32 - 1), Request),
        (
            DatedOffer([DatedLink("http://a.example/", 0, 0, modified=1e9), DatedLink("http://a.example/x", 1, 0)]),
            Request,
        ),
        (Replicate(CONTACT, BATCH, [DoneRun(ID, BATCH_MAX, bytes(16))] * BATCH_MAX), Request),
        (Replicated([BATCH_MAX - 1] * BATCH_MAX), Reply),
        (FindMyCells(CONTACT), Request),
        (MyCells(bytes(4 * MY_CELLS_MAX)), Reply),
        (WasAway(CONTACT, 2.0), Request),
        (AbsenceSeen(True), Reply),
        (FetchForPeer(CONTACT, "http://a.example/", "http://a.example/", FIELDS_MOST, True, "192.0.2.1"), Request),
        (LeaseClocks(CONTACT, [CLOCK_QUESTION] * CLOCKS_MAX), Request),
        (ClocksLeased([CLOCK_TURN] * CLOCKS_MAX), Reply),
        (ClockFree(["host a.example:8080"]), Request),
        (ClockFreeNoted(), Reply),
        (FetchedForPeer("network"), Reply),
        (FetchedForPeer("", "dns", "no such host"), Reply),
        (FETCHED, Reply),
        (GetFetchedPart(CONTACT, LOAN, 2**53), Request),
        (FetchedPart(bytes(RELAY_PART_BYTES_MAX)), Reply),
        (CellsHeld(CONTACT, [HELD]), Request),
        (CellsAccepted([0, 2**24 - 1]), Reply),
        (TakeOver(CONTACT, [0, 2**24 - 1]), Request),
        (TakeOverAnswer([CellState(HELD, None, [CONTACT], True, False, [SITE])]), Reply),
        (TakeOverAnswer([CellState(HELD, CONTACT, [], False, True, [])]), Reply),
        (TakeOverAnswer([CellState(HELD, None, [], False, False, [], [], True, 86_400.0)]), Reply),
        (CompareDigests(7, None, [Window(ID, 3, bytes(16)), Window(None, 0, bytes(16))]), Request),
        (DigestsCompared([0, COMPARED_MAX - 1]), Reply),
        (Reconcile(7, ID, None, [ID], []), Request),
        (Reconcile(7, ID, None, [], [], [LaterState(ID, 3)]), Request),
        (Reconciled(BATCH, [ID], ID), Reply),
        (GetEpochFilters(7, -1, [LABEL]), Request),
        (GotEpochFilters([EpochFilterRecord(LABEL, b"bits")], [0, 2**53], 5), Reply),
        (GotEpochFilters([], [], None, [0, 2**53]), Reply),
        (GetFilterPart(7, 5, 0), Request),
        (GotFilterPart(LABEL, EPOCH_FILTER_WHOLE_BYTES_MAX, b"bits"), Reply),
        (GotFilterPart(None, 0, b""), Reply),
        (KeepFilterPart(CONTACT, 7, LABEL, 9, 5, b"bits"), Request),
        (KeptFilterPart(5), Reply),
        (KeptFilterPart(None), Reply),
        (KeepEpochFilters(CONTACT, [CellEpochFilters(7, [EpochFilterRecord(LABEL, b"bits")])]), Request),
        (AssignReplica(CONTACT, COPIES_MAX - 1, [HELD]), Request),
        (ReplicaAssigned([HELD]), Reply),
        (Wave(160, 10.0, Survey()), Request),
        (Wave(3, 0.5, Grant({ID: 7}, True)), Request),
        (Wave(3, 0.5, Grant({ID: 7}, True, "bytes", {ID: COUNT_MAX})), Request),
        (Wave(3, 0.5, Census(unit="pages")), Request),
        (Welcome(Job(seeds=("http://a.example/",), max_pages=3), paused=True, update_s=2.5), Reply),
        (GetSwarmState(), Request),
        (GotSwarmState(COUNT_MAX, paused=True, seeds=["http://a.example/"] * SEEDS_MAX), Reply),
        (GetSwarmState(2**32 - 1), Request),
        (GotSwarmState(0, paused=False, seeds=[], reach=bytes(SEGMENT_ID_BYTES * SEGMENTS_MAX)), Reply),
        (GetReach([bytes(SEGMENT_ID_BYTES)] * SEGMENTS_ASKED_MAX), Request),
        (GotReach([bytes(8 * SEGMENT_FINGERPRINTS_MAX)] * SEGMENTS_ASKED_MAX), Reply),
        (Wave(3, 0.5, NewReach(bytes(8))), Request),
        (StreamSeeds(bytes(16), ["http://a.example/"] * STREAM_URLS_MAX, True, bytes(32), 9, 2), Request),
        (SeedsStreamed(9, 2, 1), Reply),
        (GotSwarmState(0, paused=False, seeds=[], retries=[RETRY] * RETRY_ORDERS_MAX), Reply),
        (GotSwarmState(0, paused=False, seeds=[], pages_granted={ID: 3}, bytes_granted={ID: COUNT_MAX}), Reply),
        (GotSwarmState(0, paused=False, seeds=[], pages_epochs={ID: 3}, bytes_epochs={ID: COUNT_MAX}), Reply),
        (GetLoad(ID, None), Request),
        (GetLoad(ID, BacklogRecord(7, 0.5, 1.5)), Request),
        (Load(-2.5, None), Reply),
        (Load(-2.5, None, PowersRecord(4096, 100.0, 1e-3, 18.0, 1e7)), Reply),
        (Load(-2.5, BacklogRecord(0, 1e-6, 0.0)), Reply),
        (Lend(CONTACT, LOAN, SITE, 1, [PENDING], BATCH.robots), Request),
        (Lend(CONTACT, LOAN, SITE, 1, [PENDING], BATCH.robots, BacklogRecord(7, 0.5, 1.5)), Request),
        (Lent(True), Reply),
        (RenewLease(CONTACT, [LoanReport(LOAN, SITE, [ID], [ReturnedUrl(ID, 1, 2.5)], True)]), Request),
        (RenewLease(CONTACT, [LoanReport(LOAN, SITE, [ID], [], True, {ID: "http_503"})]), Request),
        (Wave(160, 10.0, Retry(RETRY)), Request),
        (RetryFailed(RetryOrder(0)), Request),
        (Retried({"http_503": 3}, 2, 1), Reply),
        (FetchAgain(["http://a.example/"] * BATCH_MAX, COUNT_MAX, only_failed=True), Request),
        (FetchedAgain(["again", "pending", "done", "unknown", "later"]), Reply),
        (AddAgain(["http://a.example/"]), Request),
        (AddedAgain(1, 2), Reply),
        (Wave(160, 10.0, Steer([STANDING] * STANDING_ORDERS_MAX)), Request),
        (GiveOrders([StandingOrder("delay", "*.a.example", None)]), Request),
        (OrdersGiven(2), Reply),
        (OrdersGiven(2, 7, 1), Reply),
        (GiveOrders([StandingOrder("drop", "a.example", 1.0)]), Request),
        (GiveOrders([StandingOrder("set", "delay", 2.5), StandingOrder("scope", "/x/", 0.0)]), Request),
        (GetQueue(SurveyQueue("a.example", 1, QUEUED_URLS_MAX)), Request),
        (Wave(160, 10.0, SurveyQueue()), Request),
        (Queue(QUEUE, 1, 2, [STANDING]), Reply),
        (Answer(TALLY, [], queue=QUEUE), Reply),
        (GotSwarmState(0, paused=False, seeds=[], orders=[STANDING] * STANDING_ORDERS_MAX), Reply),
        (LeaseRenewed([ActiveLoan(LOAN, 1.5, 0.5, {ID: 2})] * LOANS_MAX), Reply),
        (Recall(CONTACT, [LOAN]), Request),
        (Recalled(), Reply),
        (
            Answer(
                TALLY, packed_rows([PeerRow(CONTACT, PeerState.IDLE, 1, 2, 3, PeerCounters(failed={"dns": 1}), 0, 0)])
            ),
            Reply,
        ),
    ],
)
def test_a_message_survives_the_wire(message: Message, kind: object) -> None:
    assert message == unpack(pack(message), kind, LARGE)


def test_the_fullest_reply_fits_a_datagram() -> None:
    assert len(pack(Nodes(ID, [Contact(ID, "255.255.255.255", 65_535)] * CONTACTS_MAX))) < DATAGRAM_BYTES_MAX - 40


@cases(
    "data",
    [
        b"",
        b"\xc1",
        b"\x91" * 5000,
        b"\xdf\xff\xff\xff\xff",
        b"\xdd\xff\xff\xff\xff" + b"\x80" * 1000,
        msgpack.packb(None),
        msgpack.packb({"Ping": 1}),
        msgpack.packb(["Nobody", 1]),
        msgpack.packb(["Ping", ID]),
        msgpack.packb(["Ping", ID, 0, 0, 0, 0]),
        msgpack.packb(["Ping", ID, 0, 2**32]),
        msgpack.packb(["Ping", ID, 0, 0, -1]),
        msgpack.packb(["Ping", ID, 0, 0, COUNT_MAX + 1]),
        msgpack.packb(["Welcome", {}, False, 0.0, -1]),
        msgpack.packb(["Wave", 1, 1.0, ["Order", "pause", COUNT_MAX + 1]]),
        msgpack.packb(["Ping", ID[:-1], 0]),
        msgpack.packb(["Ping", ID, -SMALL_MAX - 1]),
        msgpack.packb(["Ping", ID, SMALL_MAX + 1]),
        msgpack.packb(["Ping", ID, 0, 0, 0, [SMALL_MAX + 1, 1.0, 0.0]]),
        msgpack.packb(["Ping", ID, 0, 0, 0, [0, URL_S_MIN / 2, 0.0]]),
        msgpack.packb(["Pong", ID, 0, 0, 0, [0, 1.0, -1.0]]),
        msgpack.packb(["Ping", ID, "0"]),
        msgpack.packb(["Ping", ID, 0]) + b"x",
        msgpack.packb(["Nodes", ID, [[ID, "h", 99_999]]]),
        msgpack.packb(["Nodes", ID, [[ID, None, 1]]]),
        msgpack.packb(["OwnRange", ID, ID[:-1]]),
        msgpack.packb(["FindRanges", []]),
        msgpack.packb(["FindRanges", [ID] * (DRAWN_MAX + 1)]),
        msgpack.packb(["FindRanges", [ID + b"x"]]),
        msgpack.packb(["Ranges", [[ID, None]]]),
        msgpack.packb(["Ranges", [[ID, ID]] * (DRAWN_MAX + 1)]),
        msgpack.packb(["Offer", [["http://a/", 2**60, 0]]]),
        msgpack.packb(["Offer", [["http://a/", 0, 0, 1e9]]]),
        msgpack.packb(["DatedOffer", [["http://a/", 0, 0, -1.0]]]),
        msgpack.packb(["DatedOffer", [["http://a/", 0, 0, float("nan")]]]),
        msgpack.packb(["DatedOffer", [["http://a/", 0, 0, float("inf")]]]),
        msgpack.packb(["DatedOffer", [["http://a/", 0, 0, "2026-01-01"]]]),
        msgpack.packb(["DatedOffer", [["http://a/", 0, 0, 1e9]] * (BATCH_MAX + 1)]),
        msgpack.packb(["Wave", 161, 1.0, ["Survey"]]),
        msgpack.packb(["Wave", 160, float("nan"), ["Survey"]]),
        msgpack.packb(["Wave", 160, 1e9, ["Survey"]]),
        msgpack.packb(["Wave", 160, 1.0, ["Order", "explode"]]),
        msgpack.packb(["Welcome", {"delay_s": -1}, False, 0.0]),
        msgpack.packb(["Load", float("nan"), None]),
        msgpack.packb(["Load", 0.0]),
        msgpack.packb(["Load", 0.0, [1, float("nan"), 0.0]]),
        msgpack.packb(["Load", 0.0, [1, 0.0, 0.0]]),
        msgpack.packb(["Load", 0.0, [1, float("inf"), 0.0]]),
        msgpack.packb(["Load", 0.0, [1, 1.0, -1.0]]),
        msgpack.packb(["Load", 0.0, [1, 1.0, 2e9]]),
        msgpack.packb(["Load", 0.0, [-1, 1.0, 0.0]]),
        msgpack.packb(["GetLoad", ID, [1.5, 1.0, 0.0]]),
        *(
            msgpack.packb(["Load", -2.5, None, powers])
            for powers in (
                [0, 2.4, 4.0, 18.0, 18.0],
                [4097, 2.4, 4.0, 18.0, 18.0],
                [4, 100.1, 4.0, 18.0, 18.0],
                [4, 2.4, 0.0, 18.0, 18.0],
                [4, 2.4, 1.1e6, 18.0, 18.0],
                [4, 2.4, 4.0, 1.1e7, 18.0],
                [4, 2.4, 4.0, 18.0, -1.0],
                [4, 2.4, 4.0, 18.0],
            )
        ),
        msgpack.packb(["GetLoad", ID[:-1], None]),
        msgpack.packb(["Lend", [ID, "h", 1], bytes(8), ["a", 0.0, 0.0], 1, [], []]),
        msgpack.packb(["Lend", [ID, "h", 1], bytes(8), ["a", 0.0, 0.0], 0, [["http://a/", 0, 0, 0, 0.0]], []]),
        msgpack.packb(["Lend", [ID, "h", 1], bytes(8), ["a", 0.0, 0.0], 10**6, [["http://a/", 0, 0, 0, 0.0]], []]),
        msgpack.packb(["Lend", [ID, "h", 1], bytes(9), ["a", 0.0, 0.0], 1, [["http://a/", 0, 0, 0, 0.0]], []]),
        msgpack.packb(["RenewLease", [ID, "h", 1], [[bytes(8), ["a", 0.0, 0.0], [], [[ID, -1, 0.0]], False]]]),
        msgpack.packb(["RenewLease", [ID, "h", 1], [[bytes(8), ["a", 0.0, 0.0], [], [], False, {ID: "x" * 41}]]]),
        msgpack.packb(["RetryFailed", [-1, [], "", ""]]),
        msgpack.packb(["RetryFailed", [0, ["x" * 41], "", ""]]),
        msgpack.packb(["RetryFailed", [0, ["dns"] * (REASONS_MAX + 1), "", ""]]),
        msgpack.packb(["RetryFailed", [0, [], "a" * (URL_CHARS_MAX + 1), ""]]),
        msgpack.packb(["RetryFailed", [0, [], "", "a" * (URL_CHARS_MAX + 1)]]),
        msgpack.packb(["Retried", {"dns": -1}, 0, 0]),
        msgpack.packb(["GiveOrders", []]),
        msgpack.packb(["GiveOrders", [["pause", "a", 1.0]] * (STANDING_ORDERS_MAX + 1)]),
        msgpack.packb(["GiveOrders", [["burn", "a", 1.0]]]),
        msgpack.packb(["GiveOrders", [["pause", "", 1.0]]]),
        msgpack.packb(["GiveOrders", [["pause", "a" * (ABOUT_CHARS_MAX + 1), 1.0]]]),
        msgpack.packb(["GiveOrders", [["pause", "a", -1.0]]]),
        msgpack.packb(["GiveOrders", [["pause", "a", float("nan")]]]),
        msgpack.packb(["GiveOrders", [["pause", "a", float("inf")]]]),
        msgpack.packb(["GiveOrders", [["pause", "a", 1.0, -1]]]),
        msgpack.packb(["GiveOrders", [["pause", "a", 1.0, 0, ID[:-1]]]]),
        msgpack.packb(["GiveOrders", [["pause", "a", 1.0, 0, ID, "x" * (USER_CHARS_MAX + 1)]]]),
        msgpack.packb(["GiveOrders", [["pause", "a", 1.0, 0, ID, "\x1b[31m"]]]),
        msgpack.packb(["OrdersGiven", -1]),
        msgpack.packb(["GetQueue", ["SurveyQueue", "a" * (SITE_CHARS_MAX + 1)]]),
        msgpack.packb(["GetQueue", ["SurveyQueue", "", QUEUED_SITES_MAX + 1]]),
        msgpack.packb(["GetQueue", ["SurveyQueue", "", 1, QUEUED_URLS_MAX + 1]]),
        msgpack.packb(["Queue", [-1], 0, 0]),
        msgpack.packb(["Queue", [1, 1, [1] * (DEPTHS_MAX + 1)], 0, 0]),
        msgpack.packb(["Queue", [1, 1, [], [1] * (len(AGES_S) + 2)], 0, 0]),
        msgpack.packb(["Queue", [1, 1, [], [], [["a", 1, ID]] * (QUEUED_SITES_MAX + 1)], 0, 0]),
        msgpack.packb(["Queue", [1, 1, [], [], [["\x1b[31m", 1, ID]]], 0, 0]),
        msgpack.packb(["Queue", [1, 1, [], [], [["a", 1, ID, 1, 1000]]], 0, 0]),
        msgpack.packb(["Queue", [1, 1, [], [], [["a", 1, ID, 1, 0, float("inf")]]], 0, 0]),
        msgpack.packb(["Queue", [1, 1, [], [], [], [["http://a/", 0, 0, 0.0]] * (QUEUED_URLS_MAX + 1)], 0, 0]),
        msgpack.packb(["FetchAgain", ["http://a/"] * (BATCH_MAX + 1), 0, False]),
        msgpack.packb(["FetchAgain", ["http://a/"], -1, False]),
        msgpack.packb(["FetchedAgain", ["again"] * (BATCH_MAX + 1)]),
        msgpack.packb(["FetchedAgain", ["soon"]]),
        msgpack.packb(["AddAgain", ["http://a/"] * (BATCH_MAX + 1)]),
        msgpack.packb(["GotSwarmState", 0, False, [], [[0, [], "", ""]] * (RETRY_ORDERS_MAX + 1)]),
        msgpack.packb(["Wave", 160, 1.0, ["Retry", [COUNT_MAX + 1, [], "", ""]]]),
        msgpack.packb(["Recall", [ID, "h", 1], [bytes(8)] * (LOANS_MAX + 1)]),
        msgpack.packb(["TakeOver", [ID, "h", 1], [2**24]]),
        msgpack.packb(["AssignReplica", [ID, "h", 1], COPIES_MAX, []]),
        msgpack.packb(["CellsHeld", [ID, "h", 1], [[7, 3, 2, bytes(15)]]]),
        msgpack.packb(["DigestsCompared", [BATCH_MAX]]),
        msgpack.packb(["WasAway", [ID, "h", 1], -1.0]),
        msgpack.packb(["WasAway", [ID, "h", 1], float("nan")]),
        msgpack.packb(["MyCells", bytes(4 * MY_CELLS_MAX + 1)]),
        msgpack.packb(["Replicate", [ID, "h", 1], [[], [["http://a/", 0, 0, 0, float("nan")]], [], []]]),
        *(
            msgpack.packb(["Replicate", [ID, "h", 1], [[], [], [], []], runs])
            for runs in (
                [[ID, 1, bytes(16)]],
                [[ID, BATCH_MAX + 1, bytes(16)]],
                [[ID, 2, bytes(15)]],
                [[ID[1:], 2, bytes(16)]],
                [[ID, 2, bytes(16)]] * (BATCH_MAX + 1),
            )
        ),
        *(msgpack.packb(["Replicated", unlike]) for unlike in ([-1], [BATCH_MAX], [0] * (BATCH_MAX + 1))),
        *(
            msgpack.packb(
                ["Replicate", [ID, "h", 1], [[], [], [], [], [[*msgspec.structs.astuple(VISIT)[:-1], answer]]]]
            )
            for answer in ("x" * (ANSWER_CHARS_MAX + 1), "\n", None)
        ),
        *(
            msgpack.packb(["Replicate", [ID, "h", 1], [[], [], [["a", 0.0, 0.0, back_off]], []]])
            for back_off in (
                [-1, 60.0, 429, 60.0, 1],
                [10**7, 60.0, 429, 60.0, 1],
                [1, 86_401.0, 429, 60.0, 1],
                [1, 60.0, 200, 60.0, 1],
                [1, 60.0, 504, 60.0, 1],
                [1, 60.0, 429, float("nan"), 1],
                [1, 60.0, 429, 86_401.0, 1],
                [1, 60.0, 429, 60.0, 0],
                [1, 60.0, 429, 60.0],
            )
        ),
        *(
            msgpack.packb(["Replicate", [ID, "h", 1], [[], [], [["a", 0.0, 0.0, None, cookies]], []]])
            for cookies in ([bytes(JAR_BYTES_MAX + 1), 1], [b"", -1], [b"", 2**63], ["text", 1], [b""])
        ),
        *(
            msgpack.packb(["LeaseClocks", [ID, "h", 1], questions])
            for questions in (
                [],
                [["ip 192.0.2.1", 0, True, False, False, 0.0, 0.0]] * (CLOCKS_MAX + 1),
                [["c" * (CLOCK_CHARS_MAX + 1), 0, True, False, False, 0.0, 0.0]],
                [["ip\n192.0.2.1", 0, True, False, False, 0.0, 0.0]],
                [["ip 192.0.2.1", -1, True, False, False, 0.0, 0.0]],
                [["ip 192.0.2.1", 0, 1, False, False, 0.0, 0.0]],
                [["ip 192.0.2.1", 0, True, False, False, float("nan"), 0.0]],
                [["ip 192.0.2.1", 0, True, False, False, 0.0, 86_401.0]],
            )
        ),
        msgpack.packb(["ClocksLeased", [[0, 0.0, None]] * (CLOCKS_MAX + 1)]),
        msgpack.packb(["ClocksLeased", [[COUNT_MAX + 1, 0.0, None]]]),
        msgpack.packb(["ClocksLeased", [[0, -1.0, None]]]),
        msgpack.packb(["ClockFree", ["c" * (CLOCK_CHARS_MAX + 1)]]),
        msgpack.packb(["FetchForPeer", [ID, "h", 1], "http://a/", "http://a/", [], False, "1" * 65]),
        msgpack.packb(["GetSwarmState", 2**32]),
        msgpack.packb(["GotSwarmState", 0, False, [], bytes(SEGMENT_ID_BYTES * SEGMENTS_MAX + 1)]),
        msgpack.packb(["GetReach", [bytes(SEGMENT_ID_BYTES - 1)]]),
        msgpack.packb(["GetReach", [bytes(SEGMENT_ID_BYTES)] * (SEGMENTS_ASKED_MAX + 1)]),
        msgpack.packb(["GotReach", [bytes(8)] * (SEGMENTS_ASKED_MAX + 1)]),
        msgpack.packb(["GotReach", [bytes(8 * SEGMENT_FINGERPRINTS_MAX + 1)]]),
        msgpack.packb(["Wave", 160, 1.0, ["NewReach", b""]]),
        msgpack.packb(["Wave", 160, 1.0, ["NewReach", bytes(8 * SEGMENT_FINGERPRINTS_MAX + 8)]]),
        msgpack.packb(["StreamSeeds", bytes(15), [], False, b"", 0, 0]),
        msgpack.packb(["StreamSeeds", bytes(16), ["http://a/"] * (STREAM_URLS_MAX + 1), False, b"", 0, 0]),
        msgpack.packb(["StreamSeeds", bytes(16), [], False, bytes(33), 0, 0]),
        msgpack.packb(["StreamSeeds", bytes(16), [], False, b"", -1, 0]),
        msgpack.packb(["SeedsStreamed", 0, COUNT_MAX + 1, 0]),
        msgpack.packb(["Replicate", [ID, "h", 1], [[], [], [], [["http://a", bytes(ROBOTS_BYTES_MAX + 1), 0.0]]]]),
    ],
)
def test_anything_else_is_malformed(data: bytes) -> None:
    for kind in (Datagram, Request, Reply):
        with pytest.raises(MalformedError):
            unpack(data, kind, LARGE)


def test_counts_hold_at_the_limit_and_not_beyond() -> None:
    link = Link("http://a/", 0, 0)
    assert unpack(pack(Offer([link] * BATCH_MAX)), Request, LARGE)
    with pytest.raises(MalformedError):
        unpack(pack(Offer([link] * (BATCH_MAX + 1))), Request, LARGE)
    robots = [RobotsRecord("http://a", b"", 0.0)] * BATCH_MAX
    batch = Batch([ID] * BATCH_MAX, [PENDING] * BATCH_MAX, [SITE] * BATCH_MAX, robots, [VISIT] * BATCH_MAX)
    assert unpack(pack(Replicate(CONTACT, batch)), Request, LARGE)
    for name in batch.__struct_fields__:
        beyond = msgspec.structs.replace(batch, **{name: getattr(batch, name) + getattr(batch, name)[:1]})
        with pytest.raises(MalformedError):
            unpack(pack(Replicate(CONTACT, beyond)), Request, LARGE)


def test_the_longest_urls_that_move_at_once_fit_a_message() -> None:
    """Each URL is its own site, by the partition `url`, and has the largest robots.txt."""
    limits = Limits()
    url = "http://a/".ljust(limits.url_chars_max, "x")
    robots = [RobotsRecord("http://a", bytes(ROBOTS_BYTES_MAX), 0.0)] * (ROBOTS_BATCH_BYTES_MAX // ROBOTS_BYTES_MAX)
    sites = [SiteRecord(url, 1.5, 0.5)] * BATCH_MAX
    batch = Batch([], [PendingRecord(url, 1, 0, 2, 0.5)] * BATCH_MAX, sites, robots)
    assert len(pack(Reconciled(batch, [ID] * BATCH_MAX, ID))) < limits.message_bytes_max
    tag, digest = "x" * VALIDATOR_CHARS_MAX, "x" * DIGEST_CHARS_MAX
    answer = "x" * ANSWER_CHARS_MAX
    visit = VisitRecord(url, 1, 3, 2, 0.5, None, 86_400.0, tag, tag, digest, digest, 1, answer=answer)
    batch = Batch([], [], sites, robots, [visit] * BATCH_MAX)
    assert len(pack(Reconciled(batch, [ID] * BATCH_MAX, ID))) < limits.message_bytes_max


def test_a_grant_per_peer_of_the_largest_swarm_passes_and_one_more_fails() -> None:
    totals = {number.to_bytes(20, "big"): 2**53 for number in range(ROWS_MAX + 1)}
    with pytest.raises(MalformedError):
        unpack(pack(Wave(160, 1.0, Grant(totals, False))), Request, LARGE)
    del totals[bytes(20)]
    wave = Wave(160, 1.0, Grant(totals, False, epochs=totals))
    assert wave == unpack(pack(wave), Request, Limits().message_bytes_max)
    state = GotSwarmState(0, False, [], b"", [], [], 0, *[totals] * 4)
    assert state == unpack(pack(state), Reply, Limits().message_bytes_max)
    for epochs in ({**totals, bytes(20): 1}, {ID: COUNT_MAX + 1}, {ID: -1}):
        with pytest.raises(MalformedError):
            unpack(pack(Wave(160, 1.0, Grant({}, False, epochs=epochs))), Request, LARGE)


def seeds(count: int, chars: int) -> tuple[str, ...]:
    """Return distinct canonical URLs with `chars` characters in all."""
    long = chars // count
    urls = [f"https://www.example.org/{number:06}".ljust(long, "x") for number in range(count)]
    urls[-1] += "x" * (chars - count * long)
    return tuple(urls)


@pytest.mark.parametrize("count", [SEEDS_MAX, 500])
def test_the_largest_job_passes_the_wire_both_ways(count: int) -> None:
    job = Job(seeds=seeds(count, SEEDS_CHARS_MAX))
    for message in (Welcome(job, False, 0.0), Status(job, SwarmStatus(TALLY, []), False, False)):
        assert message == unpack(pack(message), Reply, Limits().message_bytes_max)


@pytest.mark.parametrize(("count", "chars"), [(SEEDS_MAX + 1, 50 * SEEDS_MAX + 50), (500, SEEDS_CHARS_MAX + 1)])
def test_a_job_too_large_for_the_wire_cannot_be_made(count: int, chars: int) -> None:
    with pytest.raises(ConfigError, match="at most"):
        Job(seeds=seeds(count, chars))


def test_a_job_with_the_most_rules_and_seeds_reaches_a_joiner() -> None:
    fields = tuple(Field(f"f{number}", "css:a", every=True) for number in range(FIELDS_MAX))
    records = tuple(RecordRule(pattern="x", fields=fields) for _ in range(RULES_MAX))
    left = RULES_CHARS_MAX - sum(rule.chars for rule in records)
    roles = tuple(
        RoleRule(pattern="\u4e2d" * (left // RULES_MAX), role="next_link", follow=True) for _ in range(RULES_MAX)
    )
    job = Job(seeds=seeds(SEEDS_MAX, SEEDS_CHARS_MAX), roles=roles, records=records)
    message = Welcome(job, False, 0.0)
    assert message == unpack(pack(message), Reply, Limits().message_bytes_max)


def test_a_joiner_is_told_of_a_hook_and_checks_what_it_is_told() -> None:
    job = Job(records=(RecordRule(pattern="x", name="n", hook="a.b:c"),))
    message = Welcome(job, False, 0.0)
    assert message == unpack(pack(message), Reply, LARGE)
    wrong = pack(message).replace(b"a.b:c", b"a.b c")
    with pytest.raises(MalformedError, match="hook must be module:function"):
        unpack(wrong, Reply, LARGE)


@pytest.mark.parametrize("plain", [["Nobody"], ["Hello"], ["Hello", -1], ["Ok"]])
def test_what_is_wrong_is_said(plain: object) -> None:
    with pytest.raises(msgspec.ValidationError) as converted:
        msgspec.convert(plain, Request)
    with pytest.raises(MalformedError) as unpacked:
        unpack(msgpack.packb(plain), Request, LARGE)
    assert str(converted.value) == str(unpacked.value)


def test_size_holds_at_the_limit_and_not_beyond() -> None:
    data = pack(Ping(ID, 0))
    assert unpack(data, Datagram, len(data))
    with pytest.raises(MalformedError):
        unpack(data, Datagram, len(data) - 1)
