"""Orders that leave sites out: plans draw them, worlds carry them out, and the crawl owes what remains reachable."""

import re
from types import SimpleNamespace
from typing import Any, cast

import pytest
from msgspec.structs import replace

from kadcrawl.urls import Partition, origin_of
from sim.campaign import Hunt, hunt
from sim.draw import draw
from sim.excluded_sites import disagreements, named_site
from sim.judges import Facts
from sim.machines import Machines
from sim.plan import Event, Kind, Plan
from sim.target_worlds import target_world
from sim.trial import Size, TrialOutcome, run_scene, scene_of

SMALL = Size(pages=40, sites=9)
SITE = "http://site1-7.test"


def lived(plan: Plan, mutant: str | None = None) -> tuple[TrialOutcome, Facts]:
    return run_scene(plan, scene_of(plan, SMALL), mutant=mutant)


def excluding(at_s: float, site: int = 1, **settings: Any) -> Plan:
    event = Event(at_s, Kind.SITE_EXCLUDE, (1,), amount=float(site))
    return Plan(7, 3, (event,), **settings)


def test_a_sixth_of_the_plans_exclude_sites_and_crawls_that_end_early_do_not() -> None:
    plans = [draw(seed, 16) for seed in range(300)]
    excluding = [plan for plan in plans if any(one.kind is Kind.SITE_EXCLUDE for one in plan.events)]
    assert 25 < len(excluding) < 75
    assert {"host", "url"} <= {plan.partition for plan in excluding}
    assert not any(plan.max_time_s for plan in excluding)
    assert any(plan.balance != "off" for plan in excluding)
    assert any(one.kind is Kind.SITE_EXCLUDE for plan in excluding for one in plan.kept_by("bloom").events)
    for kind in (Kind.SITE_DROP, Kind.SCOPE):
        assert 20 < sum(any(one.kind is kind for one in plan.events) for plan in plans) < 60


@pytest.mark.worlds
@pytest.mark.parametrize("partition", ["host", "url"])
def test_an_excluded_site_is_asked_no_more_and_what_remains_reachable_is_crawled(partition: Partition) -> None:
    outcome, facts = lived(excluding(4.0, partition=partition))
    assert {} == outcome.violations
    [stop] = facts.excluded
    assert ({SITE}, True) == (stop.sites, stop.all_heard)
    ended = {line.url for line in facts.lines if line.failed == "site_excluded"}
    assert ended
    assert {SITE} == {origin_of(url) for url in ended}
    assert ended <= {*facts.excused}
    assert {url for url in facts.truth if origin_of(url) == SITE} <= {*facts.excused}
    assert any(origin_of(url) == SITE and url not in ended for url in facts.excused), "some were fetched before"
    crawled = {line.url for line in facts.lines if line.status is not None}
    assert {url for url in facts.truth if url not in facts.excused} <= crawled


def test_a_page_of_another_site_is_excused_unless_a_page_fetched_before_leads_there() -> None:
    largest = "http://site0-7.test"
    early, late = (lived(excluding(at_s, site=0))[1] for at_s in (1.0, 3.0))
    others = {url for url in early.excused if origin_of(url) != largest}
    assert others
    assert not any(line.url in others and line.status is not None for line in early.lines)
    assert {largest} == {*map(origin_of, late.excused)}
    assert others <= {line.url for line in late.lines if line.status is not None}


def test_an_order_that_no_machine_can_give_excuses_nothing() -> None:
    plan = replace(excluding(4.0), events=(Event(4.0, Kind.SITE_EXCLUDE, (9,), amount=1.0),))
    outcome, facts = lived(plan)
    assert {} == outcome.violations
    assert ([], ()) == ([*facts.excluded], tuple(facts.excused))


@pytest.mark.worlds
@pytest.mark.parametrize("partition", ["host", "url"])
def test_pending_urls_are_dropped_and_those_found_later_are_crawled(partition: Partition) -> None:
    plan = Plan(7, 3, (Event(2.0, Kind.SITE_DROP, (1,), amount=0.0),), partition=partition)
    outcome, facts = lived(plan)
    assert {} == outcome.violations
    dropped = {line.url for line in facts.lines if line.failed == "site_dropped"}
    assert dropped
    assert dropped & facts.truth.keys() <= {*facts.excused}
    asked = {fetch.url: fetch.at_s for fetch in facts.fetches}
    assert not dropped & asked.keys()
    assert {"http://site0-7.test"} == {*map(origin_of, dropped)}


@pytest.mark.worlds
@pytest.mark.parametrize("partition", ["host", "url"])
def test_a_site_out_of_scope_is_left_alone_and_links_found_later_are_followed(partition: Partition) -> None:
    plan = Plan(7, 3, (Event(2.0, Kind.SCOPE, (1,), 5.0, 3.0),), trails=3, partition=partition)
    outcome, facts = lived(plan)
    assert {} == outcome.violations
    [stop] = facts.removed
    assert ({"http://site3-7.test"}, True) == (stop.sites, stop.all_heard)
    assert 7.0 <= stop.until_s < 8.0
    removed = {line.url for line in facts.lines if line.failed == "scope_removed"}
    assert removed & facts.truth.keys() <= {*facts.excused}
    back = {line.url for line in facts.lines if line.status is not None} & {*facts.truth}
    asked = {fetch.url: fetch.at_s for fetch in facts.fetches}
    assert any(origin_of(url) in stop.sites and asked[url] > stop.until_s and url not in facts.excused for url in back)


