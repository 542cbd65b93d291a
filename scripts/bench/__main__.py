"""The benchmark: real sites crawled by kadcrawl with one peer and with two, and by Scrapy, in turn, on one machine.

Beside them runs a bare loop (`scripts.bare_loop`), the yardstick by which figures of two machines, or of a busy and an
idle one, compare. Each run has a server of its own (`scripts.static_server`), whose access log says what the crawler
covered and how fast; its CPU is not counted. A crawler's cost is that of all its processes from start to exit, so
start-up and end are in it. kadcrawl runs with robots.txt, journal, WARC and page log on; Scrapy fetches and follows
links. All are given the same pattern of URLs, HTML pages by their names. A run that leaves a page out fails the
benchmark. One more run of two peers is profiled.

``python -m scripts.bench`` or ``make bench`` prints the report and writes it to bench-data/report.md, and with --json
the figures to a file.
"""

import argparse
import json
import re
import resource
import shutil
import statistics
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from scripts import truth
from scripts.bench.served import PAGE_PATTERN, REPOSITORY, Place, served
from scripts.kadcrawl_run import crawl_command
from scripts.measure import Cost, cost_of
from scripts.profile_rooms import functions_of, rooms_of
from scripts.sites import MORE_PACKAGES, PACKAGES, SitesError, StoredSite, sites

SCRAPY_PYTHON: Final = REPOSITORY / ".venv-bench/bin/python"
PROFILE_VARIABLE: Final = "KADCRAWL_PROFILE"
"""Environment variable that makes every peer write a cProfile dump to the file it names, its PID appended."""
BARE_LOOP: Final = "bare loop"
FUNCTIONS_SHOWN: Final = 20


class TimedCrawl(NamedTuple):
    """One crawl."""

    cost: Cost
    pages: int
    """Distinct pages of the truth that were fetched, with status 200."""
    missing: int
    """URLs of the truth that were not fetched."""
    crawl_s: float
    """Seconds from the first request to the last."""
    server_cpu_s: float

    @property
    def pages_per_s(self) -> float:
        return self.pages / self.crawl_s

    @property
    def cpu_s_per_1000(self) -> float:
        return self.cost.cpu_s * 1000 / self.pages


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description="Crawl real sites with kadcrawl and with Scrapy, in turn.")
    parser.add_argument("--more", action="store_true", help="7,000 pages instead of 2,600")
    parser.add_argument("--repetitions", type=int, default=3, metavar="N", help="runs of each crawler, 3 by default")
    parser.add_argument("--data", type=Path, default=REPOSITORY / "bench-data", metavar="DIR")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures")
    options = parser.parse_args()
    if options.repetitions < 1:
        parser.error("--repetitions must be 1 or more")
    try:
        report, figures = bench(options.data, options.more, options.repetitions)
    except (SitesError, BenchError) as error:
        sys.exit(f"bench: {error}")
    (options.data / "report.md").write_text(report)
    if options.json is not None:
        options.json.write_text(json.dumps(figures, indent=1) + "\n")
    print(report)


class BenchError(Exception):
    """The benchmark has no result. The text says why in one sentence."""


