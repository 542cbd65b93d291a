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

from kadcrawl.balance.lessons import load
from kadcrawl.balance.powers import MOST, checked, untold
from kadcrawl.cli.pipe import Machine
from kadcrawl.config import PORT_DEFAULT, URL_PARTS_MAX, Job, Limits
from kadcrawl.errors import ConfigError
from kadcrawl.job_file import KEYS, read
from kadcrawl.urls import host_of, seed

Command = TypeVar("Command", bound=Callable[..., Any])

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
                "--job",
                "job_file",
                type=click.Path(path_type=Path),
                metavar="FILE",
                help="A TOML file for what follows, each by the option's name, as in max-pages = 500, and for seeds, "
                'as in seeds = ["https://example.org/"]. What is said here as well, or by KADCRAWL_CONTACT, wins; URLs '
                "are joined. kadcrawl check FILE explains one.",
            ),
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
                "--max-site-pages",
                type=click.IntRange(1),
                metavar="N",
                help="URLs of one site at most, the first that are found; the sure bound on a site that makes up pages "
                "for ever, such as a calendar. Not with --partition url.",
            ),
            *(
                click.option(
                    f"--max-{name}",
                    type=click.IntRange(1, URL_PARTS_MAX),
                    default=default,
                    show_default=True,
                    metavar="N",
                    help=f"{what}; {URL_PARTS_MAX} for no limit.",
                )
                for name, default, what in (
                    ("path-segments", Job().path_segments_max, "No links with more segments in their path"),
                    (
                        "path-repeats",
                        Job().path_repeats_max,
                        "No links in whose path something stands more often in a row, such as /a/b/a/b/a/b/a/b",
                    ),
                    ("parameters", Job().query_parameters_max, "No links with more parameters in their query"),
                )
            ),
            click.option(
                "--session-ids",
                type=click.Choice(["strip", "keep"]),
                default="strip",
                show_default=True,
                help="Take session IDs such as ;jsessionid=... out of links, as each gives a page one more URL.",
            ),
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
                type=click.Choice(["auto", "level", "drain", "predictive", "off"]),
                default="auto",
                show_default=True,
                help="Peers with more than they can crawl lend pages to others. level: by how many URLs they have. "
                "drain: by how long these will take them, at the pace they measure. predictive: as drain, but at "
                "the pace a network (--network) predicts until enough is measured; and what is measured is kept for "
                "kadcrawl train. None of them with --max-pages or --max-depth; auto is drain where that can be.",
            ),
            click.option(
                "--block",
                type=click.IntRange(1, 500),
                default=20,
                show_default=True,
                metavar="N",
                help="URLs that are lent at a time, or a multiple of that.",
            ),
            click.option(
                "--update",
                type=click.FloatRange(0.1, 3600),
                default=5.0,
                show_default=True,
                metavar="S",
                help="Seconds between two looks at who has too much.",
            ),
            click.option(
                "--simhash",
                is_flag=True,
                help="Write the SimHash of each page's text to pages.jsonl: near-identical pages differ in 3 of its 64 "
                "bits at most. Costs half as much CPU again for each page.",
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


class Power(click.ParamType[tuple[str, float]]):
    """NAME=NUMBER, a power of this machine."""

    name = "NAME=NUMBER"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, float]:
        if isinstance(value, tuple):
            return value
        name, _, number = str(value).partition("=")
        try:
            ((name, power),) = checked({name: float(number)}).items()
        except ValueError as error:  # ConfigError is one.
            self.fail(f"{value!r}: {error}; e.g. net_mbps=100", param, ctx)
        return name, power


def machine_options(command: Command) -> Command:
    """Add the options that say what this machine can do and may be asked for."""
    for option in reversed(
        [
            click.option(
                "--fetches",
                type=click.IntRange(1, 10_000),
                default=Limits().fetches_max,
                show_default=True,
                metavar="N",
                help=(
                    "Requests under way at a time at most, of each peer; to one site without a delay "
                    f"{Limits().site_connections_max} of these, with a delay one."
                ),
            ),
            click.option(
                "--network",
                type=click.Path(path_type=Path, dir_okay=False),
                metavar="FILE",
                help="What kadcrawl train wrote, for --balance predictive. Without it a peer is balanced as by drain: "
                "until it has measured its pace it lends nothing, and is lent a few blocks to try.",
            ),
            click.option(
                "--power",
                "powers",
                type=Power(),
                multiple=True,
                help=f"A power of this machine, for --balance predictive, instead of what is measured at the start: "
                f"{', '.join(MOST)}. Repeatable.",
            ),
        ]
    ):
        command = option(command)
    return command


def make_machine(
    fetches: int, network: Path | None, powers: Sequence[tuple[str, float]], job: Job | None = None
) -> Machine:
    """Return what these options say of the machine; `job` is None if the swarm has it.

    Raises ConfigError for a network that is none, or that could not predict, as it needs powers nobody tells, and for
    what this job has no use for.
    """
    machine = Machine(fetches, None if network is None else str(network.absolute()), dict(powers))
    if job is not None and job.lends_by != "predictive" and (network or powers):
        raise ConfigError(f"--network and --power are for --balance predictive, and this crawl's is {job.balance}")
    if network is not None:
        load(network)
        if (missing := _missing(machine)) is not None:
            raise ConfigError(f"{missing}, by which is predicted: declare it")
    return machine


def say_missing(machine: Machine, job: Job) -> None:
    """Say which powers the machine of a peer in this job does not tell, if it needs them."""
    if job.lends_by == "predictive" and (missing := _missing(machine)) is not None:
        click.echo(f"kadcrawl: {missing}; without it this crawl is balanced as by drain, and teaches nothing", err=True)


def _missing(machine: Machine) -> str | None:
    """Return which powers a machine does not tell, and by what options they are declared; None if it tells all."""
    names = untold(machine.powers)
    example = " ".join(f"--power {name}=NUMBER" for name in names)
    return f"this machine does not tell its {', '.join(names)} ({example})" if names else None


def make_job(urls: Sequence[str], options: dict[str, Any], directory: Path) -> tuple[list[str], Job]:
    """Return the seeds and the job of these options; asks for --contact if it is needed and a person is there.

    What neither the person nor the --job file said remains as it is in the peer's `directory`, if that holds a crawl.
    Raises ConfigError for what cannot be, or would do nothing.
    """
    path: Path | None = options["job_file"]
    said = {} if path is None else read(path).values
    seeds = list(dict.fromkeys([*said.get("seeds", ()), *map(seed, urls)]))
    given = {
        KEYS[name.replace("_", "-")].field: value
        for name, value in options.items()
        if name != "job_file" and _is_given(name)
    }
    job = replace(_journaled_job(directory), **(said | given | {"seeds": ()}))
    if job.lends_by == "off" and any(_is_given(name) for name in ("block", "update")):
        raise ConfigError(
            "--block and --update are for a crawl that lends pages: not with --balance off, --max-pages or --max-depth"
        )
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
