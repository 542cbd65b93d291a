"""One crawl with every mechanism of the papers at once, whose peers are killed and joined in the middle."""

from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from scripts.chaos.dealt_web import DealtWeb, made_up
from scripts.chaos.processes import restarted, two_join, two_killed
from scripts.chaos.run import RUN_S_MAX, RunSize, Scenario, run
from scripts.chaos.swarm import ProcessSwarm
from scripts.kadcrawl_run import page_lines
from tests.support.sites.proxies import ProxyServer
from tests.support.sites.web import Web, html

PAGES, SITES = 120, 8

UNFINISHED_S = 5.0
"""By URL most links of a page go to other peers, and the page is finished when these have answered."""

SIZE = RunSize(peers=5, delay_s=0.3, duplicates_max=0.05, unfinished_s=UNFINISHED_S, leaves=1, stops=True)

RUNS_MAX = 3
"""Crawls until the leaf has fetched a page. A crawl so short may be over before a full peer has work to lend."""

pytestmark = pytest.mark.timeout(RUNS_MAX * RUN_S_MAX + 60)
"""A run ends itself and says why."""
JOB = (
    *("--partition", "url", "--history", "bloom", "--recrawl-after", "7d", "--balance", "predictive"),
    *("--copies", "4", "--max-pages", "400", "--max-depth", "30"),
)


async def killed_and_joined(swarm: ProcessSwarm, random: Random, size: RunSize) -> None:
    """Two peers are killed at once, two join, and one is started again on its disk."""
    for happens in (two_killed, two_join, restarted):
        await happens(swarm, random, size)


async def crawled_without_a_loss(seed: int, directory: Path) -> Path:
    """Make a crawl that loses nothing, and return the directory of its leaf."""
    directory.mkdir()
    one, other = ProxyServer(), ProxyServer("socks5")
    async with DealtWeb(made_up(PAGES), SITES) as web, Web(1) as judge, one.living(), other.living():
        judge.fallback = lambda request: html()
        proxies = directory / "proxies.txt"
        proxies.write_text(f"{one.url}\n{other.url}\n")
        options = (*JOB, "--proxies", str(proxies), "--proxy-judge", judge.url("/judge"))
        size = replace(SIZE, options=options)
        outcome = await run(Scenario(killed_and_joined), seed, web, directory / "run", size)
        assert [] == outcome.faults
        assert (PAGES, PAGES, 0, 0) == (outcome.pages, outcome.fetched, outcome.lost, outcome.hurried)
        assert one.asked
        assert other.asked
    return directory / "run/leaf-1"


@pytest.mark.chaos
async def test_one_crawl_has_everything_on_and_loses_nothing(tmp_path: Path) -> None:
    for seed in range(1, RUNS_MAX + 1):
        leaf = await crawled_without_a_loss(seed, tmp_path / str(seed))
        if [*page_lines(leaf)]:
            return
    pytest.fail(f"a leaf has fetched no page in {RUNS_MAX} crawls")
