"""Proxies of the simulated web: whole crawls go through those that are served, and requests to sites tell by which."""

import pytest
from msgspec.structs import replace

from kadcrawl.crawl.proxies.fetcher import ThroughProxies
from sim.plan import Event, Kind, Plan
from sim.trial import Size, proxy_addresses, run, run_scene, scene_of
from sim.web_server import HEALTH_HOST, Head, WebServer, relayed_head
from tests.sim.test_web_server import HandMade

SMALL = Size(pages=40, sites=5)
PROXIED = Plan(5, 4, (), delay_s=0.5, proxies=2, dead_proxies=2)


def test_all_requests_of_a_crawl_come_through_the_proxies_that_are_served() -> None:
    outcome, facts = run_scene(PROXIED, scene_of(PROXIED, SMALL))
    assert {} == outcome.violations
    assert set(proxy_addresses(2)) == {fetch.via for fetch in facts.fetches}
    assert outcome.fetches >= outcome.urls
    assert all(fetch.machine >= 0 for fetch in facts.fetches), "a proxy tells who asks"


def test_owners_that_die_and_machines_without_a_network_lose_no_page_of_proxies() -> None:
    events = (
        Event(3.0, Kind.NO_WEB, (0, 1), for_s=6.0, amount=0.0),
        Event(5.0, Kind.KILL, (2,)),
        Event(8.0, Kind.RESTART, (2,), disk="same"),
    )
    plan = Plan(6, 5, events, delay_s=0.5, proxies=2, dead_proxies=1, balance="level", block_urls=1, update_s=1.0)
    assert {} == run(plan, SMALL).violations


@pytest.mark.parametrize("name", [None, "dead_proxies_used_on"])
def test_proxies_that_are_down_are_left_alone_and_the_crawl_ends(name: str | None) -> None:
    events = (Event(2.0, Kind.PROXY_DOWN, (), 14.0, 0), Event(3.0, Kind.PROXY_DOWN, (), 14.0, 1))
    outcome, facts = run_scene(plan := replace(PROXIED, events=events), scene_of(plan, SMALL), mutant=name)
    assert set(proxy_addresses(2)) == {one.proxy for one in facts.turned_away}
    assert (name is not None) == ("dead_proxies_left_alone" in outcome.violations)
    assert (name is None) == outcome.clean


def test_a_proxy_with_a_fault_answers_for_all_pages_and_the_web_hears_of_none() -> None:
    server = WebServer(HandMade())
    server.set_faults({"198.18.0.9": 407})
    page = Head("a.test", "/x", keep=True, via="198.18.0.9")
    assert 407 == server.take(1.0, page, "10.0.0.1").status
    assert 407 == server.take(2.0, page._replace(host=HEALTH_HOST), "10.0.0.1").status
    assert 407 != server.take(3.0, page._replace(via="198.18.0.8"), "10.0.0.1").status
    assert [(1.0, "10.0.0.1", "198.18.0.9")] == server.turned_away
    assert ["198.18.0.8"] == [one.via for one in server.log]
    server.set_faults({})
    assert 407 != server.take(4.0, page, "10.0.0.1").status


def test_a_request_that_passes_the_proxies_over_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    assert ["through_proxies"] == list(run(PROXIED, SMALL, mutant="proxies_passed_over").violations)
    assert "fetch" in vars(ThroughProxies)


@pytest.mark.parametrize(
    ("sent", "relayed"),
    [
        (b"GET http://a.test/x?y=1 HTTP/1.1\r\nHost: a.test", b"GET /x?y=1 HTTP/1.1\r\nHost: a.test"),
        (b"POST http://a.test/login HTTP/1.0", b"POST /login HTTP/1.0"),
        (b"GET /x HTTP/1.1\r\nHost: a.test", b""),
        (b"GET https://a.test/x HTTP/1.1", b""),
        (b"GET /x HTTP/1.1\r\nX: GET http://a.test/x HTTP/1.1", b""),
        (b"CONNECT a.test:443 HTTP/1.1", b""),
        (b"", b""),
    ],
)
def test_a_proxy_takes_whole_urls_and_nothing_else(sent: bytes, relayed: bytes) -> None:
    assert relayed == relayed_head(sent)


def test_a_proxy_answers_for_the_health_check_page_which_no_log_has() -> None:
    server = WebServer(HandMade())
    assert 200 == server.take(0.0, Head(HEALTH_HOST, "/", keep=True, via="198.18.0.9"), "10.0.0.1").status
    assert [] == server.log
    server.take(1.0, Head("a.test", "/x", keep=True, via="198.18.0.9"), "10.0.0.1")
    server.take(2.0, Head("a.test", "/x", keep=True), "10.0.0.1")
    assert [("10.0.0.1", "198.18.0.9"), ("10.0.0.1", "")] == [(one.peer, one.via) for one in server.log]
