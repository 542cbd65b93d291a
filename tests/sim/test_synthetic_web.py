"""The synthetic web: an independent walk of it finds exactly its truth, and it is the same everywhere."""

import os
import re
import subprocess
import sys
import tracemalloc
from collections import Counter, deque
from dataclasses import replace
from hashlib import sha256
from itertools import islice
from statistics import median
from typing import Any
from urllib.parse import urldefrag, urljoin, urlsplit
from urllib.robotparser import RobotFileParser

import pytest
from hypothesis import given, strategies as st

from sim.judge import Access, Expected, Verdict, judge
from sim.synthetic_sites import FANOUT_MAX, PLAIN, SITES_BELOW_SITE, Mix, Robots, SyntheticSite
from sim.synthetic_web import LINKS_MAX, PageKind, SyntheticResponse, SyntheticWeb

ODD = Mix(**dict.fromkeys(("busy", "slow", "moved", "missing", "broken", "file", "elsewhere"), 0.1), calendar=0.5)
"""Many oddities on few pages."""

SHAPES: dict[str, dict[str, Any]] = {
    "one page": {"sites": 1, "pages": 1},
    "small": {"sites": 12, "pages": 150},
    "sites of one page": {"sites": 30, "pages": 30, "seeds": 3},
    "sites alike": {"sites": 40, "pages": 900, "zipf": 0.0},
    "plain": {"sites": 3, "pages": 300, "mix": PLAIN},
    "odd": {"sites": 25, "pages": 500, "mix": ODD},
    "trails": {"sites": 9, "pages": 60, "seeds": 3, "trails": 3, "trail_pages": 7},
    "all moved": {"sites": 4, "pages": 40, "mix": replace(PLAIN, moved=1.0)},
}


def last_answer(web: SyntheticWeb, url: str) -> tuple[SyntheticResponse, int]:
    """Return the last answer of `url` to a client that retries, and the number of its request."""
    parts = urlsplit(url)
    for asked in range(4):
        answer = web.answer(parts.netloc, parts.path, asked)
        if answer.status < 500:
            break
    return answer, asked + 1


def walk(web: SyntheticWeb) -> tuple[dict[str, tuple[int, int]], set[str]]:
    """Return URL -> (status, requests) of all reachable URLs, and the URLs that robots.txt forbids."""
    found: dict[str, tuple[int, int]] = {}
    refused: set[str] = set()
    robots: dict[str, RobotFileParser] = {}
    waiting = deque(web.seeds)
    while waiting:
        url = urldefrag(waiting.popleft())[0]
        if url in found or url in refused:
            continue
        host = urlsplit(url).netloc
        if host not in robots:
            robots[host] = parser = RobotFileParser()
            answer, _ = last_answer(web, f"http://{host}/robots.txt")
            text = answer.body.decode() if answer.status == 200 else ""
            parser.parse(("User-agent: *\nDisallow: /" if answer.status >= 500 else text).splitlines())
        if not robots[host].can_fetch("kadcrawl", url):
            refused.add(url)
            continue
        answer, requests = last_answer(web, url)
        found[url] = answer.status, requests
        headers = dict(answer.headers)
        if 300 <= answer.status < 400:
            waiting.append(urljoin(url, headers["Location"]))
        elif answer.status == 200 and headers["Content-Type"].startswith("text/html"):
            waiting.extend(urljoin(url, href) for href in re.findall('href="([^"]*)"', answer.body.decode()))
    return found, refused


@pytest.mark.parametrize("shape", SHAPES.values(), ids=list(SHAPES))
@pytest.mark.parametrize("seed", range(5))
def test_an_independent_walk_from_the_seeds_finds_exactly_the_truth(seed: int, shape: dict[str, Any]) -> None:
    web = SyntheticWeb(seed, **shape)

    found, refused = walk(web)

    truth = web.truth()
    assert {url: expected.status for url, expected in truth.items()} == {url: end[0] for url, end in found.items()}
    assert [url for url, (_, requests) in found.items() if truth[url].fetches_max != requests] == []
    assert len(truth) == len(found)
    assert web.disallowed() == refused


