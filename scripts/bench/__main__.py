"""The benchmark: real sites crawled by kadcrawl and by other crawlers, in turn, on one machine.

Beside them runs a bare loop (`scripts.bare_loop`), the yardstick by which figures of two machines, or of a busy and an
idle one, compare. Each run has a server of its own (`scripts.static_server`), whose access log says what the crawler
covered and how fast; its CPU is not counted. A crawler's cost is that of all its processes from start to exit. A crawl
of one page tells the part of start and end. kadcrawl runs with robots.txt, journal, WARC and page log on, as it is
installed and with ``KADCRAWL_PURE=1``; the others fetch and follow links. All are given the same pattern of URLs, HTML
pages by their names. The report names the crawlers that cannot be had here.

``python -m scripts.bench`` or ``make bench`` prints the report and writes it to bench-data/report.md, and with --json
the figures to a file.

Tests: tests/scripts/test_bench.py
"""

import argparse
import compileall
import json
import sys
from pathlib import Path
from typing import Any

from scripts.bench.crawlers import NAMES, ONCE, Crawler, CrawlerMissingError, crawler
from scripts.bench.report import figures_of, report
from scripts.bench.served import REPOSITORY
from scripts.bench.timed import BenchError, TimedCrawl, start_cpu_s, timed_crawl, true_pages
from scripts.sites import MORE_PACKAGES, PACKAGES, SitesError, sites


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(
        prog="python -m scripts.bench", description="Crawl real sites with several crawlers, in turn."
    )
    parser.add_argument("--more", action="store_true", help="7,000 pages instead of 2,600")
    parser.add_argument("--repetitions", type=int, default=3, metavar="N", help="runs of each crawler, 3 by default")
    parser.add_argument(
        "--only",
        action="append",
        choices=NAMES,
        metavar="NAME",
        help=f"only this crawler; repeat it: {'; '.join(NAMES)}",
    )
    parser.add_argument("--data", type=Path, default=REPOSITORY / "bench-data", metavar="DIR")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures")
    options = parser.parse_args()
    if options.repetitions < 1:
        parser.error("--repetitions must be 1 or more")
    names = [name for name in NAMES if not options.only or name in options.only]
    try:
        figures = bench(options.data, options.more, options.repetitions, names)
    except (SitesError, BenchError) as error:
        sys.exit(f"bench: {error}")
    lines = "\n".join(report(figures)) + "\n"
    (options.data / "report.md").write_text(lines)
    if options.json is not None:
        options.json.write_text(json.dumps(figures, indent=1) + "\n")
    print(lines)


def bench(directory: Path, more: bool, repetitions: int, names: list[str]) -> dict[str, Any]:
    """Run every crawler `repetitions` times, in turn, and return the figures. Raises SitesError, BenchError."""
    crawlers: list[Crawler] = []
    absent: dict[str, str] = {}
    for name in names:
        try:
            crawlers.append(crawler(name))
        except CrawlerMissingError as error:
            absent[name] = str(error)
    if not crawlers:
        raise BenchError(f"no crawler can be had here: {'; '.join(absent.values())}")
    documentation = sites(PACKAGES + MORE_PACKAGES if more else PACKAGES)
    directory.mkdir(parents=True, exist_ok=True)
    _compile()
    _say("working out the truth")
    expected = true_pages(documentation, directory)
    runs: dict[str, list[TimedCrawl]] = {one.name: [] for one in crawlers}
    starts: dict[str, list[float]] = {one.name: [] for one in crawlers}
    for repetition in range(repetitions):
        for one in crawlers:
            if repetition and one.name in ONCE:
                continue
            _say(f"{one.name}, run {repetition + 1} of {repetitions}")
            starts[one.name].append(start_cpu_s(one, directory))
            runs[one.name].append(timed_crawl(one, documentation, expected, directory))
    pages = sum(status == 200 for status in expected.values())
    figures = figures_of(runs, starts, urls=len(expected), pages=pages)
    return {"sites": [site.name for site in documentation], "absent": absent, **figures}


def _compile() -> None:
    """Compile what is run from its sources, or a process that may not write bytecode compiles it at each start."""
    for name in ("kadcrawl", "scripts"):
        compileall.compile_dir(REPOSITORY / name, quiet=2)


def _say(what: str) -> None:
    print(f"bench: {what}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
