"""The peers' CPU time by room of kadcrawl, from cProfile dumps. No I/O but the dumps.

A function's own time belongs to the room of its file. Built-in functions have no file, and functions of the standard
library and of other packages serve many rooms: their time goes to their callers, in proportion, until a room is
reached. So aiohttp's client is in "fetch" or "peer messages" by its caller. The event loop calls only the code for
arriving data, which stands for itself. All else that only the event loop calls stays with the event loop.
"""

import pstats
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

LOOP: Final = "event loop"
ROOMS: Final = (
    ("kadcrawl/crawl/fetch/fetcher", "fetch"),
    ("kadcrawl/crawl/fetch/address_guard", "fetch"),
    ("kadcrawl/crawl/fetch/content_encoding", "fetch"),
    ("kadcrawl/crawl/robots/rules", "robots"),
    ("kadcrawl/crawl/content/charset", "parse"),
    ("kadcrawl/crawl/content/html_links", "parse"),
    ("kadcrawl/crawl/links", "parse"),
    ("kadcrawl/crawl/scope/scope", "URLs"),
    ("kadcrawl/crawl/scope/partitioner", "URLs"),
    ("kadcrawl/urls", "URLs"),
    ("kadcrawl/keys", "URLs"),
    ("kadcrawl/crawl/output/warc", "WARC and page log"),
    ("kadcrawl/crawl/output/outputs", "WARC and page log"),
    ("kadcrawl/store/line_log", "WARC and page log"),
    ("kadcrawl/store/", "history"),
    ("kadcrawl/replication/", "history"),
    ("kadcrawl/crawl/links/forwarder", "peer messages"),
    ("kadcrawl/link/", "peer messages"),
    ("kadcrawl/overlay/", "overlay"),
    ("kadcrawl/crawl/", "crawl loop and frontier"),
    ("kadcrawl/", "the rest of kadcrawl"),
    ("/ada_url/", "URLs"),
    ("/aiohttp/client_proto", "HTTP that arrives (aiohttp, most of it fetch)"),
    ("/aiohttp/web", "peer messages"),
    ("/asyncio/", LOOP),
)
"""(part of a file's path, room). The first match counts."""
JOURNAL: Final = frozenset({"run", "commit", "_commit", "durable", "set", "sync_files", "_checkpoint"})
"""Functions of the store that make writes durable. The other functions are history."""
REPOSITORY: Final = f"{Path(__file__).resolve().parents[1].as_posix()}/"
PASSES_MAX: Final = 30
"""Calls in a row through which time is handed up to a room."""

Function = tuple[str, int, str]


class Share(NamedTuple):
    """One line of a profile."""

    name: str
    seconds: float
    part: float
    """Of all time, 0 to 1."""


def rooms_of(dumps: Sequence[Path]) -> list[Share]:
    """Return the time of each room in all these profiles, most first. Raises OSError when one is not there."""
    stats = _stats(dumps)
    waiting = {function: own_s for function, (_, _, own_s, _, _) in stats.items()}
    seconds: defaultdict[str, float] = defaultdict(float)
    for _ in range(PASSES_MAX):
        handed: defaultdict[Function, float] = defaultdict(float)
        for function, own_s in waiting.items():
            room = _room(function)
            callers = stats[function][4] if function in stats else {}
            # By the cumulative time a caller spent in it; by calls where that is too short to be measured.
            weights = {caller: spent[3] or spent[0] * 1e-9 for caller, spent in callers.items() if caller != function}
            if room is not None or not weights:
                seconds[room or LOOP] += own_s
                continue
            total = sum(weights.values())
            for caller, weight in weights.items():
                handed[caller] += own_s * weight / total
        waiting = handed
    seconds[LOOP] += sum(waiting.values())
    return _shares(seconds)


def functions_of(dumps: Sequence[Path], most: int) -> list[Share]:
    """Return the functions with the most time of their own, most first."""
    seconds = {_function_name(function): own_s for function, (_, _, own_s, _, _) in _stats(dumps).items()}
    whole = sum(seconds.values())
    return [share._replace(part=share.seconds / whole) for share in _shares(seconds)[:most]]


def _stats(dumps: Sequence[Path]) -> dict[Function, Any]:
    stats: dict[Function, Any] = pstats.Stats(*map(str, dumps)).stats  # type: ignore[attr-defined]
    return stats


def _shares(seconds: dict[str, float]) -> list[Share]:
    whole = sum(seconds.values()) or 1.0
    found = [Share(name, own_s, own_s / whole) for name, own_s in seconds.items()]
    return sorted(found, key=lambda share: -share.seconds)


def _room(function: Function) -> str | None:
    file = function[0].replace("\\", "/")
    # The directory this stands in may be called kadcrawl as well.
    file = file[file.rfind("/site-packages/") :] if "/site-packages/" in file else file.removeprefix(REPOSITORY)
    if "kadcrawl/store/store" in file and function[2] in JOURNAL:
        return "journal"
    return next((room for part, room in ROOMS if part in file), None)


def _function_name(function: Function) -> str:
    file, line, name = function
    return name if file == "~" else f"{Path(file).parent.name}/{Path(file).name}:{line} {name}"
