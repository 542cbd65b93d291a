"""The frontier: breadth first, each site at its own pace, in bounded memory, and the same after a restart."""

from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest

from kadcrawl.config import Limits
from kadcrawl.crawl.frontier import Frontier
from kadcrawl.history.entry import Entry
from kadcrawl.history.store import Store
from kadcrawl.keys import Key

START = 1_000_000.0
Make = Callable[..., Frontier]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = Store(tmp_path, 0.0)
    yield store
    store.close()


@pytest.fixture
def make(store: Store) -> Make:
    def make(delay_s: float = 1.0, now: float = START, **limits: int) -> Frontier:
        return Frontier(store, Limits(**limits), delay_s, now)

    return make


class Feed:
    """Accepts URLs into the store and the frontier."""

    def __init__(self, store: Store, frontier: Frontier) -> None:
        self.store, self.frontier, self.count = store, frontier, 0

    def __call__(self, site: str, depth: int = 0, now: float = START) -> Entry:
        self.count += 1
        key = Key(self.count.to_bytes(20, "big"))
        entry = self.store.accept(key, site, f"http://{site}/{self.count}", depth, 0)
        assert entry is not None
        self.frontier.add(entry, now)
        return entry


def finish(frontier: Frontier, store: Store, entry: Entry, now: float) -> None:
    frontier.release(entry, now, now)
    store.finish(entry, b"{}\n")
    frontier.finish(entry, now)


def test_one_request_at_a_time_and_a_full_delay_after_it_was_received(make: Make, store: Store) -> None:
    frontier = make(delay_s=2.0)
    feed = Feed(store, frontier)
    first, second = feed("a"), feed("a")
    assert frontier.next(START) == first
    assert frontier.next(START + 100) is None
    frontier.release(first, received_at=START + 5, now=START + 6)
    assert frontier.next_due() == START + 7
    assert frontier.next(START + 6.99) is None
    assert frontier.next(START + 7) == second


def test_without_a_delay_a_site_gets_several_requests_and_no_more_than_its_limit(make: Make, store: Store) -> None:
    frontier = make(delay_s=0.0, site_connections_max=3)
    feed = Feed(store, frontier)
    entries = [feed("a") for _ in range(5)]
    assert [*entries[:3], None] == [frontier.next(START) for _ in range(4)]
    frontier.release(entries[0], START, START)
    assert [entries[3], None] == [frontier.next(START) for _ in range(2)]


def test_sites_do_not_wait_for_each_other(make: Make, store: Store) -> None:
    frontier = make()
    feed = Feed(store, frontier)
    entries = [feed(site) for site in "abc"]
    assert {*entries} == {frontier.next(START) for _ in range(3)}


def test_breadth_first(make: Make, store: Store) -> None:
    frontier = make(delay_s=0.0)
    feed = Feed(store, frontier)
    deep, shallow, middle = feed("a", 3), feed("a", 1), feed("a", 2)
    assert [shallow, middle, deep] == [frontier.next(START) for _ in range(3)]


def test_a_longer_delay_learned_later_counts_from_the_last_request(make: Make, store: Store) -> None:
    frontier = make(delay_s=0.1)
    feed = Feed(store, frontier)
    first, second = feed("a"), feed("a")
    assert frontier.next(START) == first
    frontier.release(first, START, START)
    frontier.set_delay("a", 5.0, START)
    assert frontier.next(START + 4.9) is None
    assert frontier.next(START + 5) == second


def test_a_site_is_left_alone_as_long_as_it_asks(make: Make, store: Store) -> None:
    frontier = make()
    feed = Feed(store, frontier)
    first, second = feed("a"), feed("a")
    assert frontier.next(START) == first
    frontier.release(first, START, START, hold_s=60.0)
    assert frontier.next(START + 59) is None
    assert frontier.next(START + 60) == second


def test_a_postponed_entry_waits_for_its_due_and_does_not_hold_up_others(make: Make, store: Store) -> None:
    frontier = make(delay_s=0.0)
    feed = Feed(store, frontier)
    first = feed("a")
    assert frontier.next(START) == first
    frontier.release(first, START, START)
    postponed = frontier.postpone(first, START + 30, START)
    assert (1, START + 30) == (postponed.tries, postponed.due)
    second = feed("a")
    assert [second, None] == [frontier.next(START) for _ in range(2)]
    assert frontier.next_due() == START + 30
    assert frontier.next(START + 30) == postponed


