"""Test the frontier: breadth first, each site at its own pace, in bounded memory, and only in open cells."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from kadcrawl.balance.leases import LEASE_S
from kadcrawl.crawl.clocks.clock_names import REST_S
from kadcrawl.crawl.frontier import unproven_quota
from kadcrawl.crawl.frontier.frontier import Frontier
from kadcrawl.crawl.frontier.other_requests import BACK_LEAST_S, HOLD_LEAST_S, OtherRequests
from kadcrawl.crawl.frontier.site import STORED_LOOK_S
from kadcrawl.keys import Cell, Key, cell_of, site_hash, url_key
from kadcrawl.settings.job import Job
from kadcrawl.settings.limits import Limits
from kadcrawl.settings.site_rules import SiteRule
from kadcrawl.settings.site_settings import SiteSettings
from kadcrawl.store.back_off import NO_REFUSALS
from kadcrawl.store.frontier_entry import FrontierEntry
from kadcrawl.store.kept_cookies import NO_COOKIES
from kadcrawl.store.store import Store

START = 1_000_000.0
CELL_BITS = 4
"""The number of cells is small, so that some cells contain several sites of the tests."""
CELLS = [Cell(number) for number in range(1 << CELL_BITS)]
Make = Callable[..., Frontier]


def cell_of_site(site: str) -> Cell:
    return cell_of(url_key(site_hash(site), ""), CELL_BITS)


@pytest.fixture
def frontier_store(tmp_path: Path) -> Iterator[Store]:
    store = Store(tmp_path, 0.0)
    store.begin(CELL_BITS)
    yield store
    store.close()


@pytest.fixture
def make_frontier(frontier_store: Store, monkeypatch: pytest.MonkeyPatch) -> Make:
    monkeypatch.setattr(unproven_quota, "KEPT_SHARE", 4)  # So that it shows with few requests.

    def make(delay_s: float = 1.0, now: float = START, hold: bool = False, **limits: int) -> Frontier:
        """Return a frontier whose cells are all open."""
        frontier = Frontier(frontier_store, Limits(**limits), SiteSettings(Job(delay_s=delay_s)))
        for one in CELLS:
            frontier.open(one, now, hold=hold)
        return frontier

    return make


class Feed:
    """Accepts URLs into the store and the frontier."""

    def __init__(self, store: Store, frontier: Frontier) -> None:
        self.store, self.frontier, self.count = store, frontier, 0

    def __call__(self, site: str, depth: int = 0, now: float = START) -> FrontierEntry:
        self.count += 1
        url = f"http://{site}/{self.count}"
        entry = self.store.accept(url_key(site_hash(site), url), site, url, depth, 0)
        assert entry is not None
        self.frontier.add(entry, now)
        return entry


def finish_entry(frontier: Frontier, store: Store, entry: FrontierEntry, now: float) -> None:
    frontier.release(entry, now, now)
    store.finish(entry, b"{}\n")
    frontier.finish(entry, now)


def test_one_request_at_a_time_and_a_full_delay_after_it_was_received(
    make_frontier: Make, frontier_store: Store
) -> None:
    frontier = make_frontier(delay_s=2.0)
    feed = Feed(frontier_store, frontier)
    first, second = feed("a"), feed("a")
    assert frontier.next(START) == first
    assert frontier.next(START + 100) is None
    frontier.release(first, received_at=START + 5, now=START + 6)
    assert frontier.next_due() == START + 7
    assert frontier.next(START + 6.99) is None
    assert frontier.next(START + 7) == second


def test_without_a_delay_a_site_gets_several_requests_up_to_its_limit(
    make_frontier: Make, frontier_store: Store
) -> None:
    frontier = make_frontier(delay_s=0.0, site_connections_max=3)
    feed = Feed(frontier_store, frontier)
    entries = [feed("a") for _ in range(5)]
    assert [*entries[:3], None] == [frontier.next(START) for _ in range(4)]
    frontier.release(entries[0], START, START)
    assert [entries[3], None] == [frontier.next(START) for _ in range(2)]


def test_a_site_has_the_delay_and_the_connections_of_its_rule(frontier_store: Store) -> None:
    rules = (
        SiteRule(match=("slow.test",), delay_s=5.0),
        SiteRule(match=("own.test",), delay_s=0.0, connections=2),
        SiteRule(match=("wide.test",), delay_s=0.0, connections=12),
    )
    frontier = Frontier(frontier_store, Limits(), SiteSettings(Job(delay_s=2.0, sites=rules)))
    for cell in CELLS:
        frontier.open(cell, START, hold=False)
    feed = Feed(frontier_store, frontier)
    for site in ("slow.test", "own.test", "wide.test", "other.test"):
        for _ in range(20):
            feed(site)
    first = list(iter(lambda: frontier.next(START), None))
    assert {"slow.test": 1, "own.test": 2, "wide.test": 12, "other.test": 1} == Counter(entry.site for entry in first)
    for entry in first:
        if entry.site in ("slow.test", "other.test"):
            frontier.release(entry, START, START, answered=True)
    assert ["other.test"] == [entry.site for entry in iter(lambda: frontier.next(START + 2), None)]
    assert ["slow.test"] == [entry.site for entry in iter(lambda: frontier.next(START + 5), None)]


def test_only_a_delay_beyond_the_rule_of_its_site_is_told_to_the_next_holder(frontier_store: Store) -> None:
    rules = (SiteRule(match=("slow.test",), delay_s=5.0),)
    frontier = Frontier(frontier_store, Limits(), SiteSettings(Job(delay_s=1.0, sites=rules)))
    for cell in CELLS:
        frontier.open(cell, START, hold=False)
    feed = Feed(frontier_store, frontier)
    for site in ("slow.test", "robots.test"):
        feed(site)
    frontier.set_delay("robots.test", 5.0, START)
    told = [clock for cell in CELLS for clock in frontier.clocks(cell, START + 60, 100) or ()]
    assert [("robots.test", 0.0, 5.0, NO_REFUSALS, NO_COOKIES)] == told
    assert 5.0 == frontier.clock("slow.test", START + 60)[1]


@pytest.mark.parametrize("excluded", [False, True])
def test_a_site_that_was_put_off_gives_out_no_entry_although_none_needs_a_request(
    frontier_store: Store, excluded: bool
) -> None:
    settings = SiteSettings(Job(delay_s=1.0))
    frontier = Frontier(frontier_store, Limits(), settings)
    for cell in CELLS:
        frontier.open(cell, START, hold=False)
    settings.steering.follow({}, {}, {"off.test": True} if excluded else {}, {}, ())
    Feed(frontier_store, frontier)("off.test")
    entry = frontier.next(START)
    assert entry is not None
    frontier.put_off(entry, START + 5, START)
    frontier.give_up_slot(entry)
    frontier.put_back(entry, START)
    assert START + 5 == frontier.next_due()
    assert frontier.next(START + 4.9) is None
    assert entry == frontier.next(START + 5)


@pytest.mark.parametrize("together", [False, True])
@pytest.mark.timeout(60)
def test_a_site_that_was_put_off_waits_also_when_its_delay_and_its_exclusion_are_lifted(
    frontier_store: Store, together: bool
) -> None:
    """The clock was free then, and the site had a place in the order before its entry could be given out: the look for
    the next entry never ended."""
    settings = SiteSettings(Job(delay_s=1.0))
    frontier = Frontier(frontier_store, Limits(), settings)
    for cell in CELLS:
        frontier.open(cell, START, hold=False)
    feed = Feed(frontier_store, frontier)
    settings.steering.follow({}, {"off.test": 3600.0}, {}, {}, ())
    for _ in range(3):
        feed("off.test")
    entry = frontier.next(START + 3600)
    assert entry is not None
    frontier.release(entry, START + 3600, START + 3600, answered=True)
    frontier.finish(entry, START + 3600)
    frontier_store.finish(entry, b"", b"")
    now = START + 3900
    settings.steering.follow({}, {"off.test": 3600.0}, {"off.test": True}, {}, ())
    frontier.steer(now, ["off.test"])
    entry = frontier.next(now)
    assert entry is not None
    frontier.put_off(entry, now + 5, now)
    frontier.give_up_slot(entry)
    frontier.put_back(entry, now)
    if not together:
        settings.steering.follow({}, {}, {"off.test": True}, {}, ())
        frontier.steer(now, ["off.test"])
    settings.steering.follow({}, {}, {}, {}, ())
    frontier.steer(now, ["off.test"])
    assert frontier.next(now + 1) is None
    assert frontier.next_due() == now + 5
    assert frontier.next(now + 5) is not None


@pytest.mark.parametrize("told", [False, True])
def test_a_delay_that_a_person_lifts_ends_also_for_a_request_of_another_peer(frontier_store: Store, told: bool) -> None:
    settings = SiteSettings(Job(delay_s=1.0))
    frontier = Frontier(frontier_store, Limits(), settings)
    for cell in CELLS:
        frontier.open(cell, START, hold=False)
    feed = Feed(frontier_store, frontier)
    settings.steering.follow({}, {"slow.test": 3600.0}, {}, {}, ())
    for _ in range(3):
        feed("slow.test")
    entry = frontier.next(START + 3600)
    assert entry is not None
    frontier.release(entry, START + 3600, START + 3600, answered=True)
    if told:
        frontier.learn_clock("slow.test", 3600.0, 3600.0, START + 3610)
    assert frontier.next(START + 3700) is None
    settings.steering.follow({}, {}, {}, {}, ())
    frontier.steer(START + 3700, ["slow.test"])
    soon = frontier.next(START + 3700)
    assert told == (soon is None), "another peer may have asked the site just now"
    assert soon is not None or frontier.next(START + 3700 + Limits().crawl_delay_max_s) is not None


@pytest.mark.parametrize("is_active", [True, False])
@pytest.mark.parametrize("by_job", [True, False])
def test_a_site_with_a_lifted_delay_is_lent_once_its_owner_has_learned_its_delay(
    frontier_store: Store, by_job: bool, is_active: bool
) -> None:
    """A borrower keeps to the delay that its lender tells, and the lender asks for no shorter one while it lends."""
    settings = SiteSettings(job := Job(delay_s=40.0 if by_job else 1.0))
    settings.steering.follow({}, {} if by_job else {"slow.test": 40.0}, {}, {}, ())
    frontier = Frontier(frontier_store, Limits(), settings)
    feed = Feed(frontier_store, frontier)
    for cell in CELLS:
        frontier.open(cell, START, hold=False)
    if is_active:
        feed("slow.test")
    elif not by_job:
        frontier_store.sites.set_clock("slow.test", START, 40.0)
    settings.change(replace(job, delay_s=1.0))
    settings.steering.follow({}, {}, {}, {}, ())
    frontier.steer(START + 1, [] if by_job else ["slow.test"])
    for _ in range(2):
        feed("slow.test")
    is_free = by_job and not is_active  # Its delay is known nowhere.
    assert is_free == bool(frontier.sites_with_spare_connections(START + 50))
    frontier.steer(START + 50)
    assert is_free == bool(frontier.sites_with_spare_connections(START + 50)), "another order changes nothing"
    frontier.set_delay("slow.test", 1.0, START + 50)
    assert frontier.sites_with_spare_connections(START + 100)
    assert (0.0, 1.0) == frontier.clock("slow.test", START + 100)


def test_a_site_is_lent_on_if_its_own_delay_is_longer_than_a_lifted_one(frontier_store: Store) -> None:
    settings = SiteSettings(Job(delay_s=1.0))
    settings.steering.follow({}, {"slow.test": 5.0}, {}, {}, ())
    frontier = Frontier(frontier_store, Limits(), settings)
    feed = Feed(frontier_store, frontier)
    for cell in CELLS:
        frontier.open(cell, START, hold=False)
    feed("slow.test")
    frontier.set_delay("slow.test", 20.0, START)
    settings.steering.follow({}, {}, {}, {}, ())
    frontier.steer(START + 1, ["slow.test"])
    assert frontier.sites_with_spare_connections(START + 50)
    assert 20.0 == frontier.clock("slow.test", START + 50)[1]


def test_a_lifted_delay_leaves_the_wait_that_the_site_asked_for(frontier_store: Store) -> None:
    settings = SiteSettings(Job(delay_s=1.0))
    settings.steering.follow({}, {"slow.test": 60.0}, {}, {}, ())
    frontier = Frontier(frontier_store, Limits(), settings)
    for cell in CELLS:
        frontier.open(cell, START, hold=False)
    feed = Feed(frontier_store, frontier)
    for _ in range(2):
        feed("slow.test")
    entry = frontier.next(START + 60)
    assert entry is not None
    frontier.release(entry, START + 60, START + 60, 90.0, answered=True)
    settings.steering.follow({}, {}, {}, {}, ())
    frontier.steer(START + 70, ["slow.test"])
    assert frontier.next(START + 149) is None
    assert frontier.next(START + 150) is not None


def test_sites_do_not_wait_for_each_other(make_frontier: Make, frontier_store: Store) -> None:
    frontier = make_frontier()
    feed = Feed(frontier_store, frontier)
    entries = [feed(site) for site in "abc"]
    assert {*entries} == {frontier.next(START) for _ in range(3)}


def test_breadth_first(make_frontier: Make, frontier_store: Store) -> None:
    frontier = make_frontier(delay_s=0.0)
    feed = Feed(frontier_store, frontier)
    deep, shallow, middle = feed("a", 3), feed("a", 1), feed("a", 2)
    assert [shallow, middle, deep] == [frontier.next(START) for _ in range(3)]


def test_a_longer_delay_learned_later_counts_from_the_last_request(make_frontier: Make, frontier_store: Store) -> None:
    frontier = make_frontier(delay_s=0.1)
    feed = Feed(frontier_store, frontier)
    first, second = feed("a"), feed("a")
    assert frontier.next(START) == first
    frontier.release(first, START, START)
    frontier.set_delay("a", 5.0, START)
    assert frontier.next(START + 4.9) is None
    assert frontier.next(START + 5) == second


def test_a_site_is_left_alone_as_long_as_it_asks(make_frontier: Make, frontier_store: Store) -> None:
    frontier = make_frontier()
    feed = Feed(frontier_store, frontier)
    first, second = feed("a"), feed("a")
    assert frontier.next(START) == first
    frontier.release(first, START, START, hold_s=60.0)
    assert frontier.next(START + 59) is None
    assert frontier.next(START + 60) == second


def test_a_postponed_entry_waits_for_its_due_and_does_not_hold_up_others(
    make_frontier: Make, frontier_store: Store
) -> None:
    frontier = make_frontier(delay_s=0.0)
    feed = Feed(frontier_store, frontier)
    first = feed("a")
    assert frontier.next(START) == first
    frontier.release(first, START, START)
    postponed = frontier.postpone(first, START + 30, START)
    assert (1, START + 30) == (postponed.tries, postponed.due)
    second = feed("a")
    assert [second, None] == [frontier.next(START) for _ in range(2)]
    assert frontier.next_due() == START + 30
    assert frontier.next(START + 30) == postponed


@pytest.mark.parametrize("count", [4, 5, 30])
def test_pages_that_wait_for_another_try_keep_no_pages_in_the_store_back(
    count: int, make_frontier: Make, frontier_store: Store
) -> None:
    """A directory of a site may be broken for an hour, and all other pages of the site are deeper."""
    frontier = make_frontier(delay_s=0.0, site_window=4, site_connections_max=1)
    feed = Feed(frontier_store, frontier)
    due = {feed("a").key: START + 100.0 + number for number in range(count)}
    deep = [feed("a", depth=1) for _ in range(50)]
    fetched = []
    while (entry := frontier.next(START)) is not None:
        if entry.key in due:
            frontier.release(entry, START, START)
            frontier.postpone(entry, due[entry.key], START)
        else:
            fetched.append(entry)
            finish_entry(frontier, frontier_store, entry, START)
        (site,) = frontier._sites.values()
        assert len(site.loaded) <= 2 * 4 + 1
    assert deep == fetched
    tried: dict[Key, float] = {}
    for second in range(400):
        while (entry := frontier.next(START + second)) is not None:
            tried[entry.key] = START + second
            finish_entry(frontier, frontier_store, entry, START + second)
    assert tried.keys() == due.keys()
    assert all(due[key] <= at for key, at in tried.items()), "none before its time"
    assert max(at - due[key] for key, at in tried.items()) <= count, "and none long after it"
    assert not frontier._sites


@pytest.mark.parametrize("is_restarted", [False, True])
def test_no_page_waits_in_the_store_for_pages_that_wait_longer(
    is_restarted: bool, make_frontier: Make, frontier_store: Store
) -> None:
    """The first pages of a site have failed often, and wait for an hour, and the deep ones for seconds."""
    limits = {"site_window": 4, "site_connections_max": 1}
    frontier = make_frontier(delay_s=0.0, **limits)
    feed = Feed(frontier_store, frontier)
    due = {feed("a").key: START + 3600.0 for _ in range(20)}
    due |= {feed("a", depth=1).key: START + 30.0 * number for number in range(1, 21)}
    while (entry := frontier.next(START)) is not None:
        frontier.release(entry, START, START)
        frontier.postpone(entry, due[entry.key], START)
    if is_restarted:
        frontier = make_frontier(delay_s=0.0, **limits)
    tried: dict[Key, float] = {}
    for second in range(3700):
        while (entry := frontier.next(START + second)) is not None:
            tried[entry.key] = START + second
            finish_entry(frontier, frontier_store, entry, START + second)
    assert tried.keys() == due.keys()
    assert all(0 <= at - due[key] <= STORED_LOOK_S for key, at in tried.items())


def test_nothing_starts_at_a_blocked_site(make_frontier: Make, frontier_store: Store) -> None:
    frontier = make_frontier(delay_s=0.0)
    feed = Feed(frontier_store, frontier)
    first = feed("a")
    feed("a")
    assert frontier.next(START) == first
    frontier.block("a")
    assert frontier.next(START + 10) is None
    frontier.release(first, START, START)
    frontier.put_back(first, START)
    frontier.unblock("a", START)
    assert frontier.next(START) == first


def test_a_site_without_work_keeps_its_clock(make_frontier: Make, frontier_store: Store) -> None:
    frontier = make_frontier(delay_s=10.0)
    feed = Feed(frontier_store, frontier)
    first = feed("a")
    assert frontier.next(START) == first
    finish_entry(frontier, frontier_store, first, START + 1)
    second = feed("a", now=START + 2)
    assert frontier.next(START + 10.9) is None
    assert frontier.next(START + 11) == second


def test_everything_comes_through_small_windows_once(make_frontier: Make, frontier_store: Store) -> None:
    frontier = make_frontier(delay_s=0.0, site_window=4, active_sites_max=3)
    feed = Feed(frontier_store, frontier)
    random = Random(7)
    entries = {feed(f"site{random.randrange(9)}", random.randrange(4)) for _ in range(200)}
    seen: list[FrontierEntry] = []
    while (entry := frontier.next(START)) is not None:
        seen.append(entry)
        assert len(frontier._sites) <= 3
        finish_entry(frontier, frontier_store, entry, START)
    assert sorted(entries) == sorted(seen)
    assert frontier.pending == 0
    assert not frontier._sites


def test_a_window_is_refilled_beyond_what_is_out(make_frontier: Make, frontier_store: Store) -> None:
    frontier = make_frontier(delay_s=0.0, site_window=2, site_connections_max=100)
    feed = Feed(frontier_store, frontier)
    entries = [feed("a") for _ in range(9)]
    taken = [frontier.next(START) for _ in range(9)]
    assert entries == taken
    assert frontier.next(START) is None


def test_cells_without_known_clocks_start_whole_after_a_full_delay(make_frontier: Make, frontier_store: Store) -> None:
    frontier = make_frontier(active_sites_max=2)
    feed = Feed(frontier_store, frontier)
    entries = {feed(site) for site in "abcde"}
    again = make_frontier(delay_s=3.0, now=START + 50, hold=True, active_sites_max=2)
    assert again.next(START + 52.9) is None
    seen = set()
    for now in (START + 53 + n for n in range(20)):
        while (entry := again.next(now)) is not None:
            seen.add(entry)
            finish_entry(again, frontier_store, entry, now)
    assert entries == seen


def test_a_long_wait_holds_after_a_restart(make_frontier: Make, frontier_store: Store) -> None:
    frontier = make_frontier()
    feed = Feed(frontier_store, frontier)
    first = feed("a")
    assert frontier.next(START) == first
    frontier.release(first, START, START, hold_s=600.0)
    frontier.put_back(first, START)
    again = make_frontier(now=START + 5)
    assert again.next(START + 599) is None
    assert again.next(START + 600) == first


def test_a_learned_crawl_delay_holds_after_a_restart(make_frontier: Make, frontier_store: Store) -> None:
    frontier = make_frontier(delay_s=1.0)
    feed = Feed(frontier_store, frontier)
    first = feed("a")
    frontier.set_delay("a", 9.0, START)
    again = make_frontier(delay_s=1.0, now=START + 100, hold=True)
    assert again.next(START + 108.9) is None
    assert again.next(START + 109) == first


def test_the_job_s_larger_delay_counts_from_the_restart_on(make_frontier: Make, frontier_store: Store) -> None:
    feed = Feed(frontier_store, make_frontier(delay_s=0.0))
    first, second = feed("a"), feed("a")
    frontier_store.sites.set_clock("a", START - 5, 0.0)
    again = make_frontier(delay_s=2.0, now=START, hold=True)
    assert again.next(START + 1.9) is None
    assert again.next(START + 2) == first
    finish_entry(again, frontier_store, first, START + 2)
    assert again.next(START + 3.9) is None
    assert again.next(START + 4) == second


def test_a_clock_that_was_ahead_costs_no_more_than_the_longest_wait(make_frontier: Make, frontier_store: Store) -> None:
    ahead = START + 30 * 86_400
    frontier = make_frontier(delay_s=0.0, now=ahead)
    feed = Feed(frontier_store, frontier)
    held, postponed = feed("a", now=ahead), feed("b", now=ahead)
    assert {held, postponed} == {frontier.next(ahead), frontier.next(ahead)}
    frontier.release(held, ahead, ahead, hold_s=600.0)
    frontier.put_back(held, ahead)
    frontier.release(postponed, ahead, ahead)
    postponed = frontier.postpone(postponed, ahead + 5, ahead)
    again = make_frontier(delay_s=0.0, now=START, retry_after_max_s=60)
    assert [None, None] == [again.next(START), again.next(START + 59)]
    assert {held, postponed} == {again.next(START + 60), again.next(START + 60)}


def test_a_long_delay_is_no_clock_that_was_ahead(make_frontier: Make, frontier_store: Store) -> None:
    frontier_store.sites.set_clock("a", START + 7200, 7200.0)
    again = make_frontier(now=START, retry_after_max_s=60)
    first = Feed(frontier_store, again)("a")
    assert again.next(START + 7199) is None
    assert again.next(START + 7200) == first


@pytest.mark.parametrize("how", ["put back", "postponed"])
def test_an_entry_done_elsewhere_while_it_is_out_does_not_come_again(
    how: str, make_frontier: Make, frontier_store: Store
) -> None:
    frontier = make_frontier(delay_s=0.0)
    feed = Feed(frontier_store, frontier)
    entry = feed("a")
    assert frontier.next(START) == entry
    frontier_store.learn_done(entry.key)
    frontier.remove(entry, START)
    frontier.release(entry, START, START)
    if how == "put back":
        frontier.put_back(entry, START)
    else:
        frontier.postpone(entry, START, START)
    assert frontier.next(START) is None
    assert not frontier._sites


def test_what_is_learned_of_a_site_let_go_holds_when_it_comes_back(make_frontier: Make, frontier_store: Store) -> None:
    """The robots.txt of the site was under way when the last entry of the site was removed."""
    frontier = make_frontier(delay_s=0.0)
    feed = Feed(frontier_store, frontier)
    frontier.hold("a", START + 20, START)
    frontier.set_delay("b", 30.0, START)
    first, second = feed("a"), feed("b")
    assert frontier.next(START + 19) is None
    assert frontier.next(START + 20) == first
    assert frontier.next(START + 29) is None
    assert frontier.next(START + 30) == second


def test_a_removed_entry_does_not_come_and_its_site_is_let_go(make_frontier: Make, frontier_store: Store) -> None:
    frontier = make_frontier(delay_s=0.0)
    feed = Feed(frontier_store, frontier)
    entry = feed("a")
    frontier_store.learn_done(entry.key)
    frontier.remove(entry, START)
    assert frontier.next(START) is None
    assert not frontier._sites


def test_an_entry_that_is_out_can_be_removed_and_still_finish(make_frontier: Make, frontier_store: Store) -> None:
    frontier = make_frontier(delay_s=0.0)
    feed = Feed(frontier_store, frontier)
    entry = feed("a")
    assert frontier.next(START) == entry
    frontier_store.learn_done(entry.key)
    frontier.remove(entry, START)
    assert frontier.out(cell_of_site("a")) == 1
    finish_entry(frontier, frontier_store, entry, START)
    assert not frontier._sites


# --- cells ---------------------------------------------------------------------------------------------------------


def test_nothing_of_a_closed_cell_is_given_out_and_nothing_is_forgotten(
    make_frontier: Make, frontier_store: Store
) -> None:
    frontier = Frontier(frontier_store, Limits(), SiteSettings(Job(delay_s=0.0)))
    feed = Feed(frontier_store, frontier)
    first, other = feed("a"), feed("b")
    assert cell_of_site("a") != cell_of_site("b")
    assert (None, None, 0) == (frontier.next(START), frontier.next_due(), frontier.pending)
    frontier.open(cell_of_site("b"), START, hold=False)
    second = feed("a")
    assert [other, None] == [frontier.next(START), frontier.next(START)]
    frontier.open(cell_of_site("a"), START, hold=False)
    assert (3, 0.0) == (frontier.pending, frontier.next_due())
    assert [first, second, None] == [frontier.next(START) for _ in range(3)]
    frontier.close(cell_of_site("a"))
    assert (False, True, 1) == (
        frontier.is_open(cell_of_site("a")),
        frontier.is_open(cell_of_site("b")),
        frontier.pending,
    )


def test_closing_a_cell_stops_its_sites_at_once_and_keeps_what_is_out(
    make_frontier: Make, frontier_store: Store
) -> None:
    frontier = make_frontier(delay_s=0.0)
    feed = Feed(frontier_store, frontier)
    entries = [feed("a") for _ in range(5)]
    out = [frontier.next(START) for _ in range(2)]
    assert entries[:2] == out
    frontier.release(entries[0], START, START)
    frontier.close(cell_of_site("a"))
    assert frontier.next(START) is None
    assert (2, 1) == (frontier.out(cell_of_site("a")), frontier.in_flight(cell_of_site("a")))
    frontier.release(entries[1], START, START)
    assert (2, 0) == (frontier.out(cell_of_site("a")), frontier.in_flight(cell_of_site("a")))


@pytest.mark.parametrize("how", ["finished", "put back", "postponed"])
@pytest.mark.parametrize("again", [False, True])
def test_an_entry_out_while_its_cell_closed_returns_only_on_reopening(
    again: bool, how: str, make_frontier: Make, frontier_store: Store
) -> None:
    frontier = make_frontier(delay_s=0.0)
    feed = Feed(frontier_store, frontier)
    first, second = feed("a"), feed("a")
    assert frontier.next(START) == first
    frontier.close(cell_of_site("a"))
    frontier.release(first, START, START)
    if how == "finished":
        frontier_store.finish(first, b"{}\n")
        frontier.finish(first, START)
        left = [second]
    elif how == "put back":
        frontier.put_back(first, START)
        left = [first, second]
    else:
        left = [second, frontier.postpone(first, START + 9, START)]
    assert frontier.next(START) is None
    assert not frontier._sites
    if again:
        frontier.open(cell_of_site("a"), START, hold=False)
    assert (left if again else [None, None])[: len(left)] == [frontier.next(START + 10 * n) for n in range(len(left))]


def test_an_entry_out_while_its_cell_closes_and_reopens_is_issued_once(
    make_frontier: Make, frontier_store: Store
) -> None:
    frontier = make_frontier(delay_s=0.0)
    feed = Feed(frontier_store, frontier)
    first, second = feed("a"), feed("a")
    assert frontier.next(START) == first
    frontier.close(cell_of_site("a"))
    frontier.open(cell_of_site("a"), START, hold=False)
    assert [second, None] == [frontier.next(START), frontier.next(START)]
    frontier.release(first, START, START)
    frontier.put_back(first, START)
    assert [first, None] == [frontier.next(START), frontier.next(START)]


def test_an_entry_out_while_its_cell_is_dropped_and_retaken_is_issued_once(
    make_frontier: Make, frontier_store: Store
) -> None:
    frontier = make_frontier(delay_s=0.0)
    feed = Feed(frontier_store, frontier)
    first = feed("a")
    assert frontier.next(START) == first
    frontier.close(cell_of_site("a"))
    assert frontier_store.forget_cell(cell_of_site("a"), 100) == 0
    anew = frontier_store.accept(first.key, first.site, first.url, 0, 0)
    assert anew is not None
    assert anew.seq != first.seq
    frontier.open(cell_of_site("a"), START, hold=False)
    assert frontier.next(START) is None
    frontier.release(first, START, START)
    frontier.put_back(first, START)
    assert [anew, None] == [frontier.next(START), frontier.next(START)]


def test_unblocking_a_site_of_a_closed_cell_starts_nothing(make_frontier: Make, frontier_store: Store) -> None:
    frontier = make_frontier(delay_s=0.0)
    feed = Feed(frontier_store, frontier)
    first = feed("a")
    assert frontier.next(START) == first
    frontier.block("a")
    frontier.close(cell_of_site("a"))
    feed("a")
    frontier.release(first, START, START)
    frontier.unblock("a", START)
    frontier.put_back(first, START)
    assert frontier.next(START) is None
    assert not frontier._sites


def test_a_cell_has_another_opening_after_it_was_closed_for_a_moment(make_frontier: Make) -> None:
    frontier = make_frontier()
    before = frontier.opening(CELLS[0])
    frontier.open(CELLS[0], START, hold=False)
    assert before == frontier.opening(CELLS[0])
    frontier.close(CELLS[0])
    assert frontier.opening(CELLS[0]) is None
    frontier.open(CELLS[0], START, hold=False)
    assert frontier.opening(CELLS[0]) not in (before, None)


# --- clocks that move with their cell ------------------------------------------------------------------------------


def test_a_site_active_while_its_cell_reopens_held_waits_a_full_delay(
    make_frontier: Make, frontier_store: Store
) -> None:
    frontier = make_frontier(delay_s=2.0)
    feed = Feed(frontier_store, frontier)
    first, second = feed("a"), feed("a")
    assert frontier.next(START) == first
    frontier.close(cell_of_site("a"))
    frontier.open(cell_of_site("a"), START + 10, hold=True)
    frontier.release(first, START + 1, START + 10)
    assert frontier.next(START + 11.9) is None
    assert frontier.next(START + 12) == second


def test_a_cell_closed_and_opened_again_keeps_its_clocks(make_frontier: Make, frontier_store: Store) -> None:
    frontier = make_frontier(delay_s=2.0)
    first = Feed(frontier_store, frontier)("a")
    assert frontier.next(START) == first
    frontier.release(first, START + 1, START + 1)
    frontier.put_back(first, START + 1)
    frontier.close(cell_of_site("a"))
    assert not frontier._sites
    assert [("a", 2.0, 2.0, NO_REFUSALS, NO_COOKIES)] == frontier.clocks(cell_of_site("a"), START + 1, 99)
    frontier.open(cell_of_site("a"), START + 1, hold=False)
    assert frontier.next(START + 2.9) is None
    assert frontier.next(START + 3) == first


def test_a_hold_counts_with_a_delay_learned_only_later(make_frontier: Make, frontier_store: Store) -> None:
    frontier = make_frontier(delay_s=1.0, hold=True)
    first = Feed(frontier_store, frontier)("a")
    frontier.set_delay("a", 9.0, START)
    assert frontier.next(START + 8.9) is None
    assert frontier.next(START + 9) == first


def test_the_next_owner_of_a_held_cell_holds_it_for_the_longest_delay(
    make_frontier: Make, frontier_store: Store
) -> None:
    frontier = make_frontier(delay_s=1.0, hold=True, crawl_delay_max_s=60)
    frontier.close(CELLS[0])
    assert frontier.is_held(CELLS[0], START + 59.9)
    assert not frontier.is_held(CELLS[0], START + 60)
    assert not make_frontier(delay_s=1.0).is_held(CELLS[0], START)


def test_clocks_name_resting_sites_and_delays_longer_than_the_jobs(make_frontier: Make, frontier_store: Store) -> None:
    frontier = make_frontier(delay_s=1.0, active_sites_max=3)
    feed = Feed(frontier_store, frontier)
    here = [site for site in map(str, range(100)) if cell_of_site(site) == CELLS[0]]
    asked, slow, idle, untouched, waiting = here[:5]
    frontier_store.sites.set_clock(waiting, START + 30, 20.0)
    first = feed(idle)
    assert frontier.next(START) == first
    finish_entry(frontier, frontier_store, first, START + 1)
    asked_first, _, _ = feed(asked), feed(slow), feed(untouched)
    feed(waiting)
    frontier.set_delay(slow, 5.0, START)
    assert frontier.next(START) == asked_first
    frontier.release(asked_first, START + 1, START + 1)
    pairs = {asked: (1.0, 1.0), slow: (0.0, 5.0), idle: (1.0, 1.0), waiting: (29.0, 20.0)}
    expected = {(site, *pair, NO_REFUSALS, NO_COOKIES) for site, pair in pairs.items()}
    assert sorted(expected) == frontier.clocks(CELLS[0], START + 1, 99)
    frontier.close(CELLS[0])
    assert sorted(expected) == frontier.clocks(CELLS[0], START + 1, 99)
    assert [] == frontier.clocks(CELLS[1], START + 1, 99)


@pytest.mark.parametrize("active", [False, True])
def test_the_later_instant_and_the_larger_delay_win(active: bool, make_frontier: Make, frontier_store: Store) -> None:
    frontier = make_frontier(delay_s=1.0)
    feed = Feed(frontier_store, frontier)
    entries = [feed("a")] if active else []
    frontier.learn_clock("a", 30.0, 5.0, START)
    frontier.learn_clock("a", 20.0, 1.0, START)
    assert (30.0, 5.0) == frontier.clock("a", START)
    entries += [feed("a")] if active else [feed("a"), feed("a")]
    assert frontier.next(START + 29.9) is None
    assert frontier.next(START + 30) == entries[0]
    frontier.release(entries[0], START + 30, START + 30)
    assert frontier.next(START + 34.9) is None
    assert frontier.next(START + 35) == entries[1]


@pytest.mark.parametrize("active", [False, True])
@pytest.mark.parametrize(
    ("wait_s", "delay_s", "told"), [(9.0, 1.0, 0), (11.0, 1.0, 1), (0.0, 5.0, 1), (0.0, 0.5, 0), (0.0, 0.0, 0)]
)
def test_a_learned_clock_is_journaled_if_it_is_long_or_of_the_site_s_own(
    wait_s: float, delay_s: float, told: int, active: bool, make_frontier: Make, frontier_store: Store
) -> None:
    frontier = make_frontier(delay_s=1.0)
    if active:
        Feed(frontier_store, frontier)("a")
    journaled: list[str] = []
    frontier_store.events.site_changed.append(journaled.append)
    frontier.learn_clock("a", wait_s, delay_s, START)
    frontier.learn_clock("a", wait_s, delay_s, START)
    assert told == len(journaled)
    if told:
        assert (START + wait_s, max(delay_s, 1.0)) == frontier_store.sites.clock("a")


@pytest.mark.parametrize("active", [False, True])
def test_clocks_of_another_holder_cost_at_most_the_longest_wait_and_delay(
    active: bool, make_frontier: Make, frontier_store: Store
) -> None:
    frontier = make_frontier(delay_s=1.0, retry_after_max_s=600, crawl_delay_max_s=60)
    if active:
        Feed(frontier_store, frontier)("a")
    frontier.learn_clock("a", 86_400.0, 86_400.0, START)
    assert (600.0, 60.0) == frontier.clock("a", START)


def test_clocks_of_sites_without_work_are_bounded_and_the_rest_journaled(
    make_frontier: Make, frontier_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kadcrawl.crawl.frontier.active_sites.IDLE_CLOCKS_MAX", 10)
    frontier = make_frontier(delay_s=1.0)
    for number in range(100):
        frontier.learn_clock(f"s{number}", 5.0, 1.0, START)
        assert len(frontier._idle) <= 10
    assert [5.0] * 100 == [frontier.clock(f"s{number}", START)[0] for number in range(100)]


@pytest.mark.parametrize("seed", range(20))
def test_no_site_is_ever_hurried_whatever_happens(seed: int, make_frontier: Make, frontier_store: Store) -> None:
    """Random histories of releases, retries, delays learned and robots blocks, judged from outside."""
    random = Random(seed)
    frontier = make_frontier(delay_s=1.0, site_window=3, active_sites_max=4)
    feed = Feed(frontier_store, frontier)
    received: dict[str, float] = {}
    delays = {f"s{n}": 1.0 for n in range(6)}
    out: list[FrontierEntry] = []
    now = START
    for _ in range(600):
        now += random.random()
        if random.random() < 0.5:
            feed(f"s{random.randrange(6)}", random.randrange(3), now)
        entry = frontier.next(now)
        if entry is not None:
            assert entry.site not in {other.site for other in out}
            assert now >= received.get(entry.site, 0.0) + delays[entry.site]
            out.append(entry)
        if out and random.random() < 0.7:
            entry = out.pop(random.randrange(len(out)))
            received[entry.site] = at = now - random.random() / 10
            frontier.release(entry, at, now, hold_s=0.0)
            if random.random() < 0.1:
                delays[entry.site] = 3.0
                frontier.set_delay(entry.site, 3.0, now)
            if random.random() < 0.2:
                frontier.postpone(entry, now + 5 * random.random(), now)
            else:
                frontier_store.finish(entry, b"{}\n")
                frontier.finish(entry, now)


@pytest.mark.parametrize("seed", range(30))
def test_every_url_of_an_open_cell_comes_once_despite_closing_and_merging(
    seed: int, make_frontier: Make, frontier_store: Store
) -> None:
    """Random histories in small windows with few places, judged by the store: no URL is stuck, none is out twice."""
    random = Random(seed)
    frontier = Frontier(
        frontier_store,
        Limits(site_window=2, active_sites_max=3, site_connections_max=2),
        SiteSettings(Job(delay_s=0.0)),
    )
    feed = Feed(frontier_store, frontier)
    sites = [f"s{number}" for number in range(12)]
    out: dict[str, FrontierEntry] = {}
    now = START

    def take() -> FrontierEntry | None:
        entry = frontier.next(now)
        if entry is not None:
            assert entry.url not in out
            assert frontier.is_open(cell_of_site(entry.site))
            assert frontier_store.entry(entry.key) is not None
            out[entry.url] = entry
        assert len(frontier._sites) <= 3 + len(out)
        return entry

    def come_back(entry: FrontierEntry) -> None:
        del out[entry.url]
        frontier.release(entry, now, now)
        how = random.random()
        if how < 0.6:
            frontier_store.finish(entry, b"{}\n")
            frontier.finish(entry, now)
        elif how < 0.8:
            frontier.put_back(entry, now)
        else:
            frontier.postpone(entry, now + random.random(), now)

    for _ in range(500):
        now += random.random() / 10
        one = random.choice(CELLS)
        match random.randrange(8):
            case 0 | 1 | 2:
                feed(random.choice(sites), random.randrange(3), now)
            case 3 | 4:
                take()
            case 5 if out:
                come_back(random.choice(list(out.values())))
            case 6:
                frontier.open(one, now, hold=False)
            case 7:
                frontier.close(one)
                if random.random() < 0.2:
                    frontier_store.forget_cell(one, 1000)
                elif random.random() < 0.5 and (rows := frontier_store.scan.records(one, b"", 1)):
                    entry = frontier_store.entry(rows[0][0])
                    frontier_store.learn_done(rows[0][0])
                    if entry is not None:
                        frontier.remove(entry, now)
        assert frontier.pending == sum(
            frontier_store.cells[one].pending for one in frontier_store.cells if frontier.is_open(one)
        )
    for one in CELLS:
        frontier.open(one, now, hold=False)
    for _ in range(10_000):
        now += 0.1
        if take() is None:
            if out:
                come_back(next(iter(out.values())))
            elif not frontier_store.pending:
                break
    assert (0, {}) == (frontier_store.pending, frontier._sites)


def test_requests_just_before_the_end_of_a_run_count_as_made_now(frontier_store: Store) -> None:
    """The peer journals only long waits, and its clock may have been wrong."""
    frontier = Frontier(frontier_store, Limits(), SiteSettings(Job(delay_s=4.0)), OtherRequests(100.0))
    assert (3.0, 4.0) == frontier.clock("a.example", 101.0)
    frontier.learn_clock("a.example", 0.5, 8.0, 101.0)
    assert (0.5, 8.0) == frontier.clock("a.example", 101.0)
    assert (0.0, 4.0) == frontier.clock("b.example", 104.0)


def test_clocks_of_too_many_sites_are_not_looked_at(frontier_store: Store) -> None:
    frontier = Frontier(frontier_store, Limits(), SiteSettings(Job(delay_s=4.0)))
    one = cell_of_site("a.example")
    frontier.open(one, START, hold=False)
    frontier.hold("a.example", START + 5, START)
    assert frontier.clocks(one, START, 1) is not None
    assert frontier.clocks(one, START, 0) is None


def test_after_a_restart_a_site_is_left_alone_for_a_full_delay(frontier_store: Store) -> None:
    frontier = Frontier(frontier_store, Limits(), SiteSettings(Job(delay_s=4.0)), OtherRequests(START))
    frontier.open(cell_of_site("a"), START + 1, hold=False)
    entry = frontier_store.accept(url_key(site_hash("a"), "http://a/"), "a", "http://a/", 0, 0)
    assert entry is not None
    frontier.add(entry, START + 1)
    assert frontier.next(START + 3.9) is None
    assert entry == frontier.next(START + 4)


@pytest.mark.parametrize("active", [True, False])
def test_an_unreleased_cell_rests_for_a_moment_even_without_a_delay(frontier_store: Store, active: bool) -> None:
    """A peer that still crawls the cell is about to say so."""
    frontier = Frontier(frontier_store, Limits(), SiteSettings(Job(delay_s=0.0)))
    entry = frontier_store.accept(url_key(site_hash("a"), "http://a/"), "a", "http://a/", 0, 0)
    assert entry is not None
    if active:
        frontier.open(cell_of_site("a"), START, hold=False)
        frontier.add(entry, START)
    frontier.open(cell_of_site("a"), START, hold=True)
    assert frontier.next(START + 0.5) is None
    assert entry == frontier.next(START + HOLD_LEAST_S)


def test_after_a_restart_a_site_rests_until_its_borrower_has_stopped(frontier_store: Store) -> None:
    """Found by seed 849: an owner back at once asked for a page that its taker was still fetching."""
    frontier = Frontier(frontier_store, Limits(), SiteSettings(Job(delay_s=0.0)), OtherRequests(START))
    frontier.open(cell_of_site("a"), START, hold=False)
    entry = frontier_store.accept(url_key(site_hash("a"), "http://a/"), "a", "http://a/", 0, 0)
    assert entry is not None
    frontier.add(entry, START)
    assert LEASE_S == BACK_LEAST_S
    assert frontier.next(START + LEASE_S - 0.01) is None
    assert entry == frontier.next(START + LEASE_S)


@pytest.mark.parametrize(("delay_s", "hold"), [(0.0, True), (1.0, False)])
def test_after_a_run_without_loans_a_site_rests_for_its_delay_alone(
    frontier_store: Store, delay_s: float, hold: bool
) -> None:
    others = OtherRequests(START, has_lent=False, has_met_peers=lambda: False)
    frontier = Frontier(frontier_store, Limits(), SiteSettings(Job(delay_s=delay_s)), others)
    frontier.open(cell_of_site("a"), START, hold=hold)
    entry = frontier_store.accept(url_key(site_hash("a"), "http://a/"), "a", "http://a/", 0, 0)
    assert entry is not None
    frontier.add(entry, START)
    assert frontier.next(START + delay_s - 0.01) is None
    assert entry == frontier.next(START + delay_s)


def test_a_peer_that_has_met_others_leaves_an_unreleased_cell_alone(frontier_store: Store) -> None:
    """Until the first peer comes, no other peer can have asked its sites."""
    peers: list[str] = []
    others = OtherRequests(has_met_peers=lambda: bool(peers))
    frontier = Frontier(frontier_store, Limits(), SiteSettings(Job(delay_s=0.0)), others)
    assert 0.0 == others.hold_least_s
    peers.append("a peer")
    frontier.open(cell_of_site("a"), START, hold=True)
    entry = frontier_store.accept(url_key(site_hash("a"), "http://a/"), "a", "http://a/", 0, 0)
    assert entry is not None
    frontier.add(entry, START)
    assert frontier.next(START + HOLD_LEAST_S - 0.01) is None
    assert entry == frontier.next(START + HOLD_LEAST_S)


# --- lending -----------------------------------------------------------------------------------------------------


def test_a_site_with_a_delay_is_lent_whole_and_only_its_borrower_asks_it(
    make_frontier: Make, frontier_store: Store
) -> None:
    frontier = make_frontier()
    feed = Feed(frontier_store, frontier)
    entries = [feed("a") for _ in range(3)]
    assert [("a", 3)] == frontier.sites_with_spare_connections(START)
    assert (entries[:2], 1) == frontier.lend("a", 2, START)
    assert frontier.next(START + 100) is None
    assert [] == frontier.sites_with_spare_connections(START + 100)
    assert 1 == frontier.lent(cell_of_site("a"))
    frontier_store.learn_done(entries[0].key)
    frontier.finish(entries[0], START + 100)
    frontier.put_back(entries[1], START + 100)
    assert frontier.next(START + 100) is None, "what came back waits for the connection"
    frontier.end_loan("a", 1, START + 100)
    assert 0 == frontier.lent(cell_of_site("a"))
    assert frontier.next(START + 100) == entries[1]


def test_without_a_delay_half_of_the_connections_not_in_use_are_lent(
    make_frontier: Make, frontier_store: Store
) -> None:
    frontier = make_frontier(delay_s=0.0, site_connections_max=6)
    feed = Feed(frontier_store, frontier)
    entries = [feed("a") for _ in range(12)]
    assert frontier.next(START) == entries[0]
    assert (entries[1:5], 3) == frontier.lend("a", 4, START)
    assert (entries[5:6], 1) == frontier.lend("a", 1, START), "no more connections than entries"
    assert frontier.next(START) == entries[6]
    assert frontier.next(START) is None
    assert not frontier.connections_overcommitted("a")
    frontier.end_loan("a", 3, START)
    assert [frontier.next(START) for _ in range(4)] == [*entries[7:10], None]


def test_all_busy_connections_but_one_are_lendable_and_used_once_free(
    make_frontier: Make, frontier_store: Store
) -> None:
    frontier = make_frontier(delay_s=0.0, site_connections_max=3)
    feed = Feed(frontier_store, frontier)
    for _ in range(9):
        feed("a")
    first, second, third = (frontier.next(START) for _ in range(3))
    assert first is not None
    assert second is not None
    assert third is not None
    assert frontier.is_crowded
    assert not frontier.has_free("a")
    for own in (first, second):
        assert ["a"] == [name for name, _ in frontier.sites_with_spare_connections(START)]
        assert 1 == frontier.lend("a", 2, START)[1]
        assert frontier.connections_overcommitted("a")
        frontier.release(own, START, START)
        assert not frontier.connections_overcommitted("a")
        assert frontier.next(START) is None
    assert [] == frontier.sites_with_spare_connections(START)
    assert not frontier.is_crowded
    frontier.release(third, START, START)
    assert frontier.next(START) is not None


@pytest.mark.parametrize("delay_s", [0.0, 1.0])
def test_a_site_is_crowded_only_if_entries_wait_for_lendable_connections(
    make_frontier: Make, frontier_store: Store, delay_s: float
) -> None:
    frontier = make_frontier(delay_s=delay_s, site_connections_max=2)
    feed = Feed(frontier_store, frontier)
    for _ in range(2):
        feed("a")
        assert not frontier.is_crowded
        frontier.next(START)
    assert not frontier.is_crowded
    feed("a")
    assert frontier.is_crowded is (delay_s == 0)


def test_a_site_that_is_being_asked_is_not_lent(make_frontier: Make, frontier_store: Store) -> None:
    frontier = make_frontier()
    feed = Feed(frontier_store, frontier)
    feed("a")
    feed("a")
    frontier.next(START)
    assert [] == frontier.sites_with_spare_connections(START)


def test_a_site_lent_when_its_cell_closes_and_opens_again_stays_lent(
    make_frontier: Make, frontier_store: Store
) -> None:
    frontier = make_frontier()
    feed = Feed(frontier_store, frontier)
    first, second = feed("a"), feed("a")
    frontier.lend("a", 1, START)
    frontier.close(cell_of_site("a"))
    assert 1 == frontier.lent(cell_of_site("a"))
    frontier.open(cell_of_site("a"), START, hold=False)
    assert frontier.next(START + 100) is None
    frontier.put_back(first, START + 100)
    frontier.end_loan("a", 1, START + 100)
    assert {first.url, second.url} == {
        entry.url for entry in take_and_finish_all(frontier, frontier_store, START + 100)
    }


def test_all_of_a_loan_done_leaves_nothing_behind(make_frontier: Make, frontier_store: Store) -> None:
    frontier = make_frontier()
    entry = Feed(frontier_store, frontier)("a")
    frontier.lend("a", 9, START)
    frontier_store.learn_done(entry.key)
    frontier.finish(entry, START)
    frontier.end_loan("a", 1, START)
    assert (0, [], None) == (frontier.pending, frontier.sites_with_spare_connections(START), frontier.next(START + 100))


def take_and_finish_all(frontier: Frontier, store: Store, now: float) -> list[FrontierEntry]:
    """Take and finish all entries in turn."""
    found = []
    while (entry := frontier.next(now)) is not None:
        found.append(entry)
        now += 10.0
        finish_entry(frontier, store, entry, now)
        now += 10.0
    return found


def test_what_waits_for_this_peer_is_what_its_sites_do_not_keep_back(
    make_frontier: Make, frontier_store: Store
) -> None:
    frontier = make_frontier(delay_s=10.0)
    feed = Feed(frontier_store, frontier)
    for site in ("a.example", "a.example", "b.example", "b.example", "b.example"):
        feed(site)
    assert 5 == frontier.waiting(START)
    entry = frontier.next(START)
    assert entry is not None
    left = {"a.example": 3, "b.example": 2}[entry.site]
    assert left == frontier.waiting(START)
    finish_entry(frontier, frontier_store, entry, START)
    assert left == frontier.waiting(START + 9)
    assert 4 == frontier.waiting(START + 10)
    frontier.block("a.example")
    frontier.block("b.example")
    assert 0 == frontier.waiting(START + 10)


def test_all_entries_of_a_site_without_a_delay_but_lent_ones_wait_here(
    make_frontier: Make, frontier_store: Store
) -> None:
    frontier = make_frontier(delay_s=0.0, site_connections_max=2)
    feed = Feed(frontier_store, frontier)
    for _ in range(9):
        feed("a.example")
    assert [frontier.next(START), frontier.next(START)].count(None) == 0
    assert 9 == frontier.waiting(START)
    lent, _ = frontier.lend("a.example", 3, START)
    assert 9 - len(lent) == frontier.waiting(START)


@pytest.mark.parametrize("limits", [{"site_window": 2}, {"active_sites_max": 1}])
def test_what_is_not_in_memory_waits_as_well(
    limits: dict[str, int], make_frontier: Make, frontier_store: Store
) -> None:
    frontier = make_frontier(delay_s=0.0, **limits)
    feed = Feed(frontier_store, frontier)
    for number in range(9):
        feed(f"{number % 3}.example")
    assert 9 == frontier.waiting(START)
    assert frontier.next(START) is not None
    assert 9 == frontier.waiting(START)
    frontier.close(cell_of_site("1.example"))
    assert frontier.waiting(START) == frontier.pending


def test_what_was_there_before_a_restart_waits_before_it_is_read(make_frontier: Make, frontier_store: Store) -> None:
    feed = Feed(frontier_store, make_frontier(delay_s=0.0))
    for number in range(9):
        feed(f"{number % 3}.example")
    assert 9 == make_frontier(delay_s=0.0).waiting(START)


def take_all(frontier: Frontier) -> list[FrontierEntry]:
    """Take the entries that may be fetched now."""
    found = []
    while (entry := frontier.next(START)) is not None:
        found.append(entry)
    return found


def test_sites_that_do_not_answer_leave_requests_to_one_that_does(make_frontier: Make, frontier_store: Store) -> None:
    """Some sites have never answered, others answered before.

    Together they have the requests that are not reserved, and each site that answered before has one request.
    """
    frontier = make_frontier(delay_s=0.0, fetches_max=16, site_connections_max=4)
    feed = Feed(frontier_store, frontier)
    good = [feed("good") for _ in range(3)]
    for entry in good:
        assert frontier.next(START) == entry
        frontier.release(entry, START, START, answered=True)
    for n in range(40):
        feed(f"{n % 5}.bad")
    assert len(take_all(frontier)) == frontier._unproven.used == 12
    entries = [feed("good") for _ in range(3)]
    for entry in entries:
        assert take_all(frontier) == [entry]
        frontier.release(entry, START, START, answered=True)


def test_sites_that_answer_use_all_requests_there_may_be(
    make_frontier: Make, frontier_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sites that answer get the requests reserved for first connections, once there are as many such sites."""
    monkeypatch.undo()
    frontier = make_frontier(delay_s=0.0, fetches_max=64, site_connections_max=8)
    feed = Feed(frontier_store, frontier)
    for site in range(10):
        for _ in range(40):
            feed(f"s{site}")
    for _ in range(2):
        for entry in take_all(frontier):
            frontier.release(entry, START, START, answered=True)
    assert len(take_all(frontier)) >= 64, "of which a crawler makes as many as it may"


