"""A grant that waited in a peer that stood still is taken and passed on by nobody, as it may have been given back."""

import pytest

from kadcrawl import RemoteError
from kadcrawl.keys import ID_BITS
from kadcrawl.link.wire.messages import Answer, Grant, Survey, Wave
from tests.support.swarm.peers import MakePeer, swarm

FOREIGN = bytes(20)
"""ID of a peer that is away, whose total shows which peers have taken a grant."""


async def test_a_peer_that_stood_still_takes_and_passes_on_no_grant_until_it_is_sure_again(
    make_peer: MakePeer, monkeypatch: pytest.MonkeyPatch
) -> None:
    sender, relay, beyond = await swarm(make_peer, "abc", max_pages=1000)
    relay_budget, beyond_budget = (peer.components.crawl_limits.pages for peer in (relay, beyond))
    late = Wave(ID_BITS, 5.0, Grant({FOREIGN: 77}, spent=False))
    with monkeypatch.context() as patched:
        patched.setattr(relay.runtime.cells, "is_stalled", lambda: True)
        with pytest.raises(RemoteError, match="stood still"):
            await sender.client.ask(relay.contact, late, Answer, 5.0)
        await sender.client.ask(relay.contact, Wave(ID_BITS, 5.0, Survey()), Answer, 5.0)
    assert FOREIGN not in relay_budget.known
    assert FOREIGN not in beyond_budget.known
    await sender.client.ask(relay.contact, late, Answer, 5.0)
    assert 77 == relay_budget.known[FOREIGN] == beyond_budget.known[FOREIGN]
