"""The benchmark counts all processes of a run, and names the crawlers that it cannot have."""

import re
import signal
import sys
from pathlib import Path

import pytest
from aiohttp import web

from scripts import bare_loop
from scripts.bench import crawlers
from scripts.bench.crawlers import (
    BARE_LOOP,
    IN_PYTHON,
    ONE_PEER,
    SCRAPY,
    SCRAPY_REDIS,
    CrawlerMissingError,
    crawler,
)
from scripts.bench.programs import WGET2, FoundProgram, found
from scripts.bench.report import figures_of, report
from scripts.bench.timed import TimedCrawl
from scripts.demo import MARKER, begin_anew
from scripts.measure import Cost, cost_of
from tests.support.sites.web import Web, html

BURN = "import time\nwhile time.process_time() < 0.3: pass\n"
PARENT = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {BURN!r}])\n"
MEGABYTES = 1_000_000


def test_the_cost_of_a_run_is_that_of_all_its_processes(tmp_path: Path) -> None:
    parent = PARENT + "kept = bytearray(50_000_000)\n" + BURN + "print('done')\nsys.exit(3)\n"
    cost = cost_of([sys.executable, "-c", parent], tmp_path / "output")
    assert cost.exit_code == 3
    assert cost.cpu_s >= 0.6
    assert cost.wall_s >= 0.3
    assert cost.peak_bytes > 50 * MEGABYTES
    assert (tmp_path / "output").read_text() == "done\n"


def test_memory_is_summed_over_processes(tmp_path: Path) -> None:
    """Both hold their memory until the watcher has certainly seen it: the child ends when its time is burnt."""
    child = "kept = bytearray(60_000_000)\nimport time\nwhile time.process_time() < 1: pass\n"
    parent = (
        f"import subprocess, sys\nkept = bytearray(60_000_000)\nsubprocess.run([sys.executable, '-c', {child!r}])\n"
    )
    assert cost_of([sys.executable, "-c", parent], tmp_path / "output").peak_bytes > 120 * MEGABYTES


def test_a_run_that_takes_too_long_is_killed_with_its_children(tmp_path: Path) -> None:
    child = "subprocess.Popen([sys.executable, '-c', 'input()'], stdin=subprocess.PIPE)"
    parent = f"import subprocess, sys\n{child}.wait()\n"
    assert cost_of([sys.executable, "-c", parent], tmp_path / "output", most_s=0.0).exit_code == -signal.SIGKILL


def timed(cpu_s: float, pages: int = 500) -> TimedCrawl:
    return TimedCrawl(Cost(0, 2.0, cpu_s, 30 * MEGABYTES), pages, 1.0, 0.1)


def test_figures_are_medians_with_the_start_and_without() -> None:
    runs = {BARE_LOOP: [timed(1.0)], ONE_PEER: [timed(9.0), timed(1.5), timed(0.5)], "wget2": [timed(0.25, 250)]}
    starts = {BARE_LOOP: [0.2], ONE_PEER: [0.9, 0.5, 0.7], "wget2": [0.0]}
    figures = figures_of(runs, starts, urls=600, pages=500)
    one = figures["crawlers"][ONE_PEER]
    assert (one["cpu_s_per_1000"], one["start_cpu_s"], one["steady_s_per_1000"]) == (3.0, 0.7, 1.6)
    assert (one["cpu_to_bare_loop"], one["steady_to_bare_loop"]) == (1.5, 1.0)
    assert one["cpu_to_scrapy"] is None
    assert figures["crawlers"]["wget2"]["covered"] == 0.5
    assert figures["aims"] == {ONE_PEER: {"most": 0.9, "reached": False}}


def test_a_crawler_that_cannot_be_had_is_named_in_the_report() -> None:
    figures = figures_of({BARE_LOOP: [timed(1.0)]}, {BARE_LOOP: [0.2]}, urls=600, pages=500)
    lines = list(report({"sites": ["one"], "absent": {"Scrapy, lean": "there is none"}, **figures}))
    assert [line for line in lines if "not available: there is none" in line and line.startswith("| Scrapy, lean |")]


def test_opponents_that_are_not_installed_say_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crawlers, "OPPONENTS", tmp_path / "none")
    for name in (SCRAPY, SCRAPY_REDIS, "spider-rs"):
        with pytest.raises(CrawlerMissingError, match="make bench installs it"):
            crawler(name)


def test_a_machine_without_apt_has_no_debian_programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("KADCRAWL_CACHE", str(tmp_path / "cache"))
    with pytest.raises(CrawlerMissingError, match="wget2 cannot be fetched: this machine has no apt-get"):
        crawler("wget2")


def test_a_program_of_the_machine_is_taken_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "wget2"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o700)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert found(WGET2) == FoundProgram(str(program), {})


@pytest.mark.parametrize(("name", "pure"), [(ONE_PEER, "0"), (ONE_PEER + IN_PYTHON, "1")])
def test_kadcrawl_runs_with_native_code_and_without(name: str, pure: str) -> None:
    assert crawler(name).environment == {"KADCRAWL_PURE": pure}


def test_the_demo_empties_its_own_directory_and_no_other(tmp_path: Path) -> None:
    own, other = tmp_path / "own", tmp_path / "other"
    begin_anew(own)
    (own / "left over").touch()
    begin_anew(own)
    assert [entry.name for entry in own.iterdir()] == [MARKER]

    other.mkdir()
    (other / "precious").touch()
    with pytest.raises(FileExistsError):
        begin_anew(other)
    assert (other / "precious").exists()


async def test_the_bare_loop_fetches_what_is_wanted_and_reachable_once() -> None:
    async with Web() as site, Web() as elsewhere:
        site.pages["/"] = lambda request: html("/a", "/a#x", "b.txt", "/missing", elsewhere.url())
        site.pages["/a"] = lambda request: web.Response(status=301, headers={"Location": "/c"})
        site.pages["/c"] = lambda request: html("/")
        assert await bare_loop.crawl([site.url()], re.compile(r"(?!.*txt$)")) == 2
        assert dict(site.fetched) == {site.url(path): 1 for path in ("/", "/a", "/c", "/missing")}
        assert not elsewhere.fetched
