"""Every message there is, made up from its class, and all that can be wrong with one value in it."""

from collections.abc import Iterator
from functools import cache
from typing import Any, get_args

import msgpack
from msgspec import inspect

from kadcrawl.link.wire.codec import pack
from kadcrawl.link.wire.messages import Contact, Message, PeerRow, Welcome
from kadcrawl.settings.job import Job

ADDRESS = "10.0.0.1"
FAR_BEYOND = 2**53 + 1
LONGEST = 100
"""No limit up to this is too costly to go beyond, value by value."""


@cache
def _job() -> Any:
    """Return a job as it travels."""
    return msgpack.unpackb(pack(Welcome(Job(seeds=("http://a.example/",)), False, 0.0)))[1]


def plain(info: inspect.Type, *, full: bool) -> Any:
    """Return a value of a type as msgpack encodes it.

    With `full`, each list contains an element and no value is None.
    """
    match info:
        case inspect.StructType(tag=tag, fields=fields, cls=kind):
            if kind is Contact:
                return [bytes(range(20)), ADDRESS, 4160]
            return [*([tag] if tag is not None else []), *(plain(field.type, full=full) for field in fields)]
        case inspect.UnionType(types=types):
            nothing = any(isinstance(one, inspect.NoneType) for one in types)
            some = [one for one in types if not isinstance(one, inspect.NoneType)]
            return None if nothing and not full else plain(some[-1] if full else some[0], full=full)
        case (
            inspect.ListType(item_type=item, min_length=least) | inspect.VarTupleType(item_type=item, min_length=least)
        ):
            return [plain(item, full=full)] * max(least or 0, int(full))
        case inspect.DictType(key_type=key, value_type=value):
            return {plain(key, full=full): plain(value, full=full)} if full else {}
        case inspect.BytesType(min_length=least):
            return bytes(least or 0)
        case inspect.StrType(min_length=least):
            return "a" * max(least or 0, int(full))
        case inspect.IntType(ge=least):
            return int(least or 0)
        case inspect.FloatType(ge=least, gt=above):
            return float(least) if least is not None else float(above or 0) + 1.0
        case inspect.BoolType():
            return full
        case inspect.LiteralType(values=values):
            return values[0]
        case inspect.EnumType(cls=kind):
            return next(iter(kind)).value
        case inspect.DataclassType(cls=kind):
            assert kind is Job, "or say here what one looks like"
            return _job()
        case inspect.RawType():
            return plain(inspect.type_info(PeerRow), full=full)
    raise AssertionError(f"say here what a {info} looks like")


def wrong(info: inspect.Type, *, full: bool) -> Iterator[tuple[str, Any]]:
    """Yield pairs (fault, value) of values that do not belong to a type, or exceed its limits."""
    match info:
        case inspect.StructType(fields=fields):
            right = plain(info, full=full)
            first = len(right) - len(fields)
            yield from _of_other_types(list)
            if first:
                yield "another tag", ["Nobody", *right[1:]]
                yield "no tag", right[1:]
            if fields and fields[-1].required:
                yield "one missing", right[:-1]
            for number, field in enumerate(fields, first):
                for what, value in wrong(field.type, full=full):
                    yield f"{field.name}: {what}", [*right[:number], value, *right[number + 1 :]]
        case inspect.UnionType(types=types):
            nothing = any(isinstance(one, inspect.NoneType) for one in types)
            for one in types:
                for what, value in wrong(one, full=full) if not isinstance(one, inspect.NoneType) else ():
                    if not (nothing and value is None):
                        yield what, value
        case (
            inspect.ListType(item_type=item, max_length=most, min_length=least)
            | inspect.VarTupleType(item_type=item, max_length=most, min_length=least)
        ):
            yield from _of_other_types(list)
            one = plain(item, full=False)
            yield "too many", [one] * ((most or 0) + 1)
            if least:
                yield "too few", []
            for what, value in wrong(item, full=full):
                yield f"[]: {what}", [value]
        case inspect.DictType(key_type=key, value_type=value, max_length=most):
            yield from _of_other_types(dict)
            name = plain(key, full=True)
            numbered = str if isinstance(name, str) else lambda number: number.to_bytes(20, "big")
            yield "too many", {numbered(number): plain(value, full=False) for number in range((most or 0) + 1)}
            for what, one in wrong(value, full=full):
                yield f"{{}}: {what}", {name: one}
            for what, one in wrong(key, full=full):
                if not isinstance(one, list | dict):
                    yield f"key: {what}", {one: plain(value, full=False)}
        case inspect.BytesType(min_length=least, max_length=most):
            yield from _of_other_types(bytes)
            yield "too long", bytes((most or 0) + 1)
            if least:
                yield "too short", bytes(least - 1)
        case inspect.StrType(min_length=least, max_length=most, pattern=pattern):
            yield from _of_other_types(str)
            yield "too long", "a" * ((most or 0) + 1)
            if least:
                yield "too short", ""
            if pattern is not None:
                yield from (("steers a terminal", char) for char in ("\x1b[2J", "a\nb", "a\n", "\x9b", "\u202e"))
        case inspect.IntType(ge=least):
            yield from _of_other_types(int)
            yield from (("too large", FAR_BEYOND), ("far too large", 2**64 - 1), ("too small", int(least or 0) - 1))
            yield "the least", -(2**63)
        case inspect.FloatType():
            yield from _of_other_types(float)
            yield from ((str(number), float(number)) for number in ("nan", "inf", "-inf", "1e308", "-1e308"))
        case inspect.BoolType():
            yield from _of_other_types(bool)
        case inspect.LiteralType() | inspect.EnumType():
            yield from _of_other_types(str)
            yield "another word", "dancing"
        case inspect.DataclassType():
            yield from _of_other_types(dict)
            yield "one too many", {**_job(), "colour": 1}
            yield "too many", {**_job(), "seeds": ["http://a.example/"] * 10_001}
            yield "too large", {**_job(), "cell_bits": 25}
        case inspect.RawType():
            pass  # It is read by who asked for it (`wrong_rows`).
        case _:
            raise AssertionError(f"say here what is no {info}")


def _of_other_types(right: type) -> Iterator[tuple[str, Any]]:
    others: dict[type, Any] = {
        type(None): None,
        bool: True,
        int: 1,
        float: 0.5,
        str: "a" * 20,
        bytes: bytes(20),
        list: [],
        dict: {},
    }
    for other, value in others.items():
        if other is not right and not (right is float and other is int):
            yield f"a {other.__name__}", value
    yield "a time", msgpack.ExtType(1, b"abcd")


def right_messages(kind: Any) -> Iterator[tuple[type[Message], bytes]]:
    """Yield each class of a union, and messages of it: the least, and one with something in every list."""
    for one in get_args(kind):
        info = inspect.type_info(one)
        for full in (False, True):
            yield one, msgpack.packb(plain(info, full=full))


def wrong_rows() -> Iterator[tuple[str, bytes]]:
    """Yield the same of the rows of a census."""
    info = inspect.type_info(PeerRow)
    for full in (False, True):
        for what, value in wrong(info, full=full):
            yield what, msgpack.packb(value)


def wrong_messages(one: type[Message]) -> Iterator[tuple[str, bytes]]:
    """Yield pairs (fault, bytes) of messages of one class, each with only one wrong value."""
    info = inspect.type_info(one)
    for full in (False, True):
        for what, value in wrong(info, full=full):
            yield what, msgpack.packb(value)
