"""The profile of a page: to which room a sampled stack belongs, and what the parts come to."""

import sys
from collections import Counter
from pathlib import Path

import pytest

from scripts.page_profile import ProfileError, figures_of, profiler, report
from scripts.stack_rooms import LOOP, START_UP, RoomShares, room_of, shares_of

PACKAGE = "/home/me/kadcrawl/kadcrawl"
LIBRARIES = "/home/me/kadcrawl/.venv/lib/python3.11/site-packages"
PROCESS = 'process 7:"python -c from kadcrawl.cli.local.child_main import main; main()"'
LOOP_FRAMES = f"run ({PACKAGE}/cli/run.py:44);Runner.run (/usr/lib/asyncio/runners.py:118)"
MAIN = f"main ({PACKAGE}/cli/local/child_main.py:61);{LOOP_FRAMES}"


def room(*frames: str) -> str:
    (name,) = shares_of([f"{PROCESS};{MAIN}{''.join(f';{frame}' for frame in frames)} 1\n"], PACKAGE).rooms
    return name


def test_a_sample_belongs_to_the_innermost_frame_of_kadcrawl() -> None:
    fetch = f"Fetcher.fetch ({PACKAGE}/crawl/fetch/fetcher.py:231)"
    attempt = f"Attempt.run ({PACKAGE}/crawl/attempt.py:129)"
    assert room(attempt) == "crawl"
    assert room(attempt, fetch) == "crawl/fetch"
    assert room(attempt, fetch, f"ClientSession._request ({LIBRARIES}/aiohttp/client.py:500)") == "crawl/fetch"
    assert room(attempt, f"Journal.write ({PACKAGE}/store/journal.py:200)") == "store"
    assert room(attempt, f"canonical ({PACKAGE}/urls.py:10)") == "URLs and keys"


def test_what_the_loop_calls_belongs_to_the_library_or_the_loop() -> None:
    assert room() == LOOP
    assert room(f"ResponseHandler.data_received ({LIBRARIES}/aiohttp/client_proto.py:250)") == "crawl/fetch"
    assert room(f"RequestHandler.data_received ({LIBRARIES}/aiohttp/web_protocol.py:250)") == "link"
    assert room("Handle._run (/usr/lib/asyncio/events.py:80)") == LOOP


def test_imports_are_the_start_wherever_they_happen() -> None:
    importing = ("_find_and_load (<frozen importlib._bootstrap>:1176)", f"<module> ({PACKAGE}/store/store.py:9)")
    assert room(*importing) == START_UP
    frames = [("run", f"{PACKAGE}/cli/run.py"), ("_find_and_load_unlocked", "<frozen>"), ("<module>", "/x.py")]
    assert room_of(frames, PACKAGE) == START_UP


def test_threads_and_bare_processes_are_left_out() -> None:
    thread = "Thread._bootstrap (/usr/lib/python3.11/threading.py:1002)"
    lines = [f"{PROCESS};{thread};sync_files ({PACKAGE}/store/journal.py:60) 5\n", f"{PROCESS} 3\n"]
    assert shares_of(lines, PACKAGE).rooms == Counter()


def test_parts_of_the_samples_divide_the_cpu_of_the_measured_crawl() -> None:
    shares = RoomShares(
        Counter({"store": 50, "crawl": 30, START_UP: 20}), Counter({"store/journal.py Journal.write": 50})
    )
    figures = figures_of(shares, cpu_s=2.0, pages=1_000, peers=1)
    assert figures["rooms"] == {"store": 1_000.0, "crawl": 600.0}
    assert (figures["us"], figures["start_up_s"]) == (1_600.0, 0.4)
    assert figures["functions"] == {"store/journal.py Journal.write": 1_000.0}
    assert any(line.startswith("store  ") and line.endswith("62.5%") for line in report(figures))


def test_a_profile_without_samples_says_why() -> None:
    with pytest.raises(ProfileError, match="may not be allowed"):
        figures_of(RoomShares(Counter(), Counter()), cpu_s=2.0, pages=1_000, peers=1)


def test_a_machine_without_py_spy_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    with pytest.raises(ProfileError, match="make profile installs it"):
        profiler()
    (tmp_path / "py-spy").touch()
    assert profiler() == str(tmp_path / "py-spy")
