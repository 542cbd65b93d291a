"""The schemas of outputs hold for real output: of a crawl with all kinds of lines, of its summary and of its status."""

import ast
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest
from aiohttp import web
from jsonschema import Draft202012Validator

from kadcrawl import Peer
from kadcrawl.cli.view.status import SwarmFigures, show
from kadcrawl.cli.view.summary import Summary, add_up
from kadcrawl.crawl.content.redirects import SEED_LEFT_SCOPE, Loop
from kadcrawl.crawl.fetch.result import FetchError
from kadcrawl.crawl.output.outputs import PageLine, RecordLine
from kadcrawl.crawl.scope.scope import LIMITS, Reason
from kadcrawl.crawl.scope.url_rules import TakenOut
from kadcrawl.link.wire.messages import Status
from kadcrawl.link.wire.order_messages import StandingOrder
from kadcrawl.link.wire.peer_state import PeerState
from kadcrawl.settings.page_rules import Field, RecordRule, RoleRule
from scripts.docs.docstrings import field_docstrings
from scripts.docs.failures import FAILURES, LEFT_OUT
from scripts.docs.schemas import FORMATS, Format, schema_of
from tests.support.output_schemas import departures, lines_of
from tests.support.sites.web import Web, html, slow, tree
from tests.support.swarm.peers import MakePeer, finish, swarm
from tests.support.waiting import until

ROOT = Path(__file__).parents[2]
TEXT = "the quick brown fox jumps over the lazy dog and then sleeps all day long in the sun " * 5
NOINDEX = "<meta name=robots content=noindex>"
CLOSED = "http://127.0.0.1:9/"
"""An address at which nothing listens."""


def serve(site: Web) -> None:
    """Serve a page for each kind of line."""
    links = (
        "/item/1",
        "/item/bad",
        "/forbidden",
        "/gone",
        "/moved",
        "/nowhere",
        "/same",
        "/other",
        "/long?b=1",
        "/packed",
    )
    sitemap = f"<urlset><url><loc>{site.url('/listed')}</loc></url></urlset>"
    site.pages |= {
        "/robots.txt": lambda _: web.Response(
            text=f"User-agent: *\nDisallow: /forbidden\nSitemap: {site.url('/sitemap.xml')}\n"
        ),
        "/sitemap.xml": lambda _: web.Response(text=sitemap, content_type="application/xml"),
        "/listed": lambda _: html(),
        "/": lambda _: html(*links, CLOSED),
        "/item/1": lambda _: web.Response(text="<h1>One</h1>", content_type="text/html"),
        "/item/bad": lambda _: web.Response(text="<h1>Bad</h1>", content_type="text/html"),
        "/moved": lambda _: web.Response(status=301, headers={"Location": "/listed"}),
        "/nowhere": lambda _: web.Response(status=301, headers={"Location": "ftp://example.org/"}),
        "/same": lambda _: web.Response(text=f"<p>{TEXT}<a href=/a>a", content_type="text/html"),
        "/other": lambda _: web.Response(text=f"<p>{TEXT}<a href=/b>b", content_type="text/html"),
        "/packed": lambda _: web.Response(body=b"no gzip", headers={"Content-Encoding": "gzip"}),
        "/long": lambda _: web.Response(
            text=f"{NOINDEX}<link rel=canonical href=/short><a href=/c>", content_type="text/html"
        ),
    }


RECORDS = (
    RecordRule(pattern="/item/bad", fields=(Field("link", "css:a"),), each="css:h1::text"),
    RecordRule(
        pattern="/item/", name="item", fields=(Field("title", "css:h1::text"), Field("all", "css:h1", every=True))
    ),
)


async def crawled(make_peer: MakePeer, site: Web, names: str = "a", **job: Any) -> list[Peer]:
    peers = await swarm(make_peer, names, **job)
    await peers[0].crawl([site.url("/")])
    await finish(peers)
    return peers


async def all_kinds(make_peer: MakePeer, site: Web) -> list[Peer]:
    serve(site)
    return await crawled(
        make_peer,
        site,
        retries=0,
        simhash=True,
        sitemaps=True,
        twins="skip",
        canonical="honor",
        roles=(RoleRule(pattern="/item/", role="detail_request"),),
        records=RECORDS,
    )


