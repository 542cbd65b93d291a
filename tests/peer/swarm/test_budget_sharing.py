"""No page is fetched beyond the budget, whatever other peers report, late or in place of a silent borrower."""

import pytest

from kadcrawl import RemoteError
from kadcrawl.keys import ID_BITS, Key
from kadcrawl.link.wire.messages import Answer, Grant, Survey, Wave
from kadcrawl.store.schema import DONE
from kadcrawl.store.visit import Visit
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


async def test_a_page_of_a_lost_loan_is_paid_for_once_another_holder_reports_it(make_peer: MakePeer) -> None:
    peer = await make_peer("a", max_pages=1000, recrawl_after_s=60.0)
    budget, intake = peer.components.crawl_limits.pages, peer.components.intake
    budget.granted = 10
    known, visited = (Key(number.to_bytes(20, "big")) for number in (1, 2))
    budget.lend(2)
    budget.lose([known, visited])
    intake.merge_done(known, 0.0)
    visit = Visit(visited, "a.test", "http://a.test/2", 0, 9.0, 60.0, "", "", "", "", 0)
    intake.merge_visit(visit, DONE, 0.0, 0, 0.0)
    for key in (known, visited):
        assert budget.begin()
        budget.end(fetched=True, key=key)
    assert budget.begun == 4
