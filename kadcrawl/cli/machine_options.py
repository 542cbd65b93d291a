"""The options about the machine that a peer runs on, and the settings made of them.

Tests: tests/cli/test_command_train.py, tests/cli/test_parts.py
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import wraps
from importlib.util import find_spec
from ipaddress import ip_address
from pathlib import Path
from typing import Any, cast, get_args

import click
from cloup import option, option_group

from kadcrawl.balance.machine_profile import PROFILE_MOST, check_declared, undetected
from kadcrawl.balance.training_data import load_network
from kadcrawl.cli.machine import LogFormat, LogLevel, LogSettings, MachineSettings
from kadcrawl.cli.options import Address, Command, is_given, sink_option
from kadcrawl.cli.types import Limit, Number, Size, WholeNumber
from kadcrawl.errors import ConfigError
from kadcrawl.members.key_file import read_secret
from kadcrawl.settings.config import (
    COLLECTOR_FORM,
    METRICS_PORT_DEFAULT,
    TRACE_SHARE_DEFAULT,
    WEB_PORT_DEFAULT,
    is_collector,
)
from kadcrawl.settings.job import Job
from kadcrawl.settings.job_file import read
from kadcrawl.settings.limit_file import SaidLimits, names, of_job, of_machine
from kadcrawl.settings.limits import Limits
from kadcrawl.settings.secrets import SECRETS_BYTES_MAX, Secrets, from_environment, from_toml
from kadcrawl.settings.site_rules import check_secrets


class Power(click.ParamType[tuple[str, float]]):
    """NAME=NUMBER, a power of this machine (P2)."""

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


class ListenerAddress(Address):
    """HOST:PORT of a listener for people and programs. In the environment, 1 is the default address, and 0 none."""

    def __init__(self, option_name: str, port: int) -> None:
        super().__init__(port)
        self.default = f"127.0.0.1:{port}"
        self._option = option_name

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the address, or None. Raises UsageError for a URL that stands where the address may stand."""
        if value == "0":
            return None
        if "://" in str(value):
            self.fail(
                f"{value!r} is no address: write {self._option} after the URLs, or {self._option}={self.default}",
                param,
                ctx,
            )
        return super().convert(self.default if value == "1" else value, param, ctx)


METRICS_ADDRESS = ListenerAddress("--metrics", METRICS_PORT_DEFAULT)
WEB_ADDRESS = ListenerAddress("--web", WEB_PORT_DEFAULT)


@dataclass(frozen=True, slots=True)
class TraceOptions:
    """The options of traces, as given."""

    endpoint: str | None
    share: float


@dataclass(frozen=True, slots=True)
class MachineOptions:
    """The options of `machine_options`, as given."""

    fetches: int
    memory: int | None
    network: Path | None
    powers: Sequence[tuple[str, float]]
    sinks: tuple[str, ...]
    secrets: Path | None
    metrics: tuple[str, int] | None
    web: tuple[str, int] | None
    web_control: bool
    traces: TraceOptions
    log: LogSettings
    limits: SaidLimits
    """All limits given, those of the job among them."""


