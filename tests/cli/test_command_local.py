"""`kadcrawl crawl` when processes die, are killed, or come back in other numbers: nothing is lost or done twice."""

import asyncio
import json
import os
import re
import shutil
import signal
from pathlib import Path

import pytest

from kadcrawl.peer.job_store import journaled_job
from tests.support.sites.web import Web, tree
from tests.support.swarm.command import (
    IMPATIENT,
    LOOPBACK,
    SITES,
    children,
    crawl,
    ended,
    finished,
    kadcrawl,
    locked_by,
    slow_web,
    start,
    until,
)

pytestmark = pytest.mark.chaos


@pytest.mark.parametrize("round_", range(2))
async def test_a_crawl_killed_as_a_whole_resumes_without_refetching_pages(round_: int, tmp_path: Path) -> None:
    async with slow_web(500) as site:
        command = crawl(tmp_path, site.url("/0"), peers=4)
        process = await start(*command)
        await until(lambda: sum(finished(tmp_path).values()) >= 100 + 100 * round_, process)
        for pid in (*children(process), process.pid):
            os.kill(pid, signal.SIGKILL)
        await ended(process)
        before = finished(tmp_path)
        asked_before = len(site.requests)
        run = await kadcrawl(*command)
        assert run.code == 0, run
        again = {url for _, url in site.requests[asked_before:]}
        assert not again & set(before)
        assert {site.url(f"/{n}", site=n % SITES): 1 for n in range(500)} == dict(finished(tmp_path))


async def test_the_others_finish_what_a_peer_that_dies_had(tmp_path: Path) -> None:
    async with slow_web(500) as site:
        process = await start(*crawl(tmp_path, site.url("/0"), peers=4), "--summary", str(tmp_path / "summary.json"))
        await until(lambda: sum(finished(tmp_path).values()) >= 60, process)
        os.kill(children(process)[2], signal.SIGKILL)
        run = await ended(process)
        assert run.code == 0, run
        assert re.search(r"^peer-\d died \(exit status -9, .*; the others go on", run.err, re.M), run
        assert {site.url(f"/{n}", site=n % SITES) for n in range(500)} == set(finished(tmp_path))
        summary = json.loads((tmp_path / "summary.json").read_text())
        assert summary["pages"] >= 500
        assert (4, 0) == (len(summary["peers"]), summary["left_behind"])


async def test_a_peer_that_dies_is_started_again_if_asked_for(tmp_path: Path) -> None:
    async with slow_web(500) as site:
        process = await start(*crawl(tmp_path, site.url("/0"), peers=4), "--respawn")
        await until(lambda: sum(finished(tmp_path).values()) >= 60, process)
        os.kill(children(process)[2], signal.SIGKILL)
        await until(lambda: len(children(process)) == 4, process)
        run = await ended(process)
        assert run.code == 0, run
        assert re.search(r"^peer-\d died \(exit status -9, .*; starting it again on its directory", run.err, re.M), run
        assert {site.url(f"/{n}", site=n % SITES) for n in range(500)} == set(finished(tmp_path))


@pytest.mark.parametrize("damage", ["gone", "broken"])
async def test_a_peer_without_its_directory_is_started_on_an_empty_one(damage: str, tmp_path: Path) -> None:
    async with slow_web(500) as site:
        process = await start(*crawl(tmp_path, site.url("/0"), peers=4), "--respawn", program=IMPATIENT)
        await until(lambda: sum(finished(tmp_path).values()) >= 60, process)
        victim = children(process)[2]
        directory = next(path for path in tmp_path.glob("peer-*") if locked_by(path / "lock", victim))
        process.send_signal(signal.SIGSTOP)  # So that it does not start the peer again before the disk is gone.
        os.kill(victim, signal.SIGKILL)
        await until(lambda: not locked_by(directory / "lock", victim), process)  # It ends in the midst of a write.
        if damage == "gone":
            shutil.rmtree(directory)
        else:
            (directory / "peer.sqlite-wal").unlink()
            (directory / "peer.sqlite").write_bytes(b"no database" * 1000)
            directory.with_name(f"{directory.name}.broken-1").mkdir()  # Of an earlier run.
        process.send_signal(signal.SIGCONT)
        run = await ended(process)
        assert run.code == 0, run
        assert ("is damaged; it is kept as" in run.err) == (damage == "broken")
        aside = directory.with_name(f"{directory.name}.broken-2")
        assert aside.exists() == (f"the figures lack those of {aside}, whose" in run.err) == (damage == "broken"), run
        assert {site.url(f"/{n}", site=n % SITES) for n in range(500)} == set(site.fetched)


