"""This benchmark compares the native link extractor with the Python code: microseconds of CPU for a page.

    python -m scripts.bench_links

Both read the pages of the documentation sites in one process, one after the other, several times. An extractor is new
for each reading, so it remembers only what it met on earlier pages, as in a crawl. The links must be the same.
"""

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from time import process_time
from typing import Final

import click

from kadcrawl.crawl.content.charset import encoding_of
from kadcrawl.crawl.content.html_links import TURN_BYTES, Extracted, LinkExtractor
from kadcrawl.crawl.content.html_walk import link_tags
from kadcrawl.crawl.content.native_links import NATIVE, NativeLinks
from kadcrawl.settings.limits import Limits
from kadcrawl.system.cooperative import run_to_end
from scripts.sites import SitesError, sites

ENGINES: Final = ("Python", "native")


@dataclass(frozen=True, slots=True)
class Page:
    """A page of a site."""

    url: str
    body: bytes


@dataclass(frozen=True, slots=True)
class LinksCost:
    """Medians of CPU microseconds for a page, by engine."""

    pages: int
    kilobytes: float
    walk_us: dict[str, float]
    """The walk over the markup alone."""
    links_us: dict[str, float]
    """All that makes links of a page."""


@dataclass(frozen=True, slots=True)
class Figures:
    """The costs of all pages, and of those that are read in one turn."""

    runs: int
    every: LinksCost
    ordinary: LinksCost


def pages_of_sites() -> list[Page]:
    """Return the pages of the documentation sites. Raises SitesError."""
    return [
        Page(f"http://{site.name}.example/{path.relative_to(site.root)}", path.read_bytes())
        for site in sites()
        for path in sorted(site.root.rglob("*.html"))
    ]


def measured(pages: Sequence[Page], native: NativeLinks, runs: int) -> LinksCost:
    """Return the costs of reading these pages. Raises ValueError if the engines see different links."""
    walks: dict[str, list[float]] = {name: [] for name in ENGINES}
    reads: dict[str, list[float]] = {name: [] for name in ENGINES}
    markups = [page.body for page in pages if encoding_of(page.body, "text/html") == "utf-8"]
    for _ in range(runs):
        found: list[list[Extracted]] = []
        for name, engine in zip(ENGINES, (None, native), strict=True):
            extractor = LinkExtractor(Limits(), native=engine)
            links: list[Extracted] = []
            reads[name].append(_us(lambda: links.extend(_read(extractor, pages)), len(pages)))  # noqa: B023
            walks[name].append(_us(lambda: _walk(markups, engine), len(markups)))  # noqa: B023
            found.append(links)
        if found[0] != found[1]:
            raise ValueError("the native code and the Python code see different links: python -m fuzz mutate")
    size = sum(len(page.body) for page in pages) / len(pages) / 1000
    return LinksCost(len(pages), size, _medians(walks), _medians(reads))


def _read(extractor: LinkExtractor, pages: Sequence[Page]) -> list[Extracted]:
    return [extractor.extract(page.body, "text/html", page.url) for page in pages]


def _walk(markups: Sequence[bytes], engine: NativeLinks | None) -> None:
    for markup in markups:
        run_to_end(link_tags(markup, engine))


def _us(work: Callable[[], object], count: int) -> float:
    began = process_time()
    work()
    return 1e6 * (process_time() - began) / count


def _medians(times: dict[str, list[float]]) -> dict[str, float]:
    return {name: round(median(each), 1) for name, each in times.items()}


@click.command(help=__doc__)
@click.option("--runs", default=5, show_default=True, type=click.IntRange(1), help="Readings of each engine.")
@click.option("--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), help="Write the figures here.")
def main(runs: int, json_file: Path | None) -> None:
    if NATIVE is None:
        sys.exit("bench_links: the native code is not compiled here, or KADCRAWL_PURE is set: make setup")
    try:
        pages = pages_of_sites()
    except SitesError as error:
        sys.exit(f"bench_links: {error}")
    ordinary = [page for page in pages if len(page.body) <= TURN_BYTES]
    figures = Figures(runs, measured(pages, NATIVE, runs), measured(ordinary, NATIVE, runs))
    for name, cost in (("all pages", figures.every), ("pages read in one turn", figures.ordinary)):
        print(f"{name}: {cost.pages:,}, {cost.kilobytes:.1f} kB each")
        for step, times in (("walk", cost.walk_us), ("links", cost.links_us)):
            times_less = times["Python"] / times["native"]
            print(
                f"  {step:6}{times['Python']:7.1f} us in Python, {times['native']:6.1f} natively ({times_less:.1f} x)"
            )
    if json_file is not None:
        json_file.write_text(json.dumps(asdict(figures), indent=1) + "\n")


if __name__ == "__main__":
    main()
