"""A user's job on simulated peers reports pages, losses and faults, and refuses impossible arguments."""

from typing import Any

import pytest

from kadcrawl import Job
from kadcrawl.settings.site_rules import SiteRule
from sim import (
    Fault,
    Freeze,
    Join,
    Kill,
    Leave,
    LossyNetwork,
    Partition,
    Restart,
    SyntheticResponse,
    random_faults,
    simulate,
)
from sim.user_web import Pages

ITEMS = 30
SHOP: dict[str, Any] = {"http://shop.test/": [f"/item/{number}" for number in range(ITEMS)]}
SHOP |= {f"http://shop.test/item/{number}": f"<h1>Item {number}</h1>" for number in range(ITEMS)}
TWO = [Kill(at_s=3.0, peer=2), Kill(at_s=3.0, peer=3)]


def test_a_job_survives_two_kills() -> None:
    result = simulate(Job(delay_s=0.5), peers=6, pages=SHOP, faults=TWO)
    assert (result.lost, result.verdicts) == ([], {})
    assert result.statuses == dict.fromkeys(SHOP, 200)
    assert {fetch.url for fetch in result.fetched} == {*SHOP}
    assert "31 pages" in str(result)


def test_the_same_arguments_give_the_same_crawl() -> None:
    first, second, other = (simulate(Job(), peers=4, seed=seed, pages=20) for seed in (3, 3, 4))
    assert first == second
    assert first.trace != other.trace


def test_what_a_swarm_loses_is_named() -> None:
    """All but one die at once, which is more than is promised."""
    faults: list[Fault] = [Kill(at_s=4.0, peer=number) for number in range(5)]
    results = [simulate(Job(delay_s=0.5), peers=6, seed=seed, pages=60, faults=faults) for seed in range(1, 6)]
    assert any(result.lost for result in results)
    assert all("nothing_lost" in result.verdicts for result in results if result.lost)


def test_everything_that_may_happen_happens() -> None:
    faults: list[Fault] = [
        LossyNetwork(at_s=2.0, for_s=5.0, loss=0.05, duplicates=0.1, delay_s=0.1),
        Join(at_s=3.0, peer=6),
        Freeze(at_s=4.0, peer=1, for_s=4.0),
        Leave(at_s=20.0, peer=2),
        Partition(at_s=22.0, peers=[3], for_s=5.0),
        Kill(at_s=40.0, peer=4),
        Restart(at_s=42.0, peer=4, disk="none"),
    ]
    result = simulate(Job(), peers=6, pages=SHOP, faults=faults)
    assert (result.lost, result.verdicts) == ([], {})
    assert result.virtual_s > 42


@pytest.mark.parametrize("seed", [1, 2])
def test_faults_may_be_drawn(seed: int) -> None:
    result = simulate(Job(), peers=6, seed=seed, faults=random_faults(seed, 6))
    assert (result.lost, result.verdicts) == ([], {})


def test_pages_are_answered_as_they_are_given() -> None:
    pages: Pages = {
        "http://a.test/": ["/moved", "/gone", "/bytes", "http://b.test/", "/secret", "/nowhere"],
        "http://a.test/moved": SyntheticResponse(301, (("Location", "/new"),)),
        "http://a.test/new": "<p>new",
        "http://a.test/gone": 410,
        "http://a.test/bytes": b"<a href=/bytes>",
        "http://a.test/robots.txt": "User-agent: *\nDisallow: /secret\n",
        "http://a.test/secret": "",
        "http://b.test/": "",
    }
    result = simulate(Job(delay_s=0.0, scope="any"), peers=2, pages=pages)
    assert result.statuses == {
        "http://a.test/": 200,
        "http://a.test/moved": 301,
        "http://a.test/new": 200,
        "http://a.test/gone": 410,
        "http://a.test/bytes": 200,
        "http://a.test/nowhere": 404,
        "http://b.test/": 200,
    }
    assert (result.lost, result.fetched_twice, result.verdicts) == ([], [], {})


def test_pages_may_be_a_function() -> None:
    def page(url: str) -> list[str] | None:
        depth = url.count("/") - 3
        return [f"{url}{way}/" for way in "lr"] if url.endswith("/") and depth < 4 else None

    result = simulate(Job(seeds=("http://tree.test/",), delay_s=0.0), peers=3, pages=page)
    assert sum(status == 200 for status in result.statuses.values()) == 15
    assert result.verdicts == {}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"faults": [Kill(at_s=1.0, peer=8)]}, "there is no peer 8"),
        ({"faults": [Join(at_s=1.0, peer=1)]}, "peer 1 is there already"),
        ({"faults": [Kill(at_s=-1.0, peer=1)]}, "no time before 0"),
        ({"faults": ["kill"]}, "is no fault"),
        ({"peers": 0}, "at least one peer"),
        ({"pages": {}}, "nothing to crawl"),
        ({"pages": {"https://a.test/": ""}}, "write http://a.test"),
        ({"pages": {"http://a.test:8080/": ""}}, "without a port"),
        ({"pages": {"a.test": ""}}, "has no scheme"),
        ({"pages": lambda url: None}, "has no first page"),
        ({"pages": {"http://a.test/": ""}, "job": Job(seeds=("http://b.test/",))}, "fetched nothing"),
        ({"job": Job(max_pages=3)}, "a job with max_pages is not simulated"),
        ({"job": Job(recrawl_after_s=60.0)}, "has no end"),
        ({"job": Job(twins="skip")}, "twins"),
        ({"job": Job(sites=(SiteRule(match=("*",), site_pages_max=9),))}, "site_pages_max in a rule"),
    ],
)
def test_what_makes_no_world_is_refused(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        simulate(**({"job": Job()} | arguments))


def test_a_web_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sim.reference.REQUESTS_MAX", 50)
    with pytest.raises(ValueError, match="give a web that ends"):
        simulate(Job(seeds=("http://a.test/0",), delay_s=0.0), pages=lambda url: [f"{url}1"])


def test_a_function_that_raises_is_heard() -> None:
    def page(url: str) -> str:
        raise KeyError(url)

    with pytest.raises(KeyError, match=r"a\.test"):
        simulate(Job(seeds=("http://a.test/0",)), pages=page)


def test_a_job_may_have_rules_for_single_sites() -> None:
    hosts = ("quick.test", "slow.test", "own.test", "left.test")
    pages: dict[str, Any] = {"http://home.test/": [f"http://{host}/" for host in hosts]}
    pages |= {f"http://{host}/": [f"/{number}" for number in range(6)] for host in hosts}
    pages |= {f"http://{host}/{number}": "<p>" for host in hosts for number in range(6)}
    pages["http://own.test/robots.txt"] = "User-agent: *\nDisallow: /\nCrawl-delay: 9\n"
    sites = (
        SiteRule(match=("quick.test",), delay_s=0.0, connections=2),
        SiteRule(match=("slow.test",), delay_s=3.0),
        SiteRule(match=("*.left.test",), off=True),
        SiteRule(match=("own.test",), robots="ignore"),
    )
    job = Job(scope="any", sites=sites, contact="https://example.org/")
    result = simulate(job, peers=4, pages=pages, faults=[Kill(at_s=5.0, peer=2)])
    assert (result.lost, result.verdicts) == ([], {})
    assert 1 + 3 * 7 == len(result.statuses)
    assert not any("left.test" in fetch.url for fetch in result.fetched)
