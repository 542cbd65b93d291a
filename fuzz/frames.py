"""Fuzzing of TCP: frames of the link, and the epoch filters in some messages."""

from collections.abc import Iterator
from random import Random
from typing import Any, get_args

import msgpack
from msgspec import Raw, inspect

from fuzz.target import Bites, Target
from kadcrawl.keys import ID_BYTES, Key
from kadcrawl.link.wire.codec import MalformedError, pack, pack_part, unpack, unpack_part
from kadcrawl.link.wire.messages import Answer, Contact, Message, PeerRow, Reply, Request
from kadcrawl.settings.job import Job
from kadcrawl.settings.limits import Limits
from kadcrawl.settings.page_rules import Field, RecordRule, RoleRule
from kadcrawl.store.bloom.encoding import from_bytes, to_bytes
from kadcrawl.store.bloom.engines import ENGINES
from kadcrawl.store.bloom.expiring_filter import ExpiringFilter, Period

FRAME_BYTES_MAX = Limits().message_bytes_max
NOW = 20_000 * 86_400.0
EPOCH_S = 86_400.0


def frame(data: bytes) -> None:
    """Read a frame as server and as client. A decoded message is encoded and must decode to the same message."""
    for kind in (Request, Reply):
        try:
            message: Message = unpack(data, kind, FRAME_BYTES_MAX)
        except MalformedError:
            continue
        assert message == unpack(pack(message), kind, FRAME_BYTES_MAX), "a message changes on its way"
        repr(message)
        for row in message.rows if isinstance(message, Answer) else []:
            try:
                read = unpack_part(row, PeerRow)
            except MalformedError:
                continue
            assert read == unpack_part(Raw(pack_part(read)), PeerRow), "a row changes on its way"


def epoch_filters(data: bytes) -> None:
    """Read a cell's epoch filters. Readable filters are encoded and must decode to the same filters."""
    bites = Bites(data)
    names = list(ENGINES)
    period = Period(epoch_s=EPOCH_S, epochs=3, filters=names[bites.number() % len(names)])
    try:
        seen = from_bytes(bites.rest(), period, NOW)
    except ValueError:
        return
    encoded = to_bytes(seen, NOW)
    assert encoded == to_bytes(from_bytes(encoded, period, NOW), NOW), "epoch filters change on their way"
    for number in range(4):
        key = Key(number.to_bytes(ID_BYTES, "big"))
        if not seen.contains(key, NOW):
            seen.add(key, NOW)
        assert seen.contains(key, NOW)


# --- seed inputs -------------------------------------------------------------------------------------------------


def every_message() -> Iterator[Message]:
    """Yield a message of each kind of the wire, with a value in each of its fields."""
    for kind in (*get_args(Request), *get_args(Reply)):
        yield made(inspect.type_info(kind))


def made(kind: inspect.Type) -> Any:
    """Return a small value of a type that fields of messages have."""
    match kind:
        case inspect.UnionType(types=(first, *_)):
            return made(first)
        case inspect.LiteralType(values=(first, *_)):
            return first
        case inspect.EnumType(cls=cls):
            return next(iter(cls))
        case inspect.StructType(cls=cls) if cls is Contact:
            return Contact(bytes(range(ID_BYTES)), "10.0.0.1", 4160)
        case inspect.StructType(cls=cls, fields=fields):
            return cls(*(made(field.type) for field in fields))
        case inspect.DataclassType(cls=cls) if cls is Job:
            roles = (RoleRule(pattern="/p/[0-9]{1,30}", role="next_link"),)
            records = (RecordRule(pattern="b+", fields=(Field("c", "css:d > e"),)),)
            return Job(seeds=("http://a.example/",), max_pages=3, include=("a{2,30}",), roles=roles, records=records)
        case inspect.ListType(item_type=item) | inspect.VarTupleType(item_type=item):
            return [made(item)]
        case inspect.DictType(key_type=key, value_type=value):
            return {made(key): made(value)}
        case inspect.BytesType(min_length=least, max_length=most):
            return bytes(range(least or min(most or 8, 8)))
        case inspect.StrType(max_length=most):
            return "http://a.example/b"[:most]
        case inspect.IntType(ge=least):
            return least or 0
        case inspect.FloatType(ge=least):
            return 1.0 if least is None else least
        case inspect.BoolType():
            return True
        case inspect.RawType():
            return Raw(pack_part(made(inspect.type_info(PeerRow))))
    raise TypeError(f"no message has had a field of {kind}")


def frames() -> Iterator[bytes]:
    """Yield a frame of each message, the largest that a non-member may try, and a pattern that counts too far."""
    for message in every_message():
        yield pack(message)
    yield msgpack.packb(["Welcome", {"include": ["a{99999999999999999999}"]}, False, 1.0, 0])
    yield from (b"\xdd\x00\xff\xff\xff" + b"\x90" * 40, b"\x91" * 600, b"\xdf\xff\xff\xff\xff")


def sets() -> Iterator[bytes]:
    """Yield epoch filters of few and of many keys, by each engine."""
    for number, name in enumerate(ENGINES):
        for counts in ((), (3,), (40, 0, 5), (5, 300, 1)):
            random = Random(1)
            seen = ExpiringFilter(Period(epoch_s=EPOCH_S, epochs=3, filters=name))
            for day, count in enumerate(counts):
                for _ in range(count):
                    seen.add(Key(random.randbytes(ID_BYTES)), NOW - EPOCH_S * (len(counts) - 1 - day))
            yield bytes((number,)) + to_bytes(seen, NOW)


TARGETS = (Target("frame", frame, frames, bytes_max=2048), Target("epoch_filters", epoch_filters, sets))
