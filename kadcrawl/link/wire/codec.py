"""Messages as bytes: ``[tag, field, ...]`` in msgpack, with every size bounded before an object is built.

Bytes from the network become a message of the expected type within all limits of `messages`, or MalformedError.
Decoding follows the type: the first value of another type, or a count above its limit, ends it. So the objects built
are never larger than a message, nor nested deeper. `map_checks` covers the remaining risks of messages with maps.
"""

from functools import cache
from typing import Any, NamedTuple, TypeVar, get_args

import msgpack
from msgspec import DecodeError, Raw, Struct
from msgspec.msgpack import Decoder, Encoder

from kadcrawl.link.wire.map_checks import MapChecks, MapError, check_once, look_at_job, map_checks
from kadcrawl.link.wire.messages import Message

WHY_CHARS_MAX = 300
"""Characters of a description of an error."""

_ENCODER = Encoder()
_MISBEHAVIORS = (DecodeError, ValueError, ArithmeticError, RecursionError, msgpack.UnpackException)
"""The exceptions of decoding. (A MapError is a ValueError.)"""
_SHORT_ARRAY, _SHORT_TEXT = range(0x90, 0xA0), range(0xA0, 0xC0)
"""The first byte of a message, and that of its tag, as this wire writes them, with their lengths."""

_NO_CHECKS = MapChecks(None, has_maps=False)

Part = TypeVar("Part", bound=Struct)


class MalformedError(Exception):
    """Bytes that are no message of this wire. The text gives the reason, for the log."""


class VersionError(MalformedError):
    """Bytes that begin like those of another version of the wire."""


def pack(message: Message) -> bytes:
    """Return the message as bytes of this wire."""
    return _ENCODER.encode(message)


class _Reading(NamedTuple):
    """The way to read messages of some type."""

    decoder: Decoder[Any]
    kinds: dict[bytes, type]
    """The classes of the messages by tag."""


def pack_part(part: Struct) -> bytes:
    """Return a part of a message as it stands in it."""
    return _ENCODER.encode(part)


@cache
def _reading(kind: Any) -> _Reading:
    """Return the way to read a message class or a union of classes."""
    return _Reading(Decoder(kind), {one.__struct_config__.tag.encode(): one for one in get_args(kind) or [kind]})


_checks = cache(map_checks)
"""Returns the checks of a message class, made with its first message: messages of most classes never arrive."""


def _tag(data: bytes) -> bytes:
    """Return the tag that a packed message begins with. Raises MalformedError."""
    if len(data) < 2 or data[0] not in _SHORT_ARRAY or data[1] not in _SHORT_TEXT:
        raise MalformedError("no list that begins with the name of a message")
    return data[2 : 2 + data[1] - _SHORT_TEXT.start]


def unpack(data: bytes, kind: Any, bytes_max: int) -> Any:
    """Return the message in `data`, which must be of type `kind` (a message class or a union of them).

    Raises MalformedError for anything else: too large, not msgpack, nested too deep, wrong types or counts.
    """
    if len(data) > bytes_max:
        raise MalformedError(f"{len(data)} bytes, above {bytes_max}")
    tag = _tag(data)
    reading = _reading(kind)
    known = reading.kinds.get(tag)
    job, has_maps = _NO_CHECKS if known is None else _checks(known)
    try:
        if job is not None:
            look_at_job(data, job)
        message = reading.decoder.decode(data)
        if has_maps and pack(message) != data:
            check_once(data)  # Bytes equal to our own packing, as nearly all are, have no key twice.
        return message
    except _MISBEHAVIORS as error:
        raise _malformed(error) from None


def unpack_part(data: Raw, kind: type[Part]) -> Part:
    """Return the part of a message in `data`, of type `kind`, which may have maps. Raises MalformedError."""
    try:
        part: Part = _part_decoder(kind).decode(data)
        if memoryview(data) != pack_part(part):
            check_once(bytes(data))
        return part
    except _MISBEHAVIORS as error:
        raise _malformed(error) from None


@cache
def _part_decoder(kind: type) -> Decoder[Any]:
    return Decoder(kind)


def _malformed(error: Exception) -> MalformedError:
    """Return the MalformedError for an exception of a decoder."""
    why = str(error) if isinstance(error, (DecodeError, MapError)) else f"not msgpack: {error}"
    return MalformedError(why[:WHY_CHARS_MAX])  # The text may quote the wrong bytes.