async def visited_again(make_peer: MakePeer, site: Web, tmp_path: Path) -> list[Peer]:
    def tagged(request: web.BaseRequest) -> web.Response:
        if request.headers.get("If-None-Match"):
            return web.Response(status=304, headers={"ETag": '"v1"'})
        return html(ETag='"v1"')

    site.pages |= {"/": lambda _: html("/tagged", "/plain"), "/tagged": tagged, "/plain": lambda _: html()}
    peer = await make_peer("again", recrawl_after_s=1.0)
    await peer.crawl([site.url("/")])
    proofs = {"not_modified", "same_digest"}
    await until(lambda: proofs <= {line.get("unchanged") for line in lines_of(tmp_path, "pages")})
    await peer.drain()
    return [peer]


async def fetched_by_another(make_peer: MakePeer, site: Web) -> list[Peer]:
    """Let one of three peers not reach the sites, and all peers miss a closed address.

    The crawl is long enough for that peer to take part.
    """
    site.pages["/"] = lambda _: html(site.url("/0"), CLOSED)
    site.fallback = slow(tree(300, 20)(site), 0.02)
    peers = [first := await make_peer("able", retries=0), await make_peer("other", join=first)]
    peers.append(await make_peer("unable", join=first, networks=()))
    await first.crawl([site.url("/")])
    await finish(peers)
    return peers


async def test_all_kinds_of_lines_are_as_their_schemas_say(make_peer: MakePeer, tmp_path: Path) -> None:
    async with Web() as site:
        await all_kinds(make_peer, site)
    async with Web() as site:
        await visited_again(make_peer, site, tmp_path)
    async with Web(20) as site:
        await fetched_by_another(make_peer, site)
    for name in ("pages", "records"):
        lines = list(lines_of(tmp_path, name))
        assert [] == [(why, line) for line in lines for why in departures(name, line)]
        form = next(schema_of(ROOT, each) for each in FORMATS if each.name == name)
        assert set(form["properties"]) == {field for line in lines for field in line}, "each field is in some line"
    failures = {line.get("failed") for line in lines_of(tmp_path, "pages")}
    assert {None, "http_404", "robots", "connect", "bad_redirect", "truncated"} == failures


ORDERS = [StandingOrder("pause", "*.example.org", 1.0, 1, bytes(20), "ann"), StandingOrder("set", "delay", 2.5, 2)]


async def status_of(peer: Peer, capsys: pytest.CaptureFixture[str]) -> Any:
    show(Status(peer.job, await peer.census(), peer.ended, peer.paused, ORDERS), as_json=True)
    return json.loads(capsys.readouterr().out)


async def test_summary_and_status_are_as_their_schemas_say(
    make_peer: MakePeer, capsys: pytest.CaptureFixture[str]
) -> None:
    async with Web() as site:
        with_records = await all_kinds(make_peer, site)
        peers = await swarm(make_peer, "bc")
        await peers[0].crawl([site.url("/")])
        await peers[1].leave()
        statuses = [await status_of(peer, capsys) for peer in (with_records[0], peers[0])]
        summaries = [
            add_up((await peer.census()).rows, 1.5, peer.job, ORDERS).as_json() for peer in (with_records[0], peers[0])
        ]
    assert [] == [why for status in statuses for why in departures("status", status)]
    assert [] == [why for summary in summaries for why in departures("summary", summary)]
    assert "records" in statuses[0]["peers"][0]
    assert "records" not in statuses[1]
    assert 1 == len(statuses[1]["left"]), "a row of a peer that left has been compared"
    assert statuses[0]["urls_failed"]
    assert statuses[0]["links_left_out"]
    assert 2 == len(statuses[0]["orders"])
    for summary, status in zip(summaries, statuses, strict=True):
        assert {"seconds", "failed_examples", "pages_lost"} == summary.keys() - status.keys()


@pytest.mark.parametrize("name", ["pages", "records", "summary", "status"])
def test_a_field_that_no_schema_describes_is_found(name: str) -> None:
    each = next(each for each in FORMATS if each.name == name)
    example = dict(each.examples[0])
    assert [] == departures(name, example)
    assert 1 == len(departures(name, example | {"unheard_of": 1}))
    example.pop("peer" if "peer" in example else "peers")
    assert 1 == len(departures(name, example))


