"""Test that the messages of a leaf survive the wire, that nothing larger does, and that the fullest answer fits."""

import msgspec
import pytest

from kadcrawl.link.wire.codec import MalformedError, pack, unpack
from kadcrawl.link.wire.leaf_messages import WORK_WAIT_S_MAX, LeafDetails, is_leaf, leaf_contact
from kadcrawl.link.wire.messages import (
    CONTACTS_MAX,
    GRANT_LOANS_MAX,
    GRANT_URLS_MAX,
    ROBOTS_BYTES_MAX,
    URL_CHARS_MAX,
    Contact,
    Lend,
    PeerCounters,
    PendingRecord,
    Reply,
    Request,
    RobotsRecord,
    SiteRecord,
    WorkGrant,
    WorkRequest,
)
from kadcrawl.link.wire.peer_row import PeerDetails
from kadcrawl.link.wire.peer_state import PeerState
from kadcrawl.link.wire.watch_messages import SINKS_OF_LEAF_MAX, WatchedSink
from kadcrawl.overlay.addresses import ip_version
from kadcrawl.replication.record_codec import ROBOTS_BATCH_BYTES_MAX
from kadcrawl.settings.limits import Limits

ID = bytes(range(20))
CONTACT = Contact(ID, "255.255.255.255", 65_535)
BYTES_MAX = Limits().message_bytes_max
SINK = WatchedSink("sqlite:pages.db", 7, 1, "the disk is full", True)
DETAILS = LeafDetails(PeerDetails("0.1.0", -5.0, 2**26, 0), [SINK] * SINKS_OF_LEAF_MAX)
DRAW = WorkRequest(
    ID,
    GRANT_URLS_MAX,
    WORK_WAIT_S_MAX,
    "paused",
    PeerState.NO_FILES,
    1,
    2,
    PeerCounters(failed={"dns": 1}),
    7,
    DETAILS,
)


def largest_lend(urls: int) -> Lend:
    """Return a loan as large as so many URLs make it."""
    url = "http://" + "a" * (URL_CHARS_MAX - 7)
    robots = RobotsRecord(url, bytes(ROBOTS_BYTES_MAX), 1.0)
    pending = [PendingRecord(url, 1_000_000, 20, 20, 1.5)] * urls
    return Lend(CONTACT, bytes(8), SiteRecord(url, 1.5, 1.5), 8, pending, [robots] * (ROBOTS_BATCH_BYTES_MAX // 65536))


DRAWN = WorkGrant(CONTACT, [largest_lend(1)] * GRANT_LOANS_MAX, "crawling", 10_000, [CONTACT] * CONTACTS_MAX)


def test_question_and_answer_survive_the_wire() -> None:
    assert DRAW == unpack(pack(DRAW), Request, BYTES_MAX)
    assert DRAWN == unpack(pack(DRAWN), Reply, BYTES_MAX)


def test_the_fullest_answer_fits_a_message() -> None:
    each, more = divmod(GRANT_URLS_MAX, GRANT_LOANS_MAX)
    lends = [largest_lend(each + (number < more)) for number in range(GRANT_LOANS_MAX)]
    assert GRANT_URLS_MAX == sum(len(one.pending) for one in lends)
    assert len(pack(msgspec.structs.replace(DRAWN, loans=lends))) < BYTES_MAX


@pytest.mark.parametrize(
    "wrong",
    [
        {"leaf": ID[:-1]},
        {"urls_max": GRANT_URLS_MAX + 1},
        {"urls_max": -1},
        {"wait_s": WORK_WAIT_S_MAX + 0.1},
        {"wait_s": float("nan")},
        {"known_activity": "dancing"},
        {"state": "x" * 31},
        {"in_flight": -1},
        {"details": LeafDetails(PeerDetails("0.1.0", float("nan"), 0, 0))},
        {"details": LeafDetails(PeerDetails("\x1b[2J", 0.0, 0, 0))},
        {"details": LeafDetails(PeerDetails("0.1.0", 0.0, -1, 0))},
        {"details": LeafDetails(DETAILS.row, [SINK] * (SINKS_OF_LEAF_MAX + 1))},
        {"details": LeafDetails(DETAILS.row, [WatchedSink("a" * 101, 0, 0)])},
    ],
)
def test_a_question_beyond_its_limits_is_malformed(wrong: dict[str, object]) -> None:
    with pytest.raises(MalformedError):
        unpack(pack(msgspec.structs.replace(DRAW, **wrong)), Request, BYTES_MAX)


@pytest.mark.parametrize(
    "wrong",
    [
        {"loans": [largest_lend(1)] * (GRANT_LOANS_MAX + 1)},
        {"loans": [Lend(CONTACT, bytes(8), SiteRecord("a", 0.0, 0.0), 1, [], [])]},
        {"others": [CONTACT] * (CONTACTS_MAX + 1)},
        {"activity": "dancing"},
    ],
)
def test_an_answer_beyond_its_limits_is_malformed(wrong: dict[str, object]) -> None:
    with pytest.raises(MalformedError):
        unpack(pack(msgspec.structs.replace(DRAWN, **wrong)), Reply, BYTES_MAX)


def test_a_leaf_is_where_nothing_can_be_sent() -> None:
    assert is_leaf(leaf_contact(ID))
    assert not is_leaf(CONTACT)
    assert ip_version(leaf_contact(ID).host) is None
