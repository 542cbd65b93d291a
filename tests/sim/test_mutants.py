"""Planted bugs: every seam exists, every mutant is removed again, and the judges find them."""

from pkgutil import resolve_name
from typing import Any

import pytest

from sim.campaign import Hunt, hunt
from sim.mutants import MUTANTS, QUICK, planted
from sim.trial import Size


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


def test_no_mutant_plants_nothing() -> None:
    with planted(None):
        pass


def test_a_mutant_nobody_knows_is_an_error() -> None:
    with pytest.raises(KeyError), planted("no_such_bug"):
        pass


def test_a_planted_bug_is_found_in_a_small_world() -> None:
    catch = hunt(Hunt("robots_ignored", range(3, 8), 2, Size(pages=30, sites=4), delay_s=0.2))
    assert 4 == catch.seed
    assert "robots_obeyed" in catch.judges
