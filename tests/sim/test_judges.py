"""Each judge finds the violation planted for it, and passes a clean record."""

from collections.abc import Sequence
from dataclasses import replace
from math import inf
from typing import Any

import pytest

from kadcrawl.keys import Cell, Key
from sim import judges, sometimes
from sim.judges import (
    JUDGES,
    DashboardSight,
    End,
    ExpectedPage,
    Facts,
    Fetch,
    Line,
    Outage,
    Parting,
    SlowedSites,
    StoppedSites,
    TurnedAway,
    cut_short,
    duplicates,
    judge,
    parted,
)
from sim.site_treatment import SiteTreatment
from tests.support.cases import cases

SITE = "http://a.test"
OTHER = "http://b.test"


def fetch(at_s: float, path: str, machine: int = 1, status: int = 200, site: str = SITE) -> Fetch:
    return Fetch(at_s, site + path, site, status, machine)


ROBOTS = fetch(0.0, "/robots.txt")
HOME = fetch(2.0, "/")
PAGE = fetch(4.0, "/page")
BUSY_FIRST = fetch(6.0, "/busy", status=503)
BUSY = fetch(8.0, "/busy")

LOOK = DashboardSight(30.0, 31.0, 1, "fetching", False, 0, (), 0, 0, is_last=False)

CLEAN = Facts(
    truth={f"{SITE}/": ExpectedPage(200), f"{SITE}/page": ExpectedPage(200), f"{SITE}/busy": ExpectedPage(200, 2)},
    disallowed=frozenset({f"{SITE}/secret"}),
    delays={SITE: 2.0},
    delay_s=1.0,
    fetches=(ROBOTS, HOME, PAGE, BUSY_FIRST, BUSY),
    lines=(
        Line(f"{SITE}/", 200, None, 1),
        Line(f"{SITE}/page", 200, None, 1),
        Line(f"{SITE}/busy", 200, None, 1),
        Line(f"{SITE}/secret", None, "robots", 1),
    ),
    done={f"{SITE}/": 2, f"{SITE}/page": 2, f"{SITE}/busy": 2, f"{SITE}/secret": 2},
    claims={7: (1,)},
    owners={7: 1},
    named=((1, 7, 1), (2, 7, 1), (3, 7, 1)),
    live=3,
    repair_s=4.0,
    copies={f"{SITE}/": 3, f"{SITE}/page": 3, f"{SITE}/busy": 3, f"{SITE}/secret": 3},
    ends=(End(20.0, 1, 0),),
    over=True,
    peaks={"requests in flight": (64, 64)},
)
PAUSED = StoppedSites(frozenset({SITE}), 1.0, 30.0, all_heard=True)
"""A pause that all peers have heard of: the last fetch of the clean record comes too late for it."""
SLOWED = SlowedSites(frozenset({SITE}), -4.9, inf, all_heard=True, delay_s=2.1)
"""An order that all peers have heard of: each request of the clean record but the first comes too early for it."""
PARTITION = Parting(3.0, 30.0, frozenset({2}))
LATER = (HOME._replace(at_s=3.0), PAGE._replace(at_s=5.0), BUSY_FIRST._replace(at_s=7.0), BUSY._replace(at_s=9.0))
AGAIN = fetch(20.0, "/page")
WHILE_DOWN = fetch(22.0, "/page", status=judges.DOWN)
AGAIN_THERE = fetch(20.0, "/page", machine=2)

AGAIN_AND_AGAIN: dict[str, Any] = {"again_s": 10.0, "recrawl_s": 10.0}
"""Facts of a job with a recrawl. Pages of this site may be left alone for 58 s."""

REVISITS = (Line(f"{SITE}/page", 200, None, 2, 1, 20.0), Line(f"{SITE}/page", 200, None, 1, 0, 30.0))
"""The first visit to a page comes after the second."""
SAME_VISIT = (REVISITS[0], REVISITS[0]._replace(at_s=30.0))
PROXY = "192.0.2.9"


def turned_away(*seconds: float, stops: Sequence[tuple[float, int]] = ()) -> dict[str, Any]:
    """Return the facts of a proxy that is down until 40 s and has turned a machine away at these instants."""
    asked = [TurnedAway(at_s, 1, PROXY) for at_s in seconds]
    return {"proxies_down": [Outage(PROXY, 10.0, 40.0)], "turned_away": asked, "stops": stops}


VIA = tuple(one._replace(via="192.0.2.9") for one in CLEAN.fetches[:-1])
QUICK: dict[str, Any] = {
    "delay_s": 0.0,
    "delays": {},
    "fetches": (ROBOTS, HOME, PAGE._replace(machine=2), BUSY_FIRST, BUSY),
    "overs": (ROBOTS.at_s + 0.1, PAGE.at_s + 0.1, BUSY_FIRST.at_s, BUSY_FIRST.at_s + 0.1, inf),
}
"""Facts of a site without a delay, with two requests under way at a time."""

ONE_ADDRESS = dict.fromkeys((SITE, OTHER), "192.0.2.1")
ELSEWHERE = fetch(9.0, "/robots.txt", site=OTHER)
HEADED = SiteTreatment(0, header="b")
CLEAN_WITH_COOKIES = tuple(one._replace(cookie="another") for one in CLEAN.fetches[2:])
TIMED_RECRAWL: dict[str, Any] = {
    "again_s": 1.0,
    "fetches": (*CLEAN.fetches, fetch(108.0, "/page", 2), fetch(110.5, "/")),
    "overs": (0.5, 3.0, 5.0, 7.0, 9.0, 112.0, 111.0),
}
"""Facts of a recrawl: at its last request, some request had been under way for 7 s."""
ONE_DOMAIN = {"clocks": {SITE: "test", OTHER: "test"}}
"""Two sites are hosts of one domain, which share a clock."""
SPACED = (
    ROBOTS._replace(at_s=-0.9),
    *CLEAN.fetches[1:2],
    *(one._replace(at_s=one.at_s * 2) for one in CLEAN.fetches[2:]),
)
"""Requests with enough seconds between all but the first two."""

