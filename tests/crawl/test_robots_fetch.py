"""The way to a robots.txt that leads to other sites: these keep their clocks."""

from collections import Counter, defaultdict
from functools import partial
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kadcrawl.crawl.fetch.poison_pages import PoisonPages
from kadcrawl.crawl.robots.cache import REREAD_BYTES_S, RobotsCache
from kadcrawl.crawl.robots.rules import Rules
from kadcrawl.crawl.robots_fetch import TURNS_MAX, RobotsSearch
from kadcrawl.settings.job import Job
from kadcrawl.settings.limits import Limits
from kadcrawl.settings.site_settings import SiteSettings
from kadcrawl.store.back_off import BackOff
from kadcrawl.store.frontier_entry import FrontierEntry
from tests.support.swarm.poison_pages import dies_reading

STEP_S = 0.25
"""The step of the clock in seconds, which a binary fraction can express exactly."""


class Clocks:
    """Stand in for the frontier of a search: the time, and when each site may be asked."""

    def __init__(self) -> None:
        self.time = 0.0
        self.at: dict[str, float] = defaultdict(float)
        self.blocked: set[str] = set()
        self.block, self.unblock = self.blocked.add, lambda name, now: self.blocked.discard(name)
        self.is_blocked = self.blocked.__contains__

    def now(self) -> float:
        return self.time

    def of(self, at: float) -> float:
        return at

    def is_busy(self, name: str) -> bool:
        return False

    def is_active(self, name: str) -> bool:
        return True

    def wait_s(self, name: str, now: float) -> float:
        return max(0.0, self.at[name] - now)

    def hold(self, name: str, until: float, now: float) -> None:
        self.at[name] = max(self.at[name], until)

    def set_delay(self, name: str, delay_s: float, now: float) -> None:
        self.hold(name, now + delay_s, now)


def make_search(clocks: Clocks, cache: RobotsCache, deadly: PoisonPages | None = None) -> RobotsSearch:
    return RobotsSearch(
        limits=Limits(),
        site_settings=SiteSettings(Job(delay_s=1.0)),
        clock=cast(Any, clocks),
        frontier=cast(Any, clocks),
        robots=cache,
        outputs=cast(Any, SimpleNamespace(keep=lambda fetched: None)),
        activity=cast(Any, SimpleNamespace(move=lambda: None)),
        poison_pages=deadly or PoisonPages(None),
    )


async def test_a_site_to_which_many_robots_txt_lead_is_asked_at_its_pace() -> None:
    """The searches look first, however long they have waited.

    Neither the searches nor the URLs of the site wait for ever.
    """
    clocks, asked, own = Clocks(), list[float](), list[float]()
    store = SimpleNamespace(sites=SimpleNamespace(robots=lambda origin: None, set_robots=lambda *row: None))
    cache = RobotsCache(cast(Any, store), Limits())

    async def request(entry: FrontierEntry, url: str) -> Any:
        clocks.hold(entry.site, clocks.time + 1.0, clocks.time)
        is_there = url.startswith("http://led-to.test/")
        if is_there:
            asked.append(clocks.time)
        location = None if is_there else "http://led-to.test/rules"
        return SimpleNamespace(
            error=None, status=200 if is_there else 302, location=location, url=url, content=b"x",
            first_byte_at=clocks.time, passing=False, tried_by=1, refuses=False,
        )  # fmt: skip

    search = make_search(clocks, cache)
    count = 2 * TURNS_MAX
    waiting = [cast(FrontierEntry, SimpleNamespace(url=f"http://{n}.test/", site=f"{n}.test")) for n in range(count)]
    while clocks.time < 6 * TURNS_MAX:
        for entry in waiting:
            if cache.look_up(entry.url[:-1], clocks.time) is None and clocks.wait_s(entry.site, clocks.time) == 0:
                await search.advance(entry, partial(request, entry))
        if clocks.wait_s("led-to.test", clocks.time) == 0:
            own.append(clocks.time)
            clocks.hold("led-to.test", clocks.time + 1.0, clocks.time)
        clocks.time += STEP_S
    assert count == len(asked)
    assert all(any(before < at < after for at in own) for before, after in pairwise(asked))
    assert min(after - before for before, after in pairwise(sorted(own + asked))) >= 1.0


