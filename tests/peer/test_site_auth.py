"""Real crawls of sites that want to know who asks: secrets reach them, and nothing and nobody else."""

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest
from aiohttp import web

from kadcrawl import StartError
from kadcrawl.settings.site_rules import SiteRule
from kadcrawl.urls import Partition
from scripts.kadcrawl_run import LoggedPage
from tests.support.sites.web import Web, html
from tests.support.swarm.peers import MakePeer, finish

Lines = Callable[[], dict[str, LoggedPage]]
LOCKED, OTHER = "127.0.0.2", "127.0.0.3"
SECRETS = {"wiki": "me:hunter2", "token": "hunter2-token"}


def serve_locked(site: Web, seen: dict[str, set[str]]) -> None:
    """Serve a site that answers only to its password, leads to another site by a redirect, and notes who asked."""

    def page(request: web.BaseRequest) -> web.StreamResponse:
        host = request.host.partition(":")[0]
        seen.setdefault(host, set()).add(request.headers.get("Authorization", ""))
        if host == LOCKED and "Authorization" not in request.headers:
            return html(status=401, WWW_Authenticate='Basic realm="wiki"')
        if request.path == "/away":
            return html(status=302, Location=site.url("/landed", site=1))
        return html("/1", "/2", "/away")

    site.fallback = page
    site.pages.clear()


def everything_below(path: Path) -> bytes:
    """Return the bytes of all files, those of WARC files unpacked."""
    files = [file for file in path.rglob("*") if file.is_file()]
    return b"".join(
        gzip.decompress(file.read_bytes()) if file.name.endswith(".gz") else file.read_bytes() for file in files
    )


@pytest.mark.parametrize("partition", ["host", "domain", "url"])
async def test_a_password_reaches_its_site_and_nothing_else(
    partition: Partition, make_peer: MakePeer, lines: Lines, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with Web(2) as site:
        seen: dict[str, set[str]] = {}
        serve_locked(site, seen)
        rule = SiteRule(match=(f"{LOCKED}:{site.port}",), auth="basic:wiki", http_secrets=True)
        first = await make_peer("a", sites=(rule,), partition=partition, secrets=SECRETS)
        peers = [first, *[await make_peer(name, join=first, secrets=SECRETS) for name in "bc"]]
        await first.crawl([site.url("/")])
        await finish(peers)
        assert {LOCKED: {"Basic bWU6aHVudGVyMg=="}, OTHER: {""}} == seen
        assert all(line.fields["status"] in (200, 302) for line in lines().values())
        assert site.url("/landed", site=1) in lines()
    for kept in (everything_below(tmp_path), caplog.text.encode()):
        assert b"hunter2" not in kept
        assert b"bWU6aHVudGVyMg" not in kept


async def test_a_peer_without_the_secret_of_a_job_does_not_join(make_peer: MakePeer) -> None:
    rule = SiteRule(match=("a.test",), auth="bearer:token")
    peers = [await make_peer("a", sites=(rule,), secrets=SECRETS)]
    with pytest.raises(StartError, match=r"secret token on each machine .* KADCRAWL_SECRET_TOKEN"):
        await make_peer("b", join=peers[0])
    with pytest.raises(StartError, match="secret token on each machine"):
        await make_peer("c", sites=(rule,))


async def test_no_secret_is_sent_to_a_site_without_encryption_by_default(make_peer: MakePeer, lines: Lines) -> None:
    async with Web() as site:
        seen: dict[str, set[str]] = {}
        serve_locked(site, seen)
        rule = SiteRule(match=(f"{LOCKED}:{site.port}",), auth="bearer:token")
        peer = await make_peer("a", sites=(rule,), secrets=SECRETS)
        await peer.crawl([site.url("/")])
        await finish([peer])
    assert {LOCKED: {""}} == seen
    assert ["http_401"] == [line.fields.get("failed") for line in lines().values()]
