"""Planted bugs: every seam exists, every mutant is removed again, and the judges find them."""

from inspect import signature
from pkgutil import resolve_name
from typing import Any, cast

import pytest
from msgspec.structs import replace

from kadcrawl.replication.placement.holdings import Holdings
from sim.campaign import Hunt, hunt, modes_of
from sim.draw import draw
from sim.mutants import MUTANTS, QUICK, planted
from sim.plan import Kind
from sim.target_worlds import LENDING_PEERS, MODES, Mode, Topic, target_world
from sim.trial import USUAL, Size, run, scene_of
from tests.support.cases import cases


def at_seam(name: str) -> Any:
    owner, _, attribute = MUTANTS[name].seam.replace(":", ".").rpartition(".")
    return getattr(resolve_name(owner), attribute)


def test_there_are_enough_of_them_and_the_quick_ones_are_among_them() -> None:
    assert len(MUTANTS) >= 20
    assert set(QUICK) <= MUTANTS.keys()


@cases("name", MUTANTS)
def test_a_mutant_replaces_what_stands_at_its_seam_and_no_longer(name: str) -> None:
    before = at_seam(name)
    with planted(name):
        assert at_seam(name) is not before
    assert at_seam(name) is before


def parameters(method: Any) -> tuple[list[str], set[str], bool]:
    """Return names of the positional and the keyword-only parameters, and whether any others are taken."""
    function: Any = method.fget if isinstance(method, property) else method
    found = signature(function).parameters.values()
    positional = [one.name for one in found if one.kind is one.POSITIONAL_OR_KEYWORD and one.default is one.empty]
    variadic = any(one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD) for one in found)
    return positional, {one.name for one in found if one.kind is one.KEYWORD_ONLY}, variadic


@cases("name", MUTANTS)
def test_a_mutant_takes_the_arguments_of_what_it_replaces(name: str) -> None:
    original, keywords, _ = parameters(at_seam(name))
    with planted(name):
        planted_names, planted_keywords, variadic = parameters(at_seam(name))
    assert variadic or (len(original), keywords) == (len(planted_names), planted_keywords)


def test_without_word_to_newcomers_no_cell_is_theirs() -> None:
    with planted("newcomers_not_told"):
        ours, our_backups = Holdings.joined(cast(Any, None), 1)
    assert [] == ours == our_backups


def test_no_mutant_plants_nothing() -> None:
    with planted(None):
        pass


def test_a_mutant_nobody_knows_is_an_error() -> None:
    with pytest.raises(KeyError), planted("no_such_bug"):
        pass


@pytest.mark.worlds
@pytest.mark.parametrize("name", [None, "clock_leased_to_two"])
def test_bugs_of_shared_clocks_are_found_where_urls_share_a_host(name: str | None) -> None:
    plan = replace(draw(3, 4), max_pages=None, per_ip=0, partition="url", treatments=())
    outcome = run(plan, Size(pages=40, sites=4), mutant=name)
    assert (set() if name is None else {"polite"}) == outcome.violations.keys()


@pytest.mark.worlds
@pytest.mark.parametrize("name", [None, "connections_given_twice"])
def test_connections_of_a_host_shared_out_twice_are_found_where_urls_have_no_delay(name: str | None) -> None:
    plan = target_world("shares", "exact", 2, 8)
    assert ("url", 0.0, 0.0) == (plan.partition, plan.delay_s, plan.own_delay_s)
    outcome = run(plan, USUAL, mutant=name)
    assert (set() if name is None else {"within_connections"}) == outcome.violations.keys()


@pytest.mark.worlds
@pytest.mark.parametrize("name", [None, "hosts_of_a_domain_apart"])
def test_hosts_of_a_domain_with_clocks_of_their_own_are_found(name: str | None) -> None:
    plan = replace(draw(3, 4), max_pages=None, per_ip=0, partition="domain", treatments=())
    outcome = run(plan, Size(pages=40, sites=9), mutant=name)
    assert (set() if name is None else {"polite"}) <= outcome.violations.keys()
    assert (name is None) == outcome.clean


