"""The sample web is the same for everybody, an independent crawl finds its truth, and its judge is just."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import aiohttp
import pytest
import pytest_asyncio
from yarl import URL

from scripts import truth
from sim.judge import Access, Expected, Verdict, judge
from sim.sample_pages import SITES, SamplePages
from sim.sample_web import SampleWeb

ORIGINS = tuple(f"http://127.0.0.{number + 2}:1" for number in range(len(SITES)))
CLEAN = Verdict(missing=(), extra=(), duplicates=(), hurried=(), disobedient=())


@pytest_asyncio.fixture
async def sample() -> AsyncIterator[SampleWeb]:
    async with SampleWeb() as sample:
        yield sample


def everything(seed: int) -> list[tuple[int, str, bytes]]:
    pages = SamplePages(seed, ORIGINS, "http://127.0.0.99:1")
    found = []
    for site in range(len(SITES)):
        for path in pages.paths(site):
            resource = pages.resource(site, path)
            assert resource is not None
            found.append((site, path, resource.answers[-1].body))
    return found


def test_one_seed_gives_one_web_and_another_seed_another() -> None:
    assert everything(1) == everything(1)
    assert everything(1) != everything(2)


@pytest.mark.parametrize(
    "path", ["/nothing", "/topic-1/page-9.html", "/topic-1/page-701.html", "/topic-01/page-1.html"]
)
def test_paths_outside_the_generator_are_nothing(path: str) -> None:
    assert SamplePages(1, ORIGINS, "http://127.0.0.99:1").resource(0, path) is None


async def test_an_independent_crawl_finds_exactly_the_truth(sample: SampleWeb) -> None:
    disallowed = sample.disallowed()

    found = await asyncio.to_thread(truth.crawl, sample.seeds, lambda url: url not in disallowed)

    expected = {url: end.status for url, end in sample.truth().items() if not url.endswith("/robots.txt")}
    assert found == expected
    assert len(found) > 250


async def test_a_crawl_by_the_truth_is_judged_clean(sample: SampleWeb) -> None:
    async with aiohttp.ClientSession() as session:
        for origin in sample.origins:
            async with session.get(f"{origin}/robots.txt") as response:
                await response.read()
        for url, end in sample.truth().items():
            for _ in range(end.fetches_min if not url.endswith("/robots.txt") else 0):
                async with session.get(URL(url, encoded=True), allow_redirects=False) as response:
                    await response.read()

    assert replace(sample.judge(delay_s=0), hurried=()) == CLEAN


async def test_dead_ends_are_a_refusing_seed_and_a_robots_txt_broken_at_first() -> None:
    async with SampleWeb(dead_ends=True) as sample, aiohttp.ClientSession() as session:
        assert sample.seeds[-1] == sample.dead_seed
        with pytest.raises(aiohttp.ClientConnectorError):
            await session.get(sample.seeds[-1])

        robots = f"{sample.origins[3]}/robots.txt"
        statuses = []
        for _ in range(3):
            async with session.get(robots) as response:
                statuses.append(response.status)
        assert statuses == [503, 200, 200]
        assert sample.truth()[robots] == Expected(200, 2, 2)


A = "http://a"
B = "http://b"
ONCE = Expected(200, 1, 1)


def access(time: float, url: str, status: int = 200) -> Access:
    site, _, path = url.partition(".")
    return Access(time, site, f"/{path}", status, "agent")


TRUTH = {
    f"{A}/robots.txt": ONCE,
    f"{A}/page": ONCE,
    f"{A}/busy": Expected(200, 2, 2),
    f"{A}/broken": Expected(500, 1, 4),
}
GOOD = [
    access(0, f"{A}.robots.txt"),
    access(1, f"{A}.page"),
    access(2, f"{A}.busy", 503),
    access(3, f"{A}.broken", 500),
    access(4, f"{A}.busy"),
    access(5, f"{A}.broken", 500),
]


@pytest.mark.parametrize(
    ("log", "verdict"),
    [
        (GOOD, CLEAN),
        (GOOD[:1] + GOOD[2:], replace(CLEAN, missing=(f"{A}/page",))),
        (GOOD[:4] + GOOD[5:], replace(CLEAN, missing=(f"{A}/busy ended with 503, not 200",))),
        ([*GOOD, access(6, f"{A}.page")], replace(CLEAN, duplicates=(f"{A}/page 2 times",))),
        ([*GOOD, access(6, f"{A}.robots.txt")], replace(CLEAN, duplicates=(f"{A}/robots.txt 2 times",))),
        ([*GOOD, access(6, f"{A}.other", 404)], replace(CLEAN, extra=(f"{A}/other",))),
        ([*GOOD, access(6, f"{A}.private")], replace(CLEAN, disobedient=(f"{A}/private",))),
        (
            [GOOD[1]._replace(time=-1), *GOOD[:1], *GOOD[2:]],
            replace(CLEAN, disobedient=(f"{A}/page came before robots.txt",)),
        ),
        (
            [*GOOD, access(6, f"{B}.page")],
            replace(CLEAN, extra=(f"{B}/page",), disobedient=(f"{B}/page came before robots.txt",)),
        ),
        (
            [*GOOD[:-1], GOOD[-1]._replace(time=4.5)],
            replace(CLEAN, hurried=(f"{A}/broken came 0.500 s early",)),
        ),
    ],
)
def test_the_judge_finds_what_was_wrong_and_only_that(log: list[Access], verdict: Verdict) -> None:
    assert judge(log, TRUTH, disallowed={f"{A}/private"}, delays={A: 1}) == verdict


def test_a_site_asked_a_little_too_fast_all_the_time_is_found_out() -> None:
    """Each gap is within the slack and the sum is not. Sites without a delay have no least gap."""

    def log(gap_s: float) -> list[Access]:
        return [access(number * gap_s, f"{site}.{number}") for number in range(20) for site in (A, B)]

    assert judge(log(1.0), {}, delays={A: 1}).hurried == ()
    assert len(judge(log(0.99), {}, delays={A: 1}).hurried) == 14


def test_one_late_reading_of_the_clock_is_forgiven_up_to_the_slack() -> None:
    times = {"on time": 2.0, "within the slack": 2.04, "beyond": 2.06}
    found = {
        name: judge([access(1, f"{A}.1"), access(late, f"{A}.2"), access(3, f"{A}.3")], {}, delays={A: 1}).hurried
        for name, late in times.items()
    }
    assert {name: len(hurried) for name, hurried in found.items()} == {
        "on time": 0,
        "within the slack": 0,
        "beyond": 1,
    }
