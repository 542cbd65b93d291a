"""Seeds beyond what a job names: streamed to their owners, with a reach that every peer comes to know."""

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest
from aiohttp import web

from kadcrawl import ConfigError, Peer
from kadcrawl.link.wire.messages import Add, Added, NewReach, SeedsStreamed, StreamSeeds
from kadcrawl.peer.swarm import seed_streams, seeds
from kadcrawl.peer.swarm.seeds import STREAMED_NAMED_MAX, each, stream_seeds
from kadcrawl.settings.job import SEEDS_MAX
from scripts.kadcrawl_run import LoggedPage
from tests.support.sites.web import Web, html
from tests.support.swarm.crash import crash
from tests.support.swarm.peers import MakePeer, finish, swarm
from tests.support.waiting import until

STREAM = bytes(16)
FILE = b"a file"


def urls_of(count: int, host: str = "h") -> list[str]:
    return [f"http://{host}{number}.example/" for number in range(count)]


def pause(peer: Peer) -> None:
    peer.obey(peer.state_gossip.say("pause"))


async def paused_swarm(make_peer: MakePeer, names: str, **job: object) -> list[Peer]:
    peers = await swarm(make_peer, names, **job)
    pause(peers[0])
    await until(lambda: all(peer.paused for peer in peers))
    return peers


async def test_more_seeds_than_a_job_names_are_all_taken_once(
    make_peer: MakePeer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seeds, "STREAM_URLS_MAX", 150)
    peers = await paused_swarm(make_peer, "abc", scope="host")
    urls = urls_of(700)
    assert len(urls) + 100 == await stream_seeds(peers[1].runtime, each([*urls, *urls[:100]]), 20)
    assert len(urls) == sum(peer.components.frontier.pending for peer in peers)
    assert 1 == len({peer.runtime.seeds_fingerprint for peer in peers})
    for peer in peers:
        assert 20 <= len(peer.job.seeds) <= 20 * seeds.BATCHES_MAX
        assert peer.components.scope.why_not(urls[-1] + "page", 1) is None
        assert "scope" == peer.components.scope.why_not("http://other.example/", 1)


async def test_a_short_stream_is_named_by_the_job_as_seeds_of_a_person_are(make_peer: MakePeer) -> None:
    peers = await paused_swarm(make_peer, "ab", scope="host")
    await peers[0].add_seeds(urls_of(STREAMED_NAMED_MAX))
    assert [STREAMED_NAMED_MAX] * 2 == [len(peer.job.seeds) for peer in peers]
    assert [0, 0] == [len(peer.components.scope.reach) for peer in peers]


async def test_a_command_may_add_seeds_to_a_full_job(make_peer: MakePeer) -> None:
    [peer] = await paused_swarm(make_peer, "a", scope="host")
    peer.runtime.add_seeds(urls_of(SEEDS_MAX))
    assert Added() == await peer.client.ask(peer.contact, Add(urls_of(3, "more")), Added, 30)
    assert (SEEDS_MAX, 3) == (len(peer.job.seeds), peer.components.frontier.pending)
    assert peer.components.scope.is_near("http://more2.example/page")


async def test_the_reader_waits_until_seeds_are_journaled(make_peer: MakePeer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seeds, "STREAM_URLS_MAX", 10)
    [peer] = await paused_swarm(make_peer, "a", scope="any")
    given = ahead = 0

    async def reading() -> AsyncIterator[str]:
        nonlocal given, ahead
        for url in urls_of(500):
            given += 1
            ahead = max(ahead, given - peer.store.pending)
            yield url

    await peer.add_seeds(reading())
    assert 500 == peer.store.pending
    assert ahead <= 10 * (seeds.BATCHES_MAX + 2)


