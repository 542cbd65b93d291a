"""The check of trails finds a done page whose link too few peers know."""

from itertools import pairwise
from typing import cast

import pytest

from kadcrawl.keys import Cell, Key
from kadcrawl.store.cell_digest import CellDigest
from kadcrawl.store.store import DONE, PENDING, Store
from sim.synthetic_web import SyntheticWeb
from sim.trails import SeenTrails

FIRST, SECOND, THIRD = "http://a.test/trail/1", "http://b.test/trail/2", "http://a.test/trail/3"
KEYS = {url: Key(bytes([number]) * 20) for number, url in enumerate((FIRST, SECOND, THIRD))}


class Held:
    """A peer's records."""

    def __init__(self, **states: int) -> None:
        self.asked = 0
        self.cells: dict[Cell, CellDigest] = {}
        self.become(**states)

    def become(self, **states: int) -> None:
        """Hold these records in place of all others."""
        self._states = {KEYS[url]: states[name] for name, url in NAMES.items() if name in states}
        self.cells.clear()
        for key, state in self._states.items():
            self.cells[apart(key)] = CellDigest(1, int(state == PENDING), int.from_bytes(key) + state)

    def state(self, key: Key) -> int | None:
        self.asked += 1
        return self._states.get(key)


def apart(key: Key) -> Cell:
    return Cell(key[0])


NAMES = {"first": FIRST, "second": SECOND, "third": THIRD}


@pytest.mark.parametrize(
    ("held", "unsafe"),
    [
        pytest.param([{"first": PENDING}] * 3, [], id="nothing is done yet"),
        pytest.param([{"first": DONE, "second": PENDING}] * 3, [], id="three know it"),
        pytest.param([{"first": DONE, "second": PENDING}] * 2, [], id="there are only two"),
        pytest.param([{"first": DONE}, {"second": PENDING}, {}, {}], [(SECOND, 1)], id="one of four knows it"),
        pytest.param(
            [{"first": DONE}, {"second": PENDING}, {"second": PENDING}], [(SECOND, 2)], id="two of three know it"
        ),
        pytest.param([{"second": DONE}, {}, {}], [(THIRD, 0)], id="nobody knows it"),
    ],
)
def test_where_a_finished_page_led_three_must_know(held: list[dict[str, int]], unsafe: list[tuple[str, int]]) -> None:
    trails = SeenTrails([[FIRST, SECOND, THIRD]], KEYS, 3, apart)
    assert unsafe == list(trails.unsafe(cast(Store, Held(**states)) for states in held))


@pytest.mark.parametrize(("copies", "unsafe"), [(2, []), (3, []), (4, [(SECOND, 3)]), (5, [(SECOND, 3)])])
def test_as_many_must_know_as_the_job_keeps_copies(copies: int, unsafe: list[tuple[str, int]]) -> None:
    trails = SeenTrails([[FIRST, SECOND]], KEYS, copies, apart)
    held = [Held(first=DONE, second=PENDING)] * 3 + [Held()] * 3
    assert unsafe == list(trails.unsafe(cast(Store, one) for one in held))


def test_within_a_cell_each_peer_that_has_the_page_as_done_must_know_its_link() -> None:
    trails = SeenTrails([[FIRST, SECOND]], KEYS, 3, lambda key: Cell(7))
    assert [] == list(trails.unsafe(cast(Store, one) for one in [Held(first=DONE, second=PENDING), Held(), Held()]))
    told = [Held(first=DONE, second=PENDING), Held(first=DONE), Held(second=PENDING)]
    assert [(SECOND, 2)] == list(trails.unsafe(cast(Store, one) for one in told))


def test_what_was_seen_to_be_safe_is_not_looked_at_again() -> None:
    trails = SeenTrails([[FIRST, SECOND]], KEYS, 3, apart)
    assert [] == list(trails.unsafe([cast(Store, Held(first=DONE, second=PENDING))]))
    assert [] == list(trails.unsafe([cast(Store, Held(first=DONE))] * 3))


def test_the_trails_of_a_web_are_told_as_they_are_linked() -> None:
    web = SyntheticWeb(1, sites=4, pages=8, seeds=2, trails=2, trail_pages=3)
    assert [4, 4] == list(map(len, web.trails))
    for trail in web.trails:
        for before, after in pairwise(trail):
            host, _, path = before.removeprefix("http://").partition("/")
            assert after.encode() in web.answer(host, f"/{path}").body


def test_a_trail_is_looked_at_again_only_when_a_record_or_the_peers_have_changed() -> None:
    trails = SeenTrails([[FIRST, SECOND]], KEYS, 3, apart)
    held = [Held(first=PENDING), Held(), Held(), Held()]

    def unsafe() -> list[tuple[str, int]]:
        return list(trails.unsafe(cast(Store, one) for one in held))

    def asked() -> int:
        return sum(one.asked for one in held)

    assert unsafe() == []
    before = asked()
    assert unsafe() == []
    assert asked() == before
    held[0].become(first=DONE)
    assert unsafe() == unsafe() == [(SECOND, 0)]
    for one in held[1:]:
        one.become(second=PENDING)
    assert unsafe() == []


def test_a_trail_is_looked_at_again_when_a_peer_comes() -> None:
    trails = SeenTrails([[FIRST, SECOND]], KEYS, 3, apart)
    held = [Held(), Held(), Held()]
    assert list(trails.unsafe(cast(Store, one) for one in held)) == []
    held.append(Held(first=DONE))
    assert list(trails.unsafe(cast(Store, one) for one in held)) == [(SECOND, 0)]
