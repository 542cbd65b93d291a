"""The annex of a site: an independent walk with the settings of the job finds what the annex says, and bugs show."""

import html
import re
from collections import deque
from itertools import product
from urllib.parse import parse_qsl, urlencode, urljoin, urlsplit

import pytest

from sim.annex import HOME, Annex
from sim.campaign import Hunt, hunt
from sim.draw import draw
from sim.plan import Plan
from sim.site_treatment import SiteTreatment, by_number
from sim.synthetic_sites import PLAIN, Mix, Robots
from sim.synthetic_web import SyntheticWeb
from sim.trial import USUAL, Size, scene_of

ALL = [Annex(0, *switches) for switches in product((False, True), repeat=4)]


def links(web: SyntheticWeb, url: str, annex: Annex) -> list[str]:
    """Return the links of an answer that a crawl with the settings of the annex follows."""
    answer = web.answer(urlsplit(url).netloc, url.split(urlsplit(url).netloc)[1])
    headers, body = dict(answer.headers), answer.body.decode()
    if answer.status != 200:
        return []
    found = [headers["Refresh"].partition("url=")[2]] if "Refresh" in headers else []
    if "xml" in headers["Content-Type"]:
        listed = re.findall(r"<loc>(.*?)</loc>|<link>(.*?)</link>|<link href=\"(.*?)\"/>", body)
        return [html.unescape("".join(groups)) for groups in listed] if annex.sitemaps else []
    found += re.findall(r'content="\d+; url=([^"]*)"', body)
    is_closed = headers.get("X-Robots-Tag") == "nofollow" or 'name="robots" content="nofollow"' in body
    for rel, path in re.findall(r'<a (rel="nofollow" )?href="([^"]*)"', body):
        if annex.ignores_nofollow or not (rel or is_closed):
            found.append(html.unescape(path))
    return found


def plain(url: str, annex: Annex) -> str:
    """Return a URL in the spelling of the job."""
    path, _, query = url.partition("?")
    parameters = parse_qsl(query)
    if annex.strips:
        parameters = [one for one in parameters if not one[0].startswith("utm_") and one[0] != "from"]
    if annex.sorts:
        parameters.sort()
    return f"{path}?{urlencode(parameters)}" if parameters else path


@pytest.mark.parametrize("robots", [Robots.OPEN, Robots.MISSING])
@pytest.mark.parametrize("annex", ALL, ids=str)
def test_an_independent_walk_finds_what_a_correct_crawl_fetches(annex: Annex, robots: Robots) -> None:
    mix = PLAIN if robots is Robots.OPEN else Mix(no_robots=1.0, closed=0.0, dead_robots=0.0, calendar=0.0)
    web = SyntheticWeb(4, sites=2, pages=6, mix=mix, annex=annex)
    [site, _] = web.sites
    assert robots is site.robots
    [*named] = re.findall(r"Sitemap: (.*)", web.answer(site.host, "/robots.txt").body.decode())
    waiting = deque([f"{site.origin}{HOME}"])
    if annex.sitemaps:
        waiting.extend(named or [f"{site.origin}/sitemap.xml"])
    found: set[str] = set()
    while waiting:
        url = waiting.popleft()
        if url not in found:
            found.add(url)
            waiting.extend(plain(urljoin(url, link), annex) for link in links(web, url, annex))
    inside = {url for url in web.truth() if url.startswith(f"{site.origin}{HOME}") or url.endswith("/sitemap.xml")}
    assert {url for url in found if site.origin in url} == {url for url in inside if site.origin in url}
    assert all(web.truth()[url].status == (404 if url.endswith("/sitemap.xml") else 200) for url in inside)
    assert HOME.encode() in web.answer(site.host, "/").body


def test_a_rule_for_a_site_decides_about_its_sitemap() -> None:
    treatments = by_number([SiteTreatment(0, sitemaps=True), SiteTreatment(1, sitemaps=False)], 3, 1)
    mix = Mix(no_robots=1.0, closed=0.0, dead_robots=0.0)
    follows = [f"{site.origin}/sitemap.xml" for site in SyntheticWeb(1, sites=3, pages=9).sites]
    for annex, expected in ((None, [False, False, True]), (Annex(0, sitemaps=True), [True, False, True])):
        web = SyntheticWeb(1, sites=3, pages=9, mix=mix, treatments=treatments, annex=annex)
        assert expected == [url in web.truth() for url in follows]


def test_a_crawl_meets_the_sitemap_of_a_site_that_forbids_everything() -> None:
    mix = Mix(closed=1.0, no_robots=0.0, dead_robots=0.0)
    web = SyntheticWeb(1, sites=2, pages=4, mix=mix, annex=Annex(0, sitemaps=True))
    assert {f"{web.sites[1].origin}/", f"{web.sites[1].origin}/sitemap.xml"} == web.disallowed()


def test_plans_draw_an_annex_of_every_kind_and_older_plans_have_none() -> None:
    plans = [draw(seed, 16) for seed in range(300)]
    drawn = [plan.annex for plan in plans if plan.annex is not None]
    assert 60 < len(drawn) < 200
    for name in Annex.__struct_fields__:
        assert len({getattr(one, name) for one in drawn}) > 1, name
    assert not any(plan.annex for plan in plans if plan.delay_s > 1.0)
    assert Plan.from_json(b'{"seed": 1, "peers": 2, "events": []}').annex is None
    job = scene_of(next(plan for plan in plans if plan.annex and plan.annex.strips), USUAL).job
    assert job.strip_parameters


@pytest.mark.parametrize(
    ("mutant", "annex", "judge"),
    [
        ("nofollow_followed", Annex(0), "nothing_beyond_the_links"),
        ("nofollow_never_ignored", Annex(0, ignores_nofollow=True), "nothing_lost"),
        ("robots_header_ignored", Annex(0), "nothing_beyond_the_links"),
        ("refresh_header_ignored", Annex(0), "nothing_lost"),
        ("tracking_parameters_kept", Annex(0, strips=True), "nothing_beyond_the_links"),
        ("queries_not_sorted", Annex(0, sorts=True), "nothing_beyond_the_links"),
    ],
)
def test_a_bug_in_links_is_found_in_a_small_world(
    mutant: str, annex: Annex, judge: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = Plan(1, 2, (), delay_s=0.2, annex=annex)
    monkeypatch.setattr("sim.target_worlds.draw", lambda seed, peers: plan)
    catch = hunt(Hunt(mutant, range(1, 2), 2, Size(pages=20, sites=4)))
    assert judge in catch.judges