REFUSED: dict[str, Any] = {
    "back_off_s": 2.0,
    "truth": {f"{SITE}/": ExpectedPage(200), f"{SITE}/page": ExpectedPage(200), f"{SITE}/busy": ExpectedPage(200, 3)},
    "fetches": (
        ROBOTS,
        HOME,
        BUSY_FIRST,
        BUSY_FIRST._replace(at_s=8.0),
        BUSY._replace(at_s=12.0),
        PAGE._replace(at_s=14.0),
    ),
    "overs": (0.0, 2.0, 6.0, 8.0, 12.0, 14.0),
}
"""Facts of a site that refuses two requests in a row and then answers."""


SLOWLY: dict[str, Any] = {
    "delay_factor": 3.0,
    "delay_most_s": 2.5,
    "fetches": (ROBOTS, HOME, PAGE._replace(at_s=5.6), BUSY_FIRST._replace(at_s=9.0), BUSY._replace(at_s=11.0)),
    "overs": (0.5, 3.0, 6.1, 9.5, 11.1),
}
"""Facts of a site whose answers take a second at first, and whose rest is as long as it may be."""


def asked_at(*seconds: float, **changes: Any) -> dict[str, Any]:
    """Return the facts of the site that refuses, asked at other instants from the first refusal on."""
    fetches = [one._replace(at_s=at_s) for one, at_s in zip(REFUSED["fetches"][2:], seconds, strict=True)]
    return {**REFUSED, "fetches": (*REFUSED["fetches"][:2], *fetches), "overs": (0.0, 2.0, *seconds), **changes}


def asked_of_a_refusing_site(times: int, refusals_max: int) -> dict[str, Any]:
    """Return the facts of a site that has refused so many requests for one URL, which has failed then."""
    asked = [fetch(30.0 + number, "/", status=429, site=OTHER)._replace(machine=number) for number in range(times)]
    lines = (*CLEAN.lines, Line(f"{OTHER}/", None, "site_refused", 1))
    fetches = (*CLEAN.fetches, ROBOTS._replace(at_s=29.0, url=f"{OTHER}/robots.txt", site=OTHER), *asked)
    return {"fetches": fetches, "lines": lines, "refusals_max": refusals_max}


def partly_crawled(asked: int, ended: int) -> dict[str, Any]:
    """Return the facts of a site with four URLs of which two may be crawled."""
    urls = [f"{OTHER}/{number}" for number in range(4)]
    robots = ROBOTS._replace(at_s=29.0, url=f"{OTHER}/robots.txt", site=OTHER)
    return {
        "optional": dict.fromkeys(urls, ExpectedPage(200)),
        "treatments": {OTHER: SiteTreatment(0, pages_max=2)},
        "fetches": (*CLEAN.fetches, robots, *(fetch(30.0 + at, f"/{at}", site=OTHER) for at in range(asked))),
        "lines": (*CLEAN.lines, *(Line(url, 200, None, 1) for url in urls[:ended])),
    }