def test_what_had_to_wait_for_unproven_requests_comes_in_its_turn(make_frontier: Make, frontier_store: Store) -> None:
    frontier = make_frontier(fetches_max=16, site_connections_max=1)
    feed = Feed(frontier_store, frontier)
    entries = [feed(f"{n:02}.new") for n in range(20)]
    assert take_all(frontier) == entries[:12]
    assert frontier.next_due() is None
    frontier.release(entries[0], START, START, answered=True)
    frontier.release(entries[1], START, START, answered=False)
    assert take_all(frontier) == entries[12:14]
    frontier.give_up_slot(entries[2])
    frontier.put_back(entries[2], START)
    assert take_all(frontier) == [entries[2]]
    frontier.release(entries[3], START, START)
    frontier._unproven.add(1)  # A request of the peer's other frontier.
    assert take_all(frontier) == []
    frontier._unproven.add(-1)
    assert take_all(frontier) == [entries[14]]


def test_one_site_alone_uses_all_its_connections_with_few_requests_allowed(
    make_frontier: Make, frontier_store: Store
) -> None:
    frontier = make_frontier(delay_s=0.0, fetches_max=8, site_connections_max=8)
    feed = Feed(frontier_store, frontier)
    feed("a")
    (first,) = take_all(frontier)
    frontier.release(first, START, START, answered=True)
    for _ in range(10):
        feed("a")
    assert len(take_all(frontier)) == 8


