"""kadcrawl and curl as clients of the odd servers. The outcome of a request is a few words, as the page has them.

Tests: tests/scripts/test_odd_servers.py
"""

import asyncio
import re
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from kadcrawl.crawl.content.html_links import LinkExtractor
from kadcrawl.crawl.content.link_finder import FoundLinks, LinkFinder
from kadcrawl.crawl.fetch.address_guard import Guard
from kadcrawl.crawl.fetch.fetcher import Fetcher, user_agent
from kadcrawl.crawl.fetch.request_rules import RequestRules
from kadcrawl.crawl.fetch.result import FetchResult
from kadcrawl.crawl.robots.rules import parse
from kadcrawl.crawl.scope.scope import Scope
from kadcrawl.keys import site_hash, url_key
from kadcrawl.settings.job import Job
from kadcrawl.settings.limits import Limits
from kadcrawl.settings.site_settings import SiteSettings
from kadcrawl.settings.trust import read_authorities
from kadcrawl.store.frontier_entry import FrontierEntry
from kadcrawl.system.cooperative import run_to_end
from kadcrawl.urls import site_of
from kadcrawl.version import VERSION
from scripts.odd_servers.behaviors import Behavior

LIMITS: Final = replace(
    Limits(), connect_timeout_s=5.0, fetch_timeout_s=3.0, idle_timeout_s=1.0, rate_grace_s=1.5, rate_min_bytes_s=1_000
)
"""The limits of kadcrawl, with short times."""
PATIENT: Final = replace(Limits(), connect_timeout_s=60.0, fetch_timeout_s=60.0, idle_timeout_s=60.0, rate_grace_s=60.0)
"""The limits for a behavior that no time-out is to end, however busy the machine is."""
TIMES_OUT: Final = ("`timeout`", "`idle`", "`too_slow`")
PATIENCE_S: Final = 3
"""Seconds after which another client counts as waiting."""
CURL_EXIT_WAITED: Final = 28
BODY_CHARS_SHOWN: Final = 20


def outcome(status: int | None, failed: str | None = None, body: str = "") -> str:
    """Return the words for an answer, or for a failure with or without a status."""
    parts = [str(status)] if status is not None else []
    parts.append(f"fails: `{failed}`" if failed else body)
    return ", ".join(parts)


def shown_body(content: bytes) -> str:
    """Return the words for a body."""
    text = content.decode("utf-8", "replace")
    if len(text) > BODY_CHARS_SHOWN or not text.isprintable():
        return f"{len(content)} bytes"
    return f"`{text}`" if text else "empty"


def shown_links(links: Sequence[str], base: str) -> str:
    """Return the words for the links of a page, relative to its folder."""
    near = [link.removeprefix(base) for link in links]
    return f"links: {', '.join(f'`{link}`' for link in near)}" if near else "no links"


class Kadcrawl:
    """kadcrawl, as it fetches a page and finds its links."""

    def __init__(self, authority: Path) -> None:
        """`authority` is a file with the certificate to trust."""
        self._agent = user_agent(VERSION)
        settings = SiteSettings(Job(ca_pem=read_authorities(authority)))
        # Made once, as each reads all certificates of the system.
        self._short, self._patient = (RequestRules(limits, self._agent, settings) for limits in (LIMITS, PATIENT))

    async def outcome(self, behavior: Behavior, url: str) -> str:
        """Return the outcome of one request, on a connection of its own."""
        guard = Guard(["127.0.0.0/8"])
        ends = behavior.kadcrawl.endswith(TIMES_OUT)
        limits, rules = (LIMITS, self._short) if ends else (PATIENT, self._patient)
        fetcher = Fetcher(limits, guard, self._agent, time.time, request_rules=rules)
        await fetcher.start()
        try:
            result = await fetcher.fetch(url)
        finally:
            await fetcher.close()
        found = _found(url, result)
        if found.failed is not None:
            return outcome(result.status, found.failed)
        if behavior.shows == "target" and found.location is not None:
            return outcome(result.status, None, f"to `{found.location.removeprefix(url)}`")
        links = [link.url for link in found.outlinks]
        shown = shown_links(links, url) if behavior.shows == "links" else shown_body(result.content)
        return outcome(result.status, None, shown)


def _found(url: str, result: FetchResult) -> FoundLinks:
    site = site_of(url, "host")
    entry = FrontierEntry(1, 1, url_key(site_hash(site), url), site, url, 0, 0, 0.0)
    finder = LinkFinder(LinkExtractor(LIMITS), Scope(Job(seeds=(url,))), lambda urls, depth: list(urls), LIMITS)
    return run_to_end(finder.find_links(entry, result, parse(b"", "kadcrawl")))


async def curl_outcome(behavior: Behavior, url: str, authority: Path) -> str:
    """Return the outcome of curl. Raises OSError if there is no curl."""
    options = ["-sS", "--compressed", "--max-time", str(PATIENCE_S), "--cacert", str(authority)]
    if behavior.shows == "target":
        options.append("-L")
    process = await asyncio.create_subprocess_exec(
        *("curl", *options, "-w", "\n%{http_code}", url),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, error = await process.communicate()
    body, _, code = out.rpartition(b"\n")
    status = int(code) or None
    if process.returncode == CURL_EXIT_WAITED:
        return outcome(status, None, "waits")
    if process.returncode:
        said = re.sub(r"127\.0\.0\.1:\d+", "the server", error.decode("utf-8", "replace").partition(")")[2].strip())
        return outcome(status, None, f"error {process.returncode} ({said.splitlines()[0][:80] if said else ''})")
    if behavior.shows != "body":
        return outcome(status, None, "downloads it") if behavior.shows == "links" else f"follows to {status}"
    return outcome(status, None, shown_body(body))


def curl_version(text: str) -> str:
    """Return the version in the output of `curl --version`."""
    return text.split()[1]
