"""Pages of a site that are fetched again come in rounds, so that each has its turn however slow the site is."""

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest

from kadcrawl.crawl.frontier.frontier import Frontier
from kadcrawl.keys import Key, cell_of, site_hash
from kadcrawl.settings.job import Job
from kadcrawl.settings.limits import Limits
from kadcrawl.settings.site_settings import SiteSettings
from kadcrawl.store.bloom.expiring_filter import Period
from kadcrawl.store.frontier_entry import FrontierEntry
from kadcrawl.store.store import Store

SITE = "a.test"
CELL = cell_of(Key(site_hash(SITE)), 1)
START = 1_000_000.0
PAGES = 40
PERIOD_S, EPOCHS = 36.0, 4
PACE_S = 4.0
"""Seconds for each page: nine pages in a period."""


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    one = Store(tmp_path, 0.0, lambda fds: None)
    yield one
    one.close()


class PacedSite:
    """A site that is fetched page by page."""

    def __init__(self, store: Store, *, window: int = 128, in_rounds: bool = True) -> None:
        """With `in_rounds` False the frontier knows no rounds, as in a job without a recrawl."""
        limits = Limits(site_window=window)
        last_seq = (lambda: store.frontier.last_seq) if in_rounds else None
        self.store, self.now = store, START
        self.frontier = Frontier(store, limits, SiteSettings(Job(delay_s=0.0)), last_seq=last_seq)
        self.frontier.open(CELL, START, hold=False)

    def accept(self, number: int, depth: int) -> FrontierEntry | None:
        key = Key(site_hash(SITE) + number.to_bytes(8, "big"))
        entry = self.store.accept(key, SITE, f"http://{SITE}/{number}", depth, 0)
        if entry is not None:
            self.frontier.add(entry, self.now)
        return entry

    def fetch(self) -> int | None:
        """Fetch the next page, and return its number."""
        entry = self.frontier.next(self.now)
        if entry is None:
            return None
        self.frontier.release(entry, self.now, self.now)
        self.store.finish(entry, b"{}\n")
        self.frontier.finish(entry, self.now)
        return int.from_bytes(entry.key[-8:], "big")


def visits_with_fingerprints(store: Store, links: Callable[[int], list[int]], *, in_rounds: bool) -> Counter[int]:
    """Return how often each page of a site is fetched in thirty periods in which nine pages can be fetched."""
    now = START
    store.begin(1, Period(PERIOD_S / EPOCHS, EPOCHS), lambda: now)
    site, visits, epoch = PacedSite(store, in_rounds=in_rounds), Counter[int](), -1.0
    for _ in range(30 * 9):
        site.now = now = now + PACE_S
        if now // (PERIOD_S / EPOCHS) != epoch:
            epoch = now // (PERIOD_S / EPOCHS)
            store.expire(CELL)
            site.accept(0, 0)
        number = site.fetch()
        if number is not None:
            visits[number] += 1
            for child in links(number):
                site.accept(child, child)
    return visits


def chain(number: int) -> list[int]:
    return [number + 1] if number + 1 < PAGES else []


def tree(number: int) -> list[int]:
    return [child for child in range(3 * number + 1, 3 * number + 4) if child < PAGES]


@pytest.mark.parametrize("links", [chain, tree])
def test_with_fingerprints_each_page_of_a_slow_site_is_fetched_again_and_again(
    store: Store, links: Callable[[int], list[int]]
) -> None:
    visits = visits_with_fingerprints(store, links, in_rounds=True)
    assert set(range(PAGES)) == set(visits)
    assert min(visits.values()) > 1


def test_breadth_first_alone_the_pages_far_from_the_seed_never_have_their_turn(store: Store) -> None:
    assert PAGES - 1 not in visits_with_fingerprints(store, chain, in_rounds=False)


def test_an_entry_that_arrives_in_a_round_waits_for_the_next_however_near_to_the_seeds(store: Store) -> None:
    store.begin(1)
    site = PacedSite(store)
    for number in range(1, 5):
        site.accept(number, depth=5 - number)
    assert [1, 4] == [site.fetch(), site.fetch()], "the first was alone, and its round with it"
    site.accept(9, depth=0)
    assert [3, 2, 9, None] == [site.fetch() for _ in range(4)]


def test_only_entries_of_the_round_are_lent_until_it_is_over(store: Store) -> None:
    store.begin(1)
    site = PacedSite(store)
    for number in range(1, 5):
        site.accept(number, depth=3)
    assert [1, 2] == [site.fetch(), site.fetch()]
    late = site.accept(9, depth=0)
    entries, connections = site.frontier.lend(SITE, 5, site.now)
    assert late is not None
    assert [3, 4] == [int.from_bytes(entry.key[-8:], "big") for entry in entries]
    site.frontier.put_back(entries[1], site.now)
    for entry in entries[:1]:
        store.finish(entry, b"{}\n")
        site.frontier.finish(entry, site.now)
    site.frontier.end_loan(SITE, connections, site.now)
    assert [4, 9, None] == [site.fetch() for _ in range(3)], "a returned page is still of its round"


@pytest.mark.parametrize("seed", range(5))
def test_an_entry_comes_before_all_that_arrive_after_those_pending_at_its_arrival_are_done(
    store: Store, seed: int
) -> None:
    """Those pending at its arrival are of its round, or of the round before."""
    store.begin(1)
    random, site = Random(seed), PacedSite(store, window=3)
    pending: set[int] = set()
    before: dict[int, set[int]] = {}
    first_later: dict[int, int] = {}
    number = compared = 0
    for turn in range(600):
        for _ in range(random.choice((0, 1, 2)) if turn < 400 else 0):
            number += 1
            site.accept(number, random.randrange(6))
            before[number] = set(pending)
            pending.add(number)
        entry = site.frontier.next(site.now)
        if entry is None:
            continue
        for one in pending:
            if not before[one]:  # Its round has begun by this entry, at the latest.
                first_later.setdefault(one, number + 1)
        site.frontier.release(entry, site.now, site.now)
        if random.random() < 0.1:
            site.frontier.put_back(entry, site.now)
            continue
        store.finish(entry, b"{}\n")
        site.frontier.finish(entry, site.now)
        done = int.from_bytes(entry.key[-8:], "big")
        pending.remove(done)
        for one in pending:
            assert done < first_later.get(one, done + 1), "it was overtaken"
            compared += one in first_later
            before[one].discard(done)
    assert not pending
    assert compared > 100