@pytest.mark.parametrize(("site", "for_s", "later_s"), [(0, 9.0, 5.0), (0, 3.0, 3.0), (1, 3.0, 3.0)])
def test_links_found_while_their_site_is_out_of_scope_are_not_owed_when_it_is_dropped(
    site: int, for_s: float, later_s: float
) -> None:
    events = (
        Event(1.0, Kind.SCOPE, (1,), for_s, float(site)),
        Event(1.0 + later_s, Kind.SITE_DROP, (1,), amount=float(site)),
    )
    outcome, facts = lived(Plan(7, 3, events))
    assert {} == outcome.violations
    assert facts.removed


@pytest.mark.parametrize(("site", "later_s"), [(0, 5.0), (0, 3.0), (1, 3.0)])
def test_links_found_while_their_site_is_excluded_are_not_owed_when_it_is_dropped(site: int, later_s: float) -> None:
    events = (
        Event(1.0, Kind.SITE_EXCLUDE, (1,), amount=float(site)),
        Event(1.0 + later_s, Kind.SITE_DROP, (1,), amount=float(site)),
    )
    outcome, facts = lived(Plan(7, 3, events))
    assert {} == outcome.violations
    assert facts.excluded


def test_a_site_that_the_job_leaves_out_is_crawled_once_it_is_brought_into_scope() -> None:
    plan = Plan(7, 3, (Event(4.0, Kind.SCOPE_ADD, (1,), amount=3.0),), trails=3)
    outcome, facts = lived(plan)
    assert {} == outcome.violations
    [stop] = facts.removed
    added = "http://site3-7.test"
    assert {added} == stop.sites
    asked = [fetch.at_s for fetch in facts.fetches if fetch.site == added]
    assert asked
    assert min(asked) > stop.until_s >= 4.0
    due = {url for url in facts.truth if origin_of(url) == added and url not in facts.excused}
    assert due
    assert due <= {line.url for line in facts.lines if line.status is not None}
    assert "nothing_lost" in lived(plan, "scope_orders_ignored")[0].violations


def test_a_site_is_added_only_where_the_job_can_leave_it_out() -> None:
    plans = [plan for seed in range(300) if (plan := draw(seed, 16)).added_sites]
    assert 8 < len(plans) < 40
    assert not any(plan.streamed or plan.max_time_s for plan in plans)
    for plan in plans:
        scene = scene_of(plan, Size())
        [origin] = scene.added
        assert not any(url.startswith(origin) for url in scene.job.seeds)
        [pattern] = scene.job.include
        assert [origin] == [one for one in scene.web.origins if not re.search(pattern, f"{one}/")]


@pytest.mark.worlds
@pytest.mark.parametrize(
    ("mutant", "judge"),
    [
        ("exclusions_ignored", "excluded_sites_left_alone"),
        ("exclusion_of_every_site", "nothing_lost"),
        ("excluded_urls_without_a_line", "one_outcome_of_each"),
    ],
)
def test_a_planted_bug_is_found(mutant: str, judge: str) -> None:
    outcome, _ = lived(excluding(2.0, site=2), mutant)
    assert judge in outcome.violations


def machine(number: int, orders: list[Any], *, leaving: bool = False) -> SimpleNamespace:
    standing = SimpleNamespace(to_wire=lambda: orders)
    runtime = SimpleNamespace(standing_orders=standing)
    peer = SimpleNamespace(begun=True, joining=False, leaving=leaving, runtime=runtime)
    return SimpleNamespace(number=number, peer=peer, frozen=False)


def test_a_peer_that_does_not_know_an_order_of_another_is_named() -> None:
    order = SimpleNamespace(kind="exclude", about="a.test", value=1.0, stamp=7)
    live = [machine(1, [order]), machine(2, []), machine(3, [], leaving=True)]
    machines = cast(Machines, SimpleNamespace(live=live))
    assert ["2 does not know the order exclude a.test 1.0"] == disagreements(machines)
    live[1] = machine(2, [order])
    assert [] == disagreements(machines)


def test_an_event_names_the_site_as_the_job_does() -> None:
    origins = ["http://a.one.test", "http://b.one.test"]
    event = Event(1.0, Kind.SITE_EXCLUDE, (0,), amount=3.0)
    assert ("b.one.test", "one.test") == (named_site(origins, event, "host"), named_site(origins, event, "domain"))


@pytest.mark.worlds
@pytest.mark.parametrize(
    ("mutant", "seed", "judge"),
    [
        ("drops_ignored", 5, "pending_urls_dropped"),
        ("drops_without_end", 2, "pending_urls_dropped"),
        ("scope_orders_ignored", 6, "scope_kept"),
        ("scope_never_regained", 3, "nothing_lost"),
    ],
)
def test_a_planted_bug_of_an_order_for_a_time_is_found(mutant: str, seed: int, judge: str) -> None:
    catch = hunt(Hunt(mutant, range(seed, seed + 1), 16))
    assert judge in catch.judges


@pytest.mark.worlds
def test_an_order_that_a_wave_misses_is_known_to_all_in_the_end() -> None:
    plan = target_world("orders", "exact", 1, 8)
    assert {} == lived(plan)[0].violations
    assert "orders_known_to_all" in lived(plan, "missed_site_orders_not_told")[0].violations
