"""The configuration of the peer that `kadcrawl start` or `kadcrawl join` runs, and the place of a further peer.

Tests: tests/cli/test_command_live.py
"""

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path

from kadcrawl.cli.local.directory_check import check_for_peer
from kadcrawl.cli.options import LISTEN_DEFAULT, listen_at, networks_of
from kadcrawl.cli.own_peers import beside
from kadcrawl.errors import ConfigError
from kadcrawl.members.key_file import read_kept_key
from kadcrawl.members.swarm_key import SwarmKey
from kadcrawl.settings.config import Config
from kadcrawl.system.directory_lock import is_running
from kadcrawl.system.file_names import SWARM_KEY


def make_config(
    data: Path,
    listen: tuple[str, int] | None,
    allow_network: tuple[str, ...],
    exit_when_done: bool,
    key: SwarmKey | None,
    otherwise: tuple[str, int] = LISTEN_DEFAULT,
) -> Config:
    """Return the configuration of the peer in directory `data`. Raises ConfigError if that holds a local crawl.

    A new peer listens at `otherwise` if `listen` is not given.
    """
    check_for_peer(data)
    host, port = listen_at(listen, data, otherwise)
    return Config(
        data=data,
        host=host,
        port=port,
        allow_networks=networks_of(allow_network, data),
        swarm_key=key,
        exit_when_done=exit_when_done,
    )


def place_beside(neighbor: Path, key: SwarmKey, data: Path) -> Path:
    """Return the first directory among `data`, `data`-2, ... that a further peer of a swarm may use.

    That is a directory of a peer of the same swarm in which no peer runs, or a name that is not taken. `neighbor` is
    the directory of the peer that is joined.
    """
    return next(path for path in beside(data) if not _same(path, neighbor) and _may_take(path, key))


def listen_beside(bootstrap: Sequence[tuple[str, int]]) -> tuple[str, int]:
    """Return where a further peer listens by default: at a free port, if it joins a peer of the same machine.

    The default port is mostly that of the other peer.
    """
    addresses = [_address(host) for host, _ in bootstrap]
    loopback = [address for address in addresses if address is not None and address.is_loopback]
    return (str(loopback[0]), 0) if loopback else LISTEN_DEFAULT


def _address(host: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address("127.0.0.1" if host == "localhost" else host)
    except ValueError:
        return None


def _same(path: Path, other: Path) -> bool:
    return path.exists() and other.exists() and path.samefile(other)


def _may_take(path: Path, key: SwarmKey) -> bool:
    if not path.exists():
        return True
    try:
        return not is_running(path) and read_kept_key(path / SWARM_KEY) == key
    except ConfigError:
        return False
