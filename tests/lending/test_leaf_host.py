"""The rows of leaves in a census, and the refusal of leaves."""

import asyncio
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from kadcrawl.keys import id_bytes
from kadcrawl.lending import leaf_host
from kadcrawl.lending.leaf_host import REASONS_SHOWN, LeafHost, NoLeafError
from kadcrawl.link.wire.leaf_messages import LeafDetails, leaf_contact
from kadcrawl.link.wire.leave_messages import Departed
from kadcrawl.link.wire.messages import COUNT_MAX, LOANS_MAX, Contact, PeerCounters, PeerRow, WorkRequest
from kadcrawl.link.wire.peer_row import PeerDetails
from kadcrawl.link.wire.peer_state import PeerState
from kadcrawl.link.wire.watch_messages import SINKS_OF_LEAF_MAX, WatchedSink
from kadcrawl.peer.membership.departed import each_once
from kadcrawl.settings.job import Job
from sim.loop import world

ME, LIVE = id_bytes(1), id_bytes(2)


def uptime_row(peer: int, port: int, uptime_s: int, pages: int, *, leaf: bool = False) -> PeerRow:
    contact, counters = Contact(id_bytes(peer), "10.0.0.1", port), PeerCounters(pages=pages)
    return PeerRow(contact, PeerState.IDLE, 0, 0, uptime_s, counters, 0, 0, hosted_leaf=leaf)


def test_a_leaf_that_just_changed_its_peer_is_shown_once_and_up_to_date() -> None:
    one, two = uptime_row(1, 4160, 100, 7), uptime_row(2, 4161, 90, 8)
    old, new = (uptime_row(3, port, port, 1, leaf=True) for port in (4160, 4161))
    for rows in ([one, old, two, new], [one, new, two, old]):
        assert [one, new, two] == each_once(rows)


def test_the_loans_of_a_leaf_from_several_full_peers_add_up() -> None:
    one, two = (replace(uptime_row(3, port, port, 1, leaf=True), borrowed=port - 4158) for port in (4160, 4161))
    full = replace(uptime_row(3, 4160, 100, 7), borrowed=50)
    for rows in ([one, full, two], [two, full, one]):
        assert {5, 50} == {row.borrowed for row in each_once(rows)}
    assert [COUNT_MAX] == [row.borrowed for row in each_once([replace(one, borrowed=COUNT_MAX), two])]


def test_a_leaf_that_calls_itself_like_a_full_peer_is_shown_beside_it() -> None:
    full, leaf = uptime_row(1, 4160, 100, 7), uptime_row(1, 4161, 2**53, 2**53, leaf=True)
    for rows in ([full, leaf], [leaf, full]):
        assert rows == each_once(rows)


@dataclass
class Overlay:
    contacts: Any = field(default=lambda: [])

    def is_live(self, peer: bytes) -> bool:
        return peer == LIVE


def leaves(*loans: object, ended: bool = False) -> LeafHost:
    """The leaves of a peer that is paused and has these loans out, in a crawl that has perhaps ended."""
    state = SimpleNamespace(
        contact=Contact(ME, "10.0.0.1", 4160),
        job=Job(),
        ended=ended,
        leaving=False,
        paused=True,
        seeds_fingerprint=0,
        crawl_ms=0,
        settings_beyond=lambda fingerprint: None,
    )
    return LeafHost(
        state=state,
        lender=SimpleNamespace(loans=lambda: loans),  # type: ignore[arg-type]
        overlay=Overlay(),
        random=SimpleNamespace(sample=lambda found, count: []),  # type: ignore[arg-type]
        pause_reasons=lambda: {"paused"},
    )


def paused_request(leaf: bytes, counters: PeerCounters) -> WorkRequest:
    return WorkRequest(leaf, 0, 0.0, "paused", PeerState.IDLE, 0, 0, counters)


def test_the_last_figures_of_a_leaf_are_those_that_it_told_last() -> None:
    async def told() -> list[Departed]:
        some = leaves()
        for pages in (5, 7):
            await some.grant(paused_request(id_bytes(3), PeerCounters(pages=pages)))
        return some.last_figures()

    assert [Departed(leaf_contact(id_bytes(3)), PeerCounters(pages=7))] == asyncio.run(told())


def test_a_peer_knows_which_leaves_have_not_heard_of_the_end() -> None:
    async def heard() -> list[bool]:
        found = []
        some = leaves()
        some_ended = leaves(ended=True)
        for host in (some, some_ended):
            found.append(await host.heard_of_end(0.0))
            for leaf in (3, 4):
                await host.grant(paused_request(id_bytes(leaf), PeerCounters()))
            found.append(await host.heard_of_end(0.0))
        return found

    with world(0) as loop:
        assert [True, False, True, True] == loop.run_until_complete(heard())