MACHINE = option_group(
    "This machine",
    option(
        "--fetches",
        type=WholeNumber(1, 10_000),
        default=Limits().fetches_max,
        show_default=True,
        metavar="N",
        help="The most requests under way at a time, of each peer. A site without a delay gets at most "
        f"{Limits().site_connections_max} of these, a site with a delay one.",
    ),
    option(
        "--memory",
        type=Size(),
        help="The most private memory of each peer, such as 64MB. Caches, bodies in flight and waiting URLs together "
        "take what the program leaves. Bodies without room are cut off. A leaf needs 48 MB, a peer 55 MB.",
    ),
    option(
        "--network",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE",
        help="The file that kadcrawl train wrote, for --balance predictive. Without it a peer is balanced as by drain: "
        "until its pace is measured the peer lends nothing, and borrows a few blocks to try.",
    ),
    option(
        "--power",
        "powers",
        type=Power(),
        multiple=True,
        help="A power of this machine for --balance predictive, in place of the measured power: "
        f"{', '.join(PROFILE_MOST)}. Repeatable.",
    ),
    option(
        "--limit",
        "limits",
        type=Limit(),
        multiple=True,
        help="Set a limit, such as body_bytes_max=10MB or fetch_timeout_s=30s. --limit names lists their "
        "names: those of a job go to all peers of the swarm, the others are of this machine. none means the default. "
        "Repeatable.",
    ),
    sink_option(
        "--sink",
        "Also send results to this sink, by key, while the crawl runs. The crawl waits for no sink, so name the sinks "
        "again when it goes on. Forms",
    ),
    option(
        "--secrets",
        type=click.Path(path_type=Path, dir_okay=False),
        envvar="KADCRAWL_SECRETS",
        metavar="FILE",
        help="The passwords and tokens that [[sites]] tables of the job call by name: a TOML file with a line such as "
        'wiki-login = "user:password" for each, which only you can read. Each machine of a swarm needs it. A secret '
        "can also stand in a variable, such as KADCRAWL_SECRET_WIKI_LOGIN. [env: KADCRAWL_SECRETS]",
    ),
    option(
        "--metrics",
        type=METRICS_ADDRESS,
        is_flag=False,
        flag_value=METRICS_ADDRESS.default,
        metavar="[HOST:PORT]",
        help="Answer /metrics for Prometheus, /healthz and /readyz over HTTP at this address, without a password. Of "
        "several peers of this command, each takes the next port. Port 0 takes a free port, which metrics.json in the "
        f"peer's directory names.  [default without a value: {METRICS_ADDRESS.default}]",
    ),
    option(
        "--web",
        type=WEB_ADDRESS,
        is_flag=False,
        flag_value=WEB_ADDRESS.default,
        metavar="[HOST:PORT]",
        help="Show the swarm in a browser, at this address. kadcrawl web opens it. Of several peers of this command, "
        "the first has it. Port 0 takes a free port, as does the default port if it is taken.  [default without a "
        f"value: {WEB_ADDRESS.default}]",
    ),
    option(
        "--web-control",
        is_flag=True,
        help="Let the viewers of the dashboard pause the crawl and steer single sites. Without this option they only "
        "look.",
    ),
    option(
        "--traces",
        metavar="URL",
        help="Send the way of URLs over peers as OpenTelemetry traces to the collector at this URL, such as "
        "http://localhost:4318, by OTLP over HTTP. This needs kadcrawl[traces].",
    ),
    option(
        "--trace-share",
        type=Number(0, 1, min_open=True),
        default=TRACE_SHARE_DEFAULT,
        show_default=True,
        metavar="SHARE",
        help="The part of the URLs to trace. All peers with the same share trace the same URLs.",
    ),
    option(
        "--log-format",
        type=click.Choice(get_args(LogFormat)),
        default=LogSettings().format,
        show_default=True,
        help="The form of the lines in peer.log: text for a person, or a line of JSON for each event.",
    ),
    option(
        "--log-level",
        type=click.Choice(get_args(LogLevel), case_sensitive=False),
        default=LogSettings().level,
        show_default=True,
        envvar="KADCRAWL_LOG",
        help="The lowest level of lines in peer.log. [env: KADCRAWL_LOG]",
    ),
)


def machine_options(command: Command) -> Command:
    """Add the options about this machine. The command gets them as `machine`, a `MachineOptions`."""

    @wraps(command)
    def gathered(
        *args: Any,
        fetches: int,
        memory: int | None,
        network: Path | None,
        powers: Sequence[tuple[str, float]],
        sinks: tuple[str, ...],
        secrets: Path | None,
        metrics: tuple[str, int] | None,
        web: tuple[str, int] | None,
        web_control: bool,
        traces: str | None,
        trace_share: float,
        log_format: LogFormat,
        log_level: LogLevel,
        limits: Sequence[tuple[str, float | None]],
        **options: Any,
    ) -> Any:
        log, tracing = LogSettings(log_format, log_level), TraceOptions(traces, trace_share)
        machine = MachineOptions(
            fetches, memory, network, powers, sinks, secrets, metrics, web, web_control, tracing, log, dict(limits)
        )
        return command(*args, machine=machine, **options)

    return cast("Command", MACHINE(gathered))


