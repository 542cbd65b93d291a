"""A person sees what is pending in a whole swarm, or at one site, whoever is asked."""

import pytest

from kadcrawl import ConfigError, QueueStatus
from tests.support.sites.web import Web, html
from tests.support.swarm.peers import MakePeer, swarm
from tests.support.waiting import until

COUNTS = (5, 3, 2)
"""Pages of three sites."""


@pytest.mark.parametrize("partition", ["host", "domain", "url"])
async def test_any_peer_tells_the_queue_of_the_swarm(make_peer: MakePeer, partition: str) -> None:
    async with Web(4) as site:
        site.fallback = lambda request: html()
        names = [site.url("/", number)[7:-1] for number in range(4)]
        orders = [name.partition(":")[0] if partition == "domain" else name for name in names]
        peers = await swarm(make_peer, "abc", partition=partition)
        await peers[0].pause()
        await peers[1].slow_site(orders[0], 7.0)
        await peers[0].crawl(
            [site.url(f"/{page}", number) for number, count in enumerate(COUNTS) for page in range(count)]
        )
        queues = [await peer.queue() for peer in peers]
        assert [(10, 3, {0: 10}, 0)] * 3 == [
            (queue.pending, queue.sites, queue.by_depth, queue.unanswered) for queue in queues
        ]
        assert [(orders[number], count) for number, count in enumerate(COUNTS)] == [
            (one.site, one.pending) for one in queues[0].top
        ]
        assert 7.0 == queues[0].top[0].delay_s
        assert {one.owner for one in queues[0].top} <= {peer.id for peer in peers}
        assert [orders[0]] == [one.site for one in (await peers[0].queue(sites=1)).top]
        one = await peers[2].queue(orders[1], urls=2)
        assert (3, orders[1], 2) == (one.pending, one.top[0].site, len(one.next))
        assert {site.url(f"/{page}", 1) for page in range(3)} > {waiting.url for waiting in one.next}
        assert QueueStatus(0, 0, {}, one.by_age[:0] or tuple((age, 0) for age, _ in one.by_age), (), (), 0) == (
            await peers[0].queue(orders[3])
        )


async def test_the_figures_follow_the_crawl(make_peer: MakePeer) -> None:
    async with Web(2) as site:
        site.fallback = lambda request: html(status=503) if request.path == "/0" else html()
        peer = await make_peer("a", delay_s=30.0)
        await peer.crawl([site.url(f"/{page}", 1) for page in range(3)])
        await until(lambda: peer.components.frontier.last_status(site.url("/", 1)[7:-1]) == 503)
        [one] = (await peer.queue()).top
        assert (3, 503, 1, True) == (one.pending, one.status, one.refusals, one.wait_s > 0)


@pytest.mark.parametrize(("site", "urls", "why"), [("*.a.example", 0, "one site"), ("", 1, "name the site")])
async def test_a_question_without_a_meaning_is_refused(make_peer: MakePeer, site: str, urls: int, why: str) -> None:
    peer = await make_peer("a")
    await peer.begin()
    with pytest.raises(ConfigError, match=why):
        await peer.queue(site, urls=urls)
    with pytest.raises(ConfigError, match="at most 100"):
        await peer.queue(sites=101)
