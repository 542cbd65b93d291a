"""Test bytes that would cost more than they weigh: each is malformed, and the memory for reading is bounded."""

import tracemalloc
from collections.abc import Iterator
from typing import Any, get_args

import msgpack
import msgspec
import pytest
from hypothesis import given, strategies as st

from kadcrawl.link.wire.basics import REASONS_MAX
from kadcrawl.link.wire.codec import WHY_CHARS_MAX, MalformedError, pack, unpack, unpack_part
from kadcrawl.link.wire.messages import (
    BATCH_MAX,
    ROWS_MAX,
    Add,
    Contact,
    Datagram,
    Grant,
    Hello,
    Link,
    Message,
    Offer,
    PeerCounters,
    PeerRow,
    Reply,
    Request,
    Status,
    SwarmStatus,
    TakeOverAnswer,
    Tally,
    Wave,
    Welcome,
    WorkRequest,
)
from kadcrawl.link.wire.peer_state import PeerState
from kadcrawl.settings.job import Job
from kadcrawl.settings.limits import Limits
from kadcrawl.settings.page_rules import RecordRule
from tests.support.cases import cases

BYTES_MAX = Limits().message_bytes_max
KINDS = (Datagram, Request, Reply)
MEGA = 1024 * 1024
TIMES = 24
"""The most that a byte of nearly any message becomes: a site's clock of 5 bytes is an object with two floats."""
TIMES_REASONS = 48
"""The same of an answer whose rows have as many reasons as they may, of two letters each. Names seen lately are shared,
which leaves 18 to 31; a collection of garbage may forget them at any time."""
BESIDE = 64 * 1024
JOB_BESIDE = 3 * MEGA
"""The bytes that the lists of one job may cost besides, each with 10,000 texts of two letters."""
ID = bytes(range(20))
CONTACT = [ID, "10.0.0.1", 4160]


def packed(plain: object) -> bytes:
    data: bytes = msgpack.packb(plain)
    return data


def peak(data: bytes, kind: Any) -> int:
    """Return the peak of the bytes allocated while `data` is unpacked, as a message or not."""
    with pytest.raises(MalformedError):
        unpack(packed(["Nobody"]), kind, BYTES_MAX)  # What is made once is made.
    tracemalloc.start()
    try:
        unpack(data, kind, BYTES_MAX)
    except MalformedError:
        pass
    finally:
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    return most


def many(value: bytes, count: int = MEGA) -> bytes:
    return b"\xdd" + count.to_bytes(4, "big") + value * count


def in_lists(value: bytes) -> bytes:
    """Return as many copies of `value` as pass where a list may have 10,000 elements."""
    return b"\xdc" + (100).to_bytes(2, "big") + (b"\xdc" + (ROWS_MAX).to_bytes(2, "big") + value * ROWS_MAX) * 100


def tagged(tag: str, count: int, *fields: bytes) -> bytes:
    """Return a message of this number of values that begins with these fields."""
    return bytes([0x90 + count]) + packed(tag) + b"".join(fields)


