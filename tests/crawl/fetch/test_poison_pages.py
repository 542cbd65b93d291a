"""Test that a page during which a peer died is read once more, alone, and then left alone."""

import asyncio
from pathlib import Path

import pytest

from kadcrawl.crawl.fetch.poison_pages import CRASHES_MAX, FILE, READING_MAX, SUSPECTS_MAX, PoisonPages
from tests.support.swarm.poison_pages import dies_reading

BAD, GOOD, FINE = (f"http://example.com/{name}" for name in ("bad", "good", "fine"))


async def reads(deadly: PoisonPages, url: str) -> None:
    """Undo the coding of a page, and read it."""
    for _ in range(2):
        async with deadly.reading(url):
            await asyncio.sleep(0)
    deadly.was_read(url)


async def test_a_page_may_kill_a_peer_twice(tmp_path: Path) -> None:
    for death in range(CRASHES_MAX):
        deadly = PoisonPages(tmp_path)
        assert not deadly.is_poison(BAD), death
        deadly.close()
        await dies_reading(tmp_path, BAD)
    for _ in range(2):
        deadly = PoisonPages(tmp_path)
        assert deadly.is_poison(BAD)
        assert not deadly.is_poison(GOOD)
        deadly.close()


async def test_what_was_read_to_its_end_killed_nobody(tmp_path: Path) -> None:
    for _ in range(3):
        deadly = PoisonPages(tmp_path)
        await reads(deadly, GOOD)
        await dies_reading(tmp_path, BAD)
    deadly = PoisonPages(tmp_path)
    assert not deadly.is_poison(GOOD)
    assert deadly.is_poison(BAD)


async def test_a_page_that_is_read_after_all_is_no_suspect_any_more(tmp_path: Path) -> None:
    await dies_reading(tmp_path, GOOD)
    deadly = PoisonPages(tmp_path)
    await reads(deadly, GOOD)
    deadly.close()
    await dies_reading(tmp_path, GOOD)
    assert not PoisonPages(tmp_path).is_poison(GOOD)


async def test_what_was_read_only_in_part_is_a_suspect_still(tmp_path: Path) -> None:
    for _ in range(2):
        deadly = PoisonPages(tmp_path)
        async with deadly.reading(BAD):
            pass
        deadly.close()
        await dies_reading(tmp_path, BAD)
    assert PoisonPages(tmp_path).is_poison(BAD)


async def test_a_page_read_twice_at_a_time_has_killed_once(tmp_path: Path) -> None:
    await dies_reading(tmp_path, GOOD, GOOD)
    assert not PoisonPages(tmp_path).is_poison(GOOD)


async def test_of_several_suspects_only_the_one_that_is_read_is_blamed(tmp_path: Path) -> None:
    await dies_reading(tmp_path, GOOD, BAD)
    deadly = PoisonPages(tmp_path)
    begun = deadly.reading(BAD)
    await begun.__aenter__()
    waiting = [asyncio.create_task(reads(deadly, url)) for url in (GOOD, FINE)]
    await asyncio.sleep(0.01)
    assert not any(one.done() for one in waiting)
    deadly.close()
    for one in waiting:
        one.cancel()
    deadly = PoisonPages(tmp_path)
    assert [deadly.is_poison(url) for url in (BAD, GOOD, FINE)] == [True, False, False]


async def test_a_suspect_is_not_blamed_for_what_kills_for_the_first_time(tmp_path: Path) -> None:
    await dies_reading(tmp_path, GOOD, BAD)
    deadly = PoisonPages(tmp_path)
    begun, suspect = deadly.reading(FINE), deadly.reading(GOOD)
    await begun.__aenter__()
    waiting = asyncio.create_task(suspect.__aenter__())
    await asyncio.sleep(0.01)
    assert not waiting.done()
    deadly.close()  # FINE has killed.
    waiting.cancel()
    deadly = PoisonPages(tmp_path)
    assert not any(deadly.is_poison(url) for url in (GOOD, BAD, FINE))
    begun = deadly.reading(FINE)
    await begun.__aenter__()
    waiting = asyncio.create_task(reads(deadly, GOOD))
    await asyncio.sleep(0.01)
    assert not waiting.done()
    await begun.__aexit__(None, None, None)
    await asyncio.wait_for(waiting, 60)
    await asyncio.wait_for(reads(deadly, BAD), 60)
    deadly.close()


async def test_more_than_are_noted_are_read_all_the_same(tmp_path: Path) -> None:
    urls = [f"{GOOD}/{number}" for number in range(READING_MAX + 1)]
    deadly = PoisonPages(tmp_path)
    for _ in range(2):  # All places are free again after the first time.
        begun = [deadly.reading(url) for url in urls]
        for one in begun:
            await one.__aenter__()
        noted = (tmp_path / FILE).read_bytes()
        assert READING_MAX == sum(noted[17 * place] for place in range(READING_MAX))
        for one in begun:
            await one.__aexit__(None, None, None)
    assert not any((tmp_path / FILE).read_bytes())
    deadly.close()


async def test_the_latest_suspects_are_remembered(tmp_path: Path) -> None:
    for _ in range(2):
        await dies_reading(tmp_path, BAD)
    await dies_reading(tmp_path, *[f"{GOOD}/{number}" for number in range(SUSPECTS_MAX - 1)])
    assert PoisonPages(tmp_path).is_poison(BAD)
    await dies_reading(tmp_path, FINE)
    assert not PoisonPages(tmp_path).is_poison(BAD)


@pytest.mark.parametrize("content", [b"", b"\1", bytes(100), b"\xff" * 20_000], ids=["empty", "cut", "short", "noise"])
async def test_a_damaged_file_stops_nothing(tmp_path: Path, content: bytes) -> None:
    (tmp_path / FILE).write_bytes(content)
    deadly = PoisonPages(tmp_path)
    await reads(deadly, GOOD)
    assert not deadly.is_poison(GOOD)
    deadly.close()


async def test_without_a_file_nothing_is_noted(tmp_path: Path) -> None:
    for directory in (None, tmp_path / "missing"):
        deadly = PoisonPages(directory)
        await reads(deadly, GOOD)
        assert not deadly.is_poison(GOOD)
        deadly.close()
    assert [*tmp_path.iterdir()] == []
