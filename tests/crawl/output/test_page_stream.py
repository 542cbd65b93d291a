"""Pages wait for their reader, a bounded amount of them."""

import asyncio

from kadcrawl.crawl.content.page import Page
from kadcrawl.crawl.output.page_stream import BUFFERED_BYTES_MAX, PageStream


def page_of_size(size: int) -> Page:
    return Page("http://a.example/", 200, None, {}, bytes(size), "", 0, (), "")


async def test_large_pages_wait_for_the_reader_although_they_are_few() -> None:
    stream = PageStream()
    await stream.put(page_of_size(BUFFERED_BYTES_MAX))
    second = asyncio.create_task(stream.put(page_of_size(1)))
    for _ in range(5):
        await asyncio.sleep(0)
    assert not second.done()
    assert await stream.get() is not None
    await second


async def test_a_page_larger_than_the_buffer_passes() -> None:
    stream = PageStream()
    await stream.put(page_of_size(BUFFERED_BYTES_MAX + 1))
    await stream.end()
    assert await stream.get() is not None
    assert await stream.get() is None