async def test_a_peer_that_missed_the_reach_hears_of_it_and_so_does_a_newcomer(make_peer: MakePeer) -> None:
    one, other = await swarm(make_peer, "ab", scope="domain")
    for number in range(40):
        [segment] = one.components.scope.segments_of(urls_of(10, f"h.{number}-"))
        one._wave_answers.respond(NewReach(segment))  # A wave that the other one misses.
    await until(lambda: one.runtime.seeds_fingerprint == other.runtime.seeds_fingerprint)
    assert 400 == len(one.components.scope.reach) == len(other.components.scope.reach)
    third = await make_peer("c", join=other)
    assert 400 == len(third.components.scope.reach)


async def test_two_sides_that_took_seeds_apart_come_to_one_reach(make_peer: MakePeer) -> None:
    one, other = await swarm(make_peer, "ab", scope="host")
    for peer, host in ((one, "left"), (other, "right")):
        for segment in peer.components.scope.segments_of(urls_of(50, host)):
            peer._wave_answers.respond(NewReach(segment))
    await until(lambda: one.runtime.seeds_fingerprint == other.runtime.seeds_fingerprint)
    assert (100, 100) == (len(one.components.scope.reach), len(other.components.scope.reach))


async def test_the_reach_survives_a_crash(make_peer: MakePeer) -> None:
    [peer] = await paused_swarm(make_peer, "a", scope="host")
    await peer.add_seeds(urls_of(STREAMED_NAMED_MAX + 100))
    await crash(peer)
    again = await make_peer("a", scope="host")
    assert 100 == len(again.components.scope.reach)
    assert STREAMED_NAMED_MAX + 100 == again.store.pending


async def test_the_crawl_is_not_over_while_a_stream_is_open(
    make_peer: MakePeer, lines: Callable[[], dict[str, LoggedPage]]
) -> None:
    async with Web(40) as site:
        site.fallback = lambda request: html()
        peers = one, other = await swarm(make_peer, "ab", scope="host")
        first, second = site.url("/first", 1), site.url("/second", 2)
        said = await one.client.ask(other.contact, StreamSeeds(STREAM, [first]), SeedsStreamed, 30)
        assert SeedsStreamed(0, 0) == said
        await until(lambda: first in site.fetched)
        await asyncio.sleep(20)
        assert [False, False] == [peer.ended for peer in peers]
        assert 1 == other.unacknowledged
        await one.client.ask(other.contact, StreamSeeds(STREAM, [second], is_last=True), SeedsStreamed, 30)
        await finish(peers)
    assert {first, second} == lines().keys()


async def test_a_stream_whose_command_is_gone_holds_the_end_up_no_longer(
    make_peer: MakePeer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seed_streams, "SILENCE_S", 30.0)
    async with Web(3) as site:
        site.fallback = lambda request: html()
        peer = await make_peer(scope="host")
        await peer.client.ask(peer.contact, StreamSeeds(STREAM, [site.url("/", 1)]), SeedsStreamed, 30)
        await asyncio.sleep(seed_streams.SILENCE_S / 2)
        assert not peer.ended
        await peer.wait_done()


async def test_a_stream_is_not_abandoned_while_it_waits_for_its_answer(
    make_peer: MakePeer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seed_streams, "SILENCE_S", 10.0)
    peer = await make_peer(scope="any")
    may_answer = asyncio.Event()

    async def slow(*_: object) -> None:
        await may_answer.wait()

    monkeypatch.setattr(seed_streams, "add_seeds", slow)
    questions = [
        asyncio.create_task(peer.client.ask(peer.contact, StreamSeeds(STREAM, [url]), SeedsStreamed, 900))
        for url in urls_of(2)
    ]
    await asyncio.sleep(2 * seed_streams.SILENCE_S)
    assert 1 == peer.unacknowledged
    may_answer.set()
    await asyncio.gather(*questions)
    assert 1 == peer.unacknowledged
    await until(lambda: not peer.unacknowledged)