@pytest.mark.parametrize("each", FORMATS, ids=lambda each: each.name)
def test_every_field_has_a_text_a_note_and_an_example_that_is_valid(each: Format) -> None:
    schema = schema_of(ROOT, each)
    Draft202012Validator.check_schema(schema)
    for kind, notes in each.notes.items():
        texts = field_docstrings(ROOT, kind)
        fields = [field.name for field in msgspec.inspect.type_info(kind).fields]  # type: ignore[attr-defined]
        assert set(fields) == notes.keys()
        assert [] == [name for name in fields if not texts[name]]
    for described in (schema, *schema.get("$defs", {}).values()):
        for name, form in described["properties"].items():
            validator = Draft202012Validator({"$defs": schema.get("$defs", {}), **form})
            assert [] == [f"{name}: {error.message}" for error in validator.iter_errors(form["examples"][0])]
    for example in schema["examples"]:
        assert [] == departures(each.name, example)


@pytest.mark.parametrize("kind", [PageLine, SwarmFigures])
def test_a_field_is_optional_where_its_struct_leaves_it_out(kind: type[msgspec.Struct]) -> None:
    each = next(each for each in FORMATS if each.root is kind)
    defaults = {field.name for field in msgspec.structs.fields(kind) if not field.required}
    assert defaults == {name for name, note in each.notes[kind].items() if note.absent}


def test_the_formats_are_those_of_the_structs_that_write_them() -> None:
    assert [PageLine, RecordLine, Summary, SwarmFigures] == [each.root for each in FORMATS]


def passing_errors() -> Iterator[str]:
    """Yield the errors of a fetch that never stand in a page line, by their docstrings."""
    texts = field_docstrings(ROOT, FetchError)
    return (FetchError[name].value for name, text in texts.items() if "Never in ``urls_failed``" in text)


def texts_in(node: ast.AST) -> set[str]:
    return {one.value for one in ast.walk(node) if isinstance(one, ast.Constant) and isinstance(one.value, str)}


def reasons_in_code() -> set[str]:
    """Return the reasons that the crawl gives as texts: the third argument of FoundLinks, and the ends of attempts."""
    found: set[str] = set()
    for path in (ROOT / "kadcrawl/crawl").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call):
                name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                if name == "FoundLinks" and len(node.args) > 2:
                    found |= texts_in(node.args[2])
                elif name in ("_finish_unfetched", "_leave_out"):
                    found |= {text for argument in node.args for text in texts_in(argument)}
            elif isinstance(node, ast.Assign):
                names = {"failed", "KILLED_PEER", "SITE_REFUSED"} | (
                    {"why"} if path.name == "robots_fetch.py" else set()
                )
                if ast.unparse(node.targets[0]) in names:
                    found |= texts_in(node.value)
    return found


def test_every_reason_of_a_failure_is_explained() -> None:
    errors = {error.value for error in FetchError} - set(passing_errors())
    reasons = {reason for one in get_args(Reason) for reason in (get_args(one) or [one])}
    assert {"bad_redirect", "bad_sitemap", "killed_peer", "robots", "robots_unreachable"} <= reasons_in_code()
    redirects = {*get_args(Loop), SEED_LEFT_SCOPE}
    assert set(FAILURES) == {"http_404"} | errors | reasons | redirects | reasons_in_code()


def test_every_limit_that_leaves_links_out_is_explained() -> None:
    found: set[str] = {*LIMITS, *get_args(TakenOut)}
    for path in (ROOT / "kadcrawl/crawl").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Subscript) and "left_out" in ast.unparse(node.value):
                found |= texts_in(node.slice)
            elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "limit":
                found |= texts_in(node.value)
            elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "FoundLinks" and len(node.args) > 3:
                found |= texts_in(node.args[3])
    assert set(LEFT_OUT) == found


def test_every_state_of_a_peer_is_explained() -> None:
    texts = field_docstrings(ROOT, PeerState)
    assert [] == [state.name for state in PeerState if not texts[state.name]]