def bench(directory: Path, more: bool, repetitions: int) -> tuple[str, dict[str, Any]]:
    """Run every crawler `repetitions` times, in turn.

    Returns the report and its figures. Raises SitesError, BenchError.
    """
    if not SCRAPY_PYTHON.exists():
        raise BenchError(f"there is no {SCRAPY_PYTHON} to run Scrapy with; make bench creates it")
    documentation = sites(PACKAGES + MORE_PACKAGES if more else PACKAGES)
    directory.mkdir(parents=True, exist_ok=True)
    _say("working out the truth")
    expected = _truth(documentation, directory)
    crawlers = ("kadcrawl, 1 peer", "Scrapy, lean", "kadcrawl, 2 peers", BARE_LOOP)
    runs: dict[str, list[TimedCrawl]] = {name: [] for name in crawlers}
    for repetition in range(repetitions):
        for name in crawlers:
            _say(f"{name}, run {repetition + 1} of {repetitions}")
            runs[name].append(_crawl(name, documentation, expected, directory))
    _say("profiling two peers")
    profiles = directory / "profiles"
    shutil.rmtree(profiles, ignore_errors=True)
    profiles.mkdir()
    _crawl("kadcrawl, 2 peers", documentation, expected, directory, {PROFILE_VARIABLE: str(profiles / "peer")})
    figures = _figures(documentation, expected, runs)
    dumps = sorted(profiles.iterdir())
    figures["rooms"] = (
        [{"name": share.name, "part": round(share.part, 4)} for share in rooms_of(dumps)] if dumps else []
    )
    return "\n".join([*_report(figures), *_profile(dumps)]) + "\n", figures


def _say(what: str) -> None:
    print(f"bench: {what}", file=sys.stderr, flush=True)


def _truth(documentation: Sequence[StoredSite], directory: Path) -> dict[Place, int]:
    """Find every wanted URL and its status, the sites side by side."""
    with served(documentation, directory) as server, ProcessPoolExecutor() as pool:
        crawl = partial(truth.crawl, wanted=_is_page)
        found = pool.map(crawl, ([seed] for seed in server.seeds))
        return {(number, _path(url)): status for number, one in enumerate(found) for url, status in one.items()}


def _is_page(url: str) -> bool:
    return re.match(PAGE_PATTERN, url) is not None


def _crawl(
    name: str,
    documentation: Sequence[StoredSite],
    expected: dict[Place, int],
    directory: Path,
    environment: dict[str, str] | None = None,
) -> TimedCrawl:
    data = directory / "run"
    shutil.rmtree(data, ignore_errors=True)
    data.mkdir()
    output = directory / f"{name.replace(', ', '-').replace(' ', '-')}.log"
    with served(documentation, directory) as server:
        cost = cost_of(_command(name, server.seeds, data), output, REPOSITORY, environment)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if cost.exit_code != 0:
        raise BenchError(f"{name} ended with exit code {cost.exit_code}; its output is in {output}")
    entries = server.entries()
    fetched = server.answered(entries)
    run = TimedCrawl(
        cost=cost,
        pages=sum(status == 200 and place in fetched for place, status in expected.items()),
        missing=len(expected.keys() - fetched.keys()),
        crawl_s=entries[-1]["time"] - entries[0]["time"],
        # The server is the one child that ended in between.
        server_cpu_s=after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
    )
    if run.missing:
        raise BenchError(f"{name} left out {run.missing} of {len(expected)} URLs; its output is in {output}")
    return run


def _command(name: str, seeds: Sequence[str], data: Path) -> list[str]:
    if name.startswith("Scrapy"):
        return [str(SCRAPY_PYTHON), str(REPOSITORY / "scripts/p_scrapy.py"), *seeds]
    if name == BARE_LOOP:
        return [sys.executable, "-m", "scripts.bare_loop", "--wanted", PAGE_PATTERN, *seeds]
    return crawl_command(
        seeds,
        peers=int(name.split()[1]),
        delay_s=0,
        data=data / "peers",
        summary=data / "summary.json",
        include=[PAGE_PATTERN],
    )


def _path(url: str) -> str:
    return url[url.index("/", len("http://")) :]


