"""One crawl of the benchmark: its cost from outside, and what it covered by the server's log."""

import re
import resource
import shutil
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from scripts import truth
from scripts.bench.crawlers import Crawler
from scripts.bench.served import PAGE_PATTERN, REPOSITORY, Place, served
from scripts.measure import Cost, cost_of
from scripts.sites import StoredSite

ONE_PAGE: Final = "<!doctype html><title>A page</title><p>A page without links."

RUN_MOST_S: Final = 120.0
"""Seconds after which a run is killed. The slowest takes half of this on two busy cores."""


class BenchError(Exception):
    """The benchmark has no result. The text says why in one sentence."""


class TimedCrawl(NamedTuple):
    """One crawl."""

    cost: Cost
    pages: int
    """Distinct pages of the truth that were fetched, with status 200."""
    crawl_s: float
    """Seconds from the first request to the last."""
    server_cpu_s: float

    @property
    def pages_per_s(self) -> float:
        return self.pages / self.crawl_s

    @property
    def cpu_s_per_1000(self) -> float:
        return self.cost.cpu_s * 1000 / self.pages


def true_pages(documentation: Sequence[StoredSite], directory: Path) -> dict[Place, int]:
    """Find every wanted URL and its status, the sites side by side."""
    with served(documentation, directory) as server, ProcessPoolExecutor() as pool:
        crawl = partial(truth.crawl, wanted=_is_page)
        found = pool.map(crawl, ([seed] for seed in server.seeds))
        return {(number, _path(url)): status for number, one in enumerate(found) for url, status in one.items()}


def timed_crawl(
    crawler: Crawler, documentation: Sequence[StoredSite], expected: dict[Place, int], directory: Path
) -> TimedCrawl:
    """Crawl the sites once. Raises BenchError."""
    data = directory / "run"
    shutil.rmtree(data, ignore_errors=True)
    data.mkdir(parents=True)
    output = directory / f"{re.sub('[^a-z0-9]+', '-', crawler.name.lower())}.log"
    with served(documentation, directory) as server:
        cost = cost_of(crawler.command(server.seeds, data), output, REPOSITORY, crawler.environment, RUN_MOST_S)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if cost.exit_code != 0 and crawler.covers_all:
        raise BenchError(f"{crawler.name} ended with exit code {cost.exit_code}; its output is in {output}")
    entries = server.entries()
    fetched = server.answered(entries)
    missing = len(expected.keys() - fetched.keys())
    if missing and crawler.covers_all:
        raise BenchError(f"{crawler.name} left out {missing} of {len(expected)} URLs; its output is in {output}")
    pages = sum(status == 200 and place in fetched for place, status in expected.items())
    if not pages:
        raise BenchError(f"{crawler.name} fetched no page; its output is in {output}")
    return TimedCrawl(
        cost=cost,
        pages=pages,
        crawl_s=max(entries[-1]["time"] - entries[0]["time"], 1e-6),
        # The server is the one child that ended in between.
        server_cpu_s=after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
    )


def start_cpu_s(crawler: Crawler, directory: Path) -> float:
    """Return the CPU seconds of a crawl of one page: start, end, and nearly nothing between them. Raises BenchError."""
    site = directory / "one-page"
    site.mkdir(parents=True, exist_ok=True)
    (site / "index.html").write_text(ONE_PAGE)
    return timed_crawl(crawler, [StoredSite("one page", site, "")], {(0, "/"): 200}, directory).cost.cpu_s


def _is_page(url: str) -> bool:
    return re.match(PAGE_PATTERN, url) is not None


def _path(url: str) -> str:
    return url[url.index("/", len("http://")) :]