def test_nothing_starts_at_a_blocked_site(make: Make, store: Store) -> None:
    frontier = make(delay_s=0.0)
    feed = Feed(store, frontier)
    first = feed("a")
    feed("a")
    assert frontier.next(START) == first
    frontier.block("a")
    assert frontier.next(START + 10) is None
    frontier.release(first, START, START)
    frontier.put_back(first, START)
    frontier.unblock("a", START)
    assert frontier.next(START) == first


def test_a_site_without_work_keeps_its_clock(make: Make, store: Store) -> None:
    frontier = make(delay_s=10.0)
    feed = Feed(store, frontier)
    first = feed("a")
    assert frontier.next(START) == first
    finish(frontier, store, first, START + 1)
    second = feed("a", now=START + 2)
    assert frontier.next(START + 10.9) is None
    assert frontier.next(START + 11) == second


def test_everything_comes_through_small_windows_once(make: Make, store: Store) -> None:
    frontier = make(delay_s=0.0, site_window=4, active_sites_max=3)
    feed = Feed(store, frontier)
    random = Random(7)
    entries = {feed(f"site{random.randrange(9)}", random.randrange(4)) for _ in range(200)}
    seen: list[Entry] = []
    while (entry := frontier.next(START)) is not None:
        seen.append(entry)
        assert len(frontier._sites) <= 3
        finish(frontier, store, entry, START)
    assert sorted(entries) == sorted(seen)
    assert frontier.pending == 0
    assert not frontier._sites


def test_a_window_is_refilled_beyond_what_is_out(make: Make, store: Store) -> None:
    frontier = make(delay_s=0.0, site_window=2, site_connections_max=100)
    feed = Feed(store, frontier)
    entries = [feed("a") for _ in range(9)]
    taken = [frontier.next(START) for _ in range(9)]
    assert entries == taken
    assert frontier.next(START) is None


def test_a_restart_takes_up_all_that_is_pending_after_a_full_delay(make: Make, store: Store) -> None:
    frontier = make(active_sites_max=2)
    feed = Feed(store, frontier)
    entries = {feed(site) for site in "abcde"}
    again = make(delay_s=3.0, now=START + 50, active_sites_max=2)
    assert again.next(START + 52.9) is None
    seen = set()
    for now in (START + 53 + n for n in range(20)):
        while (entry := again.next(now)) is not None:
            seen.add(entry)
            finish(again, store, entry, now)
    assert entries == seen


def test_a_long_wait_holds_after_a_restart(make: Make, store: Store) -> None:
    frontier = make()
    feed = Feed(store, frontier)
    first = feed("a")
    assert frontier.next(START) == first
    frontier.release(first, START, START, hold_s=600.0)
    frontier.put_back(first, START)
    again = make(now=START + 5)
    assert again.next(START + 599) is None
    assert again.next(START + 600) == first


def test_a_learned_crawl_delay_holds_after_a_restart(make: Make, store: Store) -> None:
    frontier = make(delay_s=1.0)
    feed = Feed(store, frontier)
    first = feed("a")
    frontier.set_delay("a", 9.0, START)
    again = make(delay_s=1.0, now=START + 100)
    assert again.next(START + 108.9) is None
    assert again.next(START + 109) == first


def test_the_job_s_larger_delay_counts_from_the_restart_on(make: Make, store: Store) -> None:
    feed = Feed(store, make(delay_s=0.0))
    first, second = feed("a"), feed("a")
    store.set_site("a", START - 5, 0.0)
    again = make(delay_s=2.0, now=START)
    assert again.next(START + 1.9) is None
    assert again.next(START + 2) == first
    finish(again, store, first, START + 2)
    assert again.next(START + 3.9) is None
    assert again.next(START + 4) == second


def test_a_clock_that_was_ahead_costs_no_more_than_the_longest_wait(make: Make, store: Store) -> None:
    ahead = START + 30 * 86_400
    frontier = make(delay_s=0.0, now=ahead)
    feed = Feed(store, frontier)
    held, postponed = feed("a", now=ahead), feed("b", now=ahead)
    assert {held, postponed} == {frontier.next(ahead), frontier.next(ahead)}
    frontier.release(held, ahead, ahead, hold_s=600.0)
    frontier.put_back(held, ahead)
    frontier.release(postponed, ahead, ahead)
    postponed = frontier.postpone(postponed, ahead + 5, ahead)
    again = make(delay_s=0.0, now=START, retry_after_max_s=60)
    assert again.next(START + 59) is None
    assert {held, postponed} == {again.next(START + 60), again.next(START + 60)}


