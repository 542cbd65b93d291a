"""Test that every way to read a counted dict in turn is counted, and a look-up of one key is not."""

from collections.abc import Callable
from typing import Any

import pytest

from kadcrawl.replication.placement.look_counts import CountedDict, LookCounts


def counted() -> tuple[CountedDict[int, str], LookCounts]:
    counts = LookCounts()
    entries: CountedDict[int, str] = CountedDict(counts)
    for number in range(5):
        entries[number] = "kept"
    return entries, counts


@pytest.mark.parametrize(
    "read",
    [
        list,
        dict,
        sorted,
        lambda entries: entries.keys(),
        lambda entries: entries.values(),
        lambda entries: [*entries.items()],
    ],
)
def test_whatever_reads_all_entries_counts_all_of_them(read: Callable[[Any], Any]) -> None:
    entries, counts = counted()
    read(entries)
    assert counts.examined >= 5


def test_the_lookup_of_a_key_costs_nothing() -> None:
    entries, counts = counted()
    assert 3 in entries
    assert ("kept", "kept", None, 5) == (entries[3], entries.pop(4), entries.get(9), len(entries) + 1)
    assert 0 == counts.examined
