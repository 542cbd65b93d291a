"""Test the limits on the work that members cause at a time.

The limits hold for any number of connections, live or dead, and for any number of IDs.
"""

import asyncio
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from kadcrawl.link import admission_control
from kadcrawl.link.admission_control import AdmissionControl, PeerQuota
from kadcrawl.link.client import LinkClient
from kadcrawl.link.client_connection import NUMBER_BYTES
from kadcrawl.link.wire.messages import Hello, Ok
from tests.support.links.link_ends import BYTES_MAX, frames, link
from tests.support.links.member_links import credentials, served
from tests.support.waiting import until


def crowd(part: Callable[[PeerQuota], None] = lambda _: None) -> AdmissionControl:
    return AdmissionControl(part)


async def test_what_is_too_much_waits_for_room_and_one_alone_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission_control, "PEER_BYTES_MAX", 10)
    burden = PeerQuota(crowd())
    await burden.add(25)
    waiting = [asyncio.create_task(burden.add(count)) for count in (6, 4, 1)]
    await asyncio.sleep(0.01)
    assert not any(task.done() for task in waiting)
    burden.drop(25)
    await until(lambda: waiting[0].done() and waiting[1].done())
    await asyncio.sleep(0.01)
    assert not waiting[2].done()
    burden.drop(4)
    await asyncio.wait_for(waiting[2], 60)


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

        monkeypatch.setattr(admission_control, "PEER_BYTES_MAX", 1)
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


async def test_of_simultaneous_requests_a_few_begin_in_each_round_of_the_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(admission_control, "QUESTIONS_PER_ROUND_MAX", 1)
    burden, rounds = PeerQuota(crowd()), 0
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
    monkeypatch.setattr(admission_control, "QUESTIONS_PER_ROUND_MAX", 1)
    burden = PeerQuota(crowd())
    asked = [asyncio.create_task(burden.turn()) for _ in range(3)]
    await asyncio.sleep(0)
    asked[1].cancel()
    await asyncio.wait_for(asked[2], 60)
    assert asked[1].cancelled()


async def test_who_leaves_answers_unread_has_no_more_questions_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission_control, "UNSENT_BYTES_MAX", 10)
    monkeypatch.setattr(admission_control, "QUESTIONS_PER_ROUND_MAX", 1)
    burden = PeerQuota(crowd())
    begun = 0

    async def question() -> None:
        nonlocal begun
        await burden.turn()
        begun += 1
        burden.hold_answer(6)

    asked = [asyncio.create_task(question()) for _ in range(5)]
    for expected in (2, 3, 4, 5):
        for _ in range(50):
            await asyncio.sleep(0)
        assert expected == begun
        burden.release_answer(6)
    await asyncio.gather(*asked)


# --- under many IDs


async def test_a_few_requests_of_all_peers_begin_per_round_and_rare_askers_first() -> None:
    together = crowd()
    greedy, seldom = [PeerQuota(together) for _ in range(50)], PeerQuota(together)
    begun: list[tuple[int, PeerQuota]] = []
    rounds = 0

    async def question(burden: PeerQuota) -> None:
        await burden.turn()
        begun.append((rounds, burden))

    async def pass_rounds(count: int) -> None:
        nonlocal rounds
        for _ in range(count):
            rounds += 1
            await asyncio.sleep(0)

    asked = [asyncio.create_task(question(burden)) for _ in range(20) for burden in greedy]
    await pass_rounds(60)
    assert len({burden for _, burden in begun}) == len(greedy), "each has had its turn"
    asked.append(asyncio.create_task(question(seldom)))
    came = rounds
    await pass_rounds(5)
    assert seldom in [burden for at, burden in begun if at > came], "it goes before those who had turns since it came"
    await pass_rounds(1000)
    assert all(task.done() for task in asked)
    in_round = Counter(at for at, _ in begun)
    assert max(in_round.values()) <= 2 * admission_control.QUESTIONS_PER_ROUND_MAX
    assert (
        max(in_round[at] + in_round[at + 1] + in_round[at + 2] for at in in_round)
        <= 4 * admission_control.QUESTIONS_PER_ROUND_MAX
    )


async def test_a_crowd_of_ids_leaves_room_for_the_question_of_one_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission_control, "QUESTIONS_BYTES_MAX", 1000)
    together = crowd()
    greedy = [PeerQuota(together) for _ in range(9)]
    asked = [asyncio.create_task(burden.add(10)) for _ in range(50) for burden in greedy]
    for _ in range(20):
        await asyncio.sleep(0)
    inside = sum(task.done() for task in asked)
    assert 10 * inside <= 900, "who shares it with eight others has a tenth"
    await asyncio.wait_for(PeerQuota(together).add(10), 60)
    while inside < len(asked):
        greedy[inside % len(greedy)].drop(10)
        await asyncio.sleep(0)
        assert sum(task.done() for task in asked) >= inside
        inside += 1