ALONE = {
    "nothing": b"",
    "no such byte": b"\xc1",
    "a megabyte of empty maps": many(b"\x80"),
    "a megabyte of empty lists": many(b"\x90"),
    "maps in lists": in_lists(b"\x80"),
    "lists in lists": in_lists(b"\x90"),
    "lists 100,000 deep": b"\x91" * 100_000,
    "maps 100,000 deep": b"\x81\xa1a" * 100_000,
    "long lists, deep": b"\xdc\x27\x10" * 1000,
    "a list of 2**32-1": b"\xdd\xff\xff\xff\xff",
    "a map of 2**32-1": b"\xdf\xff\xff\xff\xff",
    "a text of 2**32-1": b"\xdb\xff\xff\xff\xff",
    "bytes of 2**32-1": b"\xc6\xff\xff\xff\xff",
    "an extension of 2**32-1": b"\xc9\xff\xff\xff\xff\x01",
    "an extension": b"\xd4\x01\x00",
    "a time": b"\xd6\xff\x00\x00\x00\x00",
    "NaN": b"\xcb\x7f\xf8" + bytes(6),
    "no tag": b"\x90",
    "a tag cut off": b"\x92\xa5Of",
    "a long tag": b"\x91\xd9\xff" + b"a" * 255,
    "a tag of bytes": b"\x91\xc4\x05Offer",
    "a tag that is no UTF-8": b"\x91\xa2\xff\xfe",
}
DEEP = b"\x91" * 100_000
WITHIN = {
    "instead of a list": tagged("Offer", 2, DEEP),
    "a list of 2**32-1": tagged("Offer", 2, b"\xdd\xff\xff\xff\xff"),
    "one too many": tagged("Offer", 2, many(packed(["http://a/", 0, 0]), BATCH_MAX + 1)),
    "empty lists": tagged("Offer", 2, many(b"\x90", BATCH_MAX)),
    "deep in a list": tagged("Offer", 2, b"\x91", DEEP),
    "a map for a list": tagged("Offer", 2, b"\xdf\xff\xff\xff\xff"),
    "a text beyond the end": tagged("Add", 2, b"\x91\xdb\x00\x00\x10\x00http"),
    "a text of 2**32-1": tagged("Add", 2, b"\x91\xdb\xff\xff\xff\xff"),
    "bytes of 2**32-1": tagged("MyCells", 2, b"\xc6\xff\xff\xff\xff"),
    "bytes beyond the end": tagged("MyCells", 2, b"\xc6\x00\x00\x10\x00abcd"),
    "a text that is no UTF-8": tagged("Add", 2, b"\x91\xa4\xff\xff\xff\xff"),
    "half of a surrogate pair": tagged("Add", 2, b"\x91\xa3\xed\xa0\x80"),
    "bytes for a text": tagged("Add", 2, b"\x91\xc4\x09http://a/"),
    "an extension": tagged("Hello", 2, b"\xc7\x05\x01" + bytes(5)),
    "a large extension": tagged("Hello", 2, b"\xc9\x00\x10\x00\x00\x01" + bytes(MEGA)),
    "a number below zero": packed(["Hello", -1]),
    "the least number": tagged("Hello", 2, b"\xd3\x80" + bytes(7)),
    "the largest number": tagged("Hello", 2, b"\xcf" + b"\xff" * 8),
    "a number for a truth": packed(["Lent", 1]),
    "a long word where few pass": packed(["Command", "x" * MEGA]),
    "a line of its own in the log": packed(["Command", "stop\nlink.malformed"]),
    "a truth for a number": packed(["Hello", True]),
    "a broken number": packed(["Hello", 1.5]),
    **{
        f"{number} seconds": packed(["Replicate", CONTACT, [[], [], [["a", *seconds]], []]])
        for number in (float("nan"), float("inf"), float("-inf"), 2.0**53, -1.0, -1, 2**63)
        for seconds in ([number, 0.0], [0.0, number])
    },
    "NaN for the time left": packed(["Wave", 160, float("nan"), ["Survey"]]),
    "NaN in a job": packed(["Welcome", {"delay_s": float("nan")}, False, 0.0]),
    "more bytes": pack(Hello(1)) + b"\x00",
    "two messages": pack(Hello(1)) * 2,
    "a byte less": pack(Hello(1))[:-1],
    "depth in a field more": tagged("Hello", 3, b"\x01", DEEP),
    "a field more of 2**32-1": tagged("Hello", 3, b"\x01\xdd\xff\xff\xff\xff"),
    "2**32-1 fields": b"\xdd\xff\xff\xff\xff" + packed("Hello") + b"\x01",
    "a field less": packed(["Hello"]),
    "fields by name": packed(["Hello", {"version": 1}]),
    "a name twice in a job": tagged("Welcome", 4, b"\x82" + (packed("name") + packed("a")) * 2 + b"\xc2\x00"),
    "a name twice, of two lengths": tagged("Welcome", 4, b"\x82\xa4name\xa1a\xd9\x04name\xa1a\xc2\x00"),
    "a name no job has": packed(["Welcome", {"colour": 1}, False, 0.0]),
    "a bomb by a name no job has": tagged("Welcome", 4, b"\x81\xa1x", in_lists(b"\x80"), b"\xc2\x00"),
    "depth by a name no job has": tagged("Welcome", 4, b"\x81\xa1x", DEEP, b"\xc0\xc2\x00"),
    "depth where a job is": tagged("Welcome", 4, DEEP),
    "depth as a name in a job": tagged("Welcome", 4, b"\x81", DEEP),
    "a bomb as a name in a job": tagged("Welcome", 4, b"\x81", in_lists(b"\x80"), b"\x00\xc2\x00"),
    "a job of 2**32-1": tagged("Welcome", 4, b"\xdf\xff\xff\xff\xff"),
    "seeds, 2**32-1": tagged("Welcome", 4, b"\x81\xa5seeds\xdd\xff\xff\xff\xff"),
    "seeds of no letter": tagged("Welcome", 4, b"\x81\xa5seeds", many(b"\xa0"), b"\xc2\x00"),
    "seeds of two letters": tagged("Welcome", 4, b"\x81\xa5seeds", many(b"\xa2ab"), b"\xc2\x00"),
    "deep seeds": tagged("Welcome", 4, b"\x81\xa5seeds\x91", DEEP),
    "rules": tagged("Welcome", 4, b"\x81\xa7records", many(b"\x81\xa7pattern\xa1a", ROWS_MAX + 1), b"\xc2\x00"),
    "a name no rule has": packed(["Welcome", {"records": [{"pattern": "a", "colour": 1}]}, False, 0.0]),
    "rows, 2**32-1": tagged("Answer", 3, packed([1, bytes(16), 0, 0, 0]), b"\xdd\xff\xff\xff\xff"),
    "a map of reasons, 2**32-1": tagged(
        "Answer",
        *(3, packed([1, bytes(16), 0, 0, 0]), b"\x91\x98", packed(CONTACT), b"\xa0\x00\x00\x00\x98"),
        *(bytes(7), b"\xdf\xff\xff\xff\xff"),
    ),
    "totals for nobody": packed(["Wave", 1, 1.0, ["Grant", {b"": 1}, False]]),
    "totals by lists": tagged("Wave", 4, b"\x01\x01", b"\x93\xa5Grant\x81", DEEP),
    "totals beyond all peers": tagged("Wave", 4, b"\x01\x01", b"\x93\xa5Grant", b"\xdf\x00\x10\x00\x00"),
}
BOMBS = {**ALONE, **{f"within: {name}": data for name, data in WITHIN.items()}}


