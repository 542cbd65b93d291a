"""`kadcrawl retry`: failed URLs are fetched again, in a running swarm or in a directory whose crawl does not run.

Tests: tests/cli/commands/test_retry.py
"""

from collections.abc import Mapping
from pathlib import Path

import click
import cloup

from kadcrawl.cli.exits import DONE, told
from kadcrawl.cli.keys import key_to_ask, peer_options_or_directory
from kadcrawl.cli.options import is_given
from kadcrawl.cli.targets import directories, goes_on, rests, targets
from kadcrawl.errors import ConfigError
from kadcrawl.link.wire.failure_reasons import is_reason, reason_names
from kadcrawl.system.plural import counted
from kadcrawl.urls import seed


@cloup.command()
@cloup.option_group(
    "Failed URLs, all by default",
    cloup.option(
        "--reason", "reasons", multiple=True, metavar="REASON", help="Only these, e.g. timeout or http_503. Repeatable."
    ),
    cloup.option("--site", default="", metavar="HOST", help="Only those of this host or domain."),
    cloup.option("--url", default="", metavar="URL", help="Only this one."),
)
@peer_options_or_directory("Any peer of the swarm.")
@told
def retry(
    reasons: tuple[str, ...],
    site: str,
    url: str,
    peer: tuple[str, int],
    data: Path,
    key_file: Path | None,
) -> int:
    """Fetch failed URLs again.

    A running swarm begins at once: the order reaches all its peers, also those that join later. If no peer runs in
    --data, the next kadcrawl crawl, start or join with that directory fetches the URLs. Each URL is fetched once by an
    order, and keeps its depth. A URL that fails again stays failed until the next order.
    """
    from kadcrawl.cli.local.retry_at_rest import retry_at_rest
    from kadcrawl.link.wire.given_order import silent_parts
    from kadcrawl.link.wire.retry_messages import Retried, RetryFailed, RetryOrder

    wanted = RetryOrder(0, _checked(reasons), _host(site), seed(url) if url else "")
    resting = [] if is_given("peer") else directories(data)
    if rests(resting):
        urls = retry_at_rest(resting, wanted)
        click.echo(said(urls, f"to be fetched again by {goes_on(data)}"))
        return DONE
    answer = targets(peer, data, key_to_ask(key_file, data)).ask(RetryFailed(wanted), Retried)
    click.echo(said(answer.urls, "to be fetched again"))
    if answer.cells_left:
        parts = counted(answer.cells_left, "part of the crawl is", "parts of the crawl are")
        click.echo(f"{parts} still being looked through: more may follow")
    if answer.parts_missing:
        click.echo(silent_parts(answer.parts_missing, "begins", "begin"))
    return DONE


def said(urls: Mapping[str, int], becomes: str) -> str:
    """Return the sentence on URLs that became pending, by the reason of their failure."""
    from kadcrawl.cli.view.summary import reasons

    count = sum(urls.values())
    if not count:
        return "no failed URL is fetched again: none is left that the order applies to"
    return f"{counted(count, 'failed URL')} {becomes} ({reasons(urls)})"


def _host(site: str) -> str:
    """Return the host or domain of --site, or an empty text without the option. Raises ConfigError."""
    from kadcrawl.settings.site_rules import match_named

    name = match_named(site.strip(), f", or give --url {site}") if site else ""
    if name.startswith("*."):
        raise ConfigError(f"--site is a host or a domain, such as {name[2:]}, and no pattern")
    return name


def _checked(reasons: tuple[str, ...]) -> tuple[str, ...]:
    for reason in reasons:
        if not is_reason(reason):
            raise ConfigError(
                f"{reason!r} is no reason of a failure; there are {', '.join(reason_names())}, and http_ with any "
                "status from 400 up"
            )
    return reasons
