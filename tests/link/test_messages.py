"""The wire: what is sent comes back the same, and nothing else gets through."""

import msgpack
import pytest

from kadcrawl.config import Job
from kadcrawl.link.messages import (
    BATCH_MAX,
    CONTACTS_MAX,
    DATAGRAM_BYTES_MAX,
    Answer,
    Contact,
    Counters,
    Datagram,
    Grant,
    Link,
    MalformedError,
    Message,
    Nodes,
    Offer,
    PeerRow,
    Ping,
    Records,
    Reply,
    Request,
    Survey,
    Tally,
    Wave,
    Welcome,
    pack,
    unpack,
)

ID = bytes(range(20))
CONTACT = Contact(ID, "10.0.0.1", 4160)
TALLY = Tally(1, bytes(16), 0, 0, 0)
LARGE = 2 * 1024 * 1024


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        (Ping(ID, 0), Datagram),
        (Nodes(ID, [CONTACT] * CONTACTS_MAX), Datagram),
        (Offer([Link("http://a.example/", 0, 0)]), Request),
        (Wave(160, 10.0, Survey()), Request),
        (Wave(3, 0.5, Grant({ID: 7}, True)), Request),
        (Welcome(Job(seeds=("http://a.example/",), max_pages=3), paused=True), Reply),
        (Answer(TALLY, [PeerRow(CONTACT, "idle", 1, 2, 3, Counters(failed={"dns": 1}), 0, 0)]), Reply),
    ],
)
def test_a_message_survives_the_wire(message: Message, kind: object) -> None:
    assert message == unpack(pack(message), kind, LARGE)


def test_the_fullest_reply_fits_a_datagram() -> None:
    assert len(pack(Nodes(ID, [Contact(ID, "255.255.255.255", 65_535)] * CONTACTS_MAX))) < DATAGRAM_BYTES_MAX - 40


@pytest.mark.parametrize(
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
        msgpack.packb(["Ping", ID, 0, 0]),
        msgpack.packb(["Ping", ID[:-1], 0]),
        msgpack.packb(["Ping", ID, -1]),
        msgpack.packb(["Ping", ID, "0"]),
        msgpack.packb(["Ping", ID, 0]) + b"x",
        msgpack.packb(["Nodes", ID, [[ID, "h", 99_999]]]),
        msgpack.packb(["Nodes", ID, [[ID, None, 1]]]),
        msgpack.packb(["Offer", [["http://a/", 2**60, 0]]]),
        msgpack.packb(["Wave", 161, 1.0, ["Survey"]]),
        msgpack.packb(["Wave", 160, float("nan"), ["Survey"]]),
        msgpack.packb(["Wave", 160, 1e9, ["Survey"]]),
        msgpack.packb(["Wave", 160, 1.0, ["Order", "explode"]]),
        msgpack.packb(["Welcome", {"delay_s": -1}, False]),
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
    with pytest.raises(MalformedError):
        unpack(pack(Records([ID] * (BATCH_MAX + 1), [], [])), Request, LARGE)


def test_size_holds_at_the_limit_and_not_beyond() -> None:
    data = pack(Ping(ID, 0))
    assert unpack(data, Datagram, len(data))
    with pytest.raises(MalformedError):
        unpack(data, Datagram, len(data) - 1)
