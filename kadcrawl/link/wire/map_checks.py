"""What decoding by type does not see to in messages with maps, which are few: repeated keys, and the lists of a job.

Of a key that stands twice the last one would win. What a job has that this release does not know would be passed over,
and the swarm be crawled otherwise here than elsewhere. And the lists of a job have no limits of their own but those
that the job checks once it is made; so it is looked at before anything is built of it.

Tests: tests/link/wire/test_codec.py
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import msgpack
from msgspec import inspect
from msgspec.msgpack import Decoder

from kadcrawl.link.wire.basics import ROWS_MAX

Check = Callable[["_MapReader"], None]
"""Reads one value."""

_TEXT = Decoder(str)


class MapError(ValueError):
    """A map, or a list in one, that no message of this wire has."""


def has_maps(kind: type) -> bool:
    """Say whether messages of a class can have maps."""
    return _any_map(inspect.type_info(kind))


def look_at_job(data: bytes, look: Check) -> None:
    """Look at the job in a packed message, given what looks at its class. Raises ValueError, msgpack.UnpackException.

    Nothing is built but one key at a time.
    """
    look(_MapReader(data))


def job_look(kind: type) -> Check | None:
    """Return what looks at the job in messages of a class; None if there is none."""
    info = inspect.type_info(kind)
    assert isinstance(info, inspect.StructType)
    looks: list[Check] = [_MapReader.skip]  # The tag.
    last = 0
    for number, field in enumerate(info.fields, 1):
        looks.append(_looker(field.type) or _MapReader.skip)
        if isinstance(field.type, inspect.DataclassType):
            last = number
    return partial(_at_fields, looks[: last + 1]) if last else None


def check_once(data: bytes) -> None:
    """Raise MapError if a key stands twice in one map of a packed message that is of its type in all else."""
    # Nothing is kept of it but what is open just then.
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
    """Goes through packed bytes."""

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
    """The first fields of a message; those that follow are nothing to look at."""
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