def test_a_crawl_by_the_truth_is_judged_clean_and_any_other_is_not() -> None:
    web = SyntheticWeb(3, sites=12, pages=150)
    everything = {**web.robots(), **web.truth()}
    log = [
        Access(0.0, f"http://{urlsplit(url).netloc}", urlsplit(url).path, expected.status, "")
        for url, expected in everything.items()
        for _ in range(expected.fetches_min)
    ]
    assert judge(log, everything, web.disallowed()) == Verdict(
        missing=(), extra=(), duplicates=(), hurried=(), disobedient=()
    )
    assert len(judge(log[:-1], everything).missing) == 1
    assert len(judge([*log, log[-1]], everything).duplicates) == 1


def digest(seed: int, shape: dict[str, Any]) -> str:
    """Return a hash of every answer of a web."""
    web = SyntheticWeb(seed, **shape)
    whole = sha256()
    for url in (*web.robots(), *web.truth()):
        whole.update(f"{url} {last_answer(web, url)}".encode())
    return whole.hexdigest()


def test_a_seed_gives_the_same_web_in_any_process_and_another_seed_another() -> None:
    here = digest(7, SHAPES["odd"])
    assert here == digest(7, SHAPES["odd"])
    assert here != digest(8, SHAPES["odd"])
    program = "from tests.sim.test_synthetic_web import SHAPES, digest; print(digest(7, SHAPES['odd']))"
    environment = {"PYTHONHASHSEED": "4242", "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", program]
    there = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    assert here == there.stdout.strip()


