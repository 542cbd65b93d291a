"""Test that a peer with fingerprints trusts, about its own cells, only its own knowledge."""

from kadcrawl.link.wire.messages import Batch, PendingRecord, Replicate
from kadcrawl.store.store import DONE
from tests.support.sites.web import Web, html
from tests.support.swarm.peers import MakePeer
from tests.support.waiting import until


async def test_a_copy_that_comes_late_makes_no_owner_fetch_again(make_peer: MakePeer) -> None:
    async with Web() as site:
        site.pages["/"] = lambda request: html("/")
        peer = await make_peer("a", delay_s=0.0, history="bloom")
        await peer.crawl([site.url("/")])
        await until(lambda: peer.ended)
        place = peer.components.partitioner.locate(site.url("/"))
        assert peer.store.state(place.key) == DONE
        late = Batch([], [PendingRecord(site.url("/"), 0, 0, 0, 0.0)], [], [])
        await peer.cells.receive(Replicate(peer.contact, late))
        assert (DONE, 0) == (peer.store.state(place.key), peer.store.pending)
        assert {site.url("/"): 1} == site.fetched
