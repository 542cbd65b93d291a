"""The benchmark of a swarm's memory counts all that a store holds, and three copies of it."""

import asyncio
from pathlib import Path

import pytest

from kadcrawl.keys import Key
from scripts.bench_swarm_memory import COPIES, measure, of_one_filter, of_store


def keys_of(cell: int, count: int) -> list[Key]:
    return [Key(cell.to_bytes(2, "big") + number.to_bytes(18, "big")) for number in range(count)]


def test_a_key_of_a_small_cell_takes_more_than_its_fingerprint(tmp_path: Path) -> None:
    few, more = tmp_path / "few", tmp_path / "more"
    few.mkdir()
    more.mkdir()
    # What else lives in the process may add some hundred bytes to either, so the one is nearly ten times the other.
    small, _ = asyncio.run(of_store([[key for cell in range(100) for key in keys_of(cell, 1)]], few))
    large, _ = asyncio.run(of_store([keys_of(1, 100)], more))
    assert small > 5 * large, "a hundred cells have a hundred filters"
    assert large > 8 * 100


def test_one_filter_for_all_keys_takes_few_bytes_of_each() -> None:
    assert 2 < of_one_filter([keys_of(1, 4_000)]) / 4_000 < 12


def test_a_swarm_has_the_copies_of_a_peer() -> None:
    small, large = measure(10_000_000, keys_most=600), measure(200_000_000, keys_most=600)
    assert COPIES * small.peer == pytest.approx(small.swarm)
    assert (152.6, 3_051.8) == (round(small.keys_a_cell, 1), round(large.keys_a_cell, 1))
    assert large.peer < small.peer
    assert small.peer_disk > 8
