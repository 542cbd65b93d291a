"""Test that the command loads only the modules that it needs, and the parts that need no crawl."""

import asyncio
import fcntl
import os
import select
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from kadcrawl.cli.local.protocol import Assignment, Final, Ready, Report, line
from kadcrawl.cli.local.supervisor import peers_of
from kadcrawl.cli.options import Address
from kadcrawl.cli.run import first_of
from kadcrawl.cli.view.addresses import shown
from kadcrawl.cli.view.summary import PageLogs, limits_met
from kadcrawl.link.client import LinkClient
from kadcrawl.link.wire.messages import GetStatus, Status
from kadcrawl.peer.membership.endpoints import reachable_host
from kadcrawl.settings.job import Job

HEAVY = ("aiohttp", "kademlia", "selectolax", "isal", "sqlite3", "rich", "kadcrawl.crawl", "kadcrawl.peer")


@pytest.mark.parametrize("module", ["kadcrawl", "kadcrawl.cli.app", "kadcrawl.cli.local.supervisor"])
def test_the_parent_of_a_local_crawl_loads_nothing_of_a_peer(module: str) -> None:
    """The start-up time of the parent adds to the start-up time of every peer."""
    script = f"import sys, {module}; print(*(name for name in {HEAVY!r} if name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "\n"


def test_a_peer_process_loads_nothing_of_the_command() -> None:
    script = (
        "import sys, kadcrawl.cli.local.child_main; print(*(name for name in ('click', 'rich') if name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "\n"


async def test_the_first_of_several_ends_the_others_and_its_fault_is_not_lost() -> None:
    cancelled = asyncio.Event()

    async def wait() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    async def fail() -> None:
        await asyncio.sleep(0)
        raise ValueError("found")

    with pytest.raises(ValueError, match="found"):
        await first_of(wait(), fail())
    assert cancelled.is_set()


async def test_a_peer_whose_parent_does_not_read_runs_on_and_reports_its_end(tmp_path: Path) -> None:
    stdout, child_stdout = os.pipe()
    fcntl.fcntl(child_stdout, 1031, 4096)  # F_SETPIPE_SZ: soon full
    script = "import kadcrawl.cli.local.child_main as child; child.peer_life.REPORT_INTERVAL_S = 0.001; child.main()"
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", script, stdin=asyncio.subprocess.PIPE, stdout=child_stdout
    )
    assert process.stdin is not None
    process.stdin.write(line(Assignment(str(tmp_path), Job(), (), [])))
    ready = msgspec.json.decode(await asyncio.to_thread(_read_line, stdout), type=Report)
    assert isinstance(ready, Ready)
    async with asyncio.timeout(60):
        while select.select([], [child_stdout], [], 0)[1]:
            await asyncio.sleep(0.01)
        os.close(child_stdout)
        client = LinkClient(1_000_000)
        await client.open()
        for _ in range(20):
            await client.ask(ready.address, GetStatus(), Status, 20)
        await client.close()
        process.stdin.close()
        with os.fdopen(stdout, "rb") as rest:
            said = (await asyncio.to_thread(rest.read)).splitlines()
        assert await process.wait() == 0
    reports = [msgspec.json.decode(one, type=Report) for one in said]
    assert isinstance(reports[-1], Final)


def _read_line(fd: int) -> bytes:
    said = b""
    while not said.endswith(b"\n"):
        said += os.read(fd, 1)
    return said


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("10.0.0.1:80", ("10.0.0.1", 80)),
        ("10.0.0.1", ("10.0.0.1", 4160)),
        (":80", ("127.0.0.1", 80)),
        ("[::1]:80", ("::1", 80)),
        ("[fe80::1%eth0]", ("fe80::1%eth0", 4160)),
        ("my-host_1.example:1", ("my-host_1.example", 1)),
    ],
)
def test_an_address_is_read_and_shown_alike(text: str, address: tuple[str, int]) -> None:
    assert Address().convert(text, None, None) == address
    assert Address().convert(shown(address), None, None) == address


async def test_a_peer_on_all_addresses_names_one_of_the_kind_it_serves() -> None:
    assert ":" in await reachable_host("::")
    assert ":" in await reachable_host("::", ("127.0.0.1", 9))
    assert ":" not in await reachable_host("0.0.0.0")
    assert await reachable_host("::", ("::1", 9)) == "::1"
    assert await reachable_host("0.0.0.0", ("127.0.0.1", 9)) == "127.0.0.1"


def test_only_peer_directories_count_as_peers(tmp_path: Path) -> None:
    for name in ("peer-1", "peer-12", "peer-x", "peer-01", "other"):
        (tmp_path / name).mkdir()
    (tmp_path / "peer-3").touch()
    assert peers_of(tmp_path) == [1, 12]
    assert peers_of(tmp_path / "missing") == []


@pytest.mark.parametrize(
    ("left_out", "said"),
    [
        ({}, []),
        ({"session_id": 2}, ["2 links were followed without their session IDs (--session-ids)"]),
        ({"canonical": 3}, ["3 links, repeats included, were left to the pages named as canonical (--canonical)"]),
        ({"parameters": 3}, ["3 links were followed without parameters of their queries (--strip-parameters)"]),
        ({"nofollow": 3}, ["3 links, repeats included, were not followed, as they say nofollow (--nofollow)"]),
        ({"twins": 3}, ["3 links, repeats included, were not followed on near-identical pages (--twins)"]),
        (
            {"length": 1, "path_queries": 2, "site_pages": 5},
            [
                "limits left out 8 links, repeats included: length 1, path_queries 2 (--max-path-queries), "
                "site_pages 5 (--max-site-pages)"
            ],
        ),
    ],
)
def test_what_limits_left_out_is_said_with_the_options_that_move_them(
    left_out: dict[str, int], said: list[str]
) -> None:
    assert said == list(limits_met(left_out))


def test_what_two_peers_finished_is_counted_as_repeated(tmp_path: Path) -> None:
    logs = {"peer-1": ["a", "b"], "peer-2": ["b", "c", "c"]}
    for name, urls in logs.items():
        (tmp_path / name).mkdir()
        lines = "".join(f'{{"url": "http://127.0.0.2/{url}", "status": 200}}\n' for url in urls)
        (tmp_path / name / "pages.jsonl").write_text(lines)
    assert PageLogs(tmp_path / name for name in logs).repeats == 2


def test_damaged_page_lines_are_left_out_of_the_count(tmp_path: Path) -> None:
    good = b'{"url": "http://127.0.0.2/"}\n'
    (tmp_path / "pages.jsonl").write_bytes(good + b'{"url": "htt\n\xff\n{"url": 3}\n\0\n' + good + b'{"url"')
    assert PageLogs([tmp_path]).repeats == 1
