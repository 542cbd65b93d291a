"""Sites are held until the pages that were pending are finished, and no longer."""

from kadcrawl.crawl.recrawl.site_rounds import SiteRounds
from kadcrawl.keys import SITE_BYTES, Cell, Key

CELL = Cell(3)


def page(site: int, number: int = 0) -> Key:
    return Key(bytes([site]) * SITE_BYTES + number.to_bytes(8, "big"))


def held(rounds: SiteRounds) -> list[int]:
    return sorted(site[0] for site in rounds.held(CELL))


def test_a_site_is_held_until_as_many_pages_are_finished_as_were_pending() -> None:
    rounds = SiteRounds({bytes([1]) * SITE_BYTES: 2, bytes([2]) * SITE_BYTES: 1}.__getitem__)
    for number in range(2):
        rounds.bring_back(CELL, page(1, number))
    rounds.bring_back(CELL, page(2))
    assert [] == held(rounds), "more of its pages may be brought back"
    rounds.hold(CELL)
    assert [1, 2] == held(rounds)
    assert rounds.finish(CELL, page(3)), "another site"
    assert not rounds.finish(CELL, page(1, 7))
    assert rounds.finish(CELL, page(2))
    assert [1] == held(rounds)
    assert rounds.finish(CELL, page(1, 8))
    assert [] == held(rounds)
    assert not rounds.any_held


def test_a_site_without_pending_pages_is_not_held() -> None:
    rounds = SiteRounds(lambda site: 0)
    rounds.bring_back(CELL, page(1))
    rounds.hold(CELL)
    assert not rounds.any_held


def test_pages_that_left_otherwise_are_counted_in_the_end() -> None:
    pending = {bytes([1]) * SITE_BYTES: 5, bytes([2]) * SITE_BYTES: 5}
    rounds = SiteRounds(pending.__getitem__)
    for site in (1, 2):
        rounds.bring_back(CELL, page(site))
    rounds.hold(CELL)
    pending[bytes([1]) * SITE_BYTES] = 0
    pending[bytes([2]) * SITE_BYTES] = 9
    assert [CELL] == rounds.recount(10)
    assert [2] == held(rounds)
    assert [False] * 4 + [True] == [rounds.finish(CELL, page(2)) for _ in range(5)], "new pages wait for the next round"


def test_a_cell_that_is_closed_is_forgotten() -> None:
    rounds = SiteRounds(lambda site: 1)
    rounds.bring_back(CELL, page(1))
    rounds.hold(CELL)
    rounds.bring_back(CELL, page(2))
    rounds.forget(CELL)
    rounds.hold(CELL)
    assert not rounds.any_held


def test_a_count_of_many_sites_goes_on_where_the_last_one_stopped() -> None:
    pending = dict.fromkeys((page(number)[:SITE_BYTES] for number in range(6)), 1)
    rounds = SiteRounds(pending.__getitem__)
    cells = [Cell(number) for number in range(6)]
    for number, cell in enumerate(cells):
        rounds.bring_back(cell, page(number))
        rounds.hold(cell)
    assert [] == rounds.recount(4)
    pending.update(dict.fromkeys(pending, 0))
    assert [*cells[4:], *cells[:2]] == rounds.recount(4)
    assert cells[2:4] == rounds.recount(4)
    assert not rounds.any_held
