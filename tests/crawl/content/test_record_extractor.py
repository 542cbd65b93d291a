"""Test that a failing hook costs only the records of its page. The next page has its own."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from kadcrawl.crawl.content.page import Page
from kadcrawl.crawl.content.record_extractor import WorkerExtraction
from kadcrawl.crawl.content.record_worker import Ask, Begin, framed
from kadcrawl.errors import StartError
from kadcrawl.settings.limits import Limits
from kadcrawl.settings.page_rules import Field, RecordRule

PAGE = Page("http://a.test/", 200, None, {}, b"<title>T</title>", "text/html", 1, (), "", "next_link")
SOUND = {"title": "T", "role": "next_link", "of": ["text/html", "utf-8"]}
Make = Callable[..., Awaitable[WorkerExtraction]]


@pytest.fixture
async def start_extraction() -> AsyncIterator[Make]:
    """Return a coroutine function: make(*names of hooks, **limits); rule n is the n-th hook."""
    async with AsyncExitStack() as stack:

        async def started(*hooks: str, **limits: float) -> WorkerExtraction:
            rules = tuple(RecordRule(pattern=".", hook=f"tests.support.hooks:{hook}") for hook in hooks)
            extraction = WorkerExtraction(rules, Limits(**limits))  # type: ignore[arg-type]
            stack.push_async_callback(extraction.close)
            await extraction.start()
            return extraction

        yield started


def pid_of(extraction: WorkerExtraction) -> int:
    assert extraction._process is not None
    return extraction._process.pid


async def test_no_page_is_copied_before_its_turn(start_extraction: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    extraction = await start_extraction("title")
    copies: list[object] = []

    def copied(message: Ask) -> bytes:
        copies.append(message)
        return framed(message)

    monkeypatch.setattr("kadcrawl.crawl.content.record_extractor.framed", copied)
    waiting = [asyncio.create_task(extraction.extract(0, PAGE)) for _ in range(5)]
    await waiting[0]
    assert len(copies) <= 2
    await asyncio.gather(*waiting)
    assert len(copies) == 5


@pytest.mark.parametrize(
    ("hook", "why"),
    [
        ("raises", "ValueError: as it was told (hooks.py:"),
        ("exits", "SystemExit: 3 (hooks.py:"),
        ("dies", "the worker ended with exit status 3"),
        ("loops", "timeout: not done after 1 s"),
        ("allocates", "out of memory"),
    ],
)
async def test_a_hook_costs_its_page_and_no_other(start_extraction: Make, hook: str, why: str) -> None:
    extraction = await start_extraction("title", hook, record_time_s=1.0)
    for rule in (0, 1, 0, 1, 0):
        found = await extraction.extract(rule, PAGE)
        if rule:
            assert not found.records
            assert found.error is not None
            assert found.error.startswith(why)
        else:
            assert [SOUND] == [json.loads(bytes(record)) for record in found.records]


async def test_a_hook_sees_no_password_in_the_environment(
    start_extraction: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KADCRAWL_SINK", "mongodb://me:secret@a.example/b")
    extraction = await start_extraction("sees")
    found = await extraction.extract(0, PAGE)
    assert json.loads(bytes(found.records[0])) == {"env": [], "path": [os.getcwd()]}


async def test_a_page_does_not_pay_for_what_pages_before_it_left(start_extraction: Make) -> None:
    extraction = await start_extraction("grows", record_memory_bytes=512 << 20)
    found = [await extraction.extract(0, PAGE) for _ in range(6)]
    assert [None] * 6 == [one.error for one in found]
    pages = [json.loads(bytes(one.records[0]))["pages"] for one in found]
    assert [1, 2] == pages[:2]
    assert pages.count(1) > 1  # In a new worker.


async def test_the_first_page_does_not_pay_for_the_import_of_selectors(start_extraction: Make) -> None:
    extraction = await start_extraction("loaded")
    found = await extraction.extract(0, PAGE)
    assert [{"parsel": True}] == [json.loads(bytes(record)) for record in found.records]


async def test_a_worker_killed_from_outside_is_replaced_and_the_page_tried_again(start_extraction: Make) -> None:
    extraction = await start_extraction("title")
    first = pid_of(extraction)
    await extraction.extract(0, PAGE)
    os.kill(first, signal.SIGKILL)
    found = await extraction.extract(0, PAGE)
    assert found.error is None
    assert first != pid_of(extraction)


async def test_a_call_that_is_cancelled_leaves_no_answer_for_the_next_page(start_extraction: Make) -> None:
    extraction = await start_extraction("loops", "title")
    looping = asyncio.create_task(extraction.extract(0, PAGE))
    await asyncio.sleep(0.1)
    looping.cancel()
    await asyncio.gather(looping, return_exceptions=True)
    found = await extraction.extract(1, PAGE)
    assert [SOUND] == [json.loads(bytes(record)) for record in found.records]


async def test_a_page_too_large_for_a_tree_is_not_sent(start_extraction: Make) -> None:
    extraction = await start_extraction("title", record_page_bytes_max=10)
    assert "the page has more than 10 bytes" == (await extraction.extract(0, PAGE)).error


async def test_the_worker_ends_with_its_peer(start_extraction: Make) -> None:
    extraction = await start_extraction("title")
    process = extraction._process
    assert process is not None
    assert process.stdin is not None
    process.stdin.close()
    async with asyncio.timeout(60):
        assert 0 == await process.wait()


@pytest.mark.parametrize("count", [0, 2, 10])
def test_a_worker_whose_peer_dies_as_it_starts_says_nothing(count: int) -> None:
    rules = framed(Begin((RecordRule(pattern=".", hook="tests.support.hooks:title"),), Limits()))
    command = [sys.executable, "-c", "from kadcrawl.crawl.content.record_worker import main; main()"]
    run = subprocess.run(command, input=rules[:count], capture_output=True, timeout=60, check=False)
    assert (0, b"", b"") == (run.returncode, run.stdout, run.stderr)


@pytest.mark.parametrize(
    ("hook", "why"),
    [
        ("tests.support.hooks:no_such", "module tests.support.hooks has no function no_such"),
        ("tests.no_such_module:hook", "ModuleNotFoundError: No module named 'tests.no_such_module'"),
    ],
)
async def test_a_hook_that_is_not_here_is_a_clear_error(hook: str, why: str) -> None:
    extraction = WorkerExtraction((RecordRule(pattern=".", hook=hook),), Limits())
    with pytest.raises(StartError, match=f"this machine lacks a hook of the job: {why}"):
        await extraction.start()


async def test_a_hook_is_found_in_the_current_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_hooks.py").write_text("def item(page):\n    return {'url': page.url}\n")
    monkeypatch.setenv("PYTHONPATH", str(Path.cwd()))
    monkeypatch.chdir(tmp_path)
    extraction = WorkerExtraction((RecordRule(pattern=".", hook="my_hooks:item"),), Limits())
    await extraction.start()
    found = await extraction.extract(0, PAGE)
    await extraction.close()
    assert b'{"url":"http://a.test/"}' == bytes(found.records[0])


async def test_an_expression_that_takes_too_long_is_ended() -> None:
    rule = RecordRule(pattern=".", fields=(Field("n", "xpath://*[count(//*[count(//*) > 1]) > 1]"),))
    extraction = WorkerExtraction((rule,), Limits(record_time_s=0.5))
    await extraction.start()
    page = Page("http://a.test/", 200, None, {}, b"<p></p>" * 20_000, "text/html", 1, (), "")
    found = await extraction.extract(0, page)
    await extraction.close()
    assert "timeout: not done after 0.5 s" == found.error
