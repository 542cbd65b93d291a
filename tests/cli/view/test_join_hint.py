"""Test that the command which a peer prints for others to join works as printed."""

import asyncio
import json
import shlex
from pathlib import Path

from kadcrawl.cli.view.join_hint import how_to_join
from kadcrawl.members.swarm_key import SwarmKey
from kadcrawl.settings.config import Config
from tests.support.swarm.command import interrupted, kadcrawl, start

NO_KEY = {"KADCRAWL_KEY": ""}


async def printed(process: asyncio.subprocess.Process) -> list[str]:
    """Return the arguments of the command that a peer just started prints."""
    assert process.stderr is not None
    async with asyncio.timeout(60):
        await process.stderr.readuntil(b"others join with: ")
        program, *arguments = shlex.split((await process.stderr.readline()).decode())
    assert program == "kadcrawl"
    return arguments


async def test_what_is_printed_can_be_pasted_on_the_same_machine(tmp_path: Path) -> None:
    here, elsewhere = tmp_path / "a place", tmp_path / "elsewhere"
    here.mkdir()
    elsewhere.mkdir()
    options = ["--listen", "127.0.0.1:0", "--data", "crawl", "--allow-network", "127.0.0.0/8"]
    one = await start("start", *options, env=NO_KEY, directory=here)
    two = await start(*await printed(one), env=NO_KEY, directory=elsewhere)
    three = await start(*await printed(two), env=NO_KEY, directory=elsewhere)
    last = await printed(three)
    assert ["crawl"] == [path.name for path in here.iterdir()]
    assert ["crawl-data", "crawl-data-2"] == sorted(path.name for path in elsewhere.iterdir())
    assert "--key-file" not in last
    assert last[-4:-2] == ["--allow-network", "127.0.0.0/8"], "what one joins with is handed on"
    status = await kadcrawl("status", "--data", str(elsewhere / "crawl-data-2"), "--json", env=NO_KEY)
    assert 3 == len(json.loads(status.out)["peers"])
    for process in (three, two, one):
        assert (await interrupted(process)).code == 11


def test_for_other_machines_it_says_what_to_copy_and_listens_there(tmp_path: Path) -> None:
    config = Config(data=tmp_path / "it's", swarm_key=SwarmKey.generate(), allow_networks=("10.0.0.0/8",))
    for address, bootstrap, listen in (
        (("10.0.0.1", 4160), "10.0.0.1:4160", "0.0.0.0:4160"),
        (("fd00::1", 7), "[fd00::1]:7", "[::]:7"),
    ):
        where, _, command = how_to_join(address, config, ["hooks:item"]).partition(", others join with: ")
        assert where == f"on other machines, with a copy of {tmp_path}/it's/swarm.key"
        assert shlex.split(command) == [
            *("kadcrawl", "join", "--key-file", "swarm.key", "--listen", listen),
            *("--allow-network", "10.0.0.0/8", "--hook", "hooks:item", "--bootstrap", bootstrap),
        ]


def test_without_a_key_none_is_named(tmp_path: Path) -> None:
    config = Config(data=tmp_path / "one")
    command = how_to_join(("127.0.0.1", 4160), config).partition(": ")[2]
    assert command.startswith("kadcrawl join --insecure --data ")
    assert "--key-file" not in command


def test_where_the_directory_is_not_found_by_the_address_the_command_names_key_and_directory(tmp_path: Path) -> None:
    config = Config(data=tmp_path / "one", swarm_key=SwarmKey.generate())
    config.data.mkdir()
    command = shlex.split(how_to_join(("127.0.0.1", 1), config).partition(": ")[2])
    key, place = str(tmp_path / "one" / "swarm.key"), str(tmp_path / "one-2")
    assert ["kadcrawl", "join", "--key-file", key, "--data", place, "--bootstrap", "127.0.0.1:1"] == command
