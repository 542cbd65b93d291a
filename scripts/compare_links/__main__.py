"""`python -m scripts.compare_links` compares kadcrawl with `wget -r` and Scrapy's LinkExtractor on documentation sites.

The exit code is 1 if a difference has no explanation. Tests: tests/scripts/test_compare_links.py
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from scripts.compare_links import specimen
from scripts.compare_links.classes import CLASSES
from scripts.compare_links.clients import (
    ROOT,
    ClientError,
    read_log,
    run_kadcrawl,
    run_scrapy,
    run_wget,
    scrapy_links,
    served,
)
from scripts.compare_links.compare import ComparedSite, SiteComparison
from scripts.sites import SitesError, StoredSite, sites

UNEXPLAINED_SHOWN: Final = 20
SPECIMEN: Final = "specimen"


def measure(scrapy_python: str, directory: Path, compared: Sequence[StoredSite]) -> tuple[list[SiteComparison], Any]:
    """Return the comparison of each site, and the versions of the other crawlers. Raises ClientError."""
    log = directory / "access.jsonl"
    with served([site.root for site in compared], log) as server:
        seeds = [origin + site.entry for origin, site in zip(server.origins, compared, strict=True)]
        run_kadcrawl(seeds, directory)
        versions = {"wget": run_wget(seeds, directory), "scrapy": run_scrapy(scrapy_python, seeds, directory)}
        origins = [origin.removesuffix("/") for origin in server.origins]
    requests = read_log(log, [site.name for site in compared])
    comparisons = []
    for site, origin in zip(compared, origins, strict=True):
        of_site = {crawler: by_site[site.name] for crawler, by_site in requests.items()}
        both = ComparedSite(site.name, site.root, origin, of_site)
        comparisons.append(both.compare(scrapy_links(scrapy_python, both.pages(), directory)))
    return comparisons, versions


def examples(comparisons: Sequence[SiteComparison]) -> dict[str, dict[str, str]]:
    """Return one difference of each class, of the first site that has it."""
    found: dict[str, dict[str, str]] = {}
    for comparison in comparisons:
        for differences in comparison.differences.values():
            for each in sorted(differences, key=lambda each: (each.where, each.url)):
                example = {"site": comparison.name, "only": each.only, "where": each.where}
                found.setdefault(each.why, {**example, "url": each.url, "text": each.text})
    return found


def main() -> None:
    """Measure, write the figures, and fail if a difference is not explained."""
    parser = argparse.ArgumentParser(prog="python -m scripts.compare_links", description=__doc__)
    parser.add_argument("--scrapy-python", default=str(ROOT / ".venv-bench/bin/python"), help="a Python with Scrapy")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here")
    options = parser.parse_args()
    with TemporaryDirectory() as scratch:
        directory = Path(scratch)
        try:
            small = StoredSite(SPECIMEN, specimen.write(directory / SPECIMEN), "")
            comparisons, versions = measure(options.scrapy_python, directory, [*sites(), small])
        except (ClientError, SitesError) as error:
            sys.exit(f"compare_links: {error}")
    shown = examples(comparisons)
    if options.json is not None:
        figures = {"versions": versions, "sites": [each.figures() for each in comparisons], "examples": shown}
        options.json.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    for comparison in comparisons:
        print(comparison.name, json.dumps(comparison.figures()))
    unexplained = [(each.name, difference) for each in comparisons for difference in each.unexplained()]
    for site, difference in unexplained[:UNEXPLAINED_SHOWN]:
        print(f"FAIL {site}: {difference}")
    for name in CLASSES.keys() - shown.keys():
        print(f"FAIL no site has a difference of the class {name}")
    sys.exit(bool(unexplained or CLASSES.keys() - shown.keys()))


if __name__ == "__main__":
    main()
