"""Test that the intake accepts links once and checked, and merges the statements of several holders of a cell."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from kadcrawl.crawl.frontier.frontier import Frontier
from kadcrawl.crawl.links.intake import Intake, IntakeEvents, IntakeLimits
from kadcrawl.crawl.output.counters import Counters
from kadcrawl.crawl.scope.partitioner import Partitioner
from kadcrawl.crawl.scope.query_limits import PathQueries
from kadcrawl.crawl.scope.scope import Scope
from kadcrawl.keys import Key
from kadcrawl.link.wire.messages import DatedLink, Link
from kadcrawl.overlay.waves.activity import Activity
from kadcrawl.settings.job import Job
from kadcrawl.settings.limits import Limits
from kadcrawl.settings.site_settings import SiteSettings
from kadcrawl.store.store import DONE, PENDING, Store

NOW = 1_000_000.0
SEED, INSIDE, OUTSIDE = "http://a.test/", "http://a.test/x", "http://b.test/x"


@dataclass
class IntakeWorld:
    store: Store
    frontier: Frontier
    intake: Intake
    partitioner: Partitioner
    counters: Counters
    activity: Activity
    modified: list[tuple[Key, float]]
    woken: int = 0

    def take(self, url: str, depth: int = 1) -> None:
        self.intake.accept(Link(url, depth, 0), self.partitioner.locate(url), NOW)

    def offer(self, url: str, depth: int = 1) -> None:
        self.intake.accept_offered(Link(url, depth, 0), self.partitioner.locate(url), NOW)

    def merge(self, url: str, depth: int = 1, tries: int = 0, due: float = 0.0) -> None:
        self.intake.merge_pending(Link(url, depth, 0), self.partitioner.locate(url), NOW, tries, due)

    def merge_done(self, url: str) -> None:
        self.intake.merge_done(self.partitioner.locate(url).key, NOW)

    def state(self, url: str) -> int | None:
        return self.store.state(self.partitioner.locate(url).key)

    def known(self, url: str) -> tuple[int, int, float]:
        entry = self.store.entry(self.partitioner.locate(url).key)
        assert entry is not None
        return entry.depth, entry.tries, entry.due


@pytest.fixture(params=[True])
def intake_world(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[IntakeWorld]:
    """Build the intake and its parts with all cells open. Depth counts unless the test asks for `by_depth` False."""
    store = Store(tmp_path, 0.0)
    store.begin(1)
    frontier, partitioner, totals, activity = (
        Frontier(store, Limits(), SiteSettings(Job(delay_s=0.0))),
        Partitioner("host", 1),
        Counters(),
        Activity(),
    )
    for cell in {partitioner.locate(url).cell for url in (SEED, OUTSIDE)}:
        frontier.open(cell, NOW, hold=False)

    def wake() -> None:
        made.woken += 1

    modified: list[tuple[Key, float]] = []
    events = IntakeEvents(changed=wake, modified=lambda key, at: modified.append((key, at)))
    limits = IntakeLimits(by_depth=request.param)
    intake = Intake(store, frontier, Scope(Job(seeds=(SEED,))), totals, activity, limits, events)
    made = IntakeWorld(store, frontier, intake, partitioner, totals, activity, modified)
    yield made
    store.close()


def test_a_link_is_taken_once(intake_world: IntakeWorld) -> None:
    for _ in range(2):
        intake_world.take(INSIDE)
    assert (1, 1, 1, 1) == (
        intake_world.counters.urls,
        intake_world.store.pending,
        intake_world.activity.count,
        intake_world.woken,
    )
    entry = intake_world.frontier.next(NOW)
    assert entry is not None
    assert (INSIDE, None) == (entry.url, intake_world.frontier.next(NOW))


@pytest.mark.parametrize(
    ("url", "depth", "state"),
    [
        (INSIDE, 1, PENDING),
        (OUTSIDE, 1, None),
        (OUTSIDE, 0, None),
        ("http://A.test/x", 1, None),
        ("http://A.test/x", 0, None),
    ],
)
def test_an_offer_stands_every_check_or_is_rejected(
    url: str, depth: int, state: int | None, intake_world: IntakeWorld
) -> None:
    intake_world.offer(url, depth)
    assert (state, int(state is None)) == (intake_world.state(url), intake_world.intake.rejected)


def test_an_excluded_seed_is_accepted_and_widens_the_scope_by_itself_only(intake_world: IntakeWorld) -> None:
    intake_world.intake._scope = scope = Scope(Job(seeds=(SEED, OUTSIDE), exclude=("x",)))
    intake_world.offer(OUTSIDE, 0)
    intake_world.offer(INSIDE, 1)
    assert (PENDING, None) == (intake_world.state(OUTSIDE), intake_world.state(INSIDE))
    intake_world.offer("http://c.test/", 0)
    assert not scope.is_seed("http://c.test/")
    assert 2 == intake_world.intake.rejected


@pytest.mark.parametrize(("url", "state"), [(INSIDE, PENDING), (OUTSIDE, PENDING), ("http://A.test/x", None)])
def test_a_record_of_another_holder_need_not_be_in_scope_but_canonical(
    url: str, state: int | None, intake_world: IntakeWorld
) -> None:
    intake_world.merge(url)
    assert (state, int(state is None)) == (intake_world.state(url), intake_world.intake.rejected)


def test_a_site_gets_urls_up_to_its_limit_and_seeds_and_records_always(intake_world: IntakeWorld) -> None:
    intake_world.intake._pages_max_of = lambda site: 2
    for url in (INSIDE, INSIDE + "2"):
        intake_world.take(url)
    assert {} == intake_world.counters.left_out
    intake_world.take(INSIDE + "3")
    intake_world.take(INSIDE)
    intake_world.offer(INSIDE + "3")
    intake_world.take(OUTSIDE)
    assert ({"site_pages": 2}, None, PENDING) == (
        intake_world.counters.left_out,
        intake_world.state(INSIDE + "3"),
        intake_world.state(OUTSIDE),
    )
    intake_world.offer(INSIDE + "4", 0)
    intake_world.merge(INSIDE + "5")
    intake_world.merge_done(INSIDE + "6")
    assert [PENDING, PENDING, DONE] == [intake_world.state(INSIDE + number) for number in "456"]
    intake_world.merge_done(INSIDE + "3")
    intake_world.take(INSIDE + "3")
    assert {"site_pages": 2} == intake_world.counters.left_out, "what is known is not left out"


def test_a_path_gets_queries_up_to_its_limit_and_known_urls_and_seeds(intake_world: IntakeWorld) -> None:
    intake_world.intake._path_queries = PathQueries(2)
    intake_world.merge(INSIDE + "?0")
    for query in ("1", "1", "2", "1", "0"):
        intake_world.take(f"{INSIDE}?{query}")
    assert ({}, 2) == (intake_world.counters.left_out, intake_world.counters.urls)
    intake_world.take(INSIDE + "?3")
    intake_world.offer(INSIDE + "?4")
    intake_world.take(INSIDE + "?2")
    assert {"path_queries": 2} == intake_world.counters.left_out, "what is known is not left out"
    intake_world.take(INSIDE)
    intake_world.take(INSIDE + "y?3")
    intake_world.offer(INSIDE + "?5", 0)
    intake_world.merge(INSIDE + "?6")
    intake_world.merge_done(INSIDE + "?7")
    assert [None, None, PENDING, PENDING, DONE] == [intake_world.state(f"{INSIDE}?{query}") for query in "34567"]
    assert {PENDING} == {intake_world.state(INSIDE), intake_world.state(INSIDE + "y?3")}
    assert {"path_queries": 2} == intake_world.counters.left_out


def test_a_site_that_has_all_it_may_have_is_told_rather_than_its_path(intake_world: IntakeWorld) -> None:
    intake_world.intake._pages_max_of = lambda site: 1
    intake_world.intake._path_queries = PathQueries(1)
    for query in "12":
        intake_world.take(f"{INSIDE}?{query}")
    assert {"site_pages": 1} == intake_world.counters.left_out


def test_a_record_counts_as_accepted_only_where_it_was_offered(intake_world: IntakeWorld) -> None:
    intake_world.merge(INSIDE)
    assert (0, 1, 1) == (intake_world.counters.urls, intake_world.store.pending, intake_world.activity.count)


def test_a_record_of_an_open_cell_is_crawled_when_it_is_due(intake_world: IntakeWorld) -> None:
    intake_world.merge(INSIDE, tries=2, due=NOW + 30)
    assert intake_world.frontier.next(NOW + 29) is None
    entry = intake_world.frontier.next(NOW + 30)
    assert entry is not None
    assert (INSIDE, 2) == (entry.url, entry.tries)


@pytest.mark.parametrize(
    ("first", "second"),
    [((3, 0, 0.0), (2, 1, NOW + 9)), ((2, 1, NOW + 9), (3, 0, 0.0)), ((2, 0, 0.0), (3, 1, NOW + 9))],
)
def test_the_smaller_depth_and_the_larger_number_of_tries_win(
    first: tuple[int, int, float], second: tuple[int, int, float], intake_world: IntakeWorld
) -> None:
    for depth, tries, due in (first, second, first):
        intake_world.merge(INSIDE, depth, tries, due)
    assert (2, 1, NOW + 9) == intake_world.known(INSIDE)


@pytest.mark.parametrize("intake_world", [False], indirect=True)
def test_depth_stays_where_it_does_not_count(intake_world: IntakeWorld) -> None:
    intake_world.merge(INSIDE, 3)
    intake_world.merge(INSIDE, 2)
    intake_world.take(INSIDE, 1)
    assert (3, 0, 0.0) == intake_world.known(INSIDE)


def test_done_wins_and_what_was_to_be_crawled_is_not(intake_world: IntakeWorld) -> None:
    intake_world.take(INSIDE)
    intake_world.merge_done(INSIDE)
    assert (DONE, 0, None) == (intake_world.state(INSIDE), intake_world.store.pending, intake_world.frontier.next(NOW))
    moved, woken = intake_world.activity.count, intake_world.woken
    intake_world.merge(INSIDE, tries=2, due=NOW)
    intake_world.merge_done(INSIDE)
    assert (DONE, moved, woken) == (intake_world.state(INSIDE), intake_world.activity.count, intake_world.woken)


def test_done_is_learned_of_a_url_never_met(intake_world: IntakeWorld) -> None:
    intake_world.merge_done(INSIDE)
    intake_world.take(INSIDE)
    assert (DONE, 0, 1) == (intake_world.state(INSIDE), intake_world.counters.urls, intake_world.activity.count)


@pytest.mark.parametrize("intake_world", [True, False], indirect=True)
def test_a_date_is_heard_of_pages_met_before(intake_world: IntakeWorld) -> None:
    heard = intake_world.modified
    place = intake_world.partitioner.locate(INSIDE)
    for link in (DatedLink(INSIDE, 1, 0, modified=5.0), Link(INSIDE, 1, 0), DatedLink(INSIDE, 1, 0)):
        intake_world.intake.accept_offered(link, place, NOW)
    assert [] == heard, "when it is new it is fetched anyway"
    intake_world.intake.accept_offered(DatedLink(INSIDE, 1, 0, modified=6.0), place, NOW)
    intake_world.intake.accept(DatedLink(INSIDE, 1, 0, modified=7.0), place, NOW)
    intake_world.intake.accept_offered(
        DatedLink(OUTSIDE, 1, 0, modified=8.0), intake_world.partitioner.locate(OUTSIDE), NOW
    )
    assert [(place.key, 6.0), (place.key, 7.0)] == heard
    assert (1, 1) == (intake_world.counters.urls, intake_world.intake.rejected)
