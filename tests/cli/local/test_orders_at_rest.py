"""An order at rest is in the journals of all peers of a directory, and later than all that they knew."""

import asyncio
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kadcrawl import ConfigError, Job
from kadcrawl.cli.app import main
from kadcrawl.cli.local.orders_at_rest import give_at_rest
from kadcrawl.cli.targets import rests
from kadcrawl.errors import StartError
from kadcrawl.link.wire.order_messages import StandingOrder
from kadcrawl.peer.directory import Directory
from kadcrawl.peer.swarm.standing_orders import read_standing_orders
from kadcrawl.system.clock import wall
from tests.support.swarm.at_rest import directory_at_rest, store_of

PAUSE = StandingOrder("pause", "a.example", 1.0, user="ann")


def orders_in(directory: Path) -> list[StandingOrder]:
    with store_of(directory) as store:
        return read_standing_orders(store)


async def given(directories: list[Path], *orders: StandingOrder) -> list[StandingOrder]:
    return await asyncio.to_thread(give_at_rest, directories, orders)


async def test_an_order_is_later_than_all_that_any_peer_of_the_directory_knew(tmp_path: Path) -> None:
    ahead = int(wall() * 1000) + 60_000
    resumed = StandingOrder("pause", "a.example", None, ahead)
    slowed = StandingOrder("delay", "b.example", 5.0, 7)
    one = await directory_at_rest(tmp_path / "one", slowed, node_id=b"o" * 20)
    two = await directory_at_rest(tmp_path / "two", resumed)
    assert rests([one, two])
    known = await given([one, two], PAUSE)
    assert known == orders_in(one) == orders_in(two)
    assert [("pause", 1.0, ahead + 1, b"o" * 20, "ann"), ("delay", 5.0, 7, bytes(20), "")] == [
        (order.kind, order.value, order.stamp, order.peer, order.user) for order in known
    ]


async def test_an_order_has_the_normal_name_and_a_meaning_for_the_job_of_the_directory(tmp_path: Path) -> None:
    one = await directory_at_rest(tmp_path / "one", job=Job(seeds=("http://a.example/",), partition="domain"))
    with pytest.raises(ConfigError, match=r"name example.org, not www.example.org"):
        await given([one], StandingOrder("pause", "www.example.org", 1.0))
    with pytest.raises(ConfigError, match="cannot change while the crawl runs"):
        await given([one], StandingOrder("set", "partition", 1.0))
    assert [] == orders_in(one)
    known = await given([one], StandingOrder("pause", "https://Example.org/", 1.0))
    assert ["example.org"] == [order.about for order in known]


async def test_a_directory_in_use_takes_its_orders_from_its_peer_only(tmp_path: Path) -> None:
    one, two = await directory_at_rest(tmp_path / "one"), await directory_at_rest(tmp_path / "two")
    lock = Directory(two)
    try:
        assert not rests([one, two])
        with pytest.raises(StartError, match="another peer is running"):
            await given([one, two], PAUSE)
    finally:
        lock.close()
    assert [] == orders_in(one) == orders_in(two)
    assert rests([one, two])
    assert not rests([tmp_path / "none"])


async def test_the_commands_give_their_orders_to_a_directory_at_rest(tmp_path: Path) -> None:
    job = Job(seeds=("http://a.example/",), max_pages=7)
    data = str(await directory_at_rest(tmp_path / "one", job=job, node_id=b"o" * 20))
    for arguments, said in (
        ("set delay 0.01", "delay is 0.01s\n"),
        ("set max-pages 9", "max-pages is 9\n"),
        ("site exclude a.example", "a.example is excluded\n"),
        ("site drop b.example", f"the pending URLs of b.example are dropped by kadcrawl start --data {data}\n"),
        ("scope remove /x/", "/x/ is out of scope\n"),
        ("set max-pages default", "max-pages is as the crawl began again\n"),
    ):
        done = await run(*arguments.split(), "--data", data)
        assert (0, said) == (done.exit_code, done.stdout), done.output
        assert f"the order is journaled, and holds when kadcrawl start --data {data} goes on" in done.stderr
        assert "--peer HOST:PORT" in done.stderr, "other peers of its swarm may run"
    listed = await run("site", "ls", "--data", data)
    assert ["/x/ is out of scope", "a.example is excluded", "delay is 0.01s"] == [
        line.partition(",")[0] for line in listed.stdout.splitlines()
    ]
    listed = await run("site", "ls", "--json", "--data", data)
    assert ["scope", "exclude", "set"] == [order["kind"] for order in json.loads(listed.stdout)["orders"]]
    for arguments, why in (
        ("site ls a.example", "are counted by running peers, and none runs"),
        ("set max-time 9s", "the crawl began without --max-time"),
        ("site pause *", "`kadcrawl pause` pauses the whole swarm"),
    ):
        refused = await run(*arguments.split(), "--data", data)
        assert (2, True) == (refused.exit_code, why in refused.stderr), refused.output


async def run(*arguments: str) -> Result:
    """Run a command in a thread, as it has a loop of its own."""
    return await asyncio.to_thread(CliRunner().invoke, main, arguments)