def test_a_site_that_did_not_answer_has_one_connection_until_it_does(
    make_frontier: Make, frontier_store: Store
) -> None:
    frontier = make_frontier(delay_s=0.0, site_connections_max=3)
    feed = Feed(frontier_store, frontier)
    entries = [feed("a") for _ in range(9)]
    assert take_all(frontier) == entries[:3]
    frontier.release(entries[0], START, START, answered=False)
    frontier.release(entries[1], START, START)
    assert take_all(frontier) == []
    assert frontier.sites_with_spare_connections(START) == []
    frontier.release(entries[2], START, START, answered=False)
    assert frontier.lend("a", 1, START)[1] == 1
    frontier.end_loan("a", 1, START)
    (only,) = take_all(frontier)
    frontier.release(only, START, START, answered=True)
    assert len(take_all(frontier)) == 3


@pytest.mark.parametrize("seed", range(10))
def test_unproven_requests_are_counted_whatever_happens(seed: int, make_frontier: Make, frontier_store: Store) -> None:
    random = Random(seed)
    frontier = make_frontier(delay_s=0.0, fetches_max=8, site_connections_max=4)
    feed = Feed(frontier_store, frontier)
    out: list[FrontierEntry] = []
    for _ in range(300):
        for _ in range(random.randrange(3)):
            feed(f"{random.randrange(5)}.test")
        out += take_all(frontier)
        random.shuffle(out)
        for _ in range(min(len(out), random.randrange(5))):
            entry = out.pop()
            if random.random() < 0.2:
                frontier.give_up_slot(entry)
                frontier.put_back(entry, START)
            else:
                frontier.release(entry, START, START, answered=random.choice([None, False, True]))
                frontier_store.finish(entry, b"{}\n")
                frontier.finish(entry, START)
        assert frontier._unproven.used == sum(site.unproven for site in frontier._sites.values()) <= 6


