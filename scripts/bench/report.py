"""The figures of the benchmark and its report. No I/O."""

import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from scripts.bench.crawlers import BARE_LOOP, IN_PYTHON, ONE_PEER, SCRAPY, TWO_PEERS
from scripts.bench.timed import TimedCrawl

AIMS: Final = {ONE_PEER: 0.9, TWO_PEERS: 1.1, ONE_PEER + IN_PYTHON: 1.4, TWO_PEERS + IN_PYTHON: 1.75}
"""The most CPU of a page, as a multiple of the bare loop's, without the start of the program."""


def figures_of(
    runs: Mapping[str, Sequence[TimedCrawl]], starts: Mapping[str, Sequence[float]], urls: int, pages: int
) -> dict[str, Any]:
    """Return the medians of all runs. Ratios are of medians, and None without the other crawler."""
    crawlers = {name: _medians(several, statistics.median(starts[name]), pages) for name, several in runs.items()}
    for name in crawlers:
        cost = crawlers[name]
        cost["cpu_to_scrapy"] = _ratio(cost, crawlers.get(SCRAPY), "cpu_s_per_1000")
        cost["rate_to_scrapy"] = _ratio(cost, crawlers.get(SCRAPY), "pages_per_s")
        cost["cpu_to_bare_loop"] = _ratio(cost, crawlers.get(BARE_LOOP), "cpu_s_per_1000")
        cost["steady_to_bare_loop"] = _ratio(cost, crawlers.get(BARE_LOOP), "steady_s_per_1000")
    servers = [run.server_cpu_s * 1000 / run.pages for several in runs.values() for run in several]
    rounded: dict[str, dict[str, Any]] = {
        name: {key: figure if figure is None else round(figure, 4) for key, figure in cost.items()}
        for name, cost in crawlers.items()
    }
    return {
        "pages": pages,
        "urls": urls,
        "runs": max(len(several) for several in runs.values()),
        "crawlers": rounded,
        "aims": {
            name: {"most": most, "reached": rounded[name]["steady_to_bare_loop"] <= most}
            for name, most in AIMS.items()
            if name in rounded and rounded[name]["steady_to_bare_loop"] is not None
        },
        "server_cpu_s_per_1000": round(statistics.median(servers), 4),
    }


def _medians(several: Sequence[TimedCrawl], start_s: float, pages: int) -> dict[str, Any]:
    cpu = [run.cpu_s_per_1000 for run in several]
    found = statistics.median(run.pages for run in several)
    return {
        "runs": len(several),
        "pages_per_s": statistics.median(run.pages_per_s for run in several),
        "wall_s": statistics.median(run.cost.wall_s for run in several),
        "cpu_s_per_1000": statistics.median(cpu),
        "cpu_s_per_1000_least": min(cpu),
        "cpu_s_per_1000_most": max(cpu),
        "start_cpu_s": start_s,
        "steady_s_per_1000": statistics.median(max(run.cost.cpu_s - start_s, 0) * 1000 / run.pages for run in several),
        "peak_mb": statistics.median(run.cost.peak_bytes for run in several) / 1e6,
        "covered": found / pages,
    }


def _ratio(cost: Mapping[str, Any], other: Mapping[str, Any] | None, key: str) -> float | None:
    return cost[key] / other[key] if other and other[key] else None


def report(figures: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of the report."""
    yield "# Benchmark"
    yield ""
    yield f"{', '.join(figures['sites'])}: {figures['pages']} pages, {figures['urls']} URLs."
    yield f"Medians of {figures['runs']} runs, each crawler in turn, delay 0. CPU and memory are those of all of a"
    yield "crawler's processes, from start to exit. The start is that of a crawl of one page."
    yield ""
    yield (
        "| | CPU s per 1,000 pages | least to most | without the start | to the bare loop | to it, without the start "
        "| to Scrapy | pages/s | peak MB | pages found |"
    )
    yield "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|"
    for name, cost in figures["crawlers"].items():
        yield (
            f"| {name} | {cost['cpu_s_per_1000']:.3f} "
            f"| {cost['cpu_s_per_1000_least']:.3f} to {cost['cpu_s_per_1000_most']:.3f} "
            f"| {cost['steady_s_per_1000']:.3f} | {_times(cost['cpu_to_bare_loop'])} "
            f"| {_times(cost['steady_to_bare_loop'])} | {_times(cost['cpu_to_scrapy'])} "
            f"| {cost['pages_per_s']:,.0f} | {cost['peak_mb']:.0f} | {cost['covered']:.0%} |"
        )
    for name, why in figures["absent"].items():
        yield f"| {name} | not available: {why} | | | | | | | | |"
    yield ""
    for name, aim in figures["aims"].items():
        verdict = "reached" if aim["reached"] else "missed"
        yield f"At most {aim['most']:g} times the bare loop, without the start: {name}: {verdict}."
    yield ""
    yield "The bare loop (aiohttp, uvloop, selectolax, a set) only fetches, finds links and remembers them. wget2,"
    yield "spider-rs and both Scrapys do no more; kadcrawl has robots.txt, journal, WARC and page log on."
    yield (
        f"The server, which shares the machine's cores, took {figures['server_cpu_s_per_1000']:.2f} CPU s per 1,000 "
        "pages (not counted)."
    )


def _times(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.2f}"
