"""Test one peer from seed to end: the fetched pages, the outcome of each URL, and the files on disk."""

import asyncio
import gzip
import tracemalloc
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest
from aiohttp import web
from warcio.archiveiterator import ArchiveIterator

from kadcrawl import Config, ConfigError, Job, Peer, StartError, StorageError
from kadcrawl.crawl.content.page import Page
from kadcrawl.crawl.links.forwarder import AckCountdown
from kadcrawl.crawl.output import outputs as outputs_module
from kadcrawl.leaf.leaf import Leaf
from kadcrawl.link.wire.messages import Link
from kadcrawl.members.swarm_key import SwarmKey
from kadcrawl.store.frontier_entry import FrontierEntry
from scripts.kadcrawl_run import LoggedPage
from tests.support.sites.web import Web, html, slow, tree
from tests.support.swarm.peers import QUICK, MakePeer

Lines = Callable[[], dict[str, LoggedPage]]


async def crawl_and_drain(peer: Peer, *urls: str) -> None:
    await peer.crawl(urls)
    async with asyncio.timeout(60):
        await peer.wait_done()
    await peer.drain()


async def test_every_reachable_page_is_fetched_once_and_none_else(make_peer: MakePeer, lines: Lines) -> None:
    async with Web() as site:
        site.fallback = tree(100)(site)
        peer = await make_peer()
        await crawl_and_drain(peer, site.url("/0"))
        assert {site.url(f"/{n}"): 1 for n in range(100)} == dict(site.fetched)
        assert set(site.fetched) == set(lines())
        totals = peer.counters
        assert (100, 100, 100, 99, 0) == (
            totals.pages,
            totals.urls,
            totals.done,
            totals.links_seen,
            totals.duplicates,
        )


async def test_one_text_in_place_of_several_urls_is_refused(make_peer: MakePeer) -> None:
    peer = await make_peer()
    for given in (peer.crawl, peer.add_seeds, peer.fetch_again):
        with pytest.raises(ConfigError, match="give the URLs as a list"):
            await given("https://example.org/")


async def test_pages_come_to_the_embedder_one_by_one_and_end_with_the_crawl(make_peer: MakePeer) -> None:
    async with Web() as site:
        site.fallback = tree(150)(site)
        peer = await make_peer()
        await peer.crawl([site.url("/0")])
        pages = [page async for page in peer.pages()]
        assert {site.url(f"/{n}") for n in range(150)} == {page.url for page in pages}
        root = next(page for page in pages if page.url == site.url("/0"))
        assert (200, None, 0, (site.url("/1"), site.url("/2"))) == (root.status, root.failure, root.depth, root.links)
        assert root.text.startswith("<a href=")


async def test_a_reader_that_leaves_early_does_not_stop_the_crawl(make_peer: MakePeer) -> None:
    async with Web() as site:
        site.fallback = tree(200)(site)
        peer = await make_peer()
        await peer.crawl([site.url("/0")])
        pages = peer.pages()
        assert (await anext(pages)).url == site.url("/0")
        await pages.aclose()  # type: ignore[attr-defined]
        async with asyncio.timeout(60):
            await peer.wait_done()
        assert len(site.fetched) == 200


async def test_links_out_of_scope_are_counted_and_not_followed(make_peer: MakePeer) -> None:
    async with Web(sites=2) as site:
        site.pages["/"] = lambda request: html("/here", site.url("/there", site=1))
        site.pages["/here"] = lambda request: html()
        peer = await make_peer(scope="host")
        await crawl_and_drain(peer, site.url())
        assert {site.url(), site.url("/here")} == set(site.fetched)
        assert peer.counters.links_seen == 2


async def test_depth_ends_where_the_job_says(make_peer: MakePeer) -> None:
    async with Web() as site:
        site.fallback = tree(100)(site)
        await crawl_and_drain(await make_peer(max_depth=2), site.url("/0"))
        assert {site.url(f"/{n}") for n in range(7)} == set(site.fetched)


