"""This benchmark measures what a URL costs in the journal while very many URLs wait: CPU time and bytes of disk.

    python -m scripts.bench_frontier
    python -m scripts.bench_frontier --pending 100000 --sites 5000

A store takes so many pending URLs of equally large sites. Then it accepts new URLs, is asked again for known URLs, and
finishes pending URLs, each in random order and with a commit after every few hundred. CPU seconds count the commits and
the checkpoints. No page is fetched, so only the costs of the journal count. The claims are checked.

A second table has the parts of that cost: the SQL statements by themselves, with commits and checkpoints, the same
writes through the store, which adds Python, digests of cells and syncs, then the line of a page, and the read of the
entry. The statements run in a connection of their own at the end.
"""

import asyncio
import json
import sqlite3
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from time import process_time
from typing import TypeVar

import click
from rich.console import Console
from rich.table import Table

from kadcrawl.keys import SITE_BYTES, Key, site_hash, url_key
from kadcrawl.settings.limits import Limits
from kadcrawl.store.frontier_entry import FrontierEntry
from kadcrawl.store.frontier_table import ACCEPT, DELETE_AT, FINISH, INSERT, SEQ_RESERVED
from kadcrawl.store.schema import DONE, PENDING
from kadcrawl.store.store import Store
from kadcrawl.store.wal import Wal

COMMITTED = 500
"""Number of calls between two commits."""
BYTES_MOST = 140.0
"""Bytes of disk of a pending URL."""
FLAT_MOST = 2.0
"""The cost of a URL with the most pending URLs, by its cost with the fewest."""
DEPTH = 5
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
    """Microseconds to read an entry and finish it with a line."""
    bytes_per_url: float
    accept_sql_us: float = 0.0
    """Microseconds of the SQL statements that accept a URL."""
    accept_commit_us: float = 0.0
    """Microseconds of these statements with their commits."""
    finish_sql_us: float = 0.0
    finish_commit_us: float = 0.0
    finish_no_line_us: float = 0.0
    """Microseconds to finish an entry that the caller has, without a line."""
    finish_line_us: float = 0.0
    """Microseconds to finish an entry that the caller has, with a line."""


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


class Statements:
    """The SQL of accepted and finished URLs in a connection of its own."""

    def __init__(self, journal: Path) -> None:
        self._db = sqlite3.connect(journal, isolation_level=None)
        cache = f"cache_size=-{Limits().journal_cache_bytes // 1024}"
        for pragma in ("journal_mode=WAL", "synchronous=NORMAL", "wal_autocheckpoint=0", cache):
            self._db.execute(f"PRAGMA {pragma}").fetchone()
        self._db.execute("SELECT 1 FROM history LIMIT 1").fetchone()  # Makes the WAL.
        self._wal = Wal(journal)

    def accept(self, entry: FrontierEntry) -> None:
        depth, seq, key, site, url, *rest = entry
        self._db.execute(ACCEPT, (key, PENDING, depth, seq))
        self._db.execute(INSERT, (depth, seq, key[:SITE_BYTES], key[SITE_BYTES:], site, url, *rest))

    def finish(self, entry: FrontierEntry) -> None:
        depth, seq, key = entry[:3]
        self._db.execute(FINISH, (DONE, key, PENDING, depth, seq))
        self._db.execute(DELETE_AT, (key[:SITE_BYTES], depth, seq))

    def us_per_call(
        self, use: Callable[[FrontierEntry], None], entries: Sequence[FrontierEntry]
    ) -> tuple[float, float]:
        """Return the CPU microseconds of one call, without and with the commits."""
        calls = commits = 0.0
        for at in range(0, len(entries), COMMITTED):
            began = process_time()
            self._db.execute("BEGIN")
            for entry in entries[at : at + COMMITTED]:
                use(entry)
            called = process_time()
            self._db.execute("COMMIT")
            self._wal.restart(self._db)
            if self._wal.is_large:
                self._wal.checkpoint()
            calls, commits = calls + called - began, commits + process_time() - called
        return calls / len(entries) * 1e6, (calls + commits) / len(entries) * 1e6

    def close(self) -> None:
        self._wal.close()
        self._db.close()


