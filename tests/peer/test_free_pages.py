"""A peer on a journal that was vacuumed gives free pages back while it runs."""

from pathlib import Path

import pytest

from kadcrawl.store import free_pages
from tests.store.test_free_pages import pages, with_free_pages
from tests.support.swarm.peers import MakePeer
from tests.support.waiting import until


async def test_free_pages_go_while_the_peer_runs(
    make_peer: MakePeer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(free_pages, "KEPT_LEAST", 10)
    store = await with_free_pages(tmp_path / "one")
    count, free = pages(store)
    store.close()
    peer = await make_peer("one")
    await until(lambda: pages(peer.store)[0] <= count - free // 2)
    assert bytes(9_000) == peer.store.meta.get("kept")