async def test_a_redirect_is_recorded_and_its_target_is_a_url_of_its_own(make_peer: MakePeer, lines: Lines) -> None:
    async with Web() as site:
        site.pages["/"] = lambda request: html("/old", "/loop")
        site.pages["/old"] = lambda request: html(status=301, Location="/new")
        site.pages["/loop"] = lambda request: html(status=302, Location="/loop")
        site.pages["/new"] = lambda request: html()
        await crawl_and_drain(await make_peer(), site.url())
        assert {"/": 200, "/old": 301, "/loop": 302, "/new": 200} == {
            path: lines()[site.url(path)].status for path in ("/", "/old", "/loop", "/new")
        }
        assert set(site.fetched.values()) == {1}
        assert lines()[site.url("/new")].fields["depth"] == 1


async def test_an_endless_redirect_ends_in_one_recorded_failure(make_peer: MakePeer, lines: Lines) -> None:
    async with Web() as site:
        site.fallback = lambda request: html(status=302, Location=f"/{int(request.path[1:]) + 1}")
        peer = await make_peer()
        await crawl_and_drain(peer, site.url("/0"))
        assert len(lines()) == peer.config.limits.redirects_max + 1
        assert ["redirect_limit"] == [line.failed for line in lines().values() if line.failed]


async def test_what_is_not_html_is_recorded_but_not_parsed(make_peer: MakePeer, lines: Lines) -> None:
    async with Web() as site:
        site.pages["/"] = lambda request: html("/file")
        site.pages["/file"] = lambda request: web.Response(body=b'<a href="/no">', content_type="application/pdf")
        await crawl_and_drain(await make_peer(), site.url())
        line = lines()[site.url("/file")]
        assert ("application/pdf", 14, 0, None) == (
            line.fields["mime"],
            line.fields["bytes"],
            line.fields["links"],
            line.failed,
        )
        assert site.url("/no") not in site.fetched


async def test_robots_txt_is_asked_once_and_first_and_obeyed(make_peer: MakePeer, lines: Lines) -> None:
    async with Web() as site:
        site.fallback = tree(30)(site)
        site.pages["/robots.txt"] = lambda request: web.Response(text="User-agent: kadcrawl\nDisallow: /2")
        await crawl_and_drain(await make_peer(), site.url("/0"))
        urls = [url for _, url in site.requests]
        assert urls[0] == site.url("/robots.txt")
        assert urls.count(site.url("/robots.txt")) == 1
        assert site.url("/2") not in urls
        assert lines()[site.url("/2")].failed == "robots"


async def test_a_robots_txt_out_of_order_holds_the_site_until_it_can_be_had(make_peer: MakePeer) -> None:
    answers = iter([503, 500, 200])
    async with Web() as site:
        site.fallback = tree(5)(site)
        site.pages["/robots.txt"] = lambda request: web.Response(status=next(answers), text="")
        await crawl_and_drain(await make_peer(), site.url("/0"))
        assert [site.url("/robots.txt")] * 3 == [url for _, url in site.requests[:3]]
        assert len(site.fetched) == 5


async def test_a_site_without_its_robots_txt_is_given_up_and_the_crawl_ends(make_peer: MakePeer, lines: Lines) -> None:
    async with Web() as site:
        site.pages["/robots.txt"] = lambda request: web.Response(status=503)
        await crawl_and_drain(await make_peer(), site.url("/a"), site.url("/b"))
        assert not site.fetched
        assert {"robots_unreachable"} == {line.failed for line in lines().values()}
        assert len(lines()) == 2


async def test_a_site_where_nobody_listens_ends_in_one_recorded_failure(make_peer: MakePeer, lines: Lines) -> None:
    async with Web() as site:
        dead = site.url("/")
    await crawl_and_drain(await make_peer(), dead)
    assert lines()[dead].failed == "connect"


async def test_a_passing_fault_is_retried_and_a_lasting_one_recorded_once(make_peer: MakePeer, lines: Lines) -> None:
    answers = {"/heals": iter([500, 429, 200]), "/stays": iter([503] * 10)}
    async with Web() as site:
        site.pages["/"] = lambda request: html("/heals", "/stays", "/missing")
        for path in answers:
            site.pages[path] = lambda request: html(status=next(answers[request.path]))
        await crawl_and_drain(await make_peer(), site.url())
        assert {"/": 1, "/heals": 3, "/stays": 4, "/missing": 1} == {
            path: site.fetched[site.url(path)] for path in ("/", "/heals", "/stays", "/missing")
        }
        assert {"/heals": None, "/stays": "http_503", "/missing": "http_404"} == {
            path: lines()[site.url(path)].failed for path in ("/heals", "/stays", "/missing")
        }