BY_OTHERS = [AGAIN._replace(at_s=60.0 + 10.0 * machine, machine=machine) for machine in (2, 3)]
BROKEN: list[tuple[str, dict[str, Any]]] = [
    ("nothing_lost", {"lines": (*CLEAN.lines[:2], *CLEAN.lines[3:]), "done": {}}),
    (
        "nothing_lost",
        {
            "lines": (*CLEAN.lines[:2], Line(f"{SITE}/busy", 503, "http_503", 1), CLEAN.lines[3]),
        },
    ),
    ("nothing_lost", {"pending": {f"{SITE}/page": 3}}),
    (
        "no_failure_of_a_peer",
        {"lines": (*CLEAN.lines, Line(f"{SITE}/busy", None, "connect", 2))},
    ),
    ("nothing_made_up", {"done": {**CLEAN.done, "00ff": 3}}),
    ("nothing_made_up", {"lines": (*CLEAN.lines, Line(f"{SITE}/never", 200, None, 1))}),
    ("nothing_made_up", {"lines": (*CLEAN.lines, Line(f"{SITE}/page", 404, "http_404", 1))}),
    ("one_fetch_per_owner", {"fetches": (*CLEAN.fetches, AGAIN)}),
    ("one_fetch_per_owner", {"fetches": (*CLEAN.fetches, AGAIN, fetch(22, "/page")), "changes": {SITE: 1}}),
    ("polite", {"fetches": (ROBOTS, HOME, PAGE, BUSY_FIRST, BUSY._replace(at_s=7.9))}),
    ("polite", {"fetches": (ROBOTS, HOME, PAGE, BUSY_FIRST, BUSY._replace(at_s=7.9, machine=2))}),
    ("polite", {"fetches": (ROBOTS._replace(status=503), ROBOTS._replace(at_s=0.9), *LATER)}),
    ("polite", {"fetches": (ROBOTS, HOME, PAGE, BUSY_FIRST._replace(at_s=5.5), BUSY), "partings": [PARTITION]}),
    ("polite", {"fetches": (ROBOTS, HOME, fetch(3.0, "/robots.txt", 2), *LATER[1:])}),
    ("polite", {"fetches": (*CLEAN.fetches, fetch(8.9, "/robots.txt", 2, site=OTHER)), "addresses": ONE_ADDRESS}),
    ("backs_off", asked_at(6.0, 8.0, 11.9, 14.0)),
    ("backs_off", asked_at(6.0, 8.0, 11.9, 14.0, stops=[(10.1, 1), (7.0, 2)])),
    ("backs_off", asked_at(6.0, 8.0, 12.0, 14.0, back_off_s=2.1)),
    ("adapts", {**SLOWLY, "fetches": (ROBOTS, HOME, PAGE._replace(at_s=5.4), *SLOWLY["fetches"][3:])}),
    ("within_connections", {**QUICK, "connections_max": 1}),
    ("within_connections", {**QUICK, "connections_max": 1, "partings": [Parting(3.0, 30.0, frozenset({1, 2}))]}),
    ("copied_before_acknowledged", {"unsafe": [f"{SITE}/page was known to 1 at 5.000 s"]}),
    ("lent_to_one", {"shared": [f"{SITE}/page was lent to 2 and could be fetched by 1 at 5.000 s"]}),
    ("leases_end", {"overdue": ["2 goes on at a.test 1.50 s after the end of its lease"]}),
    ("within_the_pages", {"max_pages": 2}),
    ("within_the_pages", {"max_pages": 1, "forgotten": 1}),
    ("within_the_pages", {"max_pages": 3, "lines": (*CLEAN.lines, CLEAN.lines[0]._replace(visit=1))}),
    ("within_the_time", {"max_time_s": 7.9 - judges.LATE_S}),
    ("within_the_time", {**TIMED_RECRAWL, "max_time_s": 3.0}),
    ("visited_again", {**AGAIN_AND_AGAIN, "fetches": (*CLEAN.fetches, AGAIN, fetch(61.0, "/page"))}),
    ("one_fetch_per_owner", {**AGAIN_AND_AGAIN, "fetches": (*CLEAN.fetches, fetch(13.9, "/page"))}),
    ("pages_used_up", {"max_pages": 5, "pages_enough": True}),
    ("visits_in_order", {"lines": (*CLEAN.lines, *REVISITS)}),
    ("visits_in_order", {**AGAIN_AND_AGAIN, "lines": (*CLEAN.lines, *SAME_VISIT)}),
    ("dead_proxies_left_alone", turned_away(11.0, 12.0, 13.0, 18.1)),
    ("dead_proxies_left_alone", turned_away(11.0, 12.0, 13.0, 20.0, stops=[(19.0, 2), (5.0, 1)])),
    ("through_proxies", {"by_proxies": True, "fetches": (*VIA, BUSY)}),
    ("robots_obeyed", {"fetches": (*CLEAN.fetches, fetch(20, "/secret"))}),
    ("robots_obeyed", {"fetches": (HOME._replace(at_s=-2.0), *CLEAN.fetches[0:1], *CLEAN.fetches[2:])}),
    ("polite", {**ONE_DOMAIN, "fetches": (*CLEAN.fetches, fetch(9.9, "/robots.txt", 2, site=OTHER))}),
    ("polite", {"treatments": {SITE: SiteTreatment(0, delay_s=3.0)}, "delays": {SITE: 3.0}, "fetches": SPACED}),
    ("within_connections", {**QUICK, "connections_max": 3, "treatments": {SITE: SiteTreatment(0, connections=1)}}),
    ("nothing_beyond_the_links", {"fetches": (*CLEAN.fetches, fetch(20, "/page?utm_source=x"))}),
    ("off_sites_left_alone", {"fetches": (*CLEAN.fetches, ELSEWHERE), "treatments": {OTHER: SiteTreatment(off=True)}}),
    ("headers_of_the_site", {"fetches": (*CLEAN.fetches, ELSEWHERE._replace(rule="a"))}),
    ("headers_of_the_site", {"fetches": (*CLEAN.fetches, ELSEWHERE), "treatments": {OTHER: HEADED}}),
    ("cookies_of_the_site", {"fetches": (*CLEAN.fetches, ELSEWHERE._replace(cookie="sim-session=a.test/1"))}),
    ("cookies_kept", {"fetches": (ROBOTS._replace(given="sim-session=a.test/1"), HOME, *CLEAN_WITH_COOKIES)}),
    ("refusing_sites_given_up", {"refused": [f"{OTHER}/"], "lines": CLEAN.lines}),
    ("refusing_sites_given_up", {"refused": [f"{OTHER}/"], **asked_of_a_refusing_site(4, 2)}),
    ("refusing_sites_given_up", {"refused": [f"{OTHER}/"], **asked_of_a_refusing_site(5, 2), "orders": 1}),
    ("pages_of_the_site", partly_crawled(3, 3)),
    ("pages_of_the_site", partly_crawled(1, 1)),
    ("one_owner_when_quiet", {"claims": {7: (1, 2)}}),
    ("one_owner_when_quiet", {"claims": {}}),
    ("one_owner_when_quiet", {"claims": {7: (2,)}}),
    ("one_owner_when_quiet", {"named": ((1, 7, 1), (2, 7, 3))}),
    ("three_copies", {"repair_s": None}),
    ("three_copies", {"repair_s": judges.REPAIR_MOST_S + 0.1}),
    ("three_copies", {"copies": {**CLEAN.copies, f"{SITE}/": 2}}),
    ("three_copies", {"copies_wanted": 4, "live": 4, "copies": dict.fromkeys(CLEAN.copies, 4) | {f"{SITE}/": 3}}),
    ("no_early_end", {"ends": (End(9.0, 2, 1),)}),
    ("no_early_end", {"ends": (End(31.0, 2, 1),), "partings": [PARTITION]}),
    ("no_missing_end", {"over": False}),
    ("dashboard_says_the_end", {"dashboard": [LOOK._replace(says_done=True, unfinished=1)]}),
    ("dashboard_says_the_end", {"dashboard": [LOOK._replace(is_last=True)]}),
    ("dashboard_shows_the_swarm", {"dashboard": [LOOK._replace(untrue=("8 pages of a, which had 5 to 7",))]}),
    ("dashboard_shows_the_swarm", {"dashboard": [LOOK._replace(unshown=1)], "calm_s": 1.0}),
    ("dashboard_shows_the_swarm", {"dashboard": [LOOK._replace(ghosts=1)], "calm_s": 1.0}),
    ("bounded_queues", {"peaks": {"requests in flight": (65, 64)}}),
    ("one_fetch_per_owner", {"fetches": (*CLEAN.fetches, WHILE_DOWN, WHILE_DOWN._replace(at_s=26.0))}),
    ("one_fetch_per_owner", {"fetches": (*CLEAN.fetches, AGAIN), "orders": 1}),
    ("retried", {"not_retried": [f"{SITE}/page failed before an order and was not fetched after it"]}),
    ("slow_and_not_wrong", {"only_slow": True, "fetches": (*CLEAN.fetches, *BY_OTHERS)}),
    ("paused_sites_left_alone", {"paused": [PAUSED], "disturbed": [(40.0, 50.0)]}),
    ("paused_sites_left_alone", {"paused": [PAUSED._replace(all_heard=False, knew=[(1, 1.5, 30.0)])]}),
    ("excluded_sites_left_alone", {"excluded": [PAUSED]}),
    ("excluded_sites_left_alone", {"excluded": [PAUSED._replace(may_be_lost=True, knew=[(1, 1.5, 30.0)])]}),
    ("one_outcome_of_each", {"odd_outcomes": [f"{SITE}/ has no line"]}),
    ("pending_urls_dropped", {"dropped_in_vain": [f"{SITE}/ was fetched"]}),
    ("scope_kept", {"removed": [PAUSED]}),
    ("orders_known_to_all", {"unheard": ["2 does not know the order exclude a.test 1.0"]}),
    ("slowed_sites_left_alone", {"slowed": [SLOWED._replace(from_s=0.5)]}),
    ("slowed_sites_left_alone", {"slowed": [SLOWED._replace(until_s=7.9, from_s=-2.9)]}),
    ("slowed_sites_left_alone", {"slowed": [SLOWED._replace(may_be_lost=True, knew=[(1, 0.5, 30.0)])]}),
    ("lowered_limit_kept", {"granted": 2}),
    ("lowered_limit_kept", {"granted": 1, "forgotten": 1}),
    ("no_errors", {"errors": ["KeyError"]}),
]


