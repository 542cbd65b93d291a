"""This benchmark checks that work follows the moved records, not the stored records (P1 1.3), for joins and leaves.

    python -m scripts.bench_moves
    python -m scripts.bench_moves --records 10000 --peers 8 --peers 50 --json moves.json

First the decisions: the cells that all peers of a swarm examine when a peer comes or goes, beside the cells that move
(`moving_cells`). Then the records of some cells, from one real store to another of growing size (`moving_records`).
Fails if a claim does not hold.
"""

import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import product
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import click
from rich.console import Console
from rich.table import Table

from kadcrawl.keys import Cell
from scripts.moving_cells import CELL_BITS, CellMoves, cell_moves
from scripts.moving_records import URLS_PER_SITE, RecordMoves, record_moves

RECORDS = (10_000, 100_000, 1_000_000)
PEERS = (8, 50, 200, 1000)
EVENTS = 10
"""Joins, and as many leaves, of each swarm: the luck of one ID says little."""
MOVING = 5_000
"""Records moved between two stores."""
LOOKS_MAX = 2.0
"""Cells examined per cell moved."""
GROWTH_MAX = 2.0
"""CPU per moved record in the greatest store, as against the smallest: 100 times the records, some noise."""

Claim = tuple[str, bool]
"""A claim with its figure, and whether the claim holds."""


def cells_of(records: int, random: Random) -> dict[Cell, int]:
    """Return how many records lie in each cell that has any: those of a site lie in one, wherever that is."""
    sites = Counter(Cell(random.getrandbits(CELL_BITS)) for _ in range(records // URLS_PER_SITE))
    return {cell: URLS_PER_SITE * count for cell, count in sites.items()}


def claims(cells: Sequence[CellMoves], records: Sequence[RecordMoves]) -> Iterator[Claim]:
    """Check the claims about counts."""
    wrong = sum(one.wrong for one in cells)
    yield f"exactly the cells whose holders changed move: {wrong} others", wrong == 0
    for event in ("join", "leave"):
        some = [one for one in cells if one.event == event]
        looks, moved = sum(one.looks_held for one in some), sum(one.moved_held for one in some)
        text = f"{event}: holders examine at most {LOOKS_MAX:g} cells for one that moves: {looks / moved:.2f}"
        yield text, looks <= LOOKS_MAX * moved
        looks, moved = sum(one.looks_watched for one in some), sum(one.moved_watched for one in some)
        text = f"{event}: so do the owners who watch over the backups: {looks / moved:.2f}"
        yield text, looks <= LOOKS_MAX * moved
    sent, least = sum(one.messages for one in cells), sum(one.messages_least for one in cells)
    yield f"leave: one message for each successor and batch: {sent:,} = {least:,}", sent == least
    examined, moved = sum(one.examined for one in records), sum(one.moved for one in records)
    yield f"records examined = records moved: {examined:,} = {moved:,}", examined == moved
    wrong = sum(one.wrong for one in records)
    yield f"what has moved is what was there: {wrong} cells are not", wrong == 0


def time_claims(records: Sequence[RecordMoves]) -> Iterator[Claim]:
    """Check that the time of a moved record does not grow with the store."""
    by_event = defaultdict(list)
    for one in records:
        by_event[one.event].append(one)
    for event, some in by_event.items():
        some.sort(key=lambda one: one.stored)
        first, last = _us_per_record(some[0]), _us_per_record(some[-1])
        text = (
            f"{event}: CPU per moved record is flat from {some[0].stored:,} to {some[-1].stored:,} stored: "
            f"{first:.0f} to {last:.0f} us"
        )
        yield text, last <= GROWTH_MAX * first


def _us_per_record(moves: RecordMoves) -> float:
    return 1e6 * moves.cpu_s / moves.moved


def cell_table(cells: Sequence[CellMoves]) -> Table:
    table = Table("", "peers", "records", "cells stored", "moved", "examined", "per moved", "by owners", "per moved",
                  "records stored", "moved", "ms/peer", title="Cells: means of one event, all peers")  # fmt: skip
    for column in table.columns[1:]:
        column.justify = "right"
    for one in cells:
        count = one.events
        table.add_row(
            one.event, f"{one.peers:,}", f"{one.records:,}", f"{one.cells_stored / count:,.0f}",
            f"{one.moved_held / count:,.1f}", f"{one.looks_held / count:,.1f}", _ratio(one.looks_held, one.moved_held),
            f"{one.looks_watched / count:,.1f}", _ratio(one.looks_watched, one.moved_watched),
            f"{one.records_stored / count:,.0f}", f"{one.records_moved / count:,.0f}",
            f"{1000 * one.cpu_s / count / one.peers:.3f}",
        )  # fmt: skip
    return table


def record_table(records: Sequence[RecordMoves]) -> Table:
    table = Table("", "stored", "cells moved", "records examined", "moved", "us/record",
                  title="Records: between two stores, CPU of both ends")  # fmt: skip
    for column in table.columns[1:]:
        column.justify = "right"
    for one in records:
        table.add_row(
            one.event, f"{one.stored:,}", f"{one.cells:,}", f"{one.examined:,}", f"{one.moved:,}",
            f"{_us_per_record(one):.1f}",
        )  # fmt: skip
    return table


def _ratio(examined: int, moved: int) -> str:
    return f"{examined / moved:.2f}" if moved else "-"


@click.command(help=__doc__)
@click.option("--records", type=click.IntRange(100), multiple=True, default=RECORDS, show_default=True)
@click.option("--peers", type=click.IntRange(4, 10_000), multiple=True, default=PEERS, show_default=True)
@click.option("--events", type=click.IntRange(1), default=EVENTS, show_default=True, help="Joins and leaves each.")
@click.option("--json", "report", type=click.Path(path_type=Path), help="Write all figures to this file.")
@click.option("--seed", default=1, show_default=True)
def main(records: tuple[int, ...], peers: tuple[int, ...], events: int, report: Path | None, seed: int) -> None:
    cells: list[CellMoves] = []
    moves: list[RecordMoves] = []
    for count, size in product(records, peers):
        print(f"bench_moves: {events} joins and leaves, {size} peers, {count:,} records", file=sys.stderr, flush=True)
        cells += cell_moves(size, cells_of(count, Random(seed)), events, Random(seed))
    for count in records:
        print(f"bench_moves: moving records, {count:,} stored", file=sys.stderr, flush=True)
        with TemporaryDirectory() as directory:
            moves += record_moves(Path(directory), count, min(MOVING, count // 2), Random(seed))
    held = [*claims(cells, moves), *time_claims(moves)]
    console = Console(width=140)
    console.print(cell_table(cells), record_table(moves))
    for text, holds in held:
        print("ok  " if holds else "FAIL", text)
    if report is not None:
        figures = {"cells": [*map(asdict, cells)], "records": [*map(asdict, moves)], "claims": dict(held)}
        report.write_text(json.dumps(figures, indent=2) + "\n")
    sys.exit(not all(holds for _, holds in held))


if __name__ == "__main__":
    main()
