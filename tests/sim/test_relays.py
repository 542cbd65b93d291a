"""The judges learn for which machine another one has sent a request."""

import asyncio
from typing import cast

import pytest

from kadcrawl.crawl.reach.relay_host import RelayHost
from kadcrawl.link.wire.messages import Contact
from kadcrawl.link.wire.relay_messages import FetchedForPeer, FetchForPeer
from sim.network import HOST, Host
from sim.relays import SeenRelays

ASKER, HELPER, OTHER = "10.0.0.1", "10.0.0.2", "10.0.0.3"
PAGE, LINKED = "http://a.test/", "http://a.test/linked"
QUESTION = FetchForPeer(Contact(bytes(20), ASKER, 4160), PAGE, PAGE)


class Helper:
    """A helper on a machine, which answers when it is told to."""

    ip = HELPER

    def __init__(self) -> None:
        self.answer: asyncio.Future[FetchedForPeer] = asyncio.get_running_loop().create_future()

    async def fetch(self, question: FetchForPeer) -> FetchedForPeer:
        return await self.answer


async def test_a_request_for_another_machine_is_known_while_it_is_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    relays = SeenRelays(lambda: now)
    monkeypatch.setattr(RelayHost, "fetch", Helper.fetch)
    helper = Helper()
    with relays.watched():
        HOST.set(cast(Host, helper))
        now = 2.0
        asked = asyncio.create_task(RelayHost.fetch(cast(RelayHost, helper), QUESTION))
        await asyncio.sleep(0)
        assert ASKER == relays.asker(HELPER, PAGE, 2.0)
        now = 5.0
        helper.answer.set_result(FetchedForPeer("busy"))
        assert FetchedForPeer("busy") == await asked
    assert ASKER == relays.asker(HELPER, PAGE, 5.0)
    assert [None, None, None, None] == [
        relays.asker(HELPER, PAGE, 1.9),
        relays.asker(HELPER, PAGE, 5.1),
        relays.asker(HELPER, LINKED, 3.0),
        relays.asker(OTHER, PAGE, 3.0),
    ]
    assert RelayHost.fetch is Helper.fetch, "nothing is noted after the world"


async def test_a_request_that_fails_is_known_for_as_long_as_it_lasted(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1.0
    relays = SeenRelays(lambda: now)
    monkeypatch.setattr(RelayHost, "fetch", Helper.fetch)
    helper = Helper()
    helper.answer.set_exception(ConnectionError())
    with relays.watched():
        HOST.set(cast(Host, helper))
        with pytest.raises(ConnectionError):
            await RelayHost.fetch(cast(RelayHost, helper), QUESTION)
    assert (ASKER, None) == (relays.asker(HELPER, PAGE, 1.0), relays.asker(HELPER, PAGE, 1.1))
