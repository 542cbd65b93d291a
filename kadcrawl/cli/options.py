"""What the commands' options have in common: shapes, checks, and the questions asked when something is missing."""

import ipaddress
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from kadcrawl.config import PORT_DEFAULT, Job
from kadcrawl.errors import ConfigError
from kadcrawl.urls import host_of, seed

Command = TypeVar("Command", bound=Callable[..., Any])

_JOB_FIELDS = {"delay": "delay_s"}
"""Options whose field of the job has another name."""

_IPV6_AND_PORT = re.compile(r"\[(?P<host>[^\]]*:[^\]]*)\](?::(?P<port>[0-9]{1,5}))?")
_NAME_AND_PORT = re.compile(r"(?P<host>[^\s:/?#@\[\]\\]*)(?::(?P<port>[0-9]{1,5}))?")


class Address(click.ParamType[tuple[str, int]]):
    """HOST:PORT, HOST or :PORT; an IPv6 address in brackets."""

    name = "HOST:PORT"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, int]:
        if isinstance(value, tuple):
            return value
        text = str(value)
        if text.count(":") > 1 and not text.startswith("["):
            self.fail(f"{text!r}: an IPv6 address goes into brackets, e.g. [::1]:{PORT_DEFAULT}", param, ctx)
        parts = _IPV6_AND_PORT.fullmatch(text) or _NAME_AND_PORT.fullmatch(text)
        if parts is None or not _is_host(parts["host"]) or int(parts["port"] or 0) > 65_535:
            self.fail(f"{text!r} is not HOST:PORT, e.g. 192.168.1.5:{PORT_DEFAULT}", param, ctx)
        return parts["host"] or "127.0.0.1", int(parts["port"] or PORT_DEFAULT)


def shown(address: tuple[str, int]) -> str:
    """Return the address as HOST:PORT, as `Address` reads it."""
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _is_host(text: str) -> bool:
    """Whether it is an IP address or can be a host's name."""
    if ":" in text:
        try:
            ipaddress.IPv6Address(text)
        except ValueError:
            return False
        return True
    try:
        text.encode("idna")  # What the resolver does, with a label that is empty or too long as well.
    except UnicodeError:
        return False
    return True


def _network(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    for value in values:
        try:
            ipaddress.ip_network(value)
        except ValueError as error:
            raise click.BadParameter(f"{error}; a CIDR looks like 192.168.0.0/16") from None
    return values


def job_options(command: Command) -> Command:
    """Add the options that define a job."""
    for option in reversed(
        [
            click.option(
                "--scope",
                type=click.Choice(["host", "domain", "prefix", "any"]),
                default="host",
                show_default=True,
                help="Follow links on the seeds' hosts, on their registered domains, below their paths, or any.",
            ),
            click.option("--include", multiple=True, metavar="REGEX", help="Only URLs that match one of these."),
            click.option("--exclude", multiple=True, metavar="REGEX", help="No URLs that match one of these."),
            click.option("--max-depth", type=click.IntRange(0), help="Links away from a seed at most."),
            click.option("--max-pages", type=click.IntRange(1), help="URLs the whole swarm fetches at most."),
            click.option(
                "--delay",
                type=click.FloatRange(0, 86_400),
                default=1.0,
                show_default=True,
                metavar="S",
                help="Seconds between two requests to one site; robots.txt may ask for more.",
            ),
            click.option(
                "--retries",
                type=click.IntRange(0, 20),
                default=3,
                show_default=True,
                help="Further tries after a time-out, a reset, 429 or 5xx, each after a longer wait.",
            ),
            click.option(
                "--partition",
                type=click.Choice(["host", "domain", "url"]),
                default="host",
                show_default=True,
                help="What a site is: the unit of politeness and of ownership.",
            ),
            click.option(
                "--balance",
                type=click.Choice(["level", "off"]),
                default="off",
                show_default=True,
                help="level: peers with more than they can crawl lend pages to peers that wait for work. "
                "Not with --max-pages or --max-depth.",
            ),
            click.option("--name", default="crawl", show_default=True, help="Names the crawl in its WARC files."),
            click.option(
                "--contact",
                envvar="KADCRAWL_CONTACT",
                metavar="URL|EMAIL",
                help="Where a site's owner can reach you; goes into the User-Agent. [env: KADCRAWL_CONTACT]",
            ),
        ]
    ):
        command = option(command)
    return command


def allow_network_option(command: Command) -> Command:
    """Add --allow-network."""
    return click.option(
        "--allow-network",
        multiple=True,
        metavar="CIDR",
        callback=_network,
        help="Also fetch from these addresses although they are not public, e.g. 127.0.0.0/8. Repeatable.",
    )(command)


def make_job(urls: Sequence[str], options: dict[str, Any], directory: Path) -> tuple[list[str], Job]:
    """Return the seeds and the job of these options; asks for --contact if it is needed and a person is there.

    What the person did not say remains as it is in the peer's `directory`, if that holds a crawl.
    """
    seeds = [seed(url) for url in urls]
    said = {_JOB_FIELDS.get(name, name): value for name, value in options.items() if _is_given(name)}
    job = replace(_journaled_job(directory), seeds=(), **said)
    if not job.contact and needs_contact(seeds):
        if sys.stdin is None or not sys.stdin.isatty():
            raise ConfigError(
                "say who you are: --contact URL or e-mail address goes into the User-Agent, "
                "so that a site's owner can reach you"
            )
        contact = click.prompt("Contact for the sites' owners (URL or e-mail address; goes into the User-Agent)")
        job = replace(job, contact=contact)
    return seeds, job


def needs_contact(seeds: Sequence[str]) -> bool:
    """Whether any of these canonical URLs is somebody else's."""
    return not all(_is_loopback(host_of(url)) for url in seeds)


def _is_given(option: str) -> bool:
    return click.get_current_context().get_parameter_source(option) is not ParameterSource.DEFAULT


def _journaled_job(directory: Path) -> Job:
    if not directory.is_dir():
        return Job()
    from kadcrawl.peer.job_record import journaled_job  # Not at the top: it loads the whole peer.

    return journaled_job(directory) or Job()


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
