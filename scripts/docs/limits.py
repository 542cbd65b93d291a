"""The page of limits: the fields of `Limits`, and the constants of the package that are limits.

A constant is a limit if its name has MAX, MIN, MOST or LEAST in it. Its docstring has the reason.

Tests: tests/docs/test_limits.py
"""

import ast
import dataclasses
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from kadcrawl.settings.job_limits import OF_JOB, OF_MACHINE
from kadcrawl.settings.limits import Limits
from scripts.docs.docstrings import attribute_docstrings, field_docstrings
from scripts.docs.markdown import code, page, paragraphs, table

PAGE = "docs/reference/limits.md"
GROUPS = {
    "url_chars_max": "URLs and links",
    "header_bytes_max": "Answers of servers",
    "robots_ttl_s": "robots.txt",
    "connect_timeout_s": "Time and rate",
    "proxy_verify_s": "Proxies",
    "redirects_max": "Redirects and retries",
    "fetches_max": "Work at a time",
    "recent_links_max": "Messages between peers",
    "commit_spacing_s": "Journal and WARC files",
    "record_page_bytes_max": "Records",
    "memory_bytes": "Memory of the process",
    "disk_reserve_bytes": "Free disk",
}
"""The title of each group, by its first field."""
ROOMS = {
    "settings": "Jobs and job files",
    "urls": "URLs",
    "crawl": "Crawl",
    "sinks": "Sinks",
    "store": "Journal and history",
    "link": "Links and messages between peers",
    "overlay": "Overlay",
    "members": "Keys and members",
    "replication": "Replication",
    "balance": "Load balance",
    "lending": "Loans",
    "leaf": "Leaves",
    "web": "The dashboard",
    "peer": "Peer",
    "cli": "Command",
    "system": "System",
}
"""The titles of the rooms of the package, in the order of the page."""
_HEADER = ["limit", "value", "set for", "meaning and reason"]
_MARKS = {"MAX", "MIN", "MOST", "LEAST"}
_BYTES = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))
_TIMES = ((86_400, "day"), (3600, "hour"), (60, "minute"))
_UNITS = {"chars": "characters", "bits": "bits", "urls": "URLs", "pages": "pages", "keys": "keys", "cells": "cells"}


class Constant(NamedTuple):
    """A limit that is a constant of a module."""

    path: str
    """The file, below the repository's root."""
    name: str
    value: float
    text: str
    """Docstring of the constant."""

    @property
    def room(self) -> str:
        """The first folder or module below the package."""
        return self.path.split("/")[1].removesuffix(".py")


def readable(name: str, value: float) -> str:
    """Return a value with the unit that its name tells."""
    words = name.lower().split("_")
    if words[-1] == "s" and "bytes" in words:
        return f"{_of_bytes(value)}/s"
    if "s" in words[1:]:
        return _of_seconds(value)
    if "bytes" in words and "keys" not in words:
        return _of_bytes(value)
    unit = next((_UNITS[word] for word in reversed(words) if word in _UNITS), "")
    return f"{_number(value)} {unit}".strip()


def _of_bytes(value: float) -> str:
    for size, unit in _BYTES:
        if value >= size and value % size == 0:
            return f"{_number(value / size)} {unit}"
    for size, unit in ((10**9, "GB"), (10**6, "MB")):
        if value >= size and value % size == 0:
            return f"{_number(value / size)} {unit}"
    return f"{_number(value)} bytes"


def _of_seconds(value: float) -> str:
    for size, unit in _TIMES:
        if value >= size and value % size == 0:
            count = value / size
            return f"{_number(count)} {unit}{'s' if count != 1 else ''}"
    return f"{_number(value)} s"


def _number(value: float) -> str:
    if isinstance(value, int) or value.is_integer():
        exponent = int(value).bit_length() - 1
        return f"2^{exponent}" if value > 2**30 and value == 2**exponent else f"{int(value):,}"
    return f"{value:.6f}".rstrip("0")


def constants(root: Path) -> Iterator[Constant]:
    """Yield the limits of the package that are numbers outside `Limits`."""
    for path in sorted((root / "kadcrawl").rglob("*.py")):
        texts = attribute_docstrings(ast.parse(path.read_text(encoding="utf-8")).body)
        names = [name for name in texts if name.isupper() and name[0] != "_" and _MARKS & set(name.split("_"))]
        if not names:
            continue
        place = path.relative_to(root)
        module = import_module(".".join(place.with_suffix("").parts))
        for name in names:
            value = getattr(module, name)
            if isinstance(value, int | float):
                yield Constant(place.as_posix(), name, value, texts[name])


def generate(root: Path) -> dict[str, str]:
    """Return the page of limits."""
    return {
        PAGE: page(
            "Limits",
            "`kadcrawl/settings/limits.py` and the constants of the package",
            "Each input has a limit, so that none can take all memory, time or disk of a peer. Inputs come from sites, "
            "other peers, disk and people. This page has each limit with its value and its reason.",
            "## Limits of a peer",
            "These limits are fields of `Limits`. They rarely need a change. The table `[limits]` of a "
            "[job file](job-file.md#limits) changes them, and so does the option "
            "[`--limit`](cli.md#kadcrawl-crawl): `--limit body_bytes_max=10MB`. The column *set for* has three values:",
            "- **the job**: all peers of the swarm share the value. The first peer sets it, and peers that join get it "
            "with the job. It is at most the value behind the words.\n"
            "- **the machine**: each machine sets its own. It is given again at each start.\n"
            "- **a program**: peers rely on these values of each other, so only a program that embeds a peer sets "
            "them: `Config(data=..., limits=Limits(batch_links_max=100))`.",
            "The limits of pages, such as `max_pages`, are [settings of the job](configuration.md#job).",
            *_of_peer(root),
            "## Fixed limits",
            "These limits are constants of modules. They cannot be set, and are the same on all peers of a release.",
            *_fixed(root),
        )
    }


def _of_peer(root: Path) -> Iterator[str]:
    texts, limits = field_docstrings(root, Limits), Limits()
    rows: list[list[str]] = []
    for entry in dataclasses.fields(Limits):
        if entry.name in GROUPS:
            if rows:
                yield table(_HEADER, rows)
            rows = []
            yield f"### {GROUPS[entry.name]}"
        value = readable(entry.name, getattr(limits, entry.name))
        name = f'<a id="{entry.name}"></a>{code(entry.name)}'
        rows.append([name, value, _set_for(entry.name), paragraphs(texts[entry.name], root)])
    yield table(_HEADER, rows)


def _set_for(name: str) -> str:
    if name in OF_JOB:
        return f"the job, at most {readable(name, OF_JOB[name])}"
    return "the machine" if name in OF_MACHINE else "a program"


def _fixed(root: Path) -> Iterator[str]:
    found = list(constants(root))
    for room, title in ROOMS.items():
        rows = [
            [
                f"[{code(limit.name)}](../../{limit.path})",
                readable(limit.name, limit.value),
                paragraphs(limit.text.removeprefix("... "), root),
            ]
            for limit in found
            if limit.room == room
        ]
        if rows:
            yield f"### {title}"
            yield table(["constant", "value", "meaning and reason"], rows)
