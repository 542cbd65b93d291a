"""Test the TLS settings of single hosts against a server of its own authority."""

import asyncio
import ssl
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from kadcrawl.crawl.fetch.address_guard import Guard
from kadcrawl.crawl.fetch.fetcher import Fetcher
from kadcrawl.crawl.fetch.request_rules import RequestRules
from kadcrawl.crawl.fetch.result import FetchResult
from kadcrawl.crawl.fetch.tls import tls_of
from kadcrawl.errors import ConfigError
from kadcrawl.settings.job import Job
from kadcrawl.settings.limits import Limits
from kadcrawl.settings.site_rules import SiteRule
from kadcrawl.settings.site_settings import SiteSettings
from kadcrawl.settings.trust import read_authorities
from tests.support.sites.proxies import certificate, serving_tls

HOST = "127.0.0.1"
LIMITS = Limits(connect_timeout_s=5, fetch_timeout_s=5)


@asynccontextmanager
async def tls_server(path: Path, clients: Path | None = None) -> AsyncIterator[str]:
    """Serve one page with this certificate, to clients with a certificate of `clients`, if given. Yields its URL."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        writer.close()

    context = serving_tls(path)
    if clients is not None:
        context.load_verify_locations(clients)
        context.verify_mode = ssl.CERT_REQUIRED
    server = await asyncio.start_server(answer, HOST, 0, ssl=context)
    async with server:
        yield f"https://{HOST}:{server.sockets[0].getsockname()[1]}/"


async def fetched(url: str, job: Job, secrets: dict[str, str] | None = None) -> FetchResult:
    rules = RequestRules(LIMITS, "test", SiteSettings(job), secrets or {})
    fetcher = Fetcher(LIMITS, Guard(["127.0.0.0/8"]), "test", time.time, request_rules=rules)
    await fetcher.start()
    try:
        return await fetcher.fetch(url)
    finally:
        await fetcher.close()


async def test_an_authority_of_a_job_or_a_rule_is_trusted_where_it_is_said(tmp_path: Path) -> None:
    path = certificate(tmp_path, HOST)
    pem = read_authorities(path)
    (tmp_path / "other").mkdir()
    other = read_authorities(certificate(tmp_path / "other", HOST))
    async with tls_server(path) as url:
        for job, expected in (
            (Job(), None),
            (Job(ca_pem=pem), 200),
            (Job(sites=(SiteRule(match=(HOST,), ca_pem=pem),)), 200),
            (Job(sites=(SiteRule(match=("127.0.0.2",), ca_pem=pem),)), None),
            (Job(ca_pem=pem, sites=(SiteRule(match=(HOST,), ca_pem=other),)), None),
        ):
            assert expected == (await fetched(url, job)).status


async def test_any_certificate_is_accepted_of_hosts_that_are_named_for_it(tmp_path: Path) -> None:
    async with tls_server(certificate(tmp_path, "other.example", days=-1)) as url:
        assert 200 == (await fetched(url, Job(sites=(SiteRule(match=(HOST,), verify=False),)))).status
        assert (await fetched(url, Job(sites=(SiteRule(match=("127.0.0.2",), verify=False),)))).status is None


async def test_a_client_certificate_opens_its_host(tmp_path: Path) -> None:
    server, mine = certificate(tmp_path, HOST), certificate(tmp_path, "client.test")
    pem = read_authorities(server)
    rule = SiteRule(match=(HOST,), ca_pem=pem, client_certificate="mine")
    async with tls_server(server, clients=mine) as url:
        assert 200 == (await fetched(url, Job(sites=(rule,)), {"mine": str(mine)})).status
        assert (await fetched(url, Job(ca_pem=pem))).status is None


def test_a_client_certificate_that_cannot_be_read_is_told_by_its_name(tmp_path: Path) -> None:
    rule = SiteRule(match=(HOST,), client_certificate="mine")
    empty = tmp_path / "empty.pem"
    empty.touch()
    for path in (tmp_path / "hunter2", empty):
        with pytest.raises(ConfigError, match="secret mine must be the path of a PEM file"):
            tls_of(rule, "", {"mine": str(path)})


def test_hosts_without_settings_of_tls_have_those_of_every_request() -> None:
    assert tls_of(None, "", {}) is True
    assert tls_of(SiteRule(match=(HOST,), delay_s=1.0), "", {}) is True
