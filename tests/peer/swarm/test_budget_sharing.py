"""No page is fetched beyond the budget, whatever other peers report, late or in place of a silent borrower."""

import asyncio
from typing import Any, Literal

import pytest
from msgspec import structs

from kadcrawl import RemoteError
from kadcrawl.crawl.page_budget import budget_cell
from kadcrawl.keys import ID_BITS, Cell, Key
from kadcrawl.link.wire.messages import Answer, Grant, Survey, SwarmStatus, Wave
from kadcrawl.overlay.waves.wave import Waves
from kadcrawl.peer.swarm import budget_sharing
from kadcrawl.peer.swarm.census import take_census
from kadcrawl.store.schema import DONE
from kadcrawl.store.visit import Visit
from tests.support.swarm.peers import MakePeer, swarm
from tests.support.waiting import until

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


async def test_a_grant_that_comes_after_its_peer_gave_it_back_is_not_taken(make_peer: MakePeer) -> None:
    sharer, late = await swarm(make_peer, "ab", max_pages=1000)
    budget, me = late.components.crawl_limits.pages, late.contact.id
    await take_census(sharer.waves, "pages")
    grant = Wave(0, 5.0, Grant({me: 77}, spent=False, epochs={me: budget.epoch}))
    await sharer.client.ask(late.contact, grant, Answer, 5.0)
    assert 77 == budget.granted
    await until(lambda: budget.told == 0)  # It has nothing to fetch.
    (row,) = [row for row in (await take_census(sharer.waves, "pages")).rows if row.contact.id == me]
    assert (0, budget.epoch) == (row.granted, row.grant_epoch)
    await sharer.client.ask(late.contact, grant, Answer, 5.0)
    assert (0, 0) == (budget.granted, budget.told)


@pytest.mark.parametrize("unit", ["pages", "bytes"])
async def test_only_a_census_that_shares_the_budget_out_begins_an_epoch_of_it(
    make_peer: MakePeer, unit: Literal["pages", "bytes"]
) -> None:
    (peer,) = await swarm(make_peer, "a")  # Without a limit no peer shares anything out.
    limits = peer.components.crawl_limits
    before, other = limits.budget(unit).epoch, limits.budget("bytes" if unit == "pages" else "pages")
    unmoved = other.epoch
    assert [0] == [row.grant_epoch for row in (await peer.census()).rows]
    assert [before + 1] == [row.grant_epoch for row in (await take_census(peer.waves, unit)).rows]
    assert (before + 1, unmoved) == (limits.budget(unit).epoch, other.epoch)


async def test_each_word_of_a_leaving_peer_is_later_than_the_one_before(
    make_peer: MakePeer, monkeypatch: pytest.MonkeyPatch
) -> None:
    leaving, other = await swarm(make_peer, "ab", max_pages=1000)
    budget, me, words = leaving.components.crawl_limits.pages, leaving.contact.id, list[Grant]()
    ask_all = leaving.waves.ask_all

    async def noted(question: Any, *rest: Any) -> Any:
        if isinstance(question, Grant) and [*question.totals] == [me]:
            words.append(question)
            budget.begun += 1  # A page of a borrower comes back late.
        return await ask_all(question, *rest)

    monkeypatch.setattr(leaving.waves, "ask_all", noted)
    await budget_sharing.tell_total(leaving.runtime, budget)
    assert 3 == len({word.epochs[me] for word in words})
    assert words == sorted(words, key=lambda word: word.epochs[me])
    known = other.components.crawl_limits.pages
    assert 2 == known.known[me]
    for word in words:
        await leaving.client.ask(other.contact, Wave(0, 5.0, word), Answer, 5.0)
    assert 2 == known.known[me]


