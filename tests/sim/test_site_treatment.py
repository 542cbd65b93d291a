"""Rules for single sites: plans draw all kinds, the web knows what a correct crawl does, and broken rules are found."""

import pytest

from sim.campaign import Hunt, hunt
from sim.draw import draw
from sim.job_rules import contact, site_rules
from sim.plan import Plan
from sim.site_treatment import EVERY, USUAL_TREATMENT, SiteTreatment, by_number
from sim.synthetic_sites import PLAIN, Mix
from sim.synthetic_web import SyntheticWeb
from sim.trial import USUAL, Size, scene_of

SITES, SEEDS = 6, 2


def web_of(*treatments: SiteTreatment, mix: Mix | None = None) -> SyntheticWeb:
    """Return a web with these treatments. The number of the largest site that may have one is 3."""
    return SyntheticWeb(3, sites=SITES, pages=90, seeds=SEEDS, mix=mix, treatments=by_number(treatments, SITES, SEEDS))


def test_plans_draw_rules_of_every_kind_and_older_plans_have_none() -> None:
    drawn = [one for seed in range(200) for one in draw(seed, 16).treatments]
    for name in SiteTreatment.__struct_fields__:
        assert len({getattr(one, name) for one in drawn}) > 1, name
    assert 0.4 < sum(bool(draw(seed, 16).treatments) for seed in range(200)) / 200 < 0.75
    assert () == Plan.from_json(b'{"seed": 1, "peers": 2, "events": []}').treatments


def test_every_drawn_job_is_one_that_kadcrawl_takes() -> None:
    for seed in range(100):
        plan = draw(seed, 16)
        rules = [one for one in plan.treatments if not one.refuses]
        assert bool(rules) == bool(scene_of(plan, USUAL).job.sites)


def test_a_site_refuses_everything_if_the_job_gives_sites_up_soon() -> None:
    plans = [draw(seed, 16) for seed in range(200)]
    drawn = [plan for plan in plans if plan.refusals_max < 10]
    assert {2, 3} == {plan.refusals_max for plan in drawn}
    assert not any(plan.refusing for plan in drawn)
    for plan in plans:
        assert (plan in drawn) is any(one.refuses for one in plan.treatments)
        assert plan.refusals_max == scene_of(plan, USUAL).job.refusals_max
        numbers = [one.site for one in plan.treatments]
        assert len(numbers) == len({*numbers})
    assert 10 == Plan.from_json(b'{"seed": 1, "peers": 2, "events": []}').refusals_max


def test_a_site_that_refuses_everything_is_known_by_the_links_of_another() -> None:
    usual, web = web_of(), web_of(SiteTreatment(1, refuses=True))
    site = web.sites[SITES - 1 - 1]
    assert {url for url in usual.truth() if not url.startswith(site.origin)} == set(web.truth())
    assert [429, 429] == [web.answer(site.host, path, 9).status for path in ("/", "/door/1")]
    assert 429 != web.answer(site.host, "/robots.txt", 9).status
    assert f"{site.origin}/" in web.refused()
    for url in web.refused()[1:]:
        assert url.encode() in web.answer(web.sites[0].host, "/").body
    assert not usual.refused()
    shut = web_of(SiteTreatment(1, refuses=True), mix=Mix(closed=1.0, no_robots=0.0))
    assert not shut.refused()
    assert f"{site.origin}/" in shut.disallowed()


