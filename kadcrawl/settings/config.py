"""`Config`: the settings of one peer on one machine.

A `Config` is checked when it is made. It holds the peer's `Limits` (limits.py), which rarely need a change.

Tests: tests/settings/test_limits.py, tests/cli/test_command.py
"""

import ipaddress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from kadcrawl.errors import ConfigError
from kadcrawl.members.swarm_key import SwarmKey
from kadcrawl.settings.limits import Limits, require
from kadcrawl.settings.secrets import Secrets
from kadcrawl.settings.value_types import check_types

PORT_DEFAULT = 4160
"""Default TCP and UDP port of a peer. Wikipedia lists no common use of 4160."""


METRICS_PORT_DEFAULT = 14_160
"""Default TCP port of the metrics."""
COLLECTOR_FORM = "the base URL of a collector, such as http://localhost:4318"
TRACE_SHARE_DEFAULT = 0.01
"""Default part of the URLs whose way is traced."""

WEB_PORT_DEFAULT = 14_190
"""Default TCP port of the dashboard. If it is taken, the dashboard takes a free port."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """The settings of one peer on one machine. Raises ConfigError for a value out of its limits."""

    data: Path
    """Directory with the peer's identity, journal and outputs. One peer uses it at a time."""
    host: str = "127.0.0.1"
    """IP address on which the peer listens, with TCP and UDP. 0.0.0.0 for all IPv4 addresses of the machine.

    It is kept in the spelling that peers accept from each other."""
    port: int = PORT_DEFAULT
    """Port for TCP and UDP, 0 to 65,535. 0 lets the system choose a port."""
    allow_networks: tuple[str, ...] = ()
    """Private networks from which the peer may fetch, as CIDRs such as 127.0.0.0/8. By default none."""
    swarm_key: SwarmKey | None = None
    """Secret that all members of the swarm share: peers encrypt all messages, and ignore non-members.

    Without a key anybody may join, so the peer then listens on loopback addresses only."""
    exit_when_done: bool = False
    """True to stop the peer once the swarm is quiescent."""
    work_area: int | None = None
    """Number of URLs in the peer's work area (W), 1 or more. None to derive it from measured rates (P1 1.4.2)."""
    network: Path | None = None
    """File from `kadcrawl train`, for a job with balance `predictive`.

    None to do without a prediction until the peer has measured enough."""
    powers: tuple[tuple[str, float], ...] = ()
    """Pairs (name, value) of the machine profile that are declared instead of measured in such a job.

    The names are those of balance/machine_profile.py."""
    sinks: tuple[str, ...] = field(default=(), repr=False)
    """Destinations of results besides `data`, such as sqlite:results.db (sinks/sink_names.py).

    They may contain passwords."""
    hooks: tuple[str, ...] = ()
    """Functions, as ``module:function``, that the swarm's job may call on this machine.

    The functions of a job that is given to this peer itself are allowed anyway."""
    metrics: tuple[str, int] | None = None
    """IP address and TCP port at which the peer answers `/metrics`, `/healthz` and `/readyz`. None for no listener.

    Port 0 lets the system choose a port. Anybody who reaches the address can read the metrics, so loopback is best."""
    web: tuple[str, int] | None = None
    """IP address and TCP port of the dashboard. None for no dashboard.

    Port 0 lets the system choose a port. `kadcrawl web` opens the dashboard of a running peer."""
    web_control: bool = False
    """True to let the viewers of the dashboard pause and steer the crawl."""
    traces: str | None = field(default=None, repr=False)
    """Base URL of the collector that receives traces by OTLP over HTTP, such as http://localhost:4318. None for none.

    Spans have whole URLs. The extra `traces` installs what sends them."""
    trace_share: float = TRACE_SHARE_DEFAULT
    """Part of the URLs whose way is traced, above 0 and at most 1. Give all peers the same."""
    announce: bool = False
    """True to tell the machines of the local network the peer's address, by multicast DNS."""
    secrets: Secrets = field(default_factory=Secrets, repr=False)
    """Passwords and tokens that the job calls by name (settings/secrets.py)."""
    limits: Limits = field(default_factory=Limits)
    """Bounds on the resources of the peer."""

    def __post_init__(self) -> None:
        check_types(self)
        require(self.work_area is None or self.work_area >= 1, "work_area must be 1 or more")
        require(0 <= self.port <= 65_535, "port must be from 0 to 65535")
        object.__setattr__(self, "host", _to_listen_on(self.host))
        if self.metrics is not None:
            require(0 <= self.metrics[1] <= 65_535, "the port of metrics must be from 0 to 65535")
            object.__setattr__(
                self, "metrics", (_to_listen_on(self.metrics[0], "the host of metrics"), self.metrics[1])
            )
        if self.web is not None:
            require(0 <= self.web[1] <= 65_535, "the port of the dashboard must be from 0 to 65535")
            object.__setattr__(self, "web", (_to_listen_on(self.web[0], "the host of the dashboard"), self.web[1]))
        if self.traces is not None:
            require(is_collector(self.traces), f"traces takes {COLLECTOR_FORM}, not {self.traces!r}")
        require(0 < self.trace_share <= 1, "trace_share must be above 0 and at most 1")
        for network in self.allow_networks:
            try:
                ipaddress.ip_network(network)
            except ValueError as error:
                raise ConfigError(f"--allow-network takes a CIDR such as 192.168.0.0/16: {error}") from None


def is_collector(url: str) -> bool:
    """Return whether a text may be the base URL of a collector of traces."""
    return url.startswith(("http://", "https://")) and bool(urlsplit(url).hostname)


def _to_listen_on(host: str, what: str = "host") -> str:
    """Return the address in the spelling that peers accept from each other (overlay/addresses.py)."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        raise ConfigError(f"{what} must be an IP address, such as 127.0.0.1 or ::, not {host!r}") from None
    require(
        "%" not in host,
        f"{what} {host} is valid on one network interface only; use an address that other peers can reach",
    )
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped  # Only IPv4 packets arrive there.
    several = address.is_multicast or address == ipaddress.IPv4Address("255.255.255.255")
    require(not several, f"{what} {host} is the address of many machines; use the address of one machine")
    return str(address)
