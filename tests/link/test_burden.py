"""What one member has a peer handle at a time, by however many connections, living and dead."""

import asyncio
from pathlib import Path

import pytest

from kadcrawl.link import incoming as module
from kadcrawl.link.client import LinkClient
from kadcrawl.link.incoming import Burden
from kadcrawl.link.messages import Hello, Ok
from tests.link.test_gate import credentials, served
from tests.peer.conftest import until


async def test_what_is_too_much_waits_for_room_and_one_alone_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BURDEN_BYTES_MAX", 10)
    burden = Burden()
    await burden.add(25)
    waiting = [asyncio.create_task(burden.add(count)) for count in (6, 4, 1)]
    await asyncio.sleep(0.01)
    assert not any(task.done() for task in waiting)
    burden.drop(25)
    await asyncio.sleep(0.01)
    assert [task.done() for task in waiting] == [True, True, False]
    burden.drop(4)
    await asyncio.wait_for(waiting[2], 1)


async def test_no_member_has_more_handled_by_more_connections_or_by_closing_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with served(tmp_path) as (server, _, address):
        inside, open_ = 0, asyncio.Event()

        async def slow(_: Hello) -> Ok:
            nonlocal inside
            inside += 1
            await open_.wait()
            return Ok()

        server._handlers[Hello] = slow
        greedy = credentials(tmp_path)
        asked: list[asyncio.Task[Ok]] = []

        async def client() -> LinkClient:
            one = LinkClient(1_000_000, greedy)
            await one.open()
            asked.extend(asyncio.create_task(one.ask(address, Hello(1), Ok, 10)) for _ in range(4))
            return one

        monkeypatch.setattr(module, "BURDEN_BYTES_MAX", 1)
        clients = [await client(), await client()]
        await until(lambda: inside == 1)
        await asyncio.sleep(0.1)
        assert inside == 1
        await clients[0].close()
        clients.append(await client())
        await asyncio.sleep(0.1)
        assert inside == 1
        other = LinkClient(1_000_000, credentials(tmp_path))
        await other.open()
        answer = asyncio.create_task(other.ask(address, Hello(1), Ok, 10))
        await until(lambda: inside == 2)
        open_.set()
        assert await answer == Ok()
        results = await asyncio.gather(*asked, return_exceptions=True)
        assert results.count(Ok()) == 8, "those of the clients that are still there"
        for one in (other, *clients[1:]):
            await one.close()
