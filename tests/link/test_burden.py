"""What one member has a peer handle at a time, by however many connections, living and dead."""

import asyncio
from pathlib import Path

import pytest

from kadcrawl.link import burden as module
from kadcrawl.link.burden import Burden
from kadcrawl.link.client import LinkClient
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


async def test_of_questions_that_come_together_a_few_begin_in_each_round_of_the_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "AT_ONCE_MAX", 1)
    burden, rounds = Burden(), 0
    begun: list[tuple[int, int]] = []

    async def question(number: int) -> None:
        await burden.turn()
        begun.append((rounds, number))

    asked = [asyncio.create_task(question(number)) for number in range(20)]
    asked[5].cancel()
    while not all(task.done() for task in asked):
        rounds += 1
        await asyncio.sleep(0)
        if rounds == 5:
            asked[10].cancel()
    assert [number for number in range(20) if number not in (5, 10)] == [number for _, number in begun]
    assert len({at for at, _ in begun}) == len(begun)


async def test_who_is_cancelled_in_the_instant_of_its_turn_holds_up_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "AT_ONCE_MAX", 1)
    burden = Burden()
    asked = [asyncio.create_task(burden.turn()) for _ in range(3)]
    await asyncio.sleep(0)
    asked[1].cancel()
    await asyncio.wait_for(asked[2], 5)
    assert asked[1].cancelled()


async def test_who_leaves_answers_unread_has_no_more_questions_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "UNSENT_BYTES_MAX", 10)
    monkeypatch.setattr(module, "AT_ONCE_MAX", 1)
    burden = Burden()
    begun = 0

    async def question() -> None:
        nonlocal begun
        await burden.turn()
        begun += 1
        burden.hold(6)

    asked = [asyncio.create_task(question()) for _ in range(5)]
    for expected in (2, 3, 4, 5):
        for _ in range(50):
            await asyncio.sleep(0)
        assert expected == begun
        burden.release(6)
    await asyncio.gather(*asked)
