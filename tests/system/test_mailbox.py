"""A mailbox hands out each entry once, in the order of arrival."""

import asyncio

from kadcrawl.system.mailbox import Mailbox


async def test_entries_come_in_the_order_of_arrival() -> None:
    box: Mailbox[int] = Mailbox()
    for number in range(3):
        box.put(number)
    assert len(box) == 3
    assert [0, 1, 2] == [await box.get() for _ in range(3)]
    assert len(box) == 0


async def test_a_reader_waits_for_the_next_entry() -> None:
    box: Mailbox[int] = Mailbox()
    reading = asyncio.create_task(box.get())
    await asyncio.sleep(0)
    assert not reading.done()
    box.put(7)
    assert await reading == 7


async def test_of_two_readers_each_gets_an_entry_and_a_canceled_reader_takes_none() -> None:
    box: Mailbox[int] = Mailbox()
    gone, *readers = [asyncio.create_task(box.get()) for _ in range(3)]
    await asyncio.sleep(0)
    gone.cancel()
    box.put(1)
    box.put(2)
    assert [1, 2] == sorted(await asyncio.gather(*readers))
    assert len(box) == 0