def test_sites_that_are_never_given_up_are_found_in_a_small_world(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = Plan(2, 2, (), delay_s=0.2, treatments=(SiteTreatment(0, refuses=True),), refusals_max=2)
    monkeypatch.setattr("sim.target_worlds.draw", lambda seed, peers: plan)
    monkeypatch.setattr("sim.trial.REST_TIMEOUT_S", 200.0)
    catch = hunt(Hunt("refusing_sites_never_given_up", range(1, 2), 2, Size(pages=30, sites=4)))
    assert "refusing_sites_given_up" in catch.judges


def test_a_site_with_few_pages_is_crawled_in_part_and_no_trail_leads_through_it() -> None:
    web = web_of(SiteTreatment(3, pages_max=2), mix=Mix(closed=0.0, dead_robots=0.0))
    usual = web_of(mix=Mix(closed=0.0, dead_robots=0.0))
    site = web.sites[SITES - 1 - 3]
    assert {*usual.truth()} == {*web.truth(), *web.optional()}
    assert web.optional().keys() == {url for url in usual.truth() if url.startswith(f"{site.origin}/")}
    assert {**web.truth(), **web.optional()} == {**usual.truth()}
    treatments = by_number([SiteTreatment(0, pages_max=2)], 3, 1)
    trailed = SyntheticWeb(3, sites=3, pages=9, trails=1, trail_pages=9, mix=PLAIN, treatments=treatments)
    assert not any(url.startswith(trailed.sites[2].origin) for url in trailed.trails[0])
    assert not web_of(SiteTreatment(3, pages_max=2), mix=Mix(maze=1.0, no_robots=0.0)).sites[SITES - 1 - 3].maze


def test_a_job_that_keeps_fingerprints_counts_no_urls_of_a_site() -> None:
    plan = Plan(1, 2, (), treatments=(SiteTreatment(0, pages_max=2), SiteTreatment(1, off=True)))
    assert plan is plan.kept_by("exact")
    assert (SiteTreatment(1, off=True),) == plan.kept_by("bloom").treatments


def test_a_treatment_is_for_a_site_from_which_no_other_hangs() -> None:
    for sites in (4, 12, 40):
        web = SyntheticWeb(1, sites=sites, pages=400, seeds=3)
        for number in range(20):
            [at] = [at for at, one in enumerate(by_number([SiteTreatment(number)], sites, 3)) if one.site == number]
            assert at >= 3
            assert not web.sites[at].exits
    assert [USUAL_TREATMENT] * 3 == by_number([SiteTreatment(0, off=True)], 3, 3)


def test_the_general_rule_comes_first_once_and_is_for_all_other_sites() -> None:
    treatments = by_number([SiteTreatment(EVERY, header="all"), SiteTreatment(0, is_starred=True, off=True)], 4, 1)
    rules = site_rules(treatments, ["a.test", "b.test", "c.test", "d.test"])
    assert [("*",), ("*.d.test",)] == [rule.match for rule in rules]
    assert ["X-Rule: all"] == [header for rule in rules for header in rule.headers]
    assert "" == contact(rules)


def test_a_correct_crawl_leaves_out_sites_that_are_off_and_ignores_a_robots_that_forbids() -> None:
    usual = web_of(mix=Mix(no_robots=1.0, closed=0.0, dead_robots=0.0))
    web = web_of(
        SiteTreatment(3, off=True),
        SiteTreatment(2, ignores_robots=True),
        mix=Mix(no_robots=1.0, closed=0.0, dead_robots=0.0),
    )
    off, ignored = web.sites[SITES - 1 - 3], web.sites[SITES - 1 - 2]
    assert b"Disallow: /\n" in web.answer(ignored.host, "/robots.txt").body
    assert {url for url in usual.truth() if not url.startswith(off.origin)} == set(web.truth())
    assert {f"{off.origin}/"} == web.disallowed()
    assert not {f"{off.origin}/robots.txt", f"{ignored.origin}/robots.txt"} & web.robots().keys()
    assert "https://simulator.test/" == contact(site_rules([SiteTreatment(0, ignores_robots=True)], ["a.test"]))


def test_a_correct_crawl_keeps_the_delay_and_the_retries_of_each_site() -> None:
    mix = Mix(crawl_delay=1.0, crawl_delay_s=3.0, no_robots=0.0, flaky_robots=0.0)
    treatments = [SiteTreatment(0, delay_s=0.5), SiteTreatment(1, delay_s=9.0), SiteTreatment(2, retries=0)]
    ignoring = SiteTreatment(3, ignores_robots=True)
    web = web_of(*treatments, ignoring, mix=mix)
    delays = list(web.delays(1.0).values())
    assert [1.0, 3.0, 9.0, 3.0] == delays[2:]
    broken = {url: one for url, one in web.truth().items() if one.status == 500 and url.startswith(web.sites[3].origin)}
    assert broken
    assert {1} == {one.fetches_max for one in broken.values()}


@pytest.mark.parametrize(
    ("mutant", "treatment", "judge"),
    [
        ("off_sites_crawled", SiteTreatment(0, off=True), "off_sites_left_alone"),
        ("rule_headers_forgotten", SiteTreatment(0, header="x"), "headers_of_the_site"),
        ("rule_pages_ignored", SiteTreatment(0, pages_max=2), "pages_of_the_site"),
        ("rule_delay_ignored", SiteTreatment(0, delay_s=3.0), "polite"),
        ("ignored_robots_obeyed", SiteTreatment(0, ignores_robots=True), "nothing_lost"),
    ],
)
def test_a_broken_rule_is_found_in_a_small_world(
    mutant: str, treatment: SiteTreatment, judge: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = Plan(1, 2, (), delay_s=0.2, treatments=(treatment,))
    monkeypatch.setattr("sim.target_worlds.draw", lambda seed, peers: plan)
    catch = hunt(Hunt(mutant, range(1, 2), 2, Size(pages=30, sites=4)))
    assert judge in catch.judges
