"""Test that pages are visited again, with conditional requests, by the peer that owns the page at that time."""

import asyncio
from collections import Counter, defaultdict
from dataclasses import replace
from pathlib import Path

from aiohttp import web
from warcio.archiveiterator import ArchiveIterator

from kadcrawl import Peer
from kadcrawl.cli.view.summary import Summary, add_up
from kadcrawl.link.wire.messages import Grant, Order
from kadcrawl.store.schema import is_pending
from scripts.kadcrawl_run import LoggedPage, page_lines
from tests.support.sites.web import Web, html
from tests.support.swarm.peers import QUICK, MakePeer, swarm
from tests.support.waiting import until

PERIOD_S = 1.0


class Changing:
    """Serve a site whose pages each behave in their own way, and note the header fields of the requests."""

    def __init__(self, site: Web) -> None:
        self.asked: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
        names = ("tagged", "dated", "plain", "new", "gone", "moved")
        site.pages["/"] = lambda request: html(*(site.url(f"/{name}") for name in names))
        site.pages |= {f"/{name}": getattr(self, name) for name in names}

    def _note(self, request: web.BaseRequest) -> int:
        fields = request.headers
        self.asked[request.path].append((fields.get("If-None-Match", ""), fields.get("If-Modified-Since", "")))
        return len(self.asked[request.path])

    def tagged(self, request: web.BaseRequest) -> web.Response:
        self._note(request)
        if request.headers.get("If-None-Match") == '"v1"':
            return web.Response(status=304, headers={"ETag": '"v1"'})
        return html(status=200, ETag='"v1"')

    def dated(self, request: web.BaseRequest) -> web.Response:
        self._note(request)
        date = "Sat, 21 Nov 2026 10:00:00 GMT"
        if request.headers.get("If-Modified-Since") == date:
            return web.Response(status=304)
        return html(status=200, Last_Modified=date)

    def plain(self, request: web.BaseRequest) -> web.Response:
        self._note(request)
        return web.Response(text="<p>always the same", content_type="text/html")

    def new(self, request: web.BaseRequest) -> web.Response:
        visit = self._note(request)
        return html(f"/found-{visit}", ETag=f'"v{visit}"')

    def gone(self, request: web.BaseRequest) -> web.Response:
        self._note(request)
        return web.Response(status=410)

    def moved(self, request: web.BaseRequest) -> web.Response:
        self._note(request)
        return web.Response(status=301, headers={"Location": "/plain"})


def visits(directory: Path) -> defaultdict[str, list[LoggedPage]]:
    """Return the lines of each path, by visit."""
    found: defaultdict[str, list[LoggedPage]] = defaultdict(list)
    for line in page_lines(directory):
        found[line.url[line.url.index("/", 8) :]].append(line)
    for lines in found.values():
        lines.sort(key=lambda line: int(line.fields.get("visit", 0)))
    return found


def kinds(directory: Path, path: str) -> list[str]:
    """Return the types of the records about a path with an answer, in all WARC files."""
    found = []
    for file in sorted(directory.rglob("*.warc.gz")):
        with file.open("rb") as stream:
            for record in ArchiveIterator(stream):
                if record.rec_type != "request" and (record.rec_headers["WARC-Target-URI"] or "").endswith(path):
                    found.append((record.rec_headers["WARC-Date"], record.rec_type))
    return [kind for _, kind in sorted(found)]


async def test_pages_are_fetched_again_by_what_is_known_of_them(make_peer: MakePeer, tmp_path: Path) -> None:
    async with Web() as site:
        pages = Changing(site)
        peers = await swarm(make_peer, "ab", recrawl_after_s=PERIOD_S)
        await peers[0].crawl([site.url("/")])
        await until(lambda: all(len(pages.asked[f"/{name}"]) >= 4 for name in ("tagged", "dated", "plain", "new")))
        await asyncio.gather(*(peer.drain() for peer in peers))
    first = ("", "")
    assert [first, *[('"v1"', "")] * 3] == pages.asked["/tagged"][:4]
    assert [first, *[("", "Sat, 21 Nov 2026 10:00:00 GMT")] * 3] == pages.asked["/dated"][:4]
    assert [first] * 4 == pages.asked["/plain"][:4]
    assert [first, ('"v1"', ""), ('"v2"', ""), ('"v3"', "")] == pages.asked["/new"][:4]
    assert [first, first] == pages.asked["/gone"], "410 twice in a row is enough"
    assert {first} == set(pages.asked["/moved"])

    found = visits(tmp_path)
    for path, how in (("/tagged", "not_modified"), ("/dated", "not_modified"), ("/plain", "same_digest")):
        lines = found[path]
        assert [*range(len(lines))] == [line.fields.get("visit", 0) for line in lines]
        assert [None, *[how] * (len(lines) - 1)] == [line.fields.get("unchanged") for line in lines]
        assert 1 == len({line.fields["digest"] for line in lines})
        assert ["response", *["revisit"] * (len(lines) - 1)] == kinds(tmp_path, path)
    assert {None} == {line.fields.get("unchanged") for line in found["/new"]}
    assert {"/found-1", "/found-2", "/found-3"} <= found.keys(), "links of what has changed are followed"
    assert 0 == sum(peer.counters.duplicates for peer in peers)