async def cost(directory: Path, pending: int, sites: int) -> FrontierCost:
    """Measure one store in an empty directory."""
    store, urls, random = Store(directory, 0.0), NumberedUrls(sites), Random("frontier")
    store.begin(16)

    def accept(url: tuple[Key, str, str]) -> None:
        store.accept(*url, DEPTH, 0)

    def finish(key: Key) -> None:
        entry = store.entry(key)
        assert entry is not None
        store.finish(entry, LINE)

    def entry_at(number: int) -> FrontierEntry:
        return FrontierEntry(DEPTH, number + 1, *urls.at(number), 0, 0, 0.0)

    await us_per_call(store, accept, (urls.at(number) for number in range(pending)))
    counted = min(pending // 4, 100_000)
    size = "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()"
    bytes_per_url = store.journal.row((int,), size)[0] / pending
    new = [urls.at(number) for number in range(pending, pending + counted)]
    random.shuffle(new)
    known = [urls.at(random.randrange(pending)) for _ in range(counted)]
    done = random.sample(range(pending), counted)
    part = counted // 4
    no_line, with_line, by_sql = ([entry_at(number) for number in done[part * at :][:part]] for at in (1, 2, 3))
    accept_us, known_us = await us_per_call(store, accept, new), await us_per_call(store, accept, known)
    finish_us = await us_per_call(store, finish, [urls.at(number)[0] for number in done[:part]])
    no_line_us = await us_per_call(store, lambda entry: store.finish_elsewhere(entry.key, None, 0, entry), no_line)
    line_us = await us_per_call(store, lambda entry: store.finish(entry, LINE), with_line)
    left = pending + counted - 3 * part
    assert store.pending == left, "each call has changed one record"
    store.close()
    first = pending + 2 * SEQ_RESERVED + counted
    added = [entry_at(number) for number in range(first, first + counted)]
    random.shuffle(added)
    with closing(Statements(store.journal.path)) as statements:
        accept_sql_us, accept_commit_us = statements.us_per_call(statements.accept, added)
        finish_sql_us, finish_commit_us = statements.us_per_call(statements.finish, by_sql)
    with closing(sqlite3.connect(store.journal.path)) as db:
        (rows,) = db.execute("SELECT count(*) FROM frontier").fetchone()
        assert rows == left + counted - part, "each statement has changed one row"
    return FrontierCost(
        pending=pending,
        sites=sites,
        accept_us=accept_us,
        known_us=known_us,
        finish_us=finish_us,
        bytes_per_url=bytes_per_url,
        accept_sql_us=accept_sql_us,
        accept_commit_us=accept_commit_us,
        finish_sql_us=finish_sql_us,
        finish_commit_us=finish_commit_us,
        finish_no_line_us=no_line_us,
        finish_line_us=line_us,
    )


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


def parts_of(costs: list[FrontierCost]) -> Table:
    """Return the parts of the cost of a URL, each with those before."""
    table = Table("CPU us of a URL", *(f"{what}, {one.pending:,}" for one in costs for what in ("accept", "finish")))
    parts: tuple[tuple[str, str, str], ...] = (
        ("SQL statements", "accept_sql_us", "finish_sql_us"),
        ("with commits and checkpoints", "accept_commit_us", "finish_commit_us"),
        ("through the store, with digests and syncs", "accept_us", "finish_no_line_us"),
        ("with a page line", "", "finish_line_us"),
        ("with the read of the entry", "", "finish_us"),
    )
    for name, *fields in parts:
        table.add_row(name, *(f"{getattr(one, field):.1f}" if field else "" for one in costs for field in fields))
    return table


@click.command(help=__doc__)
@click.option("--pending", type=click.IntRange(1_000), multiple=True, default=(300_000, 1_500_000), show_default=True)
@click.option("--sites", type=click.IntRange(1, 60_000), default=200, show_default=True)
@click.option("--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), help="Write the figures here.")
def main(pending: tuple[int, ...], sites: int, json_file: Path | None) -> None:
    costs: list[FrontierCost] = []
    for count in pending:
        print(f"bench_frontier: {count:,} URLs", file=sys.stderr, flush=True)
        with TemporaryDirectory() as directory:
            costs.append(asyncio.run(cost(Path(directory), count, sites)))
    Console(width=120).print(table_of(costs), parts_of(costs))
    held = [*claims(costs)]
    for text, holds in held:
        print("ok  " if holds else "FAIL", text)
    if json_file is not None:
        json_file.write_text(json.dumps([asdict(one) for one in costs], indent=1) + "\n")
    sys.exit(not all(holds for _, holds in held))


if __name__ == "__main__":
    main()