def test_the_wait_for_a_leaf_ends_when_it_has_heard_of_the_end_or_is_silent_for_long() -> None:
    async def waited(asks_again_after_s: float | None) -> tuple[bool, float]:
        loop, host = asyncio.get_running_loop(), leaves()
        await host.grant(paused_request(id_bytes(3), PeerCounters()))
        host._state.ended = True  # type: ignore[misc]
        if asks_again_after_s is not None:
            loop.call_later(
                asks_again_after_s,
                lambda: asyncio.ensure_future(host.grant(paused_request(id_bytes(3), PeerCounters()))),
            )
        began = loop.time()
        return await host.heard_of_end(30.0), loop.time() - began

    for asks_after_s, ends_after_s in ((1.0, 1.0), (None, leaf_host.LEAF_FORGOTTEN_S)):
        with world(0) as loop:
            has_heard, seconds = loop.run_until_complete(waited(asks_after_s))
        assert has_heard
        assert ends_after_s <= seconds <= ends_after_s + 2 * leaf_host.TOLD_POLL_S


def test_a_leaf_hears_of_the_end_from_a_peer_that_exits_and_has_met_another_peer_meanwhile() -> None:
    async def told() -> list[str]:
        host = leaves(ended=True)
        host.end()
        host._state.ended, host._state.leaving = False, True  # type: ignore[misc]
        granted = await host.grant(paused_request(id_bytes(3), PeerCounters()))
        return [granted.activity, *(["heard"] if await host.heard_of_end(0.0) else [])]

    with world(0) as loop:
        assert ["ended", "heard"] == loop.run_until_complete(told())


@pytest.mark.parametrize("number", [1, 2])
def test_nobody_is_a_leaf_under_the_id_of_a_full_peer(number: int) -> None:
    with pytest.raises(NoLeafError, match="full peer"):
        asyncio.run(leaves().grant(paused_request(id_bytes(number), PeerCounters())))


def test_of_the_failures_of_a_leaf_only_the_most_frequent_are_shown() -> None:
    async def shown() -> list[PeerRow]:
        some = leaves()
        await some.grant(
            paused_request(id_bytes(3), PeerCounters(pages=5, failed={f"reason {n}": n for n in range(64)}))
        )
        return some.rows()

    (one,) = asyncio.run(shown())
    assert 5 == one.counters.pages
    assert {f"reason {n}": n for n in range(64 - REASONS_SHOWN, 64)} == one.counters.failed


def test_the_details_of_leaves_are_asked_for_while_somebody_watches_and_only_shown() -> None:
    sinks = [WatchedSink(f"sink {number}", 1, 2, "it is full") for number in range(SINKS_OF_LEAF_MAX)]
    details = LeafDetails(PeerDetails("9.9", -1.5, 2**25, 2**16), sinks)

    async def shown() -> LeafHost:
        some = leaves()
        quiet = paused_request(id_bytes(3), PeerCounters())
        assert not (await some.grant(quiet)).is_watched
        some.note_watched()
        assert (await some.grant(quiet)).is_watched
        assert ([None], []) == ([row.details for row in some.rows()], some.sinks())
        for number in (3, 4):
            request = paused_request(id_bytes(number), PeerCounters())
            await some.grant(replace(request, details=details))
        assert {PeerDetails("9.9", -1.5, 2**25, 0)} == {row.details for row in some.rows()}, "a leaf owns no cells"
        assert SINKS_OF_LEAF_MAX == len(some.sinks()), "of all leaves together"
        assert all(sink.of_leaf for sink in some.sinks())
        return some

    asyncio.run(shown())


def test_a_leaf_is_shown_with_what_it_has_on_loan_here() -> None:
    async def shown() -> list[PeerRow]:
        on_loan = [(3, 5), (4, 7), (3, 1)]
        some = leaves(
            *(SimpleNamespace(borrower=leaf_contact(id_bytes(n)), entries=range(count)) for n, count in on_loan)
        )
        await some.grant(paused_request(id_bytes(3), PeerCounters()))
        return some.rows()

    (one,) = asyncio.run(shown())
    assert (6, 0) == (one.borrowed, one.lent)


SITES = [f"http://site{number}.test" for number in range(40)]


