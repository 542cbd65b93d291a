"""Options that several commands share: their types, their checks, and the question for a missing --contact.

Tests: tests/cli/test_parts.py, tests/cli/test_job_options.py
"""

import ipaddress
import re
import sys
from collections.abc import Callable, Container, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource
from cloup import option, option_group

from kadcrawl.errors import ConfigError
from kadcrawl.settings.config import PORT_DEFAULT
from kadcrawl.settings.contact import checked_contact, needs_contact
from kadcrawl.settings.job import Job
from kadcrawl.settings.job_file import KEYS, PROXIES, in_keys, proxy_fields, read
from kadcrawl.settings.limit_file import SaidLimits, joined
from kadcrawl.settings.site_rules import check_contact
from kadcrawl.settings.unset import NONE, UNSET, fields_in_use, is_none
from kadcrawl.settings.useful import check_useful
from kadcrawl.sinks.sink_names import FORMS, STANDARD_OUTPUT, SinkName, check, check_directory, parse
from kadcrawl.system.printable import printable
from kadcrawl.urls import Partition, seed, site_of

Command = TypeVar("Command", bound=Callable[..., Any])

DATA = option(
    "--data",
    type=click.Path(path_type=Path),
    default=Path("crawl-data"),
    show_default=True,
    help="Directory for the journal, WARC files and pages.jsonl. Started again on it, a crawl goes on.",
)
SEEDS = option(
    "--seeds",
    "seeds_file",
    metavar="FILE",
    help="Also begin at the URLs of this file, one a line, perhaps as gzip, of any number; - reads standard input. The "
    "same command goes on in a file where it stopped.",
)
EXIT_WHEN_DONE = option("--exit-when-done", is_flag=True, help="Exit once the whole swarm has nothing left to do.")

_IPV6_AND_PORT = re.compile(r"\[(?P<host>[^\]]*:[^\]]*)\](?::(?P<port>[0-9]{1,5}))?")
_NAME_AND_PORT = re.compile(r"(?P<host>[^\s:/?#@\[\]\\]*)(?::(?P<port>[0-9]{1,5}))?")


class Address(click.ParamType[tuple[str, int]]):
    """HOST:PORT, HOST or :PORT, with an IPv6 address in brackets."""

    name = "HOST:PORT"

    def __init__(self, port: int = PORT_DEFAULT) -> None:
        """`port` is that of an address without one."""
        self._port = port

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, int]:
        if isinstance(value, tuple):
            return value
        text = str(value)
        if "://" in text:
            self.fail(f"{text!r}: an address has no scheme; write HOST:PORT", param, ctx)
        if text.count(":") > 1 and not text.startswith("["):
            self.fail(f"{text!r}: an IPv6 address goes into brackets, e.g. [::1]:{self._port}", param, ctx)
        parts = _IPV6_AND_PORT.fullmatch(text) or _NAME_AND_PORT.fullmatch(text)
        if parts is None or not _is_host(parts["host"]) or int(parts["port"] or 0) > 65_535:
            self.fail(f"{text!r} is not HOST:PORT, e.g. 192.168.1.5:{self._port}", param, ctx)
        return parts["host"] or "127.0.0.1", int(parts["port"] or self._port)


def _is_host(text: str) -> bool:
    """Return whether the text is an IP address or can be a host's name."""
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


LISTEN_DEFAULT = ("127.0.0.1", PORT_DEFAULT)
LISTEN = option(
    "--listen",
    type=Address(),
    help="Address for other peers, TCP and UDP. Port 0 chooses a free port.  [default: where the peer of --data "
    f"listened before, or 127.0.0.1:{PORT_DEFAULT}, or a free port if it joins a peer of this machine]",
)


