"""What the commands' options have in common: shapes, checks, and the questions asked when something is missing.

Tests: tests/cli/test_parts.py, tests/cli/test_command_train.py
"""

import ipaddress
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from kadcrawl.balance.machine_profile import PROFILE_MOST, check_declared, undetected
from kadcrawl.balance.training_data import load_network
from kadcrawl.cli.machine import MachineSettings
from kadcrawl.errors import ConfigError
from kadcrawl.settings.config import PORT_DEFAULT, Job, Limits
from kadcrawl.settings.job_file import KEYS, PROXIES, in_keys, proxy_fields, read
from kadcrawl.sinks.names import FORMS, check, parse
from kadcrawl.urls import Partition, host_of, seed, site_of

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
        if "://" in text:
            self.fail(f"{text!r}: an address has no scheme; write HOST:PORT", param, ctx)
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


def allow_network_option(command: Command) -> Command:
    """Add --allow-network."""
    return click.option(
        "--allow-network",
        multiple=True,
        metavar="CIDR",
        callback=_network,
        help="Also fetch from these addresses although they are not public, e.g. 127.0.0.0/8. Repeatable. If none is "
        "given, those given before on this --data.",
    )(command)


class Power(click.ParamType[tuple[str, float]]):
    """NAME=NUMBER, a power of this machine."""

    name = "NAME=NUMBER"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, float]:
        if isinstance(value, tuple):
            return value
        name, _, number = str(value).partition("=")
        try:
            ((name, power),) = check_declared({name: float(number)}).items()
        except ValueError as error:  # ConfigError is one.
            self.fail(f"{value!r}: {error}; e.g. net_mbps=100", param, ctx)
        return name, power


def _sinks(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    by_argument = parameter.name and context.get_parameter_source(parameter.name) is ParameterSource.COMMANDLINE
    try:
        for name in map(parse, values):
            check(name)
            if by_argument and name.has_secret:
                raise ConfigError(
                    f"the sink {name.shown} has a password or key in it, which others on this machine see in a "
                    "command: put the sink into the environment variable KADCRAWL_SINK"
                )
    except ConfigError as error:
        raise click.BadParameter(str(error)) from None
    return values


def sink_option(flag: str, what: str, required: bool = False) -> Callable[[Command], Command]:
    """Return what adds the option that says where results go."""
    return click.option(
        flag,
        "sinks",
        multiple=True,
        required=required,
        envvar="KADCRAWL_SINK",
        metavar="SINK",
        callback=_sinks,
        help=f"{what}: {FORMS}. Repeatable. [env: KADCRAWL_SINK, with spaces between; the place for one with a "
        "password or key in it]",
    )


def make_sinks(given: Sequence[str], job_file: Path | None) -> tuple[str, ...]:
    """Return the sinks of this machine, absolute: those given, or else those the job file names.

    Raises ConfigError for those of the file that are none, or need what is not installed.
    """
    if given or job_file is None:
        return tuple(parse(name).whole for name in given)
    said = read(job_file).sinks
    try:
        names = [parse(name) for name in said]
        for name in names:
            check(name)
    except ConfigError as error:
        raise ConfigError(f"{job_file}: {error}") from None
    return tuple(name.whole for name in names)


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
                f"{', '.join(PROFILE_MOST)}. Repeatable.",
            ),
            sink_option(
                "--sink",
                "Where results go as well, by key, while the crawl runs; it waits for none, so name them again when it "
                "goes on",
            ),
        ]
    ):
        command = option(command)
    return command


def make_machine(
    fetches: int,
    network: Path | None,
    powers: Sequence[tuple[str, float]],
    sinks: tuple[str, ...],
    job: Job | None = None,
) -> MachineSettings:
    """Return what these options say of the machine; `job` is None if the swarm has it.

    Raises ConfigError for a network that is none, or that could not predict, as it needs powers nobody tells, and for
    what this job has no use for.
    """
    machine = MachineSettings(fetches, None if network is None else str(network.absolute()), dict(powers), sinks)
    if job is not None and job.lends_by != "predictive" and (network or powers):
        raise ConfigError(f"--network and --power are for --balance predictive, and this crawl's is {job.balance}")
    if network is not None:
        load_network(network)
        if (missing := _missing(machine)) is not None:
            raise ConfigError(f"{missing}, by which is predicted: declare it")
    return machine


def say_missing(machine: MachineSettings, job: Job) -> None:
    """Say which powers the machine of a peer in this job does not tell, if it needs them."""
    if job.lends_by == "predictive" and (missing := _missing(machine)) is not None:
        click.echo(f"kadcrawl: {missing}; without it this crawl is balanced as by drain, and teaches nothing", err=True)


def _missing(machine: MachineSettings) -> str | None:
    """Return which powers a machine does not tell, and by what options they are declared; None if it tells all."""
    names = undetected(machine.powers)
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
    journaled = _journaled_job(directory)
    try:
        if PROXIES in given:
            given |= proxy_fields(given[PROXIES])
        if given.get("proxy_judge"):
            given["proxy_judge"] = seed(given["proxy_judge"])
        job = replace(journaled, **(said | given | {"seeds": ()}))
        job.check_useful(given)
        _check_health_check_url(job, seeds)
    except ConfigError as error:
        raise ConfigError(in_keys(str(error), "--")) from None
    if not job.contact and needs_contact(seeds):
        if sys.stdin is None or not sys.stdin.isatty():
            raise ConfigError(
                "say who you are: --contact URL or e-mail address goes into the User-Agent, "
                "so that a site's owner can reach you"
            )
        contact = click.prompt("Contact for the sites' owners (URL or e-mail address; goes into the User-Agent)")
        job = replace(job, contact=contact)
    return seeds, job


def networks_of(given: tuple[str, ...], directory: Path) -> tuple[str, ...]:
    """Return the networks that may be fetched: if none is given those with which the peer of this directory began."""
    if given or not directory.is_dir():
        return given
    from kadcrawl.peer.job_store import journaled_networks  # As below.

    return journaled_networks(directory)


def listen_at(given: tuple[str, int] | None, directory: Path) -> tuple[str, int]:
    """Return where to listen (host, port): if nothing is given where others may look for the peer of this directory."""
    if given is None and directory.is_dir():
        from kadcrawl.peer.job_store import journaled_listening  # As below.

        given = journaled_listening(directory)
    return given or ("127.0.0.1", PORT_DEFAULT)


def _check_health_check_url(job: Job, seeds: Sequence[str]) -> None:
    partition: Partition = "domain" if job.partition == "domain" else "host"
    for url in seeds if job.by_proxies else ():
        if site_of(url, partition) == site_of(job.proxy_judge, partition):
            raise ConfigError(
                f"proxy_judge must be on a site that is not crawled, and {site_of(url, partition)} is a seed's: every "
                "peer asks it through each proxy, beside the pace a site is crawled at"
            )


def needs_contact(seeds: Sequence[str]) -> bool:
    """Whether any of these canonical URLs is somebody else's."""
    return not all(_is_loopback(host_of(url)) for url in seeds)


def _is_given(option: str) -> bool:
    return click.get_current_context().get_parameter_source(option) is not ParameterSource.DEFAULT


def _journaled_job(directory: Path) -> Job:
    if not directory.is_dir():
        return Job()
    from kadcrawl.peer.job_store import journaled_job  # Not at the top: it loads the whole peer.

    return journaled_job(directory) or Job()


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
