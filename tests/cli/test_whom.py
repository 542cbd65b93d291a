"""Whom a command asks by --data: of several peers one that is up; and what it says where nobody can be asked."""

import asyncio
from pathlib import Path

import pytest

from tests.cli.command import (
    children as processes_of,
    crawl,
    finished,
    interrupted,
    joinable,
    kadcrawl,
    slow_web,
    start,
    until,
)


def leaf(data: Path) -> None:
    (data / "peer.sqlite").touch()


def dead(data: Path) -> None:
    (data / "address").write_text("127.0.0.1:9\n")


def dead_crawl(data: Path) -> None:
    for number in (1, 2):
        (data / f"peer-{number}").mkdir()
        dead(data / f"peer-{number}")


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (None, "there is no "),
        (lambda data: None, " holds no peer: "),
        (leaf, " is of a leaf, which listens nowhere"),
        (dead, " is not up; it listened at 127.0.0.1:9. The command that started it goes on with it"),
        (dead_crawl, "none of the 2 peers of "),
    ],
)
async def test_a_directory_nobody_can_be_asked_by_says_why_and_what_to_do(
    make: object, said: str, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    if make is not None:
        data.mkdir()
        make(data)  # type: ignore[operator]
    run = await kadcrawl("status", "--data", str(data))
    assert run.code == 2, run
    assert said in run.err
    assert "--peer HOST:PORT" in run.err


async def test_of_a_local_crawl_the_first_peer_that_is_up_is_asked(tmp_path: Path) -> None:
    async with slow_web(2000) as site:
        process = await start(*crawl(tmp_path, site.url("/0"), peers=3))
        await until(lambda: len(finished(tmp_path)) > 5, process)
        listening = (tmp_path / "peer-1" / "address").read_text()
        (tmp_path / "peer-1" / "address").write_text("127.0.0.1:9\n")
        run = await kadcrawl("status", "--data", str(tmp_path))
        assert run.code == 0, run
        assert listening.strip() in run.out
        run = await kadcrawl("leave", "--data", str(tmp_path))
        assert (2, True) == (run.code, "holds 3 peers; name the one that is to leave" in run.err), run
        assert 3 == len(processes_of(process))
        await interrupted(process)


async def test_leave_returns_when_the_peer_is_gone(tmp_path: Path) -> None:
    one = await joinable(address="127.0.0.1:0", data=tmp_path / "one")
    here = (tmp_path / "one" / "address").read_text().strip()
    join = ["join", "--bootstrap", here, "--listen", "127.0.0.1:0", "--data", str(tmp_path / "two")]
    two = await start(*join)
    assert two.stderr is not None
    async with asyncio.timeout(60):
        await two.stderr.readuntil(b"others join with")
    run = await kadcrawl("leave", "--data", str(tmp_path / "two"))
    assert (0, "the peer has left\n") == (run.code, run.out), run
    assert "it finishes what is under way and hands its range over" in run.err
    gone = await kadcrawl("status", "--data", str(tmp_path / "two"))
    assert "is not up" in gone.err, "nobody listens there any more"
    async with asyncio.timeout(60):
        assert 0 == await two.wait()
    await interrupted(one)
