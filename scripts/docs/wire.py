"""The page of the wire: version, framing, and each message with its fields, their limits, its reply and its repeat.

Messages, types and limits are those of `kadcrawl/link/wire`. Tests: tests/docs/test_wire.py
"""

import inspect as python_inspect
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, get_args

import msgspec
from msgspec import Struct, inspect

from kadcrawl.link.client_connection import NUMBER_BYTES
from kadcrawl.link.handler import LINK_PATH
from kadcrawl.link.wire import messages
from kadcrawl.link.wire.basics import DATAGRAM_BYTES_MAX, WIRE_VERSION, WIRE_VERSION_LEAST, Message
from kadcrawl.members.sealing import SEAL_BYTES
from kadcrawl.overlay.datagrams import KINDS, REPLY_TO
from kadcrawl.settings.limits import Limits
from scripts.docs.docstrings import field_docstrings
from scripts.docs.limits import readable
from scripts.docs.markdown import anchor, code, page, paragraphs, prose, table
from scripts.docs.wire_fields import FIELDS

PAGE = "docs/reference/wire.md"
TOPICS = {
    "datagram_messages": "Datagrams of the overlay",
    "joining_messages": "A newcomer's ID",
    "messages": "Waves and commands",
    "grant_messages": "Shares of a budget",
    "peer_row": "Rows of the status",
    "swarm_state_messages": "State of the swarm",
    "seed_messages": "Seeds",
    "offer_messages": "Links",
    "retry_messages": "Orders to retry",
    "order_messages": "Orders about sites",
    "queue_messages": "The queue",
    "find_url_messages": "The way of a URL",
    "watch_messages": "What a dashboard shows",
    "cell_messages": "Cells",
    "absence_messages": "Absent peers",
    "filter_messages": "Epoch filters",
    "loan_messages": "Loans",
    "leaf_messages": "Leaves",
    "leave_messages": "Departed peers",
    "relay_messages": "Requests for other peers",
    "clock_messages": "Shared clocks",
    "basics": "Common parts",
}
"""The title of each module of messages, in the order of the page."""
BYTES = {20: "an ID or a key", 16: "a digest", 8: "an ID of a loan", 32: "a key of a swarm"}
REQUESTS: tuple[type[Struct], ...] = get_args(messages.Request)
REPLIES: tuple[type[Struct], ...] = get_args(messages.Reply)
_ANSWERED = re.compile(r"Answered by\s+(\w+)")


def structs() -> dict[type[Struct], str]:
    """Return all messages and their parts, each with its module's name."""
    found: dict[type[Struct], str] = {}
    for name in TOPICS:
        module = import_module(f"kadcrawl.link.wire.{name}")
        for kind in vars(module).values():
            is_struct = isinstance(kind, type) and issubclass(kind, Struct) and kind is not Message
            if is_struct and kind.__module__ == module.__name__:
                found[kind] = name
    return found


def reply_to(kind: type[Struct]) -> str | None:
    """Return the name of the reply to a request, or None if its docstring names none."""
    if kind in REPLY_TO:
        return REPLY_TO[kind].__name__
    found = _ANSWERED.search(kind.__doc__ or "")
    return None if found is None else found[1]


def text_of(root: Path, kind: type[Struct], field: str) -> str:
    """Return the meaning of a field: its docstring, or else the text of its name. Raises KeyError without either."""
    return field_docstrings(root, kind)[field] or FIELDS.get(f"{kind.__name__}.{field}") or FIELDS[field]


def generate(root: Path) -> dict[str, str]:
    """Return the page of the wire."""
    return {
        PAGE: page(
            "The wire",
            "`kadcrawl/link/wire` and `scripts/docs/wire.py`",
            f"Peers talk by messages in [msgpack](https://msgpack.org/), over TCP and UDP on one port. This is version "
            f"{WIRE_VERSION} of the wire. Peers of versions that follow each other work together, from version "
            f"{WIRE_VERSION_LEAST} on. Others ignore each other and log it. The [glossary](../glossary.md) defines the "
            "words.",
            _framing(),
            "## Requests and replies",
            "Each request may also be answered by [`Refused`](#refused).",
            table(["request", "reply", "meaning"], list(_requests())),
            *(part for topic in TOPICS for part in _topic(root, topic)),
        )
    }