async def test_the_place_in_a_file_is_journaled_and_only_grows(make_peer: MakePeer) -> None:
    [peer] = await paused_swarm(make_peer, "a")

    async def say(peer: Peer, offset: int, lines: int, name: bytes = FILE) -> SeedsStreamed:
        message = StreamSeeds(STREAM, urls_of(2), input=name, offset=offset, lines=lines)
        return await peer.client.ask(peer.contact, message, SeedsStreamed, 30)

    assert SeedsStreamed(0, 0) == await say(peer, 0, 0)
    assert SeedsStreamed(900, 30) == await say(peer, 900, 30)
    assert SeedsStreamed(900, 30) == await say(peer, 500, 20)
    assert SeedsStreamed(0, 0) == await say(peer, 7, 1, b"")
    await crash(peer)
    again = await make_peer("a")
    assert SeedsStreamed(900, 30) == await say(again, 0, 0)
    for number in range(40):
        await say(again, 1, 1, bytes([number]))
    assert SeedsStreamed(0, 0) == await say(again, 0, 0), "only the latest inputs are remembered"


async def test_what_is_no_canonical_url_is_no_seed_and_is_counted(make_peer: MakePeer) -> None:
    [peer] = await paused_swarm(make_peer, "a", scope="any")
    message = StreamSeeds(STREAM, ["http://A.example/", "x", "http://a.example/", "http://a.example/"])
    assert SeedsStreamed(0, 0, refused=2) == await peer.client.ask(peer.contact, message, SeedsStreamed, 30)
    assert 1 == peer.store.pending
    with pytest.raises(ConfigError, match="did you mean"):
        await peer.add_seeds(["http://c.example/", "b.example/"])


async def test_rounds_of_fingerprints_begin_at_named_seeds_so_others_are_refused(make_peer: MakePeer) -> None:
    [peer] = await paused_swarm(make_peer, "a", scope="any", history="bloom", recrawl_after_s=86_400.0)
    await peer.add_seeds(urls_of(STREAMED_NAMED_MAX))
    with pytest.raises(ConfigError, match="use --history exact"):
        await peer.add_seeds(urls_of(10, "more"))


async def test_streams_have_a_limit(make_peer: MakePeer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seed_streams, "STREAMS_MAX", 2)
    peer = await make_peer()
    for number in range(2):
        await peer.client.ask(peer.contact, StreamSeeds(bytes([number]) * 16, []), SeedsStreamed, 30)
    with pytest.raises(Exception, match="2 streams of seeds come in here already"):
        await peer.client.ask(peer.contact, StreamSeeds(b"x" * 16, []), SeedsStreamed, 30)


@pytest.mark.parametrize("history", ["exact", "bloom"])
async def test_seeds_that_failed_are_fetched_again_when_they_are_streamed_again(
    make_peer: MakePeer, history: str
) -> None:
    async with Web(4) as site:
        site.fallback = lambda request: html()
        site.pages["/broken"] = lambda request: web.Response(status=404)
        peers = await swarm(make_peer, "ab", scope="host", history=history)
        good, broken, new = (site.url(path, number) for number, path in enumerate(("/", "/broken", "/new")))

        async def stream(urls: list[str], name: bytes = STREAM, *, only_failed: bool = False) -> tuple[int, int]:
            message = StreamSeeds(name, urls, is_last=True, only_failed=only_failed)
            answer = await peers[0].client.ask(peers[1].contact, message, SeedsStreamed, 30)
            for peer in peers:
                await peer.wait_done()
            return answer.failed, answer.again

        remembered = int(history == "exact")
        assert (0, 0) == await stream([good, broken])
        assert (remembered, remembered) == await stream([good, broken, new])
        assert [1, 1 + remembered, 1] == [site.fetched[url] for url in (good, broken, new)]
        assert (remembered, 0) == await stream([good, site.url("/other", 3)], only_failed=True)
        assert site.url("/other", 3) not in site.fetched


async def test_a_seed_that_failed_is_fetched_again_when_a_command_adds_it_again(make_peer: MakePeer) -> None:
    async with Web(1) as site:
        site.fallback = lambda request: web.Response(status=404)
        peer = await make_peer(scope="host")
        for again in (0, 1):
            assert Added(again) == await peer.client.ask(peer.contact, Add([site.url("/")]), Added, 30)
            await peer.wait_done()
        assert 2 == site.fetched[site.url("/")]