async def test_retry_after_holds_the_whole_site(make_peer: MakePeer) -> None:
    busy = iter([503])
    async with Web() as site:
        site.pages["/"] = lambda request: html("/busy")
        site.pages["/busy"] = lambda request: (
            html(status=next(busy), Retry_After="1") if site.fetched[site.url("/busy")] == 1 else html("/after")
        )
        site.pages["/after"] = lambda request: html()
        await crawl_and_drain(await make_peer(), site.url())
        times = [at for at, url in site.requests if url in (site.url("/busy"), site.url("/after"))]
        assert times[1] - times[0] >= 1.0


async def test_a_site_that_refuses_is_left_alone_as_a_whole_for_twice_as_long_each_time(make_peer: MakePeer) -> None:
    async with Web() as site:
        site.pages["/"] = lambda request: html(*(f"/{number}" for number in range(5)))
        refusals = iter([429, 503, 429])
        site.fallback = lambda request: html(status=next(refusals, 200))
        await crawl_and_drain(await make_peer(delay_s=0.01, limits=replace(QUICK, back_off_s=0.3)), site.url())
        times = [at for at, url in site.requests if url not in (site.url(), site.url("/robots.txt"))]
        assert 8 == len(times)
        waits = [later - earlier for earlier, later in pairwise(times[:4])]
        assert all(waits[number] >= 0.3 * 2**number for number in range(3)), waits


async def test_a_site_that_serves_its_robots_txt_alone_does_not_accept_requests_again(make_peer: MakePeer) -> None:
    async with Web() as site:
        refusals = iter([429, 429, 429])
        site.fallback = lambda request: html(status=next(refusals, 200))
        limits = replace(QUICK, back_off_s=0.3, robots_ttl_s=0.1)
        await crawl_and_drain(await make_peer(delay_s=0.01, limits=limits), site.url())
        asked = [url for _, url in site.requests]
        assert 3 <= asked.count(site.url("/robots.txt")), "it is asked for again between two refusals"
        times = [at for at, url in site.requests if url == site.url()]
        waits = [later - earlier for earlier, later in pairwise(times)]
        assert all(waits[number] >= 0.3 * 2**number for number in range(3)), waits


async def test_a_peer_tells_which_of_its_sites_refuse(make_peer: MakePeer) -> None:
    async with Web() as site:
        site.pages["/"] = lambda request: html(*(f"/{number}" for number in range(3)))
        site.fallback = lambda request: html(status=503, Retry_After="900")
        peer = await make_peer()
        await peer.crawl([site.url()])
        async with asyncio.timeout(60):
            while not (refusing := peer.row().refusing):
                await asyncio.sleep(0.01)
        assert (1, 503, 1) == (peer.row().refusing_count, refusing[0].status, refusing[0].refusals)
        assert refusing[0].site == site.url().split("/")[2]
        assert 0 < refusing[0].wait_s <= 900


async def test_the_urls_of_a_site_that_refuses_all_requests_fail_without_asking_for_each(
    make_peer: MakePeer, lines: Lines
) -> None:
    async with Web() as site:
        site.pages["/"] = lambda request: html(*(f"/{number}" for number in range(30)))
        site.fallback = lambda request: html(status=429)
        peer = await make_peer(delay_s=0.01, limits=replace(QUICK, back_off_s=0.1), refusals_max=5, retries=9)
        await crawl_and_drain(peer, site.url())
        assert {None: 1, "site_refused": 30} == Counter(line.failed for line in lines().values())
        assert {"site_refused": 30} == peer.counters.failed
        assert 5 == len([url for _, url in site.requests if url not in (site.url(), site.url("/robots.txt"))])