def test_a_web_of_a_million_pages_needs_no_memory_for_them() -> None:
    tracemalloc.start()
    try:
        web = SyntheticWeb(1, sites=1000, pages=1_000_000)
        for site in web.sites[:100]:
            for number in range(1, site.pages, max(1, site.pages // 10)):
                web.answer(site.host, f"/page/{number}")
        assert all(web.truth()[url].status for url in islice(web.truth(), 1000))
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert sum(site.pages for site in web.sites) == 1_000_000
    assert peak_bytes < 4_000_000


def test_every_oddity_occurs_about_as_often_as_asked_for() -> None:
    mix = Mix()
    web = SyntheticWeb(5, sites=500, pages=50_000, mix=mix)
    sites = [site for site in web.sites if site.open]
    kinds = Counter(web.kind(site, path)[0] for site in sites for path in web.paths(site))
    pages = sum(site.pages for site in sites)
    leaves = pages - sum(site.inner for site in sites)
    for kind, expected in {
        PageKind.BUSY: mix.busy * pages,
        PageKind.SLOW: mix.slow * pages,
        PageKind.OLD: mix.moved * pages,
        PageKind.MISSING: mix.missing * leaves,
        PageKind.BROKEN: mix.broken * leaves,
        PageKind.FILE: mix.file * leaves,
        PageKind.ELSEWHERE: mix.elsewhere * leaves,
    }.items():
        assert 0.8 * expected < kinds[kind] < 1.25 * expected, kind
    robots = Counter(site.robots for site in web.sites)
    assert all(robots[kind] for kind in Robots)
    assert 0.2 < robots[Robots.MISSING] / 500 < 0.4
    assert any(site.maze for site in sites)
    assert any(site.calendar for site in sites)
    delayed = [site for site in sites if site.crawl_delay_s]
    assert delayed
    assert max(site.pages for site in delayed) <= 50_000 / 500


def test_degrees_are_those_of_the_web_few_on_most_pages_and_many_on_some() -> None:
    web = SyntheticWeb(5, sites=10, pages=5000, mix=PLAIN)
    degrees = [last_answer(web, url)[0].body.count(b"href") for url in web.truth()]
    assert 4 <= median(degrees) <= 15
    assert 50 <= max(degrees) <= LINKS_MAX + FANOUT_MAX + SITES_BELOW_SITE
    foreign = sum(last_answer(web, url)[0].body.count(b'="http://') for url in web.truth())
    assert 0.05 < foreign / sum(degrees) < 0.2


@pytest.mark.parametrize(("zipf", "largest"), [(0.0, 10), (1.0, 19)])
def test_sizes_follow_zipfs_law_and_add_up(zipf: float, largest: int) -> None:
    sizes = [site.pages for site in SyntheticWeb(1, sites=100, pages=1000, zipf=zipf).sites]
    assert 1000 == sum(sizes)
    assert min(sizes) >= 1
    assert max(sizes) >= largest
    if zipf:
        assert (sizes[0] - 1) / (sizes[9] - 1) == pytest.approx(10, rel=0.2)


def find(web: SyntheticWeb, kind: PageKind) -> tuple[SyntheticSite, str]:
    return next(
        (site, path) for site in web.sites if site.open for path in web.paths(site) if web.kind(site, path)[0] is kind
    )


def test_a_busy_page_is_busy_once_and_only_such_urls_are_counted() -> None:
    web = SyntheticWeb(1, sites=25, pages=500, mix=replace(ODD, no_robots=0, flaky_robots=0.5))
    site, path = find(web, PageKind.BUSY)
    assert [503, 200, 200] == [web.answer(site.host, path, asked).status for asked in range(3)]
    assert web.truth()[site.origin + path] == Expected(200, 2, 2)
    counted = {url for url in (*web.robots(), *web.truth()) if last_answer(web, url)[0].counted}
    assert counted == {url for url in (*web.robots(), *web.truth()) if last_answer(web, url)[1] == 2}


def test_a_broken_page_is_tried_as_often_as_the_job_says() -> None:
    web = SyntheticWeb(1, sites=25, pages=500, mix=ODD)
    site, path = find(web, PageKind.BROKEN)
    assert Expected(500, 1, 6) == web.truth(retries=5)[site.origin + path]


def test_a_slow_page_ends_long_before_a_crawler_gives_up() -> None:
    web = SyntheticWeb(1, sites=25, pages=500, mix=ODD)
    site, path = find(web, PageKind.SLOW)
    answer = web.answer(site.host, path)
    assert 3 <= answer.latency_s <= 7
    assert answer.bytes_per_s <= 1000
    slowest = max(
        answer.latency_s + len(answer.body) / answer.bytes_per_s
        for url in web.truth()
        for answer in [last_answer(web, url)[0]]
    )
    assert slowest < 20


def test_redirects_end_after_three_hops() -> None:
    web = SyntheticWeb(1, sites=25, pages=500, mix=replace(PLAIN, moved=0.5, elsewhere=0.9))
    for start in web.truth():
        url, hops = start, 0
        while "Location" in (headers := dict(last_answer(web, url)[0].headers)):
            url, hops = urljoin(url, headers["Location"]), hops + 1
        assert hops <= 3, start


@pytest.mark.parametrize(
    "target",
    ["/page/0", "/page/007", "/page/45", "/page/1?x=1", "/page/1/", "/page", "/old/1", "/calendar/1", "/calendar/0"],
)
def test_what_nothing_leads_to_is_nothing_and_not_in_the_truth(target: str) -> None:
    web = SyntheticWeb(1, sites=2, pages=60, mix=PLAIN)
    site = web.sites[1]
    assert site.pages <= 45
    assert 404 == web.answer(site.host, target).status
    assert site.origin + target not in web.truth()


@given(st.text(), st.text(), st.integers(0, 10))
def test_no_question_is_too_strange(host: str, target: str, asked: int) -> None:
    web = SyntheticWeb(1, sites=2, pages=10)
    assert 421 == web.answer(host, target, asked).status
    assert web.answer(web.sites[0].host, f"/{target}", asked).status
    assert f"https://{host}/{target}" not in web.truth()
    assert target not in web.truth()


def test_a_trail_goes_from_site_to_site_and_each_page_of_it_is_linked_once() -> None:
    web = SyntheticWeb(1, sites=5, pages=50, seeds=2, mix=PLAIN, trails=2, trail_pages=4)
    trail = {url for url in web.truth() if "/trail/" in url}
    assert 8 == len(trail)
    linked: Counter[str] = Counter()
    for url in web.truth():
        parts = urlsplit(url)
        body = web.answer(parts.netloc, parts.path).body.decode()
        onward = [link for link in re.findall('href="([^"]*)"', body) if "/trail/" in link]
        assert all(urlsplit(link).netloc != parts.netloc for link in onward if url in trail)
        linked.update(onward)
    assert dict.fromkeys(trail, 1) == linked


def test_the_maze_has_no_end_and_robots_txt_forbids_it() -> None:
    web = SyntheticWeb(1, sites=3, pages=30, mix=replace(PLAIN, maze=1.0))
    url = f"{web.sites[0].origin}/maze/1"
    assert url in web.disallowed()
    for _ in range(20):
        answer, _ = last_answer(web, url)
        assert answer.status == 200
        url = urljoin(url, re.findall('href="([^"]*)"', answer.body.decode())[-1])
        assert url not in web.truth()


def test_a_site_asks_for_its_delay_and_the_longer_of_two_counts() -> None:
    web = SyntheticWeb(1, sites=8, pages=80, mix=replace(PLAIN, crawl_delay=1.0, crawl_delay_s=2.0))
    asking = [site for site in web.sites if site.crawl_delay_s]
    assert 0 < len(asking) < 8
    for site in asking:
        assert b"Crawl-delay: 2\n" in web.answer(site.host, "/robots.txt").body
    assert {site.origin: 2.0 if site.crawl_delay_s else 1.0 for site in web.sites} == web.delays(1.0)
    assert {5.0} == set(web.delays(5.0).values())


def test_a_site_whose_robots_txt_is_broken_at_first_asks_for_no_delay() -> None:
    """The second request for robots.txt could not know of the delay."""
    web = SyntheticWeb(1, sites=8, pages=80, mix=replace(PLAIN, crawl_delay=1.0, crawl_delay_s=2.0, flaky_robots=1.0))
    assert {1.0} == set(web.delays(1.0).values())


def test_hosts_share_the_addresses() -> None:
    addresses = ("10.255.0.1", "10.255.0.2")
    web = SyntheticWeb(1, sites=5, pages=50, addresses=addresses)
    assert {"10.255.0.1": 3, "10.255.0.2": 2} == Counter(web.address(site.host) for site in web.sites)
    assert web.address("elsewhere.test") is None


@pytest.mark.parametrize(
    "impossible",
    [
        {"sites": 0, "pages": 10},
        {"sites": 11, "pages": 10},
        {"sites": 1, "pages": 1, "seeds": 2},
        {"sites": 1, "pages": 1, "seeds": 0},
        {"sites": 1, "pages": 1, "addresses": ()},
        {"sites": 2, "pages": 2, "trails": 2, "trail_pages": 3},
        {"sites": 2, "pages": 2, "trails": 1, "trail_pages": -1},
    ],
)
def test_a_web_that_cannot_be_is_the_callers_mistake(impossible: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="a web"):
        SyntheticWeb(1, **impossible)


def test_shares_are_shares() -> None:
    with pytest.raises(ValueError, match="from 0 to 1"):
        Mix(busy=1.1)
    with pytest.raises(ValueError, match="0 or more"):
        Mix(crawl_delay_s=-1)


def test_a_refusing_page_answers_429_once_or_twice_and_then_itself() -> None:
    web = SyntheticWeb(3, sites=1, pages=40, mix=replace(PLAIN, refusing=1.0))
    (site,) = web.sites
    counts = set()
    for path in web.paths(site):
        refusals = web.truth()[site.origin + path].fetches_min - 1
        statuses = [web.answer(site.host, path, asked).status for asked in range(refusals + 1)]
        assert [429] * refusals + [200] == statuses
        counts.add(refusals)
    assert {1, 2} == counts
