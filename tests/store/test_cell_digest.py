"""Tallies: equal exactly when the records are, and independent of the order in which changes came."""

from random import Random

import pytest
from hypothesis import given, strategies as st

from kadcrawl.keys import Key, site_hash, url_key
from kadcrawl.store.cell_digest import EMPTY, contribution, digest_records
from kadcrawl.store.schema import DONE, PENDING

KEYS = st.binary(min_size=20, max_size=20).map(Key)
RECORDS = st.dictionaries(KEYS, st.sampled_from([PENDING, DONE]))

SITE = site_hash("a.example")
A, B = (url_key(SITE, f"http://a.example/{name}") for name in "ab")


@pytest.mark.parametrize(
    ("key", "state", "expected"),
    [
        (Key(bytes(19) + b"\1"), PENDING, 1),
        (Key(b"\xff" * 4 + bytes(16)), PENDING, 0),
        (Key(bytes(20)), DONE, 0x243F6A8885A308D313198A2E03707344),
        (Key(bytes(19) + b"\1"), DONE, 0xC276E44204ED84E906B64A8E605E3B79),
        (Key(b"\xff" * 20), DONE, 0x8607F0CF06588CBD1F7CC9CDA682AB0F),
    ],
)
def test_contributions_are_the_same_in_every_version(key: Key, state: int, expected: int) -> None:
    """Peers compare these values with each other."""
    assert f"{expected:032x}" == f"{contribution(key, state):032x}"


def test_a_tally_counts() -> None:
    tally = digest_records([(A, PENDING), (B, DONE)])
    assert (2, 1) == (tally.keys, tally.pending)


def test_the_states_of_two_keys_cannot_be_exchanged_unnoticed() -> None:
    assert digest_records([(A, PENDING), (B, DONE)]) != digest_records([(A, DONE), (B, PENDING)])


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_other_records_have_another_digest(count: int) -> None:
    random = Random(count)
    digests = {
        digest_records((Key(random.randbytes(20)), random.choice((PENDING, DONE))) for _ in range(count)).digest
        for _ in range(2000)
    }
    assert 2000 == len(digests)


@given(RECORDS, st.randoms())
def test_order_does_not_matter(records: dict[Key, int], random: Random) -> None:
    shuffled = list(records.items())
    random.shuffle(shuffled)
    assert digest_records(records.items()) == digest_records(shuffled)


@given(RECORDS, st.integers(min_value=0))
def test_parts_can_be_taken_from_the_whole(records: dict[Key, int], cut: int) -> None:
    whole = list(records.items())
    part, rest = whole[: cut % (len(whole) + 1)], whole[cut % (len(whole) + 1) :]
    assert digest_records(rest) == digest_records(whole).minus(digest_records(part))
    assert EMPTY == digest_records(whole).minus(digest_records(whole))


@given(st.lists(st.tuples(KEYS, st.sampled_from([PENDING, DONE]))))
def test_a_tally_follows_changes(changes: list[tuple[Key, int]]) -> None:
    records: dict[Key, int] = {}
    tally = EMPTY
    for key, state in changes:
        tally = tally.changed(key, records.get(key), state)
        records[key] = state
    assert digest_records(records.items()) == tally


@given(KEYS)
def test_a_key_that_becomes_done_changes_the_digest(key: Key) -> None:
    assert contribution(key, PENDING) != contribution(key, DONE)


@pytest.mark.parametrize("count", [0, 1, 2, 3, 7, 64, 1023, 1024, 1025, 2500])
def test_records_that_are_combined_at_once_have_the_digest_of_each_alone(count: int) -> None:
    random = Random(count)
    records = [(Key(random.randbytes(20)), random.choice((PENDING, PENDING, DONE, 3, 4))) for _ in range(count)]
    digest = 0
    for key, state in records:
        digest ^= contribution(key, state)
    assert (count, sum(state % 2 for _, state in records), digest) == digest_records(iter(records))