def _framing() -> str:
    message = readable("message_bytes_max", Limits().message_bytes_max)
    rows = [[code(str(number)), _link(kind), _first_sentence(kind)] for number, kind in enumerate(KINDS)]
    return "\n\n".join(
        [
            "## Framing",
            "A message is an array: its name, and then its fields in the order of the tables below. Fields at the end "
            "that have a default may be absent. A value of another type or beyond its limit makes the message "
            "malformed. Fields more at the end are left out, as a later version may have them. A receiver checks all "
            "of a message before it reads any field.",
            "### Connections",
            f"A peer that has a request dials the other peer, and keeps the connection: a WebSocket at the path "
            f"`{LINK_PATH}`. In a swarm with a key it goes over TLS 1.3, in which both sides prove to be members. Only "
            f"the dialer asks. A binary frame is a number of {NUMBER_BYTES} bytes, big-endian, and a message. The "
            "reply has the number of its request, "
            f"and replies come in any order. A reply of the number alone means that the request was malformed. A frame "
            f"has at most {message}.",
            "### Datagrams",
            f"A datagram has at most {DATAGRAM_BYTES_MAX:,} bytes: the version of the wire (1 byte), the kind of its "
            "message (1 byte), the number of the request (8 bytes, big-endian), and the message. A reply has the "
            f"number of its request. In a swarm with a key all of that is sealed, by {SEAL_BYTES} bytes more: label 4, "
            "kind of the seal 1, public key of the sender 32, number 8, check 16, the encrypted datagram, and tag 16 "
            "([members/sealing.py](../../kadcrawl/members/sealing.py)). A datagram may be lost or repeated.",
            table(["kind", "message", "meaning"], rows),
        ]
    )


def _requests() -> Iterator[list[str]]:
    for kind in (*REPLY_TO, *REQUESTS):
        reply = reply_to(kind)
        yield [_link(kind), f"[{code(reply)}](#{anchor(reply)})" if reply else "", _first_sentence(kind)]


def _link(kind: type) -> str:
    return f"[{code(kind.__name__)}](#{anchor(kind.__name__)})"


def _first_sentence(kind: type) -> str:
    text = python_inspect.cleandoc(kind.__doc__ or "").partition("\n\n")[0]
    return prose(re.split(r" (?:Answered by|A repeat)\b", " ".join(text.split()))[0])


def _topic(root: Path, topic: str) -> Iterator[str]:
    yield f"## {TOPICS[topic]}"
    for kind, module in structs().items():
        if module != topic:
            continue
        yield f"### {kind.__name__}"
        yield paragraphs(python_inspect.cleandoc(kind.__doc__ or ""), root)
        fields = inspect.type_info(kind).fields  # type: ignore[attr-defined]
        rows = [
            [code(field.name), in_words(field.type), _default(field), paragraphs(text_of(root, kind, field.name), root)]
            for field in fields
        ]
        yield table(["field", "type", "default", "meaning"], rows) if rows else "It has no fields."


def _default(field: inspect.Field) -> str:
    if field.required:
        return ""
    if field.default is msgspec.NODEFAULT:
        return "empty"
    return "empty" if field.default in ([], {}) else code("null" if field.default is None else str(field.default))


def in_words(kind: Any) -> str:
    """Return a type with its limits as a person reads it."""
    match kind:
        case inspect.IntType() | inspect.FloatType():
            return f"{'integer' if isinstance(kind, inspect.IntType) else 'number'}{_range(kind)}"
        case inspect.BoolType():
            return "boolean"
        case inspect.BytesType(min_length=least, max_length=most):
            if least is not None and least == most:
                return f"{most} bytes" + (f" ({BYTES[most]})" if most in BYTES else "")
            return f"up to {readable('bytes', most)}" if most else "bytes"
        case inspect.StrType(max_length=most):
            return f"text of up to {most:,} characters" if most else "text"
        case inspect.ListType(item_type=item, min_length=least, max_length=most):
            return f"list of {f'{least} to' if least else 'up to'} {most:,}: {in_words(item)}"
        case inspect.VarTupleType(item_type=item):
            return f"list of {in_words(item)}"
        case inspect.DictType(key_type=key, value_type=value, max_length=most):
            return f"map of up to {most:,}: {in_words(key)} to {in_words(value)}"
        case inspect.UnionType(types=types):
            return " or ".join(map(in_words, types))
        case inspect.NoneType():
            return "null"
        case inspect.RawType():
            return "packed [`PeerRow`](#peerrow)"
        case inspect.LiteralType(values=values):
            return ", ".join(code(str(value)) for value in values)
        case inspect.EnumType():
            return "[a state](status.md#states)"
        case inspect.DataclassType():
            return "map of the fields of the [job](configuration.md#job)"
        case inspect.StructType(cls=cls):
            return _link(cls)
    raise TypeError(f"no words for the type {kind!r}: add them to scripts/docs/wire.py")


def _range(kind: inspect.IntType | inspect.FloatType) -> str:
    least = kind.ge if kind.ge is not None else kind.gt
    most = kind.le if kind.le is not None else None if kind.lt is None else kind.lt - 1
    if most is None:
        return "" if least is None else f", {_number(least)} or more"
    low = f"above {_number(kind.gt)}" if kind.gt is not None else f"from {_number(least or 0)}"
    return f" {low} to {_number(most)}"


def _number(value: float) -> str:
    for power in (24, 32, 33, 40, 53):
        for off in (0, 1):
            if value == 2**power - off:
                return f"2^{power}" + (" - 1" if off else "")
    return f"{int(value):,}" if float(value).is_integer() else f"{value:.6f}".rstrip("0")
