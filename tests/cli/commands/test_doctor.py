"""`kadcrawl doctor` as a person calls it: lines, JSON, exit codes, and nothing left behind."""

import json
import re
import socket
from pathlib import Path

from tests.support.swarm.command import address_of, interrupted, joinable, kadcrawl, swarm_key

FREE = ("--listen", "127.0.0.1:0")


async def test_a_machine_without_problems_is_told_and_no_directory_is_made(tmp_path: Path) -> None:
    data = tmp_path / "none"
    run = await kadcrawl("doctor", "--data", str(data), *FREE)
    assert run.code == 0, run
    assert "ok       directory" in run.out
    assert re.fullmatch("all is well|[0-9]+ notes?", run.out.splitlines()[-1])
    assert not any(line.startswith("problem") for line in run.out.splitlines())
    assert not data.exists()


async def test_problems_have_an_exit_code_and_advice(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        run = await kadcrawl("doctor", "--data", str(tmp_path), "--listen", f"127.0.0.1:{port}")
    assert run.code == 5, run
    assert f"problem  listen     127.0.0.1:{port} cannot be used for TCP: another program has it\n" in run.out
    assert "-> end that program" in run.out
    assert run.out.splitlines()[-1].startswith("1 problem")


async def test_json_is_for_programs_and_has_the_same_findings(tmp_path: Path) -> None:
    run = await kadcrawl("doctor", "--data", str(tmp_path), *FREE, "--json", "--bootstrap", "no.such.invalid:1")
    assert run.code == 5, run
    report = json.loads(run.out)
    (bootstrap,) = [finding for finding in report["findings"] if finding["check"] == "bootstrap"]
    assert ("problem", "the name no.such.invalid has no address here") == (bootstrap["outcome"], bootstrap["said"])
    assert 1 == report["problems"]


async def test_a_running_swarm_is_found_and_no_secret_is_shown(tmp_path: Path) -> None:
    peer = await joinable(data=tmp_path / "one")
    address = await address_of(peer)
    run = await kadcrawl("doctor", "--data", str(tmp_path / "one"), "--bootstrap", address)
    assert run.code == 0, run
    assert f"a member answers at {address} by TCP" in run.out
    assert f"a member answers at {address} by UDP" in run.out
    assert f"listen     {address} is in use, and the peer of --data is running" in run.out
    assert "1 of the peers running" in run.out
    assert swarm_key() not in run.out + run.err
    status = json.loads((await kadcrawl("status", "--peer", address, "--json")).out)
    assert 1 == len(status["peers"])
    assert (await interrupted(peer)).code == 11


async def test_a_mistake_in_the_command_is_told_apart_from_a_problem(tmp_path: Path) -> None:
    for arguments in (["--listen", "http://a/"], ["ftp://a/"], ["--listen", "name.example:1"]):
        run = await kadcrawl("doctor", "--data", str(tmp_path), *arguments)
        assert run.code == 2, run
        assert "Traceback" not in run.err