async def test_who_needs_less_goes_before_who_has_much_already(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission_control, "QUESTIONS_BYTES_MAX", 100)
    together = crowd()
    greedy, honest = PeerQuota(together), PeerQuota(together)
    await greedy.add(40)
    waiting = asyncio.create_task(greedy.add(20))
    large = asyncio.create_task(honest.add(31))
    await asyncio.sleep(0)
    gone = asyncio.create_task(honest.add(1))
    await asyncio.sleep(0)
    gone.cancel()
    greedy.drop(5)
    await asyncio.wait_for(large, 60)
    assert not waiting.done()
    honest.drop(31)
    greedy.drop(35)
    await asyncio.wait_for(waiting, 60)


async def test_who_goes_in_the_instant_it_is_let_in_keeps_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission_control, "QUESTIONS_BYTES_MAX", 10)
    together = crowd()
    burden = PeerQuota(together)
    await burden.add(10)
    waiting = asyncio.create_task(burden.add(10))
    await asyncio.sleep(0)
    burden.drop(10)
    waiting.cancel()
    await asyncio.wait([waiting])
    await asyncio.wait_for(PeerQuota(together).add(10), 60)


@pytest.mark.parametrize(("count", "parted"), [(40, False), (41, True)])
async def test_when_too_much_waits_who_has_most_of_it_is_parted_from(
    monkeypatch: pytest.MonkeyPatch, count: int, parted: bool
) -> None:
    monkeypatch.setattr(admission_control, "WAITING_BYTES_MAX", 100)
    ended: list[PeerQuota] = []
    together = crowd(ended.append)
    few, most = PeerQuota(together), PeerQuota(together)
    most.hold(30)
    most.hold_answer(30)
    few.hold_answer(count)
    assert [most] * parted == ended
    most.hold(-30)
    most.release_answer(30)
    few.hold(100 - count)
    assert [most] * parted == ended


async def test_who_has_much_for_a_moment_stays_and_who_has_some_for_long_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise many beginnings of small requests would keep out a peer with a larger request."""
    monkeypatch.setattr(admission_control, "WAITING_BYTES_MAX", 100)
    ended: list[PeerQuota] = []
    together = crowd(ended.append)
    some = [PeerQuota(together) for _ in range(4)]
    for one in some:
        one.hold(20)
    await asyncio.sleep(0.05)
    some[0].hold(-20)
    some[0].hold(20)  # It has begun another.
    large = PeerQuota(together)
    large.hold(40)
    assert ended == [some[1]]


async def test_questions_that_never_come_in_full_cost_their_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission_control, "WAITING_BYTES_MAX", 20_000)
    async with link() as (server, client, address):
        assert await client.ask(address, Hello(1), Ok, 5) == Ok()
        (honest,) = server._incoming
        async with frames(address) as one, frames(address) as other:
            for socket, count in ((one, 9_000), (other, 8_000)):
                writer = socket._writer.transport
                writer.write(bytes([0x82, 0x80 | 126, *(9_990).to_bytes(2, "big"), 0, 0, 0, 0]) + bytes(count))
            await until(lambda: server._admission_control is not None and server._admission_control._waits == 17_016)
            assert len(server._incoming) == 3
            async with frames(address) as third:
                third._writer.transport.write(
                    bytes([0x82, 0xFE, *(9_990).to_bytes(2, "big"), 0, 0, 0, 0]) + bytes(8_000)
                )
                await until(lambda: len(server._incoming) == 3)
                assert (await one.receive()).data is None, "of it most was there"
                assert await client.ask(address, Hello(1), Ok, 5) == Ok()
                assert honest in server._incoming
                for socket in (other, third):  # Closed in due form, each would wait ten seconds for an answer.
                    socket._writer.transport.abort()
        await until(lambda: len(server._incoming) == 1)
        assert server._admission_control is not None
        assert (0, {}) == (server._admission_control._waits, server._admission_control._whose)


async def test_what_was_read_and_has_no_room_goes_with_its_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission_control, "QUESTIONS_BYTES_MAX", 5_000)
    open_ = asyncio.Event()

    async def slow(_: Hello) -> Ok:
        await open_.wait()
        return Ok()

    async with link(slow=slow) as (server, client, address):
        asked = asyncio.create_task(client.ask(address, Hello(1), Ok, 10))
        await until(lambda: server._answering)
        async with frames(address) as socket:
            await socket.send_bytes(bytes(9_000))
            await until(lambda: server._admission_control is not None and server._admission_control._waits > 9_000)
            socket._writer.transport.abort()
            await until(lambda: server._admission_control is not None and server._admission_control._waits == 0)
        assert len(server._incoming) == 1
        open_.set()
        assert await asked == Ok()
        assert await client.ask(address, Hello(1), Ok, 5) == Ok()


async def test_of_large_and_small_questions_and_answers_nothing_is_left_counted() -> None:
    async with link() as (server, client, address), frames(address) as socket:
        for count in (NUMBER_BYTES, 125, 126, 4_096, 4_097, BYTES_MAX):
            await socket.send_bytes(bytes(count))
            assert await socket.receive_bytes() == bytes(NUMBER_BYTES)
        assert await client.ask(address, Hello(1), Ok, 5) == Ok()
        await until(lambda: not server._answering)
        assert server._admission_control is not None
        assert (0, 0) == (server._admission_control._waits, server._admission_control._bytes)
        assert [incoming._read for incoming in server._incoming] == [0, 0]