@pytest.mark.parametrize(
    "excused",
    [
        {"slowed": [SLOWED._replace(sites=frozenset({OTHER}))]},
        {"slowed": [SLOWED._replace(delay_s=2.0)]},
        {"slowed": [SLOWED._replace(from_s=1.5)]},
        {"slowed": [SLOWED._replace(until_s=2.5)]},
        {"slowed": [SLOWED._replace(all_heard=False)]},
        {"slowed": [SLOWED._replace(may_be_lost=True, knew=[(1, 1.1, 30.0), (2, -9.0, 30.0)])]},
        {"slowed": [SLOWED], "disturbed": [(-4.0, 1.0)]},
        {"slowed": [SLOWED], "fetches": tuple(one._replace(at_s=one.at_s * 2) for one in CLEAN.fetches)},
    ],
)
def test_a_peer_that_may_not_know_a_longer_delay_yet_is_excused(excused: dict[str, Any]) -> None:
    assert {} == judge(replace(CLEAN, **excused))


def test_an_order_about_many_sites_spaces_the_requests_of_each_alone() -> None:
    slowed = SLOWED._replace(sites=frozenset({SITE, OTHER}), delay_s=2.0)
    between = fetch(5.0, "/robots.txt", site=OTHER)
    facts = replace(CLEAN, fetches=sorted([*CLEAN.fetches, between]), slowed=[slowed])
    assert {} == judge(facts)
    assert ["slowed_sites_left_alone", "polite"] == sorted(
        judge(replace(facts, clocks={SITE: "test", OTHER: "test"})), reverse=True
    )


def test_pages_granted_before_a_lower_limit_was_known_may_be_fetched() -> None:
    assert {} == judge(replace(CLEAN, granted=3)) == judge(replace(CLEAN, granted=2, forgotten=1))
    assert {} == judge(replace(CLEAN, granted=2, partings=[PARTITION]))


def test_a_borrower_asks_by_the_orders_that_its_lender_knows() -> None:
    borrowed = tuple(one._replace(lender=2) for one in CLEAN.fetches)
    knew = [(1, -5.0, 30.0), (2, 1.5, 30.0)]
    slowed = [SLOWED._replace(may_be_lost=True, knew=knew)]
    assert ["slowed_sites_left_alone"] == list(judge(replace(CLEAN, slowed=slowed)))
    assert {} == judge(replace(CLEAN, fetches=borrowed, slowed=slowed))


