"""Messages to bytes and back: ``[tag, field, ...]`` in msgpack, with every size bounded before anything is built.

Bytes from the network become a message of the expected type, with all limits of `messages` checked, or MalformedError.
"""

from functools import cache
from typing import Any, get_args

import msgpack
from msgspec import ValidationError, convert
from msgspec.msgpack import Encoder

from kadcrawl.link.messages import ROWS_MAX, Message

_ENCODER = Encoder()


class MalformedError(Exception):
    """Bytes that are no message of this wire. The text says what was wrong, for the log."""


def pack(message: Message) -> bytes:
    """Return the message as bytes of this wire."""
    return _ENCODER.encode(message)


@cache
def _by_tag(kind: Any) -> dict[object, type[Message]]:
    """Return the message classes of a union by their tags."""
    return {one.__struct_config__.tag: one for one in get_args(kind)}


def _named_in(plain: Any, kind: Any) -> Any:
    """Return the one class of `kind` whose tag `plain` has; msgspec is slow to convert to a union.

    Without such a tag it is `kind` itself, whose conversion will say what is wrong.
    """
    if isinstance(kind, type) or not (isinstance(plain, list) and plain and isinstance(plain[0], str)):
        return kind
    return _by_tag(kind).get(plain[0], kind)


def unpack(data: bytes, kind: Any, bytes_max: int) -> Any:
    """Return the message in `data`, which must be of type `kind` (a message class or a union of them).

    Raises MalformedError for anything else: too large, not msgpack, nested too deep, wrong types or counts.
    """
    if len(data) > bytes_max:
        raise MalformedError(f"{len(data)} bytes, above {bytes_max}")
    try:
        plain = msgpack.unpackb(
            data, max_array_len=ROWS_MAX, max_map_len=ROWS_MAX, max_ext_len=0, strict_map_key=True, use_list=True
        )
        return convert(plain, _named_in(plain, kind))
    except ValidationError as error:
        raise MalformedError(str(error)) from None
    except (ValueError, RecursionError, msgpack.UnpackException) as error:
        raise MalformedError(f"not msgpack: {error}") from None
