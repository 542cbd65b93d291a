"""The shape of the wire: each message and part with its fields, for a comparison of two versions.

Tests: tests/docs/test_wire_shape.py
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from msgspec import inspect

from kadcrawl.link.wire.basics import WIRE_VERSION
from kadcrawl.overlay.datagrams import KINDS
from scripts.docs.wire import REPLIES, REQUESTS, in_words, structs

Shape = Mapping[str, Mapping[str, str]]
"""Types of fields by message or part, and field. A type with a default ends in a question mark."""


def path_of(version: int) -> str:
    """Return the file with the shape of a version of the wire."""
    return f"docs/reference/wire-{version}.json"


def shape() -> Shape:
    """Return the shape of this version."""
    messages = {*REQUESTS, *REPLIES, *KINDS}
    found: dict[str, dict[str, str]] = {}
    for kind in structs():
        name = f"message {kind.__name__}" if kind in messages else f"part {kind.__name__}"
        fields = inspect.type_info(kind).fields  # type: ignore[attr-defined]
        found[name] = {field.name: in_words(field.type) + ("" if field.required else "?") for field in fields}
    return found


def breaks(before: Shape, after: Shape) -> Iterator[str]:
    """Yield each change between two versions by which their peers would misunderstand each other."""
    for kind, fields in before.items():
        now = after.get(kind)
        if now is None:
            yield f"{kind} is gone"
            continue
        if [*now][: len(fields)] != [*fields]:
            yield f"{kind} has other fields or another order: new fields go to the end"
            continue
        for name, text in fields.items():
            if now[name] != text:
                yield f"{kind}.{name} was {text}, and is {now[name]}"
        for name in [*now][len(fields) :]:
            if not now[name].endswith("?"):
                yield f"{kind}.{name} is new and has no default"


def generate(root: Path) -> dict[str, str]:
    """Return the file of this version."""
    return {path_of(WIRE_VERSION): json.dumps(shape(), indent=1) + "\n"}