@cases("name", BOMBS)
def test_bombs_are_malformed_and_cost_little(name: str) -> None:
    for kind in KINDS:
        with pytest.raises(MalformedError) as malformed:
            unpack(BOMBS[name], kind, BYTES_MAX)
        assert len(str(malformed.value)) <= WHY_CHARS_MAX
        assert "\n" not in str(malformed.value)
        assert peak(BOMBS[name], kind) <= TIMES * len(BOMBS[name]) + BESIDE


def test_fields_of_a_later_version_are_left_out_and_cost_nothing() -> None:
    later = packed(["Hello", 1, [["a"] * 1000], {"b": [1.5, None]}])
    assert Hello(1) == unpack(later, Request, BYTES_MAX)
    assert peak(later, Request) <= TIMES * len(later) + BESIDE


@pytest.mark.parametrize("name", ["seeds of no letter", "rules", "seeds of two letters", "seeds, 2**32-1"])
def test_lists_of_a_job_are_counted_before_they_are_built(name: str) -> None:
    with pytest.raises(MalformedError, match="values in one list or map of a job"):
        unpack(WITHIN[name], Reply, BYTES_MAX)


SITES = [["a", 0, 0]]
ROW = [CONTACT, "", 0, 0, 0, [], 0, 0]
REASONS = {f"{number:02}": 0 for number in range(REASONS_MAX)}
DEAR: dict[str, list[Any]] = {
    "rows": ["Answer", [1, bytes(16), 0, 0, 0], [ROW] * ROWS_MAX],
    "reasons": ["Answer", [1, bytes(16), 0, 0, 0], [[*ROW[:5], [0] * 7 + [REASONS, REASONS], 0, 0]] * 200],
    "clocks": ["TakeOverAnswer", [[[1, 0, 0, bytes(16)], None, [CONTACT] * 20, False, False, SITES * 500]] * 30],
    "totals": ["Wave", 1, 1, ["Grant", {number.to_bytes(20, "big"): 0 for number in range(ROWS_MAX)}, True]],
    "seeds": ["Welcome", {"seeds": [f"http://a.b/{number}" for number in range(10_000)]}, False, 0],
    "words": ["Welcome", {name: ["ab"] * ROWS_MAX for name in ("seeds", "include", "exclude")}, False, 0],
    "wide letters": ["Add", ["a" * 8000 + "\U0001f600"] * 100],
}


