"""This benchmark measures what a URL costs in the journal while very many URLs wait: CPU time and bytes of disk.

    python -m scripts.bench_frontier
    python -m scripts.bench_frontier --pending 100000 --sites 5000

A store takes so many pending URLs of equally large sites. Then it accepts new URLs, is asked again for known URLs, and
finishes pending URLs, each in random order and with a commit after every few hundred. CPU seconds count the commits and
the checkpoints. No page is fetched, so only the costs of the journal count. The claims are checked.
"""

import asyncio
import json
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from time import process_time
from typing import TypeVar

import click
from rich.console import Console
from rich.table import Table

from kadcrawl.keys import Key, site_hash, url_key
from kadcrawl.store.store import Store

COMMITTED = 500
"""Number of calls between two commits."""
BYTES_MOST = 140.0
"""Bytes of disk of a pending URL."""
FLAT_MOST = 2.0
"""The cost of a URL with the most pending URLs, by its cost with the fewest."""
LINE = b'{"url":"http://site.example/p/0.html","status":200}\n'

One = TypeVar("One")


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontierCost:
    """The cost of one URL, with so many pending."""

    pending: int
    sites: int
    accept_us: float
    known_us: float
    finish_us: float
    bytes_per_url: float


class NumberedUrls:
    """URLs by number, on equally large sites."""

    def __init__(self, sites: int) -> None:
        self._sites = [f"127.20.{number // 250}.{number % 250}:9000" for number in range(sites)]
        self._hashes = [site_hash(site) for site in self._sites]

    def at(self, number: int) -> tuple[Key, str, str]:
        """Return the key, the site and the text of a URL."""
        place = number % len(self._sites)
        site = self._sites[place]
        url = f"http://{site}/p/{number}.html"
        return url_key(self._hashes[place], url), site, url


async def us_per_call(store: Store, use: Callable[[One], object], values: Iterable[One]) -> float:
    """Return the CPU microseconds of one call, with the commits."""
    began, calls = process_time(), 0
    for value in values:
        use(value)
        calls += 1
        if calls % COMMITTED == 0:
            await store.journal.commit()
    await store.journal.commit()
    return (process_time() - began) / max(1, calls) * 1e6


async def cost(directory: Path, pending: int, sites: int) -> FrontierCost:
    """Measure one store in an empty directory."""
    store, urls, random = Store(directory, 0.0), NumberedUrls(sites), Random("frontier")
    store.begin(16)

    def accept(url: tuple[Key, str, str]) -> None:
        store.accept(*url, 5, 0)

    def finish(key: Key) -> None:
        entry = store.entry(key)
        assert entry is not None
        store.finish(entry, LINE)

    await us_per_call(store, accept, (urls.at(number) for number in range(pending)))
    counted = min(pending // 4, 100_000)
    size = "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()"
    bytes_per_url = store.journal.row((int,), size)[0] / pending
    new = [urls.at(number) for number in range(pending, pending + counted)]
    random.shuffle(new)
    known = [urls.at(random.randrange(pending)) for _ in range(counted)]
    done = [urls.at(number)[0] for number in random.sample(range(pending), counted // 4)]
    figures = FrontierCost(
        pending=pending,
        sites=sites,
        accept_us=await us_per_call(store, accept, new),
        known_us=await us_per_call(store, accept, known),
        finish_us=await us_per_call(store, finish, done),
        bytes_per_url=bytes_per_url,
    )
    store.close()
    return figures


def claims(costs: list[FrontierCost]) -> Iterator[tuple[str, bool]]:
    """Yield each claim with its figure, and whether the claim holds."""
    for one in costs:
        text = f"{one.bytes_per_url:.0f} bytes of disk a URL with {one.pending:,} pending (at most {BYTES_MOST:.0f})"
        yield text, one.bytes_per_url <= BYTES_MOST
    few, many = costs[0], costs[-1]
    for name in ("accept_us", "finish_us") if len(costs) > 1 else ():
        ratio = getattr(many, name) / getattr(few, name)
        text = f"{name} with {many.pending:,} pending is {ratio:.2f} of that with {few.pending:,} (at most {FLAT_MOST})"
        yield text, ratio <= FLAT_MOST


def table_of(costs: list[FrontierCost]) -> Table:
    table = Table("pending URLs", "sites", "accept, us", "known, us", "read and finish, us", "bytes of disk")
    for one in costs:
        table.add_row(
            f"{one.pending:,}",
            f"{one.sites:,}",
            *(f"{figure:.1f}" for figure in (one.accept_us, one.known_us, one.finish_us)),
            f"{one.bytes_per_url:.0f}",
        )
    return table


@click.command(help=__doc__)
@click.option("--pending", type=click.IntRange(1_000), multiple=True, default=(100_000, 1_500_000), show_default=True)
@click.option("--sites", type=click.IntRange(1, 60_000), default=200, show_default=True)
@click.option("--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), help="Write the figures here.")
def main(pending: tuple[int, ...], sites: int, json_file: Path | None) -> None:
    costs: list[FrontierCost] = []
    for count in pending:
        print(f"bench_frontier: {count:,} URLs", file=sys.stderr, flush=True)
        with TemporaryDirectory() as directory:
            costs.append(asyncio.run(cost(Path(directory), count, sites)))
    Console(width=120).print(table_of(costs))
    held = [*claims(costs)]
    for text, holds in held:
        print("ok  " if holds else "FAIL", text)
    if json_file is not None:
        json_file.write_text(json.dumps([asdict(one) for one in costs], indent=1) + "\n")
    sys.exit(not all(holds for _, holds in held))


if __name__ == "__main__":
    main()