@pytest.mark.parametrize(
    "excused",
    [
        {"paused": [PAUSED._replace(sites=frozenset({OTHER}))]},
        {"paused": [PAUSED._replace(until_s=7.5)]},
        {"paused": [PAUSED._replace(from_s=4.0)]},
        {"paused": [PAUSED._replace(all_heard=False)]},
        {"paused": [PAUSED._replace(all_heard=False, knew=[(2, 1.5, 30.0), (1, 1.5, 7.0), (1, 7.9, 30.0)])]},
        {"paused": [PAUSED], "disturbed": [(6.0, 7.0)]},
        {"excluded": [PAUSED._replace(may_be_lost=True)]},
    ],
)
def test_a_peer_that_may_not_know_a_pause_yet_is_excused(excused: dict[str, Any]) -> None:
    assert {} == judge(replace(CLEAN, **excused))


@pytest.mark.parametrize(
    "kept",
    [
        turned_away(11.0, 12.0, 13.0, 18.0),
        turned_away(11.0, 12.0, 18.0, 40.0, 41.0),
        turned_away(11.0, 12.0, 13.0, 20.0, 21.0, 22.0, stops=[(19.0, 1)]),
        {**turned_away(11.0, 12.0, 13.0, 20.0), "proxies_down": [Outage("192.0.2.8", 10.0, 40.0)]},
    ],
)
def test_a_proxy_may_be_tried_three_times_and_again_once_it_works(kept: dict[str, Any]) -> None:
    assert {} == judge(replace(CLEAN, **kept))


@pytest.mark.parametrize(
    "kept",
    [
        {"lines": (*CLEAN.lines, REVISITS[0]._replace(at_s=30.0), REVISITS[1]._replace(at_s=20.0))},
        {"lines": (*CLEAN.lines, REVISITS[0], REVISITS[1]._replace(at_s=None))},
        {"lines": (*CLEAN.lines, *REVISITS), "partings": [PARTITION]},
        {**AGAIN_AND_AGAIN, "lines": (*CLEAN.lines, *SAME_VISIT), "stops": [(22.0, 3)]},
        {**AGAIN_AND_AGAIN, "lines": (*CLEAN.lines, SAME_VISIT[0], SAME_VISIT[1]._replace(at_s=29.9))},
        {"lines": (*CLEAN.lines, *SAME_VISIT)},
    ],
)
def test_visits_are_compared_by_the_clocks_of_machines_that_reach_each_other(kept: dict[str, Any]) -> None:
    assert {} == judge(replace(CLEAN, **kept))


@pytest.mark.parametrize(
    "kept",
    [
        {"max_pages": 4, "pages_enough": True},
        {"max_pages": 5, "pages_enough": False},
        {"max_pages": 5, "pages_enough": True, "lines": (*CLEAN.lines, CLEAN.lines[0]._replace(visit=1))},
    ],
)
def test_a_limit_of_pages_is_used_up_unless_a_grant_may_be_lost(kept: dict[str, Any]) -> None:
    assert {} == judge(replace(CLEAN, **kept))


def test_a_clean_record_passes_every_judge() -> None:
    assert {} == judge(CLEAN)
    assert 0 == duplicates(CLEAN) == parted(CLEAN)


def test_what_an_order_leaves_out_need_not_be_crawled() -> None:
    lost = replace(CLEAN, lines=(*CLEAN.lines[:2], *CLEAN.lines[3:]), done={})
    [url] = {one.url for one in CLEAN.lines} - {one.url for one in lost.lines}
    assert {} == judge(replace(lost, excused=[url]))
    refusing = replace(CLEAN, refused=[f"{OTHER}/"])
    assert {} == judge(replace(refusing, excused=[f"{OTHER}/"]))
    partly = partly_crawled(1, 1)
    assert {} == judge(replace(CLEAN, **partly, excused=[url for url in partly["optional"] if not url.endswith("/0")]))


def test_a_dashboard_may_be_late_and_a_side_of_a_partition_may_say_its_own_end() -> None:
    early = LOOK._replace(says_done=True, unfinished=1)
    looks = [early, LOOK._replace(unshown=2, ghosts=1), LOOK._replace(word="resting", is_last=True)]
    parting = PARTITION._replace(from_s=29.0, until_s=33.0)
    assert {} == judge(replace(CLEAN, dashboard=looks, calm_s=20.0, partings=[parting]))


def test_nothing_at_all_is_clean() -> None:
    assert {} == judge(Facts())


@cases(("name", "change"), BROKEN)
def test_each_judge_finds_its_violation(name: str, change: dict[str, Any]) -> None:
    found = judge(replace(CLEAN, **change))
    assert [name] == list(found)
    assert 1 == len(found[name])


@pytest.mark.parametrize(
    "change",
    [
        REFUSED,
        asked_at(6.0, 8.0, 11.0, 13.0, stops=[(9.0, 1)]),
        asked_at(6.0, 8.0, 11.0, 13.0, cut={3}),
        {**REFUSED, "back_off_s": 2.1, "fetches": [one._replace(retry_after_s=2.0) for one in REFUSED["fetches"]]},
    ],
    ids=["kept", "lost with the machine", "never arrived", "as the site asks"],
)
def test_a_wait_that_is_kept_or_that_nobody_can_know_is_no_violation(change: dict[str, Any]) -> None:
    assert [] == judges.backs_off(replace(CLEAN, **change))


def test_an_unsure_refusal_through_a_proxy_is_no_refusal_of_the_site() -> None:
    early = asked_at(6.0, 8.0, 11.9, 14.0)
    through = tuple(one._replace(via="192.0.2.9") for one in early["fetches"])
    assert [] == judges.backs_off(replace(CLEAN, **{**early, "fetches": through}))
    busy = tuple(one._replace(status=429) if one.status == 503 else one for one in through)
    assert 1 == len(judges.backs_off(replace(CLEAN, **{**early, "fetches": busy})))


