"""Checks of messages with maps that decoding by type does not make: repeated keys, and the lists of a job.

Of a repeated key the last value would win. An unknown key of a job would be ignored, and the swarm be crawled
differently here than elsewhere. And the lists of a job are limited only by checks of the finished job, so the bytes are
checked before anything is built of them.

Tests: tests/link/wire/test_codec.py
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import msgpack
from msgspec import inspect
from msgspec.msgpack import Decoder

from kadcrawl.link.wire.basics import ROWS_MAX

Check = Callable[["_MapReader"], None]
"""A check that reads one value."""

_TEXT = Decoder(str)


class MapError(ValueError):
    """A map, or a list in a map, that no message of this wire has."""


class MapChecks(NamedTuple):
    """The checks of the messages of a class."""

    job: Check | None
    """The check of the job in them, or None if they have no job."""
    has_maps: bool
    """True if messages of the class can have maps."""


def map_checks(kind: type) -> MapChecks:
    """Return the checks of the messages of a class."""
    info = inspect.type_info(kind)
    assert isinstance(info, inspect.StructType)
    return MapChecks(_job_look(info), _any_map(info))


def look_at_job(data: bytes, look: Check) -> None:
    """Check the job in a packed message by the check of its class. Raises ValueError, msgpack.UnpackException.

    No object is built except one key at a time.
    """
    look(_MapReader(data))


def _job_look(info: inspect.StructType) -> Check | None:
    """Return the check of the job in messages of a class, or None if they have no job."""
    looks: list[Check] = [_MapReader.skip]  # The tag.
    last = 0
    for number, field in enumerate(info.fields, 1):
        looks.append(_looker(field.type) or _MapReader.skip)
        if isinstance(field.type, inspect.DataclassType):
            last = number
    return partial(_at_fields, looks[: last + 1]) if last else None


def check_once(data: bytes) -> None:
    """Raise MapError if a map of a packed message has a key twice. All else in the message is of its type."""
    # Only the containers open at the moment are kept in memory.
    msgpack.unpackb(data, object_pairs_hook=_once, list_hook=_nothing, strict_map_key=False)


def _once(pairs: list[tuple[Any, Any]]) -> None:
    if len({key for key, _ in pairs}) < len(pairs):
        raise MapError("a key stands twice in one map")


def _nothing(_: object) -> None: ...


def _any_map(info: inspect.Type) -> bool:
    match info:
        case inspect.DictType() | inspect.DataclassType():
            return True
        case inspect.StructType(fields=fields):
            return any(_any_map(field.type) for field in fields)
        case inspect.ListType(item_type=item) | inspect.VarTupleType(item_type=item):
            return _any_map(item)
        case inspect.UnionType(types=types):
            return any(map(_any_map, types))
    return False


class _MapReader:
    """Reads packed bytes, value by value."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._unpacker = msgpack.Unpacker(max_buffer_size=len(data))
        self._unpacker.feed(data)

    def skip(self) -> None:
        self._unpacker.skip()

    def array(self) -> int:
        return self._bounded(self._unpacker.read_array_header())

    def map(self) -> int:
        return self._bounded(self._unpacker.read_map_header())

    def name(self) -> str:
        begin = self._unpacker.tell()
        self.skip()
        return _TEXT.decode(self._data[begin : self._unpacker.tell()])

    def _bounded(self, count: int) -> int:
        if count > ROWS_MAX:
            raise MapError(f"{count} values in one list or map of a job")
        return count


def _looker(info: inspect.Type) -> Check | None:
    match info:
        case inspect.DataclassType(fields=fields):
            return partial(_at_names, {field.encode_name: _looker(field.type) or _MapReader.skip for field in fields})
        case inspect.VarTupleType(item_type=item):
            return partial(_at_each, _looker(item) or _MapReader.skip)
    return None


def _at_fields(looks: list[Check], reader: _MapReader) -> None:
    """Check the first fields of a message. The fields after them need no check."""
    reader.array()
    for look in looks:
        look(reader)


def _at_names(known: dict[str, Check], reader: _MapReader) -> None:
    met = set()
    for _ in range(reader.map()):
        name = reader.name()
        if name not in known:
            raise MapError(f"a job with {name!r:.40}, which this release does not know: use the same release")
        if name in met:
            raise MapError(f"{name!r:.40} stands twice in a job")
        met.add(name)
        known[name](reader)


def _at_each(look: Check, reader: _MapReader) -> None:
    for _ in range(reader.array()):
        look(reader)
