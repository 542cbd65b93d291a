"""Stores in a directory of their test, with numbered entries and lines."""

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from random import Random

from kadcrawl.keys import Key, site_hash
from kadcrawl.settings.limits import Limits
from kadcrawl.store.frontier_entry import FrontierEntry
from kadcrawl.store.journal import sync_files
from kadcrawl.store.log_parts import log_lines
from kadcrawl.store.store import Store


def opened(
    directory: Path, sync: Callable[[Iterable[int]], None] = sync_files, pages_bytes_max: int = Limits().pages_bytes_max
) -> Store:
    """Return a store that has begun. Raise the error of a store that cannot begin."""
    store = Store(directory, 0.0, sync, Limits(pages_bytes_max=pages_bytes_max))
    try:
        store.begin(16)
    except BaseException:
        store.close()
        raise
    return store


def key(number: int) -> Key:
    """Return the key whose bytes are this number."""
    return Key(number.to_bytes(20, "big"))


def accept(store: Store, number: int, site: str = "a.example", depth: int = 0) -> FrontierEntry:
    """Add the URL of a number to the store, as a pending entry."""
    entry = store.accept(key(number), site, f"http://{site}/{number}", depth, 0)
    assert entry is not None
    return entry


def line(number: int) -> bytes:
    """Return the page line of a number."""
    return json.dumps({"number": number}).encode() + b"\n"


def written(directory: Path) -> list[int]:
    """Return the numbers of the page lines in a directory, in order."""
    return [json.loads(text)["number"] for text in log_lines(directory / "pages.jsonl")]


SITE_HASH = site_hash("example.org")


def site_keys(name: object, count: int) -> list[Key]:
    """Keys of one site, as most of a cell's are."""
    random = Random(str(name))
    return [Key(SITE_HASH + random.randbytes(8)) for _ in range(count)]
