"""Four real documentation sites: four peers fetch every reachable page once, and nothing else."""

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from scripts import truth
from scripts.sites import SitesError, StoredSite, sites
from sim.judge import Access, Expected, judge
from tests.support.sites.finished_crawl import CrawlToTheEnd

pytestmark = [pytest.mark.chaos, pytest.mark.sites, pytest.mark.timeout(600)]

CRAWLER = "kadcrawl/"
"""The beginning of the crawler's User-Agent. An independent crawl finds the truth on the same servers."""


class Server(NamedTuple):
    process: subprocess.Popen[str]
    seeds: list[str]
    log: Path

    def stop(self) -> list[Access]:
        """End the server, which completes its log, and return the crawler's requests."""
        self.process.terminate()
        assert self.process.wait(timeout=60) == 0
        accesses = [Access(**json.loads(line)) for line in self.log.read_text().splitlines()]
        return [access for access in accesses if access.user_agent.startswith(CRAWLER)]


@pytest.fixture
def documentation() -> list[StoredSite]:
    """Give the sites on disk.

    Without sites the test is skipped, unless KADCRAWL_REQUIRE_SITES says that it must run.
    """
    try:
        return sites()
    except SitesError as error:
        if os.environ.get("KADCRAWL_REQUIRE_SITES") == "1":
            raise
        pytest.skip(str(error))


@pytest.fixture
def server(documentation: list[StoredSite], tmp_path: Path) -> Iterator[Server]:
    log = tmp_path / "access.jsonl"
    roots = [str(site.root) for site in documentation]
    command = [sys.executable, "-m", "scripts.static_server", "--log", str(log), *roots]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            origins = json.loads(process.stdout.readline())
            seeds = [origin + site.entry for origin, site in zip(origins, documentation, strict=True)]
            yield Server(process, seeds, log)
        finally:
            process.kill()


def test_four_peers_fetch_every_reachable_page_once_and_none_else(
    server: Server, crawl_to_the_end: CrawlToTheEnd
) -> None:
    expected = truth.crawl(server.seeds)

    crawl = crawl_to_the_end(server.seeds, 4)

    accesses = server.stop()
    robots = {access.url: access.status for access in accesses if access.path == "/robots.txt"}
    verdict = judge(accesses, {url: Expected(status, 1, 1) for url, status in (expected | robots).items()})
    assert verdict.clean, verdict
    assert Counter(line.url for line in crawl.lines if line.status is not None) == Counter(expected.keys())
    assert {line.url: line.status for line in crawl.lines if line.status is not None} == expected
    assert crawl.summary["duplicates"] == 0
    assert len(crawl.summary["peers"]) == 4
