"""Test what a peer's process does besides the peer."""

import asyncio

import pytest

from kadcrawl.cli.commands import run_peer


async def test_a_settled_peer_gives_memory_back_once_and_runs_on(monkeypatch: pytest.MonkeyPatch) -> None:
    dropped = 0
    done = asyncio.Event()

    def drop() -> None:
        nonlocal dropped
        dropped += 1
        done.set()

    monkeypatch.setattr(run_peer, "SETTLED_S", 0.0)
    monkeypatch.setattr(run_peer, "give_back_again", drop)
    task = asyncio.create_task(run_peer._give_back_when_settled())
    await done.wait()
    for _ in range(10):
        await asyncio.sleep(0)
    assert not task.done()
    assert 1 == dropped
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