def test_a_site_that_waits_for_a_shared_clock_is_not_asked_and_lent_to_leaves_alone(
    make_frontier: Make, frontier_store: Store
) -> None:
    frontier = make_frontier()
    feed = Feed(frontier_store, frontier)
    entry = feed("a")
    assert entry == frontier.next(START)
    frontier.give_up_slot(entry)
    frontier.park("a")
    frontier.put_back(entry, START)
    assert frontier.next(START + 100) is None
    assert [] == frontier.sites_with_spare_connections(START + 100)
    assert [("a", 1)] == frontier.sites_with_spare_connections(START + 100, parked=True)
    assert frontier.has_request("a")
    assert ([entry], 1) == frontier.lend("a", 5, START + 100)
    assert not frontier.has_request("a"), "its only URL is lent"
    frontier.end_loan("a", 1, START + 100)
    frontier.put_back(entry, START + 100)
    assert frontier.has_request("a")
    frontier.unpark("a")
    assert entry == frontier.next(START + 100)
    frontier.unpark("a")
    frontier.unpark("unknown")
    assert not frontier.has_request("unknown")


def test_a_site_whose_connections_are_lent_has_no_request_although_it_has_urls(
    make_frontier: Make, frontier_store: Store
) -> None:
    frontier = make_frontier()
    feed = Feed(frontier_store, frontier)
    for _ in range(3):
        feed("a")
    frontier.park("a")
    assert 1 == len(frontier.lend("a", 1, START)[0])
    assert not frontier.has_request("a"), "its turn on the clock would be in vain"
    frontier.unpark("a")
    assert frontier.next(START + 100) is None
    frontier.end_loan("a", 1, START + 100)
    assert frontier.has_request("a")
    assert frontier.next(START + 100) is not None


def test_a_site_that_waits_for_a_shared_clock_is_not_crowded(make_frontier: Make, frontier_store: Store) -> None:
    frontier = make_frontier(delay_s=0.0)
    feed = Feed(frontier_store, frontier)
    for _ in range(5):
        feed("a")
    frontier.park("a")
    assert not frontier.is_crowded, "other full peers would wait for the same clock"


def test_a_release_says_how_long_the_delay_lasts(make_frontier: Make, frontier_store: Store) -> None:
    frontier = make_frontier(delay_s=2.0)
    feed = Feed(frontier_store, frontier)
    entry = feed("a")
    frontier.next(START)
    assert START + 7.0 == frontier.release(entry, START + 5, START + 6, hold_s=100.0)


def test_a_shared_clock_rests_after_a_restart(frontier_store: Store) -> None:
    frontier = Frontier(frontier_store, Limits(), SiteSettings(Job(delay_s=2.0)), OtherRequests(START))
    assert REST_S + 2.0 == frontier.shared_rest_s("ip 192.0.2.1", START)
    assert 0.0 == frontier.shared_rest_s("ip 192.0.2.1", START + 20)