@pytest.mark.parametrize("options", [(), ("--respawn",)], ids=["", "respawn"])
async def test_a_crawl_whose_directory_is_moved_ends_and_goes_on_at_the_new_place(
    options: tuple[str, ...], tmp_path: Path
) -> None:
    before, after = tmp_path / "before", tmp_path / "after"
    async with slow_web(300) as site:
        process = await start(*crawl(before, site.url("/0"), peers=2), *options)
        await until(lambda: sum(finished(before).values()) >= 60, process)
        before.rename(after)
        run = await ended(process)
        assert 2 == run.code, run
        assert re.search(r"^kadcrawl: peer-\d died .* was moved or removed while its peer ran: start", run.err, re.M), (
            run
        )
        assert not before.exists(), "nothing begins anew there"
        run = await kadcrawl(*crawl(after, site.url("/0"), peers=2))
        assert 0 == run.code, run
        assert {site.url(f"/{n}", site=n % SITES): 1 for n in range(300)} == dict(finished(after))


@pytest.mark.parametrize("gap_s", [0, 0.15, 0.4])
async def test_peers_that_die_together_become_one_swarm_again(gap_s: float, tmp_path: Path) -> None:
    async with slow_web(500) as site:
        process = await start(*crawl(tmp_path, site.url("/0"), peers=2))
        await until(lambda: sum(finished(tmp_path).values()) >= 60, process)
        for pid in children(process):
            os.kill(pid, signal.SIGKILL)
            await asyncio.sleep(gap_s)
        run = await ended(process)
        assert run.code == 0, run
        assert {site.url(f"/{n}", site=n % SITES): 1 for n in range(500)} == dict(finished(tmp_path))


async def test_a_peer_killed_while_it_starts_is_one_clear_sentence(tmp_path: Path) -> None:
    job = tmp_path / "job.toml"
    job.write_text("[[records]]\npattern = '.'\nhook = 'tests.support.waiting_hook:nothing'\n")
    data = tmp_path / "data"
    async with slow_web(500) as site:
        process = await start(*crawl(data, site.url("/0"), peers=3), "--job", str(job))
        lock = data / "peer-1" / "lock"
        await until(lambda: lock.exists() and any(locked_by(lock, pid) for pid in children(process)), process)
        (starting,) = (pid for pid in children(process) if locked_by(lock, pid))
        os.kill(starting, signal.SIGKILL)
        run = await ended(process)
        assert run.code == 2, run
        assert re.search(r"^kadcrawl: peer-1 ended before it was ready", run.err, re.M), run
        assert "Traceback" not in run.err


async def test_fewer_peers_on_the_same_data_lose_nothing(tmp_path: Path) -> None:
    async with slow_web(300) as site:
        process = await start(*crawl(tmp_path, site.url("/0"), peers=4))
        await until(lambda: sum(finished(tmp_path).values()) >= 100, process)
        process.send_signal(signal.SIGINT)
        assert (await ended(process)).code == 11
        run = await kadcrawl(*crawl(tmp_path, site.url("/0"), peers=2))
        assert run.code == 0, run
        assert "holds the work of 4 peers, so 4 are started, not 2" in run.err
        assert {site.url(f"/{n}", site=n % SITES): 1 for n in range(300)} == dict(finished(tmp_path))


async def test_a_crawl_goes_on_by_the_options_it_was_given_before(tmp_path: Path) -> None:
    async with Web() as site:
        site.fallback = tree(31)(site)
        base = ["crawl", site.url("/0"), "--peers", "1", *LOOPBACK, "--data", str(tmp_path)]
        assert (await kadcrawl(*base, "--delay", "0", "--max-depth", "1", "--contact", "me@example.org")).code == 0
        assert (await kadcrawl(*base, "--retries", "1")).code == 0
        job = journaled_job(tmp_path / "peer-1")
        assert job is not None
        assert (0, 1, 1, "me@example.org") == (job.delay_s, job.max_depth, job.retries, job.contact)