async def test_a_peer_that_has_told_another_sharer_its_row_meanwhile_shares_nothing_out(
    make_peer: MakePeer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both would share the same rest out."""
    (peer,) = await swarm(make_peer, "a", max_pages=1000)
    runtime, budget = peer.runtime, peer.components.crawl_limits.pages
    monkeypatch.setattr(budget, "give_back", lambda: None)
    ask_all, grants, censuses = runtime.waves.ask_all, list[Grant](), list[SwarmStatus]()
    shares_too = True

    async def census(waves: Waves, unit: Literal["pages", "bytes"]) -> SwarmStatus:
        found = await take_census(waves, unit)
        if shares_too:
            await take_census(waves, unit)
        censuses.append(structs.replace(found, rows=[structs.replace(row, pending=50) for row in found.rows]))
        return censuses[-1]

    async def noted(question: Any, *rest: Any) -> Any:
        if isinstance(question, Grant):
            grants.append(question)
        return await ask_all(question, *rest)

    monkeypatch.setattr(budget_sharing, "take_census", census)
    monkeypatch.setattr(runtime.waves, "ask_all", noted)
    await until(lambda: len(censuses) >= 3)
    assert [] == grants
    shares_too = False
    await until(lambda: grants)
    assert {peer.contact.id: grants[0].epochs[peer.contact.id]} == grants[0].epochs


async def test_a_leaf_that_claims_the_id_of_the_sharer_stops_no_sharing(
    make_peer: MakePeer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its full peer may not know the sharer."""
    (peer,) = await swarm(make_peer, "a", max_pages=1000)
    runtime, budget = peer.runtime, peer.components.crawl_limits.pages
    monkeypatch.setattr(budget, "give_back", lambda: None)
    ask_all, grants = runtime.waves.ask_all, list[Grant]()

    async def census(waves: Waves, unit: Literal["pages", "bytes"]) -> SwarmStatus:
        found = await take_census(waves, unit)
        rows = [structs.replace(row, pending=50) for row in found.rows]
        leaves = [structs.replace(row, pending=0, hosted_leaf=True, grant_epoch=0) for row in rows]
        return structs.replace(found, rows=[*rows, *leaves])

    async def noted(question: Any, *rest: Any) -> Any:
        if isinstance(question, Grant):
            grants.append(question)
        return await ask_all(question, *rest)

    monkeypatch.setattr(budget_sharing, "take_census", census)
    monkeypatch.setattr(runtime.waves, "ask_all", noted)
    await until(lambda: grants)
    assert [peer.contact.id] == [*grants[0].epochs]


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


@pytest.mark.parametrize("happens", ["it stood still", "another owned the cell", "another granted"])
async def test_rows_that_another_sharer_may_have_used_are_not_shared_out(
    make_peer: MakePeer, monkeypatch: pytest.MonkeyPatch, happens: str
) -> None:
    """A census may take seconds, and a peer that joined meanwhile may have become the owner of the budget's cell."""
    (peer,) = await swarm(make_peer, "a", max_pages=1000)
    runtime, budget = peer.runtime, peer.components.crawl_limits.pages
    monkeypatch.setattr(budget, "give_back", lambda: None)
    owns, ask_all, cell = runtime.overlay.owns, runtime.waves.ask_all, budget_cell(peer.job.bits)
    lost_for_a_moment = [happens == "another owned the cell"]
    grants: list[Grant] = []
    censuses: asyncio.Queue[asyncio.Event] = asyncio.Queue()

    async def census(waves: Waves, unit: Literal["pages", "bytes"]) -> SwarmStatus:
        goes_on = asyncio.Event()
        censuses.put_nowait(goes_on)
        await goes_on.wait()
        found = await take_census(waves, unit)
        return structs.replace(found, rows=[structs.replace(row, pending=50) for row in found.rows])

    async def noted(question: Any, *rest: Any) -> Any:
        if isinstance(question, Grant):
            grants.append(question)
        return await ask_all(question, *rest)

    def owns_now(asked: Cell) -> bool:
        return owns(asked) and not (asked == cell and lost_for_a_moment and lost_for_a_moment.pop())

    monkeypatch.setattr(budget_sharing, "take_census", census)
    monkeypatch.setattr(runtime.waves, "ask_all", noted)
    first = await censuses.get()
    grants.clear()
    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(runtime.overlay, "owns", owns_now)
        meanwhile.setattr(runtime.cells, "is_stalled", lambda: happens == "it stood still")
        if happens == "another granted":
            budget.learn({FOREIGN: 40}, peer.contact.id, spent=False)
        first.set()
        second = await censuses.get()
        assert grants == []
    second.set()
    await until(lambda: grants)
    assert grants[0].totals.get(FOREIGN, 0) == (40 if happens == "another granted" else 0)
