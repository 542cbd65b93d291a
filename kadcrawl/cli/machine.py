"""The limits and declared powers of the machine that a local peer runs on.

Tests: tests/cli/test_command_train.py
"""

from dataclasses import replace
from pathlib import Path
from typing import Literal

import msgspec

from kadcrawl.settings.config import TRACE_SHARE_DEFAULT, Config
from kadcrawl.settings.job_limits import limits_with
from kadcrawl.settings.limits import Limits
from kadcrawl.settings.secrets import Secrets

LogFormat = Literal["text", "json"]
LogLevel = Literal["debug", "info", "warning", "error"]


class LogSettings(msgspec.Struct, frozen=True):
    """The form and the lowest level of lines in a log."""

    format: LogFormat = "text"
    level: LogLevel = "info"


class MachineSettings(msgspec.Struct, frozen=True):
    """The abilities of a peer's machine, and its limits."""

    fetches: int = Limits().fetches_max
    """Requests under way at a time."""
    network: str | None = None
    """File that predicts (see `Config`)."""
    powers: dict[str, float] = {}
    """Declared by its owner."""
    sinks: tuple[str, ...] = ()
    """Sinks for the peer's results, besides its directory."""
    secrets: dict[str, str] = {}
    """Passwords and tokens by name."""
    metrics: tuple[str, int] | None = None
    """Address of the metrics (see `Config`)."""
    web: tuple[str, int] | None = None
    """Address of the dashboard (see `Config`)."""
    web_control: bool = False
    """Its viewers may give orders."""
    traces: str | None = None
    """Collector of traces (see `Config`)."""
    trace_share: float = TRACE_SHARE_DEFAULT
    """Part of the URLs that is traced."""
    log: LogSettings = LogSettings()
    """The form and level of peer.log."""
    limits: dict[str, float] = {}
    """Other limits of the machine, by name."""

    def config(self, config: Config) -> Config:
        """Return the configuration of a peer on this machine."""
        return replace(
            config,
            limits=limits_with(config.limits, {**self.limits, "fetches_max": self.fetches}.items()),
            network=None if self.network is None else Path(self.network),
            powers=tuple(self.powers.items()),
            sinks=self.sinks,
            secrets=Secrets(self.secrets),
            metrics=self.metrics,
            web=self.web,
            web_control=self.web_control,
            traces=self.traces,
            trace_share=self.trace_share,
        )

    def of_peer(self, number: int) -> "MachineSettings":
        """Return the settings of one peer of a local swarm, from 1.

        Each has a port of its own for its metrics. The first has the dashboard, which shows all of them.
        """
        metrics = self.metrics
        if metrics is not None and metrics[1]:
            metrics = metrics[0], metrics[1] + number - 1
        return msgspec.structs.replace(self, metrics=metrics, web=self.web if number == 1 else None)
