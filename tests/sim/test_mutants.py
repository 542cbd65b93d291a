"""Planted bugs: every seam exists, every mutant is removed again, and the judges find them."""

from inspect import signature
from pkgutil import resolve_name
from typing import Any, cast

import pytest
from msgspec.structs import replace

from kadcrawl.replication.placement.holdings import Holdings
from sim.campaign import Hunt, hunt
from sim.draw import draw
from sim.mutants import MUTANTS, QUICK, planted
from sim.trial import Size, run


def at_seam(name: str) -> Any:
    owner, _, attribute = MUTANTS[name].seam.replace(":", ".").rpartition(".")
    return getattr(resolve_name(owner), attribute)


def test_there_are_enough_of_them_and_the_quick_ones_are_among_them() -> None:
    assert len(MUTANTS) >= 20
    assert set(QUICK) <= MUTANTS.keys()


@pytest.mark.parametrize("name", MUTANTS)
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


@pytest.mark.parametrize("name", MUTANTS)
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


@pytest.mark.parametrize("name", [None, "clock_leased_to_two"])
def test_bugs_of_shared_clocks_are_found_where_urls_share_a_host(name: str | None) -> None:
    plan = replace(draw(3, 4), per_ip=0, partition="url", treatments=())
    outcome = run(plan, Size(pages=40, sites=4), mutant=name)
    assert (set() if name is None else {"polite"}) == outcome.violations.keys()


@pytest.mark.parametrize("name", [None, "clock_leased_to_two", "clock_leased_by_a_new_owner_at_once"])
def test_bugs_of_shared_clocks_are_found_where_sites_share_addresses(name: str | None) -> None:
    plan = replace(draw(3, 4), per_ip=3)
    outcome = run(plan, Size(pages=40, sites=9), mutant=name)
    assert (set() if name is None else {"polite"}) == outcome.violations.keys()


def test_a_planted_bug_is_found_in_a_small_world() -> None:
    catch = hunt(Hunt("robots_ignored", range(3, 8), 2, Size(pages=30, sites=4), delay_s=0.2))
    assert 4 == catch.seed
    assert "robots_obeyed" in catch.judges