async def test_a_site_that_refuses_its_robots_txt_to_another_site_is_left_alone_as_long() -> None:
    clocks = Clocks()
    clocks.back_off = lambda name: BackOff(1, 60.0, 429, 60.0, 1)  # type: ignore[attr-defined]
    store = SimpleNamespace(sites=SimpleNamespace(robots=lambda origin: None, set_robots=lambda *row: None))
    search = make_search(clocks, RobotsCache(cast(Any, store), Limits()))
    entry = cast(FrontierEntry, SimpleNamespace(url="http://a.test/", site="a.test"))

    async def request(entry: FrontierEntry, url: str) -> Any:
        is_there = url.startswith("http://led-to.test/")
        location = None if is_there else "http://led-to.test/rules"
        return SimpleNamespace(
            error=None, status=429 if is_there else 302, location=location, url=url, content=b"x",
            first_byte_at=clocks.time, passing=is_there, tried_by=1, refuses=is_there,
        )  # fmt: skip

    for clocks.time in (0.0, 1.0):
        await search.advance(entry, partial(request, entry))
    assert 60.0 == clocks.at["led-to.test"]


async def test_evicted_large_rules_are_reread_at_a_bounded_rate_not_refetched() -> None:
    """The rate holds however many sites have large rules, and each site makes progress."""
    clocks, count, reads = Clocks(), 10, list[str]()
    text = Rules(tuple((False, f"/{n}") for n in range(5_000))).to_bytes()
    store = SimpleNamespace(sites=SimpleNamespace(robots=lambda origin: (text, 0.0), set_robots=lambda *row: None))

    class Counting(RobotsCache):
        def read_again(self, origin: str, rules: Rules, fetched_at: float) -> None:
            reads.append(origin)
            super().read_again(origin, rules, fetched_at)

    cache = Counting(cast(Any, store), Limits(robots_cached_bytes_max=2_500_000))
    unexpected = cast(Any, None)
    search = make_search(clocks, cache)
    waiting = [cast(FrontierEntry, SimpleNamespace(url=f"http://{n}.test/", site=f"{n}.test")) for n in range(count)]
    asked = Counter[str]()
    while clocks.time < 10:
        for entry in waiting:
            if clocks.wait_s(entry.site, clocks.time):
                continue
            if cache.look_up(entry.url[:-1], clocks.time) is None:
                await search.advance(entry, unexpected)
            if cache.look_up(entry.url[:-1], clocks.time) is not None:
                asked[entry.site] += 1
        clocks.time += STEP_S
    assert len(reads) * len(text) <= 10 * REREAD_BYTES_S + len(text)
    assert len(asked) == count
    assert not clocks.blocked


@pytest.mark.parametrize(
    ("status", "location", "clears"),
    [(200, None, True), (404, None, True), (503, None, False), (302, "http://led-to.test/rules", False)],
)
async def test_only_rules_that_last_clear_a_robots_txt_suspected_of_a_crash(
    status: int, location: str | None, clears: bool, tmp_path: Path
) -> None:
    """Else one could kill, fail, and kill again for ever."""
    store = SimpleNamespace(sites=SimpleNamespace(robots=lambda origin: None, set_robots=lambda *row: None))
    entry = cast(FrontierEntry, SimpleNamespace(url="http://a.test/", site="a.test"))
    asked = []

    async def request(entry: FrontierEntry, url: str) -> Any:
        asked.append(url)
        return SimpleNamespace(
            error=None, status=status, location=location, url=url, content=b"x", first_byte_at=0.0, passing=False,
            tried_by=1, refuses=False,
        )  # fmt: skip

    for _ in range(2):
        await dies_reading(tmp_path, "http://a.test/robots.txt")
        deadly, cache = PoisonPages(tmp_path), RobotsCache(cast(Any, store), Limits())
        await make_search(Clocks(), cache, deadly).advance(entry, partial(request, entry))
        deadly.close()
    assert (2 if clears else 1) == len(asked)
    assert clears or "robots_unreachable" == cache.look_up("http://a.test", 0.0)