ANSWER = ("answer_status", "answer_mime", "answer_bytes", "answer_digest", "answer_fetched_at", "answer_peer")


def body_at(directory: Path, warc: str, offset: int) -> bytes:
    """Return the body of the record at this place of a WARC file below the directory."""
    (file,) = [path for path in directory.rglob(Path(warc).name) if path.is_file()]
    with file.open("rb") as stream:
        stream.seek(offset)
        record = next(iter(ArchiveIterator(stream)))
        assert record.rec_type == "response"
        return bytes(record.content_stream().read())


async def test_every_line_of_a_visit_names_the_last_answer_with_a_body_wherever_it_was_fetched(
    make_peer: MakePeer, tmp_path: Path
) -> None:
    """The page is unchanged, then out of order, then changed. Between its visits it moves to another owner."""
    asked, answers = list[str](), iter([200, 304, 304, 500, 201, 200])

    def page(request: web.BaseRequest) -> web.Response:
        status = next(answers, 304)
        asked.append(str(status))
        if status == 304:
            return web.Response(status=304)
        return web.Response(
            status=status, text=f"<p>page {len(asked)}", content_type="text/html", headers={"ETag": f'"{len(asked)}"'}
        )

    async with Web() as site:
        site.pages["/"] = page
        first = await make_peer("a", recrawl_after_s=PERIOD_S, retries=0)
        await first.crawl([site.url("/")])
        await until(lambda: len(asked) >= 2)
        second = await make_peer("b", join=first)
        await first.leave()
        await until(lambda: len(asked) >= 7)
        await second.drain()
    lines = visits(tmp_path)["/"][:7]
    assert ["200", "304", "304", "500", "201", "200", "304"] == asked[:7]
    assert [200, 304, 304, 500, 201, 200, 304] == [line.status for line in lines]
    assert 2 == len({line.fields["peer"] for line in lines}), "the page has moved"
    for number, line in enumerate(lines):
        origin = lines[0 if number < 5 else 5]
        names = ("status", "mime", "bytes", "digest", "fetched_at", "peer")
        assert [origin.fields[name] for name in names] == [line.fields[name] for name in ANSWER]
        body = body_at(tmp_path, line.fields["answer_warc"], line.fields["answer_offset"])
        assert f"<p>page {1 if number < 5 else 6}".encode() == body


async def test_a_crawl_that_fetches_each_page_once_has_no_answer_beside_its_visit(
    make_peer: MakePeer, tmp_path: Path
) -> None:
    async with Web() as site:
        site.pages["/"] = lambda request: html()
        peer = await make_peer()
        await peer.crawl([site.url("/")])
        await until(lambda: peer.ended)
        await peer.drain()
    (line,) = visits(tmp_path)["/"]
    assert not [name for name in line.fields if name.startswith("answer")]


async def test_totals_add_up_over_rounds_in_which_failures_heal_and_pages_begin_to_fail(
    make_peer: MakePeer, tmp_path: Path
) -> None:
    statuses = {"heals": [404, 503, 200], "fails": [200, 500, 404], "always": [400], "never": [200]}
    asked: defaultdict[str, int] = defaultdict(int)

    def page(request: web.BaseRequest) -> web.Response:
        name = request.path.strip("/")
        status = statuses[name][min(asked[name], len(statuses[name]) - 1)]
        asked[name] += 1
        return web.Response(status=status, text=f"{name} {asked[name]}", content_type="text/html")

    async with Web() as site:
        site.pages["/"] = lambda request: html(*(f"/{name}" for name in statuses))
        site.fallback = page
        peers = await swarm(make_peer, "abc", recrawl_after_s=PERIOD_S, retries=0)
        await peers[0].crawl([site.url("/")])

        def totals() -> Summary:
            return add_up([peer.row() for peer in peers], None, peers[0].job)

        def add_up_now() -> bool:
            summary, pending = totals(), sum(peer.row().pending for peer in peers)
            assert summary.urls_found == summary.urls_done + pending
            assert sum(summary.urls_failed.values()) <= summary.urls_done
            return all(asked[name] >= 3 for name in statuses)

        await until(add_up_now)
        for peer in peers:
            peer.obey(Order("pause", 1))
        await until(lambda: not any(peer.row().in_flight for peer in peers))
        add_up_now()
        for peer in peers:
            await peer.store.journal.commit()
    summary, lines = totals(), [*page_lines(tmp_path)]
    last = {line.url: line.failed for line in sorted(lines, key=lambda line: line.fields.get("visit", 0))}

    def is_due(url: str) -> bool:
        key = peers[0].components.partitioner.locate(url).key
        return is_pending(max(peer.store.state(key) or 0 for peer in peers))

    assert summary.urls_failed == dict(Counter(why for url, why in last.items() if why and not is_due(url)))
    assert 5 == summary.urls_found
    assert summary.pages == len(lines)


