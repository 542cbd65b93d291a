"""The benchmark counts all processes of a run, and each room's share of a profile."""

import cProfile
import json
import re
import subprocess
import sys
from itertools import count
from pathlib import Path

import pytest
from aiohttp import web

from kadcrawl.keys import site_hash
from kadcrawl.urls import canonical
from scripts import bare_loop
from scripts.demo import MARKER, begin_anew
from scripts.measure import cost_of
from scripts.profile_rooms import functions_of, rooms_of
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


def test_time_belongs_to_the_room_that_spends_it_or_calls_what_does(tmp_path: Path) -> None:
    profile = cProfile.Profile(count().__next__)  # Else the machine decides, which may look elsewhere in any room.
    profile.enable()
    for number in range(2000):
        canonical(f"page-{number}.html", "http://site/")
        site_hash(f"site-{number}")
    json.dumps([None] * 10)
    profile.disable()
    dump = tmp_path / "profile"
    profile.dump_stats(dump)

    rooms = {share.name: share for share in rooms_of([dump])}

    assert rooms["URLs"].part > 0.95
    assert set(rooms) <= {"URLs", "event loop"}
    assert sum(share.part for share in rooms.values()) == pytest.approx(1)
    functions = functions_of([dump], 3)
    assert len(functions) == 3
    assert functions == sorted(functions, key=lambda share: -share.seconds)


def test_a_benchmark_without_scrapy_says_what_to_do(tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; import scripts.bench.__main__ as bench\n"
        "bench.SCRAPY_PYTHON = Path('/nowhere/python'); sys.argv[1:] = []; bench.main()\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == "bench: there is no /nowhere/python to run Scrapy with; make bench creates it\n"


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