async def test_two_requests_to_a_site_are_its_delay_apart(make_peer: MakePeer) -> None:
    async with Web(sites=2) as site:
        site.fallback = tree(12, sites=2)(site)
        site.pages["/robots.txt"] = lambda request: web.Response(text="User-agent: *\nCrawl-delay: 0.3")
        await crawl_and_drain(await make_peer(delay_s=0.1), site.url("/0"))
        for number in range(2):
            times = [at for at, url in site.requests if url.startswith(site.url("", site=number))]
            assert min(later - earlier for earlier, later in pairwise(times)) >= 0.3
        assert len(site.fetched) == 12


async def test_a_slow_site_is_asked_less_often_with_a_delay_factor(make_peer: MakePeer) -> None:
    async with Web() as site:
        site.fallback = slow(tree(4)(site), 0.2)
        site.pages["/robots.txt"] = lambda request: web.Response(text="")
        peer = await make_peer(delay_s=0.01, delay_factor=3.0, delay_most_s=0.9)
        await crawl_and_drain(peer, site.url("/0"))
        times = [at for at, url in site.requests if "robots" not in url]
        assert 4 == len(times)
        # The answer takes 0.2 s, and then the site rests for three times as long.
        assert min(later - earlier for earlier, later in pairwise(times)) >= 4 * 0.2


async def test_forbidden_addresses_are_refused_whatever_names_them(tmp_path: Path, lines: Lines) -> None:
    async with Web() as site:
        async with Peer(Config(data=tmp_path, port=0), Job(delay_s=0.0)) as peer:
            await crawl_and_drain(
                peer, site.url(), f"http://localhost:{site.port}/", f"http://[::ffff:127.0.0.2]:{site.port}/"
            )
        assert not site.requests
        assert ["address_refused"] * 3 == [line.failed for line in lines().values()]


async def test_what_is_fetched_is_in_the_warc_where_the_line_says(
    make_peer: MakePeer, lines: Lines, tmp_path: Path
) -> None:
    async with Web() as site:
        site.pages["/"] = lambda request: web.Response(text="found me", content_type="text/html")
        await crawl_and_drain(await make_peer(), site.url())
        fields = lines()[site.url()].fields
        with (tmp_path / "one" / fields["warc"]).open("rb") as file:
            file.seek(fields["offset"])
            record = next(iter(ArchiveIterator(file)))
            assert ("response", site.url()) == (record.rec_type, record.rec_headers["WARC-Target-URI"])
            assert record.rec_headers["WARC-Payload-Digest"] == fields["digest"]
            assert record.content_stream().read() == b"found me"


