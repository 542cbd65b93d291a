"""Test the limit on the work that statements of a peer cause.

Also tested is the limit on the number of peers remembered for cells.
"""

import pytest

from kadcrawl.keys import Cell
from kadcrawl.link.wire.messages import Contact
from kadcrawl.replication import providers as sources_module
from kadcrawl.replication.owner import work_quota
from kadcrawl.replication.owner.work_quota import COMES_BACK_S, FAILED_COST, QUOTA_CELLS_MAX, WorkQuota
from kadcrawl.replication.providers import KEPT_S, NAMED_MAX, PROVIDERS_MAX, Providers
from tests.support.links.contacts import contact

LIAR, HONEST = b"l" * 20, b"h" * 20
CELLS = 2**16


def test_who_comes_and_goes_with_all_cells_six_times_an_hour_is_heard() -> None:
    claims = WorkQuota()
    for _ in range(6):
        assert claims.has_quota(HONEST, 0.0)
        claims.charge(HONEST, CELLS, 0.0)
    assert claims.has_quota(HONEST, 0.0)
    claims.charge(HONEST, CELLS, 0.0)
    assert not claims.has_quota(HONEST, 0.0)


def test_a_peer_with_repeated_false_claims_is_ignored_for_a_while() -> None:
    claims = WorkQuota()
    tries = 0
    while claims.has_quota(LIAR, 0.0):
        claims.charge(LIAR, FAILED_COST, 0.0)
        tries += 1
    assert tries == 10_000
    assert claims.has_quota(HONEST, 0.0)
    later_s = 2 * FAILED_COST * COMES_BACK_S / QUOTA_CELLS_MAX
    assert claims.has_quota(LIAR, later_s)
    claims.charge(LIAR, FAILED_COST, later_s)
    claims.charge(LIAR, FAILED_COST, later_s)
    assert not claims.has_quota(LIAR, later_s)


def test_what_was_done_comes_back_within_an_hour() -> None:
    claims = WorkQuota()
    claims.charge(LIAR, QUOTA_CELLS_MAX, 0.0)
    claims.charge(LIAR, QUOTA_CELLS_MAX, COMES_BACK_S)
    assert not claims.has_quota(LIAR, COMES_BACK_S)
    assert claims.has_quota(LIAR, COMES_BACK_S + 1)


def test_of_peers_without_end_the_latest_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work_quota, "PEERS_MAX", 3)
    claims = WorkQuota()
    for number in range(10):
        claims.charge(number.to_bytes(20, "big"), QUOTA_CELLS_MAX, 0.0)
    assert [number for number in range(10) if not claims.has_quota(number.to_bytes(20, "big"), 0.0)] == [7, 8, 9]


def test_of_one_cell_and_of_all_so_many_sources_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources_module, "ALL_MAX", 2 * NAMED_MAX + 1)
    sources = Providers()
    for number in range(2 * NAMED_MAX):
        sources.add(Cell(0), contact(number))
    assert len(sources.of(Cell(0))) == PROVIDERS_MAX
    for cell in range(4):
        sources.add_named(Cell(cell), map(contact, range(2 * NAMED_MAX)))
    assert [len(sources.of(Cell(cell))) for cell in range(4)] == [NAMED_MAX, NAMED_MAX, 1, 0]
    assert Cell(3) not in sources
    moved = Contact(contact(0).id, "127.0.0.2", 2)
    sources.add(Cell(0), moved)
    assert sources.of(Cell(0))[moved.id] == moved, "one that is known may say where it is now"
    sources.forget(Cell(0))
    sources.lost(contact(1).id)
    sources.discard(Cell(1), contact(2).id)
    sources.discard(Cell(1), contact(2).id)
    sources.forget(Cell(0))
    sources.add_named(Cell(3), map(contact, range(2 * NAMED_MAX)))
    sources.add_named(Cell(4), map(contact, range(2 * NAMED_MAX)))
    assert sum(len(sources.of(Cell(cell))) for cell in range(5)) == 2 * NAMED_MAX + 1


def test_the_providers_of_a_cell_outlive_its_sync_by_a_while() -> None:
    providers = Providers()
    for cell in range(3):
        providers.add(Cell(cell), contact(cell))
        providers.retire(Cell(cell), float(cell))
    providers.resume(Cell(1))
    providers.retire(Cell(9), KEPT_S)
    assert [False, True, True] == [Cell(cell) in providers for cell in range(3)]
    providers.expire(KEPT_S + 10)
    assert [False, True, False] == [Cell(cell) in providers for cell in range(3)], "cell 1 is synced"


def test_a_provider_is_named_with_the_address_that_is_known_best() -> None:
    providers, own, old = Providers(), contact(1), Contact(contact(1).id, "127.0.0.9", 9)
    providers.add(Cell(0), own)
    providers.add_named(Cell(0), [old, contact(2)])
    assert [own, contact(2)] == providers.named(Cell(0), [], 20, 0.0)
    assert {old, contact(2)} == set(providers.named(Cell(0), [old], 20, 0.0)), "the address by the holdings"
    providers.retire(Cell(0), 0.0)
    assert [] == providers.named(Cell(0), [], 20, KEPT_S)


def test_providers_without_number_leave_room_for_the_holders_that_this_peer_knows() -> None:
    providers, held = Providers(), [contact(number) for number in range(100, 103)]
    providers.add_named(Cell(0), map(contact, range(NAMED_MAX)))
    named = providers.named(Cell(0), held, 5, 0.0)
    assert 5 == len(named)
    assert {*held} < {*named}
    assert held == providers.named(Cell(0), held, 3, 0.0)
