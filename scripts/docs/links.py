"""The page on links: counts and examples of all differences to `wget -r` and LinkExtractor, as measured.

Tests: tests/docs/test_links.py
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from scripts.compare_links.classes import CLASSES
from scripts.docs.figures import FiguresMissingError, Kept
from scripts.docs.markdown import code, page, table

PAGE: Final = "docs/explanation/links.md"
SPECIMEN: Final = "specimen"
COMPARISONS: Final = ("links", "scrapy", "wget")


def generate(root: Path) -> Mapping[str, str]:
    """Return the page."""
    kept = Kept(root / "docs/figures")
    try:
        parts = _parts(kept)
    except FiguresMissingError as error:
        parts = [f"*{error}.*"]
    return {PAGE: page("Links beside wget and Scrapy", "scripts/compare_links and docs/figures/links.json", *parts)}


def _parts(kept: Kept) -> list[str]:
    figures = kept["links"]
    sites = [site for site in figures["sites"] if site["name"] != SPECIMEN]
    return [
        _about(figures, sites),
        kept.measured("links"),
        "## Requests",
        "The server's log counts the requests. URLs are distinct, without fragment, as each crawler spells them.",
        _requests(sites),
        "## Links of the same pages",
        "LinkExtractor and kadcrawl read the same bodies. Links are distinct within a page, and have no fragment.",
        _links(sites),
        "## Differences",
        "Each cell has the number of URLs that kadcrawl alone has, and of those that the other alone has, on all four "
        "sites together.",
        _classes(figures, sites),
        *(_section(name, figures["examples"].get(name)) for name in CLASSES),
    ]


def _about(figures: Any, sites: list[Any]) -> str:
    versions = figures["versions"]
    differences = sum(sum(_sum(sites, what, name)) for what in COMPARISONS for name in CLASSES)
    unexplained = sum(sum(_sum(sites, what, "unexplained")) for what in COMPARISONS)
    return (
        f"Three crawlers fetch the same {len(sites)} documentation sites from a server on loopback: kadcrawl with its "
        f"defaults and without a delay, `wget -r` {versions['wget']} without a limit of levels, and a spider of Scrapy "
        f"{versions['scrapy']} that follows a `LinkExtractor()` with its defaults. All obey robots.txt. There are "
        f"{differences + unexplained:,} differences. A rule gives each a class, by the place of the URL on pages that "
        f"both crawlers have. {unexplained} differences have no class: the measurement fails if there are any.\n\n"
        "A small site of the tests adds examples of classes that the four sites do not have."
    )


def _requests(sites: list[Any]) -> str:
    rows = []
    for site in sites:
        for crawler, counts in site["requests"].items():
            statuses = ", ".join(f"{count:,} x {status}" for status, count in counts.items() if status.isdecimal())
            rows.append([site["name"], crawler, f"{counts['requests']:,}", f"{counts['urls']:,}", statuses])
    return table(["site", "crawler", "requests", "URLs", "answers"], rows)


def _links(sites: list[Any]) -> str:
    rows = [
        [site["name"], f"{site['pages']:,}", *(f"{site['links'][name]:,}" for name in ("kadcrawl", "scrapy", "both"))]
        for site in sites
    ]
    return table(["site", "pages", "kadcrawl", "LinkExtractor", "both"], rows)


def _sum(sites: list[Any], what: str, name: str) -> tuple[int, int]:
    """Return how many differences of a class kadcrawl alone has, and how many the other alone."""
    found = [site["differences"].get(what, {}).get(name, {}) for site in sites]
    other = "wget" if what == "wget" else "scrapy"
    return sum(each.get("kadcrawl", 0) for each in found), sum(each.get(other, 0) for each in found)


def _classes(figures: Any, sites: list[Any]) -> str:
    rows = []
    for name, each in CLASSES.items():
        cells = [
            "{:,} / {:,}".format(*counts) if any(counts := _sum(sites, what, name)) else "" for what in COMPARISONS
        ]
        rows.append([f"[{each.title}](#{_id(name)})", *cells])
    return table(["class", "links of LinkExtractor", "requests of Scrapy", "requests of wget"], rows)


def _id(name: str) -> str:
    return name.replace(" ", "-").replace("=", "-")


def _section(name: str, example: Any) -> str:
    each = CLASSES[name]
    lines = [f"### {each.title} {{#{_id(name)}}}", each.what]
    rows = [f"- **Right**: {each.right}", f"- **Option**: {each.option}"]
    if example is not None:
        where = f" on {code(example['where'])}" if example["where"] else ""
        text = f"{code(example['text'])}{where}" if example["text"] else f"no page names this spelling{where}"
        rows.insert(0, f"- **Example** ({example['site']}): {text}. {_only(example)}")
    return "\n\n".join([*lines, "\n".join(rows)])


def _only(example: Any) -> str:
    return f"Only {example['only']} has {code(example['url'])}."