def test_the_rest_of_a_slow_site_is_bounded_and_may_be_lost_with_a_machine() -> None:
    assert [] == judges.adapts(replace(CLEAN, **SLOWLY))
    hurried = replace(CLEAN, **{**SLOWLY, "delay_most_s": 3.0})
    assert 1 == len(judges.adapts(hurried))
    assert [] == judges.adapts(replace(hurried, stops=[(4.0, 1)]))
    assert 1 == len(judges.adapts(replace(hurried, stops=[(4.0, 9)])))
    for_another = [fetch._replace(owner=9) for fetch in hurried.fetches]
    assert [] == judges.adapts(replace(hurried, fetches=for_another, stops=[(4.0, 9)]))


def test_a_refusal_in_the_wait_of_another_changes_nothing_and_an_answer_ends_the_row() -> None:
    late = BUSY_FIRST._replace(at_s=6.1, url=f"{SITE}/page")
    two = replace(CLEAN, **REFUSED, delay_s=0.0, delays={})
    two = replace(two, fetches=(*two.fetches[:3], late, *two.fetches[3:]), overs=(0.0, 2.0, 6.0, 7.9, 8.0, 12.0, 14.0))
    assert [] == judges.backs_off(two)
    answered = [ROBOTS, BUSY_FIRST, PAGE._replace(at_s=8.0), BUSY_FIRST._replace(at_s=10.0), BUSY._replace(at_s=12.0)]
    facts = replace(CLEAN, back_off_s=2.0, fetches=answered, overs=[one.at_s for one in answered])
    assert [] == judges.backs_off(facts)


def test_every_judge_has_a_violation_to_find_and_says_what_it_promises() -> None:
    assert {one.__name__ for one in JUDGES} == {name for name, _ in BROKEN}
    assert all(one.__doc__ for one in JUDGES)


PASSED: list[dict[str, Any]] = [
    {"max_pages": 3},
    {"max_pages": 2, "forgotten": 1},
    {"max_pages": 2, "partings": [PARTITION]},
    {"max_time_s": 8.0 - judges.LATE_S},
    {**TIMED_RECRAWL, "max_time_s": 3.3},
    {**TIMED_RECRAWL, "max_time_s": 3.0, "stops": [(1.0, 1)]},
    {**TIMED_RECRAWL, "max_time_s": 3.0, "partings": [PARTITION]},
    {"max_time_s": 1.0, "partings": [PARTITION]},
    {"cuts_off": True, "lines": CLEAN.lines[1:], "done": {}, "pending": {f"{SITE}/": 3}},
    {"cuts_off": True, "refused": [f"{OTHER}/"]},
    {**AGAIN_AND_AGAIN, "fetches": (*CLEAN.fetches, AGAIN, fetch(30.0, "/page"))},
    {**AGAIN_AND_AGAIN, "fetches": (*CLEAN.fetches, AGAIN._replace(at_s=13.9)), "changes": {SITE: 1}},
    {"fetches": (*CLEAN.fetches, AGAIN), "changes": {SITE: 1}},
    {"fetches": (*CLEAN.fetches, AGAIN), "changes": {AGAIN.url: 1}},
    {"fetches": (*CLEAN.fetches, fetch(8.0, "/robots.txt", site=OTHER), fetch(9.0, "/", site=OTHER))},
    # A site's own delay is not known before its robots.txt has been read; the job's is.
    {"fetches": (ROBOTS._replace(status=503), ROBOTS._replace(at_s=1.0), *LATER)},
    # Nor if whoever asked for it has died before it could tell anybody.
    {"fetches": (ROBOTS._replace(at_s=-1.0, machine=3), ROBOTS, *CLEAN.fetches[1:])},
    {"treatments": {OTHER: HEADED}, "fetches": (*CLEAN.fetches, ELSEWHERE._replace(rule="b"))},
    {"treatments": {SITE: SiteTreatment(0, ignores_robots=True)}, "fetches": CLEAN.fetches[1:]},
    {**ONE_DOMAIN, "fetches": (*CLEAN.fetches, fetch(10.0, "/robots.txt", 2, site=OTHER))},
    {**QUICK, "connections_max": 2},
    {**QUICK, "connections_max": 1, "partings": [PARTITION]},
    {"refused": [f"{OTHER}/"], **asked_of_a_refusing_site(3, 2)},
    {"refused": [f"{OTHER}/"], **asked_of_a_refusing_site(4, 2), "orders": 1},
    partly_crawled(2, 2),
    {**partly_crawled(3, 3), "partings": [PARTITION]},
    {"live": 2, "copies": dict.fromkeys(CLEAN.copies, 2)},
    {"copies_wanted": 2, "copies": dict.fromkeys(CLEAN.copies, 2)},
    {"ends": (End(9.0, 2, 1),), "partings": [PARTITION]},
    {"over": False, "pending": {f"{SITE}/page": 3}, "waited_s": 300.0},
]


def test_a_request_cut_short_is_no_fetch_but_is_counted() -> None:
    facts = replace(CLEAN, fetches=(*CLEAN.fetches, AGAIN), changes={SITE: 1})
    first, again = CLEAN.fetches.index(PAGE), len(CLEAN.fetches)
    assert (1, 0) == (duplicates(facts), cut_short(facts))
    assert (0, 1) == (duplicates(replace(facts, cut={first})), cut_short(replace(facts, cut={first})))
    assert (1, 1) == (duplicates(replace(facts, cut={again})), cut_short(replace(facts, cut={again})))