async def test_until_pages_are_due_the_swarm_rests_and_has_not_ended(make_peer: MakePeer) -> None:
    async with Web() as site:
        site.fallback = lambda request: html()
        peers = await swarm(make_peer, "ab", recrawl_after_s=3600.0)
        await peers[0].crawl([site.url("/")])
        await until(lambda: all(peer.state == "resting" for peer in peers))
        assert not any(peer.ended for peer in peers)
        rows = (await peers[1].census()).rows
        due_s = [row.due_s for row in rows if row.due_s is not None]
        assert due_s
        assert all(3500 < seconds <= 3600 for seconds in due_s)
        await peers[1].crawl([site.url("/more")])
        await until(lambda: site.fetched[site.url("/more")])
        await until(lambda: all(peer.state == "resting" for peer in peers))


async def test_pages_of_a_site_that_refused_for_a_while_are_visited_again(make_peer: MakePeer, tmp_path: Path) -> None:
    async with Web() as site:
        status = 200
        paths = [f"/{number}" for number in range(9)]
        site.pages["/"] = lambda request: html(*map(site.url, paths))
        site.fallback = lambda request: html(status=status)
        limits = replace(QUICK, back_off_s=0.1)
        peer = await make_peer(recrawl_after_s=PERIOD_S, limits=limits, refusals_max=2, retries=0)
        await peer.crawl([site.url("/")])
        await until(lambda: all(site.fetched[site.url(path)] for path in paths))
        status = 503

        def refused() -> set[str]:
            """Return the paths that were not asked for at their last visit, as the site refused others."""
            return {path for path, lines in visits(tmp_path).items() if lines[-1].failed == "site_refused"}

        await until(refused)
        status = 200
        await until(lambda: not refused())


async def test_a_swarm_of_which_nothing_is_left_to_visit_ends(make_peer: MakePeer) -> None:
    async with Web() as site:
        site.fallback = lambda request: web.Response(status=410)
        peers = await swarm(make_peer, "ab", recrawl_after_s=PERIOD_S)
        await peers[0].crawl([site.url("/")])
        await until(lambda: all(peer.ended for peer in peers))
    assert 2 == site.fetched[site.url("/")]


async def test_whoever_owns_a_page_by_then_visits_it(make_peer: MakePeer, tmp_path: Path) -> None:
    """Peers come and go between the visits. The next visitor knows the answer of the server at the first visit."""
    async with Web(sites=8) as site:
        pages = Changing(site)
        site.fallback = pages.tagged
        urls = [site.url("/tagged", number) for number in range(8)]
        peers = await swarm(make_peer, "abc", recrawl_after_s=4.0)
        await peers[0].crawl(urls)
        await until(lambda: all(peer.state == "resting" for peer in peers))
        owners = [peer for peer in peers if peer.counters.pages]
        await owners[0].leave()
        await owners[0].__aexit__(None, None, None)
        rest = [peer for peer in peers if peer is not owners[0]]
        joined = await make_peer("d", join=rest[0])
        here: list[Peer] = [*rest, joined]
        await until(lambda: all(site.fetched[url] >= 2 for url in urls))
        await until(lambda: all(peer.state == "resting" for peer in here))
    assert [("", "")] * 8 == pages.asked["/tagged"][:8]
    assert {('"v1"', "")} == set(pages.asked["/tagged"][8:])


async def test_a_peer_back_on_its_disk_visits_what_fell_due_meanwhile(make_peer: MakePeer) -> None:
    async with Web() as site:
        pages = Changing(site)
        peer = await make_peer("one", recrawl_after_s=PERIOD_S)
        await peer.crawl([site.url("/tagged")])
        await until(lambda: peer.counters.pages >= 1)
        await peer.drain()
        await peer.__aexit__(None, None, None)
        asked = len(pages.asked["/tagged"])
        await asyncio.sleep(PERIOD_S)
        await make_peer("one", recrawl_after_s=PERIOD_S)
        await until(lambda: len(pages.asked["/tagged"]) > asked)
    assert ('"v1"', "") == pages.asked["/tagged"][asked]


async def test_a_limit_of_pages_that_is_heard_of_while_the_swarm_rests_ends_it(make_peer: MakePeer) -> None:
    async with Web() as site:
        site.pages["/"] = lambda request: html("/one")
        site.pages["/one"] = lambda request: html()
        peers = await swarm(make_peer, "abc", max_pages=1000, recrawl_after_s=5000.0)
        await peers[0].crawl([site.url("/")])
        await until(lambda: all(peer.resources.activity.resting for peer in peers))
        await peers[0].runtime.waves.ask_all(Grant({}, True, "pages"))
        await until(lambda: all(peer.ended for peer in peers))
