"""The outcomes of left-out URLs: what is a wrong outcome, and what an order cannot help."""

from dataclasses import replace
from math import inf

import pytest

from sim.judges import HEARD_S, UNDER_WAY_S, Facts, Fetch, Line, StoppedSites
from sim.order_outcomes import LeftOut, dropped_in_vain, odd_outcomes
from sim.reachable import LinkedPages
from sim.synthetic_web import SyntheticResponse

SITE = "http://a.test"
HOME, PAGE, LATE = f"{SITE}/", f"{SITE}/page", f"{SITE}/late"
ORDERED_S = 5.0
STOPPED = StoppedSites(frozenset({SITE}), ORDERED_S, inf, all_heard=True)
EXCLUSION = LeftOut("site_excluded", frozenset({HOME, PAGE, LATE}), STOPPED, owed=frozenset({PAGE}))
DROP = LeftOut("site_dropped", frozenset({HOME, PAGE, LATE}), STOPPED, pending=frozenset({PAGE}))
FETCHED, EXCLUDED = Line(HOME, 200, None, 1), Line(PAGE, None, "site_excluded", 1)
DROPPED = Line(PAGE, None, "site_dropped", 1)


class ThreePages:
    """A web of a home page and two pages in a row."""

    def address(self, host: str) -> str | None:
        return None

    def answer(self, host: str, target: str, asked: int) -> SyntheticResponse:
        link = {"/": "/page", "/page": "/late"}.get(target, "")
        return SyntheticResponse(200, body=f'<a href="{link}">'.encode())


PAGES = LinkedPages(ThreePages(), [HOME, PAGE, LATE])


def fetch(at_s: float, url: str) -> Fetch:
    return Fetch(at_s, url, SITE, 200, 1)


def test_one_outcome_of_each_url_is_as_it_should_be() -> None:
    assert [] == [*odd_outcomes(Facts(lines=[FETCHED, EXCLUDED]), [EXCLUSION])]


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([FETCHED], "has no line"),
        ([FETCHED, EXCLUDED, EXCLUDED], "has 2 lines, with 0 changes of owner: 2 site_excluded"),
        ([FETCHED, EXCLUDED, Line(PAGE, 200, None, 1)], "1 site_excluded, 1 200"),
        ([FETCHED, EXCLUDED, Line("http://b.test/", None, "site_excluded", 1)], "and no order says so"),
    ],
)
def test_no_outcome_or_two_or_that_of_no_order_is_wrong(lines: list[Line], said: str) -> None:
    [sentence] = odd_outcomes(Facts(lines=lines), [EXCLUSION])
    assert said in sentence


def test_a_change_of_owner_and_an_order_to_retry_cost_one_more_outcome() -> None:
    twice = Facts(lines=[FETCHED, EXCLUDED, EXCLUDED])
    assert [] == [*odd_outcomes(replace(twice, changes={SITE: 1}), [EXCLUSION])]
    assert [] == [*odd_outcomes(replace(twice, orders=1), [EXCLUSION])]
    elsewhere = replace(twice, lines=[FETCHED, EXCLUDED, EXCLUDED._replace(machine=2)])
    assert [] == [*odd_outcomes(elsewhere, [EXCLUSION])]


def test_a_pending_url_that_is_fetched_although_it_was_dropped_is_named() -> None:
    late = Facts(fetches=[fetch(1.0, HOME), fetch(ORDERED_S + UNDER_WAY_S + 0.1, PAGE)])
    [sentence] = dropped_in_vain(late, [DROP], PAGES, [HOME])
    assert sentence.startswith(f"{PAGE} was fetched by 1")
    assert [] == [*dropped_in_vain(late, [DROP._replace(pending=frozenset())], PAGES, [HOME])]
    under_way = replace(late, fetches=[fetch(1.0, HOME), fetch(ORDERED_S + 1.0, PAGE)])
    assert [] == [*dropped_in_vain(under_way, [DROP], PAGES, [HOME])]
    unheard = replace(late, disturbed=[(ORDERED_S - 1.0, ORDERED_S + 1.0)])
    assert [] == [*dropped_in_vain(unheard, [DROP], PAGES, [HOME])]
    again = replace(late, orders=1, fetches=[fetch(2.0, PAGE), *late.fetches])
    assert [] == [*dropped_in_vain(again, [DROP], PAGES, [HOME])]


def test_a_url_that_was_found_after_the_order_and_dropped_is_named() -> None:
    found = Facts(fetches=[fetch(1.0, HOME), fetch(ORDERED_S + 1.0, PAGE)], lines=[DROPPED._replace(url=LATE)])
    [sentence] = dropped_in_vain(found, [DROP], PAGES, [HOME])
    assert sentence == f"{LATE} was dropped by an order of 5.000 s, and found at 6.000 s"
    before = replace(found, fetches=[fetch(1.0, HOME), fetch(2.0, PAGE)])
    assert [] == [*dropped_in_vain(before, [DROP], PAGES, [HOME])]
    assert [] == [*dropped_in_vain(found, [DROP], PAGES, [HOME, LATE])]
    away = replace(found, disturbed=[(ORDERED_S - HEARD_S - 1.0, ORDERED_S - 1.0)])
    assert [] == [*dropped_in_vain(away, [DROP], PAGES, [HOME])]
    gone = replace(found, disturbed=[(ORDERED_S + 0.5, ORDERED_S + 2.0)])
    assert 1 == len([*dropped_in_vain(gone, [DROP], PAGES, [HOME])])