def test_a_long_delay_is_no_clock_that_was_ahead(make: Make, store: Store) -> None:
    store.set_site("a", START + 7200, 7200.0)
    again = make(now=START, retry_after_max_s=60)
    first = Feed(store, again)("a")
    assert again.next(START + 7199) is None
    assert again.next(START + 7200) == first


@pytest.mark.parametrize("how", ["put back", "postponed"])
@pytest.mark.parametrize("why", ["done elsewhere", "given away"])
def test_an_entry_removed_while_it_is_out_does_not_come_again(how: str, why: str, make: Make, store: Store) -> None:
    frontier = make(delay_s=0.0)
    feed = Feed(store, frontier)
    entry = feed("a")
    assert frontier.next(START) == entry
    if why == "done elsewhere":
        store.learn_done(entry.key)
    else:
        store.forget(entry)
    frontier.remove(entry, START)
    frontier.release(entry, START, START)
    if how == "put back":
        frontier.put_back(entry, START)
    else:
        frontier.postpone(entry, START, START)
    assert frontier.next(START) is None
    assert not frontier._sites


def test_what_is_learned_of_a_site_let_go_holds_when_it_comes_back(make: Make, store: Store) -> None:
    """Its robots.txt was under way when its last entry was removed."""
    frontier = make(delay_s=0.0)
    feed = Feed(store, frontier)
    frontier.hold("a", START + 20, START)
    frontier.set_delay("b", 30.0, START)
    first, second = feed("a"), feed("b")
    assert frontier.next(START + 19) is None
    assert frontier.next(START + 20) == first
    assert frontier.next(START + 29) is None
    assert frontier.next(START + 30) == second


def test_a_frozen_site_starts_nothing_until_thawed(make: Make, store: Store) -> None:
    frontier = make(delay_s=0.0)
    feed = Feed(store, frontier)
    first = feed("a")
    frontier.freeze("a")
    second = feed("a")
    assert frontier.next(START) is None
    frontier.thaw("a", START)
    assert [first, second] == [frontier.next(START), frontier.next(START)]


def test_a_removed_entry_does_not_come_and_its_site_is_let_go(make: Make, store: Store) -> None:
    frontier = make(delay_s=0.0)
    feed = Feed(store, frontier)
    entry = feed("a")
    store.forget(entry)
    frontier.remove(entry, START)
    assert frontier.next(START) is None
    assert not frontier._sites


def test_an_entry_that_is_out_can_be_removed_and_still_finish(make: Make, store: Store) -> None:
    frontier = make(delay_s=0.0)
    feed = Feed(store, frontier)
    entry = feed("a")
    assert frontier.next(START) == entry
    store.learn_done(entry.key)
    frontier.remove(entry, START)
    assert frontier.out("a") == 1
    finish(frontier, store, entry, START)
    assert not frontier._sites


def test_waits_pass_to_the_next_owner_and_the_later_instant_wins(make: Make, store: Store) -> None:
    frontier = make()
    feed = Feed(store, frontier)
    frontier.learn_wait("a", 30.0, START)
    frontier.learn_wait("a", 20.0, START)
    assert frontier.wait_s("a", START) == 30.0
    entry = feed("a")
    assert frontier.next(START + 29) is None
    assert frontier.next(START + 30) == entry
    frontier.learn_wait("a", 60.0, START)
    assert frontier.wait_s("a", START) == 60.0


@pytest.mark.parametrize("seed", range(20))
def test_no_site_is_ever_hurried_whatever_happens(seed: int, make: Make, store: Store) -> None:
    """Random histories of releases, retries, delays learned and robots blocks, judged from outside."""
    random = Random(seed)
    frontier = make(delay_s=1.0, site_window=3, active_sites_max=4)
    feed = Feed(store, frontier)
    received: dict[str, float] = {}
    delays = {f"s{n}": 1.0 for n in range(6)}
    out: list[Entry] = []
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
                store.finish(entry, b"{}\n")
                frontier.finish(entry, now)
