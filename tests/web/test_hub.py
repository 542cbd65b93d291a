"""Test the one gatherer: it runs while somebody looks, and a swarm that does not answer ends nothing."""

import asyncio
from typing import Any

import pytest

from kadcrawl.errors import RemoteError
from kadcrawl.web import hub as hub_module
from kadcrawl.web.hub import DashboardHub

LOOK: dict[str, Any] = {"crawl": {"found": 0, "done": 0, "pending": 0}, "peers": {}}


async def test_it_gathers_while_somebody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub_module, "STEP_S", 0.0)
    monkeypatch.setattr(hub_module, "REST_S", 0.0)

    async def gather() -> dict[str, Any]:
        return dict(LOOK)

    hub = DashboardHub(gather, asyncio.get_running_loop().time, "r")
    with hub.viewer(), hub.viewer():
        await hub.news()
    looked = hub.gatherings
    assert looked
    await asyncio.sleep(0.05)
    assert looked == hub.gatherings
    with hub.viewer():
        await hub.news()
    assert looked < hub.gatherings


async def test_it_looks_again_after_a_swarm_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub_module, "STEP_S", 0.0)
    monkeypatch.setattr(hub_module, "REST_S", 0.0)
    looks = 0

    async def gather() -> dict[str, Any]:
        nonlocal looks
        looks += 1
        if looks == 1:
            raise RemoteError("one", "does not answer")
        return dict(LOOK)

    hub = DashboardHub(gather, asyncio.get_running_loop().time, "r")
    with hub.viewer():
        while hub.document.is_empty:
            await hub.news()
    assert 2 <= looks
