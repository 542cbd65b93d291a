"""Test the figures of sites: URLs left without a look into the store, pace, and wait."""

import pytest

from kadcrawl.crawl.frontier.site import Site
from kadcrawl.crawl.frontier.site_figures import SiteFigures, site_figures
from kadcrawl.keys import Cell, Key
from kadcrawl.store.cell_digest import CellDigest
from kadcrawl.store.frontier_entry import FrontierEntry

NOW = 1_000.0
CELL = Cell(1)


def make_site(name: str, loaded: int, *, more: bool = False, next_at: float = 0.0) -> Site:
    """Return a site with so many URLs in memory, all ready."""
    site = Site(name, CELL, next_at, 1.0)
    for seq in range(loaded):
        site.load(FrontierEntry(0, seq, Key(bytes([seq])), name, f"http://{name}/{seq}", 0, 0, 0.0), NOW, 60.0)
    site.more = more
    return site


def figures_of(*sites: Site, pending: int, unread: tuple[Cell, ...] = ()) -> dict[str, SiteFigures]:
    by_cell = {CELL: {site.name: site for site in sites}}
    found = site_figures(by_cell, {CELL: CellDigest(100, pending, 0)}, unread, NOW)
    return {figures.site: figures for figures in found}


@pytest.mark.parametrize(
    ("sites", "pending", "unread", "expected"),
    [
        ([("a", 3, False)], 3, (), {"a": 3}),
        ([("a", 4, True)], 900, (), {"a": 900}),
        ([("a", 4, True), ("b", 2, False)], 906, (), {"a": 904, "b": 2}),
        ([("a", 4, True), ("b", 4, True)], 908, (), {"a": 454, "b": 454}),
        ([("a", 4, True)], 104, (CELL,), {"a": 54}),
        ([("a", 2, False)], 900, (CELL,), {"a": 2}),
        ([("a", 0, False)], 5, (CELL,), {}),
        ([("a", 4, True)], 3, (), {"a": 4}),
    ],
    ids=[
        "all in memory",
        "the rest of the cell is the site's",
        "beside a site that is in memory",
        "two sites share the rest",
        "sites that are not active share the rest",
        "other sites of the cell wait",
        "no work",
        "a digest that lags behind is no negative number",
    ],
)
def test_the_cell_counts_the_urls_of_a_site_that_are_not_in_memory(
    sites: list[tuple[str, int, bool]], pending: int, unread: tuple[Cell, ...], expected: dict[str, int]
) -> None:
    made = [make_site(name, loaded, more=more) for name, loaded, more in sites]
    found = figures_of(*made, pending=pending, unread=unread)
    assert expected == {name: figures.pending for name, figures in found.items()}


def test_a_site_waits_until_it_may_be_asked_and_not_while_it_is_asked() -> None:
    waiting, asked = make_site("waiting", 2, next_at=NOW + 30.0), make_site("asked", 2, next_at=NOW + 30.0)
    asked.take()
    found = figures_of(waiting, asked, pending=4)
    assert (30.0, 0.0) == (found["waiting"].wait_s, found["asked"].wait_s)


def test_a_site_whose_urls_are_all_postponed_waits_for_the_first() -> None:
    site = make_site("a", 0)
    site.load(FrontierEntry(0, 1, Key(b"k"), "a", "http://a/1", 0, 1, NOW + 20.0), NOW, 60.0)
    assert 20.0 == figures_of(site, pending=1)["a"].wait_s


def test_a_closed_site_is_not_shown() -> None:
    site = make_site("a", 2)
    site.close()
    assert {} == figures_of(site, pending=2)


def test_the_seconds_of_requests_follow_the_site() -> None:
    site = make_site("a", 1)
    assert 0.0 == figures_of(site, pending=1)["a"].request_s
    site.time_request(4.0)
    assert 4.0 == figures_of(site, pending=1)["a"].request_s
    for _ in range(50):
        site.time_request(0.5)
    assert 0.5 == pytest.approx(figures_of(site, pending=1)["a"].request_s, abs=0.01)