def _figures(
    documentation: Sequence[StoredSite], expected: dict[Place, int], runs: dict[str, list[TimedCrawl]]
) -> dict[str, Any]:
    """Return the medians of all runs. Ratios are of medians."""
    crawlers: dict[str, dict[str, float]] = {}
    for name, several in runs.items():
        cpu = [run.cpu_s_per_1000 for run in several]
        crawlers[name] = {
            "pages_per_s": statistics.median(run.pages_per_s for run in several),
            "wall_s": statistics.median(run.cost.wall_s for run in several),
            "cpu_s_per_1000": statistics.median(cpu),
            "cpu_s_per_1000_least": min(cpu),
            "cpu_s_per_1000_most": max(cpu),
            "peak_mb": statistics.median(run.cost.peak_bytes for run in several) / 1e6,
        }
    scrapy, bare = next(cost for name, cost in crawlers.items() if name.startswith("Scrapy")), crawlers[BARE_LOOP]
    for cost in crawlers.values():
        cost["cpu_to_scrapy"] = cost["cpu_s_per_1000"] / scrapy["cpu_s_per_1000"]
        cost["cpu_to_bare_loop"] = cost["cpu_s_per_1000"] / bare["cpu_s_per_1000"]
        cost["rate_to_scrapy"] = cost["pages_per_s"] / scrapy["pages_per_s"]
    return {
        "sites": [site.name for site in documentation],
        "pages": sum(status == 200 for status in expected.values()),
        "urls": len(expected),
        "runs": len(next(iter(runs.values()))),
        "crawlers": {name: {key: round(figure, 4) for key, figure in cost.items()} for name, cost in crawlers.items()},
        "server_cpu_s_per_1000": round(
            statistics.median(run.server_cpu_s * 1000 / run.pages for several in runs.values() for run in several), 4
        ),
    }


def _report(figures: dict[str, Any]) -> Iterator[str]:
    yield "# Benchmark"
    yield ""
    yield f"{', '.join(figures['sites'])}: {figures['pages']} pages, {figures['urls']} URLs."
    yield f"Medians of {figures['runs']} runs, each crawler in turn, delay 0; every run covered"
    yield "every page. CPU and memory are those of all of a crawler's processes, from start to exit."
    yield ""
    yield (
        "| | pages/s | seconds in all | CPU s per 1,000 pages | least to most | peak MB "
        "| to Scrapy, CPU | pages/s | to the bare loop, CPU |"
    )
    yield "|---|---:|---:|---:|---:|---:|---:|---:|---:|"
    for name, cost in figures["crawlers"].items():
        yield (
            f"| {name} | {cost['pages_per_s']:,.0f} | {cost['wall_s']:.1f} | {cost['cpu_s_per_1000']:.2f} "
            f"| {cost['cpu_s_per_1000_least']:.2f} to {cost['cpu_s_per_1000_most']:.2f} | {cost['peak_mb']:.0f} "
            f"| {cost['cpu_to_scrapy']:.2f} | {cost['rate_to_scrapy']:.2f} | {cost['cpu_to_bare_loop']:.2f} |"
        )
    yield ""
    yield "The bare loop (aiohttp, uvloop, selectolax, a set) only fetches, finds links and remembers them: what that"
    yield "takes on this machine just now. Scrapy does no more; kadcrawl has robots.txt, journal, WARC and page log on."
    yield ""
    yield (
        f"The server, which shares the machine's cores, took {figures['server_cpu_s_per_1000']:.2f} CPU s per 1,000 "
        "pages (not counted)."
    )


def _profile(dumps: Sequence[Path]) -> Iterator[str]:
    yield ""
    yield "## Where the CPU of two peers goes"
    yield ""
    if not dumps:
        yield "The peers wrote no profile."
        return
    yield "By cProfile in CPU time, which makes Python dearer than it is and C not: the order counts, not the seconds."
    yield "Start-up is not in it, nor are the threads that sync files."
    yield ""
    yield "| room | part | seconds |"
    yield "|---|---:|---:|"
    yield from (f"| {share.name} | {share.part:.1%} | {share.seconds:.2f} |" for share in rooms_of(dumps))
    yield ""
    yield "| function | part | seconds |"
    yield "|---|---:|---:|"
    for share in functions_of(dumps, FUNCTIONS_SHOWN):
        yield f"| `{share.name.replace('|', '/')}` | {share.part:.1%} | {share.seconds:.2f} |"


if __name__ == "__main__":
    main()
