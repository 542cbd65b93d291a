"""This benchmark measures the bytes of a URL in the bounded history of a swarm, beside the bytes of one filter (P4 4).

    python -m scripts.bench_swarm_memory

The paper has one filter for each day, for all URLs. A swarm has filters for each of 65,536 cells, at three peers, with
their labels and objects. Here the store of one peer keeps some cells of swarms of several sizes, for three days. All
memory that Python gave to the store counts, and all pages of its journal. Then the same keys go into one filter a day.

Tests: tests/scripts/test_bench_swarm_memory.py
"""

import asyncio
import gc
import json
import tempfile
import tracemalloc
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from typing import Final

import click
from rich.console import Console
from rich.table import Table

from kadcrawl.keys import Key
from kadcrawl.store.bloom.expiring_filter import ExpiringFilter, Period
from kadcrawl.store.store import Store

CELL_BITS: Final = 16
DAY_S: Final = 86_400.0
DAYS: Final = 3
COPIES: Final = 3
"""The owner and two backups."""
URLS_A_DAY: Final = (1_000_000, 10_000_000, 100_000_000, 1_000_000_000)
KEYS_MOST: Final = 20_000
"""Keys of a day that are measured, at most: the cells are as many as these fill."""
CELLS_MOST: Final = 1_000
COMMIT_KEYS: Final = 10_000


@dataclass(frozen=True, slots=True)
class SwarmMemory:
    """The bytes of a URL in a swarm of one size. A URL that is done on a day is kept for three days."""

    urls_a_day: int
    """Of the whole swarm."""
    keys_a_cell: float
    """New keys of a cell in a day."""
    one_filter: float
    """Bytes of a URL if one filter had all keys of a day."""
    peer: float
    """Bytes of memory of a URL at one peer that holds it."""
    swarm: float
    """Bytes of memory of a URL in the whole swarm: at all peers that hold it."""
    peer_disk: float
    """Bytes of the journal of a URL at one peer."""


async def of_store(keys: Sequence[Sequence[Key]], directory: Path) -> tuple[int, int]:
    """Return the bytes of memory and of disk that a store takes for these keys of each day."""
    now = 0.0
    store = Store(directory, 0.01)
    store.begin(CELL_BITS, Period(DAY_S, DAYS), lambda: now)
    await store.journal.commit()
    disk = _disk_bytes(store)
    gc.collect()
    tracemalloc.start()
    for day, new in enumerate(keys):
        now = day * DAY_S
        for number, key in enumerate(new, 1):
            store.learn_done(key)
            if number % COMMIT_KEYS == 0:
                await store.journal.commit()
    await store.journal.commit()
    gc.collect()
    memory, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    disk = _disk_bytes(store) - disk
    store.close()
    return memory, disk


def of_one_filter(keys: Sequence[Sequence[Key]]) -> int:
    """Return the bytes of memory of one filter a day for these keys."""
    gc.collect()
    tracemalloc.start()
    seen = ExpiringFilter(Period(DAY_S, DAYS))
    for day, new in enumerate(keys):
        for key in new:
            seen.add(key, day * DAY_S)
    gc.collect()
    memory, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return memory


def measure(urls_a_day: int, keys_most: int = KEYS_MOST) -> SwarmMemory:
    """Return the bytes of a URL in a swarm that finishes so many URLs a day."""
    keys_a_cell = urls_a_day / 2**CELL_BITS
    cells = max(1, min(CELLS_MOST, round(keys_most / keys_a_cell)))
    random = Random(urls_a_day)
    places = random.sample(range(2**CELL_BITS), cells)
    count = round(cells * keys_a_cell)
    keys = [
        [Key(random.choice(places).to_bytes(2, "big") + random.randbytes(18)) for _ in range(count)]
        for _ in range(DAYS)
    ]
    with tempfile.TemporaryDirectory(prefix="kadcrawl-memory-") as directory:
        memory, disk = asyncio.run(of_store(keys, Path(directory)))
    alone = of_one_filter(keys)
    urls = count * DAYS
    peer = memory / urls
    return SwarmMemory(urls_a_day, keys_a_cell, alone / urls, peer, COPIES * peer, disk / urls)


def _disk_bytes(store: Store) -> int:
    """Return the size of the pages in use."""
    pages, free, size = (
        store.journal._db.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("page_count", "freelist_count", "page_size")
    )
    return (int(pages) - int(free)) * int(size)


def table_of(found: Sequence[SwarmMemory]) -> Table:
    """Return the figures as a table for the terminal."""
    table = Table("URLs a day", "new keys of a cell", "one filter", "a peer", "the swarm", "disk of a peer")
    for one in found:
        figures = (one.keys_a_cell, one.one_filter, one.peer, one.swarm, one.peer_disk)
        table.add_row(f"{one.urls_a_day:,}", *(f"{figure:,.1f}" for figure in figures))
    return table


@click.command(help=__doc__)
@click.option("--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), help="Write the figures here.")
def main(json_file: Path | None) -> None:
    found = [measure(urls) for urls in URLS_A_DAY]
    Console().print(table_of(found))
    if json_file is not None:
        json_file.write_text(json.dumps([asdict(one) for one in found], indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
