"""Load balance between a strong and a weak peer: the strong peer fetches more, and each page is fetched once."""

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from random import Random
from urllib.parse import urlsplit

import pytest

from kadcrawl import Job, Peer
from kadcrawl.keys import ID_BITS, firstdiff
from kadcrawl.link.client import LinkClient
from kadcrawl.link.wire.messages import Contact, Lend, Lent, PendingRecord, SiteRecord
from scripts.kadcrawl_run import LoggedPage
from tests.support.sites.web import Web, slow, tree
from tests.support.swarm.peers import QUICK, MakePeer, finish

WEAK = replace(QUICK, fetches_max=1)
"""One request at a time."""
PAGES = 240
SITES = 16
ANSWER_S = 0.03
DELAY_S = 0.25
TICK_S = 1e-3
"""Seconds by which a timer may be early."""


async def weak_and_strong(make_peer: MakePeer, **job: object) -> tuple[Peer, Peer]:
    """Return two peers whose IDs differ in the first bit, so that each owns eight of these sites.

    This holds for any port of the web, because the partition `domain` hashes the address of a site without the port.
    """
    weak = await make_peer("a", limits=WEAK, random=Random(1), partition="domain", update_s=0.2, **job)
    strong = await make_peer("b", join=weak, random=Random(5))
    assert ID_BITS - 1 == firstdiff(*(int.from_bytes(peer.contact.id) for peer in (weak, strong)))
    return weak, strong


@pytest.mark.parametrize("balance", ["level", "off"])
async def test_a_strong_peer_fetches_for_a_weak_one(
    make_peer: MakePeer, lines: Callable[[], dict[str, LoggedPage]], balance: str
) -> None:
    async with Web(SITES) as site:
        site.fallback = slow(tree(PAGES, SITES)(site), ANSWER_S)
        weak, strong = await weak_and_strong(make_peer, balance=balance, block_urls=4)
        await weak.crawl([site.url()])
        await finish([weak, strong])
        assert PAGES == len(lines())
        loans = weak.balancing.loans
        assert 0 == loans.lender.urls == strong.balancing.loans.borrower.urls
        assert (loans.lender.done > weak.counters.urls // 10) is (balance == "level")
        assert loans.lender.done == strong.balancing.loans.borrower.done
        assert strong.counters.pages > weak.counters.pages or balance == "off"


@pytest.mark.parametrize("balance", ["level", "drain"])
async def test_a_site_with_a_delay_keeps_its_pace_while_it_is_lent(
    make_peer: MakePeer, lines: Callable[[], dict[str, LoggedPage]], balance: str
) -> None:
    """The log of the web counts the requests of both peers together, robots.txt included."""
    async with Web(SITES) as site:
        site.fallback = slow(tree(PAGES // 2, SITES)(site), 4 * ANSWER_S)
        weak, strong = await weak_and_strong(make_peer, balance=balance, block_urls=1, delay_s=DELAY_S)
        await weak.crawl([site.url()])
        await finish([weak, strong])
    assert PAGES // 2 == len(lines())
    assert weak.counters.urls > PAGES // 5
    assert weak.balancing.loans.lender.done > weak.counters.urls // 10
    asked: dict[str, list[float]] = {}
    for at_s, url in site.requests:
        asked.setdefault(urlsplit(url).netloc, []).append(at_s)
    assert SITES == len(asked)
    gaps = [later - sooner for times in asked.values() for sooner, later in pairwise(times)]
    assert min(gaps) >= DELAY_S - TICK_S


async def test_a_loan_from_whoever_does_not_own_the_site_is_refused(make_peer: MakePeer) -> None:
    """A peer that could lend pages of any site could hurry that site beside its owner."""
    peer = await make_peer("a", balance="level")
    client = LinkClient(10_000_000)
    await client.open()
    try:
        stranger = Contact(bytes(20), "127.0.0.1", 9)
        for lender in (stranger, peer.contact):
            pending = [PendingRecord("http://127.0.0.2/", 0, 0, 0, 0.0)]
            lend = Lend(lender, b"loan one", SiteRecord("127.0.0.2", 0.0, 0.0), 1, pending, [])
            assert Lent(False) == await client.ask(peer.contact.address, lend, Lent, 10)
    finally:
        await client.close()
    assert 0 == peer.balancing.loans.borrower.loans


def test_by_default_pages_are_lent_by_seconds_to_drain() -> None:
    assert "drain" == Job().lends_by == Job(max_pages=5, max_depth=2).lends_by
    assert "drain" == Job(history="bloom", recrawl_after_s=60.0).lends_by
    assert "off" == Job(balance="off").lends_by
