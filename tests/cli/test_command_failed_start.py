"""Test that a start that failed leaves nothing that the next start on the same --data would take for a peer."""

import socket
from pathlib import Path

import pytest

from tests.support.swarm.command import LOOPBACK, Run, interrupted, joinable, kadcrawl, until

URL = "http://127.0.0.1:9/"


async def failed(*arguments: str) -> Run:
    run = await kadcrawl(*arguments, *LOOPBACK)
    assert run.code == 2, run
    return run


@pytest.mark.parametrize("leaf", [(), ("--leaf",)], ids=["peer", "leaf"])
async def test_a_join_that_nobody_answers_leaves_nothing(tmp_path: Path, leaf: tuple[str, ...]) -> None:
    data = tmp_path / "new" / "data"
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # Nobody listens there, and nobody else gets the port meanwhile.
        address = f"127.0.0.1:{closed.getsockname()[1]}"
        run = await failed("join", "--bootstrap", address, "--data", str(data), *leaf)
    assert "cannot join" in run.err, run
    assert [] == list(tmp_path.iterdir())


@pytest.mark.parametrize("option", ["--listen", "--metrics", "--web"])
async def test_a_start_at_a_port_in_use_leaves_nothing_and_the_next_is_a_first_start(
    tmp_path: Path, option: str
) -> None:
    data = tmp_path / "data"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        listen = () if option == "--listen" else ("--listen", "127.0.0.1:0")
        run = await failed("start", URL, option, address, *listen, "--data", str(data), "--partition", "url")
    assert "cannot listen" in run.err or "in use" in run.err, run
    assert [] == list(tmp_path.iterdir())
    process = await joinable(URL, data=data)
    await until(lambda: (data / "swarm.key").exists(), process)
    run = await interrupted(process)
    assert (run.code, "had no key" in run.err, "another seed" in run.err) == (11, False, False), run


async def test_a_job_file_that_is_wrong_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "job.toml").write_text("no_such_key = 1\n")
    await failed("start", URL, "--job", str(tmp_path / "job.toml"), "--data", str(tmp_path / "data"))
    assert ["job.toml"] == [path.name for path in tmp_path.iterdir()]
