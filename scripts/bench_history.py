"""This benchmark measures a peer's history by mode: time of a link and of a page, and disk bytes of a finished URL.

    python -m scripts.bench_history
    python -m scripts.bench_history --count 1000000 --cells 1000

A store with keys (`exact`) and a store with fingerprints (`bloom`) take the same URLs in turn: accepted, finished, and
met again. *New* and *known* are single looks at a key never met and at a key that is done. *Accept* and *finish* are
the further cost of a new URL, in CPU time with a commit after each thousand. A filter before the exact history could
spare only the look at a new key, and accepting the key writes into the same page of the file anyway.
"""

import asyncio
import json
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from time import process_time
from typing import NamedTuple

import click
from rich.console import Console
from rich.table import Table

from kadcrawl.keys import Key
from kadcrawl.store.bloom.expiring_filter import Period
from kadcrawl.store.journal import sync_files
from kadcrawl.store.store import Store

CELL_BITS = 16
COMMIT_KEYS = 1_000
ASKED_MOST = 100_000
DAY_S = 86_400.0
LINE = b"{}\n"


class StoreCost(NamedTuple):
    """The cost of so many URLs in one store."""

    history: str
    keys: int
    accept_us: float
    finish_us: float
    new_us: float
    known_us: float
    disk_bytes: float
    """Bytes of each finished URL in the journal."""
    wrong: int
    """URLs taken for known that were not."""


async def measure(history: str, keys: Sequence[Key], non_members: Sequence[Key], directory: Path) -> StoreCost:
    """Let a store live through these URLs."""
    store = Store(directory, 0.0, sync_files)
    store.begin(CELL_BITS, Period(DAY_S, 7) if history == "bloom" else None, lambda: 0.0)
    accept_s = finish_s = 0.0
    wrong = 0
    for start in range(0, len(keys), COMMIT_KEYS):
        some = keys[start : start + COMMIT_KEYS]
        began = process_time()
        entries = [store.accept(key, "example.org", f"https://example.org/{key.hex()}", 1, 0) for key in some]
        await store.journal.commit()
        between = process_time()
        for entry in entries:
            if entry is None:
                wrong += 1
            else:
                store.finish(entry, LINE)
        await store.journal.commit()
        accept_s += between - began
        finish_s += process_time() - between
    asked = Random(1).sample(keys, min(ASKED_MOST, len(keys)))
    cost = StoreCost(
        history,
        len(keys),
        1e6 * accept_s / len(keys),
        1e6 * finish_s / len(keys),
        _us_each(store.state, non_members),
        _us_each(store.state, asked),
        _disk_bytes(store) / len(keys),
        wrong,
    )
    store.close()
    return cost


def _us_each(ask: Callable[[Key], object], keys: Sequence[Key]) -> float:
    began = process_time()
    for key in keys:
        ask(key)
    return 1e6 * (process_time() - began) / len(keys)


def _disk_bytes(store: Store) -> int:
    """Return the size of the pages in use, once all is in the database."""
    pages, free, size = (
        store.journal._db.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("page_count", "freelist_count", "page_size")
    )
    return (int(pages) - int(free)) * int(size)


def keys_of(count: int, cells: int, seed: int) -> list[Key]:
    """Return different keys, spread over so many cells."""
    random = Random(seed)
    places = random.sample(range(1 << CELL_BITS), cells)
    return [Key(random.choice(places).to_bytes(2, "big") + random.randbytes(18)) for _ in range(count)]


def table_of(costs: Sequence[StoreCost]) -> Table:
    table = Table("history", "URLs", "accept us", "finish us", "new us", "known us", "disk bytes a URL", "wrong")
    for column in table.columns[1:]:
        column.justify = "right"
    for cost in costs:
        name, keys, *figures, wrong = cost
        table.add_row(name, f"{keys:,}", *(f"{figure:.1f}" for figure in figures), str(wrong))
    return table


@click.command(help=__doc__)
@click.option("--count", default=300_000, show_default=True, type=click.IntRange(1_000), help="URLs.")
@click.option("--cells", default=300, show_default=True, type=click.IntRange(1, 1 << CELL_BITS), help="Cells.")
@click.option("--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), help="Write the figures here.")
def main(count: int, cells: int, json_file: Path | None) -> None:
    keys, strangers = keys_of(count, cells, 1), keys_of(min(ASKED_MOST, count), cells, 2)
    costs = []
    with tempfile.TemporaryDirectory() as directory, Console().status("measuring") as shown:
        for history in ("exact", "bloom"):
            shown.update(f"measuring: {history}, {count:,} URLs")
            place = Path(directory) / history
            place.mkdir()
            costs.append(asyncio.run(measure(history, keys, strangers, place)))
    Console().print(table_of(costs))
    if json_file is not None:
        json_file.write_text(json.dumps([cost._asdict() for cost in costs], indent=1) + "\n")


if __name__ == "__main__":
    main()