@pytest.mark.parametrize("change", PASSED[:-1])
def test_what_is_allowed_is_not_held_against_the_peers(change: dict[str, Any]) -> None:
    assert {} == judge(replace(CLEAN, **change))


def test_work_left_is_lost_only_once_the_swarm_says_it_is_over() -> None:
    assert ["no_missing_end"] == list(judge(replace(CLEAN, **PASSED[-1])))


def test_sides_of_a_partition_may_hurry_a_site_and_that_is_counted() -> None:
    hurried = (ROBOTS, HOME, PAGE, fetch(4.5, "/busy", 2, 503), BUSY_FIRST._replace(at_s=6.5), fetch(9.0, "/busy"))
    facts = replace(
        CLEAN, fetches=hurried, partings=[PARTITION], truth={**CLEAN.truth, f"{SITE}/busy": ExpectedPage(200, 3)}
    )
    assert {} == judge(facts)
    assert 1 == parted(facts)
    assert ["polite"] == list(judge(replace(facts, partings=())))


def test_one_side_may_not_hurry_a_site_behind_requests_of_the_other() -> None:
    behind = (ROBOTS, HOME, PAGE, fetch(4.2, "/busy", 2, 503), fetch(4.4, "/busy"))
    facts = replace(CLEAN, fetches=behind, partings=[PARTITION])
    assert 1 == len(judge(facts)["polite"])
    assert 2 == parted(facts)


def test_a_request_that_another_machine_sends_is_that_of_the_machine_that_asked_for_it() -> None:
    helped = (ROBOTS, HOME, PAGE, fetch(4.5, "/busy", 3, 503), BUSY_FIRST._replace(at_s=6.5), fetch(9.0, "/busy"))
    facts = replace(
        CLEAN, fetches=helped, partings=[PARTITION], truth={**CLEAN.truth, f"{SITE}/busy": ExpectedPage(200, 3)}
    )
    assert ["polite"] == list(judge(facts)), "machines 1 and 3 are on one side"
    for_other_side = [one._replace(asked_for=2) if one.machine == 3 else one for one in helped]
    assert {} == judge(replace(facts, fetches=for_other_side))
    for_own_side = [one._replace(asked_for=1) if one.machine == 3 else one for one in helped]
    assert ["polite"] == list(judge(replace(facts, fetches=for_own_side)))
    sent_there = [one._replace(machine=2, asked_for=1) if one.machine == 3 else one for one in helped]
    assert ["polite"] == list(judge(replace(facts, fetches=sent_there)))


def test_a_page_fetched_too_often_is_a_duplicate_unless_sides_were_apart() -> None:
    facts = replace(CLEAN, fetches=(*CLEAN.fetches, AGAIN_THERE), changes={SITE: 1})
    assert 1 == duplicates(facts)
    assert (0, 1) == (duplicates(replace(facts, partings=[PARTITION])), parted(replace(facts, partings=[PARTITION])))
    assert 1 == duplicates(replace(facts, fetches=(*CLEAN.fetches, AGAIN), partings=[PARTITION]))


# --- awkward moments -------------------------------------------------------------------------------------------------

CELL, FAR = Cell(7), Cell(9)
HOLDERS = {CELL: (1, 2, 3), FAR: (4, 5, 6)}
KEY = Key(bytes(20))


@pytest.mark.parametrize(("killed", "met"), [((1,), True), ((3,), True), ((4,), False), ((4, 2), True), ((), False)])
def test_a_kill_during_a_sync_is_one_of_the_owner_or_whom_it_asks(killed: tuple[int, ...], met: bool) -> None:
    assert met is sometimes.kill_during_sync(killed, [CELL], HOLDERS)


@pytest.mark.parametrize(("killed", "met"), [((1, 2), True), ((1, 3), True), ((2, 3), False), ((1, 5), False)])
def test_owner_and_backup_must_be_of_the_same_cell(killed: tuple[int, ...], met: bool) -> None:
    assert met is sometimes.kill_owner_and_backup(killed, HOLDERS)


@pytest.mark.parametrize(("killed", "met"), [((1, 2), True), ((2, 3), True), ((1, 2, 3), False), ((1, 5), False)])
def test_all_holders_but_one_are_of_the_same_cell(killed: tuple[int, ...], met: bool) -> None:
    assert met is sometimes.kill_all_holders_but_one(killed, HOLDERS)
    assert not sometimes.kill_all_holders_but_one(killed, {CELL: (1, 9)}), "of two holders any kill spares one"


@pytest.mark.parametrize(
    ("others", "met"), [([], True), ([{}], True), ([{KEY: 1}], False), ([{KEY: 2}], True), ([{}, {KEY: 1}], False)]
)
def test_a_record_no_other_has_as_it_is_was_not_copied(others: list[dict[Key, int]], met: bool) -> None:
    assert met is sometimes.kill_between_journal_and_copy({KEY: 1}, others)


def test_a_visit_in_its_time_is_no_repeat_and_one_before_is() -> None:
    facts = replace(CLEAN, again_s=10.0, fetches=(*CLEAN.fetches, AGAIN, fetch(29.9, "/page"), fetch(30.0, "/page")))
    assert 2 == duplicates(facts)
    assert 0 == duplicates(replace(facts, fetches=(*CLEAN.fetches, AGAIN, fetch(30.0, "/page"))))


