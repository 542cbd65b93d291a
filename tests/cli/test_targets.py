"""Test which peer a command with `--data` asks: of several peers a live one.

Also tested is the message when no peer can be asked.
"""

import asyncio
from pathlib import Path

import pytest

from tests.support.sites.endless_web import endless_web
from tests.support.swarm.command import (
    children as processes_of,
    crawl,
    finished,
    interrupted,
    joinable,
    joined,
    kadcrawl,
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


def dead_peers_of_any_name(data: Path) -> None:
    for name in ("one", "two"):
        (data / name).mkdir()
        dead(data / name)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (None, "there is no "),
        (
            lambda data: None,
            " holds no peer: --data names the directory of one on this machine, or a directory whose peers are in peer",
        ),
        (leaf, " is of a leaf, which listens nowhere"),
        (dead, " is not up; it listened at 127.0.0.1:9. The command that started it goes on with it"),
        (dead_crawl, "none of the 2 peers of "),
        (dead_peers_of_any_name, " holds no peer itself, but peers ran in "),
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


@pytest.mark.parametrize("command", [["pause"], ["retry"], ["set", "delay", "5"]], ids=lambda command: command[0])
async def test_no_command_promises_that_a_peer_without_its_journal_goes_on(command: list[str], tmp_path: Path) -> None:
    (peer := tmp_path / "peer-1").mkdir()
    dead(peer)
    (peer / "pages.jsonl").write_text("{}\n")
    run = await kadcrawl(*command, "--data", str(tmp_path))
    assert run.code == 2, run
    assert f"The journal of {peer} is not there, and nothing goes on without it; move this directory away" in run.err
    assert "goes on with it" not in run.err
    peer.rename(tmp_path / "peer-1.broken-1")
    run = await kadcrawl(*command, "--data", str(tmp_path))
    assert "The command that started it goes on with it" in run.err


async def test_of_a_local_crawl_the_first_peer_that_is_up_is_asked(tmp_path: Path) -> None:
    async with endless_web() as endless:
        process = await start(*crawl(tmp_path, endless.seed, peers=3))
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
    one = await joinable(data=tmp_path / "one")
    two = await joined((tmp_path / "one" / "address").read_text().strip(), tmp_path / "two")
    for command in ("status --data", "summary --data", "pause --data", "leave --data", "queue --data", "web"):
        above = await kadcrawl(*command.split(), str(tmp_path))
        assert 2 == above.code, above
        named = f"peers run in {tmp_path / 'one'}, {tmp_path / 'two'}: name the directory of one"
        assert named in " ".join(above.err.split()), above
    run = await kadcrawl("leave", "--data", str(tmp_path / "two"))
    assert (0, "the peer has left\n") == (run.code, run.out), run
    assert "it finishes what is under way and hands its range over" in run.err
    gone = await kadcrawl("pause", "--data", str(tmp_path / "two"))
    assert "is not up" in gone.err, "nobody listens there any more"
    async with asyncio.timeout(60):
        assert 0 == await two.wait()
    await interrupted(one)