def _network(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    try:
        for value in () if is_none(values) else values:
            ipaddress.ip_network(value)
    except ConfigError as error:
        raise click.BadParameter(str(error)) from None
    except ValueError as error:
        raise click.BadParameter(f"{error}; a CIDR looks like 192.168.0.0/16") from None
    return values


ALLOW_NETWORK = option(
    "--allow-network",
    multiple=True,
    metavar="CIDR",
    callback=_network,
    help="Also fetch from these addresses although they are not public, e.g. 127.0.0.0/8. Repeatable. none "
    "means no such networks any more.  [default: the networks given before on this --data]",
)
ANNOUNCE = option(
    "--announce",
    is_flag=True,
    help="Tell the local network where this peer is, by multicast DNS, so that others join with --bootstrap "
    "_kadcrawl._tcp.local and the key. Needs kadcrawl[lan].",
)
PEER = option_group("This peer", LISTEN, ANNOUNCE, DATA, EXIT_WHEN_DONE, ALLOW_NETWORK)


STANDARD = " Or alone: - or csv:- for the standard output, as JSON lines or CSV."
"""The sentence on the places that only an export has."""


def _sinks(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    if is_none(values) and not parameter.required:
        return (NONE,)
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


def _places(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    """Check the places of an export: sinks, or the standard output alone."""
    if not any(value in STANDARD_OUTPUT for value in values):
        return _sinks(context, parameter, values)
    if len(values) > 1:
        raise click.BadParameter("the standard output is a place of its own: give other sinks to another command")
    return values


def sink_option(flag: str, what: str, required: bool = False) -> Callable[[Command], Command]:
    """Return the option that names sinks, for results."""
    return option(
        flag,
        "sinks",
        multiple=True,
        required=required,
        envvar="KADCRAWL_SINK",
        metavar="SINK",
        callback=_places if required else _sinks,
        help=f"{what}: {FORMS}.{STANDARD if required else ''} Repeatable. [env: KADCRAWL_SINK, with spaces between; "
        "the place for a sink with a password or key in it]",
    )


def make_sinks(given: Sequence[str], job_file: Path | None, data: Path | None) -> tuple[str, ...]:
    """Return the sinks of this machine, absolute: those given, or else those in the job file, or none.

    Raises ConfigError for a sink of the file that is malformed or needs a package that is not installed, and for a
    database in a directory that is missing, unless it is in `data`. Without `data` directories do not count.
    """
    if is_none(given):
        return ()
    if given or job_file is None:
        names = [parse(name) for name in given]
        _check_directories(names, data)
        return tuple(name.whole for name in names)
    said = read(job_file).sinks
    try:
        names = [parse(name) for name in said]
        for name in names:
            check(name)
        _check_directories(names, data)
    except ConfigError as error:
        raise ConfigError(f"{job_file}: {error}") from None
    return tuple(name.whole for name in names)


def _check_directories(names: Sequence[SinkName], data: Path | None) -> None:
    for name in names if data is not None else ():
        check_directory(name, data)


def make_job(
    urls: Sequence[str],
    options: dict[str, Any],
    directory: Path,
    limits: SaidLimits | None = None,
    *,
    says_standing: bool = False,
) -> tuple[list[str], Job]:
    """Return the seeds and the job of these options, and ask a person for --contact if the job needs it.

    Settings that neither the person nor the --job file gave stay as they are in the peer's `directory`, if that holds a
    crawl, and `says_standing` has them named. `limits` are the options --limit. Raises ConfigError for impossible
    values, and for options that would do nothing.
    """
    path: Path | None = options["job_file"]
    file = None if path is None else read(path)
    said = {} if file is None else file.values
    seeds = list(dict.fromkeys([*said.get("seeds", ()), *map(seed, urls)]))
    given = {
        KEYS[name.replace("_", "-")].field: value
        for name, value in options.items()
        if name != "job_file" and is_given(name)
    }
    journaled = _journaled_job(directory)
    try:
        named = {*given, *said} | ({"proxies_from"} if PROXIES in given.keys() | said.keys() else set())
        given |= {field: UNSET[field] for field, value in given.items() if field in UNSET and is_none(value)}
        if PROXIES in given:
            given |= proxy_fields(given[PROXIES])
        if given.get("proxy_judge"):
            given["proxy_judge"] = seed(given["proxy_judge"])
        bounds = joined(journaled.shared_limits, {} if file is None else file.limits, limits or {})
        job = replace(journaled, **(said | given | {"seeds": (), "shared_limits": bounds}))
        check_useful(job, fields_in_use(given))
        _check_health_check_url(job, seeds)
        if says_standing:
            _say_standing(journaled, named, directory)
    except ConfigError as error:
        raise ConfigError(in_keys(str(error), "--")) from None
    if not job.contact and needs_contact(seeds):
        if sys.stdin is None or not sys.stdin.isatty():
            raise ConfigError(
                "say who you are: --contact URL or e-mail address goes into the User-Agent, "
                "so that a site's owner can reach you"
            )
        contact = click.prompt("Contact for the sites' owners (URL or e-mail address; goes into the User-Agent)")
        job = replace(job, contact=checked_contact(contact))
    check_contact(job.sites, job.contact)
    return seeds, job


def _say_standing(journaled: Job, named: Container[str], directory: Path) -> None:
    """Print the settings of a journaled job that stand, as none of the named fields sets them, or an order does."""
    if journaled == Job():
        return
    from kadcrawl.cli.view.standing_settings import standing_settings  # Not at the top: a first command does without.
    from kadcrawl.peer.job_store import journaled_changes  # As above.

    if sentence := standing_settings(journaled, named, journaled_changes(directory)):
        click.echo(f"kadcrawl: {sentence}", err=True)


def say_rule_warnings(job: Job, seeds: Sequence[str], directory: Path, *, streams: bool) -> None:
    """Print the rules of a job that never apply. More seeds may be known to an earlier run in the directory, or in a
    file or pipe that `streams` them.
    """
    if not (job.include or job.exclude or job.roles or job.records or job.sites):
        return
    from kadcrawl.cli.view.job_warnings import job_warnings  # Not at the top: it loads rooms of the crawl.

    is_new = not directory.is_dir() or not _journaled_job(directory).seeds
    for sentence in job_warnings(replace(job, seeds=tuple(seeds)), all_seeds_known=is_new and not streams):
        click.echo(f"kadcrawl: warning: {printable(sentence)}", err=True)


def networks_of(given: tuple[str, ...], directory: Path) -> tuple[str, ...]:
    """Return the networks that may be fetched: those given, or else those of the peer's earlier run."""
    if is_none(given):
        return ()
    if given or not directory.is_dir():
        return given
    from kadcrawl.peer.job_store import journaled_networks  # As below.

    return journaled_networks(directory)


def listen_at(
    given: tuple[str, int] | None, directory: Path, otherwise: tuple[str, int] = LISTEN_DEFAULT
) -> tuple[str, int]:
    """Return the (host, port) to listen at: as given, or where other peers may look for this peer, or `otherwise`."""
    if given is None and directory.is_dir():
        from kadcrawl.peer.job_store import journaled_listening  # As below.

        given = journaled_listening(directory)
    return given or otherwise


def _check_health_check_url(job: Job, seeds: Sequence[str]) -> None:
    partition: Partition = "domain" if job.partition == "domain" else "host"
    for url in seeds if job.by_proxies else ():
        if site_of(url, partition) == site_of(job.proxy_judge, partition):
            raise ConfigError(
                f"proxy_judge must be on a site that is not crawled, and {site_of(url, partition)} is a seed's: every "
                "peer asks it through each proxy, beside the pace a site is crawled at"
            )


def is_given(option: str) -> bool:
    """Return whether the option of the running command has its value from the user, not by default."""
    return click.get_current_context().get_parameter_source(option) is not ParameterSource.DEFAULT


def _journaled_job(directory: Path) -> Job:
    if not directory.is_dir():
        return Job()
    from kadcrawl.peer.job_store import journaled_job  # Not at the top: it loads the whole peer.

    return journaled_job(directory) or Job()