@pytest.mark.parametrize(("newcomers", "met"), [((1, 3), True), ((1, 4), False), ((9, 1), False)])
def test_two_joins_into_one_range_share_a_cell(newcomers: tuple[int, ...], met: bool) -> None:
    assert met is sometimes.two_joins_into_one_range(newcomers, HOLDERS)


def test_both_sides_of_a_partition_crawl_only_if_both_fetch_meanwhile() -> None:
    here, there = fetch(5.0, "/", 1), fetch(6.0, "/", 2)
    assert sometimes.crawl_on_both_sides(PARTITION, [here, there])
    assert not sometimes.crawl_on_both_sides(PARTITION, [here, here])
    assert not sometimes.crawl_on_both_sides(PARTITION, [here, there._replace(at_s=31.0)])


def test_a_range_has_moved_once_another_has_crawled_it() -> None:
    assert sometimes.old_disk_after_move(1, {SITE}, [fetch(5.0, "/", 2)])
    assert not sometimes.old_disk_after_move(1, {SITE}, [fetch(5.0, "/", 1)])
    assert not sometimes.old_disk_after_move(1, {OTHER}, [fetch(5.0, "/", 2)])


def test_what_was_never_met_is_named() -> None:
    assert [] == sometimes.never_met(dict.fromkeys(sometimes.AWKWARD, 1))
    assert list(sometimes.AWKWARD) == sometimes.never_met({"kill_during_sync": 0})


def test_an_order_allows_one_more_fetch_of_a_page_whose_site_is_down_and_of_a_page_that_fails() -> None:
    refused = (*CLEAN.fetches, WHILE_DOWN, WHILE_DOWN._replace(at_s=26.0))
    assert {} == judge(replace(CLEAN, fetches=refused, orders=1))
    missing = {**CLEAN.truth, f"{SITE}/page": ExpectedPage(404)}
    lines = tuple(line._replace(status=404) if line.url.endswith("page") else line for line in CLEAN.lines)
    twice = tuple(one._replace(status=404) if one.path == "/page" else one for one in (*CLEAN.fetches, AGAIN))
    failing = replace(CLEAN, truth=missing, lines=lines, fetches=twice)
    assert ["one_fetch_per_owner"] == list(judge(failing))
    assert {} == judge(replace(failing, orders=1))
    assert (1, 0) == (duplicates(failing), duplicates(replace(failing, orders=1)))


@pytest.mark.parametrize(
    ("order", "outage", "fetches", "found"),
    [
        (23.0, None, (WHILE_DOWN,), 1),
        (22.0, None, (WHILE_DOWN,), 0),
        (23.0, judges.Outage(SITE, 20.0, 22.5), (WHILE_DOWN,), 1),
        (23.0, judges.Outage(SITE, 20.0, 24.0), (WHILE_DOWN,), 0),
        (23.0, judges.Outage(OTHER, 20.0, 24.0), (WHILE_DOWN,), 1),
        (23.0, None, (WHILE_DOWN, fetch(24.0, "/page")), 0),
        (23.0, None, (WHILE_DOWN, fetch(24.0, "/page", status=500)), 0),
        (23.0, None, (fetch(21.0, "/page", status=500), WHILE_DOWN), 1),
        (23.0, None, (fetch(21.0, "/page"),), 0),
    ],
)
def test_what_failed_before_an_order_is_awaited_once_its_site_works(
    order: float, outage: judges.Outage | None, fetches: tuple[Fetch, ...], found: int
) -> None:
    outages = [outage] if outage is not None else []
    assert found == len(judges.awaited([ROBOTS, *fetches], order, outages))


def test_a_page_of_a_site_that_refuses_everything_is_not_awaited() -> None:
    assert [] == judges.awaited([ROBOTS, WHILE_DOWN], 23.0, [], {WHILE_DOWN.url})


def test_an_answer_that_asks_for_a_cookie_is_no_page_and_a_redirect_elsewhere_is() -> None:
    asks = fetch(21.0, "/page", status=302)
    gives = fetch(20.0, "/", status=302)._replace(given="a=1")
    assert 0 == len(judges.awaited([asks, WHILE_DOWN], 23.0, []))
    assert 1 == len(judges.awaited([gives, asks, WHILE_DOWN], 23.0, []))
    assert 0 == len(judges.awaited([gives, asks._replace(cookie="a=1"), WHILE_DOWN], 23.0, []))


# --- large worlds ----------------------------------------------------------------------------------------------------


class CountedUrl(str):
    """A URL that counts its comparisons with others."""

    __slots__ = ()
    __hash__ = str.__hash__
    compared = 0

    def __eq__(self, other: object) -> bool:
        CountedUrl.compared += 1
        return str.__eq__(self, other)


def test_the_work_of_the_judges_grows_with_the_pages_and_no_faster() -> None:
    """Of a hundred thousand pages each was once compared with every request."""
    pages = 1_000
    urls = [CountedUrl(f"{SITE}/{number}") for number in range(pages)]
    fetches = [fetch(2.0 + 2 * number, "/")._replace(url=url) for number, url in enumerate(urls)]
    facts = replace(
        CLEAN,
        truth={url: ExpectedPage(200) for url in urls},
        disallowed=frozenset(),
        fetches=(ROBOTS, *fetches),
        lines=[Line(url, 200, None, 1) for url in urls],
        done=dict.fromkeys(urls, 2),
        copies=dict.fromkeys(urls, 3),
        ends=(End(4.0 * pages, 1, 0),),
    )
    CountedUrl.compared = 0
    assert {} == judge(facts)
    assert (0, 0, 0) == (duplicates(facts), parted(facts), cut_short(facts))
    assert CountedUrl.compared < 20 * pages