def host_of(offered: dict[bytes, list[str]]) -> LeafHost:
    """The leaves of a peer that has ten URLs of each site, and notes which sites it offers each leaf."""

    async def offers(leaf: Contact, allotment: list[tuple[str, int]]) -> list[object]:
        offered.setdefault(leaf.id, []).extend(site for site, _ in allotment)
        return [object()]

    state = SimpleNamespace(
        contact=Contact(ME, "10.0.0.1", 4160),
        job=Job(),
        ended=False,
        leaving=False,
        paused=False,
        seeds_fingerprint=0,
        crawl_ms=0,
        settings_beyond=lambda fingerprint: None,
    )
    lender = SimpleNamespace(
        loans=lambda: [],
        may_lend_to=lambda leaf: True,
        sites_with_spare_connections=lambda *, to_leaf: [(site, 10) for site in SITES],
        offers=offers,
    )
    return LeafHost(
        state=state,
        lender=lender,  # type: ignore[arg-type]
        overlay=Overlay(),
        random=SimpleNamespace(sample=lambda found, count: []),  # type: ignore[arg-type]
        pause_reasons=lambda: set(),
    )


def work_request(leaf: bytes) -> WorkRequest:
    return WorkRequest(leaf, 200, 0.0, "crawling", PeerState.IDLE, 0, 0, PeerCounters())


def test_two_leaves_are_not_offered_the_same_sites() -> None:
    async def offered() -> dict[bytes, list[str]]:
        found: dict[bytes, list[str]] = {}
        host = host_of(found)
        await host.grant(paused_request(id_bytes(3), PeerCounters()))
        for leaf in (4, 3, 4, 3):
            await host.grant(work_request(id_bytes(leaf)))
        return found

    found = asyncio.run(offered())
    assert {3, 4} == {int.from_bytes(leaf, "big") for leaf in found}
    assert set(found[id_bytes(3)]).isdisjoint(found[id_bytes(4)])


def test_the_sites_of_a_leaf_that_is_silent_go_to_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    async def offered() -> dict[bytes, list[str]]:
        found: dict[bytes, list[str]] = {}
        host = host_of(found)
        for leaf in (3, 4, 3):
            await host.grant(work_request(id_bytes(leaf)))
        monkeypatch.setattr(leaf_host, "LEAF_FORGOTTEN_S", 0.0)  # From now on each request finds all others silent.
        for _ in range(10):
            await host.grant(work_request(id_bytes(4)))
        return found

    found = asyncio.run(offered())
    assert set(found[id_bytes(3)]) & set(found[id_bytes(4)])


@pytest.mark.parametrize(
    ("in_hand", "ready", "looks"),
    [(250, SITES, 1), (0, SITES, 8), (0, [], 1)],
    ids=["all have their share", "none has its share", "nothing is lent, and none has its share"],
)
def test_leaves_that_have_their_share_or_find_nothing_cost_one_look_at_all_sites(
    in_hand: int, ready: list[str], looks: int
) -> None:
    async def looked() -> list[int]:
        host, found = host_of({}), []
        loans = [
            SimpleNamespace(borrower=leaf_contact(id_bytes(leaf)), site=f"{leaf}", entries=range(in_hand))
            for leaf in range(10, 18)
        ]
        loans.append(SimpleNamespace(borrower=leaf_contact(id_bytes(9)), site="9", entries=range(100)))
        host._lender.loans = lambda: loans  # type: ignore[method-assign, assignment, return-value]

        def spare(*, to_leaf: bool) -> list[tuple[str, int]]:
            found.append(1)
            return [(site, 1) for site in ready]

        host._lender.sites_with_spare_connections = spare  # type: ignore[method-assign, assignment]
        for leaf in range(10, 18):
            host._note_request(work_request(id_bytes(leaf)), 0.0)
        for wave in (1, 2):
            for leaf in range(10, 18):
                await host.grant(work_request(id_bytes(leaf)))
            assert wave * looks == len(found)
            await asyncio.sleep(leaf_host.WAITING_LEAF_POLL_S)
        return found

    with world(0) as loop:
        loop.run_until_complete(looked())


@pytest.mark.parametrize(("loans", "urls"), [(LOANS_MAX, 1), (1, leaf_host.URLS_PER_LEAF_MAX)])
def test_a_leaf_that_may_have_no_more_costs_no_look_at_all_sites(loans: int, urls: int) -> None:
    """By URL each page is a loan of its own, so a leaf has the most loans long before its share of the pages."""

    async def looked() -> list[int]:
        host, found = host_of({}), []
        leaf = id_bytes(10)
        lent = [SimpleNamespace(borrower=leaf_contact(leaf), site=f"{n}", entries=range(urls)) for n in range(loans)]
        host._lender.loans = lambda: lent  # type: ignore[method-assign, assignment, return-value]

        def spare(*, to_leaf: bool) -> list[tuple[str, int]]:
            found.append(1)
            return [(site, 100) for site in SITES]

        host._lender.sites_with_spare_connections = spare  # type: ignore[method-assign, assignment]
        assert [] == (await host.grant(work_request(leaf))).loans
        lent.pop()
        await host.grant(work_request(leaf))
        return found

    with world(0) as loop:
        assert 1 == len(loop.run_until_complete(looked()))
