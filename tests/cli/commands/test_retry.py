"""`kadcrawl retry` in a running swarm and in a directory at rest."""

import re
from pathlib import Path

import pytest
from aiohttp import web

from kadcrawl.cli.commands.retry import _host
from kadcrawl.errors import ConfigError
from scripts.kadcrawl_run import page_lines
from tests.support.sites.web import Web, html
from tests.support.swarm.command import address_of, interrupted, joinable, kadcrawl, until


def failures(data: Path) -> list[tuple[str, str | None]]:
    """Return the (path, failed) of all page lines."""
    lines = [(line.url[line.url.index("/", 8) :], line.fields.get("failed")) for line in page_lines(data)]
    return sorted(lines, key=str)


@pytest.mark.chaos
async def test_a_crawl_at_rest_goes_on_with_the_order(tmp_path: Path) -> None:
    async with Web(2) as site:
        site.pages["/"] = lambda request: html(site.url("/a"), site.url("/b", 1))
        site.fallback = lambda request: web.Response(status=500)
        data = str(tmp_path / "data")
        options = ("--peers", "2", "--delay", "0", "--retries", "0", "--scope", "any", "--allow-network", "127.0.0.0/8")
        crawl = ("crawl", site.url("/"), *options, "--insecure", "--data", data)
        first = await kadcrawl(*crawl)
        assert first.code == 0, first
        assert "2 failed: http_500 2" in first.out
        ordered = await kadcrawl("retry", "--data", data, "--reason", "http_500", "--site", "127.0.0.9")
        assert (0, "no failed URL is fetched again: none is left that the order applies to\n") == (
            ordered.code,
            ordered.out,
        )
        ordered = await kadcrawl("retry", "--data", data, "--reason", "http_500")
        said = f"2 failed URLs to be fetched again by kadcrawl crawl --data {data} (http_500 2)\n"
        assert (0, said) == (ordered.code, ordered.out), ordered
        site.fallback = lambda request: html()
        again = await kadcrawl("crawl", "--insecure", "--data", data)
        assert again.code == 0, again
        assert "3 of 3 URLs done (0 failed)" in again.out
        assert {site.url("/"): 1, site.url("/a"): 2, site.url("/b", 1): 2} == dict(site.fetched)
    assert {("/a", None), ("/b", None)} <= set(failures(tmp_path))


async def test_a_running_swarm_begins_at_once(tmp_path: Path) -> None:
    async with Web() as site:
        site.fallback = lambda request: web.Response(status=404)
        peer = await joinable(site.url("/x"), "--delay", "0", data=tmp_path / "one")
        address = await address_of(peer)
        await until(lambda: failures(tmp_path), peer)
        site.fallback = lambda request: html()
        ordered = await kadcrawl("retry", "--peer", address)
        assert (0, "1 failed URL to be fetched again (http_404 1)\n") == (ordered.code, ordered.out), ordered
        await until(lambda: site.fetched[site.url("/x")] == 2, peer)
        assert 0 == (await kadcrawl("retry", "--data", str(tmp_path / "one"))).code
        assert (await interrupted(peer)).code == 11


async def test_what_is_no_reason_and_no_url_is_refused(tmp_path: Path) -> None:
    wrong = await kadcrawl("retry", "--data", str(tmp_path), "--reason", "wrong")
    assert wrong.code == 2
    assert "'wrong' is no reason of a failure; there are" in wrong.err
    assert (await kadcrawl("retry", "--data", str(tmp_path), "--url", "nonsense")).code == 2
    nobody = await kadcrawl("retry", "--data", str(tmp_path / "nothing"))
    assert (2, True) == (nobody.code, "there is no" in nobody.err)


async def test_a_crawl_of_fingerprints_is_refused_at_rest(tmp_path: Path) -> None:
    async with Web() as site:
        data = str(tmp_path / "data")
        crawl = ("crawl", site.url("/"), "--delay", "0", "--history", "bloom", "--insecure", "--data", data)
        await kadcrawl(*crawl, "--allow-network", "127.0.0.0/8")
        refused = await kadcrawl("retry", "--data", data)
        assert (2, True) == (refused.code, "does not remember which URLs failed" in refused.err), refused


@pytest.mark.parametrize(
    ("site", "why"),
    [
        (
            "https://example.org/a",
            "is one page, and the order would be about its whole host: name example.org, or give",
        ),
        ("*.example.org", "--site is a host or a domain, such as example.org, and no pattern"),
        ("two words", "two words"),
    ],
)
def test_a_site_that_is_no_host_is_refused(site: str, why: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(why)):
        _host(site)
    assert ["", "example.org", "example.org"] == list(map(_host, ("", "Example.org", "https://example.org/")))
