"""Test when a sitemap brings a visit forward.

No sitemap brings a page more often than the job allows.
"""

from dataclasses import replace
from itertools import pairwise
from random import Random

import pytest

from kadcrawl.crawl.recrawl.policy import Recrawl
from kadcrawl.crawl.scope.sitemap_urls import AHEAD_S
from kadcrawl.keys import Key
from kadcrawl.settings.job import Job
from kadcrawl.store.frontier_entry import FrontierEntry
from kadcrawl.store.visit import Visit
from tests.support.sites.fetched_page import PAGE

DAY_S = 86_400.0
LEAST_S = DAY_S / 10
NOW = 1e9
"""The time of the last visit."""
ENTRY = FrontierEntry(2, 7, Key(bytes(20)), "a.example", "http://a.example/x", 0, 0, 0.0)
RULES = Recrawl(Job(recrawl_after_s=DAY_S))


def visited(*statuses: int, at: float = NOW) -> Visit:
    """Return the last of some visits to a page, at whose instant it was answered so."""
    visit: Visit | None = None
    for status in statuses:
        visit = RULES.next_visit(ENTRY, visit, replace(PAGE, status=status), "sha1:ONE", "2026-11-21T10:00:00Z", at)
    assert visit is not None
    return visit


@pytest.mark.parametrize(
    ("modified", "now", "due"),
    [
        (NOW + 1, NOW + LEAST_S + 1, NOW + LEAST_S + 1),
        (NOW + 1, NOW + 2, NOW + LEAST_S),
        (NOW, NOW + LEAST_S + 1, None),
        (NOW - DAY_S, NOW + LEAST_S + 1, None),
        (NOW + 1, NOW + DAY_S - LEAST_S, None),
        (NOW + 1, NOW + DAY_S - LEAST_S - 1, NOW + DAY_S - LEAST_S - 1),
        (NOW + 1, NOW + 2 * DAY_S, None),
        (NOW + 2 + AHEAD_S, NOW + 2, NOW + LEAST_S),
        (NOW + 3 + AHEAD_S, NOW + 2, None),
        (2.0**33, NOW + 2, None),
    ],
    ids=[
        "now",
        "not before the shortest period",
        "modified when it was visited",
        "modified before",
        "due soon anyway",
        "not so soon",
        "due by now",
        "of a clock ahead of ours",
        "to come",
        "far to come",
    ],
)
def test_a_page_modified_after_its_visit_is_due_now(modified: float, now: float, due: float | None) -> None:
    assert due == RULES.hastened(visited(200), modified, now)


@pytest.mark.parametrize("statuses", [(200,), (200, 304), (200, 500), (301,), (404,), (404, 404), (200, 404, 404, 404)])
def test_of_every_answer_it_is_known_when_it_was(statuses: tuple[int, ...]) -> None:
    visit = visited(*statuses)
    assert RULES.hastened(visit, NOW, NOW + DAY_S / 2) is None
    assert NOW + DAY_S / 2 == RULES.hastened(visit, NOW + 0.5, NOW + DAY_S / 2)


@pytest.mark.parametrize("statuses", [(404,) * 4, (410,) * 2])
def test_a_page_given_up_comes_back_only_if_it_changed_within_a_period(statuses: tuple[int, ...]) -> None:
    visit = visited(*statuses)
    assert visit.due is None
    now = NOW + 30 * DAY_S
    assert now + LEAST_S == RULES.hastened(visit, now - DAY_S + 1, now)
    assert RULES.hastened(visit, now - DAY_S, now) is None, "or a list that is never mended would bring it for ever"


def test_when_robots_forbade_a_page_that_was_gone_is_known_too() -> None:
    forbidden = RULES.unasked(ENTRY, visited(404), "robots", NOW)
    assert forbidden is not None
    assert RULES.hastened(forbidden, NOW, NOW + DAY_S / 2) is None
    assert NOW + DAY_S / 2 == RULES.hastened(forbidden, NOW + 1, NOW + DAY_S / 2)


def test_what_the_job_leaves_out_by_now_does_not_come_back() -> None:
    left_out = RULES.unasked(ENTRY, visited(200), "exclude", NOW)
    assert left_out is not None
    assert RULES.hastened(left_out, NOW + 1, NOW + 2) is None


@pytest.mark.parametrize("seed", range(20))
def test_no_sitemap_makes_a_page_due_within_the_shortest_period(seed: int) -> None:
    """The page changes its ways, and the sitemaps call the page changed at any moment.

    They say that the change was now, or at any time.
    """
    random = Random(seed)
    rules = Recrawl(Job(recrawl_after_s=DAY_S, recrawl_adaptive=True, recrawl_least_s=LEAST_S))
    now, visits = NOW, [NOW]
    visit = rules.next_visit(ENTRY, None, PAGE, "sha1:0", "", now)
    hastened = 0
    for number in range(2_000):
        now += random.expovariate(20 / DAY_S)
        while visit.due is not None and visit.due <= now:
            visits.append(visit.due)
            status = random.choice((200, 200, 304, 404, 404, 404, 500))
            page = replace(PAGE, status=status)
            visit = rules.next_visit(ENTRY, visit, page, f"sha1:{number}", "", visit.due)
        modified = now + random.uniform(-DAY_S, DAY_S) if random.random() < 0.5 else now
        due = rules.hastened(visit, modified, now)
        if due is not None:
            assert now <= due
            assert visit.due is None or due < visit.due
            visit = visit._replace(due=due)
            hastened += 1
    assert hastened > 50
    assert all(later - sooner >= LEAST_S for sooner, later in pairwise(visits))
