"""A person changes the scope of a running crawl, at all peers and leaves, for links that are found from then on."""

from pathlib import Path

import pytest

from kadcrawl import Config, ConfigError, Leaf
from kadcrawl.link.wire.order_messages import StandingOrder
from tests.support.sites.owned_sites import SITES, sites_of
from tests.support.sites.web import Web, html
from tests.support.swarm.peers import QUICK, MakePeer, finish, swarm
from tests.support.waiting import until


@pytest.mark.parametrize("partition", ["host", "url"])
async def test_links_to_a_host_that_was_added_are_followed(make_peer: MakePeer, partition: str) -> None:
    async with Web(4) as site:
        other = [site.url(f"/{page}", 1) for page in range(5)]
        site.fallback = lambda request: html(*other, site.url("/calendar/1", 1), site.url("/", 2))
        peers = await swarm(make_peer, "abc", scope="host", partition=partition)
        await peers[1].add_scope(site.url("/", 1)[7:-1], user="ann")
        await peers[2].remove_scope("/calendar/")
        await peers[0].crawl([site.url("/")])
        await finish(peers)
        assert {1} == {site.fetched[url] for url in other}
        assert [0, 0] == [site.fetched[url] for url in (site.url("/", 2), site.url("/calendar/1", 1))]
        assert ["/calendar/", site.url("/", 1)[7:-1]] == [order.about for order in peers[0].orders]


async def test_pending_urls_that_are_taken_out_end_and_come_back(make_peer: MakePeer) -> None:
    async with Web(2) as site:
        site.fallback = lambda request: html()
        peer = await make_peer("a")
        await peer.begin()
        await peer.pause()
        urls = [site.url(f"/{page}", 1) for page in range(5)]
        await peer.crawl(urls)
        await peer.remove_scope(site.url("/", 1)[7:-1])
        await peer.resume()
        await peer.wait_done()
        assert ({"scope_removed": 5}, []) == (peer.figures().failed, site.requests)
        await peer.add_scope(site.url("/", 1)[7:-1])
        assert {"scope_removed": 5} == (await peer.retry(["scope_removed"])).urls
        await finish([peer])
        assert {1} == {site.fetched[url] for url in urls}


async def test_an_owner_that_has_not_heard_the_order_takes_the_links_later(make_peer: MakePeer) -> None:
    """The fingerprint of the seeds has the orders about the scope, so the owner does not refuse the links."""
    async with Web(SITES) as site:
        peers = await swarm(make_peer, "ab", scope="host", update_s=3600.0)
        [first] = sites_of(peers[0], peers[1], site, 1)
        links = [site.url("/", number) for number in sites_of(peers[1], peers[0], site, 3)]
        site.fallback = lambda request: html(*links)
        runtime = peers[0].runtime
        wanted = [StandingOrder("scope", url[7:-1], 1.0) for url in links]
        runtime.hear_orders(runtime.standing_orders.give(wanted, runtime.contact.id, runtime.resources.clock.now()))
        assert peers[0].runtime.seeds_fingerprint != peers[1].runtime.seeds_fingerprint
        await peers[0].crawl([site.url("/", first)])
        await finish(peers)
        assert {1} == {site.fetched[url] for url in links}


async def test_an_owner_that_knows_only_the_removal_takes_the_links_later(make_peer: MakePeer) -> None:
    async with Web(SITES) as site:
        peers = await swarm(make_peer, "ab", scope="host", update_s=3600.0)
        [first] = sites_of(peers[0], peers[1], site, 1)
        links = [site.url("/", number) for number in sites_of(peers[1], peers[0], site, 3)]
        site.fallback = lambda request: html(*links)
        for url in links:
            assert 0 == await peers[1].remove_scope(url[7:-1])
        runtime = peers[0].runtime
        wanted = [StandingOrder("scope", url[7:-1], 1.0) for url in links]
        runtime.hear_orders(runtime.standing_orders.give(wanted, runtime.contact.id, runtime.resources.clock.now()))
        await peers[0].crawl([site.url("/", first)])
        await finish(peers)
        assert {1} == {site.fetched[url] for url in links}


async def test_links_that_an_owner_refused_are_offered_again_once_they_are_wanted(make_peer: MakePeer) -> None:
    """The owner alone knows that the site is excluded, so the other peer sends the links once, in vain."""
    async with Web(SITES) as site:
        peers = await swarm(make_peer, "ab", scope="any", update_s=3600.0)
        [first] = sites_of(peers[0], peers[1], site, 1)
        [other] = sites_of(peers[1], peers[0], site, 1)
        links = [site.url(f"/{page}", other) for page in range(3)]
        site.pages |= dict.fromkeys(("/", "/again"), lambda request: html(*links))
        site.fallback = lambda request: html()
        runtime = peers[1].runtime
        wanted = [StandingOrder("exclude", site.url("/", other)[7:-1], 1.0)]
        runtime.hear_orders(runtime.standing_orders.give(wanted, runtime.contact.id, runtime.resources.clock.now()))
        await peers[0].crawl([site.url("/", first)])
        await until(lambda: runtime.components.intake.rejected >= len(links) or bool(peers[0].orders))
        assert 0 == await peers[0].include_site(site.url("/", other)[7:-1])
        await peers[0].crawl([site.url("/again", first)])
        await finish(peers)
        assert {1} == {site.fetched[url] for url in links}


async def test_a_leaf_follows_links_to_a_host_that_was_added(make_peer: MakePeer, tmp_path: Path) -> None:
    async with Web(2) as site:
        other = site.url("/", 1)
        site.fallback = lambda request: html(other)
        peer = await make_peer("a", scope="host", delay_s=0.2)
        config = Config(data=tmp_path / "leaf", allow_networks=("127.0.0.0/8",), limits=QUICK)
        async with Leaf(config) as leaf:
            await leaf.join([peer.contact.address])
            forwarder = leaf.work.components.forwarder
            forwarder.note_safe(other, 1)
            await peer.add_scope(other[7:-1])
            await until(lambda: leaf.work.components.scope.allows(other, 1))
            assert [other] == forwarder.not_recently_sent([other], 1), "an owner may have refused it before"
            await peer.crawl([site.url(f"/{page}") for page in range(20)])
            await finish([peer])
            await leaf.finish()
        assert 1 == site.fetched[other]


async def test_text_that_is_neither_a_host_nor_a_pattern_is_refused(make_peer: MakePeer) -> None:
    peer = await make_peer("a")
    await peer.begin()
    with pytest.raises(ConfigError):
        await peer.add_scope("/(/")
    assert [] == peer.orders
