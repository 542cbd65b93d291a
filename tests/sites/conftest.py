"""Real input: the command crawls real sites and an HTTP test server, as a user would run it."""

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from scripts.kadcrawl_run import crawl_command, page_lines
from tests.support.sites.finished_crawl import Crawl, CrawlToTheEnd


@pytest.fixture
def crawl_to_the_end(tmp_path: Path) -> CrawlToTheEnd:
    """Run `kadcrawl crawl` on loopback seeds with so many peers and no delay, and check that it succeeds."""

    def run(seeds: Sequence[str], peers: int) -> Crawl:
        data, summary = tmp_path / "data", tmp_path / "summary.json"
        command = crawl_command(seeds, peers=peers, delay_s=0, data=data, summary=summary)
        done = subprocess.run(command, capture_output=True, text=True, timeout=500, check=False)
        assert done.returncode == 0, f"kadcrawl exited with {done.returncode}:\n{done.stdout}\n{done.stderr}"
        return Crawl(list(page_lines(data)), json.loads(summary.read_text()))

    return run
