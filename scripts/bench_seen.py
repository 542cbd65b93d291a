"""This benchmark compares an expiring filter with the sets of Scrapy: time and bytes of a URL. The claims are checked.

    python -m scripts.bench_seen
    python -m scripts.bench_seen --count 10000000 --engine rbloom

Each of our sets has lived through two whole periods before it is measured, so that its filters have the expected size.
The first period, in which they grow, has a row of its own. *New* are keys never added, *known* the youngest keys. CPU
time, medians of pieces of the keys, with the loop around each call in it. Then the bytes of small cells, with all
objects, as there are 65,536 cells.
"""

import json
import sys
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from random import Random
from statistics import median
from sys import getsizeof
from time import process_time
from typing import TypeVar

import click
from rich.console import Console
from rich.table import Table

from kadcrawl.keys import Key, site_hash
from kadcrawl.store.bloom.encoding import to_bytes
from kadcrawl.store.bloom.engines import ENGINES
from kadcrawl.store.bloom.expiring_filter import ExpiringFilter, Period

COUNTS = (100_000, 1_000_000)
PIECES = 5
ASKED_MOST = 100_000
"""Keys asked for: more say nothing new."""
SIZES = (0, 1, 20, 256, 257, 1_024)
CELLS = 200
DAY_S = 86_400.0
WEEK = 7
ERROR = 1e-4
BYTES_MOST = 2.5
"""Bytes of a URL in an epoch filter with an error of 1e-4."""
CHECK_MOST_US = 3.0