@pytest.mark.worlds
@pytest.mark.parametrize("name", [None, "clock_leased_to_two", "clock_leased_by_a_new_owner_at_once"])
def test_bugs_of_shared_clocks_are_found_where_sites_share_addresses(name: str | None) -> None:
    plan = replace(draw(3, 4), max_pages=None, per_ip=3)
    outcome = run(plan, Size(pages=40, sites=9), mutant=name)
    assert (set() if name is None else {"polite"}) == outcome.violations.keys()


def test_mutants_of_loans_are_hunted_in_each_mode_and_others_in_one() -> None:
    lending = {name: one.modes for name, one in MUTANTS.items() if one.topic in ("lending", "crowded", "leases")}
    assert len(lending) >= 9
    assert {MODES, ("exact", "depth", "pages")} == set(lending.values())
    assert MODES == modes_of("lease_without_end", None)
    assert ("exact", "depth", "pages") == modes_of("failures_of_borrowers_forgotten", None)
    assert ("bloom",) == modes_of("lease_without_end", "bloom")
    assert () == modes_of("failures_of_borrowers_forgotten", "bloom")
    assert ("exact",) == modes_of("lease_without_end", None, quick=True) == modes_of("robots_ignored", "bloom")


@pytest.mark.parametrize("mode", MODES)
def test_worlds_of_lending_lend_in_each_mode(mode: Mode) -> None:
    plan = target_world("lending", mode, 3, 16)
    assert (LENDING_PEERS, True) == (plan.peers, plan.balance != "off")
    has_orders = any(event.kind is Kind.RETRY for event in plan.events)
    assert (mode not in ("bloom", "recrawl")) == has_orders
    assert (mode == "bloom") == (plan.history == "bloom")
    assert (mode == "pages") == (plan.max_pages is not None)
    assert (mode == "recrawl") == (plan.recrawl_after_s is not None) == (plan.max_time_s is not None)


def test_the_job_of_each_world_of_lending_is_one_that_kadcrawl_takes() -> None:
    assert {"level", "drain"} == {
        scene_of(target_world("lending", "exact", seed, 8), USUAL).job.balance for seed in range(12)
    }


@pytest.mark.worlds
def test_connections_lent_while_they_are_in_use_are_found_in_a_crowded_world() -> None:
    plan = target_world("crowded", "exact", 3, 8)
    assert ("level", 0.0, {Kind.JOIN, Kind.LEAVE}) == (plan.balance, plan.delay_s, {one.kind for one in plan.events})
    catch = hunt(Hunt("connections_not_waited_for", range(1, 9), 8))
    assert ("within_connections",) == catch.judges


@pytest.mark.worlds
@pytest.mark.parametrize("mode", ["exact", "bloom"])
def test_a_borrower_that_goes_on_without_a_lease_is_found_where_lenders_die(mode: Mode) -> None:
    plan = target_world("leases", mode, 3, 16)
    assert ("level", {Kind.KILL, Kind.RESTART}) == (plan.balance, {one.kind for one in plan.events})
    assert set(range(LENDING_PEERS)) == {one for event in plan.events for one in event.machines}
    catch = hunt(Hunt("lease_without_end", range(1, 13), 16, mode=mode))
    assert "leases_end" in catch.judges


@pytest.mark.worlds
@pytest.mark.parametrize(
    ("name", "topic", "judge"),
    [
        ("too_many_pages_granted", "pages", "within_the_pages"),
        ("time_limit_ignored", "time", "within_the_time"),
        ("visited_too_soon", "recrawl", "one_fetch_per_owner"),
        ("last_pages_never_granted", "pages", "pages_used_up"),
        ("visits_not_counted", "recrawl", "visits_in_order"),
    ],
)
def test_a_bug_of_a_limit_is_found_in_a_calm_world_that_is_clean_without(name: str, topic: Topic, judge: str) -> None:
    assert topic == MUTANTS[name].topic
    plan = replace(target_world(topic, "exact", 3, 3), events=(), treatments=(), delay_s=1.0, own_delay_s=2.0)
    size = Size(pages=60, sites=6)
    assert {} == run(plan, size).violations
    assert judge in run(plan, size, mutant=name).violations


@pytest.mark.worlds
def test_a_planted_bug_is_found_in_a_small_world() -> None:
    catch = hunt(Hunt("robots_ignored", range(3, 8), 2, Size(pages=30, sites=4), delay_s=0.2))
    assert 4 == catch.seed
    assert "robots_obeyed" in catch.judges
