"""Runs name one page and mean many: exactly those that the owner has finished, or none."""

from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest

from kadcrawl.keys import Key, site_hash, url_key
from kadcrawl.link.wire.messages import BATCH_MAX, DoneRun
from kadcrawl.replication.done_runs import done_run, in_runs, resolved
from kadcrawl.store.frontier_entry import FrontierEntry
from kadcrawl.store.store import DONE, PENDING, Store

BITS = 8
SITES = ("a.example", "b.example", "c.example")

MakeStore = Callable[[str], Store]


@pytest.fixture
def make_store(tmp_path: Path) -> Iterator[MakeStore]:
    stores = []

    def make(name: str) -> Store:
        directory = tmp_path / name
        directory.mkdir()
        store = Store(directory, 0.0)
        store.begin(BITS)
        stores.append(store)
        return store

    yield make
    for store in stores:
        store.close()


def key_of(number: int) -> Key:
    site = SITES[number % len(SITES)]
    return url_key(site_hash(site), f"http://{site}/{number}")


def accept(store: Store, number: int) -> None:
    site = SITES[number % len(SITES)]
    assert store.accept(key_of(number), site, f"http://{site}/{number}", number % 2, 0)


def finish(store: Store, *numbers: int) -> dict[Key, FrontierEntry]:
    """Finish pages, and return their former entries by key, as the store tells them."""
    places: dict[Key, FrontierEntry] = {}
    store.events.page_done.append(lambda entry: places.update({entry.key: entry}))
    for number in numbers:
        assert store.learn_done(key_of(number))
    return places


def test_a_backup_learns_exactly_what_its_owner_has_finished(make_store: MakeStore) -> None:
    random = Random(1)
    for turn in range(20):
        owner, backup = make_store(f"owner{turn}"), make_store(f"backup{turn}")
        numbers = random.sample(range(60), 40)
        for number in numbers:
            accept(owner, number)
            accept(backup, number)
        finished = random.sample(numbers, random.randrange(1, 41))
        places = finish(owner, *finished)
        runs, rest = in_runs([key_of(number) for number in finished], places, owner.frontier.has_between)
        learned = resolved(backup, [done_run(run) for run in runs])
        assert runs == learned
        assert {key_of(number) for number in finished} == {key for run in runs for key in run} | set(rest)
        assert len(finished) == sum(map(len, runs)) + len(rest)


def test_pages_that_end_in_the_order_of_the_crawl_are_one_run_for_each_site(make_store: MakeStore) -> None:
    owner = make_store("owner")
    for number in range(30):
        accept(owner, number)
    ended = sorted(range(30), key=lambda number: (number % 2, number))[:20]
    places = finish(owner, *ended)
    runs, rest = in_runs(map(key_of, ended), places, owner.frontier.has_between)
    assert (3, []) == (len(runs), rest)


def test_a_page_that_still_waits_parts_a_run(make_store: MakeStore) -> None:
    owner = make_store("owner")
    for number in range(0, 30, 6):
        accept(owner, number)
    places = finish(owner, 0, 6, 18, 24)
    runs, rest = in_runs(map(key_of, (24, 18, 6, 0)), places, owner.frontier.has_between)
    assert ([[key_of(0), key_of(6)], [key_of(18), key_of(24)]], []) == (runs, rest)


def test_a_page_that_the_backup_never_had_as_pending_is_told_by_its_key(make_store: MakeStore) -> None:
    owner = make_store("owner")
    for number in (0, 6, 12):
        accept(owner, number)
    places = finish(owner, 0, 6, 12)
    del places[key_of(6)]
    assert ([[key_of(0), key_of(12)]], [key_of(6)]) == in_runs(
        map(key_of, (0, 6, 12)), places, owner.frontier.has_between
    )
    assert ([], [key_of(0)]) == in_runs([key_of(0)], places, owner.frontier.has_between)


def test_a_backup_with_another_order_says_so_and_changes_nothing(make_store: MakeStore) -> None:
    owner, backup = make_store("owner"), make_store("backup")
    for number in (0, 6, 12, 18):
        accept(owner, number)
    for number in (18, 0, 12, 6):
        accept(backup, number)
    places = finish(owner, 0, 6)
    runs, _ = in_runs(map(key_of, (0, 6)), places, owner.frontier.has_between)
    assert [None] == resolved(backup, [done_run(run) for run in runs])


def test_a_run_of_pages_unknown_done_or_too_few_is_refused(make_store: MakeStore) -> None:
    backup = make_store("backup")
    for number in (0, 6, 12):
        accept(backup, number)
    backup.learn_done(key_of(0))
    first = [key_of(6), key_of(12)]
    unlike = [
        done_run([key_of(0), key_of(6)]),
        done_run([key_of(18), key_of(24)]),
        DoneRun(key_of(6), 3, done_run(first).check),
        DoneRun(key_of(6), 2, bytes(16)),
    ]
    assert [first, None, None, None, None] == resolved(backup, [done_run(first), *unlike])


def test_the_pages_of_one_message_are_bounded(make_store: MakeStore) -> None:
    backup = make_store("backup")
    for number in range(0, 6 * BATCH_MAX + 6, 6):
        accept(backup, number)
    keys = [key_of(number) for number in range(0, 6 * BATCH_MAX + 6, 6)]
    assert [keys[:BATCH_MAX], None] == resolved(backup, [done_run(keys[:BATCH_MAX]), done_run(keys[:2])])


def test_only_plain_pages_have_a_place(make_store: MakeStore) -> None:
    """A page that comes again has a visit, which travels with its key."""
    store = make_store("store")
    accept(store, 0)
    places = finish(store)
    assert store.finish_elsewhere(key_of(0), None, 0)
    assert [key_of(0)] == list(places)
    assert (DONE, None) == (store.state(key_of(0)), store.state(key_of(6)))
    accept(store, 6)
    assert store.state(key_of(6)) == PENDING
    assert store.learn_done(key_of(12))
    assert [key_of(0)] == list(places), "a key that was never pending has no place"
