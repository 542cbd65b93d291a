"""The configuration of the peer that `kadcrawl start` or `kadcrawl join` runs.

Tests: tests/cli/test_command_live.py
"""

from pathlib import Path

from kadcrawl.cli.local.directory_check import check_for_peer
from kadcrawl.cli.options import listen_at, networks_of
from kadcrawl.members.swarm_key import SwarmKey
from kadcrawl.settings.config import Config


def make_config(
    data: Path,
    listen: tuple[str, int] | None,
    allow_network: tuple[str, ...],
    exit_when_done: bool,
    key: SwarmKey | None,
) -> Config:
    """Return the configuration of the peer in directory `data`. Raises ConfigError if that holds a local crawl."""
    check_for_peer(data)
    host, port = listen_at(listen, data)
    return Config(
        data=data,
        host=host,
        port=port,
        allow_networks=networks_of(allow_network, data),
        swarm_key=key,
        exit_when_done=exit_when_done,
    )