@pytest.mark.parametrize("name", DEAR)
def test_the_dearest_messages_cost_a_small_multiple_of_their_bytes(name: str) -> None:
    data = packed(DEAR[name])
    kind = Request if DEAR[name][0] in ("Wave", "Add") else Reply
    assert isinstance(unpack(data, kind, BYTES_MAX), Message)
    times = TIMES_REASONS if name == "reasons" else TIMES
    assert peak(data, kind) <= times * len(data) + (JOB_BESIDE if DEAR[name][0] == "Welcome" else BESIDE)


@pytest.mark.parametrize(
    "pattern", ["a{99999999999999999999}", "(" * 900, "(?:" * 300 + ")" * 299, "x" * 1001, ""], ids=range(5)
)
def test_a_job_with_a_pattern_that_cannot_be_read_is_malformed(pattern: str) -> None:
    for part in (
        {"include": [pattern]},
        {"exclude": [pattern]},
        {"roles": [{"pattern": pattern, "role": "next_link"}]},
    ):
        assert unpack(packed(["Welcome", {"name": "a"}, False, 1.0]), Reply, BYTES_MAX)
        with pytest.raises(MalformedError):
            unpack(packed(["Welcome", {"name": "a", **part}, False, 1.0]), Reply, BYTES_MAX)


def test_patterns_that_take_long_to_read_together_are_malformed() -> None:
    pattern = "(?i)" + "[\x00-\U0010fffe]" * 240
    with pytest.raises(MalformedError, match="include and exclude have at most"):
        unpack(packed(["Welcome", {"include": [pattern] * 1000}, False, 1.0]), Reply, BYTES_MAX)


def test_a_key_that_stands_twice_is_malformed() -> None:
    """This holds for each map of the wire. A key that stands once passes."""
    row = PeerRow(
        Contact(ID, "h", 1), PeerState.IDLE, 1, 2, 3, PeerCounters(failed={"dns": 7}, left_out={"depth": 9}), 0, 0
    )
    job = Job(name="dns", records=(RecordRule(pattern="a", name="depth", hook="a:b"),))
    answer = SwarmStatus(Tally(1, bytes(16), 0, 0, 0), [row])
    once: list[tuple[Message, Any, bytes]] = [
        (answer, SwarmStatus, packed("dns") + b"\x07"),
        (answer, SwarmStatus, packed("depth") + b"\x09"),
        (Status(job, answer, False, False), Reply, packed("dns") + b"\x07"),
        (Status(job, answer, False, False), Reply, packed("name") + packed("dns")),
        (Welcome(job, False, 1.0), Reply, packed("name") + packed("depth")),
        (Wave(1, 1.0, Grant({ID: 7}, False)), Request, packed(ID) + b"\x07"),
        (WorkRequest(ID, 1, 1.0, "paused", PeerState.IDLE, 0, 0, row.counters), Request, packed("dns") + b"\x07"),
    ]
    for message, kind, pair in once:
        data = pack(message)
        assert message == unpack(data, kind, BYTES_MAX)
        at = data.index(pair)
        size = at - 1
        while not 0x81 <= data[size] < 0x8F and data[size - 2] != 0xDE:
            size -= 1  # The head of the map: short ones count in it, those of a job in the two bytes before the first.
        twice = data[:at] + pair + data[at:]
        twice = twice[:size] + bytes([twice[size] + 1]) + twice[size + 1 :]
        with pytest.raises(MalformedError, match="twice"):
            unpack(twice, kind, BYTES_MAX)


def test_what_others_may_write_otherwise_is_read_all_the_same() -> None:
    """A whole number in place of a fraction, and omitted fields with defaults, are no repeats."""
    plain = ["Answer", [1, bytes(16), 0, 0, 0], [[CONTACT, "idle", 0, 0, 0, [0, 0, 0, 0, 0, 0, 0, {"dns": 1}], 0, 0]]]
    assert unpack(packed(plain), SwarmStatus, BYTES_MAX).rows[0].counters == PeerCounters(failed={"dns": 1})
    (row,) = unpack(packed(plain), Reply, BYTES_MAX).rows
    assert unpack_part(row, PeerRow).counters == PeerCounters(failed={"dns": 1})