async def test_a_page_that_breaks_the_parser_costs_its_links_only(
    make_peer: MakePeer, lines: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kadcrawl.crawl.content.html_links import LinkExtractor

    reading = LinkExtractor.reading

    def fragile(self: LinkExtractor, content: bytes, content_type: str, url: str, *rest: str) -> object:
        if url.endswith("/bad"):
            raise RuntimeError("a bug")
        return reading(self, content, content_type, url, *rest)

    monkeypatch.setattr(LinkExtractor, "reading", fragile)
    async with Web() as site:
        site.pages["/"] = lambda request: html("/bad", "/good")
        site.pages["/bad"] = site.pages["/good"] = lambda request: html("/")
        await crawl_and_drain(await make_peer(), site.url())
        assert {"/bad": "internal_error", "/good": None} == {
            path: lines()[site.url(path)].failed for path in ("/bad", "/good")
        }


async def test_compressed_pages_give_their_links(make_peer: MakePeer) -> None:
    async with Web() as site:
        site.pages["/"] = lambda request: web.Response(
            body=gzip.compress(b'<a href="/inside">'), content_type="text/html", headers={"Content-Encoding": "gzip"}
        )
        site.pages["/inside"] = lambda request: html()
        await crawl_and_drain(await make_peer(), site.url())
        assert site.url("/inside") in site.fetched


async def test_seeds_added_later_revoke_the_end(make_peer: MakePeer) -> None:
    async with Web(sites=2) as site:
        site.fallback = tree(10)(site)
        peer = await make_peer(scope="host")
        for number in range(2):
            await peer.crawl([site.url("/0", site=number)])
            async with asyncio.timeout(60):
                await peer.wait_done()
            assert site.fetched[site.url("/0", site=number)] == 1
            assert peer.state == "done"


async def test_a_finished_crawl_started_again_fetches_nothing(make_peer: MakePeer, tmp_path: Path) -> None:
    async with Web() as site:
        site.fallback = tree(20)(site)
        config = Config(data=tmp_path / "again", port=0, allow_networks=("127.0.0.0/8",))
        for _ in range(2):
            async with Peer(config, Job(delay_s=0.0)) as peer:
                await crawl_and_drain(peer, site.url("/0"))
        assert set(site.fetched.values()) == {1}
        assert peer.counters.pages == 20


@pytest.mark.parametrize("url", ["example.org", "ftp://example.org/", "http://", "http://exa mple.org/"])
async def test_a_bad_seed_is_a_clear_mistake(url: str, make_peer: MakePeer) -> None:
    with pytest.raises(ConfigError):
        await (await make_peer()).crawl([url])


async def test_a_directory_is_for_one_peer(make_peer: MakePeer, tmp_path: Path) -> None:
    await make_peer("one")
    with pytest.raises(StartError, match="another peer is running"):
        async with Peer(Config(data=tmp_path / "one", port=0)):
            pass


@pytest.mark.parametrize("make", [lambda config: Peer(config, Job()), Leaf], ids=["peer", "leaf"])
async def test_a_peer_is_entered_once(make: Callable[[Config], Peer | Leaf], tmp_path: Path) -> None:
    config = Config(data=tmp_path / "data", port=0)
    peer = make(config)
    async with make(config):
        with pytest.raises(StartError, match="another peer is running"):
            await peer.__aenter__()  # It holds nothing, and may be entered later.
    async with peer:
        with pytest.raises(ConfigError, match="this object was entered before: make another one for "):
            await peer.__aenter__()
        assert peer.resources.store.journal.has_failed is False
    with pytest.raises(ConfigError, match="this object was entered before: make another one for "):
        await peer.__aenter__()
    async with make(config):
        pass


async def test_a_peer_that_is_cancelled_while_it_is_entered_gives_all_back(tmp_path: Path) -> None:
    async with Peer(Config(data=tmp_path / "one", port=0), Job()) as peer:
        port = peer.contact.port
    config = Config(data=tmp_path / "data", port=port, metrics=("127.0.0.1", 0), web=("127.0.0.1", 0))

    async def enter() -> None:
        async with Peer(config, Job()):
            await asyncio.Event().wait()

    for steps in range(16):
        task = asyncio.create_task(enter())
        for _ in range(steps):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        async with Peer(config, Job()):
            pass


async def test_a_peer_that_is_cancelled_while_it_is_left_closes_its_files(tmp_path: Path) -> None:
    leaving = asyncio.Event()

    async def crawl(peer: Peer, url: str) -> None:
        async with peer:
            await crawl_and_drain(peer, url)
            leaving.set()

    async with Web() as site:
        site.pages["/"] = lambda request: html()
        for steps in range(12):
            config = Config(data=tmp_path / str(steps), port=0, limits=QUICK, allow_networks=("127.0.0.0/8",))
            peer = Peer(config, Job(delay_s=0.0))
            task = asyncio.create_task(crawl(peer, site.url()))
            async with asyncio.timeout(60):
                await leaving.wait()
            leaving.clear()
            for _ in range(steps):
                await asyncio.sleep(0)
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
            files = [path.readlink() for path in Path("/proc/self/fd").iterdir() if path.is_symlink()]
            assert [] == [file for file in files if file.is_relative_to(config.data)]


async def test_a_directory_that_cannot_be_written_is_a_clear_mistake(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StartError, match="cannot write"):
        async with Peer(Config(data=tmp_path / "file" / "below", port=0)):
            pass


async def test_a_port_in_use_is_a_clear_mistake(make_peer: MakePeer, tmp_path: Path) -> None:
    port = (await make_peer("one")).contact.port
    with pytest.raises(StartError, match=f"cannot listen on 127.0.0.1:{port}"):
        async with Peer(Config(data=tmp_path / "two", port=port)):
            pass


async def test_a_directory_of_another_kind_of_crawl_is_refused(tmp_path: Path) -> None:
    config = Config(data=tmp_path, port=0)
    async with Peer(config, Job(partition="host")) as peer:
        await peer.begin()
    with pytest.raises(StartError, match="partition"):
        async with Peer(config, Job(partition="url")) as peer:
            await peer.begin()


async def test_an_exception_of_the_embedder_comes_out_as_it_is(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):  # noqa: PT012
        async with Peer(Config(data=tmp_path, port=0)) as peer:
            await peer.begin()
            raise ZeroDivisionError


async def test_a_fault_in_the_background_ends_the_peer_and_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(fds: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fdatasync", full)
    with pytest.raises(StorageError, match="No space left"):  # noqa: PT012
        async with Peer(Config(data=tmp_path, port=0)) as peer:
            await peer.begin()
            await peer.wait_done()


async def test_a_peer_on_all_addresses_names_one_that_others_can_reach(make_peer: MakePeer, tmp_path: Path) -> None:
    key = SwarmKey.generate()
    first = await make_peer("one", key=key)
    async with Peer(Config(data=tmp_path / "two", host="0.0.0.0", port=0, swarm_key=key)) as second:
        assert second.contact.host != "0.0.0.0"
        await second.join([first.contact.address])
        assert second.contact.host == "127.0.0.1"
        assert {row.contact for row in (await first.census()).rows} == {first.contact, second.contact}


async def test_an_identity_is_drawn_once(tmp_path: Path) -> None:
    config = Config(data=tmp_path, port=0)
    ids = set()
    for _ in range(2):
        async with Peer(config) as peer:
            await peer.begin()
            ids.add(peer.contact.id)
    assert len(ids) == 1


# --- hostile and odd servers ------------------------------------------------------------------------------------------


async def test_whatever_bytes_a_head_holds_the_url_ends_in_one_page_line(make_peer: MakePeer, lines: Lines) -> None:
    random = Random(1)
    names = ("Content-Type", "Content-Encoding", "Location", "Retry-After", "X-Robots-Tag", "Link", "Server")

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await reader.readuntil(b"\r\n\r\n")
        status = b"404 no" if b"robots.txt" in request else b"%d " % random.choice((200, 200, 301, 404, 999))
        junk = [random.randbytes(12).translate(None, b"\r\n\0") for _ in names]
        head = b"".join(
            b"%s: text/html%s\r\n" % (name.encode(), value) for name, value in zip(names, junk, strict=True)
        )
        writer.write(b"HTTP/1.1 " + status + junk[0] + b"\r\n" + head + b"Content-Length: 2\r\n\r\nhi")
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.2", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        urls = {f"http://127.0.0.2:{port}/", *(f"http://127.0.0.2:{port}/{n}" for n in range(150))}
        peer = await make_peer(retries=0, scope="host")
        await crawl_and_drain(peer, *urls)
    assert urls <= set(lines())
    assert "internal_error" not in peer.counters.failed


async def test_a_bug_of_ours_costs_one_url(
    make_peer: MakePeer, lines: Lines, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with Web() as site:
        site.fallback = tree(20)(site)
        peer = await make_peer(max_pages=20)
        outputs = peer.components.outputs
        line = outputs.line

        def breaks(entry: FrontierEntry, *rest: Any) -> outputs_module.PageLine:
            if entry.url.endswith("/19"):
                raise RuntimeError("a bug")
            return line(entry, *rest)

        monkeypatch.setattr(outputs, "line", breaks)
        await crawl_and_drain(peer, site.url("/0"))
        assert {site.url("/19"): "internal_error"} == {url: one.failed for url, one in lines().items() if one.failed}
        assert (20, 20, 0, 0) == (
            len(lines()),
            peer.counters.done,
            peer.components.crawler.in_flight,
            peer.components.crawl_limits.pages.held,
        )
        assert "crawl.bug" in caplog.text


async def test_each_hop_of_a_redirected_robots_txt_waits_and_is_archived(make_peer: MakePeer, tmp_path: Path) -> None:
    async with Web() as site:
        site.pages["/robots.txt"] = lambda request: html(status=301, Location="/a")
        site.pages["/a"] = lambda request: html(status=302, Location="/b")
        site.pages["/b"] = lambda request: web.Response(text="User-agent: *\nDisallow: /no")
        site.pages["/"] = lambda request: html("/no")
        await crawl_and_drain(await make_peer(delay_s=0.3), site.url("/"))
        assert [site.url(path) for path in ("/robots.txt", "/a", "/b", "/")] == [url for _, url in site.requests]
        assert all(later - earlier >= 0.29 for (earlier, _), (later, _) in pairwise(site.requests))
        archived = b"".join(gzip.decompress(file.read_bytes()) for file in tmp_path.glob("one/warc/*"))
        for _, url in site.requests:
            assert archived.count(b"WARC-Target-URI: %s\r\n" % url.encode()) == 2


async def test_sites_whose_robots_txt_redirects_to_one_site_do_not_hurry_it(make_peer: MakePeer) -> None:
    async with Web(6) as site:
        site.fallback = lambda request: html()
        site.pages["/robots.txt"] = lambda request: (
            web.Response(text="")
            if request.host == f"127.0.0.2:{site.port}"
            else html(status=301, Location=site.url("/robots.txt"))
        )
        await crawl_and_drain(await make_peer(delay_s=0.3), *(site.url("/0", site=n) for n in range(6)))
        theirs = [at for at, url in site.requests if url.startswith(site.url(""))]
        assert all(later - earlier >= 0.29 for earlier, later in pairwise(theirs))
        assert len(theirs) == 2


async def test_a_site_many_robots_txt_redirect_to_is_asked_at_a_sites_pace(make_peer: MakePeer) -> None:
    async with Web(5) as site:
        site.fallback = lambda request: html()
        site.pages["/robots.txt"] = lambda request: html(status=301, Location=site.url("/shared"))
        site.pages["/shared"] = lambda request: web.Response(text="")
        await crawl_and_drain(await make_peer(delay_s=0.3), *(site.url("/0", site=n) for n in range(1, 5)))
        theirs = [at for at, url in site.requests if url == site.url("/shared")]
        assert all(later - earlier >= 0.29 for earlier, later in pairwise(theirs))
        assert len(theirs) == 4


async def test_robots_txt_is_asked_once_per_origin_even_if_each_url_is_a_site(
    make_peer: MakePeer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def robots(request: web.BaseRequest) -> web.StreamResponse:
        for _ in range(1_000):
            await asyncio.sleep(0)
        return web.Response(text="")

    async with Web() as site:
        site.fallback = lambda request: html()
        site.pages["/robots.txt"] = robots
        peer = await make_peer(partition="url")
        frontier = peer.components.frontier
        put_back, returned = frontier.put_back, []

        def counted(entry: FrontierEntry, now: float) -> None:
            returned.append(entry.url)
            put_back(entry, now)

        monkeypatch.setattr(frontier, "put_back", counted)
        await crawl_and_drain(peer, *(site.url(f"/{n}") for n in range(60)))
        assert len(site.fetched) == 60
        assert [site.url("/robots.txt")] == [url for _, url in site.requests if url not in site.fetched]
        # Each URL comes back once for the rules, and sometimes for its turn on the clock of the host.
        assert 60 == len(set(returned))
        assert max(Counter(returned).values()) <= 3


async def test_what_the_job_excludes_after_a_restart_is_recorded_and_not_fetched(tmp_path: Path, lines: Lines) -> None:
    config = Config(data=tmp_path / "x", port=0, allow_networks=("127.0.0.0/8",), limits=QUICK)
    async with Web() as site:
        site.fallback = lambda request: html(*(f"/calendar/{n}" for n in range(10)), "/end")
        async with Peer(config, Job(delay_s=60.0)) as peer:
            await peer.crawl([site.url("/")])
            place = peer.components.partitioner.locate(site.url("/calendar/0"))
            peer.components.intake.accept(Link(site.url("/calendar/0"), 1, 0), place, peer.clock.now())
        async with Peer(config, Job(delay_s=0.0, exclude=("/calendar/",))) as peer:
            await peer.begin()
            await crawl_and_drain(peer, site.url("/"))
        assert {site.url("/"): None, site.url("/end"): None, site.url("/calendar/0"): "exclude"} == {
            url: line.failed for url, line in lines().items()
        }
        assert not any("/calendar/" in url for url in site.fetched)


async def test_a_seed_that_is_refused_ends_in_one_recorded_line(make_peer: MakePeer, lines: Lines) -> None:
    async with Web(12) as site:
        first = await make_peer("a", exclude=("/private",), limits=replace(QUICK, url_chars_max=60))
        second = await make_peer("b", join=first, limits=replace(QUICK, url_chars_max=60))
        seeds = {site.url("/private", site=n): "exclude" for n in range(12)}
        seeds |= {site.url("/" + 60 * "x", site=n): "length" for n in range(12)}
        await first.crawl(list(seeds))
        async with asyncio.timeout(60):
            await asyncio.gather(first.wait_done(), second.wait_done())
        await asyncio.gather(first.drain(), second.drain())
        assert seeds == {url: line.failed for url, line in lines().items()}
        assert not site.requests


async def test_a_page_that_waits_for_its_links_does_not_hold_its_body(
    make_peer: MakePeer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Web() as site:
        body = b'<a href="/next">' + bytes(2_000_000)
        site.fallback = lambda request: web.Response(body=body, content_type="text/html")
        peer = await make_peer()
        receipts: list[AckCountdown] = []

        def never_acknowledged(links: object, cell: object) -> AckCountdown:
            receipts.append(AckCountdown())
            return receipts[-1]

        await peer.state_gossip.order("pause")
        await peer.crawl([site.url(f"/{n}") for n in range(15)])
        monkeypatch.setattr(peer.components.forwarder, "forward", never_acknowledged)
        tracemalloc.start()
        peer.obey(peer.state_gossip.say("resume"))
        async with asyncio.timeout(60):
            while len(receipts) < 15:
                await asyncio.sleep(0.01)
        held = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        for receipt in receipts:
            receipt.close()
        assert held < 5 * len(body)


async def test_pages_nobody_reads_stop_the_crawl_by_their_bytes(make_peer: MakePeer) -> None:
    async with Web() as site:
        site.fallback = lambda request: web.Response(body=bytes(50_000), content_type="text/html")
        limits = replace(QUICK, unfinished_bytes_max=100_000, site_connections_max=2)
        peer = await make_peer(limits=limits)
        crawler = peer.components.crawler
        read, waiting = asyncio.Event(), []

        async def reader(page: Page) -> None:
            waiting.append(page)
            await read.wait()

        await peer.state_gossip.order("pause")
        await peer.crawl([site.url(f"/{n}") for n in range(30)])
        peer.components.page_feed.show(reader)
        peer.obey(peer.state_gossip.say("resume"))
        while len(waiting) < 2 or (crawler.in_flight and len(waiting) < 30):
            await asyncio.sleep(0.01)
        assert len(waiting) <= 4
        read.set()
        async with asyncio.timeout(60):
            await peer.wait_done()
        assert len(site.fetched) == len(waiting) == 30


async def test_a_request_without_an_answer_is_no_page_but_uses_the_budget(make_peer: MakePeer) -> None:
    def break_off(request: web.BaseRequest) -> web.StreamResponse:
        assert request.transport is not None
        request.transport.close()
        return web.Response()

    async with Web() as site:
        site.pages["/0"] = lambda request: html("/dead", "/missing", "/more")
        site.pages["/dead"] = break_off
        peer = await make_peer(retries=0, max_pages=3)
        await crawl_and_drain(peer, site.url("/0"))
        assert (2, 1, 3) == (peer.counters.pages, peer.counters.unanswered, peer.counters.done)
        assert {"http_404": 1, "disconnected": 1} == peer.counters.failed
        await peer.__aexit__(None, None, None)
        again = await make_peer(max_pages=3)
        assert 0 == again.components.crawl_limits.pages.allowance
        assert 4 == again.store.pending + again.counters.done
