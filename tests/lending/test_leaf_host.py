"""The rows of leaves in a census, and the refusal of leaves."""

import asyncio
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from kadcrawl.keys import id_bytes
from kadcrawl.lending.leaf_host import REASONS_SHOWN, LeafHost, NoLeafError
from kadcrawl.link.wire.leaf_messages import leaf_contact
from kadcrawl.link.wire.messages import Contact, PeerCounters, PeerRow, WorkRequest
from kadcrawl.link.wire.peer_state import PeerState
from kadcrawl.peer.membership.departed import each_once
from kadcrawl.settings.job import Job

ME, LIVE = id_bytes(1), id_bytes(2)


def uptime_row(peer: int, port: int, uptime_s: int, pages: int, *, leaf: bool = False) -> PeerRow:
    contact, counters = Contact(id_bytes(peer), "10.0.0.1", port), PeerCounters(pages=pages)
    return PeerRow(contact, PeerState.IDLE, 0, 0, uptime_s, counters, 0, 0, hosted_leaf=leaf)


def test_a_leaf_that_just_changed_its_peer_is_shown_once_and_up_to_date() -> None:
    one, two = uptime_row(1, 4160, 100, 7), uptime_row(2, 4161, 90, 8)
    old, new = (uptime_row(3, port, port, 1, leaf=True) for port in (4160, 4161))
    for rows in ([one, old, two, new], [one, new, two, old]):
        assert [one, new, two] == each_once(rows)


def test_a_leaf_that_calls_itself_like_a_full_peer_is_shown_beside_it() -> None:
    full, leaf = uptime_row(1, 4160, 100, 7), uptime_row(1, 4161, 2**53, 2**53, leaf=True)
    for rows in ([full, leaf], [leaf, full]):
        assert rows == each_once(rows)


@dataclass
class Overlay:
    contacts: Any = field(default=lambda: [])

    def is_live(self, peer: bytes) -> bool:
        return peer == LIVE


def leaves(*loans: object) -> LeafHost:
    """The leaves of a peer that is paused and has these loans out."""
    state = SimpleNamespace(
        contact=Contact(ME, "10.0.0.1", 4160),
        job=Job(),
        ended=False,
        leaving=False,
        paused=True,
        seeds_fingerprint=0,
        crawl_ms=0,
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