def wire_classes() -> Iterator[type[Message]]:
    for kind in KINDS:
        yield from get_args(kind)


def test_all_messages_begin_as_they_are_looked_at() -> None:
    for one in wire_classes():
        tag = str(one.__struct_config__.tag)
        assert len(tag) < 32
        assert len(one.__struct_fields__) < 15


def _unbounded(info: msgspec.inspect.Type, path: str) -> Iterator[str]:
    match info:
        case msgspec.inspect.StructType(fields=fields):
            for field in fields:
                yield from _unbounded(field.type, f"{path}.{field.name}")
        case msgspec.inspect.UnionType(types=types):
            for one in types:
                yield from _unbounded(one, path)
        case (
            msgspec.inspect.ListType(item_type=item, max_length=most)
            | msgspec.inspect.VarTupleType(item_type=item, max_length=most)
        ):
            yield from [path] if most is None else []
            yield from _unbounded(item, path + "[]")
        case msgspec.inspect.DictType(key_type=key, value_type=value, max_length=most):
            yield from [path] if most is None else []
            yield from [*_unbounded(key, path + "{}"), *_unbounded(value, path + "{}")]
        case msgspec.inspect.StrType(max_length=most) | msgspec.inspect.BytesType(max_length=most):
            yield from [path] if most is None else []
        case msgspec.inspect.IntType(ge=least, le=most, lt=below):
            yield from [path] if least is None or (most is None and below is None) else []
        case msgspec.inspect.FloatType(ge=least, gt=above, le=most):
            yield from [path] if (least is None and above is None) or most is None else []
        case msgspec.inspect.DataclassType() | msgspec.inspect.BoolType() | msgspec.inspect.NoneType():
            pass  # The only such class is the job, which has limits of its own.
        case msgspec.inspect.LiteralType() | msgspec.inspect.EnumType():
            pass
        case msgspec.inspect.RawType():
            assert path in ("Answer.rows[]", "Answer.left[]"), (
                "rows of a census, read by link/wire/census_rows.py; what else?"
            )
            yield from _unbounded(msgspec.inspect.type_info(PeerRow), path)
        case _:
            yield f"{path}: {info}"


@cases("one", [*wire_classes()])
def test_every_value_of_every_message_has_a_limit(one: type[Message]) -> None:
    assert not [*_unbounded(msgspec.inspect.type_info(one), one.__name__)]


plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.binary() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text() | st.binary(), inner, max_size=4),
    max_leaves=12,
)
TAGS = st.sampled_from([str(one.__struct_config__.tag) for one in wire_classes()])


@given(
    st.binary(max_size=200)
    | st.builds(lambda tag, fields: packed([tag, *fields]), TAGS, st.lists(plain, max_size=8))
    | st.builds(lambda tag, data: b"\x94" + packed(tag) + data, TAGS, st.binary(max_size=100))
)
def test_any_bytes_are_a_message_or_malformed(data: bytes) -> None:
    for kind in KINDS:
        try:
            assert isinstance(unpack(data, kind, BYTES_MAX), get_args(kind))
        except MalformedError:
            pass


def test_a_flipped_bit_of_any_message_is_read_or_malformed() -> None:
    job = Job(seeds=("http://a.example/",))
    row = PeerRow(Contact(ID, "h", 1), PeerState.IDLE, 1, 2, 3, PeerCounters(failed={"dns": 7}), 0, 0)
    for message, kind in [
        (Status(job, SwarmStatus(Tally(1, bytes(16), 0, 0, 0), [row]), False, False), Reply),
        (Offer([Link("http://a.example/", 1, 0)]), Request),
        (Add(["http://a.example/"]), Request),
        (TakeOverAnswer([]), Reply),
    ]:
        data = pack(message)
        for bit in range(8 * len(data)):
            flipped = bytearray(data)
            flipped[bit // 8] ^= 1 << bit % 8
            try:
                unpack(bytes(flipped), kind, BYTES_MAX)
            except MalformedError:
                continue