One = TypeVar("One")
Claim = tuple[str, bool]
"""A claim with its figure, and whether the claim holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterCost:
    """The cost of one set of so many keys."""

    name: str
    keys: int
    add_us: float
    new_us: float
    known_us: float
    bytes_per_key: float
    wrong: float
    """Share of new keys taken for known."""
    epoch_filters: int = 0
    """Live epoch filters, or 0 for a set that does not expire."""
    grown: bool = False
    """True if its filters grew, as the number of keys was unknown."""


def new_keys(count: int, name: str) -> list[Key]:
    """Return keys of one site, as most of a cell are."""
    random, site = Random(name), site_hash("example.org")
    return [Key(site + random.randbytes(8)) for _ in range(count)]


def us_per_key(use: Callable[[Sequence[One]], object], keys: Sequence[One]) -> float:
    """Return the time of a key: the median over pieces."""
    ends = [len(keys) * number // PIECES for number in range(PIECES + 1)]
    took = []
    for piece in (keys[begin:end] for begin, end in pairwise(ends)):
        began = process_time()
        use(piece)
        took.append((process_time() - began) / len(piece))
    return 1e6 * median(took)


def of_ours(engine: str, count: int, epochs: int, days: int) -> FilterCost:
    """Measure a set with so many keys in all live slices together, on the last of the days."""
    seen = ExpiringFilter(Period(epoch_s=DAY_S, epochs=epochs, error=ERROR, filters=engine))
    keys: list[Key] = []
    add_us = 0.0
    for day in range(days):
        now = day * DAY_S
        keys = new_keys(count // epochs, f"day {day}")

        def add(piece: Sequence[Key], now: float = now) -> None:
            for key in piece:
                seen.add(key, now)

        add_us = us_per_key(add, keys)
    now = (days - 1) * DAY_S
    wrong = 0

    def check(piece: Sequence[Key]) -> None:
        nonlocal wrong
        for key in piece:
            wrong += seen.contains(key, now)

    known_us = us_per_key(check, keys[-ASKED_MOST:])
    wrong = 0
    asked = new_keys(ASKED_MOST, "new")
    new_us = us_per_key(check, asked)
    live = seen.live(now)
    size = len(to_bytes(seen, now)) / (live * (count // epochs))
    return FilterCost(
        name=engine, keys=count, add_us=add_us, new_us=new_us, known_us=known_us, bytes_per_key=size,
        wrong=wrong / len(asked), epoch_filters=live, grown=days <= epochs,
    )  # fmt: skip


def of_a_set(name: str, count: int, fingerprint: Callable[[Key], One]) -> FilterCost:
    """Measure a plain set of fingerprints that are made before."""
    keys = [fingerprint(key) for key in new_keys(count, "set")]
    new = [fingerprint(key) for key in new_keys(ASKED_MOST, "new")]
    kept: set[One] = set()

    def add(piece: Sequence[One]) -> None:
        for one in piece:
            kept.add(one)

    def check(piece: Sequence[One]) -> None:
        for one in piece:
            one in kept  # noqa: B015

    add_us = us_per_key(add, keys)
    new_us, known_us = us_per_key(check, new), us_per_key(check, keys[-ASKED_MOST:])
    size = getsizeof(kept) + sum(map(getsizeof, kept))
    return FilterCost(
        name=name, keys=count, add_us=add_us, new_us=new_us, known_us=known_us, bytes_per_key=size / len(kept), wrong=0
    )


def cell_bytes(keys: int) -> float:
    """Return the bytes of a cell that met so many keys today: all of Python's memory, so not rbloom's."""
    period = Period(epoch_s=DAY_S, epochs=WEEK, error=ERROR)
    fill = new_keys(keys, "cell")
    ExpiringFilter(period).add(Key(bytes(20)), 0.0)  # What is made once for all cells.
    tracemalloc.start()
    cells = [ExpiringFilter(period) for _ in range(CELLS)]
    for cell in cells:
        for key in fill:
            cell.add(key, 0.0)
    taken = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return taken / len(cells)


def costs(count: int, engines: Sequence[str]) -> Iterator[FilterCost]:
    """Measure all that is compared."""
    yield of_a_set("set of 40 hex digits (Scrapy)", count, bytes.hex)
    yield of_a_set("set of 20 bytes", count, bytes)
    for engine in engines:
        yield of_ours(engine, count, epochs=1, days=1)
        yield of_ours(engine, count, epochs=1, days=2)
        yield of_ours(engine, count, epochs=WEEK, days=2 * WEEK)


def claims(measured: Sequence[FilterCost]) -> Iterator[Claim]:
    """Check the figures against their aims."""
    for one in measured:
        if not one.epoch_filters or one.grown:
            continue
        what = f"{one.name}, {one.keys:,} URLs, {one.epoch_filters} live"
        slowest = max(one.new_us, one.known_us)
        yield f"{what}: a check takes at most {CHECK_MOST_US:g} us: {slowest:.2f}", slowest <= CHECK_MOST_US
        deviation = (ERROR / ASKED_MOST) ** 0.5
        yield f"{what}: at most 1 in 10,000 is wrong: {one.wrong:.1e}", one.wrong <= ERROR + 3 * deviation
        if one.epoch_filters == 1:
            size = one.bytes_per_key
            yield f"{what}: a URL has at most {BYTES_MOST:g} bytes: {size:.2f}", size <= BYTES_MOST


def table_of(measured: Sequence[FilterCost]) -> Table:
    table = Table("", "URLs", "slices", "adds/s", "new/s", "known/s", "bytes/URL", "wrong", "add", "check", "bytes",
                  title="Ratios: to Scrapy's set; check: the slower of new and known")  # fmt: skip
    for column in table.columns[1:]:
        column.justify = "right"
    scrapy: FilterCost | None = None
    for one in measured:
        if scrapy is None or scrapy.keys != one.keys:
            scrapy = one
            table.add_section()
        table.add_row(
            one.name + (", growing" if one.grown else ""), f"{one.keys:,}", str(one.epoch_filters or "-"),
            *(f"{1e6 / us:,.0f}" for us in (one.add_us, one.new_us, one.known_us)),
            f"{one.bytes_per_key:.2f}", f"{one.wrong:.1e}" if one.epoch_filters else "0",
            f"{one.add_us / scrapy.add_us:.3g}",
            f"{max(one.new_us, one.known_us) / max(scrapy.new_us, scrapy.known_us):.3g}",
            f"{one.bytes_per_key / scrapy.bytes_per_key:.3g}",
        )  # fmt: skip
    return table


def cell_table() -> Table:
    table = Table("keys of the day", *(f"{keys:,}" for keys in SIZES), title="Bytes of a small cell, pybloom")
    sizes = [*map(cell_bytes, SIZES)]
    table.add_row("bytes", *(f"{size:,.0f}" for size in sizes))
    table.add_row(
        "of a key", *(f"{size / keys:,.1f}" if keys else "-" for keys, size in zip(SIZES, sizes, strict=True))
    )
    return table


@click.command(help=__doc__)
@click.option("--count", "counts", type=click.IntRange(10_000), multiple=True, default=COUNTS, show_default=True)
@click.option("--engine", "engines", type=click.Choice(list(ENGINES)), multiple=True, default=list(ENGINES))
@click.option("--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), help="Write the figures here.")
def main(counts: tuple[int, ...], engines: tuple[str, ...], json_file: Path | None) -> None:
    measured: list[FilterCost] = []
    for count in counts:
        print(f"bench_seen: {count:,} URLs", file=sys.stderr, flush=True)
        measured += costs(count, engines)
    Console(width=140).print(table_of(measured), cell_table())
    held = [*claims(measured)]
    for text, holds in held:
        print("ok  " if holds else "FAIL", text)
    if json_file is not None:
        json_file.write_text(json.dumps([asdict(cost) for cost in measured], indent=1) + "\n")
    sys.exit(not all(holds for _, holds in held))


if __name__ == "__main__":
    main()