def make_machine(
    given: MachineOptions, sinks: tuple[str, ...], job: Job | None = None, job_file: Path | None = None
) -> MachineSettings:
    """Return the settings of this machine. `job` is None if the swarm has it.

    Raises ConfigError for a file that holds no network, and for options that would do nothing in this job.
    """
    network = given.network
    if job is None and (shared := of_job(given.limits)):
        raise ConfigError(f"{names(shared)} belongs to the job, and the swarm has that: leave out --limit for it")
    limits = of_machine(({} if job_file is None else dict(read(job_file).limits)) | dict(given.limits))
    if given.memory is not None:
        limits["memory_bytes"] = given.memory
    fetches = limits.pop("fetches_max", given.fetches)
    machine = MachineSettings(
        fetches=given.fetches if is_given("fetches") else int(fetches),
        network=None if network is None else str(network.absolute()),
        powers=dict(given.powers),
        sinks=sinks,
        limits=limits,
        secrets=_secrets(given.secrets),
        metrics=_checked_metrics(given.metrics),
        web=_checked_web(given),
        web_control=given.web_control,
        traces=_checked_traces(given.traces.endpoint),
        trace_share=given.traces.share,
        log=given.log,
    )
    if job is not None:
        check_secrets(job.sites, machine.secrets)
    if job is not None and job.lends_by != "predictive" and (network or given.powers):
        raise ConfigError(f"--network and --power are for --balance predictive, and this crawl's is {job.balance}")
    if network is not None:
        load_network(network)
    return machine


def say_missing(machine: MachineSettings, job: Job) -> None:
    """Print which powers this machine does not tell, if the job needs them."""
    if job.lends_by == "predictive" and (missing := missing_powers(machine)):
        click.echo(missing, err=True)


def _checked_metrics(address: tuple[str, int] | None) -> tuple[str, int] | None:
    """Return the address of the metrics, and warn if others than this machine reach it. Raises ConfigError."""
    if address is None:
        return None
    host, is_loopback = _host_of(address, "--metrics")
    if not is_loopback:
        click.echo(
            f"kadcrawl: warning: whoever reaches {host} can read the metrics, without a password; let a firewall pass "
            "only your monitoring, or use --metrics 127.0.0.1",
            err=True,
        )
    return host, address[1]


def _checked_web(given: MachineOptions) -> tuple[str, int] | None:
    """Return the address of the dashboard, and warn if others than this machine reach it. Raises ConfigError."""
    if given.web is None:
        return None
    host, is_loopback = _host_of(given.web, "--web")
    if not is_loopback:
        click.echo(
            f"kadcrawl: warning: whoever is on the way to {host} can read the dashboard's session, as nothing is "
            "encrypted; use --web 127.0.0.1, and ssh -L from another machine",
            err=True,
        )
    return host, given.web[1]


def _host_of(address: tuple[str, int], option_name: str) -> tuple[str, bool]:
    """Return the host of a listener's address, and whether only this machine reaches it. Raises ConfigError."""
    host = "127.0.0.1" if address[0] == "localhost" else address[0]
    try:
        return host, ip_address(host).is_loopback
    except ValueError:
        raise ConfigError(f"{option_name} listens on an IP address, such as 127.0.0.1, not on {host!r}") from None


def _checked_traces(url: str | None) -> str | None:
    """Return the URL of the collector. Raises ConfigError for another text, and without the package of traces."""
    if url is not None and not is_collector(url):
        raise ConfigError(f"--traces takes {COLLECTOR_FORM}, not {url!r}")
    if url is not None and find_spec("opentelemetry") is None:
        raise ConfigError("--traces needs a package: pip install 'kadcrawl[traces]'")
    return url


def _secrets(path: Path | None) -> dict[str, str]:
    """Return the secrets of a file and of the environment. Raises ConfigError, without a secret in its text."""
    found = (
        {}
        if path is None
        else from_toml(
            read_secret(path, pipe=True, what="secrets", bytes_max=SECRETS_BYTES_MAX).decode(errors="replace"),
            str(path),
        )
    )
    return dict(Secrets(found | from_environment(os.environ)))


def missing_powers(machine: MachineSettings) -> str:
    """Return a sentence with the powers that a machine does not tell and their options, or an empty text."""
    names = undetected(machine.powers)
    example = " ".join(f"--power {name}=NUMBER" for name in names)
    if not names:
        return ""
    return (
        f"kadcrawl: this machine does not tell its {', '.join(names)} ({example}); a benchmark of 50 ms stands for it"
    )
